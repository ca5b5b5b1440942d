#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon serve --stdio`, as clients of every revision of the protocol find it: the real programs, end to end."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib

import exits
import tapsys
from mcptest import LEGACY, META, MODERN, PATIENCE, Connection, Server, appears, bytes_of, connects, family, gone, halt, named, runners, start, stat, stop, text, whole
from tapsys import Tap, users

try:
    import jsonschema
except ImportError:
    jsonschema = None

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
TOOLS = ["execute_code", "check_code", "eval_expression", "session", "read_file", "write_file", "list_files", "search_files", "snapshot", "wait_job"]
HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
READS, CHANGES = {"check_code", "eval_expression", "read_file", "list_files", "search_files"}, {"session", "write_file", "snapshot"}  # those that take nothing away, those that may
LASTS = {"session": "ends after 30 minutes without a call", "wait_job": "kept for 10 minutes after its end"}  # of a handle, where a model reads about it
FOREVER = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n"


def code_of(reply):
    return (reply.get("error") or {}).get("code") if isinstance(reply, dict) else None


def keys(value):
    """Every key of a tree."""
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values())) if value else set()
    return set().union(*map(keys, value)) if isinstance(value, list) and value else set()


# --- the protocol ---------------------------------------------------------------------------------

def handshakes():
    for version in LEGACY:
        with Server(programs, legacy=version) as s:
            told = s.opened.get("result") or {}
            tap.eq(told.get("protocolVersion"), version, f"initialize with {version} is answered with the same revision")
            tools = (s.ask("tools/list").get("result") or {}).get("tools") or [{}]
            tap.eq([t.get("name") for t in tools], TOOLS, f"{version}: tools/list has every tool, in their order")
            tap.eq(("annotations" in tools[0], "outputSchema" in tools[0]), (version >= "2025-03-26", version >= "2025-06-18"),
                   f"{version}: annotations and output schemas are there since the revision that brought them")
            result = s.tool("execute_code", code="print(6 * 7)")
            tap.ok("42" in text(result) and ("structuredContent" in result) == (version >= "2025-06-18"),
                   f"{version}: a run is answered in the words of the revision", result)
            bad = s.call("execute_code", kode="1")
            tap.ok(bad["result"]["isError"] if version >= "2025-11-25" else code_of(bad) == -32602,
                   f"{version}: a wrong argument is an error of the kind that the revision wants", bad)
            tap.ok("resultType" not in json.dumps(s.lines), f"{version}: no member of the newest revision is sent")
            tap.ok("result" in s.ask("ping"), f"{version}: ping is answered")
    with Server(programs, legacy="1999-01-01") as s:
        tap.eq(s.opened["result"]["protocolVersion"], LEGACY[-1], "a revision that nobody knows is answered with the newest that has a handshake")


def later():
    """What a later revision brought is not sent to an older one: links to files, and a progress that has words."""
    for version in LEGACY:
        with Server(programs, "--profile", "standard", legacy=version) as s:
            made = re.search("mcp-[a-z2-7]{26}", text(s.tool("session", action="new"))).group()
            kinds = {b["type"] for b in s.tool("execute_code", code="open('f', 'w').write('x')", session_id=made)["content"]}
            tap.eq(kinds, {"text", "resource_link"} if version >= "2025-06-18" else {"text"}, f"{version}: files are links since the revision that brought them")
        with Server(programs, "--profile", "standard", "--answer", "400ms", "--timeout", "10m", legacy=version) as s:
            job = re.search("job-[a-z2-7]{26}", text(s.call("execute_code", {"progressToken": "p"}, code=FOREVER)["result"])).group()
            while not s.notes and s.process.poll() is None:  # a cordond that sleeps for as long as --answer tells nothing before
                s.call("wait_job", {"progressToken": "p"}, job_id=job)
            tap.eq({"message" in n["params"] for n in s.notes}, {version >= "2025-03-26"}, f"{version}: progress has words since the revision that brought them", s.notes)
    tapsys.cordon(programs, ["pool", "stop", "--force"])  # the holder that the sessions started


def modern():
    with Server(programs, legacy=None) as s:
        found = s.ask("server/discover").get("result") or {}
        tap.eq(found.get("supportedVersions"), [MODERN, *reversed(LEGACY)], "server/discover lists every revision, the newest first")
        listed = s.ask("tools/list").get("result") or {}
        lists = [(name, s.ask(name).get("result") or {}) for name in ("resources/list", "resources/templates/list")]
        for name, r in (("server/discover", found), ("tools/list", listed), *lists):
            tap.ok(r.get("resultType") == "complete" and r.get("ttlMs", -1) >= 0 and r.get("cacheScope") == "private",
                   f"{name} of the newest revision has its result type and how long it may be kept", r)
        tap.ok(META + "serverInfo" in found.get("_meta", {}), "a result of the newest revision names the server in _meta")
        r = s.tool("execute_code", code="1 + 1")
        tap.ok(r.get("resultType") == "complete" and r["structuredContent"]["value"] == "2", "a run without any handshake is answered", r)
        tap.eq(code_of(s.ask("ping")), -32601, "ping, which the newest revision does not have, is no method there")
        s.legacy = "none"  # nothing is added to _meta from here on
        caps = {META + "clientCapabilities": {}}
        tap.eq(code_of(s.ask("tools/list")), -32602, "a request without _meta and without a handshake is refused with -32602")
        tap.eq(code_of(s.ask("tools/list", {META + "protocolVersion": MODERN})), -32602, "a request without the client's capabilities is refused with -32602")
        r = s.ask("tools/list", {META + "protocolVersion": "2031-01-01", **caps})
        tap.ok(code_of(r) == -32022 and r["error"]["data"]["requested"] == "2031-01-01" and MODERN in r["error"]["data"]["supported"],
               "an unknown revision is refused with -32022 and the list of those that are known", r)
        opened = s.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        both = s.ask("tools/list"), s.ask("tools/list", {META + "protocolVersion": MODERN, **caps})
        tap.eq(["resultType" in r["result"] for r in (opened, *both)], [False, False, True], "both eras are served by one process, message by message")


