#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of Ruby or JavaScript costs beside ruby and node themselves: with no holder, warm, the fork of a session, a warm child that waits.

Usage: language.py BUILD ruby|javascript [--rounds N]. Whole commands, with their start and end; the rows take turns, and the ratios are of p50. BENCH_STRICT=1: a missed goal is a
failure."""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("language", choices=("ruby", "javascript"))
options.add_argument("--rounds", type=int, default=40)
o = options.parse_args()
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-", dir=os.environ.get("TMPDIR", "/tmp")))
ENV = {"PATH": "/usr/bin:/bin", "HOME": str(TOP), "LANG": "C.UTF-8", "XDG_CONFIG_HOME": str(TOP), "CORDON_STATE": str(TOP / "state")}
(TOP / "state").mkdir(mode=0o700)
(TOP / "cordon").mkdir(mode=0o700)
(TOP / "cordon/policy.yaml").write_text('version: 1\nrates: {executions: 1000, window: 1ms, concurrent: 200}\naudit: {sync: "off", duplicates: 0}\n')
(TOP / "no-pool.yaml").write_text("version: 1\npool: {enabled: false}\n")
NODE = shutil.which("node") or "/usr/bin/node"
# the file, its program, what a session binds, and the bare commands
FILE, PROGRAM, BINDS, BARE = {
    "ruby": ("one.rb", "puts 1\n", "x = (1..1000).to_a",
             {"bare ruby": ["/usr/bin/ruby"], "bare ruby, without gems": ["/usr/bin/ruby", "--disable=gems,did_you_mean,error_highlight,rubyopt"]}),
    "javascript": ("one.js", "console.log(1);\n", "let x = Array.from({ length: 1000 }, (_, i) => i);", {"bare node": [NODE]})}[o.language]
(TOP / FILE).write_text(PROGRAM)
CORDON = str(pathlib.Path(o.build).resolve() / "cordon")
missed = []


def command(*words):
    r = subprocess.run([str(w) for w in words], env=ENV, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if r.returncode:
        sys.exit(f"{words}: {r.stderr.decode()[-400:]} {r.stdout.decode()[-400:]}")
    return r.stdout.decode()


def fork():
    command(CORDON, "session", "fork", "bench", "branch")


ROWS = {name: lambda words=words: command(*words, FILE) for name, words in BARE.items()}
ROWS |= {"cordon run, no holder": lambda: command(CORDON, "run", "--policy", "no-pool.yaml", FILE),
         "cordon run, warm": lambda: command(CORDON, "run", FILE),
         "cordon session fork": fork}
GOALS = {"cordon run, warm": 1 / 10}


def measure():
    times = {name: [] for name in ROWS}
    for turn in range(o.rounds + 3):  # the first are not counted: the pool fills
        for name, run in ROWS.items():
            start = time.perf_counter()
            run()
            if turn >= 3:
                times[name].append((time.perf_counter() - start) * 1000)
            if run is fork:
                command(CORDON, "session", "close", "branch")
            time.sleep(0.01)  # refilling is not the next one's bill
    return times


def taken_kb():
    """Memory that processes take, the kernel's own for them included, as bench/python.c counts it."""
    kinds = ("AnonPages", "Shmem", "PageTables", "KernelStack", "SReclaimable", "SUnreclaim", "Percpu")
    found = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return sum(int(found[k].split()[0]) for k in kinds if k in found)


def idle_mb():
    """What 60 more children that wait take from the machine: the middle of three looks."""
    each = []
    for _ in range(3):
        command(CORDON, "pool", "start", "--lang", o.language, "--size", "4")
        time.sleep(2)
        before = taken_kb()
        command(CORDON, "pool", "start", "--lang", o.language, "--size", "64")
        time.sleep(3)
        each.append((taken_kb() - before) / 60 / 1024)
    return statistics.median(each)


try:
    command(CORDON, "pool", "start", "--lang", o.language, "--size", "8")
    command(CORDON, "session", "new", "--lang", o.language, "bench")
    command(CORDON, "session", "run", "bench", "-c", BINDS)
    figures = measure()
    bare = statistics.median(figures[next(iter(BARE))])
    print(f"{'':<34} {'p50 ms':>8} {'p95 ms':>8} {'/bare':>8}  goal")
    for name, ms in figures.items():
        p50, p95 = statistics.median(ms), sorted(ms)[int(len(ms) * 0.95)]
        said = f"  {GOALS[name]:.3f} {'met' if p50 / bare <= GOALS[name] else 'missed'}" if name in GOALS else ""
        missed += [name] if "missed" in said else []
        print(f"{name:<34} {p50:8.3f} {p95:8.3f} {p50 / bare:8.3f}{said}")
    print(f"{'idle warm child, kernel included':<34} {idle_mb():8.2f} MB")
    print("Absolute times prove nothing: they are this machine's in this minute.")
finally:
    subprocess.run([CORDON, "pool", "stop", "--force"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(TOP, ignore_errors=True)
sys.exit(1 if missed and os.environ.get("BENCH_STRICT") == "1" else 0)
