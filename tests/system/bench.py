#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The bench of starts beside its peers: what it says of a peer that fails, and what it never gives to one. The peers are real, only
/usr/bin/crun is another program, and the machine's /dev/null a device node of the test's own: in a mount namespace of its own.

Usage: bench.py BUILD SOURCE."""
import json
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
text, code, owner = bench("#!/bin/sh\nchown 4242:4242 /dev/null\n")
tap.ok(code == 2 and "changed the machine's /dev/null" in text, "a peer that changes /dev/null by its name is told, and the bench fails", text)

listed = json.loads((build / "meson-info/intro-benchmarks.json").read_text())
crowds = re.search(r"crowds\[\] = \{([\d, ]+)\}", (source / "bench/clients.c").read_text())
tap.ok("clients" in [b["name"] for b in listed] and crowds and crowds.group(1) == "1, 10, 50, 200", "make bench has a row for 1, 10, 50 and 200 clients", listed)
tap.done()