def malformed():
    with Server(programs) as s:
        rows = [
            (b"{not json}\n", -32700, "bytes that are no JSON"),
            (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n', -32700, "a message with a member twice"),
            (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', -32700, "a message that is not UTF-8"),
            (b"[" * 40 + b"]" * 40 + b"\n", -32700, "a message of forty brackets within each other"),
            (b"3\n", -32700, "a message that is a number"),
            (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}\n', -32700, "a message with an integer of thirty digits"),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e400}}\n', -32700, "a message with a number beyond all"),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}\n', -32700, "two messages in one line"),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}\n', -32700, "a message with half a surrogate"),
            (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600, "a message of another JSON-RPC"),
            (b'{"jsonrpc":"2.0","id":1}\n', -32600, "a message without a method"),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, "a request whose id is null"),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600, "a request whose id is a fraction"),
            (b'{"jsonrpc":"2.0","id":"' + b"x" * 400 + b'","method":"ping"}\n', -32600, "a request whose id is too long"),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}\n', -32600, "a request whose params are an array"),
            (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, "an array of messages outside of its revision"),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/nothing"}\n', -32601, "a method that nobody has"),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}\n', -32602, "a tool that nobody has"),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}\n', -32602, "a cursor of a list that has one page"),
            (b'{"x":"' + b"y" * (5 << 20) + b'"}\n', -32600, "a message of five megabytes"),
        ]
        for data, code, what in rows:
            got = s.raw(data)
            tap.eq([code_of(r) for r in got or []], [code], f"{what} is answered with {code}", data[:80])
        whose = [
            (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"x":"\\ud800"}}\n', 8, "a request with half a surrogate"),
            (b'{"jsonrpc":"2.0","method":"ping","params":{"x":9223372036854775808,"id":7}, "id" : "a\\"b" }\n', 'a"b', "a request with an integer of 64 bits"),
            (b'{"method":"ping","params":' + b"[" * 40 + b"]" * 40 + b',"id":-9}\n', -9, "a request of forty brackets within each other"),
            (b'{"method":"ping","params":{"x":1,"x":2},"id":10}\n', 10, "a request with an argument twice"),
            (b'{"id":11,"id":12,"method":"ping"}\n', None, "a request with two ids"),
            (b'{"id":13,"method":"ping"}{}\n', None, "a request with something behind it"),
            (b'{"id":14,"method":"ping","params":{"x":1e400}\n', None, "a request that is cut"),
            (b'{"id":15,"result":{"x":1e400}}\n', None, "an answer, which is no request"),
            (b'{"id":123456789012345678901234567890,"method":"ping"}\n', None, "a request whose id is beyond all"),
            (b'["id":16,"method":1e400]\n', None, "an array"),
        ]
        for data, number, what in whose:
            got = s.raw(data)
            tap.eq([(code_of(r), r.get("id")) for r in got or []], [(-32700, number)], f"{what} is answered with -32700 and " + ("no id" if number is None else "its id"), data[:80])
        s.write(b"\n  \r\n")
        s.write({"jsonrpc": "2.0", "id": "a", "result": {}})
        s.tell("notifications/nothing")
        before = len(s.lines)
        tap.ok("result" in s.ask("ping") and len(s.lines) == before + 1, "empty lines, answers and notifications are not answered, and the next request is")
        number = s.send("tools/call", name="execute_code", arguments={"code": FOREVER, "timeout_ms": 100000})
        s.number -= 1
        again = s.send("ping")
        tap.eq(code_of(s.reply(again)), -32600, "a second request with the id of one that is not answered is refused")
        s.tell("notifications/cancelled", requestId=number)
    with Server(programs, legacy="2025-03-26") as s:
        r = s.raw(b'[{"jsonrpc":"2.0","id":71,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},'
                  b'{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"1"}}}]\n')
        tap.eq(sorted(v.get("id") for v in r[0]) if r and isinstance(r[0], list) else r, [71, 72],
               "2025-03-26: an array of messages is answered by one array, runs included")


# --- tools ----------------------------------------------------------------------------------------

def shapes():
    with Server(programs) as s:
        tools = s.ask("tools/list")["result"]["tools"]
        for t in tools:
            name = t["name"]
            tap.eq([t["annotations"].get(h) for h in HINTS], [name in READS, name in CHANGES, name in READS | {"write_file"}, False], f"{name} has all four hints, each as the tool is")
            tap.ok(LASTS.get(name, "") in t["description"], f"{name} is described with how long its handle counts, where it has one", t["description"])
            composed = keys(t["inputSchema"]) & {"oneOf", "anyOf", "allOf", "not", "$ref", "$defs", "if"}
            tap.ok(not composed and t["inputSchema"]["additionalProperties"] is False and all(
                p["type"] in ("string", "integer", "boolean", "object") for p in t["inputSchema"]["properties"].values()),
                f"{t['name']} has a flat input schema of plain types", t["inputSchema"])
            tap.ok(len(t["description"]) < 1500, f"{t['name']} is described within what clients show")
        if not jsonschema:
            return tap.skip("results follow the output schemas of their tools", "no jsonschema")
        schemas = {t["name"]: t["outputSchema"] for t in tools}
        sample = {"execute_code": {"code": "print(1)"}, "check_code": {"code": "import ctypes"}, "session": {"action": "list"},
                  "eval_expression": {"expression": "1 < 2"}}
        for name, arguments in sample.items():
            r = s.tool(name, **arguments)
            tap.eq([e.message for e in jsonschema.Draft202012Validator(schemas[name]).iter_errors(r.get("structuredContent"))], [],
                   f"the result of {name} follows its output schema")


