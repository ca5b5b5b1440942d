#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that listens and has no room for the next client: it waits without using the processor, and serves that client as soon as
there is room. cordond and the holder without a descriptor, cordond with all its places taken, the front of HTTP with as many busy connections as it has.
And a client with as many calls as it may have: what ends one of them, or tells how it stands, still gets through."""
import os
import pathlib
import resource
import select
import socket
import sys
import time

import tapsys
from httptest import Site
from mcptest import META, Connection, Server, appears, connects, named, runners, start, stop, text
from tapsys import Tap

CONNECTIONS, REQUESTS, CLIENTS = 256, 32, 32  # LIMIT_HTTP_CONNECTIONS, LIMIT_SERVE_REQUESTS, _CLIENTS of src/base/limits.h
OTHERS = 2  # fronts of HTTP and of figures
tap = Tap()
programs = tapsys.Programs(sys.argv[1])
folder = programs.dir / "full"
folder.mkdir(mode=0o700)
ENV = {"CORDON_STATE": str(folder / "state")}


def used(pid):
    """Seconds of the processor."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def rests(pid, what):
    """A process that looks again and again takes what it can get of the processor; one that waits takes some ms."""
    before, began = used(pid), time.monotonic()
    while time.monotonic() - began < 2:
        time.sleep(0.1)
    spent, passed = used(pid) - before, time.monotonic() - began
    tap.ok(spent < passed / 40, f"{what} waits and does not look again and again", f"{spent:.2f} s of the processor in {passed:.2f} s")


def descriptors(pid):
    return {int(n) for n in os.listdir(f"/proc/{pid}/fd")}


def without_descriptors(pid):
    """It may open none beyond those that it has; gives what it might before."""
    old, have = resource.prlimit(pid, resource.RLIMIT_NOFILE), descriptors(pid)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(len(have) + 1)) - have), old[1]))
    return old


def waits_outside(path, pid):
    """A client for whom cordond has no descriptor, and what cordond might open before. One that cordond held for a moment
    only leaves room for this client, but not for its front: then it is turned away, and another tries."""
    while True:
        old = without_descriptors(pid)
        late = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        late.connect(str(path))
        if not select.select([late], [], [], tapsys.SLOW)[0]:
            return late, old
        late.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, old)


def of_cordond():
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--profile", "standard"], env=ENV)
    appears(lambda: connects(path))
    appears(lambda: not named(server.pid, "cordon-front"))
    appears(lambda: max(have := descriptors(server.pid)) < len(have))  # no gap: poll takes no more entries than descriptors may be open
    late, old = waits_outside(path, server.pid)
    rests(server.pid, "cordond without a descriptor for a client")
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, old)
    tap.ok(appears(lambda: named(server.pid, "cordon-front")), "the client that waited is served when there is a descriptor for it")
    late.close()
    with Connection(path) as c:
        made = c.tool("session", action="new")["structuredContent"]["session_id"]
        holder = tapsys.cordon(programs, ["pool", "status", "--json"], env=ENV)["pid"]
        old = without_descriptors(holder)
        with client_of_holder(), client_of_holder(), client_of_holder():  # one that left a moment ago may have left a descriptor
            rests(holder, "a holder without a descriptor for a client")
            resource.prlimit(holder, resource.RLIMIT_NOFILE, old)
        tap.eq(c.tool("execute_code", code="6 * 7", session_id=made)["structuredContent"].get("value"), "42", "a holder that had no descriptor serves again, and its session is there")
    server.terminate()
    tap.eq(stop(server), 0, "a server that had no descriptor for a client ends with 0")


