# SPDX-License-Identifier: Apache-2.0
"""The gate as people meet it: stop and resume with real runs, places, rates, breakers, approvals, arena.

Usage: gate.py BUILD. As root and as an ordinary user; each has a state folder of its own. Whoever says yes here
is a process that shares no ancestor with the one that asked and sits at a terminal of its own."""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import exits
import gatetest
import traces
from gatetest import apart
from tapsys import ROOTLESS, Programs, Tap, clean_env, cordon, users

tap = Tap()
programs = Programs(sys.argv[1])


def State(who):
    return gatetest.State(programs, who)


def finish(p):
    try:
        out, err = p.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    try:
        return p.returncode, json.loads(out), err.decode()
    except ValueError:
        return p.returncode, {}, err.decode() + out.decode()


def sleeping(seconds):
    """How many programs are at it: who has a place may not have started its program yet, and is refused by a stop, not ended."""
    def is_one(p):
        try:
            return (p / "cmdline").read_bytes().startswith(f"/bin/sleep\0{seconds}\0".encode())
        except OSError:
            return False
    return sum(is_one(p) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit())


def all_sleep(count, seconds):
    for _ in range(600):
        if sleeping(seconds) == count:
            return True
        time.sleep(0.05)
    return False


def stop_and_resume(who):
    s = State(who)
    mark = 9000000 + os.getpid()  # seconds that no other test sleeps
    runs = [s.start("exec", "--json", "--timeout", "60s", "--", "/bin/sleep", str(mark), *["0"] * i) for i in range(5)]
    tap.ok(s.wait_for(5) and all_sleep(5, mark), f"{who}: five programs run before a stop", s.listed(), sleeping(mark))
    r = s.run("stop", "--json", "--patience", "60s", "--why", "a\x1b[31mtest\nof it")
    ended = [finish(p) for p in runs]
    tap.ok(r.code == 0 and r["count"] == 5 and all(x["end"] == "ended" for x in r["runs"]), f"{who}: stop ended all five", r.story())
    tap.ok({x["id"] for x in r["runs"]} == {j.get("id") for _, j, _ in ended}, f"{who}: stop lists each run by its id")
    tap.ok(all(c == exits.STOPPED and j.get("status") == "error" and j.get("layer") == "gate" and j["error"]["type"] == "Stopped"
               and j["error"]["category"] == "EARLY_ABORT" and "test of it" in j["reason"] for c, j, _ in ended),
           f"{who}: each result says who stopped it and why", ended[0])
    left = subprocess.run(["/usr/bin/pgrep", "-f", f"^/bin/sleep {mark}"], stdout=subprocess.PIPE).stdout
    tap.eq(left, b"", f"{who}: no program is left after a stop")
    r = s.run("exec", "--json", "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and r["status"] == "denied" and r["layer"] == "gate" and r.rules() == ["gate.stopped"],
           f"{who}: new runs are refused by name while the gate is stopped", r.story())
    r = s.run("stop", "--list")
    tap.ok("stopped since" in r.out and "\x1b" not in r.out and "^[" in r.out, f"{who}: stop --list shows the flag of a stop without escape sequences", repr(r.out))
    tap.ok(s.run("resume", "--why", "fixed").code == 0 and s.run("exec", "--", "/bin/true").code == 0, f"{who}: resume lets new runs in again")
    kinds = [e["kind"] for e in s.audit()]
    tap.ok(kinds.count("stop") == 6 and kinds.count("resume") == 1 and kinds.count("refusal") == 1,
           f"{who}: the stop, each run that it ended, the refusal and the resume are in the audit", kinds)
    # a supervisor that does not listen
    p = s.start("exec", "--json", "--timeout", "60s", "--", "/bin/sleep", str(mark))
    tap.ok(s.wait_for(1) and all_sleep(1, mark), f"{who}: one more program runs")  # and its supervisor writes nothing, so holds no lock
    os.kill(supervisor(s), signal.SIGSTOP)
    r = s.run("stop", "--json", "--patience", "500ms")
    tap.ok(r["count"] == 1 and r["runs"][0]["end"] == "killed", f"{who}: a supervisor that does not answer is killed", r.story())
    tap.eq(finish(p)[0], -signal.SIGKILL, f"{who}: the killed supervisor ends by SIGKILL")
    tap.ok(all_sleep(0, mark), f"{who}: the program of a killed supervisor ends with it", sleeping(mark))
    s.run("resume")
    # what is broken does not keep anybody from stopping
    (s.dir / "audit").rename(s.dir / "away")
    (s.dir / "audit").write_text("not a folder")
    r = s.run("stop", "--json")
    tap.ok(r["stopped"] is True and r.code == 1 and "not recorded" in r.err, f"{who}: stop works with a broken audit, and says so", r.story())
    s.close()


