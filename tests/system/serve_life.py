#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The life of `cordon serve`: started by a service manager, drained, told to read its policy again, ended."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import tapsys
from httptest import Site
from mcptest import PATIENCE, Connection, Server, appears, bytes_of, connects, family, gone, named, runners, start, stop, text
from servetest import Given, activate
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
FOREVER = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
# In the place of cordon: the real one does what is asked, and its end is held back for as long as the test wants.
HOLDING = """#!/bin/sh
"$0.real" "$@"
status=$?
: > "$0.did"
while [ -e "$0.hold" ]; do sleep 0.01; done
exit $status
"""
HELD = "try:\n    while True:\n        pass\nexcept KeyboardInterrupt:\n    print('let go')\n"  # until somebody interrupts the session


class Manager:
    """What systemd is to a service: it hears what is said to NOTIFY_SOCKET."""

    def __init__(self, name, abstract=False):
        self.path = f"@cordon-test-{os.getpid()}-{name}" if abstract else str(programs.dir / name)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.path[1:] if abstract else self.path)
        self.heard = []
        threading.Thread(target=self.hear, daemon=True).start()

    def env(self, **more):
        return {"NOTIFY_SOCKET": self.path, **more}

    def hear(self):
        """All the time: a full queue would lose words."""
        while True:
            self.heard.append(self.socket.recv(4096).decode())

    def hears(self, word, times=1):
        """Waits until WORD was said so often."""
        return appears(lambda: sum(word in h.split("\n") for h in [*self.heard]) >= times)

    def words(self):
        """What it has heard of the server's states so far, in the order of that."""
        return [h.split("\n")[0] for h in self.heard if not h.startswith("WATCHDOG")]


def ends(server):
    """Its exit status, while its clients are there; None: it did not end."""
    try:
        return server.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return None


def drained_job(path):
    """Nobody waits for the run: it was answered with a job."""
    server = start(programs, ["--socket", str(path), "--profile", "standard", "--timeout", "10m", "--answer", "100ms", "--drain", "10m"])
    appears(lambda: connects(path))
    with Connection(path) as c:
        job = c.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"]
        appears(lambda: "begun" in text(c.tool("wait_job", job_id=job)))
        server.terminate()
        seen = []
        while len(seen) < 5:  # of those that come before the signal some may run
            seen += ["is ending"] if "is ending" in text(r := c.tool("execute_code", code="1")) else [] if r["isError"] is False else [text(r)]
        tap.eq(seen, ["is ending"] * 5, "SIGTERM: a server whose last run is a job that nobody waits for goes on")
        r = c.tool("wait_job", job_id=job, cancel=True).get("structuredContent") or {}
        tap.eq((r.get("stdout"), ends(server)), ("begun\n", 0), "SIGTERM: the job can be ended and its result is given; then the server ends")
    stop(server)


def ended_runs():
    """Of which the audit has the end."""
    return sum(json.loads(line)["kind"] == "end" for line in tapsys.cordon(programs, ["audit", "tail", "-n", "1000", "--json"]).out.splitlines())


def drained_unread(path):
    """More answers than front and sockets hold: the client begins to read when all runs are over and the server was told to end."""
    server = start(programs, ["--socket", str(path), "--profile", "standard", "--output", "1m", "--answer", "10m", "--drain", "10m"])
    appears(lambda: connects(path))
    before = ended_runs()
    with Connection(path) as c:
        asked = [c.send("tools/call", name="execute_code", arguments={"code": "print('x' * 1000000)"}) for _ in range(16)]
        tap.ok(appears(lambda: ended_runs() == before + 16), "runs end whose client does not read", ended_runs() - before)
        server.terminate()
        appears(lambda: not connects(path))
        got = [(r := c.reply(n).get("result") or {}) and (r["structuredContent"].get("stdout_bytes") or text(r)) for n in asked]
        tap.eq((got, ends(server)), ([1000001] * 16, 0), "SIGTERM: answers that the client has not read yet are given before the server ends")
    stop(server)


