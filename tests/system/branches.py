#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Branches of one session that run at the same time, while more are forked, as root and as an ordinary user.

Usage: branches.py BUILD. A session and its branches have one seccomp listener, so the client of one branch receives
denied calls of another. What is shown here: each call ends as it would have ended alone, each denied call is in the
result of the branch that made it, once, and no branch dies with another one or with the client of another one."""
import collections
import json
import subprocess
import sys
import time

import tapsys
from pooltest import User, until

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)

RUNNING = 8    # branches in a call at the same time
IDLE = 2       # branches that wait, and are forked meanwhile
SECONDS = 4    # of each call, from the moment on that all of them are under way; forks are made until the last has ended
DENIED = 40    # mounts that a branch tries, spread over its call
TIMES = 3      # how often each of them, one directly after the other

# One call of a branch. MARK is in the argument of each denied call, so that a result tells who made it. `kind` says what
# else the branch does: a request over its memory limit, a signal to a relative, an exit.
CALL = """
import ctypes, errno, os, time
libc = ctypes.CDLL(None, use_errno=True)
mark, kind, wrong = {mark!r}, {kind!r}, []
while not os.path.exists({go!r}):
    time.sleep(0.01)
end = time.monotonic() + {seconds}
for i in range({denied} if kind != "quiet" else 0):
    for _ in range({times}):
        if libc.mount(b"none", b"/tmp/%s-%d" % (mark.encode(), i % 3), b"tmpfs", 0, None) == 0 or ctypes.get_errno() != errno.EPERM:
            wrong.append(os.strerror(ctypes.get_errno()))
    time.sleep({seconds} / {denied})
while time.monotonic() < end:
    own = bytearray(80 << 20)  # seen by the supervisor, and allowed: it is below the limit
    time.sleep(0.01)
if kind == "memory":
    try:
        bytearray(1 << 40)
    except MemoryError:
        pass
    else:
        wrong.append("a terabyte")
if kind == "signal":
    for pid in range(1, 40):
        try:
            if pid != os.getpid():
                os.kill(pid, 0)
                wrong.append("signalled %d" % pid)
        except OSError:
            pass
x.append(mark)
print(mark, "ends with", wrong, x)
if kind == "exit":
    os._exit(7)
