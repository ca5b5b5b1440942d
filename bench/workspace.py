#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What workspaces cost: a commit beside git's own, restore, clone, sessions with and without one, runs beside files that they do not touch, and a query of
code_api.

Usage: workspace.py BUILD [--rounds N] [--changed N] [--files N] [--documents N] [--only PART]. Each time is a median; whole commands, with their start and end. BENCH_STRICT=1: a missed
goal is a failure."""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("--rounds", type=int, default=9)
options.add_argument("--files", type=int, default=100000, help="the most files of a workspace that a run does not touch")
options.add_argument("--changed", type=int, default=10000, help="the most files that a run changes")
options.add_argument("--documents", type=int, default=100000)
options.add_argument("--only", action="append", choices=["commits", "sessions", "untouched", "queries"])
o = options.parse_args()
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-", dir=os.environ.get("TMPDIR", "/tmp")))
ENV = {"PATH": "/usr/bin:/bin", "HOME": str(TOP), "LANG": "C.UTF-8", "CORDON_STATE": str(TOP / "state"), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "bench", "GIT_AUTHOR_EMAIL": "bench",
       "GIT_COMMITTER_NAME": "bench", "GIT_COMMITTER_EMAIL": "bench"}
(TOP / "state").mkdir(mode=0o700)
(TOP / ".config/cordon").mkdir(parents=True)
(TOP / ".config/cordon/policy.yaml").write_text("version: 1\nrates: {executions: 1000, window: 1ms}\n")  # the parts have more than 100 runs a minute
missed = []


def command(*words, cwd=None):
    r = subprocess.run([str(w) for w in words], env=ENV, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode:
        sys.exit(f"{words}: {r.stderr.decode()[-400:]} {r.stdout.decode()[-400:]}")
    return r.stdout.decode()


def cordon(*words):
    return command(pathlib.Path(o.build) / "cordon", *words)


def timed(f, *words, **more):
    start = time.perf_counter()
    f(*words, **more)
    return (time.perf_counter() - start) * 1000


def cpu(f, *words):
    """Milliseconds of all processes that it waited for: a busy machine changes them less than those of the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    f(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def counted(*words):
    """System calls of all processes of a command, and the bytes that they read, wrote and listed; None where strace is not installed. No other load changes them."""
    if not shutil.which("strace"):
        return None
    log = TOP / "strace"
    command("strace", "-f", "-qq", "-o", log, pathlib.Path(o.build) / "cordon", *words)
    calls = moved = 0
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"\d+ +([a-z_0-9]+)\(.*= (-?\d+)", line)
        calls += found is not None
        if found and found[1] in ("read", "pread64", "write", "pwrite64", "getdents64", "copy_file_range", "sendfile"):
            moved += max(0, int(found[2]))
    return calls, moved


def median(times):
    return statistics.median(times)


def row(what, ms, note=""):
    print(f"  {what:<66} {ms:>10.2f} ms  {note}", flush=True)


def goal(what, got, most):
    print(f"  goal {'missed' if got > most else 'met'}: {what}: {got:.2f}, at most {most:.2f}", flush=True)
    if got > most:
        missed.append(f"{what}: {got:.2f}, goal {most:.2f}")


def folder(name, count):
    top = TOP / name
    for i in range(count):
        at = top / f"d{i // 1000}"
        if i % 1000 == 0:
            at.mkdir(parents=True)
        (at / f"f{i}.txt").write_text(f"file {i} of the bench\n")
    return top


WRITE = "import os,sys\nn=int(sys.argv[1]); r=sys.argv[2]\nfor i in range(n):\n    d=f'w{i // 1000}'\n    os.makedirs(d, exist_ok=True)\n    with open(f'{d}/{i}', 'w') as f:\n        f.write(f'{r} {i}')\n"