def drained():
    """In both, the client has a run that ends when it says so."""
    folder = programs.dir / "drain"
    folder.mkdir(mode=0o700)
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--profile", "standard", "--drain", "10m"])
    appears(lambda: connects(path))
    with Connection(path) as c:
        made = c.tool("session", action="new")["structuredContent"]["session_id"]
        appears(lambda: not named(server.pid, "cordon-runner"))  # that of the session
        held = c.send("tools/call", name="execute_code", arguments={"code": HELD, "session_id": made})
        appears(lambda: runners(server.pid))
        server.terminate()
        refused = c.tool("execute_code", code="1")
        while not refused["isError"]:  # it has not seen the signal yet
            refused = c.tool("execute_code", code="1")
        tap.ok("is ending" in text(refused) and held not in c.replies, "SIGTERM: a new run is refused in words, and the old one goes on", refused)
        tap.ok("is ending" in text(c.tool("session", action="new")), "SIGTERM: no new session is made")
        tap.ok(not connects(path), "SIGTERM: nobody new is let in")
        while "result" not in (c.replies.get(held) or {}) and server.poll() is None:  # its program may not have begun yet
            c.tool("session", action="interrupt", session_id=made)
            c.take(0.1)
        r = (c.reply(held).get("result") or {}).get("structuredContent") or {}
        tap.ok(r.get("stdout") == "let go\n" or r.get("reason") == "KeyboardInterrupt",  # before its first line
               "SIGTERM: a run that was under way ends by itself and is answered", r)
        tap.ok(ends(server) == 0 and not path.exists(), "SIGTERM: when everything is answered the server ends with 0 and takes its socket away, whoever is still there")
    stop(server)
    drained_job(path)
    drained_unread(path)
    with Site(programs, "--profile", "standard", "--drain", "300ms", "--timeout", "10m") as s:
        with s.connect() as c:
            c.send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            appears(lambda: runners(s.process.pid))
            tree = family(s.process.pid)
            s.process.terminate()
            r = (c.reply().json.get("result") or {}).get("structuredContent") or {}
            tap.ok(r.get("status") == "error" and "SIGTERM" in str(r.get("reason")), "--drain: a run that is there after it is cancelled, and answered as that", r)
        tap.eq((s.end(), gone(tree - {s.process.pid})), (0, []), "--drain: the server ends with 0 after it, and nothing is left")
    for what, signals in (("SIGINT", [signal.SIGINT]), ("a second SIGTERM", [signal.SIGTERM, signal.SIGTERM])):
        manager = Manager("end-" + str(len(signals)))
        with Server(programs, "--profile", "standard", "--timeout", "10m", "--drain", "10m", env=manager.env()) as s:
            s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
            appears(lambda: runners(s.process.pid))
            tree = family(s.process.pid)
            for number in signals:
                s.process.send_signal(number)
                manager.hears("STOPPING=1")
            tap.eq((s.process.wait(PATIENCE), gone(tree - {s.process.pid})), (0, []), f"{what} ends the server at once, whatever --drain says")


def managed():
    manager = Manager("notify")
    with Site(programs, "--profile", "standard", env=manager.env(WATCHDOG_USEC="200000")) as s:
        tap.ok(manager.hears("READY=1"), "the service manager hears READY=1")
        tap.ok(manager.hears("WATCHDOG=1", 3), "the service manager hears again and again that the server lives")
        with s.connect() as c:
            c.send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            runner = appears(lambda: runners(s.process.pid))
            if os.geteuid() == 0:
                words = b"".join(bytes_of(p, "environ") for p in [s.process.pid, *runner])
                tap.ok(b"NOTIFY" not in bytes_of(runner[0], "environ") and b"WATCHDOG" not in bytes_of(runner[0], "environ") and words,
                       "a runner has no word of the service manager's in its environment")
        before = time.monotonic_ns() // 1000
        s.process.send_signal(signal.SIGHUP)
        manager.hears("READY=1", 2)
        after = time.monotonic_ns() // 1000
        tap.eq(manager.words(), ["READY=1", "RELOADING=1", "READY=1"], "SIGHUP: the service manager hears RELOADING=1, and READY=1 after it")
        said = [line.split("=")[1] for h in manager.heard if h.startswith("RELOADING=1") for line in h.split("\n") if line.startswith("MONOTONIC_USEC=")]
        tap.ok(len(said) == 1 and before <= int(said[0]) <= after, "SIGHUP: RELOADING=1 comes with the moment of it, by the clock and in the unit that the service manager wants", before, said, after)
        s.process.terminate()
        tap.ok(manager.hears("STOPPING=1"), "SIGTERM: the service manager hears STOPPING=1")
        tap.eq(s.process.wait(PATIENCE), 0, "SIGTERM: a service ends with 0")
    manager = Manager("abstract", abstract=True)
    with Site(programs, env=manager.env(WATCHDOG_USEC="2000", WATCHDOG_PID="1")) as s:
        manager.hears("READY=1")
        s.process.send_signal(signal.SIGHUP)
        manager.hears("READY=1", 2)
        s.process.terminate()
        manager.hears("STOPPING=1")
        tap.eq([h.split("\n")[0] for h in manager.heard], ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"],
               "a service manager with an abstract name hears the same, and no WATCHDOG=1 where that was wanted of another process")


