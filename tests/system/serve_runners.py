#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many runners `cordon serve` has at once: for all clients, and with --all-users for one user; what is beyond that is refused by name.

A runner that was stopped by SIGSTOP stays under way until the server kills it, so no case depends on how fast runs are."""
import os
import sys

import tapsys
from mcptest import Connection, appears, connects, halt, named, runners, start, stop, text
from servetest import figures
from tapsys import Tap

MOST, USER, EACH = 256, 96, 32  # LIMIT_SERVE_RUNNERS, _RUNNERS_USER, _REQUESTS of src/base/limits.h
tap = Tap()
programs = tapsys.Programs(sys.argv[1])
folder = programs.dir / "runners"
policy = programs.dir / "policy.yaml"
policy.write_text("version: 1\nrates: {concurrent: 10, concurrent_per_client: 5, executions: 1000, window: 1ms}\n")
ENV = {"CORDON_STATE": str(programs.dir / "runners-state")}


def hold(server):
    """Stops every runner that is there; gives how many are, but for those that `halt` let go on until the next call."""
    return sum(halt(pid) for pid in runners(server.pid))


def fill(server, path, connections, refused):
    """As many requests as CONNECTIONS have room for; waits until REFUSED of them are answered and all others have a runner."""
    clients = [Connection(path) for _ in range(connections)]
    for c in clients:
        for _ in range(EACH):
            c.send("tools/call", name="execute_code", arguments={"code": "import time; time.sleep(1000)"})

    def answered():
        for c in clients:
            c.take(0)
        return sum(len(c.replies) - 1 for c in clients)  # one was for the handshake

    def full():
        return hold(server) == connections * EACH - refused and answered() == refused
    tap.ok(appears(full), f"{connections * EACH - refused} runs are under way, and {refused} more were answered at once", hold(server), answered())
    return clients, [text(r["result"]) for c in clients for n, r in c.replies.items() if n > 1]


def value(path):
    """What 6 * 7 is; without a value, all that was answered, for the line of the test that fails."""
    with Connection(path) as c:
        answer = c.tool("execute_code", code="6 * 7")
        return (answer.get("structuredContent") or {}).get("value") or answer


def for_all():
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--metrics", "0", "--policy", str(policy)], env=ENV)
    port = int(server.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
    appears(lambda: connects(path))
    owners = [Connection(path), Connection(path)]
    for c, count in zip(owners, (16, 4)):
        for _ in range(count):
            c.tool("session", action="new")
    tap.eq(len(sessions()), 20, "two clients have 20 sessions")
    clients, said = fill(server, path, 9, 9 * EACH - MOST)
    tap.ok(all(f"{MOST} runs are under way at this server" in s for s in said), "what is beyond the most runners of a server is refused by that number", said[:3])
    r = next(c for c in clients if len(c.replies) > 1).tool("check_code", code="1")
    tap.ok(r["isError"] and f"{MOST} runs" in text(r), "any other work that needs a runner is refused, too", r)
    tap.eq(figures(port).get("cordon_serve_running"), MOST, "the figures, which need a runner themselves, are told while no other is begun")
    for c in owners:
        c.end()
    tap.ok(appears(lambda: sessions() == []), "the sessions of clients that leave are closed while no run is begun, also more of them than there is room for at once", sessions())
    for c in clients:
        c.end()
    tap.ok(appears(lambda: not named(server.pid, "cordon-runner")), "the runners of clients that leave are ended, also those that do not react")
    tap.eq(value(path), "42", "after that there is room again")
    server.terminate()
    tap.eq(stop(server), 0, "the server ends with 0")


def sessions():
    return [s["session"] for s in tapsys.cordon(programs, ["session", "list", "--json"], env=ENV).json or () if s["state"] != "over"]


def for_one_user():
    path = folder / "all"
    server = start(programs, ["--socket", str(path), "--all-users", "--policy", str(policy)], env=ENV)
    appears(lambda: connects(path))
    clients, said = fill(server, path, 4, 4 * EACH - USER)
    tap.ok(all(f"{USER} runs of this user are under way" in s for s in said), "--all-users: what is beyond the most runners of one user is refused by that number", said[:3])
    back = os.geteuid()
    os.seteuid(tapsys.ROOTLESS)
    try:
        tap.eq(value(path), "42", "--all-users: another user still has room")
    finally:
        os.seteuid(back)
    for c in clients:
        c.end()
    server.terminate()
    tap.eq(stop(server), 0, "--all-users: the server ends with 0")


folder.mkdir(mode=0o700)
for_all()
if os.geteuid() == 0:
    folder.chmod(0o755)
    for_one_user()
else:
    tap.skip("--all-users: what is beyond the most runners of one user is refused by that number", "only root has two users to be")
tapsys.cordon(programs, ["pool", "stop", "--force"], env=ENV)
tap.done()
