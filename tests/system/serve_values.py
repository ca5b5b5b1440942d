#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What clients of `cordon serve` may write where an argument is wanted: the right work comes of it, or a refusal that names the argument and what it may be.
And clients that read all the time and never catch up, or ask for much at once.

Usage: serve_values.py BUILD."""
import json
import re
import sys
import threading

import tapsys
from httptest import Site
from mcptest import Server, appears, bytes_of, named, text
from tapsys import Tap

tap, programs = Tap(), tapsys.Programs(sys.argv[1])
LARGEST = "9223372036854775807"


def call(s, name, arguments):
    """The reply to a call whose ARGUMENTS are JSON as a client wrote it."""
    s.number += 1
    s.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":%s}}\n' % (s.number, json.dumps(name).encode(), arguments.encode()))
    return s.reply(s.number)


def said(reply):
    return text(reply["result"]) if "result" in reply else reply["error"]["message"]


def counts(s):
    for value in ("1e15", "1e16", "1e21", "1e308", LARGEST, '"' + LARGEST + '"', '"18446744073709551616"', '"' + "9" * 40 + '"', '"99999999.000"'):
        for name, most in (("timeout_ms", 30000), ("memory_mb", 512), ("max_output_chars", 100000)):
            r = call(s, "execute_code", '{"code": "1", "%s": %s}' % (name, value))
            tap.ok(not r["result"]["isError"] and f"{name} is more than this server gives: {most} holds" in said(r), f"{name} of {value[:24]} is cut to what the server gives", r)
    for value in ("0", "-0", "-0.0", "-1", "0.5", "1.5", "1e-5", "true", "[]", '""', '"1e3"', '" 5"', '"5 "', '"+5"', '"0x10"', '"NaN"', '"1.5"', '"1.0001"', '"1."', '"5\\u0000"', '"5\\u00006"'):
        r = call(s, "execute_code", '{"code": "1", "timeout_ms": %s}' % value)
        tap.ok(r["result"]["isError"] and said(r).startswith("timeout_ms must be a whole number of 1 or more, not "), f"timeout_ms of {value} is refused by its name", r)
    for value in ("NaN", "Infinity", "1e999", "9223372036854775808", "18446744073709551616", '"\\ud800"'):
        r = call(s, "execute_code", '{"code": "1", "timeout_ms": %s}' % value)
        tap.eq((r.get("error") or {}).get("code"), -32700, f"{value}, which is no JSON or has more than 64 bits, is answered with -32700 and the id of its request", r)
    for value in (1, 15):
        r = call(s, "execute_code", '{"code": "1", "memory_mb": %d}' % value)
        tap.ok(r["result"]["isError"] and said(r).startswith("memory_mb must be 16 or more"), f"memory_mb of {value}, in which no interpreter fits, is refused by its name", r)


def offsets(s, session):
    where = '{"session_id": "%s", "path": "digits", "%s": %s, "encoding": "%s"}'
    for encoding in ("text", "base64"):
        for value in (LARGEST, "1e308", '"' + LARGEST + '"', "1099511627777"):
            r = call(s, "read_file", where % (session, "offset", value, encoding))
            tap.ok(r["result"]["isError"] and "offset: " in said(r) and "1099511627776" in said(r), f"read_file as {encoding} from {value} on is refused, and the most is named", r)
        whole = call(s, "read_file", where % (session, "offset", "0", encoding))["result"]["structuredContent"]
        for value in (LARGEST, "1e308", '"' + LARGEST + '"', "100000001"):
            r = call(s, "read_file", where % (session, "limit", value, encoding))["result"].get("structuredContent") or {}
            tap.eq([r.get(k) for k in ("text", "data", "next_offset")], [whole.get(k) for k in ("text", "data", "next_offset")],
                   f"read_file as {encoding} of up to {value} gives what there is", r)
        r = call(s, "read_file", where % (session, "offset", "1099511627776", encoding))["result"].get("structuredContent") or {}
        tap.eq((r.get("status"), r.get("data" if encoding == "base64" else "text"), r.get("next_offset")), ("ok", "", None),
               f"read_file as {encoding} from behind the end on gives nothing, and there is no more", r)


def names(s, session):
    for tool, argument, more in (("read_file", "path", {}), ("write_file", "path", {"text": ""}), ("list_files", "path", {}), ("search_files", "pattern", {}),
                                 ("search_files", "path", {"pattern": "x"}), ("snapshot", "name", {"action": "create"}), ("snapshot", "message", {"action": "create"})):
        r = s.ask("tools/call", name=tool, arguments={"session_id": session, argument: "x" * 4097, **more})
        tap.ok(r["result"]["isError"] and said(r) == f"{argument} has 4097 bytes; 4096 are the most", f"{tool}: {argument} of 4097 bytes is refused by its name", r)
    for encoding, long in (("text", "x" * ((2 << 20) + 1)), ("base64", "eHh4" * ((2 << 20) // 3 + 1))):
        r = s.call("write_file", session_id=session, path="large", text=long, encoding=encoding)
        tap.ok(r["result"]["isError"] and said(r) == "text: a file has at most 2 MiB in one call", f"write_file as {encoding} of more than 2 MiB is refused by its name", said(r)[:200])
    r = s.call("search_files", session_id=session, pattern="")
    tap.ok(r["result"]["isError"] and "'pattern' is 0 characters long; minLength is 1" in said(r), "search_files with an empty pattern says what is wrong with it", r)
    r = call(s, "search_files", '{"session_id": "%s", "pattern": "x", "ignore_case": "true\\u0000"}' % session)
    tap.ok(r["result"]["isError"] and said(r).startswith("ignore_case must be true or false"), "a truth value with a NUL behind it is none", r)


def whole_texts(s, session):
    """A result is told twice, and no part of it is only in the one: some clients show their model the text alone."""
    folder = "/".join(["d" * 200] * 5)
    said = text(s.tool("write_file", session_id=session, path=f"{folder}/deep.txt", text="needle\n"))
    tap.ok(f"{folder}/deep.txt, 7 bytes\n" in said, "the text of write_file has a path of 1000 letters whole", said)
    for what, tool, arguments, words in (("read_file", "read_file", {"path": f"{folder}/deep.txt"}, f"{folder}/deep.txt: 7 bytes"),
                                         ("list_files", "list_files", {"path": folder}, f"{folder}:\n- deep.txt"),
                                         ("search_files for lines", "search_files", {"pattern": "needle"}, f"{folder}/deep.txt:1: needle\n"),
                                         ("search_files for names", "search_files", {"pattern": "deep*", "what": "names"}, f"{folder}/deep.txt (file")):
        said = text(s.tool(tool, session_id=session, **arguments))
        tap.ok(words in said, f"the text of {what} has a path of 1000 letters whole", said)
    said = text(s.run(session_id=session, code=f"open('/workspace/{folder}/left', 'w').write('1')"))
    tap.ok(f"{folder}/left (1 bytes, created)\n" in said, "the text of a run has the path of a file of 1000 letters whole", said)
    more = [s.tool("session", action="new")["structuredContent"]["session_id"] for _ in range(15)]
    said = text(s.tool("session", action="list"))
    tap.ok(all(one in said for one in (session, *more)), "the text of session(action=list) has all 16 sessions", said)
    for one in more:
        s.tool("session", action="close", session_id=one)


def as_announced(s):
    """A strict client throws away what lacks a member that the tool's outputSchema requires, also where it is a refusal."""
    required = {t["name"]: t["outputSchema"]["required"] for t in s.ask("tools/list")["result"]["tools"]}
    lost = s.tool("session", action="new")["structuredContent"]["session_id"]
    s.run(session_id=lost, code="while True: pass", timeout_ms=300)
    for tool, arguments in (("session", {"action": "fork"}), ("session", {"action": "interrupt"}), ("execute_code", {"code": "1"}), ("read_file", {"path": "x"}),
                            ("list_files", {}), ("search_files", {"pattern": "x"}), ("snapshot", {"action": "list"}), ("session", {"action": "close"})):
        r = s.tool(tool, session_id=lost, **arguments)
        lacks = [k for k in required[tool] if k not in r.get("structuredContent", {k: 0})]
        tap.eq(lacks, [], f"{tool}({arguments}) of a session that is over has what its outputSchema requires", r)