def reloaded():
    policy = programs.dir / "policy.yaml"
    limit = "limits:\n  timeout: {}\n"
    policy.write_text(limit.format("10m"))
    manager = Manager("reload")
    with Site(programs, "--profile", "standard", "--policy", str(policy), "--answer", "1s", env=manager.env()) as s:
        job = s.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"]
        tap.ok(appears(lambda: " 600000 holds" in text(s.tool("execute_code", code="1", timeout_ms=3600000))), "what a client asks for is cut to the policy's limit")
        policy.write_text(limit.format("700ms"))
        s.process.send_signal(signal.SIGHUP)
        manager.hears("READY=1", 2)
        tap.ok(appears(lambda: " 700 holds" in text(s.tool("execute_code", code="1", timeout_ms=3600000))), "SIGHUP: what a client asks for is cut to the new policy's limit, and said so")
        r = s.run(code=FOREVER)
        tap.eq(r["structuredContent"]["status"], "timeout", "SIGHUP: a new run has the new policy's limit")
        tap.eq(s.tool("wait_job", job_id=job)["structuredContent"]["status"], "running", "SIGHUP: a run that was under way keeps its own")
        policy.write_text("limits: 7\n")
        s.process.send_signal(signal.SIGHUP)
        manager.hears("READY=1", 3)
        said = s.process.stderr.read1().decode()
        tap.ok("not read again" in said and str(policy) in said and said.count("\n") == 1, "SIGHUP: a broken policy is told on standard error in a line, with the place", said)
        tap.eq(s.tool("wait_job", job_id=job)["structuredContent"]["status"], "running", "SIGHUP: the server lives on with a broken policy")
        r = s.run(code="1")
        tap.ok(r["isError"] and "policy" in text(r), "SIGHUP: no run begins under a broken policy", r)
        s.tool("wait_job", job_id=job, cancel=True)


def tightened():
    """The server gives what the policy had at its start; a ceiling that is lowered after that holds at once."""
    policy, manager = programs.dir / "tightened.yaml", Manager("tightened")
    policy.write_text("limits: {timeout: 10m, memory: 400m}\n")
    with Site(programs, "--profile", "standard", "--policy", str(policy), env=manager.env()) as s:
        session = s.tool("session", action="new")["structuredContent"]["session_id"]
        policy.write_text("limits: {timeout: 600ms, memory: 300m}\nceilings: {timeout: 700ms, memory: 300m}\n")
        for what, more in (("a run", {}), ("a call of a session", {"session_id": session})):
            r = s.tool("execute_code", code=FOREVER, **more)
            tap.eq((r.get("structuredContent") or {}).get("status"), "timeout", f"a ceiling that is lowered below the server's limit cuts that of {what}, before SIGHUP", text(r))
        tap.ok("session_id" in (s.tool("session", action="new").get("structuredContent") or {}), "a session is made where the ceiling was lowered below the server's memory")
        s.process.send_signal(signal.SIGHUP)
        manager.hears("READY=1", 2)
        tap.ok(appears(lambda: " 600 holds" in text(s.tool("execute_code", code="1", timeout_ms=3600000))), "SIGHUP: the limits of a policy with lower ceilings are the server's")