def of_places():
    """As many clients as a socket has. Who leaves has its place until all of it is ended."""
    path = folder / "places"
    server = start(programs, ["--socket", str(path), "--http", "127.0.0.1:0", "--metrics", "0", "--profile", "standard"], env=ENV)
    appears(lambda: connects(path))
    appears(lambda: len(named(server.pid, "cordon-front")) == OTHERS)
    clients = [Connection(path, legacy=None) for _ in range(CLIENTS)]
    tap.ok(appears(lambda: len(named(server.pid, "cordon-front")) == CLIENTS + OTHERS), f"{CLIENTS} clients of the socket are served beside HTTP and figures")
    late = Connection(path, legacy=None)
    clients[0].send("tools/call", name="execute_code", arguments={"code": "while True: pass"})
    appears(lambda: runners(server.pid))
    clients.pop(0).end()
    tap.ok("result" in late.ask("tools/list"), f"a client beyond {CLIENTS} waits at the socket, and is served when another has left")
    more = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    more.connect(str(path))
    more.settimeout(tapsys.SLOW * 60)
    rests(server.pid, "cordond without a place for a client")
    tap.eq(more.recv(1), b"", "a client for whom no place becomes free in time is turned away")
    more.close()
    for c in (late, *clients):
        c.end()
    with Connection(path) as c:
        tap.eq(c.tool("execute_code", code="6 * 7")["structuredContent"].get("value"), "42", "after that there is room again")
    server.terminate()
    tap.eq(stop(server), 0, "a server that was full ends with 0")


def client_of_holder():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(str(next(p for p in (folder / "state").rglob("*") if p.is_socket())))
    return s


def of_http():
    with Site(programs, "--profile", "standard", env=ENV) as s:
        front = appears(lambda: named(s.process.pid, "cordon-front"))[0]
        half = s.modern("tools/list")[:-1]
        busy = [s.connect().send(half) for _ in range(CONNECTIONS)]
        tap.ok(appears(lambda: len(descriptors(front)) >= CONNECTIONS + 3), "a front has 256 connections, none of which made room for nobody")
        late = s.connect().send(s.modern("tools/list"))
        rests(front, "a front with 256 busy connections")
        busy[0].send(b"}")
        tap.eq(busy[0].reply().status, 200, "a connection of a full front is answered")
        busy[0].close()
        tap.eq(late.reply().status, 200, "the client that waited is answered when there is room")
        for c in busy[1:]:
            c.close()


def of_calls():
    tasks, sleeps = {META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}, {"code": "import time\ntime.sleep(600)"}
    with Server(programs, "--profile", "standard", "--timeout", "600s", "--answer", f"{6 * tapsys.SLOW}s", legacy=None, env=ENV) as s:
        session = s.tool("session", action="new")["structuredContent"]["session_id"]
        first, second = [s.send("tools/call", tasks, name="execute_code", arguments=sleeps) for _ in range(2)]
        first, second = s.reply(first)["result"]["taskId"], s.reply(second)["result"]["taskId"]
        numbers = [s.send("tools/call", name="execute_code", arguments=sleeps) for _ in range(REQUESTS)]
        said = text(s.tool("execute_code", code="1"))
        tap.ok("32 calls are not answered yet" in said, "one call more than a client may have is refused, and the number is named", said)
        r = s.ask("resources/read", uri=f"cordon://{session}/x")
        tap.eq((r.get("error") or {}).get("code"), -32603, "a resource that cannot be read now is an error, and no result of a tool", r)
        r = s.ask("tasks/get", tasks, taskId=first)["result"]
        tap.eq(r.get("status"), "working", "a client with as many calls as it may have is told how its task stands", r)
        s.ask("tasks/cancel", tasks, taskId=first)
        r = s.until(lambda: (r := s.ask("tasks/get", tasks, taskId=first)["result"])["status"] != "working" and r)
        tap.eq((r or {}).get("status"), "cancelled", "a client with as many calls as it may have can end a task", r)
        r = s.tool("wait_job", job_id=second, cancel=True)
        tap.ok("status: cancelled" in text(r) or "Stopped" in text(r), "a client with as many calls as it may have can end a job", r)
        r = s.tool("session", action="close", session_id=session)
        tap.ok(not r["isError"], "a client with as many calls as it may have can close a session", r)
        tap.eq([n for n in numbers if n in s.replies], [], "as many calls as a client may have were open all the time")


of_cordond()
of_places()
of_http()
of_calls()
tap.done()