def protocol(s):
    """A comparison ends at a NUL, and a client does not."""
    run = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"%s","arguments":{"code":"1"}}}\n'
    for method, name, code in ((b"tools/call", b"execute_code\\u0000x", -32602), (b"tools/call\\u0000x", b"execute_code", -32600)):
        s.number += 1
        s.write(run % (s.number, method, name))
        r = s.reply(s.number)
        tap.ok((r.get("error") or {}).get("code") == code and "NUL" in r["error"]["message"], f"{method.decode()} of {name.decode()} is no call", r)
    tap.eq((s.ask("logging/setLevel", level="info\0").get("error") or {}).get("code"), -32602, "a level with a NUL behind it is none")
    tap.ok("tools" in (s.ask("tools/list", cursor=None).get("result") or {}), "a cursor that is null is as if it were not there")


def behind():
    """Its answers never all fit into the pipe: what it has read must go from the server's memory meanwhile."""
    with Server(programs) as s:
        size = len(json.dumps(s.ask("tools/list")))
        count = (160 << 20) // size

        def write():
            for number in range(count):
                try:
                    s.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % number)
                except OSError:
                    return  # the server is gone: the reader says so
        writer = threading.Thread(target=write)
        writer.start()
        got, data = 0, True
        while got < count and data:
            data = s.process.stdout.read1(1 << 20)
            got += data.count(b"\n")
        writer.join()
        tap.eq(got, count, "a client that never catches up with 160 MB of answers gets all of them")


