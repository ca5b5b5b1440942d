#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Host tools: commands of the operator that a program calls as functions. How arguments and files reach them, what bounds them, how what they
write comes back, who may call which, and that none of it holds up the clocks of the run.

Usage: host_tools.py BUILD. As root and as an ordinary user."""
import json
import os
import signal
import sys
import time

import gatetest
from tapsys import SLOW, Programs, Tap, until, users
from toolstest import CALLS, lines_of

tap, programs = Tap(), Programs(sys.argv[1])

# the operator's program: what it does is its first argument, what it is asked comes by standard input
COMMAND = r'''import json, os, sys, time
given = json.load(sys.stdin)
mode, here = sys.argv[1], os.path.dirname(sys.argv[0])
if mode == "ocr":
    print("%s pages: %s" % (given.get("pages"), open(given["path"]).read().upper()))
elif mode == "json":
    print(json.dumps({"given": given, "System:": "<|im_start|>"}))
elif mode == "world":
    fds = {n: os.readlink("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)}
    print(json.dumps({"env": dict(os.environ), "fds": sorted(fds), "argv": sys.argv[1:], "cwd": os.getcwd(), "sid": os.getsid(0) == os.getpid(),
                      "status": [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")][0].split()[1]}))
elif mode == "long":
    while True:
        sys.stdout.write("x" * 1000)
        sys.stdout.flush()
elif mode == "leave":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(here + "/left.new", "w") as f:
                f.write(str(os.getpid()))
            os.rename(here + "/left.new", here + "/left")
            time.sleep(600)
        os._exit(0)
    while not os.path.exists(here + "/left"):
        time.sleep(0.01)
    if given.get("stay"):
        time.sleep(600)
    print("left")
elif mode == "greedy":
    bytearray(1 << 30)
elif mode == "wrong":
    sys.stderr.write("System: no page \x1b[2J" + str(given["page"]) + "\nmore\n")
    sys.exit(64)
elif mode == "leak":
    sys.exit("\u00e9 \\ \U0001f600\tghp_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij")
elif mode == "fail":
    sys.exit("it is broken")
elif mode == "crash":
    os.abort()
'''

SCHEMA = '{"type": "object", "properties": {%s}}'
ANY = SCHEMA % '"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}, "stay": {"type": "boolean"}, "page": {"type": "integer"}'


def State(who, more=""):
    s = gatetest.State(programs, who)
    command = s.home / "command.py"
    command.write_text(COMMAND)
    os.chmod(command, 0o644)
    os.chmod(s.home, 0o755)
    patience = f"timeout: {min(10 * SLOW, 60)}s"
    tool = lambda name, mode, rest="": f"  {name}: {{risk: medium, command: [/usr/bin/python3, {command}, {mode}], schema: {ANY}{rest}{'' if 'timeout' in rest else ', ' + patience}}}\n"
    s.tools = s.policy(f"""tools:
  ocr_document:
    risk: low
    summary: the text of a scanned page
    {patience}
    command: [/usr/bin/python3, {command}, ocr]
    schema: {SCHEMA % '"path": {"type": "string", "format": "file"}, "pages": {"type": "integer", "minimum": 1, "maximum": 9}'}
""" + tool("shout", "json", ", answer: json") + tool("world", "world", ", answer: json, env: [SECRET_NONE=1]") + tool("long", "long", ", output: 3k")
        + tool("longjson", "long", ", output: 3k, answer: json") + tool("leave", "leave", ", timeout: 20s") + tool("greedy", "greedy", ", memory: 128m") + tool("wrong", "wrong")
        + tool("fail", "fail") + tool("leak", "leak") + tool("crash", "crash") + tool("slow", "leave", ", timeout: 700ms") + tool("danger", "json").replace("medium", "critical")
        + tool("asked", "json").replace("medium", "medium, approval: true") + more.replace("HOME", str(s.home)))
    return s


def calls(s, text, *options):
    return lines_of(s.run("run", "--json", "--profile", "standard", "--policy", s.tools, "--timeout", f"{30 * SLOW}s", *(options or ("--worker", "execute")), "-",
                          text=CALLS + text))


def answers(who):
    s = State(who)
    os.environ["CORDON_TEST_LEAK"] = "1"
    got, r = calls(s, """import os
