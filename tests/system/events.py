#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a client reads: a run told as it goes on (--events), and every kind of object against its schema.
Usage: events.py BUILD"""
import json
import os
import re
import signal
import subprocess
import sys

import exits
import schema
import tapsys
from gatetest import State
from tapsys import Tap, clean_env, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
PROGRAM = """
import socket, sys
print("<first>", flush=True)
sys.stdin.readline()
try:
    socket.socket()
except OSError:
    print("refused", file=sys.stderr)
print("é" * 3)
6 * 7
"""


def events_of(r):
    return [json.loads(line) for line in r.out.splitlines()]


def faults_of(events):
    return [f for e in events for f in schema.of("event", e)]


def told(who):
    r = tapsys.cordon(programs, ["run", "--events", "--profile", "standard", "-c", PROGRAM], who)
    events = events_of(r)
    kinds = [e["event"] for e in events]
    result = events[-1].get("result") or {}
    tap.eq(faults_of(events), [], f"{who}: every event of a run follows its schema")
    tap.ok(kinds[0] == "started" and kinds[-1] == "result" and kinds.count("result") == 1 and events[0]["id"] == result["id"],
           f"{who}: a run begins with started and ends with its result", kinds)
    for stream in ("stdout", "stderr"):
        tap.eq("".join(e["text"] for e in events if e["event"] == stream), result[stream], f"{who}: the pieces of {stream} are its text in the result")
    tap.ok(result["stdout"] == "<first>\nééé\n" and result["value"] == "42" and r.code == exits.DONE, f"{who}: the result of --events is that of --json", r.story())
    tap.eq([e["violation"] for e in events if e["event"] == "violation"], result["violations"], f"{who}: each violation is told when it is seen")
    r = tapsys.cordon(programs, ["exec", "--events", "--", "/bin/sh", "-c", "echo one; exit 7"], who)
    events = events_of(r)
    tap.ok([e["event"] for e in events] == ["started", "stdout", "result"] and r.code == 7 and not faults_of(events), f"{who}: exec --events passes the status on", r.out)
    for args in (["run", "--events", "-c", "import subprocess"], ["exec", "--events", "--role", "explore", "--", "/bin/true"]):
        r = tapsys.cordon(programs, args, who)
        events = events_of(r)
        tap.ok([e["event"] for e in events] == ["result"] and r.code == exits.NEVER_RAN and not faults_of(events), f"{who}: {args[0]} that never ran has its result alone", r.out)


def in_time(who):
    """The first event is there while the program waits for its input: nothing is held back until the end."""
    p = subprocess.Popen(programs.command(["run", "--events", "--stdin", "-", "--profile", "standard", "-c", PROGRAM], who),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env(who=who), text=True)
    started, first = json.loads(p.stdout.readline()), ""
    while not first.endswith("first>\n"):
        first += json.loads(p.stdout.readline()).get("text", "?")
    p.stdin.close()
    rest = [json.loads(line) for line in p.stdout]
    tap.ok(started["event"] == "started" and first == "<first>\n" and rest[-1]["event"] == "result" and p.wait(60) == exits.DONE,
           f"{who}: what a program writes is told while it waits", first, rest)


def secrets(who):
    """A secret is not told, in whatever pieces it is written."""
    code = "import os, sys\nfor c in os.environ['MY_API_TOKEN']:\n    sys.stdout.write(c)\n    sys.stdout.flush()\nprint()\n"
    r = tapsys.cordon(programs, ["run", "--events", "--profile", "standard", "--env", "MY_API_TOKEN=tok-1234567890", "-c", code], who)
    text = "".join(e["text"] for e in events_of(r) if e["event"] == "stdout")
    tap.ok("1234567890" not in r.out and text == "[REDACTED:environment]\n", f"{who}: a secret that is written letter by letter is not told", r.out)


def progress(who):
    s = State(programs, who)
    policy = s.policy("approval: {mode: HITL}\n")
    p = s.start("exec", "--events", "--policy", policy, "--", "/bin/true")
    event = json.loads(p.stdout.readline())
    p.send_signal(signal.SIGTERM)
    rest = [json.loads(line) for line in p.stdout]
    tap.ok(event["event"] == "progress" and event["what"] == "approval" and re.fullmatch(r"ap-[0-9a-f]+", event["approval"] or "")
           and not faults_of([event, *rest]) and rest[-1]["event"] == "result" and p.wait(60) == exits.STOPPED, f"{who}: that a person is waited for is told", event, rest)
    r = s.run("exec", "--events", "--no-wait", "--policy", policy, "--", "/bin/echo", "another question")
    events = events_of(r)
    tap.ok([e["event"] for e in events] == ["result"] and events[0]["result"]["status"] == "denied" and re.search(r"\bap-[0-9a-f]+", r.out) and not faults_of(events),
           f"{who}: with --no-wait nothing is waited for, and the result names the approval", r.out)
    r = s.run("exec", "--events", "--no-such-option")
    tap.ok(r.out == "" and r.code == exits.NEVER_RAN, f"{who}: a wrong command line has no result", r.out, r.err)
    first = s.start("exec", "--policy", s.policy("rates: {concurrent: 1}\n"), "--", "/bin/sleep", "100000")
    s.wait_for(1)
    p = s.start("exec", "--events", "--policy", s.policy("rates: {concurrent: 1}\n"), "--", "/bin/true")
    event = json.loads(p.stdout.readline())
    first.terminate()
    rest = [json.loads(line) for line in p.stdout]
    tap.ok((event["event"], event.get("what")) == ("progress", "queue") and [e["event"] for e in rest] == ["started", "result"] and not faults_of([event, *rest])
           and p.wait(60) == exits.DONE, f"{who}: that a slot is waited for is told, and then it runs", event, rest)
    first.wait(60)
    s.run("stop", "--why", "a test")
    s.run("resume", "--why", "a test")
    records = s.audit()
    bad = [f for r in records for f in schema.of("audit", r)]
    tap.ok(records and not bad, f"{who}: every record of the audit follows its schema", *bad[:5])
    tap.ok({"begin", "end", "approval", "stop", "resume"} <= {r["kind"] for r in records}, f"{who}: records of five kinds were looked at", {r["kind"] for r in records})
    s.close()


def gone(who):
    p = subprocess.Popen(programs.command(["exec", "--events", "--", "/usr/bin/yes"], who), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(who=who))
    p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read()
    tap.ok(p.wait(60 * tapsys.SLOW) == exits.READER_LEFT and err == b"", f"{who}: a reader of events that leaves ends the run", p.returncode, err)


def schemas():
    tap.ok(schema.jsonschema is not None, "python3-jsonschema is installed (scripts/packages)")
    for name in schema.NAMES:
        tap.ok(schema.validator(name) is not None, f"schemas/{name}.schema.json is a schema")
    good = tapsys.cordon(programs, ["exec", "--json", "--", "/bin/true"], users()[0]).json
    for what, change in (("another status", {"status": "fine"}), ("a text for a number", {"exit_code": "0"}), ("an error of a run that is ok", {"error": {}}),
                         ("a key that nobody knows", {"extra": 1}), ("no id", {"id": None})):
        tap.ok(not schema.of("result", good) and schema.of("result", {**good, **change}), f"the schema of a result refuses {what}")


def in_sessions(who):
    """The same of a call of a session, and its record is as without."""
    name = tapsys.cordon(programs, ["session", "new", "--profile", "standard"], who).out.strip()
    r = tapsys.cordon(programs, ["session", "run", "--events", name, "-c", PROGRAM], who)
    events = events_of(r)
    kinds, result = [e["event"] for e in events], events[-1].get("result") or {}
    tap.ok(kinds[0] == "started" and kinds[-1] == "result" and not faults_of(events) and result["session"] == name, f"{who}: session run --events tells the call", r.out)
    tap.eq("".join(e["text"] for e in events if e["event"] == "stdout"), result["stdout"], f"{who}: the pieces of stdout of a call are its text in the result")
    record = json.loads(tapsys.cordon(programs, ["session", "export", name], who).out.splitlines()[-1])
    tap.ok(record["result"]["stdout"] == result["stdout"] and record["result"]["value"] == "42", f"{who}: the record of a call that was told is whole", record)
    r = tapsys.cordon(programs, ["session", "run", "--events", name, "-c", "eval('1')", "--role", "explore"], who)
    tap.ok([e["event"] for e in events_of(r)] == ["result"] and r.code == exits.NEVER_RAN, f"{who}: a call that never ran has its result alone", r.out)
    tapsys.cordon(programs, ["pool", "stop", "--force"], who)


if schema.jsonschema:
    schemas()
    for who in users():
        told(who)
        in_time(who)
        secrets(who)
        progress(who)
        gone(who)
        in_sessions(who)
else:
    tap.ok(False, "python3-jsonschema is installed (scripts/packages)")
tap.done()