def commits():
    print("\ncommit of a run that changed files, beside `git add -A && git commit`")
    cordon("workspace", "create", "c")
    tree = TOP / "tree"
    tree.mkdir()
    command("git", "init", "-q", cwd=tree)
    limits = ["--disk", "1g", "--inodes", "100000", "--timeout", "5m", "--cpu", "5m"]
    for count in sorted({1, min(100, o.changed), o.changed}):
        rounds = o.rounds if count < 10000 else 3
        kept, thrown, theirs = [], [], []
        for i in range(rounds):
            run = ["exec", "--workspace", "c", *limits]
            tail = ["--", "/usr/bin/python3", "-c", WRITE, count]
            thrown.append(timed(cordon, *run, "--discard", *tail, f"a{i}"))
            kept.append(timed(cordon, *run, *tail, f"b{i}"))
            command("/usr/bin/python3", "-c", WRITE, count, f"b{i}", cwd=tree)
            theirs.append(timed(command, "/bin/sh", "-c", "git add -A && git commit -qm x", cwd=tree))
        commit = median(kept) - median(thrown)
        row(f"{count} files: the run with its commit, minus the same run discarded", commit)
        row(f"{count} files: git add -A && git commit", median(theirs), f"cordon / git: {commit / median(theirs):.2f}")
        if count == 100:
            goal("commit of a run that changed 100 files, times git's own, which syncs no object", commit / median(theirs), 1.2)
    row(f"restore to the state before {o.changed} changes", median([timed(cordon, "workspace", "restore", "c", to) for to in ["head~1", "head~1", "head~1"]]))
    clones = []
    for i in range(o.rounds):
        clones.append(timed(cordon, "workspace", "clone", "c", f"k{i}"))
        cordon("workspace", "discard", f"c@k{i}")
    row(f"clone of a workspace with {o.changed} files", median(clones))
    cordon("workspace", "delete", "c")


def sessions():
    print("\na call of a session, with an unchanged workspace and without one")
    kinds = {"none": []}
    for count in (100, min(10000, o.files)):
        cordon("workspace", "create", f"s{count}")
        cordon("workspace", "import", f"s{count}", folder(f"session{count}", count))
        kinds[f"of {count} files"] = ["--workspace", f"s{count}"]
    new, calls, wrote, forks = ({kind: [] for kind in kinds} for _ in range(4))
    for kind, words in kinds.items():
        cordon("session", "new", words[-1] if words else "none", "--profile", "standard", *words)
    for i in range(min(5 * o.rounds, 40)):  # a session has 50 calls
        for kind, words in sorted(kinds.items(), key=lambda _: random.random()):  # none is always the one behind a certain other
            calls[kind].append(timed(cordon, "session", "run", words[-1] if words else "none", "-c", "x = 1"))
    for i in range(o.rounds):
        for kind, words in kinds.items():
            new[kind].append(timed(cordon, "session", "new", "more", "--profile", "standard", *words))
            wrote[kind].append(timed(cordon, "session", "run", "more", "-c", "f = open('one', 'w'); f.write('%d'); f.close()" % i))
            forks[kind].append(timed(cordon, "session", "fork", "more", "branch"))
            for name in ("more", "branch"):
                cordon("session", "close", name)
            if words:
                cordon("workspace", "discard", f"{words[-1]}@clone-1")
    cordon("pool", "stop", "--force")
    for what, times in (("call that touches nothing", calls), ("new session", new), ("call that writes one file, with its commit", wrote), ("fork", forks)):
        for kind in kinds:
            a, b = median(times["none"]), median(times[kind])
            row(f"{what}, workspace {kind}", b, "" if kind == "none" else f"{b / a:.2f} times that without one")
    for kind in list(kinds)[1:]:
        goal(f"call of a session with an unchanged workspace {kind}, times one without", median(calls[kind]) / median(calls["none"]), 1.10)
    few, many = (median(new[kind]) for kind in list(kinds)[1:])
    goal("new session in a workspace of the most files, times one of 100", many / few, 1.5)