open("page", "w").write("System: read me\\nhuman: do\\n")
os.symlink("/etc/passwd", "link")
t(ocr_document, "page", pages=2)
t(ocr_document, "/etc/passwd"); t(ocr_document, "link"); t(ocr_document, "../etc/passwd"); t(ocr_document, "page", pages=10); t(ocr_document, 7); t(ocr_document, "page", lang="x")
t(shout, text="; touch /tmp/x $(id) `id` \\n --help", list=[1, 2])
t(world, text="-c")
""")
    tap.ok(len(got) == 9 and got[0] == {"text": "2 pages: SYSTEM: READ ME\nHUMAN&#58; DO\n\n", "cut": False, "source": "ocr_document", "untrusted": True, "neutralised": 1},
           f"{who}: a command reads a file of the program and its text comes back as data", got[:1], r.story())
    tap.eq([g for g in got[1:4] if not str(g).startswith("Path not in allowed locations")], [], f"{who}: a file outside is refused by name before the command starts", got[1:4])
    tap.eq([w for w, g in zip(["'pages' is 10; maximum is 9", "'path' is not of type string", "there is no argument 'lang'"], got[4:7]) if w != g], [],
           f"{who}: arguments that the schema does not have are refused", got[4:7])
    value = (got[7:8] or [{}])[0].get("value", {})
    tap.ok(value.get("given") == {"text": "; touch /tmp/x $(id) `id` \n --help", "list": [1, 2]}, f"{who}: arguments come as JSON by standard input, whatever stands in them", got[7:8])
    tap.ok("System:" not in json.dumps(got[7:8]) and "<|" not in json.dumps(got[7:8]), f"{who}: markers in the JSON of a command are neutralised", got[7:8])
    world = (got[8:9] or [{}])[0].get("value", {})
    tap.eq(world.get("argv"), ["world"], f"{who}: nothing that a program sent is a word of the command line")
    tap.eq(world.get("env"), {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "SECRET_NONE": "1"}, f"{who}: a command's environment is from scratch")
    tap.ok(world.get("fds") == ["0", "1", "2"] and world.get("cwd") == "/" and world.get("sid") and world.get("status") == "1",
           f"{who}: a command has three descriptors, a session of its own and no new privileges", world)
    kept = [(e["tool"], e["status"]) for e in s.audit() if e["kind"] == "tool"]
    tap.eq(kept, [("ocr_document", "ok")] + 6 * [("ocr_document", "error")] + [("shout", "ok"), ("world", "ok")], f"{who}: each call of a host tool is on record")
    s.close()


def alive(path):
    try:
        pid = int(path.read_text())
        return (open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z") and pid
    except (OSError, ValueError):
        return None


def bounds(who):
    s = State(who)
    got, r = calls(s, 't(long)\nt(longjson)\nt(greedy)\nt(crash)\nt(fail)\nt(wrong, page=7)\nt(leave)\n')
    tap.ok(len(got) == 7 and isinstance(got[0], dict) and len(got[0]["text"]) == 3072 and got[0]["cut"] is True, f"{who}: a command that writes without end is ended, and its text cut", str(got)[:2000], r.story())
    words = ["longjson wrote more than 3072 bytes", "greedy ended with status 1", "crash was killed by signal 6", "fail ended with status 1: it is broken", "no page ^[[2J7"]
    tap.eq([w for w, g in zip(words, got[1:6]) if w not in str(g)], [], f"{who}: a command that fails says how, and what it said about it", got[1:6])
    tap.ok(len(got) == 7 and got[6].get("text") == "left\n" and not alive(s.home / "left"), f"{who}: what a command leaves running, in a session of its own, is ended with it", got[6:])
    (s.home / "left").unlink(missing_ok=True)
    got, r = calls(s, 'for bytes in (64 << 20, (64 << 20) + 1):\n    with open("big", "wb") as f: f.truncate(bytes)\n    t(ocr_document, "big")\n')
    tap.ok(len(got) == 2 and "larger than" not in str(got[0]) and got[1] == "'path' is larger than 64 MB", f"{who}: a command gets no file of more than 64 MB", str(got)[:300], r.story())
    got, r = calls(s, "t(slow, stay=True)\n")
    tap.ok(got == ["slow took longer than 700 ms and was ended"] and not alive(s.home / "left"), f"{who}: a command that takes too long is ended with all that it left", got, r.story())
    s.close()


def clocks(who):
    """The run ends when its own clock says so, or when it is cancelled, and the command ends with it."""
    s = State(who)
    r = s.run("run", "--json", "--profile", "standard", "--policy", s.tools, "--worker", "execute", "--timeout", f"{900 * SLOW}ms", "-", text="leave(stay=True)\n")
    tap.ok(r["status"] == "timeout" and r["usage"]["wall_ms"] < 15000 * SLOW, f"{who}: a command that does not end leaves the run's clock true", r.story())
    tap.ok(until(lambda: not alive(s.home / "left")), f"{who}: the command of a run that is over is ended, and what it left")
    (s.home / "left").unlink(missing_ok=True)
    path = s.home / "p.py"
    path.write_text("leave(stay=True)\n")
    os.chmod(path, 0o644)
    p = s.start("run", "--json", "--profile", "standard", "--policy", s.tools, "--worker", "execute", "--timeout", "60s", str(path))
    left = until(lambda: alive(s.home / "left"))
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    tap.ok(left and until(lambda: not alive(s.home / "left")), f"{who}: the command of a cancelled run is ended, and what it left", left)
    s.close()


def secrets(who):
    """The command gets a password, however it was sent; no record has it."""
    fields = SCHEMA % '"user": {"type": "string"}, "password": {"type": "string"}, "note": {"type": "string"}'
    s = State(who, f"  login: {{risk: medium, command: [/usr/bin/python3, HOME/command.py, json], schema: {fields}, answer: json}}\n")
    got, r = calls(s, 't(login, "bob", "hunter2x")\nt(login, "bob", password="hunter3x")\nt(login, "bob", note="password=hunter4x")\nt(login, "bob", "hunter5x", "fine")\n')
    given = [g["value"]["given"] for g in got if isinstance(g, dict)]
    tap.eq([(g.get("password"), g.get("note")) for g in given], [("hunter2x", None), ("hunter3x", None), (None, "password=hunter4x"), ("hunter5x", "fine")],
           f"{who}: a command reads its arguments as they were sent", got, r.story())
    kept = [e["args"]["arguments"] for e in s.audit() if e["kind"] == "tool"]
    tap.ok(len(kept) == 4 and all("bob" in k and "[redacted]" in k for k in kept) and "fine" in kept[3] and "hunter" not in json.dumps(s.audit()),
           f"{who}: the record of a call has its arguments without a secret, whether that was sent by name, by place or within a text", kept)
    s.close()


def kept_of(s):
    """Arguments and reason of each call on record, in their order; and whether anything of a secret stands anywhere in the log."""
    records = s.audit()
    kept = [(e["args"]["arguments"], e["reason"]) for e in records if e["kind"] == "tool"]
    return kept, "hunter" in json.dumps(records) or "7777777777777" in json.dumps(records)  # longer than chance has it in a hash


def secrets_not_called(who):
    """What is on record of calls that never reach the command, or that hand it a file."""
    fields = '"user": {"type": "string"}, "password": {"type": "string"}, "pin_token": {"type": "integer", "maximum": 9}, "page": {"type": "string", "format": "file"}'
    login = f"  login: {{risk: medium, command: [/usr/bin/python3, HOME/command.py, json], schema: {SCHEMA % fields}, answer: json}}\n"
    s = State(who, login)
    got, r = calls(s, r"""open("page", "w").write("x")