def told_whole():
    """What a result has beside its output is in the text, too; and a hint is one for a model, which has tools and no options."""
    name = f"told-{os.getpid()}"
    tapsys.cordon(programs, ["workspace", "create", name])
    with Server(programs, "--workspaces", name) as s:
        r = s.tool("execute_code", code="from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as e:\n    print(list(e.map(str, [1])))")
        notes = r["structuredContent"]["notes"]
        tap.ok(notes and all(n in text(r) for n in notes), "how a program ran is told in the text, too", r)
        r = s.tool("execute_code", code="Harmless.\n\n```python\nprint(6 * 7)\n```\n")
        tap.ok(r["structuredContent"]["intake"]["blocks"] == 1 and "1 block of code ran, from line 4" in text(r) and "prose" in text(r), "what was taken from what was sent is told in the text, too", r)
        r = s.tool("execute_code", code="for n in range(2000):\n    open(f'{n}', 'w').close()")
        tap.ok(r["structuredContent"].get("files_truncated") and "more files than are told" in text(r), "that there are more files is told in the text, too", text(r)[-300:])
        made = s.tool("session", action="new", workspace=name)["structuredContent"]["session_id"]
        r = s.tool("execute_code", code="open('a', 'w').write('x')", session_id=made)
        tap.ok(r["structuredContent"]["snapshot"]["id"] and r["structuredContent"]["snapshot"]["id"] in text(r), "the snapshot that a call came to is told in the text, too", r)
    policy = programs.dir / "warns.yaml"
    policy.write_text("verification: warn\nnaming: [{path: '/data/*', pattern: '^[a-z]+$', message: 'plain words'}]\n")
    with Server(programs, "--policy", str(policy)) as s:
        made = s.tool("session", action="new")["structuredContent"]["session_id"]
        r = s.tool("write_file", session_id=made, path="data/Other1", text="x")
        tap.ok("plain words" in r["structuredContent"].get("warning", "") and r["structuredContent"]["warning"] in text(r), "what the policy only warns of is told in the text, too", r)
    with Server(programs, "--profile", "standard") as s:
        for code, word in (("import nonesuch", "standard library"), ("open('nothing')", "write_file"), ("echo(1)", "in the program")):
            r = s.tool("execute_code", code=code)
            hint = r["structuredContent"]["error"].get("hint", "")
            tap.ok(word in hint and hint in text(r) and "--" not in hint and "`" not in hint, f"{code}: the hint names what a client can do, in the text, too", r)
    tapsys.cordon(programs, ["pool", "stop", "--force"])
    tapsys.cordon(programs, ["workspace", "delete", name])


def results():
    with Server(programs, "--profile", "standard") as s:
        r = s.tool("execute_code", code="import sys\nprint('one')\nprint('two', file=sys.stderr)\n6 * 7")
        o = r["structuredContent"]
        tap.ok(not r["isError"] and o["stdout"] == "one\n" and o["value"] == "42" and all(w in text(r) for w in ("one", "two", "42", "ok")),
               "a run is told whole in the text and whole in the object", r)
        r = s.tool("execute_code", code="print(1)\n1/0")
        tap.ok(r["isError"] and "ZeroDivisionError" in text(r) and "line 2" in text(r), "an exception is an error that names its line", r)
        r = s.tool("execute_code", code="```python\nprint('fenced')\n```")
        tap.eq(r["structuredContent"]["stdout"], "fenced\n", "code in a fence is run without it")
        r = s.tool("execute_code", code="print('x' * 5000)", max_output_chars=100)
        tap.ok(r["structuredContent"]["truncated"] and "cut" in text(r), "output that was cut says so in the text", text(r)[-200:])
        r = s.tool("execute_code", code="3", timeout_ms="20000", language=None)
        tap.eq((r["isError"], r["structuredContent"]["value"]), (False, "3"), "a number that comes as a text is taken, and null is as if it were not there")
        for arguments, word in (({}, "code"), ({"code": 5}, "code"), ({"code": "1", "timeout_ms": 0}, "timeout_ms"),
                                ({"code": "1", "language": "perl"}, "language"), ({"code": "a\0b"}, "NUL"), ({"code": "1", "more": 1}, "more")):
            r = s.tool("execute_code", **arguments)
            tap.ok(r["isError"] and word in text(r), f"execute_code with {arguments!r} is an error that names {word}", r)
        r = s.tool("check_code", code="x = 1")
        tap.ok(not r["isError"] and r["structuredContent"]["is_safe"], "check_code finds nothing in an honest program", r)
        big = 10**40 + 1
        r = s.tool("eval_expression", expression="ctx['n'] + 1", context='{"n": %d}' % big)
        tap.eq(r["structuredContent"]["value"], big + 1, "eval_expression is exact with integers of any size")
        tap.ok(str(big + 1) in text(r), "eval_expression tells its value in the text, too", text(r))
        r = s.tool("eval_expression", expression="ctx['load'] > 0.5 and ctx['mode'] == 'auto'", context={"load": 0.75, "mode": "auto"})
        tap.eq((r["structuredContent"]["value"], r["isError"]), (True, False), "eval_expression reads its context")
        r = s.tool("eval_expression", expression="__import__('os')")
        tap.ok(r["isError"] and r["structuredContent"]["error"]["type"] == "UnsafeExpressionError", "eval_expression refuses what is no condition", r)
        tap.ok("UnsafeExpressionError" in text(r) and r["structuredContent"]["error"]["message"] in text(r), "eval_expression tells its error in the text, too", text(r))
    told_whole()
    with Server(programs) as s:
        r = s.tool("check_code", code="import ctypes")
        tap.ok(not r["isError"] and not r["structuredContent"]["is_safe"] and "instead" in text(r),
               "a verdict against a program is an answer, not an error, and tells what to write instead", r)
        r = s.tool("execute_code", code="import ctypes")
        tap.ok(r["isError"] and r["structuredContent"]["status"] == "blocked", "the same program is blocked when it is to be run", r)


def numbers():
    """A whole number in every way that clients send one; what is none is told as it came."""
    with Server(programs) as s:
        for n in (5000, 5000.0, 5e3, "5000"):
            r = s.tool("execute_code", code="6 * 7", timeout_ms=n)
            tap.eq((r.get("structuredContent") or {}).get("value"), "42", f"timeout_ms {n!r} is a whole number", r)
        for n, told in ((-1, "-1"), (0, "0"), (1.5, "1.5"), (-0.5, "-0.5"), (-1e300, "-1e+300"), ("1s", "'1s'"), (True, "a boolean")):
            r = s.tool("execute_code", code="6 * 7", timeout_ms=n)
            tap.ok(r["isError"] and f"timeout_ms must be a whole number of 1 or more, not {told}" in text(r), f"timeout_ms {n!r} is told as it came", r)


