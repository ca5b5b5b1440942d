#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command line and the machine's server: runs go through it where the policy says so, and are refused where they do not."""
import json
import os
import shutil
import signal
import subprocess
import sys

import tapsys
from mcptest import Server, appears, connects, start, stop, text
from tapsys import ROOTLESS, Tap

tap = Tap()
if os.geteuid() != 0:
    print("1..0 # SKIP the server is another user's")
    sys.exit(0)
programs = tapsys.Programs(sys.argv[1])
folder, state = programs.dir / "all", programs.dir / "machine"
folder.mkdir(mode=0o755)
path, own = folder / "mcp", programs.dir / "own"


def config(name, uid, use):
    top = programs.dir / name
    (top / "cordon").mkdir(parents=True, exist_ok=True)
    (top / "cordon/policy.yaml").write_text(f"version: 1\ndaemon: {{use: {use}, socket: {path}}}\n")
    for p in (top, top / "cordon", top / "cordon/policy.yaml"):
        os.chown(p, uid, uid)
    return {"XDG_CONFIG_HOME": str(top)}


def begin(*options, where=state):
    server = start(programs, ["--socket", str(path), "--all-users", *options], env={"CORDON_STATE": str(where), **config("server", 0, "required")})
    appears(lambda: connects(path))
    return server


def user(*words, **more):
    """`cordon` as an ordinary user, with a state folder of its own."""
    return tapsys.cordon(programs, list(words), "user", env=ENV, **more)


def records(folder):
    return [json.loads(line) for f in sorted((folder / "audit").glob("*.jsonl")) for line in f.read_text().splitlines()] if (folder / "audit").is_dir() else []


def refused(r, what):
    good = r.code == 125 and r["status"] == "denied" and r["layer"] == "gate" and "gate.daemon" in r.rules() and r["violations"][0]["hint"]
    tap.ok(good, f"required: {what} is refused by layer, rule and hint", r.code, r.out, r.err)


# A server at PATH that is none: WHO listens there. Prints a line when it does, and then the first bytes that a client gives it, or nothing.
IMPOSTOR = """
import os, socket, sys
path, who = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.bind(path)
os.chmod(path, 0o666)
if who == "uid":
    os.setresuid(61235, 61235, 61235)
if who == "namespace":
    import ctypes
    ctypes.CDLL(None).unshare(0x10000000)  # CLONE_NEWUSER
    for name, text in (("uid_map", "0 0 1"), ("setgroups", "deny"), ("gid_map", "0 0 1")):
        open(f"/proc/self/{name}", "w").write(text)
s.listen()
print("listens", flush=True)
c = s.accept()[0]
c.settimeout(60)
print(repr(c.recv(100)), flush=True)
"""


def impostors():
    for who, what in (("uid", "another user, neither root's nor the socket's owner,"), ("namespace", "root of another user namespace")):
        path.unlink(missing_ok=True)
        with subprocess.Popen(["/usr/bin/python3", "-I", "-c", IMPOSTOR, str(path), who], stdout=subprocess.PIPE, text=True) as p:
            p.stdout.readline()
            refused(user("run", "--json", "-c", "1"), f"a run where {what} listens at the socket")
            tap.eq(p.stdout.readline(), "b''\n", f"required: {what} who listens there is told nothing")
            p.kill()
    path.unlink()


own.mkdir(mode=0o700)
os.chown(own, ROOTLESS, ROOTLESS)
ENV = {"CORDON_STATE": str(own), **config("client", ROOTLESS, "required")}
server = begin()
r = user("run", "-c", "print('a'); 6 * 7")
tap.eq((r.code, r.out), (0, "a\n42\n"), "required: a run goes through the server, and prints what it printed and its value", r.err)
begun = [x for x in records(state) if x["kind"] == "begin"]
tap.eq(([x["client_id"] for x in begun], records(own)), ([f"uid:{ROOTLESS}"], []), "required: the run is in the server's audit, as its user's, and in no other")
r = user("run", "--json", "--timeout", "300ms", "--memory", "64m", "-", text="while True: pass\n")
tap.eq((r.code, r["status"]), (124, "timeout"), "required: limits and --json reach the server, and the status is what it would be", r.out, r.err)
r = user("run", "-c", "import sys\nprint('e', file=sys.stderr)\nraise SystemExit(3)")
tap.eq((r.code, r.err.startswith("e\n")), (3, True), "required: the program's own status and its stderr come back", r.err)
r = user("run", "--lang", "ruby", "-c", "puts 6 * 7")
tap.eq((r.code, r.out), (0, "42\n"), "required: a program of another language goes through the server as one", r.err)
r = user("run", "-c", "import ctypes")
tap.ok(r.code == 125 and "ctypes" in r.err, "required: what the judge refuses is told, with its status", r.code, r.err)
r, bad = user("check", "-c", "print(1)"), user("check", "--json", "-c", "import ctypes")
tap.eq((r.code, bad.code, bad["is_safe"]), (0, 1, False), "required: check goes through the server", r.err, bad.out)
refused(user("exec", "--json", "--", "/bin/true"), "exec, which the server's table does not have,")
for option, value in (("--profile", "standard"), ("--role", "analyze"), ("--policy", programs.dir / "client/cordon/policy.yaml")):
    refused(user("run", "--json", option, value, "-c", "1"), f"{option}, which is not a client's to choose,")
with Server(programs, who="user", env=ENV) as s:
    r = s.tool("execute_code", code="1")
    tap.ok(r["isError"] and "daemon.use" in text(r), "required: a server that the user starts runs nothing", r)
os.chmod(folder, 0o777)
refused(user("run", "--json", "-c", "1"), "a run where others could have put the socket there")
os.chmod(folder, 0o755)
config("client", ROOTLESS, "never")
tap.ok(user("run", "-c", "6 * 7").out == "42\n" and records(own), "never: a run is the command line's own, though a server answers")
server.send_signal(signal.SIGINT)
stop(server)
config("client", ROOTLESS, "required")
refused(user("run", "--json", "-c", "1"), "a run where no server answers")
for given, wanted, code, member, words in ((["--timeout", "300ms"], ["--timeout", "10m"], "sum(range(5 * 10**8))", "reason", ["wall time limit of 0.300s"]),
                                           (["--memory", "200m"], ["--memory", "4g"], "x = bytearray(400 << 20)", "status", ["memory", "error"])):
    server = begin(*given, where=programs.dir / given[0])  # no breaker of another server is open
    r = user("run", "--json", *wanted, "-c", code)
    tap.ok(r[member] in words, f"required: {' '.join(wanted)} does not pass the server's {given[1]}", r.code, r.out, r.err)
    server.send_signal(signal.SIGINT)
    stop(server)
impostors()
config("client", ROOTLESS, "preferred")
tap.eq(user("run", "-c", "6 * 7").out, "42\n", "preferred: without a server a run is the command line's own")
before = len(records(own))
server = begin()
tap.eq((user("run", "-c", "6 * 7").out, len(records(own))), ("42\n", before), "preferred: with a server a run goes through it")
tap.ok(user("run", "--profile", "standard", "-c", "6 * 7").out == "42\n" and len(records(own)) > before, "preferred: what its clients cannot ask for is the command line's own")
server.send_signal(signal.SIGINT)
stop(server)
tapsys.cordon(programs, ["pool", "stop", "--force"], env={"CORDON_STATE": str(state)})
user("pool", "stop", "--force")
shutil.rmtree(state)
tap.done()
