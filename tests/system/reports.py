#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is written down and shown is true, whole and bounded: records of what never ran, floods of refusals, CPU time of
children, passwords in command lines, what a terminal shows of words that others wrote."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import exits
import gatetest
import tapsys
from pooltest import until
from tapsys import Tap, clean_env, users

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = Tap()
programs = tapsys.Programs(BUILD)
QUIET = "rates: {executions: 1000}\naudit: {duplicates: 0}\n"


def State(who):
    return gatetest.State(programs, who)


def never_ran(who):
    s = State(who)
    (s.home / "real").mkdir()
    (s.home / "link").symlink_to("real")
    (s.home / "bad").write_bytes(b"\x7fELF is no program")
    script, slow_script = s.home / "script", b"#!/bin/sh\nsleep 9\n"
    script.write_bytes(slow_script)
    for path in ("real", "bad", "script"):
        s.own(s.home / path)
        os.chmod(s.home / path, 0o755)
    policy = s.policy(QUIET + "breakers: {failures: 2}\n")
    slow = ["exec", "--json", "--policy", policy, "--timeout", "200ms", "--ro", f"{script}:/script", "--processes", "2",
            "--memory-by", "rlimit", "--", "/script"]
    r = s.run(*slow)
    tap.eq(r["status"], "timeout", f"{who}: a program runs into its time limit", r.story())
    script.write_bytes(b"\x7fELF is no program")  # in place: the same file to the gate
    s.run(*slow)
    script.write_bytes(slow_script)
    for what, command in (
            ("--ro of a folder that is not there", ["exec", "--ro", s.home / "none", "--", "/bin/true"]),
            ("--rw that is a link", ["exec", "--rw", s.home / "link", "--", "/bin/true"]),
            ("a program that the kernel cannot execute", ["exec", "--ro", f"{s.home}/bad:/bad", "--", "/bad"]),
            ("run with --ro of a folder that is not there", ["run", "--ro", s.home / "none", "-"])):
        before = len(s.audit())
        r = s.run(command[0], "--policy", policy, *command[1:], text="print(1)\n")
        new = s.audit()[before:]
        last = new[-1] if new else {}
        tap.ok(r.code == exits.NEVER_RAN and last.get("status") == "refused" and last.get("success") is False and last.get("reason"),
               f"{who}: {what} is recorded as refused, with the reason", r.story(), new)
    r = s.run(*slow)
    again = s.run(*slow)
    tap.ok(r["status"] == "timeout" and again["status"] == "denied" and again.rules() == ["gate.breaker"],
           f"{who}: what never ran between two time-outs does not reset the breaker", r.story(), again.story())
    s.close()
    s = State(who)
    policy = s.policy(QUIET + "breakers: {failures: 2}\n")
    slow = ["exec", "--json", "--policy", policy, "--timeout", "50ms", "--", "/bin/sleep"]
    ends = [s.run(*slow, "8")["status"], s.run("exec", "--policy", policy, "--", "/bin/true").code,
            s.run(*slow, "9")["status"], s.run(*slow, "8")["status"], s.run(*slow, "7")["status"]]
    tap.eq(ends, ["timeout", 0, "timeout", "timeout", "denied"],
           f"{who}: a program that runs well between time-outs does reset the breaker of the tool")
    s.close()


def breaker_of_the_tool(who):
    s = State(who)
    ends = [s.run("run", "--json", "--profile", "standard", "-", text=f"raise {kind}('x')\n") for kind in
            ("ValueError", "TypeError", "KeyError")]
    r = s.run("run", "--json", "--profile", "standard", "-", text="print(1)\n")
    tap.ok([e["status"] for e in ends] == ["error"] * 3 and r.rules() == ["gate.breaker"],
           f"{who}: three programs that fail in a row open the breaker of run, whatever their code", r.story())
    tap.ok(r["reason"].startswith("the last 3 programs of run failed, the last with: KeyError") and "any program is refused" in json.dumps(r.json),
           f"{who}: the refusal by the breaker of run does not say that the same program failed before", r.story())
    tap.eq(s.run("exec", "--", "/bin/true").code, 0, f"{who}: the breaker of exec stays closed")
    s.close()


