#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The bench of starts beside its peers: what it says of a peer that fails, and what it never gives to one. The peers are real, only
/usr/bin/crun is another program, and the machine's /dev/null a device node of the test's own: in a mount namespace of its own.

Usage: bench.py BUILD SOURCE."""
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile

import tapsys

build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
tap = tapsys.Tap()


def bench(crun):
    """What the bench prints, its exit status, and the owner of the machine's /dev/null afterwards, if this is crun."""
    with tempfile.TemporaryDirectory(prefix="cordon-bench-") as folder:
        top = pathlib.Path(folder)
        top.chmod(0o755)
        (top / "crun").write_text(crun)
        (top / "crun").chmod(0o755)
        os.mknod(top / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (top / "null").chmod(0o666)
        script = f"mount --bind {top}/crun /usr/bin/crun && mount --bind {top}/null /dev/null && exec {build}/bench/exec_bench {build}/cordon --rounds 3"
        r = subprocess.run(["/usr/bin/unshare", "-m", "-n", "/bin/sh", "-c", script], capture_output=True, text=True, timeout=120 * tapsys.SLOW,
                           env={"PATH": "/usr/bin:/bin"}, check=False)
        s = os.stat(top / "null")
        return r.stdout + r.stderr, r.returncode, (s.st_uid, s.st_gid, stat.S_IMODE(s.st_mode))


def row(text, name):
    return next((line for line in text.splitlines() if re.search(rf"\b{name}\b", line)), text)


if os.geteuid() != 0:
    tap.skip("the bench beside another crun", "mounts of the test's own need root")
    tap.done()
text, code, _ = bench("#!/bin/sh\necho 'a library is lost' >&2\nexit 127\n")
tap.ok(code == 0 and "exit 127: a library is lost" in row(text, "crun") and "not installed" not in text,
       "a peer that exits with 127 is told with its status and its own words, not as missing", text)
text, code, owner = bench("#!/bin/sh\nchown 4242:4242 /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2\n")
tap.eq((code, owner), (0, (0, 0, 0o666)), "a peer that gives its streams to another user does not get the machine's /dev/null", text)
tap.ok("exit" not in row(text, "crun"), "a peer that exits with 0 is measured", row(text, "crun"))
goals = re.findall(r"^goal: (.+?) at most 0\.60 of bubblewrap's p50: ([\d.]+), (.*)$", text, re.M)
tap.eq([name for name, _, _ in goals], ["cordon exec", "cordon exec, rootless"], "the goal is judged for what users start, and not for the jail alone", text)
tap.ok(goals and all(("missed by" in said) == (float(ratio) > 0.60) for _, ratio, said in goals if ratio != "0.60"), "a goal that is not reached says by how much it is missed", goals)
text, code, owner = bench("#!/bin/sh\nchown 4242:4242 /dev/null\n")
tap.ok(code == 2 and "changed the machine's /dev/null" in text, "a peer that changes /dev/null by its name is told, and the bench fails", text)

r = subprocess.run([source / "bench/run", build, "exec", "--rounds", "3"], capture_output=True, text=True, timeout=120 * tapsys.SLOW, check=False)
ours, other = ("aarch64", "x86_64") if os.uname().machine == "aarch64" else ("x86_64", "aarch64")
tap.ok(f"measured on {ours}; {other} is not measured here" in r.stdout, "make bench says for which architecture it has no figure", r.stdout[-500:])
repeated = r.stdout[r.stdout.index("goals missed:"):]
tap.eq(re.findall(r"goal: (.+?) at most", repeated), re.findall(r"goal: (.+?) at most.*missed", r.stdout[:r.stdout.index("goals missed:")]),
       "the last lines of make bench repeat every goal that was missed", r.stdout)

r = subprocess.run([source / "bench/run", build, "proxy", "--rounds", "1", "--chunks", "200"], capture_output=True, text=True, timeout=120 * tapsys.SLOW, check=False)
rates = re.findall(r"^chunks a second, (\d+) streams? +(\d+) +(\d+) ", r.stdout, re.M)
tap.ok([n for n, _, _ in rates] == ["1", "16", "64"] and all(int(a) > 0 and int(b) > 0 for _, a, b in rates),
       "make bench has chunks a second of 1, 16 and 64 streams through the gateway, beside the same upstream without it", r.stdout, r.stderr)
tap.ok(re.search(r"^added by the gateway to a chunk: p50 -?[\d.]+ us, p99 -?[\d.]+ us$", r.stdout, re.M), "make bench says what the gateway adds to the p99 of a chunk", r.stdout)

r = subprocess.run([source / "bench/run", build, "clients", "--seconds", "1"], capture_output=True, text=True, timeout=180 * tapsys.SLOW, check=False)
rows = re.findall(r"^(\d+)((?: +\d+ +[\d.]+ +[\d.]+){3})$", r.stdout, re.M)
tap.ok([n for n, _ in rows] == ["1", "10", "50", "200"] and all(int(rate) > 0 for _, figures in rows for rate in figures.split()[::3]),
       "make bench prints runs a second of 1, 10, 50 and 200 clients, cold, warm and of the process alone; none fails", r.stdout, r.stderr)
tap.done()
