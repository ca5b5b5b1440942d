#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that listens and has no room for the next client: it waits without using the processor, and serves that client as soon as
there is room. cordond and the holder without a descriptor, the front of HTTP with as many busy connections as it has."""
import os
import pathlib
import resource
import socket
import sys
import time

import tapsys
from httptest import Site
from mcptest import Connection, appears, connects, named, start, stop
from tapsys import Tap

CONNECTIONS = 256  # LIMIT_HTTP_CONNECTIONS of src/base/limits.h
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


def of_cordond():
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--profile", "standard"], env=ENV)
    appears(lambda: connects(path))
    appears(lambda: not named(server.pid, "cordon-front"))
    appears(lambda: max(have := descriptors(server.pid)) < len(have))  # no gap: poll takes no more entries than descriptors may be open
    old = without_descriptors(server.pid)
    late = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    late.connect(str(path))
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


of_cordond()
of_http()
tap.done()
