#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What each process of `cordon serve` takes with it when it crashes or hangs: a runner its own run, a front its own connections, cordond all that it started; nothing else."""
import json
import os
import signal
import socket
import sys

import tapsys
import traces
from httptest import Site
from mcptest import Connection, Server, appears, connects, family, gone, halt, named, runners, start, stat, stop, text
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
FOREVER = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
HELD = "while True:\n    pass\n"  # until somebody interrupts the session


def let_go(client, process, session, number):
    """The result of HELD, which is interrupted until it ends: its program may not have begun yet."""
    while "result" not in (client.replies.get(number) or {}) and process.poll() is None:
        client.tool("session", action="interrupt", session_id=session)
        client.take(0.1)
    return (client.reply(number).get("result") or {}).get("structuredContent") or {}


def ended(s, job, **more):
    """The result of a job that comes to its end."""
    r = s.tool("wait_job", job_id=job, **more)
    while (r.get("structuredContent") or {}).get("status") == "running":
        r = s.tool("wait_job", job_id=job)
    return r


def begin(s, before):
    """A run that goes on: its job, its runner and its guest."""
    job = s.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"]
    runner = appears(lambda: [p for p in runners(s.process.pid) if p not in before])[0]
    return job, runner, appears(lambda: named(runner, "cordon-python"))


def of_runners():
    with Server(programs, "--profile", "standard", "--timeout", "10m", "--answer", "100ms") as s:
        other, own, guest = begin(s, [])
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP):
            what = f"a runner that gets {number.name}"
            job, runner, worker = begin(s, [own])
            if number == signal.SIGSTOP:
                tap.ok(appears(lambda: halt(runner)) and s.run(code="6 * 7")["structuredContent"].get("value") == "42", f"{what} holds up no other request")
            else:
                os.kill(runner, number)
            r = ended(s, job, cancel=number == signal.SIGSTOP)
            tap.ok(r["isError"] and "gave no result" in text(r), f"{what} is an error of its own request", r)
            tap.eq("status: cancelled" in text(r), number == signal.SIGSTOP, f"{what} is told as cancelled where its client ended it", r)
            tap.eq(gone({runner, *worker}), [], f"{what} ends with its jail")
            r = s.tool("wait_job", job_id=other)["structuredContent"]
            tap.eq((r["status"], [p for p in (own, *guest) if not stat(p)]), ("running", []), f"{what} leaves the run beside it alone", r)
        r = ended(s, other, cancel=True)["structuredContent"]
        tap.ok(r["status"] == "error" and r["stdout"] == "begun\n" and "SIGTERM" in r["reason"], "a run beside which three others crashed ends when its own client says so", r)


def of_fronts():
    """Over HTTP all clients have one front, which is started anew; at the socket each has its own."""
    with Site(programs, "--profile", "standard", "--answer", "100ms") as s:
        while "job_id" not in (r := s.tool("execute_code", code="import time\ntime.sleep(0.5)\nprint('kept')\n"))["structuredContent"]:
            pass  # it was over before the first answer: cordond had slept for so long
        job = r["structuredContent"]["job_id"]
        ended(s, job)
        front = named(s.process.pid, "cordon-front")
        os.kill(front[0], signal.SIGSEGV)
        gone(front)
        appears(lambda: named(s.process.pid, "cordon-front"))
        tap.eq(s.tool("wait_job", job_id=job)["structuredContent"]["stdout"], "kept\n", "the result of a run that had ended is still there after its front crashed")
    folder = programs.dir / "fronts"
    folder.mkdir(mode=0o700)
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--profile", "standard", "--timeout", "10m"])
    appears(lambda: connects(path))
    appears(lambda: not named(server.pid, "cordon-front"))  # the look at the socket was a client, too
    with Connection(path) as a:
        first = named(server.pid, "cordon-front")
        with Connection(path) as b:
            made = b.tool("session", action="new")["structuredContent"]["session_id"]
            held = b.send("tools/call", name="execute_code", arguments={"code": HELD, "session_id": made})
            appears(lambda: runners(server.pid))
            os.kill(first[0], signal.SIGSTOP)
            a.send("tools/call", name="execute_code", arguments={"code": "1"})
            tap.eq(b.tool("execute_code", code="6")["structuredContent"]["value"], "6", "a front that hangs holds up no other client")
            os.kill(first[0], signal.SIGSEGV)
            os.kill(first[0], signal.SIGCONT)
            tap.ok(not a.until(lambda: None), "the connection of a front that crashed ends")
            tap.eq((let_go(b, server, made, held).get("error") or {}).get("type"), "KeyboardInterrupt", "a run of another client goes on when a front crashed, and is answered")
    server.terminate()
    tap.eq(stop(server), 0, "a server whose fronts crashed ends with 0")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except ConnectionRefusedError:
        return False


def ours():
    """Mounts that are named like ours."""
    return [m for m in traces.mounts() if "cordon" in m]


def sessions():
    """Those that live and their states, as their user sees them."""
    return {s["session"]: s["state"] for s in json.loads(tapsys.cordon(programs, ["session", "list", "--json"]).out) if s["state"] != "over"}


