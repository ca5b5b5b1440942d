#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A yes is for what was shown, and for nothing else: input, folders, the session and its call. Each attack asks for
one thing, is approved, and then tries to run another with the same words; its twin runs what was approved."""
import json
import sys
import time

import exits
import gatetest
from gatetest import apart
from tapsys import Programs, Tap, clean_env, users

tap = Tap()
programs = Programs(sys.argv[1])


class Asking:
    """One user whose every run is approved by somebody else."""

    def __init__(self, who):
        self.who = who
        self.s = gatetest.State(programs, who)
        self.policy = self.s.policy("approval: {mode: HITL}\n")

    def file(self, name, text):
        path = self.s.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for p in (path.parent, path):
            self.s.own(p)
        return path

    def run(self, command, *args, **more):
        return self.s.run(command, "--policy", self.policy, "--no-wait", *args, **more)

    def approve(self, what):
        waiting = self.s.run("approve", "list", "--json").json or []
        ids = [q["id"] for q in (waiting.get("requests", []) if isinstance(waiting, dict) else waiting)]
        if not tap.ok(len(ids) == 1, f"{self.who}: somebody is asked about {what}", waiting):
            return
        code, text = apart([*programs.command(["approve"], self.who), "yes", ids[0], "--why", "read"], clean_env(self.s.env, self.who))
        tap.eq(code, 0, f"{self.who}: {what} is approved", text)


def standard_input(who):
    a = Asking(who)
    given = a.file("in/given.txt", "what was approved\n")
    args = ("exec", "--json", "--stdin", given, "--", "/bin/cat")
    a.run(*args)
    a.approve("a program with standard input")
    given.write_text("SOMETHING ELSE\n")
    r = a.run(*args)
    tap.ok(r["status"] == "denied" and "SOMETHING" not in r.out, f"{who}: another standard input is not what was approved", r.story())
    given.write_text("what was approved\n")
    r = a.run(*args)
    tap.eq(r["stdout"], "what was approved\n", f"{who}: the same standard input is what was approved", r.story())
    a.s.close()


def folders(who):
    """The same relative name in another working folder."""
    a = Asking(who)
    kept, emptied = a.file("one/out/kept", "x"), a.file("two/out/kept", "x")
    for p in (kept.parent, emptied.parent, kept.parent.parent, emptied.parent.parent):
        a.s.own(p)
    args = ("exec", "--json", "--rw", "out:/out", "--", "/bin/rm", "-f", "/out/kept")
    a.run(*args, cwd=kept.parent.parent)
    a.approve("a program that may write a folder")
    r = a.run(*args, cwd=emptied.parent.parent)
    tap.ok(r["status"] == "denied" and emptied.exists(), f"{who}: the same relative name in another folder is not what was approved", r.story())
    r = a.run(*args, cwd=kept.parent.parent)
    tap.ok(r["status"] == "ok" and not kept.exists(), f"{who}: the folder that was shown is", r.story())
    a.s.close()


def replaced(who):
    """The same path, and another folder there."""
    a = Asking(who)
    kept = a.file("one/out/kept", "x")
    for p in (kept.parent, kept.parent.parent):
        a.s.own(p)
    args = ("exec", "--json", "--rw", f"{kept.parent}:/out", "--", "/bin/rm", "-f", "/out/kept")
    a.run(*args)
    a.approve("a program that may write a folder by its path")
    kept.parent.rename(kept.parent.with_name("moved"))
    other = a.file("one/out/kept", "x")
    r = a.run(*args)
    tap.ok(r["status"] == "denied" and other.exists(), f"{who}: another folder at the path of one that was approved is not what was approved", r.story())
    a.s.close()


def streams(who):
    """What comes through a pipe cannot be shown: who approves is told so."""
    a = Asking(who)
    a.run("exec", "--json", "--stdin", "-", "--", "/bin/cat", text="what nobody saw\n")
    waiting = a.s.run("approve", "list", "--json").json or []
    ids = [q["id"] for q in (waiting.get("requests", []) if isinstance(waiting, dict) else waiting)]
    r = a.s.run("approve", "show", ids[0] if ids else "none")
    tap.ok(len(ids) == 1 and "a stream, which nobody has seen" in r.out, f"{who}: who approves a program is told that its input is a stream that nobody has seen", r.story())
    a.s.close()


def sources(who):
    """The folder that a program may write is known by where it is on the host, not by what the program calls it."""
    a = Asking(who)
    kept = a.file("real/out/kept", "x")
    for p in (kept.parent, kept.parent.parent):
        a.s.own(p)
    policy = a.s.policy(f"arena:\n  enabled: true\n  risk: critical\n  paths: ['{kept.parent.parent}']\n  judges: [{{name: no, command: [/bin/false]}}, {{name: never, command: [/bin/false]}}]\n")
    r = a.s.run("exec", "--json", "--policy", policy, "--rw", f"{kept.parent}:/harmless", "--", "/bin/rm", "-f", "/harmless/kept")
    tap.ok(r["status"] in ("blocked", "denied") and kept.exists(), f"{who}: a run that writes a folder of arena.paths is judged, whatever the program calls the folder", r.story())
    r = a.s.run("exec", "--json", "--policy", policy, "--", "/bin/true")
    tap.eq(r["status"], "ok", f"{who}: a run that writes no such folder is not judged", r.story())
    r = a.s.run("audit", "tail", "--json", "--lines", "20")
    tap.ok(str(kept.parent) in r.out, f"{who}: the record of a run names the folder of the host that it may write", r.story())
    a.s.close()


def sessions(who):
    """The same line in another session, and later in the same one."""
    a = Asking(who)
    free = a.s.policy("approval: {mode: AUTONOMOUS}\n")
    for name, text in (("aa", "harmless"), ("bb", "HARM")):
        a.s.run("session", "new", name, "--policy", free)
        a.s.run("session", "run", name, "--policy", free, "-", text=f"def act(): print('{text}')\n")
    act = "act()\n"
    a.run("session", "run", "aa", "--json", "-", text=act)
    a.approve("a call of a session")
    r = a.run("session", "run", "bb", "--json", "-", text=act)
    tap.ok(r["status"] == "denied" and "HARM" not in r.out, f"{who}: the same line in another session is not what was approved", r.story())
    a.s.run("session", "run", "aa", "--policy", free, "-", text="def act(): print('HARM')\n")
    r = a.run("session", "run", "aa", "--json", "-", text=act)
    tap.ok(r["status"] == "denied" and "HARM" not in r.out, f"{who}: the same line after another call is not what was approved", r.story())
    a.s.run("session", "new", "cc", "--policy", free)
    a.run("session", "run", "cc", "--json", "-", text="print('approved')\n")
    for q in json.loads(a.s.run("approve", "list", "--json").out or "[]"):
        apart([*programs.command(["approve"], who), "yes", q["id"], "--why", "read"], clean_env(a.s.env, who))
    r = a.run("session", "run", "cc", "--json", "-", text="print('approved')\n")
    tap.eq(r["stdout"], "approved\n", f"{who}: the call that was approved runs in its session", r.story())
    a.s.run("pool", "stop")
    a.s.close()


def iterations(who):
    """approval.iterations is the end of a session, whoever would say yes."""
    s = gatetest.State(programs, who)
    policy = s.policy("approval: {iterations: 3}\n")
    s.run("session", "new", "aa", "--policy", policy)
    got = [s.run("session", "run", "aa", "--json", "--policy", policy, "-", text=f"print({i})\n") for i in range(5)]
    tap.eq([r["status"] for r in got], ["ok"] * 3 + ["denied"] * 2, f"{who}: a session stops at approval.iterations", got[3].story())
    r = s.run("repl", "--policy", policy, text="".join(f"print('block', {i})\n" for i in range(6)))
    tap.eq(r.out.count("block "), 3, f"{who}: a REPL stops at approval.iterations", r.story())
    s.run("pool", "stop")
    s.close()


def contents(who):
    """approval.contents: a yes is for what lies in the folders, too."""
    a = Asking(who)
    a.policy = a.s.policy("approval: {mode: HITL, contents: true}\n")
    shown = a.file("data/list", "what was approved\n")
    args = ("exec", "--json", "--ro", f"{shown.parent}:/data", "--", "/bin/cat", "/data/list")
    a.run(*args)
    a.approve("a program with a folder, contents and all")
    for what, change, back in (
            ("another text in a file", lambda: shown.write_text("SOMETHING ELSE\n"), lambda: shown.write_text("what was approved\n")),
            ("a file more", lambda: a.file("data/more", "x"), lambda: (shown.parent / "more").unlink()),
            ("a link more", lambda: (shown.parent / "link").symlink_to("/etc"), lambda: (shown.parent / "link").unlink()),
            ("another mode of a file", lambda: shown.chmod(0o755), lambda: shown.chmod(0o644))):
        change()
        r = a.run(*args)
        tap.ok(r["status"] == "denied" and r["stdout"] == "", f"{who}: with {what} the folder is not what was approved", r.story())
        back()
    r = a.run(*args)
    tap.eq(r["stdout"], "what was approved\n", f"{who}: with the same contents it is", r.story())
    # it changes while somebody is asked
    before = {q["id"] for q in a.s.run("approve", "list", "--json").json or ()}
    p = a.s.start("exec", "--json", "--policy", a.policy, *args[2:])
    asked = wait_for_question(a, before, p)
    shown.write_text("SOMETHING ELSE\n")
    apart([*programs.command(["approve"], who), "yes", asked, "--why", "read"], clean_env(a.s.env, who))
    out, err = p.communicate(timeout=60)
    tap.ok(b"SOMETHING" not in out and b'"denied"' in out and b"no longer" in out,
           f"{who}: contents that change while somebody is asked are not run", out, err)
    # what cannot be looked at whole is not asked about
    shown.write_bytes(bytes(65 << 20))
    r = a.run(*args)
    tap.ok(r.code == exits.NEVER_RAN and "64 MiB" in r.err and str(shown.parent) in r.err, f"{who}: more than can be summed is refused by name", r.story())
    a.policy = a.s.policy("approval: {mode: HITL}\n")
    r = a.run(*args)
    tap.ok(r["status"] == "denied", f"{who}: without approval.contents it can be asked about", r.story())
    a.s.close()


def asked_tool(who):
    """A tool that the policy asks about is bound as in HITL: its standard input, and what lies in its folders."""
    a = Asking(who)
    a.policy = a.s.policy("approval: {contents: true}\ntools: {exec: {approval: true}}\n")
    given, shown = a.file("in/given.txt", "the input\n"), a.file("data/list", "the folder\n")
    args = ("exec", "--json", "--stdin", given, "--ro", f"{shown.parent}:/data", "--", "/bin/cat", "-", "/data/list")
    a.run(*args)
    a.approve("a use of a tool that the policy asks about")
    for what, path in (("another standard input", given), ("other contents of a folder", shown)):
        before = path.read_text()
        path.write_text("SOMETHING ELSE\n")
        r = a.run(*args)
        tap.ok(r["status"] == "denied" and "SOMETHING" not in r.out, f"{who}: of a tool that the policy asks about, {what} is not what was approved", r.story())
        path.write_text(before)
    r = a.run(*args)
    tap.eq(r["stdout"], "the input\nthe folder\n", f"{who}: of a tool that the policy asks about, what was approved runs", r.story())
    a.s.close()


def languages(who):
    """0 is false in Python and true in Ruby: the same text does nothing in one and prints in the other."""
    a = Asking(who)
    both = "0 and print('HARM')\n"
    a.run("run", "--json", "--lang", "python", "-", text=both)
    a.approve("a program in Python")
    r = a.run("run", "--json", "--lang", "ruby", "-", text=both)
    tap.ok(r["status"] == "denied" and "HARM" not in r.out, f"{who}: the same text as a program of another language is not what was approved", r.story())
    r = a.run("run", "--json", "--lang", "python", "-", text=both)
    tap.eq((r["status"], r["stdout"]), ("ok", ""), f"{who}: in the language that was shown it is", r.story())
    a.s.close()


def wait_for_question(a, before, process):
    while process.poll() is None:
        new = [q["id"] for q in a.s.run("approve", "list", "--json").json or () if q["id"] not in before]
        if new:
            return new[0]
        time.sleep(0.02)
    return "none"


def tasks(who):
    """One-shot runs of one task: the end is the same, whichever command and whatever code."""
    s = gatetest.State(programs, who)
    policy = s.policy("approval: {iterations: 3}\nbreakers: {failures: 1000}\n")

    def step(task, i):
        words = ["--json", "--policy", policy, *(["--task", task] if task else [])]
        if i % 2:
            return s.run("exec", *words, "--", "/bin/echo", str(i))
        return s.run("run", *words, "-", text=f"print({i})\n")
    got = [step("fix-the-bug", i) for i in range(5)]
    tap.eq([r["status"] for r in got], ["ok"] * 3 + ["denied"] * 2, f"{who}: runs of one task stop at approval.iterations", got[3].story())
    tap.eq(got[4].rules(), ["gate.iterations"], f"{who}: the refusal names the rule", got[4].story())
    got = [step("another", 1), step(None, 2), step(None, 3)]
    tap.eq([r["status"] for r in got], ["ok"] * 3, f"{who}: another task, and runs of no task, go on", *[r.story() for r in got])
    ends = [r for r in s.audit() if r.get("kind") == "end"]
    tap.ok(ends and "fix-the-bug" in json.dumps(ends[0]), f"{who}: the record of a run has its task", ends[:1])
    for bad in ("", "a b", "x" * 65, "../x"):
        r = s.run("exec", "--policy", policy, "--task", bad, "--", "/bin/true")
        tap.ok(r.code == exits.NEVER_RAN and "--task" in r.err, f"{who}: --task {bad[:8]!r} is no name", r.story())
    s.close()


for who in users():
    contents(who)
    asked_tool(who)
    if (programs.bin / "cordon-ruby").exists():
        languages(who)
    tasks(who)
    standard_input(who)
    folders(who)
    sessions(who)
    replaced(who)
    streams(who)
    sources(who)
    iterations(who)
tap.done()