def reloaded_meanwhile():
    """The first reader of the policy has read it and is held before its end; then the policy changes once more."""
    policy, manager = programs.dir / "meanwhile.yaml", Manager("meanwhile")
    cordon, real, did, hold = (programs.cordon.with_name("cordon" + end) for end in ("", ".real", ".did", ".hold"))
    policy.write_text("limits:\n  timeout: 10m\n")
    with Site(programs, "--profile", "standard", "--policy", str(policy), env=manager.env()) as s:
        manager.hears("READY=1")  # it knows by now where cordon is, and what SIGHUP means
        cordon.rename(real)
        cordon.write_text(HOLDING)
        cordon.chmod(0o755)
        hold.touch()
        policy.write_text("limits:\n  timeout: 700ms\n")
        s.process.send_signal(signal.SIGHUP)
        appears(did.exists)
        policy.write_text("limits:\n  timeout: 800ms\n")
        s.process.send_signal(signal.SIGHUP)
        hold.unlink()
        manager.hears("READY=1", 2)
        tap.eq(manager.words(), ["READY=1", "RELOADING=1", "RELOADING=1", "READY=1"], "SIGHUP while the policy is read: it is read once more, and READY=1 comes after the second time")
        real.replace(cordon)
        tap.ok(appears(lambda: " 800 holds" in text(s.tool("execute_code", code="1", timeout_ms=3600000))), "SIGHUP while the policy is read: the limits are those of the policy as it was then")


def activated():
    path = programs.dir / "given"
    unix, tcp = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET)
    unix.bind(str(path))
    tcp.bind(("127.0.0.1", 0))
    unix.listen(8)
    tcp.listen(8)
    with Given(activate(programs, [unix, tcp], "--profile", "standard"), tcp.getsockname()[1]) as s:
        with Connection(path) as c:
            tap.eq(c.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "--activated: the unix socket that was given is served")
        tap.eq(s.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "--activated: the socket of TCP that was given is served by the same server")
        tree = family(s.process.pid)
        s.process.kill()
        tap.eq(gone(tree - {s.process.pid}), [], "--activated: SIGKILL of cordond leaves nothing running")
    early = Connection(path, opens=False)  # nobody serves: it waits in the socket
    early.write({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    with Given(activate(programs, [tcp, unix]), tcp.getsockname()[1]) as s:
        tap.ok("result" in early.reply(1), "--activated: who came while there was no server is served by the next one")
        early.end()
        tap.ok(s.end() == 0 and path.exists(), "--activated: a socket that was given is not taken away")
    wide, other, datagrams = socket.socket(socket.AF_INET), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    wide.bind(("0.0.0.0", 0))
    wide.listen(8)
    other.bind(str(path) + "-2")
    other.listen(8)
    for sockets, word, what in (([unix, other], "more than one", "two unix sockets"), ([wide], "--allow-host", "a socket that others reach"),
                                ([datagrams], "no stream socket", "a socket of datagrams")):
        p = activate(programs, sockets)
        said = p.stderr.read().decode()
        tap.ok(p.wait() == 2 and word in said, f"--activated: {what} is refused as a mistake", said)
    r = tapsys.cordon(programs, ["serve", "--activated"])
    tap.ok(r.code == 2 and "LISTEN_FDS" in r.err, "--activated without sockets is a usage error", r.err)
    r = tapsys.cordon(programs, ["serve", "--activated"], env={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    tap.ok(r.code == 2 and "no sockets were given" in r.err, "--activated: sockets that were given to another process do not count", r.err)


def together():
    folder = programs.dir / "both"
    folder.mkdir(mode=0o700)
    path = folder / "mcp"
    with Site(programs, "--socket", str(path), "--profile", "standard") as s, Connection(path) as c:
        tap.eq((s.tool("execute_code", code="5")["structuredContent"]["value"], c.tool("execute_code", code="6")["structuredContent"]["value"]), ("5", "6"),
               "--socket and --http are served by one server")


drained()
managed()
reloaded()
tightened()
reloaded_meanwhile()
activated()
together()
tapsys.cordon(programs, ["pool", "stop", "--force"])
tap.eq(tapsys.cordon(programs, ["audit", "verify"]).code, 0, "the audit of all of it is whole")
tap.done()