def supervisor(s):
    return s.listed()["runs"][0]["supervisor"]


def places_and_rates(who):
    s = State(who)
    narrow = s.policy("rates:\n  concurrent: 3\n")
    runs = [s.start("exec", "--json", "--policy", narrow, "--timeout", "10m", "--", "/bin/sleep", "600") for _ in range(3)]
    tap.ok(s.wait_for(3), f"{who}: three programs run in three slots")
    r = s.run("exec", "--json", "--policy", narrow, "--no-wait", "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.busy"], f"{who}: a fourth run for three slots is refused at once with --no-wait", r.story())
    late = s.start("exec", "--policy", narrow, "--", "/bin/echo", "at last")
    said = late.stderr.readline()
    tap.ok(b"waiting for a slot" in said and late.poll() is None, f"{who}: a fourth run for three slots waits without --no-wait", said)
    os.kill(supervisor(s), signal.SIGKILL)
    out, err = late.communicate(timeout=60)
    tap.ok(out == b"at last\n", f"{who}: a waiting run takes the slot of one that was killed", out, err)
    for p in runs:
        p.terminate()
        p.communicate()
    few = s.policy("rates:\n  executions: 5\n")  # four were in this window already
    codes = [s.run("exec", "--json", "--policy", few, "--", "/bin/true") for _ in range(2)]
    tap.ok(codes[0].code == 0 and codes[1].code == exits.NEVER_RAN and codes[1].rules() == ["gate.rate"] and
           1 <= (codes[1]["error"] or {}).get("retry_after_s", 0) <= 60, f"{who}: the rate holds across processes", codes[0].story(), codes[1].story())
    s.close()


def breakers(who):
    s = State(who)
    ends = [s.run("exec", "--json", "--timeout", "50ms", "--", "/bin/sleep", "9") for _ in range(4)]
    tap.ok([r["status"] for r in ends] == ["timeout"] * 3 + ["denied"] and ends[3].rules() == ["gate.breaker"] and
           0 < ends[3]["error"]["retry_after_s"] <= 60, f"{who}: three time-outs of the same: the fourth is answered at once", [r["reason"] for r in ends], ends[3].story())
    tap.eq(s.run("run", "--profile", "standard", "-", text="print(1)").code, 0, f"{who}: the breaker of one tool does not stop another")
    early = State(who)  # a worker takes longer than that to start
    ends = [early.run("run", "--json", "--profile", "standard", "--timeout", "1ms", "-c", "while True: pass") for _ in range(4)]
    tap.eq([r["status"] for r in ends], ["timeout"] * 3 + ["denied"], f"{who}: time-outs of programs that are still being judged open the breaker, too", ends[3].story())
    early.close()
    r = s.run("exec", "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and "the last 3 programs of exec failed" in r.err and re.search(r"try again in \d+ s; any program is refused until then", r.err) and
           "to go on at once set breakers.cooldown" in r.err, f"{who}: who meets an open breaker reads what, why, until when, and how to go on at once", r.story())
    r = s.run("exec", "--policy", s.policy("breakers: {cooldown: 1ms}\n"), "--", "/bin/true")
    tap.ok(r.code == 0 and s.run("exec", "--", "/bin/true").code == 0, f"{who}: with breakers.cooldown as the refusal says the next run goes at once, and closes the breaker", r.story())
    tap.ok([e for e in s.audit() if e["kind"] == "breaker"], f"{who}: the breaker's opening is in the audit")
    s.close()
    s = State(who)
    ends = [s.run("exec", "--", "/bin/false").code for _ in range(5)]
    tap.eq(ends, [1] * 5, f"{who}: an exit status is no failure of exec")
    s.close()


CODE = "print(6 * 7)  # \x1b]0;owned\x07 \u202e gnp.elif\n"