def limits():
    with Server(programs, "--profile", "standard", "--timeout", "700ms") as s:
        r = s.tool("execute_code", code="while True: pass", timeout_ms=300)
        tap.ok(r["isError"] and r["structuredContent"]["status"] == "timeout" and "wall time limit of 0.300s" in r["structuredContent"]["reason"],
               "timeout_ms tightens the time of a run", text(r))
        r = s.tool("execute_code", code="while True: pass", timeout_ms=3600000)
        tap.ok(r["structuredContent"]["status"] == "timeout" and "700" in text(r), "timeout_ms cannot widen the time of a run, and the text says what holds", text(r))
    with Server(programs, "--profile", "standard", "--memory", "200m") as s:
        r = s.tool("execute_code", code="x = bytearray(400 << 20)", memory_mb=4000)
        tap.ok(r["isError"] and "memory_mb" in text(r) and "MemoryError" in text(r), "memory_mb cannot widen the memory", text(r))
    with Server(programs, "--profile", "standard", "--timeout", "700ms", "--output", "1000") as s:
        made = s.tool("session", action="new")["structuredContent"]["session_id"]
        r = s.tool("execute_code", code="print('x' * 5000)", session_id=made, max_output_chars=1 << 30)
        tap.ok((r.get("structuredContent") or {}).get("truncated") is True and "max_output_chars" in text(r), "max_output_chars cannot widen the output of a session's call", text(r)[-300:])
        r = s.tool("execute_code", code="while True: pass", session_id=made, timeout_ms=3600000)
        tap.ok((r.get("structuredContent") or {}).get("status") == "timeout" and "700" in text(r), "timeout_ms cannot widen the time of a session's call", text(r))
    tapsys.cordon(programs, ["pool", "stop", "--force"])  # the holder that the session started


def lids(who):
    """What a client may choose is what the operator left to it."""
    policy = programs.dir / f"{who}-serve.yaml"
    policy.write_text("run: {profiles: [strict]}\n")
    policy.chmod(0o644)
    with Server(programs, "--policy", str(policy), who=who) as s:
        for name in ("policy", "profile", "role", "state", "env", "argv", "workspace", "rw"):
            r = s.tool("execute_code", code="import ctypes", **{name: "open"})
            tap.ok(r["isError"] and "structuredContent" not in r and name in text(r), f"{who}: a client cannot choose {name}", r)
        r = s.tool("execute_code", code="import ctypes")
        tap.eq(r["structuredContent"]["status"], "blocked", f"{who}: the operator's profile holds for its runs")
        r = s.tool("execute_code", code="--profile=open\nimport ctypes")
        tap.eq(r["structuredContent"]["status"], "blocked", f"{who}: code that looks like options is code")
    r = tapsys.cordon(programs, ["serve", "--stdio", "--policy", policy, "--profile", "open"], who, text="")
    tap.ok(r.code == 2 and "profile" in r.err, f"{who}: a profile that the policy does not allow is refused before a client is served", r.err)


PROGRAMS = {  # of a language: an honest program, one that the judge refuses, two calls of a session
    "python": ("print(6 * 7)", "import ctypes", ("x = 20", "print(x + 1)")),
    "ruby": ("puts 6 * 7", "`id`", ("x = 20", "puts x + 1")),
    "javascript": ("console.log(6 * 7);", "require('child_process').execSync('id');", ("var x = 20;", "console.log(x + 1);")),
    "typescript": ("const n: number = 42;\nconsole.log(n);", "const n: number = eval('1');", ("var x: number = 20;", "console.log(x + 1);"))}


def languages(who):
    with Server(programs, who=who) as s:
        listed = {t["name"]: t["inputSchema"]["properties"] for t in s.ask("tools/list")["result"]["tools"]}
        words = listed["execute_code"]["language"]["enum"]
        tap.ok(words[0] == "python" and set(words) <= set(PROGRAMS) and words == listed["check_code"]["language"]["enum"] == listed["session"]["language"]["enum"],
               f"{who}: the tools name the languages that this build runs", words)
        for language in words:
            honest, refused, (first, second) = PROGRAMS[language]
            r = s.tool("execute_code", code=honest, language=language)
            tap.eq(r.get("structuredContent", {}).get("stdout"), "42\n", f"{who}: a program of {language} runs", r)
            r = s.tool("execute_code", code=refused, language=language)
            tap.ok(r["isError"] and r["structuredContent"]["status"] == "blocked", f"{who}: the operator's profile holds for a program of {language}", r)
            r = s.tool("check_code", code=refused, language=language)
            tap.eq(r.get("structuredContent", {}).get("is_safe"), False, f"{who}: a program of {language} is judged as one", r)
            made = s.tool("session", action="new", language=language)["structuredContent"]["session_id"]
            r = [s.tool("execute_code", code=code, session_id=made) for code in (first, second)][-1]
            tap.eq(r.get("structuredContent", {}).get("stdout"), "21\n", f"{who}: a session of {language} keeps its variables", r)
            s.tool("session", action="close", session_id=made)
        for language in words[1:]:
            fenced = f"```{language}\n{PROGRAMS[language][0]}\n```\n"
            r = s.tool("execute_code", code=fenced)
            tap.eq(r.get("structuredContent", {}).get("stdout"), "42\n", f"{who}: without a language, a fence of {language} tells it", r)
            r = s.tool("execute_code", code=fenced, language="python")
            tap.ok(r["isError"] and r["structuredContent"]["stdout"] == "", f"{who}: code of {language} in a fence is not run where python is named", r)
        r = s.tool("session", action="list", language="python")
        tap.ok(r["isError"] and "language" in text(r), f"{who}: only a new session takes a language", r)


# --- sessions and jobs ----------------------------------------------------------------------------

