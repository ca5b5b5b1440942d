# SPDX-License-Identifier: Apache-2.0
"""A process of ours is stopped (SIGSTOP) at a chosen system call while a jail is built: `cordon stop` returns at once all
the same and the run says that it was stopped; without `cordon stop` the run ends at a deadline of its own and names the
fault; nothing is left in either case.

Usage: stopped.py BUILD [INSTANTS]. As root and as an ordinary user. The processes of a run are followed by ptrace: each
is stopped, then let go of by the tracer, so that nothing but the signal holds it. INSTANTS system calls of each process
are tried, the first and the last among them. Nothing here is asserted by a time: what must happen is waited for."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

import tapsys
from pooltest import Processes, proc, until

BUILD = sys.argv[1]
INSTANTS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
processes = Processes(programs)
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
CONT, DETACH, SYSCALL, GETEVENTMSG, SEIZE, INTERRUPT = 7, 17, 24, 0x4201, 0x4206, 0x4207
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC, EVENT_STOP = 1, 2, 3, 4, 128
OPTIONS = 1 | 1 << EVENT_FORK | 1 << EVENT_VFORK | 1 << EVENT_CLONE | 1 << EVENT_EXEC | 1 << 20  # ..., killed with the tracer
AT_CALL = signal.SIGTRAP | 0x80
WALL = 0x40000000
QUIET = 0.5  # seconds without a sign of a process that is followed
MOST_CALLS = 600  # of a worker: its locks are closed by then

# (name, words, source, options for both users)
RUNS = {
    "exec": (["exec", "--json", "--timeout", "300s", "--", "/bin/sleep", "300"], None),
    "exec, a cgroup or several processes": (["exec", "--json", "--timeout", "300s", "--processes", "4", "--", "/bin/sleep", "300"], None),
    "exec, mode landlock": (["exec", "--json", "--timeout", "300s", "--mode", "landlock", "--", "/bin/sleep", "300"], None),
    "run": (["run", "--json", "--timeout", "300s", "-"], "while True: print(1, flush=True)\n"),
}


def ptrace(request, pid, data=0):
    return libc.ptrace(request, pid, None, data)


class Traced:
    """A run whose processes are followed. They are numbered as they come; 0 is the supervisor."""

    def __init__(self, who, words, source):
        self.order, self.calls = [], {}
        self.held = {}  # pid: the signal that it is about to get, of those that stand at a stop of the tracer's
        self.gone = set()
        self.source = open(os.memfd_create("source"), "w+b")
        self.source.write((source or "").encode())
        self.source.seek(0)
        self.client = subprocess.Popen(["/bin/sh", "-c", 'kill -STOP $$; exec "$@"', "sh", *programs.command(words, who)], stdin=self.source,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tapsys.clean_env({}, who), cwd="/")
        os.waitpid(self.client.pid, os.WUNTRACED)
        assert ptrace(SEIZE, self.client.pid, OPTIONS) == 0, os.strerror(ctypes.get_errno())
        os.kill(self.client.pid, signal.SIGCONT)
        self.order.append(self.client.pid)

    def next_stop(self):
        """(pid, at a system call, event) of the next process that stands at a stop; (pid, False, None): it is gone; (0, False, None):
        nothing has happened for a while."""
        end = time.monotonic() + QUIET * tapsys.SLOW
        pid = 0
        while not pid and time.monotonic() < end:
            pid, status = os.waitpid(-1, WALL | os.WNOHANG)
            if not pid:
                time.sleep(0.0005)
        if not pid:
            return 0, False, None
        if not os.WIFSTOPPED(status):
            self.gone.add(pid)
            if pid == self.client.pid:
                self.client.returncode = os.waitstatus_to_exitcode(status)
            return pid, False, None
        sig, event = os.WSTOPSIG(status), status >> 16
        self.held[pid] = 0 if event or sig == AT_CALL else sig
        born = ctypes.c_ulong(0)
        if event in (EVENT_FORK, EVENT_VFORK, EVENT_CLONE):
            libc.ptrace(GETEVENTMSG, pid, None, ctypes.byref(born))
        for new in (pid, born.value):
            if new and new not in self.order:
                self.order.append(new)
        return pid, sig == AT_CALL, event

    def follow(self, number, at):
        """Until process NUMBER is at its system call AT, where it is stopped and nobody is followed any more, or until the guest runs or
        the run is over. True: it is stopped. NUMBER None: everybody's calls are counted."""
        while True:
            pid, at_call, event = self.next_stop()
            if event is None:
                if pid in (0, self.client.pid):
                    return False
                continue
            if at_call:
                self.calls[pid] = self.calls.get(pid, 0) + 1
                if number is not None and self.calls[pid] == at:
                    os.kill(pid, signal.SIGSTOP)
                    return self.let_go()
                if self.calls[pid] >= MOST_CALLS:
                    return False
            elif event == EVENT_EXEC and proc(pid, "cmdline").startswith("/bin/sleep\0"):
                return False
            watched = pid != self.client.pid and (number is None or self.order.index(pid) == number)
            ptrace(SYSCALL if watched else CONT, pid, self.held.pop(pid))

    def let_go(self):
        """Only at a stop of the tracer's can a process be let go of. False: all were killed instead."""
        for pid in self.order:
            if pid not in self.held and pid not in self.gone:
                ptrace(INTERRUPT, pid)
        while any(pid not in self.held and pid not in self.gone for pid in self.order):
            if not self.next_stop()[0]:
                break
        # A launcher whose exec is about to be answered by its builder comes to no stop. A tracer that cannot let go of it would be
        # waited for by the kernel: such an instant is not tried.
        stuck = [pid for pid in self.order if pid not in self.held and pid not in self.gone]
        if stuck:
            for pid in self.order:
                if pid not in self.gone:
                    os.kill(pid, signal.SIGKILL)
            while any(pid not in self.gone for pid in self.order) and self.next_stop()[0]:
                pass
        for pid, sig in self.held.items():
            if pid not in self.gone:
                ptrace(DETACH, pid, sig)
        self.held.clear()
        return not stuck

    def result(self):
        out, err = self.client.communicate(timeout=120 * tapsys.SLOW)
        return tapsys.Run(self.client.returncode, out.decode(), err.decode(), 0)

    def end(self):
        self.let_go()
        if self.client.returncode is None:
            self.client.kill()
        self.client.communicate()