def approvals(who):
    s = State(who)
    hitl = s.policy("approval:\n  mode: HITL\n")
    path = s.home / "p.py"
    path.write_text(CODE)
    os.chmod(path, 0o644)
    ask = ["run", "--json", "--policy", hitl, "--no-wait", "--profile", "standard", str(path)]
    command = programs.command(["approve"], who)
    env = clean_env(s.env)
    r = s.run(*ask)
    tap.ok(r.code == exits.NEVER_RAN and r["status"] == "denied" and r.rules() == ["gate.approval"] and "cordon approve" in r["violations"][0]["hint"],
           f"{who}: HITL: a run is refused until a person says yes", r.story())
    listed = s.run("approve", "list", "--json").json
    tap.ok(listed and len(listed) == 1 and listed[0]["state"] == "asked", f"{who}: a question is in the list of approvals", listed)
    ident = listed[0]["id"] if listed else "none"
    shown = s.run("approve", "show", ident)
    tap.ok("print(6 * 7)" in shown.out and not any(c in shown.out for c in "\x1b\x07\u202e") and "sha256:" in shown.out,
           f"{who}: show prints the code, and nothing in it acts on a terminal", repr(shown.out))
    tap.eq((s.run("approve", "show", ident, "--json").json or {}).get("code"), CODE, f"{who}: approve show --json has the code byte for byte")
    r = s.run("approve", "yes", ident, "--why", "me")
    tap.ok(r.code == exits.FAILED and "who asks does not answer" in r.err, f"{who}: the process that asked cannot say yes", r.err)
    code, text = apart([*command, "yes", ident, "--why", "sly"], env, terminal=False)
    tap.ok(code == exits.FAILED and "terminal of your own" in text, f"{who}: a process that forked away from the asking one cannot say yes", code, text)
    code, text = apart([*command, "yes", ident, "--why", "read it"], env)
    tap.ok(code == 0, f"{who}: a person at a terminal of his own can say yes", code, text)
    r = s.run(*ask)
    tap.ok(r.code == 0 and r["stdout"] == "42\n", f"{who}: exactly the code that was approved runs", r.story())
    r = s.run(*ask)
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.approval"], f"{who}: approved code runs once", r.story())
    second = (s.run("approve", "list", "--json").json or [{}])[0].get("id", "none")
    path.write_text(CODE + "\n")
    r = s.run(*ask)
    tap.ok(r.code == exits.NEVER_RAN and second not in r["reason"], f"{who}: a byte more is another question", r.story())
    tap.eq(s.run("approve", "no", second, "--why", "no more").code, 0, f"{who}: anybody may say no")
    path.write_text(CODE)
    r = s.run(*ask)
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.denied"] and "no more" in r["reason"], f"{who}: a run that a person denied ends with the reason", r.story())
    # a run that waits goes on when it is answered
    path.write_text("print('waited')\n")
    waiting = s.start("run", "--json", "--policy", hitl, "--profile", "standard", str(path))
    ident = None
    for _ in range(400):
        for a in s.run("approve", "list", "--json").json or []:
            if "waited" in s.run("approve", "show", a["id"], "--json")["code"]:
                ident = a["id"]
        if ident:
            break
        time.sleep(0.05)
    code, text = apart([*command, "yes", ident or "none", "--why", "fine"], env)
    got = finish(waiting)
    tap.ok(code == 0 and got[1].get("stdout") == "waited\n", f"{who}: a run that waits goes on after the yes", code, text, got)
    if who == "user" and os.geteuid() == 0:
        strict = s.policy("approval:\n  mode: HITL\n  approvers: other-user\n")
        config = s.home / "config" / "cordon"
        config.mkdir(parents=True)
        shutil.copy(strict, config / "policy.yaml")
        for p in (config.parent, config, config / "policy.yaml"):
            s.own(p)
        os.chmod(config / "policy.yaml", 0o600)
        own = dict(s.env, XDG_CONFIG_HOME=str(config.parent))
        r = cordon(programs, ["run", "--json", "--no-wait", "--profile", "standard", str(path)], who, env=own)
        ident = (s.run("approve", "list", "--json").json or [{}])[-1].get("id", "none")
        code, text = apart([*command, "yes", ident, "--why", "same user"], clean_env(own))
        tap.ok(code == exits.FAILED and "another user" in text, "other-user: the same uid is not enough", code, text)
        code, text = apart([*programs.command(["approve"], "root"), "yes", ident, "--why", "root looked"], env)
        tap.ok(code == 0, "other-user: root can, in the user's folder", code, text)
        owners = {p.stat().st_uid for p in s.dir.rglob("*")}
        tap.eq(owners, {ROOTLESS}, "other-user: root leaves no file of its own in the user's folder")
    records = [e for e in s.audit() if e["kind"] == "approval"]
    words = json.dumps(records)
    tap.ok("read it" in words and "no more" in words and "gate.approval.answered" in words,
           f"{who}: questions, answers and reasons are in the audit", len(records))
    s.close()