def never_retried(who):
    s = State(who)
    denied = s.run("exec", "--json", "--role", "explore", "--", "/bin/true")
    blocked = s.run("run", "--json", "-", text="import subprocess\n")
    for r, status in ((denied, "denied"), (blocked, "blocked")):
        category = (r["error"] or {}).get("category")
        advice = s.run("escalate", "--category", category or "none", "--attempt", "1", "--json")
        tap.ok(r["status"] == status and advice["action"] == "stop",
               f"{who}: escalate answers stop, not retry, to a result that is {status}", r.story(), advice.story())
    failed = s.run("run", "--json", "--profile", "standard", "-", text="x\n")
    advice = s.run("escalate", "--category", (failed["error"] or {}).get("category", "none"), "--attempt", "1", "--json")
    tap.eq(advice["action"], "retry", f"{who}: escalate answers retry to a program that raised")
    s.close()


def flood(who):
    """A client that asks on and on after its rate is used up."""
    s = State(who)
    policy = s.policy("rates: {executions: 1, window: 3s}\naudit: {duplicates: 0, sync: 'off'}\n")
    ask = ["exec", "--json", "--policy", policy, "--", "/bin/true"]
    tap.eq(s.run(*ask)["status"], "ok", f"{who}: the first of a window runs")
    before = len(s.audit())
    for attempts in range(40):  # a window must hold eight refusals; a slow machine gets more windows
        asked = [s.run(*ask) for _ in range(8)]
        refused = sum(r["status"] == "denied" for r in asked)
        records = [e for e in s.audit()[before:] if e["kind"] == "refusal"]
        counts = [e for e in records if "no record of their own" in json.dumps(e["args"])]
        if counts:
            break
    alone = [e for e in records if e not in counts]
    tap.ok(counts and len(alone) < 8 * (attempts + 1),
           f"{who}: after a few refusals within a window one record counts the others", len(alone), refused, counts)
    tap.ok(all(e["client_id"] for e in counts), f"{who}: that record names the client", counts)
    time.sleep(3.1)
    tap.eq(s.run(*ask)["status"], "ok", f"{who}: the client runs again when its window is over")
    tap.eq(s.audit()[-1]["status"], "ok", f"{who}: what runs has records of its own")
    s.close()


BURN = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        end = time.process_time() + 0.3
        while time.process_time() < end: pass
        os.write(1, b".")
        time.sleep(99)
