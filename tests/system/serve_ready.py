#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runners that wait with policy, gate, audit and a child of the pool open: what changes meanwhile reaches the next run."""
import fcntl
import os
import shutil
import signal
import struct
import sys
import termios

import tapsys
import traces
from mcptest import Server, appears, bytes_of, gone, named, stat, text
from servetest import figures
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
state = programs.dir / "ready-state"
policy = programs.dir / "policy.yaml"
ENV = {"CORDON_STATE": str(state)}
QUICK_ENDS = 8  # of src/serve/ready.c
TRIES = 5  # a run waits for a child for 50 ms, which a busy machine may not keep


def cordon(*words):
    return tapsys.cordon(programs, list(words), env=ENV)


def opened(pid):
    """The names of the files that a process has open."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return found


def prepared(server):
    """The runners that wait and have opened what a run needs, once both of them have."""
    def both():
        try:
            found = [p for p in named(server.process.pid, "cordon-ready") if any(n.endswith("/gate.live") for n in opened(p))]
        except (FileNotFoundError, ProcessLookupError):  # one has just ended
            return None
        return found if len(found) == 2 else None
    return appears(both)


def pool(what):
    return sum(t[what] for t in cordon("pool", "status", "--json").json["templates"])


def lends(server, before, **more):
    """Whether a run has a child that was lent for it, after BEFORE others; one that a busy holder kept waiting for too long makes its own. It goes on meanwhile: another runner waits, so none is prepared beside it, and no child is
    lent but its own."""
    number = server.send("tools/call", name="execute_code", arguments={"code": "while True: pass", **more})
    met = appears(lambda: "lent" if cordon("pool", "status", "--json").json["leases"] == before + 1 else named(server.process.pid, "cordon-python"))
    server.tell("notifications/cancelled", requestId=number)
    appears(lambda: not named(server.process.pid, "cordon-runner"))
    return met == "lent"


def another_pool():
    cordon("pool", "stop", "--force")
    cordon("pool", "start", "--size", "4")
    appears(lambda: pool("ready") == 4)


def lends_of_another(server, **more):
    prepared(server)
    another_pool()
    return lends(server, 0, **more)


def lends_of_new_templates(server):
    another_pool()
    tap.eq(value(server)[0], "42", "a run by a runner that waited through all of that")
    prepared(server)
    appears(lambda: pool("lent") == 1)  # that of the runner that is taken next; the other still waits with one of an older pool
    before = cordon("pool", "status", "--json").json
    for p in traces.children(before["pid"]):  # the templates; what was forked from them ends with them
        os.kill(p, signal.SIGKILL)
    appears(lambda: pool("ready") == 4)
    return lends(server, before["leases"])


def value(server, **more):
    r = server.tool("execute_code", code="6 * 7", **more)
    return (r.get("structuredContent") or {}).get("value"), text(r)


def marks(pid):
    """What the kernel tells of a process: whether it leads a session, whether a program gives it rights, its core files."""
    status = dict(line.split(":\t", 1) for line in bytes_of(pid, "status").decode().splitlines())
    core = [line.split()[4:6] for line in bytes_of(pid, "limits").decode().splitlines() if line.startswith("Max core file size")]
    return os.getsid(pid) == pid, status["NoNewPrivs"], core


def killed_unseen(server):
    """While cordond stands still, those who wait are killed and the front passes a request on: cordond meets that first, and then the dead."""
    ready = prepared(server)
    front = named(server.process.pid, "cordon-front")[0]
    os.kill(server.process.pid, signal.SIGSTOP)
    for p in ready:
        os.kill(p, signal.SIGKILL)
    appears(lambda: all(stat(p)[1] == "Z" for p in ready))
    number = server.send("tools/call", name="execute_code", arguments={"code": "6 * 7"})
    appears(lambda: struct.unpack("i", fcntl.ioctl(server.process.stdin, termios.FIONREAD, bytes(4)))[0] == 0 and stat(front)[1] == "S")
    os.kill(server.process.pid, signal.SIGCONT)
    r = server.reply(number).get("result") or {}
    tap.eq((r.get("structuredContent") or {}).get("value"), "42", "runners that are killed while they wait, before cordond sees it: the run goes to another", r)


def given_up():
    with Server(programs, "--policy", str(policy), env=ENV) as s:
        value(s)
        killed = []
        while len(killed) < QUICK_ENDS + 1:  # two wait, and the second of them is not replaced either
            killed.append(appears(lambda: named(s.process.pid, "cordon-ready"))[0])
            os.kill(killed[-1], signal.SIGKILL)
            appears(lambda: not stat(killed[-1]))  # cordond has seen it
        tap.eq([value(s)[0] for _ in range(5)], ["42"] * 5, f"{QUICK_ENDS} runners that are killed while they wait, one after the other: runs go on")
        tap.ok(appears(lambda: len(named(s.process.pid, "cordon-ready")) == 2), f"{QUICK_ENDS} runners that are killed while they wait, one after the other: after a pause others wait")


def takes_nothing():
    """A runner that waits has neither a slot of the gate nor a cgroup: it takes both with its order, as the run beside it shows."""
    if os.geteuid():  # an ordinary user has no cgroup of its own on every machine
        return
    policy.write_text("version: 1\nrun: {memory_by: cgroup}\n")
    with Server(programs, "--policy", str(policy), env=ENV) as s:
        value(s)
        ready = prepared(s)
        tap.eq((cordon("stop", "--list", "--json").json["count"], traces.cgroups(ready)), (0, set()), "runners that wait have no slot of the gate and no cgroup")
        number = s.send("tools/call", name="execute_code", arguments={"code": "while True: pass"})
        runs = appears(lambda: [p for p in ready if (stat(p) or ("",))[0] == "cordon-runner"]) or []
        tap.ok(len(runs) == 1 and appears(lambda: traces.cgroups(runs)) and appears(lambda: cordon("stop", "--list", "--json").json["count"] == 1),
               "the one of them that gets a run has both", runs, traces.cgroups(ready))
        tap.eq(traces.cgroups(set(ready) - set(runs)), set(), "the other one still has no cgroup")
        s.tell("notifications/cancelled", requestId=number)
    policy.write_text("version: 1\n")


def measured():
    """Whoever looks at the figures takes nothing from those who run something."""
    with Server(programs, "--policy", str(policy), "--metrics", "0", env=ENV) as s:
        port = int(s.process.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
        figures(port)
        tap.eq(named(s.process.pid, "cordon-ready"), [], "figures are no request after which runners wait")
        value(s)
        ready = set(prepared(s))
        for _ in range(3):
            figures(port)
        tap.eq(set(prepared(s) or ()), ready, "figures take none of the runners that wait")
        value(s)
        tap.ok(prepared(s), "after figures and a run others wait that are prepared for a run")


def left_behind():
    """One that is stopped does not see the end of its socket."""
    s = Server(programs, "--policy", str(policy), env=ENV)
    value(s)
    ready = prepared(s)
    for p in ready:
        os.kill(p, signal.SIGSTOP)
    s.process.kill()
    left = gone(ready)
    tap.eq(left, [], "SIGKILL of cordond ends runners that wait, also those that are stopped")
    for p in left:
        os.kill(p, signal.SIGKILL)
    s.end()


policy.write_text("version: 1\n")
cordon("pool", "start", "--size", "4")
appears(lambda: pool("ready") == 4)
with Server(programs, "--policy", str(policy), env=ENV) as s:
    tap.eq(value(s)[0], "42", "the first run")
    ready = prepared(s)
    names = opened(ready[0])
    tap.ok(all(f"{state}/{n}" in names for n in ("gate.live", "stop.bell", "audit", "seal/head", "seal/runs")),
           "a runner that waits has gate and audit open before there is a request", names)
    tap.ok(appears(lambda: pool("lent") == 2), "each runner that waits has a child of the pool")
    tap.eq([marks(p) for p in ready], [(True, "1", [["0", "0"]])] * 2, "a runner that waits leads a session of its own, gains no rights by a program and leaves no core file")
    tap.eq(cordon("stop", "--list", "--json").json["count"], 0, "a runner that waits has no slot of the gate")
    tap.eq(value(s)[0], "42", "a run by a runner that was prepared")
    tap.ok(prepared(s) != ready, "a runner that was taken is replaced")
    tap.eq(value(s, timeout_ms=5000, memory_mb=64)[0], "42", "a run with tighter limits than were expected gives that child back and takes another")
    prepared(s)
    r = s.tool("execute_code", code="len(bytearray(200 << 20))", memory_mb=64)
    tap.ok(r["isError"] and "MemoryError" in text(r), "tighter limits than were expected hold for a run by a runner that was prepared", r)
    prepared(s)
    tap.eq(value(s)[0], "42", "the run after one with tighter limits")

    ready = prepared(s)
    for p in ready:
        os.kill(p, signal.SIGKILL)
    gone(ready)
    tap.ok(value(s)[0] == "42" and not set(prepared(s)) & set(ready), "runners that are killed while they wait: the next run goes on, and others wait")

    killed_unseen(s)

    ready = prepared(s)
    for p in ready:
        os.kill(p, signal.SIGSTOP)
    appears(lambda: all(stat(p)[1] == "T" for p in ready))
    tap.eq(value(s)[0], "42", "runners that are stopped while they wait: the next run goes to another and is answered")
    tap.eq(gone(ready), [], "runners that are stopped while they wait are ended when one is needed")

    prepared(s)
    policy.write_text("version: 1\nno_such_key: 1\n")
    got = value(s)
    tap.ok(got[0] is None and "policy" in got[1], "a policy that is broken while runners wait: the next run is refused, and told why", got)
    policy.write_text("version: 1\nroles: {nothing: {tools: []}}\nrun: {role: nothing}\n")
    got = value(s)
    tap.ok(got[0] is None and "role" in got[1], "a policy that changes while runners wait holds for the next run", got)
    policy.write_text("version: 1\n")
    tap.eq(value(s)[0], "42", "a policy that is mended while runners wait holds for the next run")

    prepared(s)
    cordon("stop", "--why", "a test")
    got = value(s)
    tap.ok(got[0] is None and "stop" in got[1], "cordon stop while runners wait: the next run is refused", got)
    cordon("resume")
    tap.eq(value(s)[0], "42", "cordon resume while runners wait: the next run begins and goes on")
    prepared(s)
    cordon("stop", "--why", "a test")
    cordon("resume")
    tap.eq(value(s)[0], "42", "cordon stop and cordon resume while runners wait, which were there before both: the next run goes on")

    prepared(s)
    cordon("pool", "stop", "--force")
    got = value(s)
    tap.eq(got[0], "42", "the pool is gone, and the child of a runner that waits with it: the next run goes without", got[1])
    another_pool()
    tap.eq(value(s)[0], "42", "another pool is there: the next run")
    for what, more in (("", {}), (" and tighter limits", {"memory_mb": 64})):
        tap.ok(any(lends_of_another(s, **more) for _ in range(TRIES)), f"another pool{what} while runners wait: the next run has a child of the new one")
    tap.ok(any(lends_of_new_templates(s) for _ in range(TRIES)), "templates that died while runners wait, and the children of those with them: the next run has a new child")
    tap.eq(value(s)[0], "42", "a run after templates died")

    prepared(s)
    before = state.with_name("before")
    cordon("pool", "stop", "--force")
    os.rename(state, before)
    got = value(s)
    tap.ok(got[0] == "42" and any((state / "audit").iterdir()), "a state folder that was moved away while runners wait: the next run is on record in the new one", got)
    prepared(s)
    shutil.rmtree(state / "audit")
    shutil.rmtree(state / "seal")
    tap.ok(value(s)[0] == "42" and any((state / "audit").iterdir()), "a log that was removed while runners wait: the next run is on record in a new one")
    prepared(s)
    os.unlink(state / "seal/key")
    got = value(s)
    tap.ok(got[0] is None and "key" in got[1], "a key of the log that was removed while runners wait: the next run is refused", got)
shutil.rmtree(state)
os.rename(before, state)
given_up()
takes_nothing()
measured()
left_behind()
tap.eq(cordon("audit", "verify").code, 0, "the audit of what came before is whole")
cordon("pool", "stop", "--force")
tap.done()