"""


def start(u, *args, text=None):
    p = subprocess.Popen(programs.command(args, u.who), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=tapsys.clean_env({}, u.who), cwd="/")
    p.stdin.write((text or "").encode())
    p.stdin.close()
    p.stdin = None
    p.began = time.monotonic()
    return p


def ended(p):
    try:
        out, err = p.communicate(timeout=90 * tapsys.SLOW)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    return tapsys.Run(p.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), time.monotonic() - p.began)


def marks(result):
    """How often the mounts of whom are in a result: {mark: times}."""
    found = collections.Counter()
    for v in result["violations"] or ():
        at = v["detail"].find("/tmp/") if v["rule"] == "seccomp.mount" else -1
        if at >= 0:
            found[v["detail"][at + 5:].split("-")[0]] += v.get("times", 1)
    return dict(found)


def fork_more(u, calls, sources, victim, go):
    """Forks SOURCES, two at a time, as long as one of CALLS runs, which all wait for the file GO. Each branch makes one call and is
    closed. VICTIM is a client that is killed while the first forks are made."""
    made, wrong = 0, []
    while any(p.poll() is None for p in calls):
        pair = [(s, f"more{made + i}") for i, s in enumerate((sources[made % len(sources)], sources[(made + 1) % len(sources)]))]
        forks = [start(u, "session", "fork", s, n) for s, n in pair]
        victim.kill()
        go.touch()
        for (source, name), r in zip(pair, [ended(p) for p in forks]):
            made += 1
            if r.code != 0:
                wrong.append(f"{source} -> {name}: {r.err.strip()}")
                continue
            mark = "fork" + name[4:]
            c = u.cell(name, CALL.format(mark=mark, kind="", seconds=0, denied=1, times=1, go="/"))
            if c["status"] != "ok" or marks(c) != {mark: 1} or f"{mark} ends with []" not in (c["stdout"] or ""):
                wrong.append(f"the call in {name}: {marks(c)} {c.story()}")
            u("session", "close", name)
        if wrong:
            break
    return made, wrong


def parallel(u):
    kinds = ["", "quiet", "memory", "", "quiet", "signal", "", "exit"]
    folder = programs.dir / f"go-{u.who}"
    folder.mkdir(mode=0o755)
    base = u.new("--profile", "open", "--ro", f"{folder}:/go", "base")
    r = u.cell(base, "x = ['base']\n")
    if not u.ok(r["status"] == "ok", "a session starts", r):
        return
    names = [f"b{i}" for i in range(RUNNING + IDLE)] + ["victim"]
    made = [u("session", "fork", base, n) for n in names]
    if not u.ok(all(r.code == 0 for r in made), f"a session that nobody calls is forked {len(names)} times", *[r for r in made if r.code]):
        return
    sources = [base, *names[RUNNING:RUNNING + IDLE]]
    calls = [start(u, "session", "run", "--json", n, "-", text=CALL.format(mark=f"m{n}", kind=k, seconds=SECONDS, denied=DENIED, times=TIMES, go="/go/now"))
             for n, k in zip(names, kinds)]
    victim = start(u, "session", "run", "--json", "victim", "-",
                   text=CALL.format(mark="mvictim", kind="", seconds=100, denied=DENIED * 100 // SECONDS, times=TIMES, go="/"))
    busy = lambda: {n for n, s in u.sessions().items() if s["state"] == "busy"}
    all_run = until(lambda: len(busy()) == RUNNING + 1 or all(p.poll() is not None for p in calls) or None)
    u.ok(all_run and not all(p.poll() is not None for p in calls),
         f"{RUNNING + 1} branches of a session are in a call at the same time", u.sessions())
    more, wrong = fork_more(u, calls, sources, victim, folder / "now")
    ended(victim)
    tap.figure(f"{u.who}: forks beside {RUNNING} calls: {more}")
    u.ok(more >= 2 and not wrong, f"while {RUNNING} branches run, more are forked from the session and from branches, and each of those works", *wrong)
    results = [ended(p) for p in calls]
    for n, kind, r in zip(names, kinds, results):
        want = {f"m{n}": DENIED * TIMES} if kind != "quiet" else {}
        said = f"m{n} ends with [] ['base', 'm{n}']\n"
        good = r["stdout"] == said and (r["status"] == "ok" or kind == "exit")
        u.ok(good, f"the call in a branch that is {kind or 'ordinary'} ({n}) ends as it would have ended alone", r)
        u.ok(marks(r) == want, f"{sum(want.values())} denied mounts of a branch are in its own result, each once, and nobody else's ({n})", marks(r), r)
        others = sorted({v["rule"] for v in r["violations"] or () if v["outcome"] == "denied"} - {"seccomp.mount"})
        u.ok(others == {"memory": ["limit.memory"], "signal": ["seccomp.kill"]}.get(kind, []), f"what else a branch was denied is told in its result and in no other ({n})", others, json.dumps(r["violations"])[:3000])
    gone = until(lambda: not {"victim", "b7"} & set(u.sessions()))
    alive = set(u.sessions())
    u.ok(gone and alive == {base, *names} - {"victim", "b7"}, "SIGKILL of a client and the exit of a branch end these two branches and no other", alive)
    for n in [base, *names[:RUNNING + IDLE - 1]]:
        if n != "b7":
            r = u.cell(n, "x\n")
            want = repr(["base"] + ([f"m{n}"] if n in names[:RUNNING] else []))
            u.ok(r["value"] == want and not r["violations"], f"{n} goes on with its own variables, and nothing of a relative is told later", r)
    for n in u.sessions():
        u("session", "close", n)


for who in tapsys.users():
    user = User(tap, programs, who)
    try:
        parallel(user)
    finally:
        user("pool", "stop", "--force")
tap.done()