"""


def children(who):
    """By rlimit: where there is a cgroup, it counts."""
    s = State(who)
    policy = s.policy("breakers: {failures: 1000}\n")  # each try ends at its limit
    argv = ["--policy", policy, "--", "/usr/bin/python3", "-I", "-S", "-c", BURN + "time.sleep(99)"]
    for _ in range(5):  # a busy machine may not give two processes 0.6 s within the limit
        r = s.run("exec", "--json", "--processes", "4", "--memory-by", "rlimit", "--timeout", "4s", *argv)
        if r["stdout"] == "..":
            break
    cpu = (r["usage"] or {}).get("cpu_ms", 0)
    tap.ok(r["status"] == "timeout" and r["stdout"] == ".." and cpu >= 550,
           f"{who}: the CPU time of children that a time limit ended is counted", r.story())
    r = s.run("exec", "--json", "--timeout", "1s", "--", "/bin/sleep", "9")
    tap.ok((r["usage"] or {}).get("cpu_ms", 999) < 200, f"{who}: a program that sleeps used little", r.story())
    s.close()


SECRETS = [["mysql", "-phunter"], ["x", "-pHunter2x"], ["curl", "-u", "bob:s3cr3tw"], ["x", "pwd=s3cr3tw"], ["sh", "-c", "mysql -ps3cr3tw"],
           ["docker", "login", "-p", "s3cr3tw"]]
PLAIN = ["-p8080:80", "-print", "pwd=/home/me", "-u", "1000:1000"]


def passwords(who):
    s = State(who)
    policy = s.policy(QUIET)
    for argv in SECRETS:
        s.run("exec", "--policy", policy, "--", "/bin/true", *argv)
    words = json.dumps(s.audit())
    tap.ok(not [w for w in ("hunter", "Hunter2x", "s3cr3tw") if w in words] and "bob:" in words and "[redacted]" in words,
           f"{who}: passwords that options carry are in no record", words[-1500:])
    s.run("exec", "--policy", policy, "--", "/bin/true", *PLAIN)
    argv = s.audit()[-1]["args"].get("argv", [])
    tap.eq(argv[1:], PLAIN, f"{who}: ports, option names, folders and user ids stay readable")
    s.close()


UNSEEN = "\u3164\u200b\u00ad\u2060\u00a0\u2028\ufe0f\U000e0041"


def approved_by_sight(who):
    if not (programs.bin / "cordon-approvals").exists():
        return tap.skip(f"{who}: what approve show prints", "built without SQLite: there are no approvals")
    s = State(who)
    hitl = s.policy("approval: {mode: HITL}\n")
    path = s.home / "p.py"
    path.write_bytes(f"x = '{UNSEEN}' # a comment\r\nprint(1)\n\x0cp\u0430ss = 'gr\u00fc\u00dfe'\n".encode())
    os.chmod(path, 0o644)
    s.run("run", "--policy", hitl, "--no-wait", "--profile", "standard", str(path))
    listed = s.run("approve", "list", "--json").json or [{}]
    shown = s.run("approve", "show", listed[0].get("id", "none")).out
    missing = [f"U+{ord(c):04X}" for c in UNSEEN if f"<U+{ord(c):04X}>" not in shown or c in shown]
    tap.ok(not missing, f"{who}: approve show prints each character that cannot be seen as its number", missing, shown)
    tap.ok("# a comment^M\n" in shown and "     2 | print(1)\n" in shown and "     3 | ^Lp" in shown,
           f"{who}: a carriage return and a form feed are shown, and lines are counted as the parser does", shown)
    tap.ok("U+0430 in line 3" in shown, f"{who}: a Cyrillic letter that looks Latin is named", shown)
    tap.ok("gr\u00fc\u00dfe" in shown, f"{who}: words of other languages stay readable", shown)
    s.close()


def list_of_runs(who):
    """The names in gate.live are the user's own words to root, who lists what runs."""
    s = State(who)
    p = s.start("exec", "--json", "--timeout", "60s", "--", "/bin/sleep", "50")
    if not tap.ok(s.wait_for(1), f"{who}: one program runs"):
        return
    run = s.listed()["runs"][0]["id"]
    live = s.dir / "gate.live"
    data = live.read_bytes()
    at = data.find(run.encode())
    with open(live, "r+b") as f:
        f.seek(at)
        f.write(b"\x1b]0;owned\x07\x9b31m")
    r = s.run("stop", "--list")
    tap.ok(at > 0 and "\x1b" not in r.out and "\x07" not in r.out and "^[" in r.out,
           f"{who}: stop --list shows an escape sequence in the gate's file instead of sending it", repr(r.out))
    p.terminate()
    p.communicate()
    s.close()


LISTENER = """
import ctypes, json, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x20000) == 0 and libc.mount(None, b"/", None, ctypes.c_ulong(0x44000), None) == 0
nodes = {n: os.stat("/dev/" + n) for n in ("null", "zero", "full", "random", "urandom", "tty")}
assert libc.mount(b"none", b"/dev", b"tmpfs", ctypes.c_ulong(0), b"mode=755") == 0
for name, st in nodes.items():
    os.mknod("/dev/" + name, st.st_mode, st.st_rdev)
    os.chmod("/dev/" + name, 0o666)
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
os.chmod("/dev/log", 0o666)
log.setblocking(False)
r = subprocess.run(json.loads(sys.argv[1]), stdin=subprocess.DEVNULL, capture_output=True)
told = []
try:
    while True:
        told.append(log.recv(4096).decode())
except BlockingIOError:
    pass
print(json.dumps({"told": told, "err": r.stderr.decode(), "out": r.stdout.decode()}))
"""