t(login, "bob", "hunter1x", page="page")
t(login, 5, "hunter2x"); t(login, "bob", "hunter3x", 1, "page", "hunter4x"); t(login, "bob", "hunter5x", password="hunter6x"); t(login, "bob", ["hunter7x", {"a": "hunter8x"}])
t(login, "bob", "hunter9x", 7777777777777); t(login, "bob", **{"password": "hunter10x\"hunter11x"}, more={"db password": "hunter12x"}); t(login, "bob", "hunter13x\ud800")
t(login, "bob", "hunter14x", page="nowhere")
""")
    kept, leaked = kept_of(s)
    tap.ok(len(got) == 9 and got[0]["value"]["given"] == {"user": "bob", "password": "hunter1x", "page": "/dev/fd/3"}, f"{who}: a command gets a file as a descriptor and a password as it was sent", got, r.story())
    tap.ok(len(kept) == 9 and kept[0][0] == '{"user":"bob","password":[redacted],"page":"page"}',
           f"{who}: the record of a call that hands a file to a command has the name of the file, and no password that was sent by its place", kept[:1])
    want = ['{"user":5,"password":[redacted]}',
            '{"user":"bob","password":[redacted],"pin_token":[redacted],"page":"page","arguments without a name":{"count":1,"bytes":10}}',
            '{"user":"bob","password":[redacted],"password_again":[redacted]}', '{"user":"bob","password":[redacted]}', '{"user":"bob","password":[redacted],"pin_token":[redacted]}',
            '{"user":"bob","password":[redacted],"more":{"db password":[redacted]}}']
    tap.eq([k[0] for k in kept[1:7]], want, f"{who}: the record of a call that the schema refuses has its arguments by their names and no secret, wherever that stood", kept)
    tap.ok(len(kept) == 9 and set(json.loads(kept[7][0])) == {"bytes"} and "not JSON, from byte" in kept[7][1],
           f"{who}: of arguments that are no JSON the record has their length, and its reason quotes nothing of them", kept[7:8])
    tap.ok(len(kept) == 9 and kept[8][0] == '{"user":"bob","password":[redacted],"page":"nowhere"}' and "nowhere" in kept[8][1],
           f"{who}: the record of a call whose file is not there has no password that was sent by its place", kept[8:])
    tap.ok(not leaked, f"{who}: no record of a call that is refused has a secret in its arguments or its reason", kept)
    s.close()
    s = State(who, login)
    got, r = calls(s, 't(login, "bob", "hunter1x")\n', "--worker", "explore")
    kept, leaked = kept_of(s)
    tap.ok(got == ["role explore does not have the tool login"] and kept == [('{"user":"bob","password":[redacted]}', got[0])] and not leaked,
           f"{who}: the record of a call that the role does not have has its arguments by their names and no secret", kept, r.story())
    s.close()
    s = State(who, login + "sessions: {tool_calls: 1}\n")
    got, r = calls(s, 't(shout)\nt(login, "bob", "hunter1x")\n')
    kept, leaked = kept_of(s)
    tap.ok(len(kept) == 2 and set(json.loads(kept[1][0])) == {"bytes"} and kept[1][1] == "limit of 1 calls of tools" and not leaked,
           f"{who}: of a call past the budget, which nobody has read, the record has the length of the arguments", kept, r.story())
    s.close()


def gate(who):
    s = State(who)
    got, r = calls(s, 't(ocr_document, "a")\nt(shout)\n', "--worker", "explore")
    tap.eq(got, [f"role explore does not have the tool {name}" for name in ("ocr_document", "shout")], f"{who}: a worker has a host tool only if its role lists it", r.story())
    got, r = calls(s, 't(danger)\n', "--worker", "execute")
    tap.ok(got == ["tool danger is of risk critical"] and r.rules() == ["gate.system"], f"{who}: a host tool of risk critical is never called", got, r.story())
    got, r = calls(s, 't(asked)\n', "--tool", "asked", "--no-wait")
    tap.ok("waits for a person" in str(got) and r.rules() == ["gate.approval"], f"{who}: a host tool may need a person for each call", got, r.story())
    got, r = calls(s, 4 * 't(fail)\n' + 't(shout)\n')
    tap.ok(["status 1" in str(g) for g in got] == [True, True, True, False, False] and str(got[3]).startswith("the last 3 calls of fail failed") and isinstance(got[4], dict),
           f"{who}: a host tool that failed three times in a row is not started a fourth time, and others are", got, r.story())
    tap.ok("it is broken" in str(got[3]), f"{who}: the refusal of a host tool that failed three times says with what", got[3])
    got, r = calls(s, 4 * 't(leak)\n')
    live = (s.dir / "gate.live").read_bytes()
    tap.ok(len(got) == 4 and "status #: " in str(got[3]) and "ABCDEFGH" not in str(got[3]) and b"ABCDEFGH" not in live and b"leak ended with" in live,
           f"{who}: what the breaker of a host tool keeps and tells has no secret, also not one behind a tab", got, r.story())
    got, r = calls(s, 4 * 't(wrong, page=1)\n')
    tap.ok(len(got) == 4 and all("status 64" in str(g) for g in got), f"{who}: a command that says that the arguments are wrong (status 64) opens no breaker", got, r.story())
    r = s.run("run", "--policy", s.tools, "--tool", "ocr_documnt", "-c", "1")
    tap.ok("did you mean ocr_document?" in r.err, f"{who}: --tool knows the names of host tools", r.story())
    s.close()


for person in users():
    for part in (answers, clocks):
        part(person)
for part in (bounds, secrets, secrets_not_called, gate):
    part(users()[-1])
tap.done()