def sessions(who):
    own = tapsys.cordon(programs, ["session", "new", "mine"], who)
    with Server(programs, "--profile", "standard", who=who) as s, Server(programs, "--profile", "standard", who=who) as other:
        made = s.tool("session", action="new")["structuredContent"]
        first = made["session_id"]
        told = s.tool("session", action="list")
        tap.ok(first in text(told) and "1800" in text(told), f"{who}: the text of list tells the session, and when it ends", told)
        tap.ok(re.fullmatch("mcp-[a-z2-7]{26}", first) and made["expires_in_s"] == 1800, f"{who}: the handle of a session has 130 bits, and it is told when it ends", made)
        s.tool("execute_code", code="x = 41", session_id=first)
        tap.eq(s.tool("execute_code", code="x + 1", session_id=first)["structuredContent"]["value"], "42", f"{who}: a session keeps its variables")
        second = s.tool("session", action="fork", session_id=first)["structuredContent"]["session_id"]
        s.tool("execute_code", code="x = 0", session_id=second)
        tap.eq(s.tool("execute_code", code="x", session_id=first)["structuredContent"]["value"], "41", f"{who}: a fork goes on by itself")
        listed = s.tool("session", action="list")["structuredContent"]["sessions"]
        tap.eq({v["session_id"] for v in listed}, {first, second}, f"{who}: list has this client's sessions and no other")
        for handle, what in ((first, "another client's session"), ("mine", "a session of the command line"), ("mcp-" + "a" * 26, "a handle that nobody was given")):
            r = other.tool("execute_code", code="1", session_id=handle)
            tap.ok(r["isError"] and "no such session" in text(r), f"{who}: {what} is not there for a client", r)
        number = s.send("tools/call", name="execute_code", arguments={"code": FOREVER, "session_id": first})
        while not (s.tool("session", action="interrupt", session_id=first)["isError"] is False and s.take(0.2) and s.replies.get(number)):
            if s.process.poll() is not None:
                break
        r = s.reply(number)["result"]
        tap.ok("KeyboardInterrupt" in text(r), f"{who}: interrupt raises KeyboardInterrupt in the call", r)
        tap.eq(s.tool("execute_code", code="x", session_id=first)["structuredContent"]["value"], "41", f"{who}: the session lives on after it")
        s.tool("session", action="close", session_id=second)
        r = s.tool("execute_code", code="x", session_id=second)
        tap.ok(r["isError"] and "is over: closed" in text(r), f"{who}: a session that was closed is gone", r)
    left = tapsys.cordon(programs, ["session", "list", "--json"], who)
    states = {v["session"]: v["state"] for v in left.json or []}
    tap.ok(own.code == 0 and states.get("mine") not in (None, "over") and states.get(first) == "over",
           f"{who}: the sessions of a client end with it, and no other does", states)
    tapsys.cordon(programs, ["pool", "stop", "--force"], who)


def until_begun(s, result):
    """What is told of a run once it has printed something: a busy machine may not have come so far by the first answer."""
    while result.get("structuredContent", {}).get("status") == "running" and "begun" not in result["structuredContent"]["stdout"]:
        result = s.tool("wait_job", job_id=result["structuredContent"]["job_id"])
    return result


def jobs():
    with Server(programs, "--profile", "standard", "--answer", "400ms", "--timeout", "10m") as s:
        number = s.send("tools/call", {"progressToken": "p1"}, name="execute_code", arguments={"code": FOREVER})
        r = until_begun(s, s.reply(number)["result"])
        o = r["structuredContent"]
        tap.ok(not r["isError"] and o["status"] == "running" and "begun" in o["stdout"] and o["job_id"] in text(r) and "begun" in text(r),
               "a run that takes long is answered with a job and what it printed so far", r)
        told = [n["params"]["progress"] for n in s.notes if n["params"]["progressToken"] == "p1"]
        tap.eq(told, sorted(set(told)), "progress of a long run grows")
        while not s.notes and s.process.poll() is None:  # a cordond that sleeps for as long as --answer tells nothing before
            s.call("wait_job", {"progressToken": "p2"}, job_id=o["job_id"])
        tap.ok(s.notes, "progress of a long run is told")
        r = s.tool("wait_job", job_id=o["job_id"])
        tap.eq(r["structuredContent"]["status"], "running", "wait_job answers in time where the run still goes on")
        r = whole(s, s.tool("wait_job", job_id=o["job_id"], cancel=True))
        tap.ok(r["structuredContent"]["status"] == "error" and r["structuredContent"]["stdout"] == "begun\n", "wait_job with cancel ends it and gives its result", r)
        r = s.tool("wait_job", job_id=o["job_id"])
        tap.eq(r["structuredContent"]["status"], "error", "the result of a job can be read again")
        r = s.tool("wait_job", job_id="job-" + "b" * 26)
        tap.ok(r["isError"] and "no such job" in text(r), "a job that nobody has is an error that says so", r)
        made = s.tool("session", action="new")["structuredContent"]["session_id"]
        o = until_begun(s, s.tool("execute_code", code=FOREVER, session_id=made))["structuredContent"]
        tap.ok(o["status"] == "running" and "begun" in o["stdout"], "a call of a session that takes long is answered in the same way", o)
        r = s.tool("wait_job", job_id=o["job_id"], cancel=True)
        tap.eq(r["structuredContent"]["stdout"], "begun\n", "a call of a session that is cancelled gives its result")
        slow = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: time.sleep(0.01)\nprint('done')"
        while "job_id" not in (r := s.tool("execute_code", code=slow))["structuredContent"]:
            pass  # it was over before the first answer: cordond had slept for so long
        tap.eq(whole(s, r)["structuredContent"]["stdout"], "done\n", "a job that comes to its end gives the result of a run")
    tapsys.cordon(programs, ["pool", "stop", "--force"])  # the holder that the session started: what follows looks for processes of its own


def ended(s, job):
    """What came of a job; None: it goes on. A runner that is busy may not have told by the first answer that its program is gone."""
    r = s.tool("wait_job", job_id=job)
    return r if (r.get("structuredContent") or {}).get("status") != "running" else None