def of_sessions():
    """They live in the holder, which goes on: what ends them is the end of the server that they belong to."""
    tap.ok(tapsys.until(lambda: tapsys.cordon(programs, ["session", "new", "mine"]).code == 0), "a session is made by hand beside those of servers")
    with Server(programs, "--profile", "standard") as other:
        kept = other.tool("session", action="new")["structuredContent"]["session_id"]
        with Server(programs, "--profile", "standard") as s:
            first = s.tool("session", action="new")["structuredContent"]["session_id"]
            s.tool("execute_code", session_id=first, code="x = 6")
            second = s.tool("session", action="fork", session_id=first)["structuredContent"]["session_id"]
            tap.eq(s.tool("execute_code", session_id=second, code="x * 7")["structuredContent"].get("value"), "42", "a session and its fork are there before cordond is killed")
            tap.eq(set(sessions()), {"mine", kept, first, second}, "the user whose server it is sees both in the list")
            os.kill(s.process.pid, signal.SIGKILL)
            tap.ok(appears(lambda: set(sessions()) == {"mine", kept}), "cordond that is killed leaves no session, not that of a fork either; those of others stay", sessions())
        tap.eq(other.tool("execute_code", session_id=kept, code="6 * 7")["structuredContent"].get("value"), "42", "the session of another server serves on")
    tapsys.cordon(programs, ["session", "close", "mine"])


def of_closings():
    """A session that its client closes, and does not wait for it: the end of one is not given up."""
    with Server(programs, "--profile", "standard") as s:
        for _ in range(8):
            made = s.tool("session", action="new")["structuredContent"]["session_id"]
            s.tell("notifications/cancelled", requestId=s.send("tools/call", name="session", arguments={"action": "close", "session_id": made}))
        tap.ok(appears(lambda: not sessions()), "sessions whose end was asked for and given up at once are closed", sessions())


def given_up(s, session):
    """A call of that session, which is cancelled once its program has begun."""
    job = s.tool("execute_code", code=FOREVER, session_id=session)["structuredContent"]["job_id"]
    appears(lambda: "begun" in text(s.tool("wait_job", job_id=job)))
    s.tool("wait_job", job_id=job, cancel=True)


def of_sessions_over():
    """One that is over takes no place of its client, which may still ask why, and close it."""
    with Server(programs, "--profile", "standard", "--answer", "100ms") as s:
        def made():
            return (s.tool("session", action="new").get("structuredContent") or {}).get("session_id")

        def listed():
            return [v["session_id"] for v in s.tool("session", action="list")["structuredContent"]["sessions"]]
        cancelled, late, closed = made(), made(), made()
        given_up(s, cancelled)
        s.run(session_id=late, code=HELD, timeout_ms=300)
        s.tool("session", action="close", session_id=closed)
        for session, what, why in ((cancelled, "a session whose call was cancelled", "is over"), (late, "a session whose call met its limit", "is over"), (closed, "a session that was closed", "closed")):
            tap.ok(appears(lambda: session not in listed()), f"{what} is not in the list", listed())
            r = s.run(session_id=session, code="1")
            tap.ok(r.get("isError") and why in text(r), f"{what} says in its next call why it ended", r)
            for _ in range(2):
                r = s.tool("session", action="close", session_id=session)
                tap.ok(not r["isError"] and "over already" in text(r), f"to close {what} is no error", r)
        live = [made() for _ in range(16)]
        tap.eq(sorted(listed()), sorted(map(str, live)), "sessions that are over are not among the 16 of a client")
        tap.ok(made() is None, "a seventeenth session is refused")
        r = s.tool("session", action="close", session_id=cancelled)
        tap.ok(r["isError"] and "no such session" in text(r), "a session that is over is forgotten where others need its place", r)


def of_cordond():
    folder = programs.dir / "killed"
    folder.mkdir(mode=0o700)
    path, policy = folder / "mcp", programs.dir / "policy.yaml"
    grouped = os.geteuid() == 0  # an ordinary user has no cgroup of its own on every machine
    policy.write_text("version: 1\n" + ("run: {memory_by: cgroup}\n" if grouped else ""))
    for number in (signal.SIGKILL, signal.SIGSEGV):
        mounted = ours()
        with Site(programs, "--socket", str(path), "--policy", str(policy), "--profile", "standard", "--timeout", "10m", "--metrics", "0") as s:
            port = int(s.process.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
            waiting = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            with Connection(path) as c:
                c.send("tools/call", name="execute_code", arguments={"code": FOREVER})
                appears(lambda: [len(named(s.process.pid, "cordon-" + n)) for n in ("python", "front")] == [2, 3])
                runs, tree = runners(s.process.pid), family(s.process.pid)
                what = f"cordond that gets {number.name}"
                tap.ok(len(runs) == 2 and len(named(s.process.pid, "cordon-front")) == 3, f"{what}: two runs and three fronts are there before it", tree)
                if grouped:
                    tap.ok(traces.cgroups(runs), f"{what} has runs with cgroups before it")
                os.kill(s.process.pid, number)
                tap.eq(gone(tree - {s.process.pid}), [], f"{what} leaves no process: no front, no runner, no guest")
            tap.ok(appears(lambda: not traces.cgroups(runs)), f"{what} leaves no cgroup", traces.cgroups(runs))
            tap.ok(appears(lambda: set(ours()) <= set(mounted)), f"{what} leaves no mount", ours())
            tap.eq([connects(path), listens(s.port), listens(port)], [False] * 3, f"{what} leaves nobody who listens at its socket, at its port or at that of its figures")
            waiting.close()
    server = start(programs, ["--socket", str(path), "--policy", str(policy), "--profile", "standard"])
    appears(lambda: connects(path))
    with Connection(path) as c:
        tap.eq(c.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "the next server at the same socket serves")
    server.terminate()
    stop(server)


of_runners()
of_fronts()
of_sessions()
of_closings()
of_sessions_over()
of_cordond()
tapsys.cordon(programs, ["pool", "stop", "--force"])
tap.eq(tapsys.cordon(programs, ["audit", "verify"]).code, 0, "the audit of all that crashed is whole")
tap.done()