def peak(pid):
    """MB that a process had at most."""
    return int(re.search(rb"VmHWM:\s+(\d+) kB", bytes_of(pid, "status")).group(1)) / 1024


def unread():
    """One large result, asked for as often as a client may, and not read before all of that is with cordond."""
    with Server(programs, "--profile", "standard", "--answer", "100ms") as s:
        told = s.tool("execute_code", code="import sys, time\nfor out in (sys.stdout, sys.stderr):\n    out.write('\\1' * 99999)\ntime.sleep(1)")["structuredContent"]
        job = told["job_id"]
        while told["status"] == "running":
            told = s.tool("wait_job", job_id=job)["structuredContent"]
        before, numbers = peak(s.process.pid), range(1001, 1033)
        s.write(b"".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "wait_job", "arguments": {"job_id": job}}}).encode() + b"\n" for n in numbers))
        s.until(lambda: len([n for n in numbers if n in s.replies]) == len(numbers))
        tap.eq([n for n in numbers if (s.replies.get(n) or {}).get("result", {}).get("structuredContent") != told], [], "a client that asks for a large result 32 times at once gets it 32 times", told["status"])
        tap.ok(peak(s.process.pid) < before + 20, "cordond does not hold it 32 times meanwhile", before, peak(s.process.pid))


def large_array():
    """Answers of some 14 MB each, to one array; others use the same front."""
    with Site(programs, "--profile", "standard", "--answer", "1s", "--output", "1m") as site:
        v = site.legacy("2025-03-26")
        job = re.search("job-[a-z2-7]{26}", text(v.tool("execute_code", code="import sys, time\nfor out in (sys.stdout, sys.stderr):\n    out.write('\\1' * (1 << 20))\ntime.sleep(2)")))[0]
        appears(lambda: "running" not in text(v.tool("wait_job", job_id=job))[:40])
        front = named(site.process.pid, "cordon-front")
        ask = {"method": "tools/call", "params": {"name": "wait_job", "arguments": {"job_id": job}}}
        with site.connect() as c:  # not before: one without a request is closed
            r = c.ask(site.post([{"jsonrpc": "2.0", "id": n, **ask} for n in range(12)], **v.fields))
        answers = {m["id"]: m for m in [m for _, m in r.seen if m][-1]}
        refused = {m["error"]["message"] for m in answers.values() if "error" in m}
        tap.eq((sorted(answers), refused), (list(range(12)), {"the answers to this array are more than 64 MiB; send its requests one by one"}),
               "an array whose answers are too many bytes is answered, each request of it", {k: list(m) for k, m in answers.items()})
        tap.ok(any("result" in m for m in answers.values()), "answers to an array that fit are there")
        tap.eq(named(site.process.pid, "cordon-front"), front, "an array with too many bytes of answers does not end the front")


with Server(programs, "--profile", "standard") as server:
    one = server.tool("session", action="new")["structuredContent"]["session_id"]
    server.tool("write_file", session_id=one, path="digits", text="0123456789\n" * 10)
    counts(server)
    offsets(server, one)
    names(server, one)
    whole_texts(server, one)
    as_announced(server)
    protocol(server)
behind()
unread()
large_array()
tap.done()