def stopped_at_start(who):
    """A run whose worker is still starting is ended by a stop like any other, and says who did it."""
    s = State(who)
    program = s.home / "program.py"
    program.write_text("while True: pass\n")  # whenever it is caught, it does not end by itself
    os.chmod(program, 0o644)
    p = s.start("run", "--json", "--ro", "/usr/share/doc:/doc", str(program))  # no warm child can have that
    held = None
    while not held and p.poll() is None:
        tree = traces.below(p.pid).values()
        worker = [q.pid for q in tree if q.name == "cordon-python"]
        if worker and any(q.name == "cordon-nest" for q in tree):  # the jail is built, and the interpreter starts
            os.kill(worker[0], signal.SIGSTOP)
            held = worker[0]
    stop = s.run("stop", "--json", "--why", "too early")
    code, result, err = finish(p)
    tap.ok(held and stop["stopped"] is True and (result.get("error") or {}).get("type") == "Stopped" and "too early" in result["reason"],
           f"{who}: a run that `stop` ends while its worker starts says that it was stopped, and why", held, stop.story(), code, result, err)
    s.run("resume")
    s.close()


def on_record(who):
    """The beginning is written before the code meets its parser, whatever becomes of it."""
    s = State(who)
    program = s.home / "program.py"
    for text, status, hitl in (("import subprocess\n", "blocked", False), ("print(1)\n", "ok", False), ("print(2)\n", "denied", True)):
        program.write_text(text)
        os.chmod(program, 0o644)
        before = len(s.audit())
        r = s.run("run", "--json", "--no-wait", *(["--policy", s.policy("approval:\n  mode: HITL\n")] if hitl else []), str(program))
        new = [e for e in s.audit()[before:] if e["kind"] in ("begin", "end", "refusal")]
        tap.ok(r["status"] == status and [e["kind"] for e in new] == ["begin", "end"] and new[1]["status"] == status,
               f"{who}: {status}: a begin, and an end that says so", (r.story(), new))
        went = ["intake", "connect", "prepare", "admit", "start", "record", "precheck", "check", "retry", "decide", "confirm", "run", "collect"]
        went = went[:{"blocked": 8, "denied": 10}.get(status)] + ["clean"]
        tap.eq(list(new[-1]["steps"]), went, f"{who}: {status}: the end names the steps of the run")


def no_secret_on_record(who):
    """A secret of the caller's environment that somebody put into a command line is in no record."""
    s = State(who)
    secret = "plain-words-without-a-form"
    r = cordon(programs, ["exec", "--json", "--", "/bin/echo", f"x{secret}y{secret}"], who, env={**s.env, "SERVICE_TOKEN": secret})
    records = json.dumps(s.audit())
    tap.ok(r["status"] == "ok" and secret not in records and records.count("x[REDACTED:environment]y[REDACTED:environment]") == 2,
           f"{who}: a secret in the arguments is in neither of the two records", records)


def arena(who):
    s = State(who)
    for name, verdict in (("yes", "approve"), ("no", "reject")):
        judge = s.home / name
        judge.write_text("#!/bin/sh\ncat >/dev/null\nprintf 'cordon-verdict 1\\ncode %s\\nverdict " + verdict +
                         "\\nreason a test\\n' \"$CORDON_CODE_SHA256\"\n")
        os.chmod(judge, 0o755)
        s.own(judge)
    def policy(*judges):
        rows = "".join(f"    - name: j{i}\n      command: [{s.home / j}]\n" for i, j in enumerate(judges))
        return s.policy("arena:\n  enabled: true\n" + (f"  judges:\n{rows}" if judges else ""))
    agree, disagree, empty = policy("yes", "yes"), policy("yes", "no"), policy()
    r = s.run("exec", "--json", "--policy", agree, "--", "/bin/true")
    tap.eq(r.code, 0, f"{who}: a program that two judges accept runs", r.story())
    r = s.run("exec", "--json", "--policy", disagree, "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.arena"] and "j1 rejects: a test" in r["reason"], f"{who}: a program that one of two judges rejects is blocked", r.story())
    r = s.run("exec", "--json", "--policy", empty, "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.arena"] and "no gateway to models answers" in r["reason"] and "cordon proxy" in r["reason"],
           f"{who}: an arena without judges and without a gateway blocks, and says what to do", r.story())
    s.close()