def alerts(who):
    """An alert reaches a person without any setting: who sits there, and who reads the system's log."""
    if os.geteuid() != 0:
        return tap.skip("alerts reach the system's log", "/dev/log of a test needs root")
    s = State(who)

    mounts = "import ctypes\nfor i in range(9):\n ctypes.CDLL(None).mount(b'a', b'/%d' % i, b'tmpfs', 0, None)\nprint('x')"

    def twice(*options):
        command = programs.command(["exec", *options, "--", "/usr/bin/python3", "-I", "-S", "-c", mounts], who)
        for _ in range(2):
            out = subprocess.run([sys.executable, "-c", LISTENER, json.dumps(command)], env=clean_env(s.env, who), cwd="/",
                                 capture_output=True, text=True)
        return json.loads(out.stdout) if out.returncode == 0 else {"told": [], "err": out.stderr, "out": ""}
    r = twice("--policy", s.policy("audit: {duplicates: 2}\n"))
    tap.ok("alert: Excessive violations: 9" in r["err"] and r["out"] == "x\n",
           f"{who}: an alert is a line on standard error of the run, and the output is as it was", r)
    tap.ok(all(any("cordon[" in m and word in m for m in r["told"]) for word in ("Excessive violations: 9", "Duplicate code")),
           f"{who}: each alert is a message to the system's log", r)
    tap.ok("Duplicate" not in r["err"], f"{who}: who starts a program again is not told so", r)
    s.close()
    s = State(who)
    r = twice("--policy", s.policy("audit: {alert_to: []}\n"))
    tap.ok(r["told"] == [] and "alert" not in r["err"] and r["out"] == "x\n", f"{who}: audit.alert_to turns both off", r)
    tap.ok([e for e in s.audit() if e["kind"] == "alert"], f"{who}: the alert is on record all the same")
    s.close()
    if who == "root":
        nobody(mounts)


