#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a person reads: one line for each refusal, with what and when; sizes in units; colour on a terminal only; and a wait
or a run that Ctrl-C ends says so. Usage: messages.py BUILD"""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import exits
import tapsys
from gatetest import State
from pooltest import until
from tapsys import Tap, clean_env, users

BUILD = sys.argv[1]
tap = Tap()
programs = tapsys.Programs(BUILD)
FOREVER = ["--", "/bin/sleep", "100000"]
# Ours is seen in a child that is about to become cordon and already has its name: hears() must not take it for cordon's.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def one_line(r, pattern, name):
    tap.ok(r.err.count("\n") == 1 and re.search(pattern, r.err), name, r.story())


def refusals(who):
    s = State(programs, who)
    r = s.run("run", "-c", "import subprocess")
    one_line(r, r"^cordon: blocked \(input\): line 1: Blocked import: subprocess; ", f"{who}: a program that is blocked for one reason has one line")
    r = s.run("run", "-c", "import subprocess\neval('1')")
    tap.eq([line.split(":")[1] for line in r.err.splitlines()], [" blocked (input)"] * 2, f"{who}: a program that is blocked for two reasons has two lines", r.story())
    r = s.run("exec", "--role", "explore", "--", "/bin/true")
    one_line(r, r"^cordon: denied \(gate\): role explore does not have the tool exec; ", f"{who}: a run that a role denies has one line")
    r = s.run("exec", "--timeout", "200ms", *FOREVER)
    one_line(r, r"^cordon: timeout: Execution timeout exceeded \(0\.200s\)\n", f"{who}: a run that the time limit ends has one line")
    r = s.run("run", "--memory", "64m", "--memory-by", "rlimit", "--profile", "standard", "-c", "x = bytearray(80 * 10**9)")
    said = [line for line in r.err.splitlines() if line.startswith("cordon: ")]
    tap.ok(len(said) == 1 and "asked for 74.5 GB at once; the limit is 64 MB" in said[0] and r.code == exits.LIMIT,
           f"{who}: memory that was asked for and its limit are in units, in one line", r.story())
    r = s.run("exec", "--output", "1k", "--", "/usr/bin/yes")
    tap.ok("output: more than 10 KB of output" in r.err, f"{who}: a flood of output is told in units", r.story())
    s.close()


def short_of_host(who):
    """What the machine or the caller's own limits do not give, and what to do about it."""
    s = State(programs, who)
    few = subprocess.run(["/usr/bin/prlimit", "--nofile=16", *programs.command(["exec", "--", "/bin/true"], who)], env=clean_env(s.env, who), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    tap.ok(few.returncode == exits.NEVER_RAN and "(raise `ulimit -n`)" in few.stderr and "not where cordon is installed" not in few.stderr, f"{who}: too few descriptors are told as that, with what to raise", few)
    r = s.run("exec", "--", "/bin/sh", "-c", "kill -TRAP $$")
    tap.ok(r.code == 128 + signal.SIGTRAP and "try --memory 4g" in r.err, f"{who}: a program that ends as node does without memory is told what to try", r.story())
    s.close()


def rates(who):
    s = State(programs, who)
    policy = s.policy("rates: {executions: 2, window: 1000s}\n")
    for _ in range(2):
        s.run("exec", "--policy", policy, "--", "/bin/true")
    r = s.run("exec", "--policy", policy, "--", "/bin/true")
    m = re.fullmatch(r"cordon: denied \(gate\): rate limit: 2 runs per 1000 s; try again in (\d+) s; or do more in one run\n", r.err)
    j = s.run("exec", "--policy", policy, "--json", "--", "/bin/true")
    after = (j["error"] or {}).get("retry_after_s", 0)
    tap.ok(m and 0 < after <= int(m.group(1)) <= 1000, f"{who}: a rate limit says what, and when to try again", r.story(), j["error"])
    s.close()


def ended_by(p, number):
    p.send_signal(number)
    out, err = p.communicate(timeout=60 * tapsys.SLOW)
    return p.returncode, err.decode()


def queue(who):
    s = State(programs, who)
    policy = s.policy("rates: {concurrent: 1}\n")
    first = s.start("exec", "--policy", policy, "--", "/usr/bin/python3", "-S", "-c", "print(1, flush=True)\nimport time\ntime.sleep(100000)")
    first.stdout.readline()  # it runs
    r = s.run("exec", "--policy", policy, "--no-wait", "--", "/bin/true")
    one_line(r, r"^cordon: denied \(gate\): queue: all 1 slots are taken; try again in a moment; ", f"{who}: without a wait a full queue has one line")
    second = s.start("exec", "--policy", policy, "--", "/bin/true")
    line = second.stderr.readline().decode()
    tap.eq(line, "cordon: waiting for a slot: every slot is taken\n", f"{who}: who waits for a slot is told")
    code, err = ended_by(second, signal.SIGINT)
    tap.ok(code == exits.INTERRUPTED and err == "cordon: denied: interrupted (Ctrl-C) before it ran\n", f"{who}: Ctrl-C ends the wait for a slot and says so", code, err)
    code, err = ended_by(first, signal.SIGINT)
    tap.ok(code == exits.INTERRUPTED and err == "cordon: interrupted (Ctrl-C)\n", f"{who}: Ctrl-C ends a run and says so", code, err)
    ask = s.policy("approval: {mode: HITL}\n")
    r = s.run("exec", "--policy", ask, "--no-wait", "--", "/bin/true")
    one_line(r, r"^cordon: denied \(gate\): waits for a person: approval ap-", f"{who}: with --no-wait nobody is told that it waits for approval")
    asked = s.start("exec", "--policy", ask, "--", "/bin/echo", "other")
    line = asked.stderr.readline().decode()
    code, err = ended_by(asked, signal.SIGTERM)
    tap.ok("waiting for approval" in line and code == exits.by_signal(signal.SIGTERM) and err == "cordon: denied: ended by SIGTERM before it ran\n",
           f"{who}: a signal ends the wait for a person and says so", code, line, err)
    s.close()


def hears(p):
    """Whether cordon itself, and no longer the process that becomes it, handles SIGINT."""
    try:
        status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
    except OSError:
        return True
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigCgt:", "SigBlk:"))]
    return status.startswith("Name:\tcordon\n") and any(m >> (signal.SIGINT - 1) & 1 for m in masks)


def early(who):
    """Ctrl-C at any moment from the first on: while the policy is read, the jail is built, the program judged."""
    s = State(programs, who)
    policy = s.policy("breakers: {failures: 1000}\n")
    ends = set()
    for kind in (["run", "--policy", policy, "-c", "while True: pass"], ["exec", "--policy", policy, "--", "/bin/sleep", "100000"]):
        for delay in range(12):
            p = s.start(*kind)
            until(lambda: hears(p))
            time.sleep(delay * 0.002)
            ends.add(ended_by(p, signal.SIGINT))
    tap.ok(ends <= {(exits.INTERRUPTED, f"cordon: interrupted (Ctrl-C){when}\n") for when in ("", " before it ran")}, f"{who}: Ctrl-C before the program runs says so, too", ends)
    p = subprocess.Popen(programs.command(["run", "-"], who), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(s.env), cwd="/")
    until(lambda: hears(p))
    tap.eq(ended_by(p, signal.SIGINT), (exits.INTERRUPTED, "cordon: interrupted (Ctrl-C) before it ran\n"), f"{who}: Ctrl-C while the program is read says so")
    s.close()


def unjudged(who):
    """A program that takes a while to judge: the signal is there before the verdict, as a rule."""
    s = State(programs, who)
    for number, words in ((signal.SIGINT, "interrupted (Ctrl-C)"), (signal.SIGTERM, "ended by SIGTERM")):
        code, err = exits.DONE, ""
        while code == exits.DONE:  # the verdict was quicker
            p = s.start("check", "--profile", "standard", "-c", "y = (1, 2, 3, 4)\n" * 2900)
            until(lambda: hears(p))
            code, err = ended_by(p, number)
        tap.ok(code == exits.by_signal(number) and re.fullmatch(rf"cordon check: {re.escape(words)}( before it ran)?\n", err),
               f"{who}: a check that {signal.Signals(number).name} ends before its verdict says so, and by its status", code, err)
    s.close()


def readers(who):
    for args in (["policy", "show"], ["--help"], ["run", "--help"]):
        p = subprocess.Popen(programs.command(args, who), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=clean_env(who=who))
        p.stdout.close()  # before it writes, or after: it is never told more than by the signal's status
        err = p.stderr.read()
        p.stderr.close()
        tap.ok(p.wait(60) in (exits.DONE, exits.READER_LEFT) and err == b"", f"{who}: `{' '.join(args)}` whose reader leaves says nothing", p.returncode, err)


def on_terminal(who, args, **env):
    return tapsys.on_terminal(programs, args, who, env)


def typed(who, text, **env):
    """(exit status, what the terminal shows) of `cordon run` at a terminal where TEXT is typed, and Ctrl-D once behind it."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen(programs.command(["run"], who), stdin=theirs, stdout=theirs, stderr=theirs, env=clean_env({"TERM": "xterm", **env}, who), start_new_session=True)
    os.close(theirs)
    seen, sent = b"", False
    while True:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # nobody has it open any more
            break
        if b"Ctrl-D ends it" in seen and not sent:
            os.write(ours, text + b"\x04")
            sent = True
    os.close(ours)
    return p.wait(60), seen.replace(b"\r", b"")


def at_a_terminal(who):
    note = b"cordon: reading the program from standard input; Ctrl-D ends it\n"
    code, seen = typed(who, b"print(6 * 7)\n'a' + 'b'\n")
    tap.eq((code, seen[:len(note)], seen.endswith(b"42\n'ab'\n")), (0, note, True), f"{who}: run at a terminal says that it reads standard input, and one Ctrl-D is enough", seen)
    for env in ({}, {"NO_COLOR": "1"}):
        code, seen = typed(who, b"import subprocess\n", **env)
        lines = [l for l in seen.split(b"\n") if b"blocked (input)" in l]
        tap.ok(code == exits.NEVER_RAN and len(lines) == 1 and (b"\x1b[" in lines[0]) == (not env), f"{who}: a refusal at a terminal is one line, {'without colour where NO_COLOR is set' if env else 'in colour'}", code, seen)


def listed():
    """`make messages`: the list that is read in one go has what a person is told, wherever it stands."""
    r = subprocess.run([str(pathlib.Path(__file__).resolve().parents[2] / "scripts/messages")], capture_output=True, text=True, timeout=60)
    for words in ("reading the program from standard input", "who asks does not answer", "is no absolute path", "nothing waits for an answer"):
        tap.ok(r.returncode == 0 and words in r.stdout, f"the list of messages has: {words}", r.stderr[-500:])


def colours(who):
    args = ["exec", "--no-such", "--", "x"]
    tap.eq(on_terminal(who, args), b"\x1b[1;31mcordon exec:\x1b[0m unknown option --no-such; see --help\r\n", f"{who}: a message on a terminal has colour")
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        tap.ok(b"\x1b" not in on_terminal(who, args, **env), f"{who}: a message on a terminal has no colour with {env}")
    tap.ok(b"\x1b" in on_terminal(who, args, NO_COLOR=""), f"{who}: an empty NO_COLOR says nothing about colour")
    plain = on_terminal(who, ["run", "--intake", "text", "-c", "Sure:\n\n```python\nprint(1)\n```\n"])
    tap.ok(b"cordon: ran the block of code at line 4" in plain and b"\x1b" not in plain, f"{who}: a note on a terminal has not the colour of errors", plain)
    r = tapsys.cordon(programs, args, who, env={"TERM": "xterm"})
    tap.ok("\x1b" not in r.err, f"{who}: a message into a pipe has no colour", r.err)


def resumes(who):
    s = State(programs, who)
    tap.eq(s.run("resume", "--why", "x").out, "nothing was stopped\n", f"{who}: resume where nothing was stopped says so")
    s.run("stop", "--why", "a test")
    tap.eq(s.run("resume", "--why", "x").out, "resumed: runs may begin again\n", f"{who}: resume after a stop says so")
    s.close()


def cut(who):
    long = "/" + "very-long-name-of-a-folder/" * 12
    r = tapsys.cordon(programs, ["exec", "--ro", long, "--", "/bin/true"], who)
    tap.ok(r.err.rstrip().endswith(": No such file or directory"), f"{who}: a message with a long path still ends in the reason", r.err)
    s = State(programs, who)
    r = s.run("run", "--policy", s.policy("sessions: {no: 1}\n"), "-c", "1")
    tap.ok(r.err.endswith(", idle, memory_percent)\n"), f"{who}: a message about a policy is whole where it fits", r.err)
    r = s.run("run", "--policy", s.policy("no: 1\nnor: 1\n"), "-c", "1")
    tap.ok(re.search(r"[ ,](search|verification|rates|breakers|approval|arena|output|audit|escalation|profiles|roles)\.\.\. \(and 1 more: cordon policy check\)\n$", r.err),
           f"{who}: a message about a policy that does not fit ends behind a whole word", r.err)
    s.close()


listed()
for who in users():
    at_a_terminal(who)
    refusals(who)
    rates(who)
    short_of_host(who)
    queue(who)
    early(who)
    unjudged(who)
    readers(who)
    colours(who)
    resumes(who)
    cut(who)
tap.done()
