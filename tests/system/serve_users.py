#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon serve --all-users`: one server for the machine, which counts all users together and each of them as itself."""
import json
import os
import signal
import subprocess
import sys
import time

import tapsys
from mcptest import Connection, appears, connects, named, start, stop
from servetest import figures
from tapsys import Tap

FIRST, SECOND = tapsys.ROOTLESS, tapsys.ROOTLESS + 1  # ordinary uids that no account has
SLOTS, RUNS = 4, 60  # at once over all users; that the slower of the two is given while both want more
# A client as another user: CALLS requests at once over each of CONNECTIONS; each line it prints is a run that was answered.
CLIENT = """
import json, os, select, socket, sys
uid, path, connections, calls = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
META = "io.modelcontextprotocol/"
def ask(s, n):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": "import time; time.sleep(0.1)"},
              "_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}}).encode() + b"\\n")
socks, rest, n = [], {}, 0
for _ in range(connections):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    socks.append(s)
    rest[s] = b""
    for _ in range(calls):
        n += 1
        ask(s, n)
while True:
    for s in select.select(socks, [], [])[0]:
        data = s.recv(1 << 20)
        if not data:
            sys.exit(0)
        *lines, rest[s] = (rest[s] + data).split(b"\\n")
        for line in lines:
            r = json.loads(line)["result"]
            print("run" if r.get("structuredContent", {}).get("status") == "ok" else "refused " + r["content"][0]["text"][:200].replace("\\n", " "), flush=True)
            n += 1
            ask(s, n)
"""
DEFAULT, EACH = 10, 8  # rates.concurrent where no policy says it, as docs/policy.md tells; the runs that each of two users wants then
PLACES = 12  # LIMIT_SERVE_CLIENTS_USER of src/base/limits.h
tap = Tap()
if os.geteuid() != 0:
    print("1..0 # SKIP only root has two users to be")
    sys.exit(0)
programs = tapsys.Programs(sys.argv[1])
folder, state = programs.dir / "all", programs.dir / "machine"
folder.mkdir(mode=0o755)
policy = programs.dir / "policy.yaml"
policy.write_text(f"version: 1\nrates: {{concurrent: {SLOTS}, concurrent_per_client: 0, executions: 1000, window: 1ms}}\naudit: {{sync: 'off', duplicates: 0}}\n")
path, ENV = folder / "mcp", {"CORDON_STATE": str(state)}


def client(uid, connections, calls):
    return subprocess.Popen(["/usr/bin/python3", "-I", "-c", CLIENT, str(uid), str(path), str(connections), str(calls)], stdout=subprocess.PIPE, text=True)


def connects_as(uid):
    """What one who connects as this user gets: the reply to a run, or nothing."""
    with client(uid, 1, 1) as p:
        line = p.stdout.readline().strip()
        p.kill()
    return line


def closed():
    """Without --all-users the socket is for our own user, whoever can reach it."""
    server = start(programs, ["--socket", str(folder / "own"), "--profile", "standard"], env=ENV)
    said = server.stderr.readline().decode()
    tap.ok(stop(server) == 2 and "mkdir -m 700" in said, "without --all-users a folder that others can enter is refused", said)
    for options in (["--stdio"], ["--http", "0"]):
        r = tapsys.cordon(programs, ["serve", *options, "--all-users"], env=ENV)
        tap.ok(r.code == 2 and "--all-users" in r.err, f"--all-users belongs to a unix socket, not to {options[0]}", r.err)
    os.chmod(folder, 0o777)
    r = tapsys.cordon(programs, ["serve", "--socket", str(path), "--all-users"], env=ENV)
    tap.ok(r.code == 2 and "mkdir -m 755" in r.err, "--all-users: a folder that others can write in is refused", r.err)
    os.chmod(folder, 0o755)


def lets_in(uid):
    """A connection of this user that is served; None: it was ended at once. Others are still open."""
    os.seteuid(uid)
    try:
        c = Connection(path, legacy=None)
    finally:
        os.seteuid(0)
    try:
        if "result" in c.ask("server/discover"):
            return c
    except OSError:
        pass
    c.end()
    return None


