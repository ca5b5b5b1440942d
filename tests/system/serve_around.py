#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ways around the machine's server, for a user whom the machine's policy binds to it: a real /etc/cordon/policy.yaml with `final: [daemon]`, in a mount namespace of the test's own."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import exits
import tapsys
from mcptest import appears, connects, start, stop
from tapsys import ROOTLESS, Tap

tap = Tap()
if os.geteuid() != 0:
    print("1..0 # SKIP the server and the machine's policy are another user's")
    sys.exit(0)
if "AROUND_INSIDE" not in os.environ:  # a copy of /etc that only this test sees
    os.environ["AROUND_INSIDE"] = "1"
    os.execv("/usr/bin/unshare", ["unshare", "-m", "--propagation", "private", "/usr/bin/python3", *sys.argv])
programs = tapsys.Programs(sys.argv[1])
folder, state, own, home = (programs.dir / name for name in ("all", "machine", "own", "home"))
path = folder / "mcp"
# What runs or judges code: words of the command line, and where options go.
COMMANDS = ((["run", "-c", "print(1)"], 1), (["check", "-c", "print(1)"], 1), (["exec", "--", "/bin/true"], 1), (["repl"], 1), (["session", "new", "s"], 2),
            (["run", "--workspace", "w", "-c", "print(1)"], 1), (["session", "run", "s", "-c", "print(1)"], 2))
# Starts a runner as cordond does, as WHO: a user, perhaps in a user namespace in which it has the number INSIDE. Prints what it printed.
FORGED = """
import ctypes, os, socket, subprocess, sys
cordon, inside = sys.argv[1:3]
outside = os.geteuid()
if inside:
    ctypes.CDLL(None).unshare(0x10000000)  # CLONE_NEWUSER
    for name, text in (("uid_map", f"{inside} {outside} 1"), ("setgroups", "deny"), ("gid_map", f"{inside} {outside} 1")):
        open(f"/proc/self/{name}", "w").write(text)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
code = os.memfd_create("code")
os.write(code, b"print(6 * 7)")
os.lseek(code, 0, 0)
p = subprocess.Popen([cordon, "--from-cordond"], stdin=theirs, stdout=subprocess.PIPE)
words = [str(os.geteuid()), "cordon", "run", "--json", "-"]
socket.send_fds(ours, ["".join(w + chr(0) for w in words).encode()], [code])
print(p.communicate()[0].decode())
"""


def prepare():
    etc = programs.dir / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    (etc / "cordon").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", etc, "/etc"], check=True)
    pathlib.Path("/etc/cordon/policy.yaml").write_text(f"daemon: {{use: required, socket: {path}}}\nfinal: [daemon]\n")
    folder.mkdir(mode=0o755)
    for place in (own, home, home / ".config", home / ".config/cordon"):
        place.mkdir(mode=0o700)
        os.chown(place, ROOTLESS, ROOTLESS)