def look_at(who, words, source):
    """How many stops at system calls each process of a run has, in the order of the processes; whether the first is its janitor."""
    t = Traced(who, words, source)
    t.follow(None, 0)
    janitors = [i for i, pid in enumerate(t.order) if proc(pid, "comm") == "cordon-janitor\n"]
    counts = [0 if i in janitors[1:] else t.calls.get(pid, 0) for i, pid in enumerate(t.order)]  # a second one is waited for by nobody
    janitor = janitors[:1] == [1]
    t.end()
    until(lambda: not processes.all())
    return counts, janitor


def instants(count):
    few = min(INSTANTS, count)
    return sorted({1 + round(i * (count - 1) / max(few - 1, 1)) for i in range(few)})


def one(who, name, number, at, has_janitor):
    """SIGSTOP, then `cordon stop`."""
    words, source = RUNS[name]
    t = Traced(who, words, source)
    if not t.follow(number, at):
        t.end()
        until(lambda: not processes.all())
        return None
    comm = proc(t.order[number], "comm").strip()
    janitor = has_janitor and number == 1
    stop = tapsys.cordon(programs, ["stop", "--json", "--patience", "1h"], who, timeout=120)
    r = t.result()
    if janitor:  # root's, and its supervisor may have given up root: it ends when it goes on
        try:
            os.kill(t.order[number], signal.SIGCONT)
        except ProcessLookupError:
            pass
    left = until(lambda: not processes.all())
    resume = tapsys.cordon(programs, ["resume"], who)
    faults = []
    if stop.code != 0 or [x["end"] for x in stop["runs"] or ()] not in (["ended"], []):
        faults.append(f"stop: {stop.story()}")
    if (r["error"] or {}).get("type") != "Stopped" and not janitor:
        faults.append(f"the run: {r.story()}")
    if not left or resume.code != 0:
        faults.append(f"left: {processes.all()}, resume: {resume.story()}")
        for pid in processes.all():
            os.kill(pid, signal.SIGKILL)
    return [f"process {number} ({comm}), system call {at}: {f}" for f in faults]


def by_itself(who):
    """SIGSTOP, and nobody calls `cordon stop`: one deadline for all of them, side by side."""
    stopped = []
    for name, (words, source) in RUNS.items():
        counts, has_janitor = look_at(who, words, source)
        for number in range(1, len(counts)):
            t = Traced(who, words, source)
            if counts[number] and t.follow(number, (counts[number] + 1) // 2):
                stopped.append((name, number, has_janitor and number == 1, t))
            else:
                t.end()
    for name, number, janitor, t in stopped:
        r = t.result()
        if janitor:
            tap.ok(r["status"] == "refused" and "janitor" in (r["reason"] or ""), f"{who}: {name}: a run whose janitor is stopped before it answers is "
                   "refused at a deadline, and says so", r.story())
            if proc(t.order[number], "stat"):
                os.kill(t.order[number], signal.SIGCONT)
        else:
            tap.ok(r["status"] == "refused" and "stopped" in (r["reason"] or ""), f"{who}: {name}: a jail whose process {number} is stopped while it "
                   "is built is given up at a deadline, and the run says so", r.story())
    tap.ok(until(lambda: not processes.all()), f"{who}: nothing is left of jails that were given up", processes.all())


for user in tapsys.users():
    by_itself(user)
    for name, (words, source) in RUNS.items():
        counts, has_janitor = look_at(user, words, source)
        if not tap.ok(len(counts) > 1, f"{user}: {name}: processes of a run can be followed", counts):
            continue
        tried, faults = 0, []
        for number, count in list(enumerate(counts))[1:]:
            for at in instants(count):
                found = one(user, name, number, at, has_janitor)
                tried += found is not None
                faults += found or []
        tap.ok(tried > 0 and not faults, f"{user}: {name}: cordon stop ends a run at once, whichever of its processes is stopped while the jail is built",
               f"{tried} tried", *faults)
        tap.figure(f"{user}: {name}: {len(counts) - 1} processes, {tried} instants")
tap.done()