def roles(who):
    s = State(who)
    r = s.run("exec", "--json", "--role", "explore", "--", "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and r.rules() == ["gate.role"], f"{who}: a worker of type explore runs nothing", r.story())
    # tools that the code calls pass the gate, too
    call = "try:\n    print(echo(1))\nexcept RuntimeError as e:\n    print('no:', e)\n"
    options = ["run", "--json", "--profile", "standard", "--tool", "echo"]
    r = s.run(*options, "-", text=call)
    tap.ok(r["stdout"] == "{'args': [1], 'kwargs': None}\n" and not r["violations"], f"{who}: a call of risk low is made", r.story())
    r = s.run(*options, "--policy", s.policy("tools:\n  echo: {risk: critical}\n"), "-", text=call)
    tap.ok((r["stdout"] or "").startswith("no: ") and r.rules() == ["gate.system"] and r["status"] == "ok",
           f"{who}: a call of risk critical is not made, and the program reads why", r.story())
    r = s.run(*options, "--policy", s.policy("roles:\n  execute:\n    tools: [run]\n"), "-", text=call)
    tap.ok((r["stdout"] or "").startswith("no: ") and r.rules() == ["gate.role"], f"{who}: a call of a tool that the role does not have is not made", r.story())
    s.close()


def state_folder(who):
    """A program never writes what the gate and the audit believe."""
    s = State(who)
    s.run("exec", "--", "/bin/true")
    inside, beside = s.dir / "audit", s.home / "beside"
    beside.mkdir()
    s.own(beside)
    for path, fine in ((s.dir.parent, False), (s.dir, False), (inside, False), (s.dir / "gate.live", False), (beside, True)):
        r = s.run("exec", "--json", "--rw", path, "--", "/bin/true")
        tap.ok((r.code == 0) == fine and (fine or "state folder" in r.err), f"{who}: --rw {str(path).replace(str(s.home), '...')}: "
               + ("runs" if fine else "refused by name"), r.story())
    s.close()


def escalation():
    r = cordon(programs, ["escalate", "--category", "CODE", "--attempt", "3", "--json"])
    tap.ok(r.code == 0 and r["action"] == "escalate" and r["next_tier"] == "coder", "escalate: the third failure goes up", r.out)
    r = cordon(programs, ["escalate", "--category", "TIMEOUT", "--attempt", "1", "--optional"])
    tap.ok(r.code == 0 and r.out.startswith("skip\n"), "escalate: an optional step that timed out is skipped", r.out)
    r = cordon(programs, ["escalate", "--category", "CODE", "--attempt", "3", "--tier", "architect"])
    tap.ok(r.code == 0 and r.out.startswith("stop\n"), "escalate: above the top tier there is nobody", r.out)
    for bad in (["--category", "X", "--attempt", "1"], ["--category", "CODE"], ["--attempt", "1"], ["--category", "CODE", "--attempt", "0"],
                ["--category", "CODE", "--attempt", "1", "--tier", "boss"], ["--category", "CODE", "--attempt", "1", "more"]):
        r = cordon(programs, ["escalate", *bad])
        tap.ok(r.code == exits.USAGE and r.err.count("\n") == 1, f"escalate {' '.join(bad)} is a usage error", r.err)


def files_on_record(who):
    """A tool for the files of a session that the gate refuses is one record, as a run is."""
    s = State(who)
    s.run("session", "new", "aa")
    for n, (action, words, tool) in enumerate((("write", "a\0text", "WriteFile"), ("restore", "genesis\0", "WriteFile")), 1):
        r = s.run("session", "files", "--role", "explore", "aa", action, text=words)
        found = [x for x in s.audit() if x["kind"] == "refusal"]
        tap.ok(r.code == 1 and len(found) == n and (found[-1]["tool"], found[-1]["session"]) == (tool, "aa") and found[-1]["client_id"].startswith("uid:")
               and "gate.role" in json.dumps(found[-1]), f"{who}: {action} of a session's files that a role lacks is one record, with who asked", found, r.story())
    r = s.run("session", "files", "--role", "execute", "aa", "write", text="a\0text")
    tap.ok(r.code == 0 and len([x for x in s.audit() if x["kind"] == "refusal"]) == 2, f"{who}: one that is not refused is no refusal on record", r.story())
    s.run("pool", "stop", "--force")
    s.close()


for who in users():
    stop_and_resume(who)
    places_and_rates(who)
    breakers(who)
    approvals(who)
    stopped_at_start(who)
    on_record(who)
    files_on_record(who)
    no_secret_on_record(who)
    arena(who)
    roles(who)
    state_folder(who)
escalation()
tap.done()