def user(words, text="print(1)\n", **env):
    return tapsys.cordon(programs, words, "user", env={"CORDON_STATE": str(own), "XDG_CONFIG_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "", **env}, text=text)


def begun(where):
    """The runs that the audit in this state folder has."""
    lines = [line for f in sorted((where / "audit").glob("*.jsonl")) for line in f.read_text().splitlines()] if (where / "audit").is_dir() else []
    return [r for r in map(json.loads, lines) if r["kind"] == "begin"]


def other_policies():
    """What is final is not loosened by any file, for any command."""
    walked = []
    for text in ("daemon: {use: never}\n", "daemon: {use: preferred}\n", f"daemon: {{socket: {own}/mcp}}\n"):
        file = home / ".config/cordon/policy.yaml"
        file.write_text(text)
        os.chown(file, ROOTLESS, ROOTLESS)
        for options, env in ((["--policy", str(file)], {}), ([], {"XDG_CONFIG_HOME": str(home / ".config")}), ([], {"XDG_CONFIG_HOME": "", "HOME": str(home)})):
            for words, at in COMMANDS:
                r = user([*words[:at], *options, *words[at:]], **env)
                if r.code == 0 or " is final" not in r.err + r.out:
                    walked.append(f"{' '.join(words)} with {options or env} {text}: {r.story()}")
        file.unlink()
    tap.eq(walked, [], "no file of a user's, given by --policy, XDG_CONFIG_HOME or HOME, changes a daemon section that is final, in any command that runs or judges code")


def other_environments():
    """Each variable that cordon reads: the run is the server's all the same."""
    elsewhere = programs.dir / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    os.chown(elsewhere, ROOTLESS, ROOTLESS)
    for name, value in (("CORDON_STATE", elsewhere), ("CORDON_STATE", ""), ("XDG_STATE_HOME", elsewhere), ("HOME", elsewhere), ("XDG_RUNTIME_DIR", elsewhere), ("TMPDIR", elsewhere),
                        ("CORDON_CGROUP", "/sys/fs/cgroup"), ("CORDON_TEST_OFF", "gate"), ("LISTEN_FDS", "1"), ("NOTIFY_SOCKET", str(elsewhere / "n"))):
        before = len(begun(state))
        r = user(["run", "-c", "6 * 7"], **{name: str(value)})
        tap.ok(r.out == "42\n" and len(begun(state)) == before + 1 and begun(state)[-1]["client_id"] == f"uid:{ROOTLESS}" and not list(elsewhere.rglob("audit")) and not begun(own),
               f"{name}={'' if not value else '...'}: a run is the server's, and on record there alone", r.story())


def other_commands():
    user(["workspace", "create", "w"])
    for words, _ in COMMANDS[2:-1]:
        r = user(words)
        tap.ok(r.code == exits.NEVER_RAN and "daemon.use of the policy is required" in r.err, f"{' '.join(words)}, which the table of requests does not have, is refused and told why", r.story())
    r = user(["session", "run", "--json", "s", "-c", "print(1)"])
    tap.ok(r.code == exits.NEVER_RAN and {s["state"] for s in user(["session", "list", "--json"]).json} == {"over"}, "a session that was refused is over, and runs nothing", r.story())
    options = (["--profile", "strict"], ["--role", "execute"], ["--env", "A=b"], ["--in", "/etc/hostname"], ["--tool", "echo"], ["--no-wait"], ["--disk", "1m"], ["--task", "t"])
    walked = []
    for option in options:
        r = user(["run", "--json", *option, "-c", "1"])
        if r.code != exits.NEVER_RAN or r.rules() != ["gate.daemon"]:
            walked.append(f"{option}: {r.story()}")
    tap.eq(walked, [], "a run with an option that a client cannot choose is refused")
    file = home / "verify.yaml"
    file.write_text("workspaces: {verify: ['echo ran']}\n")
    os.chown(file, ROOTLESS, ROOTLESS)
    user(["workspace", "clone", "w", "n"])
    r = user(["workspace", "verify", "w@n", "--json", "--policy", str(file)])
    tap.ok(r.code == exits.FAILED and [p["exit_code"] for p in r["parts"] or ()] == [exits.NEVER_RAN] and "daemon.use" in r.err, "workspace verify runs none of the commands of a policy", r.story())
    r = user(["check", "--profile", "standard", "-c", "print(1)"])
    tap.ok(r.code == exits.USAGE and "daemon.use" in r.err, "a check with an option that a client cannot choose is refused", r.story())


def owner_of_the_socket():
    """The server's own user is bound, too: only its runners may."""
    for words in (["exec", "--json", "--", "/bin/true"], ["run", "--json", "--profile", "strict", "-c", "1"]):
        r = tapsys.cordon(programs, words, env={"CORDON_STATE": str(state), "XDG_CONFIG_HOME": "/nonexistent"})
        tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.daemon"], f"{words[0]} by the user who owns the socket, past the server, is refused", r.story())


def as_user(*words):
    p = subprocess.run(["/usr/bin/setpriv", f"--reuid={ROOTLESS}", f"--regid={ROOTLESS}", "--clear-groups", "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, env=tapsys.clean_env({"CORDON_STATE": str(own), "XDG_CONFIG_HOME": "/nonexistent"}, "user"), timeout=60 * tapsys.SLOW)
    return tapsys.Run(p.returncode, p.stdout, p.stderr, 0)


def other_runners():
    """In a user namespace whose root is the user, the machine's policy is somebody else's: nothing is run by it."""
    for inside, what in (("", "a runner that the user starts as cordond does"),
                         ("65534", "a runner that the user starts in a user namespace, under the number by which root is shown there,")):
        r = as_user("/usr/bin/python3", "-I", "-c", FORGED, str(programs.cordon), inside)
        tap.ok(r["status"] == "denied" and r.rules() == ["gate.daemon"], f"{what} runs nothing", r.story())
    for what, words in (("a runner", ["/usr/bin/python3", "-I", "-c", FORGED, str(programs.cordon), "0"]),
                        ("a run", ["/usr/bin/unshare", "-U", "--map-root-user", str(programs.cordon), "run", "--json", "-c", "print(6 * 7)"])):
        r = as_user(*words)
        tap.ok("42" not in r.out and "belongs to somebody else" in r.err, f"{what} of the root of a user namespace is refused", r.story())


prepare()
server = start(programs, ["--socket", str(path), "--all-users"], env={"CORDON_STATE": str(state), "XDG_CONFIG_HOME": "/nonexistent"})
appears(lambda: connects(path))
r = user(["run", "-c", "6 * 7"])
tap.eq((r.out, len(begun(state))), ("42\n", 1), "a user whom the machine's policy binds has a run of the server's", r.story())
other_policies()
other_environments()
other_commands()
owner_of_the_socket()
other_runners()
tap.eq(begun(own), [], "after all of that no run is on record in a state folder of the user's")
server.send_signal(signal.SIGINT)
stop(server)
user(["pool", "stop", "--force"])
tapsys.cordon(programs, ["pool", "stop", "--force"], env={"CORDON_STATE": str(state), "XDG_CONFIG_HOME": "/nonexistent"})
tap.done()