def nobody(mounts):
    """Root's own runs: whoever reads what the program wrote, and starts what an alert asks for, is root no more."""
    s = State("root")
    said = s.home / "said"
    said.touch()
    said.chmod(0o666)
    script = s.home / "tell.sh"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\ncat /proc/$$/status >>{said}\necho END >>{said}\n")
    for p in (script, s.home):
        p.chmod(0o755)
    policy = s.policy(f"audit: {{alert_command: ['{script}']}}\n")
    for what, options, by in (("a run", ["--memory-by", "rlimit"], "rlimit"), ("a run in a cgroup", ["--memory-by", "cgroup"], "cgroup"),
                              ("a run of several processes", ["--processes", "3"], "cgroup")):
        said.write_text("")
        r = s.run("exec", "--json", "--policy", policy, *options, "--", "/usr/bin/python3", "-I", "-S", "-c", mounts)
        until(lambda: "END" in said.read_text())
        uids = re.findall(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", said.read_text(), re.M)
        caps = re.findall(r"^CapEff:\s+(\w+)", said.read_text(), re.M)
        tap.ok(r["stdout"] == "x\n" and len(uids) == 1 and "0" not in uids[0] and set(caps[0]) == {"0"} and r["usage"]["memory_by"].startswith(by),
               f"root: the alert command of {what} of root's has neither root's id nor a capability", r.story(), said.read_text())
        tap.figure(f"root: {what}: memory by {r['usage']['memory_by']}")
    s.close()


def judges(who):
    s = State(who)
    url = s.policy("arena:\n  enabled: true\n  judges:\n    - {name: far, url: 'https://models.internal/v1', model: m}\n")
    r = s.run("policy", "check", url)
    tap.ok(r.code != 0 and "judge far" in r.out + r.err and "upstreams" in r.out + r.err and "model: NAME" in r.out + r.err,
           f"{who}: policy check refuses a judge by URL by its name", r.out, r.err)
    r = s.run("exec", "--policy", url, "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and "judge far" in r.err, f"{who}: a run with such a policy is refused with the same words", r.story())
    command = s.policy("arena:\n  enabled: true\n  judges:\n    - {name: a, command: [/bin/true]}\n    - {name: b, command: [/bin/true]}\n")
    tap.eq(s.run("policy", "check", command).code, 0, f"{who}: judges that are programs pass policy check")
    for name in ("production", "max-safety"):
        shipped = s.policy((pathlib.Path(sys.argv[2]) / f"policies/{name}.yaml").read_text())
        r = s.run("run", "--json", "--no-wait", "--policy", shipped, "-", text="print(1)\n")
        hint = (r["violations"] or [{}])[0].get("hint", "")
        tap.ok(r["status"] == "denied" and "upstreams" in r["reason"] and "cordon proxy --http" in r["reason"] and "arena.judges" in hint,
               f"{who}: {name} says what is missing when it denies", r.story())
    s.close()


def every_call(who):
    """Tool calls and the life of sessions are records; so are the worker and its role."""
    s = State(who)
    r = s.run("run", "--json", "--profile", "standard", "--tool", "echo", "-", text="echo(1)\necho('hunter2')\n")
    calls = [e for e in s.audit() if e["kind"] == "tool"]
    tap.ok(r["status"] == "ok" and [e["tool"] for e in calls] == ["echo"] * 2 and all(e["success"] and e["execution_id"] == r["id"] for e in calls)
           and "hunter2" in json.dumps(calls[-1]["args"]), f"{who}: each call of a tool is a record", r.story(), calls)
    end = s.audit()[-1]
    tap.ok(end.get("role") == "execute" and (end["workerId"] or "").startswith("pid:") and {e["workerId"] for e in calls} == {end["workerId"]},
           f"{who}: records of a run have its worker and its role", end)
    denied = s.run("run", "--json", "--profile", "standard", "--tool", "echo", "--policy", s.policy("tools: {echo: {risk: critical}}\n"), "-",
                   text="try:\n    echo(1)\nexcept RuntimeError: pass\n")
    last = ([e for e in s.audit() if e["kind"] == "tool"] or [{"status": None, "success": None}])[-1]
    tap.ok(denied["status"] == "ok" and last["status"] == "denied" and not last["success"], f"{who}: a call that was denied is a record too", last)
    if not (programs.bin / "cordon-holder").exists():
        return tap.skip(f"{who}: records of sessions", "this build has no holder")
    made = s.run("session", "new", "one", "--profile", "standard")
    forked = s.run("session", "fork", "one", "two")
    ended = s.run("session", "run", "two", "-", text="import os\nos._exit(3)\n")
    closed = s.run("session", "close", "one")
    notes = [(e["args"].get("event"), e["session"]) for e in s.audit() if e["kind"] == "session"]
    tap.eq(notes, [("opened", "one"), ("forked", "two"), ("ended", "two"), ("closed", "one")],
           f"{who}: the start, fork and end of sessions are records", made.err, forked.err, ended.err, closed.err)
    s.run("pool", "stop", "--force")
    s.close()


def doctor(who):
    s = State(who)
    tap.eq(s.run("doctor").code, 0, f"{who}: doctor is content where a program runs")
    listed = s.run("doctor", "--checklist").out
    tap.ok("[x] policy, state folder" in listed and "[ ] people are asked" in listed, f"{who}: doctor --checklist ticks what it saw", listed)
    tap.ok("[x] a state to go back to can be kept" in listed and "snapshot" not in listed, f"{who}: doctor --checklist knows of workspaces", listed)
    config = s.home / "config/cordon"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text("approval: {mode: HITL}\n")
    for p in (config.parent, config, config / "policy.yaml"):
        s.own(p)
    os.chmod(config / "policy.yaml", 0o600)
    env = {**s.env, "XDG_CONFIG_HOME": str(config.parent)}
    listed = tapsys.cordon(programs, ["doctor", "--checklist"], who, env=env).out
    tap.ok("[x] people are asked" in listed, f"{who}: another policy gives another list", listed)
    (config / "policy.yaml").write_text("approval: {mode: NOBODY}\n")
    for args in (["doctor"], ["doctor", "--json"]):
        r = tapsys.cordon(programs, args, who, env=env)
        run = tapsys.cordon(programs, ["exec", "--", "/bin/true"], who, env=env)
        tap.ok(run.code != 0 and r.code == exits.FAILED and "NOBODY" in r.out, f"{who}: {' '.join(args)} fails where the policy is broken", r.story())
    blocked = s.home / "file"
    blocked.write_text("no folder")
    for where in (blocked, blocked / "below"):
        env = {**s.env, "CORDON_STATE": str(where)}
        r = tapsys.cordon(programs, ["doctor", "--json"], who, env=env)
        run = tapsys.cordon(programs, ["exec", "--", "/bin/true"], who, env=env)
        tap.ok(run.code != 0 and r.code == exits.FAILED and r["ok"] is False and r["part"] == "state",
               f"{who}: doctor fails where the state folder cannot be used", r.story(), run.story())
    s.close()


def paths(value, above=""):
    """The names of all members, as the table writes them: a list stands for its elements."""
    if isinstance(value, list):
        return {p for v in value for p in paths(v, above)}
    if isinstance(value, dict) and not above.endswith(("args", "steps")):
        return {p for k, v in value.items() for p in paths(v, f"{above}.{k}" if above else k)}
    return {above}


def trust_table(who):
    """Each field that there is has a row in docs/trust.md, which says whose word it is."""
    text = (pathlib.Path(sys.argv[2]) / "docs/trust.md").read_text()
    sections = {part.splitlines()[0]: {name for line in part.splitlines() if line.startswith("| `")
                                       for name in line.split("|")[1].replace("`", "").replace(" ", "").split(",")}
                for part in text.split("\n## ")[1:]}
    s = State(who)
    runs = [s.run("run", "--json", "--profile", "open", "-", text="import ctypes\nopen('f', 'w').write('x')\nctypes.CDLL(None).mount(0, 0, 0, 0, 0)\nraise ValueError(1)\n"),
            s.run("run", "--json", "-", text="import subprocess\nimport subprocess\n"), s.run("run", "--json", "--profile", "standard", "-", text="import nosuchmodule\n"),
            s.run("run", "--json", "--profile", "standard", "--out", s.home / "out", "-", text="open('.hidden', 'w').close()\n"), s.run("exec", "--json", "--role", "explore", "--", "/bin/true"),
            s.run("exec", "--json", "--", "/bin/echo", "x")]
    if (programs.bin / "cordon-workspace").exists():
        s.run("workspace", "create", "w")
        runs.append(s.run("exec", "--json", "--processes", "8", "--workspace", "w", "--", "/bin/sh", "-c", "mkfifo fifo"))
        tap.ok(runs[-1]["snapshot"]["left_out"], f"{who}: a run in a workspace that leaves a FIFO has a snapshot with something left out", runs[-1].story())
    fields = set().union(*(paths(r.json or {}) for r in runs)) - {"violations", "files", "error", "snapshot.left_out"}
    lacking = fields - sections["The result"]
    tap.ok(len(fields) > 30 and not lacking, f"{who}: each field of a result has its row in trust.md", lacking)
    fields = set().union(*(paths(e) for e in s.audit()))
    lacking = fields - sections["A record of the audit"]
    tap.ok(len(fields) > 30 and not lacking, f"{who}: each field of a record has its row in trust.md", lacking)
    if (programs.bin / "cordon-approvals").exists():
        s.run("run", "--policy", s.policy("approval: {mode: HITL}\n"), "--no-wait", "-", text="print(1)\n")
        asked = s.run("approve", "list", "--json").json or [{}]
        fields = paths(s.run("approve", "show", asked[0].get("id", "none"), "--json").json or {})
        lacking = fields - sections["An approval"]
        tap.ok(len(fields) > 10 and not lacking, f"{who}: each field of an approval has its row in trust.md", lacking)
    s.close()


PARTS = (trust_table, every_call, doctor, alerts, judges, never_ran, breaker_of_the_tool, never_retried, flood, children, passwords, approved_by_sight, list_of_runs)
chosen = sys.argv[3:] or [part.__name__ for part in PARTS]  # `make vm-test SUITES=reports:alerts` runs one of them
for who in users():
    for part in PARTS:
        if part.__name__ in chosen:
            part(who)
tap.done()