def crowded():
    """One user leaves places at the socket for others."""
    server = start(programs, ["--socket", str(path), "--all-users", "--policy", str(policy)], env=ENV)
    appears(lambda: connects(path))
    appears(lambda: not named(server.pid, "cordon-front"))  # the look at the socket was a client, too
    first = [lets_in(FIRST) for _ in range(PLACES + 1)]
    tap.eq([c is not None for c in first], [True] * PLACES + [False], f"--all-users: one user has {PLACES} connections, and no more")
    other = lets_in(SECOND)
    tap.ok(other, "--all-users: another user is let in when one has as many connections as there may be")
    first[0].end()
    while not (again := lets_in(FIRST)) and server.poll() is None:  # the server has not seen it yet
        pass
    tap.ok(again, "--all-users: who closes a connection has room for another")
    server.send_signal(signal.SIGINT)
    tap.eq(stop(server), 0, "--all-users: a server with a crowd ends with 0")


def at_once_by_default():
    """A policy that says nothing about it: two users want more slots together than there are, and neither of them alone."""
    env = {"CORDON_STATE": str(programs.dir / "default"), "XDG_CONFIG_HOME": str(programs.dir / "none")}
    server = start(programs, ["--socket", str(path), "--all-users", "--timeout", "10m", "--metrics", "0"], env=env)
    port = int(server.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
    appears(lambda: connects(path))
    clients = [appears(lambda: lets_in(uid)) for uid in (FIRST, SECOND)]
    for c in clients:
        for _ in range(EACH):
            c.send("tools/call", name="execute_code", arguments={"code": "import time; time.sleep(1000)"})
    want = [DEFAULT, DEFAULT, 2 * EACH - DEFAULT]

    def told():
        f = figures(port)
        return [f.get("cordon_gate_" + name) for name in ("slots", "running", "queue")]
    appears(lambda: told() == want)
    tap.eq(told(), want, f"--all-users: without a word in the policy {DEFAULT} runs of all users together go on at once, and the others wait")
    for c in clients:
        c.end()
    server.send_signal(signal.SIGINT)
    stop(server)
    tapsys.cordon(programs, ["pool", "stop", "--force"], env=env)


def shared():
    tapsys.cordon(programs, ["pool", "start", "--size", "4"], env=ENV)
    server = start(programs, ["--socket", str(path), "--all-users", "--policy", str(policy), "--metrics", "0"], env=ENV)
    port = int(server.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
    appears(lambda: connects(path))
    tap.eq((connects_as(FIRST), connects_as(SECOND)), ("run", "run"), "--all-users: clients of two users are served by one server")
    many, few = client(FIRST, 10, 8), client(SECOND, 4, 8)  # both want more than they can have, one of them ten times what the slots are
    count, most, refused, looked = {many: 0, few: 0}, 0, [], 0
    for p in count:  # once it has this line, it is at work
        p.stdout.readline()
        os.set_blocking(p.stdout.fileno(), False)

    def take():
        for p in count:
            try:
                lines = os.read(p.stdout.fileno(), 1 << 16).decode().splitlines()
            except BlockingIOError:
                continue
            count[p] += lines.count("run")
            refused.extend(line for line in lines if line.startswith("refused"))

    while min(count.values()) < 16 and max(count.values()) < 20 * RUNS:  # until both have all their requests in the queue
        take()
        time.sleep(0.01)
    count = {p: 0 for p in count}
    while min(count.values()) < RUNS and max(count.values()) < 20 * RUNS:
        take()
        time.sleep(0.01)
        if sum(count.values()) >= looked:
            looked += 40
            most = max(most, figures(port).get("cordon_gate_running", 0))
    share = count[few] / (count[few] + count[many])
    tap.figure(f"{count[many]} runs of the user with 80 requests open, {count[few]} of the one with 32: shares {1 - share:.3f} and {share:.3f}")
    tap.ok(abs(share - 0.5) <= 0.05, "two users who want more than there is get the same, within 10 %, however many requests each has open", count.values(), refused[:3])
    tap.ok(0 < most <= SLOTS, f"all users together have no more than the {SLOTS} slots of the machine at once", most)
    tap.eq(refused, [], "nobody is refused a run that way")
    many.kill()
    few.kill()
    for p in count:
        p.wait()
        p.stdout.close()
    server.send_signal(signal.SIGINT)
    stop(server)
    records = [json.loads(line) for line in tapsys.cordon(programs, ["audit", "export", "--kind", "begin"], env=ENV).out.splitlines()]
    ids = {r["client_id"] for r in records}
    tap.ok({f"uid:{FIRST}", f"uid:{SECOND}"} <= ids, "one audit has the runs of both users, each under its own number", ids)
    tap.eq(tapsys.cordon(programs, ["audit", "verify"], env=ENV).code, 0, "that audit is whole")


closed()
crowded()
at_once_by_default()
shared()
tapsys.cordon(programs, ["pool", "stop", "--force"], env=ENV)
tap.done()