def cancelled():
    with Server(programs, "--profile", "standard", "--timeout", "10m") as s:
        number = s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
        worker = appears(lambda: named(s.process.pid, "cordon-python"))
        runs = set(worker) | set(runners(s.process.pid))
        tap.ok(worker, "a run is under way")
        s.tell("notifications/cancelled", requestId=number, reason="no longer wanted")
        tap.eq(gone(runs), [], "a cancelled request takes its run with it")
        tap.eq(s.tool("execute_code", code="2")["structuredContent"]["value"], "2", "a request after a cancelled one is served")
        tap.ok(number not in s.replies, "a cancelled request is not answered", s.replies.get(number))
    with Server(programs, "--profile", "standard", "--timeout", "10m", "--answer", "100ms") as s:
        for what, meets in (("that was answered with a job", False), ("whose answer, a job, is on its way", True)):
            number = s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
            runs = set(appears(lambda: named(s.process.pid, "cordon-python")))
            if meets:  # cordond answers while the front sleeps, and the client's word waits beside the answer
                stopped = named(s.process.pid, "cordon-front")
                for p in stopped:
                    os.kill(p, signal.SIGSTOP)
                time.sleep(0.3)  # a meeting is likely then; without it the outcome is the same
            else:
                job = s.reply(number)["result"]["structuredContent"]["job_id"]
            s.tell("notifications/cancelled", requestId=number, reason="no longer wanted")
            for p in stopped if meets else ():
                os.kill(p, signal.SIGCONT)
            tap.ok(runs and not gone(runs), f"a cancelled request {what} takes its run with it", runs)
            if not meets:
                tap.ok(appears(lambda: ended(s, job)), "who asks for the job of a cancelled request is told that it has ended")


# --- ends -----------------------------------------------------------------------------------------

def under_way(s, count=2):
    for _ in range(count):
        s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
    appears(lambda: len(named(s.process.pid, "cordon-python")) >= count)
    return s.family()


def ends():
    for what, act in (("a client that closes its end", lambda s: s.process.stdin.close()),
                      ("a client that does not read and is gone", lambda s: (s.process.stdout.close(), s.process.stdin.close())),
                      ("SIGTERM", lambda s: s.process.terminate()),
                      ("SIGKILL of cordond", lambda s: s.process.kill()),
                      ("SIGKILL of the front", lambda s: os.kill(named(s.process.pid, "cordon-front")[0], signal.SIGKILL))):
        s = Server(programs, "--profile", "standard", "--timeout", "10m", "--drain", "0s")
        all_of_it = under_way(s)
        tap.ok(len(all_of_it) >= 6, f"{what}: two runs are under way before it", all_of_it)
        act(s)
        tap.eq(gone(all_of_it - {s.process.pid}), [], f"{what} leaves nothing running")
        s.end()
    with Server(programs, "--profile", "standard", "--timeout", "10m") as s:
        number = s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
        worker = appears(lambda: named(s.process.pid, "cordon-python"))
        runner = appears(lambda: runners(s.process.pid))
        tap.eq(len(runner), 1, "a run has one runner")
        os.kill(runner[0], signal.SIGKILL)
        r = s.reply(number).get("result") or {}
        tap.ok(r.get("isError") and "gave no result" in text(r), "a runner that is killed is an error of its own request", r)
        tap.eq(gone(worker), [], "a runner that is killed takes its jail with it")
        tap.eq(s.tool("execute_code", code="5")["structuredContent"]["value"], "5", "the next request is served after a runner was killed")
        s.send("tools/call", name="execute_code", arguments={"code": FOREVER})
        # the runner of the request before may not have ended yet
        runner = appears(lambda: [p for p in runners(s.process.pid) if named(p, "cordon-python")])
        appears(lambda: halt(runner[0]))
        tap.eq(s.tool("execute_code", code="6")["structuredContent"]["value"], "6", "a runner that hangs holds nobody else up")