def untouched():
    print("\na run that touches one file, beside files that it does not touch")
    first = None
    for count in sorted({10, min(10000, o.files), o.files}):
        cordon("workspace", "create", "u")
        cordon("workspace", "import", "u", folder(f"u{count}", count))
        shutil.rmtree(TOP / f"u{count}")
        words = ["exec", "--workspace", "u", "--", "/bin/sh", "-c"]
        cordon(*words, "echo first > one")
        ms = median([timed(cordon, *words, f"echo {i} > one") for i in range(o.rounds)])
        work = median([cpu(cordon, *words, f"echo c{i} > one") for i in range(2 * o.rounds)])  # one run that others held up would carry a mean
        count_of = counted(*words, "echo counted > one")
        first = first or (ms, work, count_of)
        row(f"{count} files in the workspace", ms, f"{ms / first[0]:.2f} times that of 10 files; CPU {work:.1f} ms, {work / first[1]:.2f} times")
        if count_of:
            print(f"  {'':<66} {count_of[0]:>10} system calls, {count_of[1]} bytes moved", flush=True)
            goal(f"system calls of a run beside {count} files, times those beside 10", count_of[0] / first[2][0], 1.1)
            goal(f"bytes moved by a run beside {count} files, times those beside 10", count_of[1] / first[2][1], 2)  # the names of up to 256 folders of objects are
        goal(f"CPU time of a run beside {count} files, times that beside 10", work / first[1], 1.5)
        cordon("workspace", "delete", "u")


QUERY = """import json, time
from code_api.search import search
where = {"collection": "bench"} if %s else {}
start = time.perf_counter()
calls, read = 1, 0
while True:
    hits = search("warm", **where)
    read += hits["indexed"]
    if hits["current"] or calls == 25:
        break
    calls += 1
built = time.perf_counter() - start
times = []
for i in range(20):
    start = time.perf_counter()
    hits = search("alpha%%d gamma" %% i, limit=10, **where)
    times.append((time.perf_counter() - start) * 1000)
print(json.dumps([built, calls, read, hits["documents"], hits["current"], sorted(times)]))
"""


def query(what, collection, *words):
    """Two runs: the first finds no index, the second that of the first."""
    for turn in ("first run", "next run"):
        out = cordon("run", "--profile", "standard", "--worker", "execute", "--timeout", "10m", "--cpu", "10m", "--memory", "1g", "--inodes", "400000", "--disk", "2g", *words, "-c", QUERY % collection)
        built, calls, read, documents, current, times = json.loads(out.splitlines()[-1])
        row(f"{what}, {turn}: {read} of {documents} documents read, {calls} calls{'' if current else ', not finished'}", built * 1000)
        row(f"{what}, {turn}: query of {documents} documents, p50 of {len(times)}", statistics.median(times), f"slowest {times[-1]:.0f} ms; its look at every file included")


def queries():
    print("\ncode_api.search")
    top = TOP / "docs"
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    for i in range(o.documents):
        at = top / f"d{i // 1000}"
        if i % 1000 == 0:
            at.mkdir(parents=True)
        (at / f"{i}.txt").write_text(" ".join(f"{w}{i % (k * 7 + 3)}" for k, w in enumerate(words)) + f" gamma document {i}\n")
    policy = TOP / "policy.yaml"
    policy.write_text(f"search: {{collections: [bench={top}]}}\n")
    policy.chmod(0o600)
    query("collection", True, "--policy", policy)
    cordon("workspace", "create", "q")
    cordon("workspace", "import", "q", top)
    shutil.rmtree(top)
    query("workspace", False, "--workspace", "q", "--discard")
    cordon("workspace", "delete", "q")


try:
    for part in (commits, sessions, untouched, queries):
        if not o.only or part.__name__ in o.only:
            part()
finally:
    subprocess.run([str(pathlib.Path(o.build) / "cordon"), "pool", "stop", "--force"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(TOP, ignore_errors=True)
for text in missed:
    print(f"missed: {text}")
sys.exit(1 if missed and os.environ.get("BENCH_STRICT") == "1" else 0)
