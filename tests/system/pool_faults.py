# SPDX-License-Identifier: Apache-2.0
"""The pool and its sessions under faults: processes that are killed or stopped, a host without descriptors or
memory, clients that are interrupted. What must hold: no fault of the host is told as the program's, nobody else
loses anything, and the next run works.

Usage: pool_faults.py BUILD [PART...]"""
import atexit
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import exits
import fault_commands
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


def cpu(pid):
    """Seconds that it had the processor."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid):
    """Whether it does nothing but wait, and has not been woken for a while."""
    switches = lambda: re.findall(r"ctxt_switches:\t(\d+)", proc(pid, "status"))
    before = switches()
    time.sleep(0.3)
    return state(pid) == "S" and switches() == before


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


def judging(u, source="print(6 * 7)\n"):
    """A run whose judge, the one warm child, stands still while it judges: (client, template, init, guest)."""
    u("pool", "stop", "--force")  # returns when all of it is gone
    u("pool", "start", "--profile", "strict", "--size", "1")
    u.full("strict")
    template, init, guest = until(lambda: families("strict"))[0]
    until(lambda: sleeps(guest))  # it has said that it is ready
    os.kill(guest, signal.SIGSTOP)
    client = u.holding(lambda: start(u, "run", "--json", "-", source=source), "strict")
    until(lambda: sleeps(client.pid))  # it has what was lent, has sent the program, and waits for the verdict
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
    u.ok(r["status"] == "blocked" and r["layer"] == "input" and r.rules() == ["judge.died"] and r.code == exits.NEVER_RAN,
         "a judge that dies of a fault of its own has died of the program, which is blocked", r)


def killed_programs(u):
    """By somebody, as the kernel does where the machine has no memory left: not what the program did, and told so; what it does itself is."""
    for what, more in (("a warm run", []), ("a cold run", ["--ro", "/usr/share/doc:/doc"])):
        u.full("strict")
        before = {guest for _, _, guest in families("strict")}
        client = start(u, "run", "--json", *more, "-", source="print('on', flush=True)\nwhile True:\n    pass\n")
        warm = lambda: [guest for guest in before if state(guest) == "R"]
        cold = lambda: [pid for pid, name in ours().items() if name == "cordon-python" and parent(parent(pid)) == client.pid and state(pid) == "R" and cpu(pid) > 0.3]
        os.kill(until(cold if more else lambda: [pid for pid in warm() if cpu(pid) > 0.3])[0], signal.SIGKILL)
        r = result(client)
        u.ok(r["status"] == "crashed" and (r["error"]["type"], r["error"]["category"]) == ("JailLost", "HOST") and "killed from outside" in r["reason"],
             f"{what} whose program is killed by somebody else says so", r)
    r = u("run", "--json", "--profile", "standard", "-", text="import os\nos.kill(os.getpid(), 9)\n")
    u.ok(r["status"] == "crashed" and (r["error"]["type"], r["error"]["category"]) == ("Signal", "CODE"), "a program that kills itself is told as its own end", r)


def late_client(u):
    """A client that gets no processor for longer than a judge may take finds the verdict when it looks again. There is no worker for
    a second judge, so that nobody asks one unseen."""
    client, template, init, guest = judging(u)
    began = time.monotonic()
    os.kill(client.pid, signal.SIGSTOP)
    os.kill(guest, signal.SIGCONT)
    worker = programs.bin / "cordon-python"
    kept = worker.rename(programs.dir / "kept")
    until(lambda: state(guest) == "S" and time.monotonic() > began + 10.5)  # JUDGE_MS of src/flow/child.c
    os.kill(client.pid, signal.SIGCONT)
    r = result(client)
    kept.rename(worker)
    u.ok(r["status"] == "ok" and r["stdout"] == "42\n", "a client that was stopped for ten seconds takes the verdict that came meanwhile, and asks no second judge", r)


def lose_twice(u):
    """The result of a run whose second judge is killed too, and how many were. The program is long, so that judging takes a while, and
    is refused at its end, so that it never runs."""
    client, template, init, guest = judging(u, "x = [1, 2, 3]\n" * 3400 + "import subprocess\n")
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
    return r, len(killed)


def lost_twice(u):
    for _ in range(20):
        r, killed = lose_twice(u)
        if r.rules() != ["py.module.subprocess"]:  # else the second judge gave its verdict before we found it
            break
    u.ok(r["status"] == "refused" and r["layer"] == "process" and "kill" in r["reason"] and not r["violations"] and r.code == exits.NEVER_RAN and killed == 1,
         f"a second judge that is killed refuses the run by the name of what died: {r['reason']}", r, killed)


def few_descriptors(u):
    """At the limit of descriptors one more session is refused by name; all others, and their template, stay."""
    u("pool", "stop", "--force")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
    u("pool", "start", "--profile", "strict", "--size", "2", preexec_fn=limit)
    u.full("strict")
    made = 0
    while made < 64:
        last = u("session", "new", f"q{made}")
        if last.code != 0:
            break
        made += 1
    pid = u.status().get("pid")
    u.ok(3 <= made < 64 and last.code == exits.NEVER_RAN and "RLIMIT_NOFILE" in last.err and "160" in last.err and "ulimit" in last.err,
         f"with 160 descriptors a session beyond {made} is refused by the name of the limit", last)
    values = [u.cell(f"q{i}", f"{i} + 1\n")["value"] for i in range(made)]
    u.ok(values == [str(i + 1) for i in range(made)] and u.template("strict").get("crashes") == 0,
         "sessions that were made before a refused one live, and so does their template", values, u.status())
    r = u("session", "fork", "q0", "q-fork")
    u.ok(r.code == exits.NEVER_RAN and "RLIMIT_NOFILE" in r.err and u.cell("q0", "40 + 2\n")["value"] == "42", "with 160 descriptors a fork is refused by the name of the limit, and its session lives", r)
    if u.who == "root":
        r = subprocess.run(["/usr/bin/prlimit", f"--pid={pid}", "--nofile=40:160"])  # what was counted no longer holds
        u("session", "close", "q0")
        last = u("session", "new", "late")
        u.ok(r.returncode == 0 and last.code == exits.NEVER_RAN and len(u.sessions()) == made - 1,
             "a child whose descriptors the kernel cuts off is one child less, not the end of its template", last, u.sessions(), u.status())


def interrupted_forks(u):
    """Whoever forks a session may be interrupted at any instant: the session lives, and nothing is left."""
    u("pool", "stop", "--force")

    def fresh():
        u("session", "close", "origin")
        u("session", "new", "--profile", "standard", "origin")
        u.cell("origin", "x = [1]\nopen('/workspace/f', 'w').write('kept')\n")

    fresh()
    began = time.monotonic()
    whole = u("session", "fork", "origin", "whole")
    took = time.monotonic() - began
    u.ok(whole.code == 0, "a session is forked", whole)
    u("session", "close", "whole")
    processes.at_rest()
    rest = processes.lasting()
    for name, sig, group in (("Ctrl-C", signal.SIGINT, True), ("SIGTERM", signal.SIGTERM, False), ("SIGKILL", signal.SIGKILL, False)):
        lost = []
        fresh()  # a session has so many calls, and no more
        for i in range(FORKS):
            p = start(u, "session", "fork", "origin", f"f{i}", start_new_session=True)
            time.sleep(took * 1.2 * i / FORKS)
            (os.killpg if group else os.kill)(p.pid, sig)
            result(p)
            r = until(lambda: (lambda r: r if r.code != exits.BUSY else None)(u.cell("origin", "x, open('/workspace/f').read()\n")))
            if r["value"] != "([1], 'kept')":
                lost.append((i, r.story()))
                fresh()
            for s in u.sessions():
                if s != "origin":
                    u("session", "close", s)
        u.ok(not lost, f"a fork that is interrupted by {name} at any of {FORKS} instants leaves its session as it was", len(lost), *lost)
    u.ok(until(lambda: processes.lasting() <= rest), "forks that were interrupted leave no process behind", rest, ours())


def busy(u):
    u("session", "new", "--profile", "standard", "works")
    call = start(u, "session", "run", "works", "-", source="while True: pass\n")
    u.ok(until(lambda: u.sessions().get("works", {}).get("state") == "busy"), "a session is in a call")
    r = u.cell("works", "1\n")
    u.ok(r.code == exits.BUSY and r["error"]["type"] == "SessionBusy" and "in another call" in r["reason"],
         "a call of a session that is busy says so, with an exit status of its own", r)
    r = u("session", "fork", "works")
    u.ok(r.code == exits.BUSY and "in another call" in r.err, "a fork of a session that is busy says so, with an exit status of its own", r)
    u("session", "close", "works")
    result(call)
    r = u.cell("works", "1\n")
    u.ok(r.code == exits.NEVER_RAN, "a call of a session that is over has another exit status", r)


def own_limit(u):
    u("session", "new", "--profile", "standard", "--memory", "64m", "small")
    r = u.cell("small", "x = bytearray(200 << 20)\n")
    u.ok(r["status"] == "memory" and "64 MB" in r["reason"], "a session that meets its memory limit is told its own limit", r)
    u("session", "close", "small")


def stopped_holder(u):
    u("pool", "stop", "--force")
    u("pool", "start", "--profile", "strict", "--size", "1")
    u.full("strict")
    pid = u.status()["pid"]
    runs = []

    def attempt():
        runs.append(u("run", "--json", "-", text="print(1)\n"))
        return runs[-1].seconds - cold, runs[-1]

    cold = min(u("run", "--json", *fault_commands.COLD, "-", text="print(1)\n").seconds for _ in range(5))
    os.kill(pid, signal.SIGSTOP)
    late, _ = tapsys.soonest(attempt, 30, COLD_LATE)
    u.ok(all(r["stdout"] == "1\n" for r in runs), "runs beside a stopped holder go cold", *runs)
    u.ok(late <= COLD_LATE, f"a stopped holder costs a run less than {COLD_LATE * 1000:.0f} ms", f"{late:.3f} s more than a cold run in the best of {len(runs)}")
    r = u("pool", "status")
    u.ok(r.code == exits.FAILED and str(pid) in r.err and "stopped" in r.err and "CONT" in r.err, "status names the process that is stopped", r)
    r = u("pool", "status", "--json")
    u.ok(r["answers"] is False and r["pid"] == pid and r["process"] == "stopped", "status --json names the process that is stopped", r)
    os.kill(pid, signal.SIGCONT)
    u.ok(until(lambda: u.status().get("answers")), "a stopped holder answers when it is continued")
    os.kill(pid, signal.SIGSTOP)
    r = u("pool", "stop", "--force")
    u.ok(r.code == 0 and until(lambda: not ours()), "a stopped holder can be ended by force, with all that it holds", r, ours())


def folder_deleted(u):
    state = tapsys.clean_env({}, u.who)["CORDON_STATE"]
    u("session", "new", "orphan")
    pid = u.status()["pid"]
    shutil.rmtree(pathlib.Path(state, "run"))
    u.ok(until(lambda: pid not in ours()), "a holder whose folder was deleted, which nobody can reach, ends", ours())
    u("pool", "start", "--profile", "strict")
    first = u.status()["pid"]
    [f.unlink() for f in pathlib.Path(state, "run").iterdir()]
    u("pool", "start", "--profile", "strict")
    second = u.status()["pid"]
    u.ok(first != second and until(lambda: first not in ours()) and u.status().get("pid") == second,
         "a holder whose socket was replaced by another holder's ends, and leaves that socket alone", first, second, u.status())


def affinity(u):
    """Clients come and go, some of them killed: where the holder may run is its own."""
    u("pool", "stop", "--force")
    u("pool", "start", "--profile", "strict", "--size", "4")
    u.full("strict")
    pid, mask = u.status()["pid"], os.sched_getaffinity(0)
    if len(mask) < 2:
        tap.skip(f"{u.who}: the holder's processors", "this machine has one")
        return
    masks, end = set(), threading.Event()

    def watch():
        while not end.is_set():
            masks.add(frozenset(os.sched_getaffinity(pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for i in range(40):
        crowd = [start(u, "run", "-", source="print(1)\n") for _ in range(3)]
        time.sleep(0.012 * (i % 10) / 10)
        crowd[0].kill()
        [result(p) for p in crowd]
    end.set()
    watcher.join()
    u.ok(masks == {frozenset(mask)}, "no client, killed or not, ever narrows where the holder may run", masks, mask)


FORKS = 24
COLD_LATE = 0.15 * tapsys.SLOW  # 100 ms are enough to go cold (a run waits 50 for its holder), and what starts beside it

for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")  # also when the test itself breaks
    chosen = sys.argv[2:] or ["lost_judges", "killed_programs", "late_client", "lost_twice", "few_descriptors", "interrupted_forks", "busy", "own_limit", "stopped_holder", "folder_deleted", "affinity"]
    for name in chosen:
        globals()[name](user)
    user("pool", "stop", "--force")
tap.done()
