"""The pool and its sessions under faults: processes that are killed or stopped, a host without descriptors or
memory, clients that are interrupted. What must hold: no fault of the host is told as the program's, nobody else
loses anything, and the next run works.

Usage: pool_faults.py BUILD."""
import atexit
import os
import re
import signal
import subprocess
import sys
import threading
import time

import tapsys
from pooltest import Processes, User, proc, until

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
processes = Processes(programs)
ours = processes.all


def parent(pid):
    return int((re.findall(r"\nPPid:\t(\d+)", proc(pid, "status")) or ["0"])[0])


def state(pid):
    """The letter of its state; empty: it is gone."""
    return proc(pid, "stat").rpartition(")")[2].strip()[:1]


def families(profile):
    """[(template, init, guest)] of the children that a template of this profile has."""
    now = ours()
    found = []
    for guest in now:
        init, template = parent(guest), parent(parent(guest))
        if now.get(template) == now.get(init) == "cordon-python" and now.get(parent(template)) == "cordon-nest" \
                and profile in proc(template, "cmdline"):
            found.append((template, init, guest))
    return found


def start(u, *args, source=None, **more):
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    p = subprocess.Popen(programs.command(args, u.who), env=tapsys.clean_env({}, u.who), cwd="/", stdin=subprocess.PIPE, **more)
    if source is not None:
        p.stdin.write(source.encode())
    p.stdin.close()
    p.stdin = None  # communicate() would flush it
    return p


def result(p, timeout=60):
    began = time.monotonic()
    try:
        out, err = p.communicate(timeout=timeout * tapsys.SLOW)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    return tapsys.Run(p.returncode, out.decode(), err.decode(), time.monotonic() - began)


def judging(u, *options):
    """A run whose judge, the one warm child, stands still while it judges: (client, template, init, guest)."""
    u("pool", "stop", "--force")  # returns when all of it is gone
    u("pool", "start", "--profile", "strict", "--size", "1")
    u.full("strict")
    template, init, guest = until(lambda: families("strict"))[0]
    os.kill(guest, signal.SIGSTOP)
    client = start(u, "run", "--json", *options, "-", source="print(6 * 7)\n")
    until(lambda: u.template("strict").get("lent") == 1)
    until(lambda: state(client.pid) == "S")  # it has what was lent, and waits for the verdict
    return client, template, init, guest


def lost_judges(u):
    for what in ("template", "init", "judge"):
        client, template, init, guest = judging(u)
        os.kill({"template": template, "init": init, "judge": guest}[what], signal.SIGKILL)
        r = result(client)
        u.ok(r["status"] == "ok" and r["stdout"] == "42\n",
             f"a warm run whose {what} is killed while it judges is run by a cold child", r)
    client, template, init, guest = judging(u)
    os.kill(guest, signal.SIGSEGV)
    os.kill(guest, signal.SIGCONT)
    r = result(client)
    u.ok(r["status"] == "blocked" and r["layer"] == "input" and r.rules() == ["judge.died"] and r.code == 3,
         "a judge that dies of a fault of its own has died of the program, which is blocked", r)


def lost_twice(u):
    """Every try loses its judge: two are made, not more, and the result names what died."""
    client, template, init, guest = judging(u)
    before, killed, stop = set(ours()), set(), threading.Event()

    def kill_the_next():
        while not stop.is_set():
            for pid, name in ours().items():
                if name == "cordon-python" and pid not in before | killed and parent(parent(pid)) == client.pid:
                    killed.add(pid)
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

    killer = threading.Thread(target=kill_the_next)
    killer.start()
    os.kill(guest, signal.SIGKILL)
    r = result(client)
    stop.set()
    killer.join()
    if killed:
        u.ok(r["status"] == "refused" and r["layer"] == "process" and "kill" in r["reason"] and not r["violations"] and r.code == 5 and len(killed) == 1,
             f"a second judge that is killed refuses the run by the name of what died: {r['reason']}", r, killed)
    return bool(killed)


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")  # also when the test itself breaks
    lost_judges(user)
    until(lambda: lost_twice(user))
    user("pool", "stop", "--force")
tap.done()