def contained():
    with Server(programs, "--profile", "standard") as s:
        s.tool("execute_code", code="1")
        front = named(s.process.pid, "cordon-front")
        tap.eq(len(front), 1, "a client has one front")
        tap.eq(bytes_of(front[0], "cmdline").split(b"\0")[5], b"45000", "without --answer a run is answered after 45 s at the latest")
        with open(f"/proc/{front[0]}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        tap.eq((status.get("NoNewPrivs"), status.get("Seccomp")), ("1", "2"), "the front has no new privileges, and a table of system calls")
        if os.geteuid() == 0:
            open_now = sorted(os.listdir(f"/proc/{front[0]}/fd"), key=int)
            tap.eq(open_now, ["0", "1", "2", "3"], "the front has the client's descriptors, standard error and one socket")
            with open(f"/proc/{front[0]}/environ") as f:
                tap.eq(f.read(), "", "the front has no environment")
            with open(f"/proc/{front[0]}/limits") as f:
                rows = {line[:25].strip(): line[26:].split()[0] for line in f.read().splitlines()[1:]}
            tap.eq((rows["Max open files"], rows["Max processes"], rows["Max core file size"]), ("5", "0", "0"),
                   "the front can open nothing more, start nothing, and leaves no core")
        tap.eq((stat(s.process.pid) or ("?",))[0], "cordond", "cordon serve has become cordond")
        tap.eq([os.readlink(f"/proc/{s.process.pid}/fd/{n}") for n in (0, 1)] if os.geteuid() == 0 else ["/dev/null"] * 2, ["/dev/null"] * 2,
               "cordond does not have the client's descriptors")


# --- the socket -----------------------------------------------------------------------------------

REACH = """import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
    sys.stdout.write(s.recv(4096).decode())
except OSError:
    pass
"""


def audited(word):
    """Records that have it."""
    lines = tapsys.cordon(programs, ["audit", "export"], "root" if os.geteuid() == 0 else "user").out.splitlines()
    return [line for line in lines if word in line]


def foreign(owner, other, session):
    """Whatever is asked of what belongs to another client is answered as for a handle that nobody has."""
    owner.tool("write_file", session_id=session, path="f", text="secret")
    records = audited(session)
    asked = [("execute_code", {"code": "1"})] + [("session", {"action": a}) for a in ("fork", "close", "interrupt")]
    asked += [("read_file", {"path": "f"}), ("write_file", {"path": "f", "text": "mine"}), ("list_files", {}), ("search_files", {"pattern": "secret"})]
    asked += [("snapshot", {"action": a, "snapshot": "head"}) for a in ("list", "create", "diff", "restore")]
    for tool, arguments in asked:
        got = [other.tool(tool, session_id=handle, **arguments) for handle in (session, "mcp-" + "a" * 26)]
        tap.ok(got[0] == got[1] and got[0]["isError"], f"{tool} {arguments.get('action', '')}: a session of another client is answered as one that nobody has", *got)
    got = [other.ask("resources/read", uri=f"cordon://{handle}/f").get("error") for handle in (session, "mcp-" + "a" * 26)]
    tap.ok(got[0] == got[1] and got[0], "resources/read: a file of another client's session is answered as one that nobody has", *got)
    tap.eq(audited(session), records, "nothing of that is on record as done")
    tap.eq(owner.tool("read_file", session_id=session, path="f")["structuredContent"].get("text"), "secret", "the session whose handle the other had is as it was")


def foreign_jobs():
    """The same for what runs, of both eras: the handle is a secret, and does not count for another client of the same server."""
    folder = programs.dir / "jobs"
    folder.mkdir(mode=0o700)
    server = start(programs, ["--socket", str(folder / "s"), "--profile", "standard", "--timeout", "10m", "--answer", "100ms", "--drain", "0s"])
    appears(lambda: connects(folder / "s"))
    knows = {META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}
    with Connection(folder / "s") as owner, Connection(folder / "s", legacy=None) as other:
        job, nobody = owner.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"], "job-" + "a" * 26
        for more in ({}, {"cancel": True}):
            got = [other.tool("wait_job", job_id=handle, **more) for handle in (job, nobody)]
            tap.ok(got[0] == got[1] and got[0]["isError"], f"wait_job {more}: a job of another client is answered as one that nobody has", *got)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            got = [other.ask(method, knows, taskId=handle).get("error") for handle in (job, nobody)]
            tap.ok(got[0] == got[1] and got[0], f"{method}: a task of another client is answered as one that nobody has", *got)
        tap.eq(owner.tool("wait_job", job_id=job)["structuredContent"]["status"], "running", "the job whose handle the other had goes on")
    server.terminate()
    stop(server)


def sockets():
    folder = programs.dir / "socket"
    folder.mkdir(mode=0o700)
    path = folder / "mcp"
    server = start(programs, ["--socket", str(path), "--profile", "standard", "--timeout", "10m", "--drain", "0s"])
    tap.ok(appears(lambda: connects(path)), "cordon serve --socket listens at its path")
    with Connection(path) as a, Connection(path, legacy=None) as b:
        tap.eq([c.tool("execute_code", code="6 * 7")["structuredContent"]["value"] for c in (a, b)], ["42", "42"],
               "two clients of two revisions are served by one socket")
        tap.ok(appears(lambda: len(named(server.pid, "cordon-front")) == 2), "each connection has a front of its own")  # that of the look at the socket ends
        appears(lambda: not named(server.pid, "cordon-python"))  # those that have answered end, too
        a.send("tools/call", name="execute_code", arguments={"code": FOREVER})
        of_a = set(appears(lambda: named(server.pid, "cordon-python")))
        number = b.send("tools/call", name="execute_code", arguments={"code": FOREVER})
        both = set(appears(lambda: named(server.pid, "cordon-python") if len(named(server.pid, "cordon-python")) > 1 else None) or ())
        a.end()
        tap.eq(gone(of_a), [], "a connection that is closed takes its runs with it")
        tap.ok(both - of_a and not b.replies.get(number) and all(stat(p) for p in both - of_a), "a connection that is closed leaves the runs of another alone", both, of_a)
        with Connection(path) as c:
            made = c.tool("session", action="new")["structuredContent"]["session_id"]
            r = b.tool("execute_code", code="x", session_id=made)
            tap.ok(r["isError"] and "no such session" in text(r), "a session of one connection is not there for another", r)
            foreign(c, b, made)
        again = tapsys.cordon(programs, ["serve", "--socket", str(path)])
        tap.ok(again.code == 1 and "another cordon serve" in again.err, "a second server at the same socket path is refused", again.err)
        if os.geteuid() == 0:
            folder.chmod(0o755)
            path.chmod(0o666)
            rows = (("another user", ["/usr/bin/setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]),
                    ("a process of another user namespace", ["/usr/bin/unshare", "-U", "--map-root-user"]), ("a process of our own", []))
            got = {what: subprocess.run([*before, "/usr/bin/python3", "-c", REACH, str(path)], stdout=subprocess.PIPE).stdout for what, before in rows}
            for what, _ in rows:
                tap.eq(b"jsonrpc" in got[what], what == "a process of our own", f"{what} is served: only the last of three is", got)
            folder.chmod(0o700)
        tree = family(server.pid)
        server.terminate()
        tap.eq(gone(tree - {server.pid}), [], "SIGTERM ends every connection and every run")
    tap.ok(stop(server) == 0 and not path.exists(), "SIGTERM ends the server with 0 and takes the socket away")
    killed = start(programs, ["--socket", str(path)])
    appears(lambda: connects(path))
    killed.kill()
    stop(killed)
    tapsys.cordon(programs, ["pool", "stop", "--force"])  # the holder that the session started
    server = start(programs, ["--socket", str(path)])
    tap.ok(appears(lambda: connects(path)) and Connection(path).opened.get("result"), "the socket of a killed server is taken over")
    taken(folder, path)
    replaced(folder)
    server.terminate()
    stop(server)
    folder.chmod(0o755)
    for where, word in ((path, "closed to others"), ("mcp", "absolute"), (programs.dir / "nowhere/mcp", "No such file")):
        r = tapsys.cordon(programs, ["serve", "--socket", str(where)])
        tap.ok(r.code == 2 and word in r.err, f"--socket with a folder that will not do is refused: {word}", r.err)


def taken(folder, path):
    """What is no socket is somebody's file: it stays, also the lock of the server at PATH, without which there would be two."""
    (folder / "file").write_text("precious")
    (folder / "link").symlink_to(folder / "file")
    for name in ("file", "link", path.name + ".lock"):
        r = tapsys.cordon(programs, ["serve", "--socket", str(folder / name)])
        tap.ok(r.code == 2 and name in r.err and "no socket" in r.err and os.path.lexists(folder / name), f"--socket with a path where something else is, {name}, is refused, and that stays", r.story())
    again = tapsys.cordon(programs, ["serve", "--socket", str(path)])
    tap.eq((again.code, sorted(p.name for p in folder.iterdir())), (1, sorted(["file", "link", path.name, path.name + ".lock"])), "a refused server leaves no lock behind, and the one that serves keeps its own", again.err)


def replaced(folder):
    """What is at the path of a server while it serves, and is not its socket, is somebody else's."""
    path, lock = folder / "replaced", folder / "replaced.lock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(1)
        r = tapsys.cordon(programs, ["serve", "--socket", str(path)])
        tap.ok(r.code == exits.FAILED and "another program" in r.err and connects(path) and not lock.exists(), "--socket with a path at which another program listens is refused, and that goes on", r.story())
    path.unlink()
    first = start(programs, ["--socket", str(path)])
    appears(lambda: connects(path))
    lock.unlink()
    r = tapsys.cordon(programs, ["serve", "--socket", str(path)])
    tap.ok(r.code == exits.FAILED and "another cordon serve" in r.err and connects(path), "a second server at the same path is refused, also where somebody removed the lock of the first", r.story())
    path.unlink()
    second = start(programs, ["--socket", str(path)])
    appears(lambda: connects(path))
    first.terminate()
    tap.ok(stop(first) == 0 and connects(path), "a server whose socket was removed ends, and that of another at the same path stays")
    path.unlink()
    path.write_text("precious")
    second.terminate()
    tap.ok(stop(second) == 0 and path.read_text() == "precious", "a file that somebody put in the place of the socket is there after the end of the server")


def closed():
    """A caller that closed its streams: nothing of cordond lies in their places, and a client that was never there has left."""
    for what, by in (("standard input", "<&-"), ("standard input and output", "<&- >&-")):
        p = subprocess.Popen(["/bin/sh", "-c", f'exec "$@" {by}', "sh", *programs.command(["serve", "--stdio"])], stdout=subprocess.DEVNULL, env=tapsys.clean_env())
        try:
            tap.eq(p.wait(PATIENCE), 0, f"cordon serve --stdio without {what} ends")
        except subprocess.TimeoutExpired:
            p.kill()
            tap.ok(False, f"cordon serve --stdio without {what} ends")
    folder = programs.dir / "closed"
    folder.mkdir(mode=0o700)
    p = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *programs.command(["serve", "--socket", str(folder / "mcp")])], env=tapsys.clean_env())
    appears(lambda: connects(folder / "mcp"))
    with Connection(folder / "mcp") as c:
        tap.eq(c.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "a server that was started without any stream serves")
        front = appears(lambda: len(f := named(p.pid, "cordon-front")) == 1 and f)[0]  # that of the look at the socket ends
        tap.eq([os.path.realpath(f"/proc/{pid}/fd/{fd}") for pid, fd in ((p.pid, 0), (p.pid, 1), (p.pid, 2), (front, 2))], ["/dev/null"] * 4,
               "what it opens is not where it and its fronts look for standard streams")
    p.terminate()
    p.wait(PATIENCE)


def connects(path):
    try:
        Connection(path, opens=False).end()
        return True
    except OSError:
        return False


# What each client reads: the name of its list, and what an entry has beside command and args.
SNIPPETS = {"claude": ("mcpServers", {}), "vscode": ("servers", {"type": "stdio"}), "cursor": ("mcpServers", {}), "codex": ("mcp_servers", {}),
            "zed": ("context_servers", {"source": "custom"})}


def snippets():
    quoted = programs.dir / 'a "quoted" \\ name.yaml'
    quoted.write_text("run: {profiles: [strict, standard]}\n")
    options = ["--profile", "standard", "--answer=30s", "--policy", str(quoted)]
    for client, (name, more) in SNIPPETS.items():
        r = tapsys.cordon(programs, ["serve", "--print-config", client, *options])
        told = (tomllib.loads if client == "codex" else json.loads)(r.out)
        want = {**more, "command": str(programs.cordon), "args": ["serve", "--stdio", *options]}
        tap.eq((r.code, told), (0, {name: {"cordon": want}}), f"--print-config {client} prints what that client reads, with our options", r.err)
        entry = told[name]["cordon"]
        opens = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}}
        p = subprocess.run([entry["command"], *entry["args"]], input=(json.dumps(opens) + "\n").encode(), stdout=subprocess.PIPE, env=tapsys.clean_env(), cwd="/")
        got = [json.loads(line) for line in p.stdout.splitlines()]
        tap.eq((p.returncode, [m["result"]["protocolVersion"] for m in got]), (0, [LEGACY[-1]]),
               f"--print-config {client}: the server that it names starts, answers, and ends with its client", p.stdout)
    tap.eq(tapsys.cordon(programs, ["serve", "--print-config", "emacs"]).code, 2, "--print-config for a client that nobody knows is a usage error")
    for words in ([], ["--stdio", "--socket", "/x"], ["--stdio", "more"], ["--stdio", "--output", "2m"], ["--stdio", "--answer", "1ms"]):
        tap.eq(tapsys.cordon(programs, ["serve", *words]).code, 2, f"cordon serve {' '.join(words)} is a usage error")
    for role, status in (("explore", "denied"), ("execute", "ok")):
        with Server(programs, "--profile", "standard", "--role", role) as s:
            tap.eq(s.tool("execute_code", code="6 * 7")["structuredContent"]["status"], status, f"a server of the role {role} begins, and its clients have that role")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        rows = ((2, ["--stdio", "--role", "wrong"], "--role: there is no role 'wrong'"), (2, ["--http", "99999"], "--http: '99999' is no PORT"),
                (2, ["--http", "[::g]:1"], "--http: '[::g]:1' is no PORT"), (2, ["--stdio", "--metrics", "localhost:1"], "--metrics: 'localhost:1' is no PORT"),
                (1, ["--http", port], f"--http {port}: Address already in use"), (1, ["--stdio", "--metrics", port], f"--metrics {port}: Address already in use"))
        for code, words, said in rows:
            r = tapsys.cordon(programs, ["serve", *words])
            tap.ok(r.code == code and said in r.err, f"cordon serve {words[-2]} with what will not do: the option and the value are named", r.story())


def recorded():
    r = tapsys.cordon(programs, ["audit", "verify"], "root" if os.geteuid() == 0 else "user")
    tap.eq(r.code, 0, "the audit of all served runs is whole", r.err)


handshakes()
later()
modern()
malformed()
shapes()
results()
numbers()
limits()
jobs()
cancelled()
ends()
contained()
sockets()
foreign_jobs()
closed()
snippets()
for user in users():
    lids(user)
    languages(user)
    sessions(user)
recorded()
tap.done()
