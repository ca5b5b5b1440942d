# SPDX-License-Identifier: Apache-2.0
"""N warm runs by two clients at once: nothing may stay in a client, in the holder or in the template; p99 is printed.

Usage: pool_soak.py BUILD [N]. As whoever starts it."""
import atexit
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import tapsys
import traces

BUILD = pathlib.Path(sys.argv[1]).resolve()
N = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
who = "root" if os.geteuid() == 0 else "user"
tapsys.POLICY = tapsys.POLICY.replace("failures: 1000}", "failures: 1000, counts: [lost]}")  # a seventh of the runs fail, on purpose
tapsys.POLICY += "pool: {renew_runs: 1000000}\n"  # one template all the time: what grows in it is looked for
env = tapsys.clean_env({}, who)
atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)  # also when the test itself breaks


def status():
    return tapsys.cordon(programs, ["pool", "status", "--json"], who).json


def wait_full():
    for _ in range(3000):
        t = status()["templates"][0]
        if t["ready"] == t["warm"] and t["asked"] == 0:
            return True
        time.sleep(0.02)
    return False


def processes(pid):
    """{pid: command} of all descendants."""
    return {p.pid: p.name for p in traces.below(pid).values()}


def size(pid):
    """Memory in KB and descriptors."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    rss = int(text.split("VmRSS:")[1].split()[0])
    try:
        return rss, len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return rss, 0


def template_of(holder):
    below = traces.below(holder).values()
    nest = next(p.pid for p in below if p.name == "cordon-nest")
    return next(p.pid for p in below if p.name == "cordon-python" and p.parent == nest)


r = tapsys.cordon(programs, ["pool", "start", "--profile", "strict", "--size", "16"], who)
if not tap.ok(r.code == 0 and wait_full(), "a pool of sixteen children is started", r.err):
    tap.done()


def clients(n):
    """(good, what they said, times in us, seconds)"""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        running = [subprocess.Popen([BUILD / "tests/probes/warm_many", programs.bin, str(n // 2), f"{folder}/{i}"], env=env, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, text=True) for i in range(2)]
        said = [p.communicate()[0].strip() for p in running]
        took = time.monotonic() - begin
        times = sorted(int(x) for i in range(2) for x in pathlib.Path(folder, str(i)).read_text().split())
        return all(p.returncode == 0 for p in running), said, times, took


good, said, _, _ = clients(400)  # whatever grows once has grown
tap.ok(good, "clients of the pool begin", *said)
holder = status()["pid"]
template = template_of(holder)
wait_full()
time.sleep(0.5)  # the template prepares its next child when it has been quiet for a moment
before = size(holder), size(template), len(processes(holder))
good, said, times, took = clients(N)
tap.ok(good, f"{N} warm runs: nothing stays in a client", *said)
for line in said:
    tap.figure(line)
wait_full()
time.sleep(0.5)
after = size(holder), size(template), len(processes(holder))
tap.figure(f"holder: memory {before[0][0]} -> {after[0][0]} KB, descriptors {before[0][1]} -> {after[0][1]}; "
           f"template: memory {before[1][0]} -> {after[1][0]} KB, descriptors {before[1][1]} -> {after[1][1]}; processes {before[2]} -> {after[2]}")
tap.ok(after[0][0] <= before[0][0] + 512 and after[0][1] <= before[0][1] + 4, "nothing stays in the holder", before, after)
tap.ok(after[1][0] <= before[1][0] + 1024 and after[1][1] <= before[1][1] + 4, "nothing stays in the template", before, after)
tap.ok(after[2] <= before[2] + 2, "no process of the pool is left", before, after, processes(holder))
tap.ok(len(times) > 0.9 * N, "every run was timed")
if times:
    tap.figure(f"{N} runs in {took:.1f} s, {N / took:.0f} a second by two clients; one run through the whole flow, us: "
               f"p50 {times[len(times) // 2]}, p95 {times[len(times) * 95 // 100]}, p99 {times[len(times) * 99 // 100]}, most {times[-1]}")
t = status()["templates"][0]
tap.ok(t["crashes"] == 0 and t["lent"] == 0, f"one template made {t['made']} children", t)
tap.ok(tapsys.cordon(programs, ["pool", "stop"], who).code == 0, "the holder stops when it is told to")
tap.done()
