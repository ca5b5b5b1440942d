#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon serve --http`: what strangers, browsers, clients of both eras and broken connections find there."""
import base64
import contextlib
import ctypes
import os
import re
import signal
import socket
import stat
import sys
import threading

import tapsys
from httptest import Site
from mcptest import LEGACY, META, MODERN, appears, bytes_of, family, gone, named, runners, start, stop, text, whole
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
FOREVER = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
BODY, BODIES, READY = 4 << 20, 128 << 20, 2  # LIMIT_SERVE_LINE, LIMIT_HTTP_BODIES and LIMIT_SERVE_READY of src/base/limits.h
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def field(data, name, value):
    """The same request with one header more."""
    return data.replace(b"\r\n", b"\r\n" + name + b": " + value + b"\r\n", 1)


# --- HTTP ------------------------------------------------------------------------------------------

# Headers that we act on; twice is an error also where both say the same.
TWICE = ((b"Origin", b"http://localhost"), (b"Authorization", b"Bearer x"), (b"Content-Type", b"application/json"), (b"Accept", b"*/*"),
         (b"Connection", b"keep-alive"), (b"Expect", b"100-continue"), (b"Last-Event-ID", b"1-1"), (b"X-API-Key", b"x"), (b"Mcp-Method", b"tools/list"))


def malformed(s):
    good = s.modern("tools/list")
    body = good.split(b"\r\n\r\n", 1)[1]
    chunked = s.head(Transfer_Encoding="chunked", **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    piece = b"%x\r\n%s\r\n" % (len(body), body)
    whole = piece + b"0\r\n\r\n"  # a good message: without the fault of its row a request is answered with 200
    host = b"Host: 127.0.0.1:%d\r\n" % s.port
    rows = [
        (field(chunked, b"Content-Length", b"5") + whole, 400, "a length and chunks at once"),
        (field(good, b"Content-Length", b"%d" % len(body)), 400, "the same length twice"),
        (good.replace(b"Content-Length: ", b"Content-Length: +"), 400, "a length with a sign"),
        (good.replace(b"Content-Length: ", b"Content-Length: 0x"), 400, "a length that is hexadecimal"),
        (good.replace(b"Content-Length: %d" % len(body), b"Content-Length: 5, 5"), 400, "a list of lengths"),
        (s.head("GET", "/.well-known/oauth-protected-resource", Content_Length=""), 400, "a length that is empty"),
        (chunked + b"0x" + whole, 400, "a chunk whose size begins with 0x"),
        (chunked + whole.replace(b"\r", b";x=y\r", 1), 400, "a chunk with an extension"),
        (chunked + b"100000000\r\n", 400, "a chunk whose size has nine digits"),
        (chunked + b"7fffffff\r\n{", 413, "a chunk that is announced with 2 GB"),
        (chunked + piece + b"\r\n\r\n", 400, "a chunk without a size"),
        (chunked + whole.replace(b"\n", b"X", 1), 400, "a chunk whose size ends in CR alone"),
        (chunked + whole.replace(b"\r\n", b"\n", 1), 400, "a chunk whose size ends in LF alone"),
        (chunked + b"1\r\nab\r\n", 400, "a chunk that is longer than it says"),
        (chunked + piece[:-2] + b"X\n0\r\n\r\n", 400, "a chunk that does not end in CR"),
        (chunked + piece[:-2] + b"\rX0\r\n\r\n", 400, "a chunk that ends in CR alone"),
        (chunked + piece + b"0\r\nX\n", 400, "a last chunk that does not end in CR"),
        (chunked + piece + b"0\r\n\rX", 400, "a last chunk that ends in CR alone"),
        (chunked + piece + b"0\r\nX: y\r\n\r\n", 400, "chunks with a trailer"),
        (chunked + whole.replace(b"\r", b""), 400, "chunks whose lines end in LF alone"),
        (chunked.replace(b"chunked", b"gzip, chunked") + whole, 400, "a body in two codings"),
        (chunked.replace(b"chunked", b"identity") + whole, 400, "a body in a coding that nobody knows"),
        (field(good, b"Origin", b"http://localhost\0.evil.example"), 400, "a NUL in the origin"),
        (good.replace(b"\r\n", b"\n"), 400, "lines that end in LF alone"),
        (good.replace(b"\r\n", b"\r", 1), 400, "a line that ends in CR alone"),
        (field(good, b"X", b"y\rZZ: z"), 400, "a CR within a header"),
        (good.replace(host, b""), 400, "a request without a host"),
        (good.replace(host, host + host), 400, "a request with the host twice"),
        (field(good, b"", b"x"), 400, "a header without a name"),
        (field(good, b"X ", b"y"), 400, "a space before a colon"),
        (good.replace(b"Accept: ", b"no colon\r\nAccept: "), 400, "a header without a colon"),
        (good.replace(b"Accept: ", b"Accept:\r\n "), 400, "a header that is folded"),
        (field(good, b"X", b"y\r\n z: w"), 400, "a header that is folded before a colon"),
        (good.replace(b"Accept: ", b"Accept: \x80"), 400, "a header beyond ASCII"),
        (good.replace(b"Accept: ", b"Accept: \x1b"), 400, "a header with a control character"),
        *((field(field(good, name, value), name, value), 400, f"{name.decode()} twice") for name, value in TWICE),
        (field(chunked, b"Transfer-Encoding", b"chunked") + whole, 400, "Transfer-Encoding twice"),
        (good.replace(b"HTTP/1.1", b"HTTP/1.0", 1), 505, "a request of HTTP/1.0"),
        (good.replace(b"HTTP/1.1", b"HTTP/2.0", 1), 505, "a request of HTTP/2.0"),
        (good.replace(b"POST /mcp", b"POST http://127.0.0.1/mcp", 1), 400, "a target that is a whole address"),
        (good.replace(b"POST /mcp", b"POST  /mcp", 1), 400, "two spaces in the request line"),
        (good.replace(b"HTTP/1.1", b"HTTP/1.1 ", 1), 400, "a space after the version"),
        (good.replace(b"POST /mcp", b"POST /mcp\tx", 1), 400, "a tab in the request line"),
        (good.replace(b"HTTP/1.1", b"FTP/1.1", 1), 400, "a request of another protocol"),
        (good.replace(b"POST", b"P(ST", 1), 400, "a method with a bracket in it"),
        (b"\r\n" + good, 400, "an empty line before the request"),
        (b"\r\n", 400, "an empty line, before anything else comes,"),
        (good.replace(b"POST", b"GET", 1), 400, "GET with a body"),
        (good.replace(b"POST", b"DELETE", 1), 400, "DELETE with a body"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "the beginning of TLS"),
        (b"GET /mcp\r\n\r\n", 400, "a request of HTTP/0.9"),
        (field(good, b"X", b"y" * 20000), 431, "a header of twenty thousand bytes"),
        (good.replace(b"Accept: ", b"".join(b"X-%d: y\r\n" % i for i in range(70)) + b"Accept: "), 431, "seventy headers"),
        (s.head(Content_Length=99999999), 413, "a body that is announced with 99 MB"),
        (good.replace(b"Content-Length: %d" % len(body), b"Content-Length: %d" % ((1 << 64) + len(body))), 413, "a body that is announced with 64 bits more than it has"),
        (field(good, b"Expect", b"200-maybe"), 417, "an expectation that nobody knows"),
        (good.replace(b"application/json\r\nC", b"text/plain\r\nC"), 415, "a body that is not JSON by its type"),
        (good.replace(b"Accept: application/json, text/event-stream", b"Accept: image/png"), 406, "a client that takes nothing that we have"),
        (good.replace(b"POST /mcp", b"PUT /mcp"), 405, "a method that the path has not"),
        (s.head("PUT"), 405, "a method of an older revision that the path has not"),
        (s.head("POST", "/.well-known/oauth-protected-resource"), 405, "a POST to what tells of the token"),
        (good.replace(b"POST /mcp", b"POST /mcp/../mcp"), 404, "a path that is not ours"),
    ]
    for data, status, what in rows:
        with s.connect() as c:
            tap.eq(c.ask(data).status, status, f"{what} is answered with {status}", data[:200])
    with s.connect() as c:
        r = c.ask(rows[0][0])
        tap.ok(r.fields.get("connection") == "close" and c.ended(), "a malformed request ends its connection", r.fields)
    with s.connect() as c:
        longer = good.replace(b"Content-Length: %d" % len(body), b"Content-Length: %d" % (len(body) - 5)) + b"\r\n\r\n"
        first, second = c.ask(longer), c.reply()
        tap.eq((first.status, first.code, second.status, c.ended()), (400, -32700, 400, True),
               "a body that is longer than its length is read to its length, and the rest is a malformed request")
    with s.connect() as c:
        tap.eq((c.ask(good + b"garbage\r\n\r\n").status, c.reply().status, c.ended()), (200, 400, True), "what follows a good request is read as a request of its own")
    with s.connect() as c:
        for i in range(0, len(good), 7):
            c.send(good[i:i + 7])
        tap.eq(c.reply().status, 200, "a request that comes seven bytes at a time is answered")
        tap.eq(c.ask(chunked + b"1\r\n" + body[:1] + b"\r\n" + b"%X\r\n" % (len(body) - 1) + body[1:] + b"\r\n0\r\n\r\n").status, 200,
               "a body in chunks is answered, on the same connection")
        c.send(good + s.modern("server/discover", number=7))
        tap.eq((c.reply().json["id"], c.reply().json["id"]), (1, 7), "two requests in one packet are answered in their order")
        head = field(s.head(Content_Length=len(body), **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}), b"Expect", b"100-continue")
        first = c.send(head).reply_head()
        tap.eq((first.status, c.ask(body).status), (100, 200), "a client that waits for 100 Continue gets it, and then its answer")


def heavy(s):
    """Bodies that are announced count as if they were there: so many clients cannot fill the memory together."""
    asks = s.head(Content_Length=BODY, Expect="100-continue")
    whole = [s.connect().send(asks) for _ in range(BODIES // BODY)]
    tap.eq({c.reply_head().status for c in whole}, {100}, "bodies of 128 MiB together are waited for")
    with s.connect() as c:
        tap.eq(c.ask(s.head(Content_Length=1)).status, 503, "a body beyond 128 MiB of all that are waited for is answered with 503")
    for c in whole:
        c.close()
    tap.ok(appears(lambda: admitted(s, asks)), "a body is waited for again once the others are gone")


def admitted(s, asks):
    with s.connect() as c:
        return c.send(asks).reply_head().status == 100


def strangers(s):
    good = s.modern("tools/list")
    bearer = f"Bearer {s.token}".encode()
    rows = [(b"Bearer " + b"x" * len(s.token), "a wrong token"), (bearer[:-1], "a token that lacks its last character"), (bearer + b"a", "a token with one character more"),
            (b"Bearer", "no token after the word"), (s.token.encode(), "a token without the word"), (b"Basic " + s.token.encode(), "a token of another scheme"), (None, "no authorization")]
    for value, what in rows:
        data = good.replace(b"Authorization: " + bearer + b"\r\n", b"Authorization: " + value + b"\r\n" if value else b"")
        with s.connect() as c:
            r = c.ask(data)
            tap.ok(r.status == 401 and 'resource_metadata="http://127.0.0.1:' in r.fields.get("www-authenticate", ""),
                   f"{what} is answered with 401 and where to read more", r.status, r.fields)
    with s.connect() as c:
        r = c.ask(s.head(Content_Length=4000000, Authorization=None))
        tap.eq(r.status, 401, "a stranger is refused before its body is read")
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        with s.connect() as c:
            r = c.ask(s.head("GET", path, Authorization=None, Content_Type=None))
            tap.ok(r.status == 200 and r.json.get("resource") == f"http://127.0.0.1:{s.port}/mcp" and r.json.get("bearer_methods_supported") == ["header"],
                   f"{path} tells a client whose token is wanted", r.body)
    v = s.legacy()
    for method in ("GET", "DELETE"):
        for fields, status, what in (({"Authorization": None}, 401, "no token"), ({"Authorization": "Bearer " + "x" * len(s.token)}, 401, "a wrong token"),
                                     ({"Origin": "http://evil.example"}, 403, "another origin"), ({"Host": "evil.example"}, 403, "another host")):
            with s.connect() as c:
                tap.eq(c.send(s.head(method, Content_Type=None, **{**v.fields, **fields})).reply_head().status, status, f"{method} of a session with {what} is answered with {status}")
    tap.eq(v.ask("ping").json.get("result"), {}, "a session that strangers asked for is there for its client")
    v.delete()
    with s.connect() as c:
        tap.eq(c.ask(s.head("GET", "/.well-known/oauth-protected-resource", Host="evil.example", Content_Type=None)).status, 403, "what tells of the token is not told to another host")
    hosts = [("127.0.0.1", 200), (f"localhost:{s.port}", 200), ("[::1]:80", 200), ("evil.example", 403), (f"evil.example:{s.port}", 403),
             ("127.0.0.1.evil.example", 403), ("localhost:80:80", 403), ("localhost:", 403), ("127.0.0.1@evil.example", 403), ("", 403)]
    for host, status in hosts:
        with s.connect() as c:
            tap.eq(c.ask(good.replace(b"Host: 127.0.0.1:%d" % s.port, b"Host: " + host.encode())).status, status, f"a request to the host '{host}' is answered with {status}")
    origins = [("http://localhost", 200), (f"http://127.0.0.1:{s.port}", 200), ("https://localhost:8443", 200), ("http://evil.example", 403), ("null", 403),
               ("http://localhost.evil.example", 403), ("http://localhost@evil.example", 403), ("file://", 403), ("chrome-extension://abc", 403), ("HTTP://localhost", 403)]
    for origin, status in origins:
        with s.connect() as c:
            tap.eq(c.ask(field(good, b"Origin", origin.encode())).status, status, f"a request of the origin '{origin}' is answered with {status}")


# --- the newest revision ---------------------------------------------------------------------------

def modern(s):
    with s.connect() as c:
        r = c.ask(s.modern("tools/call", name="execute_code", arguments={"code": "6 * 7"}))
        tap.ok(r.status == 200 and r.fields["content-type"] == "application/json" and r.json["result"]["structuredContent"]["value"] == "42"
               and "mcp-session-id" not in r.fields, "a run is answered as JSON, without any session", r.fields)
        name = "=?base64?" + base64.b64encode(b"execute_code").decode() + "?="
        call = {"name": "execute_code", "arguments": {"code": "1"}}
        rows = [({}, 200, None, "a name"), ({"Mcp-Name": name}, 200, None, "a name in base64"), ({"Mcp-Session-Id": "a" * 32}, 200, None, "a session, which the revision has not,"),
                ({"Mcp-Name": "check_code"}, 400, -32020, "another name"),
                ({"Mcp-Name": "EXECUTE_CODE"}, 400, -32020, "a name in capitals"), ({"Mcp-Name": None}, 400, -32020, "no name"), ({"Mcp-Name": "=?base64?!!!?="}, 400, -32020, "a name in broken base64"),
                ({"Mcp-Method": "tools/list"}, 400, -32020, "another method"), ({"Mcp-Method": None}, 400, -32020, "no method"),
                ({"MCP-Protocol-Version": None}, 400, -32020, "no revision"), ({"MCP-Protocol-Version": "2025-11-25"}, 400, -32020, "another revision")]
        for fields, status, code, what in rows:
            r = c.ask(s.modern("tools/call", fields=fields, **call))
            tap.eq((r.status, r.code), (status, code), f"{what} in the headers of a call is answered with {status}", r.body)
        uri = "cordon://mcp-" + "a" * 26 + "/x"
        for fields, code, what in (({"Mcp-Name": uri}, -32602, "the address"), ({"Mcp-Name": uri + "y"}, -32020, "another address"), ({}, -32020, "no address")):
            r = c.ask(s.modern("resources/read", uri=uri, fields=fields))
            tap.eq((r.status, r.code), (400, code), f"{what} in the headers of resources/read is answered with {code}", r.body)
        r = c.ask(s.modern("tools/list", meta={META + "protocolVersion": "2031-01-01"}, fields={"MCP-Protocol-Version": "2031-01-01"}))
        tap.eq((r.status, r.code), (400, -32022), "a revision that nobody knows is answered with 400 and -32022")
        r = c.ask(s.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}))
        tap.eq((r.status, r.code), (400, -32602), "a request without _meta is answered with 400 and -32602")
        r = c.ask(s.modern("tools/nothing"))
        tap.eq((r.status, r.code), (404, -32601), "a method that nobody has is answered with 404 and -32601")
        r = c.ask(s.post(b"{not json", **{"MCP-Protocol-Version": MODERN}))
        tap.eq((r.status, r.code), (400, -32700), "a body that is no JSON is answered with 400 and -32700")
        r = c.ask(s.post({"jsonrpc": "2.0", "method": "notifications/x"}, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "notifications/x"}))
        tap.eq((r.status, r.body), (202, b""), "a notification is answered with 202")
        for method in ("GET", "DELETE"):
            r = c.ask(s.head(method, Content_Type=None, **{"MCP-Protocol-Version": MODERN}))
            tap.ok(r.status == 405 and "POST" in r.fields.get("allow", ""), f"{method} of the newest revision is answered with 405", r.status)
        for what, request in (("the path", s.head("HEAD")), ("what tells of the token", s.head("HEAD", "/.well-known/oauth-protected-resource")),
                              ("a stranger", s.head("HEAD", Authorization=None)), ("another path", s.head("HEAD", "/other"))):
            c.send(request + s.modern("tools/list"))
            first, second = c.reply_head(), c.reply()
            tap.eq((first.status in (401, 404, 405), second.status), (True, 200), f"the answer to HEAD ({what}) has no body, and the next request gets its own answer", first.fields, second.body[:200])
        r = c.ask(s.modern("tools/call", fields={"Accept": "text/event-stream"}, name="execute_code", arguments={"code": "3"}))
        tap.ok(r.fields["content-type"] == "text/event-stream" and r.json["result"]["structuredContent"]["value"] == "3", "a client that takes events alone gets its reply as one", r.fields)


def progress(s):
    with s.connect() as c:
        r = c.ask(s.modern("tools/call", meta={"progressToken": "p"}, name="execute_code", arguments={"code": FOREVER}))
        told = [m["params"]["progress"] for _, m in r.seen if m.get("method") == "notifications/progress"]
        o = r.json["result"]["structuredContent"]
        tap.ok(told and told == sorted(set(told)) and o["status"] == "running" and r.fields.get("x-accel-buffering") == "no",
               "progress comes as events before the reply, and a long run is answered with a job", r.seen)
        tap.ok(all(i is None for i, _ in r.seen), "events of the newest revision have no number: they cannot be asked for again")
        first = named(s.process.pid, "cordon-python")
        r = whole(s, c.ask(s.modern("tools/call", name="wait_job", arguments={"job_id": o["job_id"], "cancel": True})).json["result"])
        tap.ok(r["structuredContent"]["status"] == "error" and not gone(first), "a job of one request is ended by another, on any connection", r)


def tasks(s):
    """A client that knows tasks gets one for a long run; another gets a job."""
    knows = {META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}
    with s.connect() as c:
        found = c.ask(s.modern("server/discover")).json["result"]["capabilities"]
    tap.ok(META + "tasks" in found.get("extensions", {}), "server/discover names the tasks extension", found)

    def of_task(method, task, **more):
        with s.connect() as c:
            return c.ask(s.modern(method, taskId=task, **more, fields={"Mcp-Name": task}, meta=knows))

    def over(task):
        r = of_task("tasks/get", task).json["result"]
        return r if r["status"] != "working" else None
    with s.connect() as c:
        r = c.ask(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}, meta=knows)).json["result"]
        task = r.get("taskId", "")
        tap.ok(r["resultType"] == "task" and r["status"] == "working" and r["ttlMs"] == 600000 and "content" not in r, "a long run is answered with a task", r)
        r = of_task("tasks/get", task)
        tap.ok(r.json["result"]["status"] == "working" and r.json["result"]["taskId"] == task, "tasks/get tells at once that a run goes on", r.body)
        r = c.ask(s.modern("tasks/get", taskId=task, fields={"Mcp-Name": "other"}, meta=knows))
        tap.eq((r.status, r.code), (400, -32020), "another task in the header than in the body is answered with 400 and -32020")
        r = c.ask(s.modern("tasks/get", taskId=task, fields={"Mcp-Name": task}))
        tap.eq((r.status, r.code), (400, -32021), "tasks/get of a client that does not know tasks is answered with 400 and -32021")
        tap.eq(of_task("tasks/update", task, inputResponses={}).json.get("result", {}).get("resultType"), "complete", "tasks/update is acknowledged")
        r = of_task("tasks/cancel", task).json["result"]
        tap.ok(r["resultType"] == "complete" and "status" not in r, "tasks/cancel is acknowledged with nothing", r)
        tap.eq((appears(lambda: over(task)) or {}).get("status"), "cancelled", "a task that was cancelled says so")
        tap.eq(of_task("tasks/cancel", task).json["result"]["resultType"], "complete", "a task that is over can be cancelled again")
        slow = "import time\nend = time.monotonic() + 2.5\nwhile time.monotonic() < end: time.sleep(0.01)\nprint('done')\n1/0"
        while "taskId" not in (r := c.ask(s.modern("tools/call", name="execute_code", arguments={"code": slow}, meta=knows)).json["result"]):
            pass  # it was over before the first answer: cordond had slept for so long
        task = r["taskId"]
        r = appears(lambda: over(task)) or {}
        tap.ok(r.get("status") == "completed" and r["result"]["isError"] and r["result"]["structuredContent"]["stdout"] == "done\n",
               "a task that is over has the result of its run in it, an exception too", r)
        for number, status in ((signal.SIGKILL, "completed"), (signal.SIGSTOP, "cancelled")) if os.geteuid() == 0 else ():
            ready = appears(lambda: len(all := named(s.process.pid, "cordon-ready")) == READY and all)
            for p in ready:  # one of them gets the run, and says nothing of it; one that a signal stopped would not get it
                tap.ok(trace(PTRACE_SEIZE, p) == 0 and trace(PTRACE_INTERRUPT, p) == 0, f"a waiting runner is held before {number.name}")
                os.waitpid(p, WALL)
            task = c.ask(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}, meta=knows)).json["result"].get("taskId", "")
            for p in ready:
                os.kill(p, signal.SIGSTOP)
                tap.ok(trace(PTRACE_DETACH, p) == 0, f"a held runner is stopped before {number.name}")
            if number == signal.SIGSTOP:
                of_task("tasks/cancel", task)
            else:
                for p in ready:
                    os.kill(p, number)
            r = appears(lambda: over(task)) or {}
            tap.eq((r.get("status"), r.get("result", {}).get("isError")), (status, True if status == "completed" else None),
                   f"a task whose runner gets {number.name} before it begins is {status}", r)
            r = s.tool("wait_job", job_id=task)
            for p in named(s.process.pid, "cordon-ready"):
                with contextlib.suppress(ProcessLookupError):  # of those that were killed one may be there until now
                    os.kill(p, signal.SIGCONT)
            tap.ok(r["isError"] and ("cancelled" if number == signal.SIGSTOP else "the runner ended") in text(r), f"wait_job tells a run whose runner got {number.name} in the same way", r)
        tap.eq(of_task("tasks/get", "job-" + "a" * 26).code, -32602, "a task that nobody has is answered with -32602")
        tap.eq(of_task("tasks/get", "x").code, -32602, "a task id of another form is answered with -32602")
        for method in ("tasks/list", "tasks/result"):
            tap.eq(of_task(method, task).code, -32601, f"{method} is no method of the extension")


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


def trace(request, pid):
    """A process that a debugger holds stands still, and its parent does not see that."""
    return ctypes.CDLL(None).ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(0), ctypes.c_void_p(0))


def disconnect(s):
    c = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
    worker = appears(lambda: named(s.process.pid, "cordon-python"))
    c.close()
    tap.eq((bool(worker), gone(worker)), (True, []), "a client of the newest revision that leaves takes its run with it")
    c = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
    worker = appears(lambda: named(s.process.pid, "cordon-python"))
    c.socket.shutdown(1)
    tap.eq((bool(worker), gone(worker)), (True, []), "a client that ends its side takes its run with it")
    c.close()


# --- revisions that have sessions ------------------------------------------------------------------

def legacy(s):
    for version in LEGACY:
        v = s.legacy(version)
        tap.ok(v.id and len(v.id) == 32 and v.opened.json["result"]["protocolVersion"] == version, f"{version}: initialize gives a session", v.opened.body)
        r = v.ask("tools/call", name="execute_code", arguments={"code": "6 * 7"})
        tap.ok("42" in text(r.json["result"]) and r.fields["content-type"] == "text/event-stream", f"{version}: a run is answered in its session", r.body)
        tap.eq(v.tell("notifications/initialized").status, 202, f"{version}: a notification is answered with 202")
        tap.eq(v.delete().status, 200, f"{version}: DELETE ends the session")
        tap.eq(v.ask("ping").status, 404, f"{version}: a session that was ended is answered with 404")
    v = s.legacy()
    with v.listen() as heard, s.connect() as stream, s.connect() as plain:
        stream.send(v.request("tools/call", name="execute_code", arguments={"code": FOREVER}))
        plain.send(s.post({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": FOREVER}}}, **{**v.fields, "Accept": "application/json"}))
        heads = [c.reply_head() for c in (heard, stream)]
        workers = appears(lambda: len(named(s.process.pid, "cordon-python")) == 2 and named(s.process.pid, "cordon-python"))
        v.delete()
        told = [m for c in (heard, stream) for _, m in iter(c.event, None) if m]
        tap.eq(([h.status for h in heads], told), ([200, 200], []), "streams of a session that is ended are over, without a reply")
        tap.eq([c.ask(s.modern("tools/list")).status for c in (heard, stream)], [200, 200], "connections of streams that were ended so had their last chunk, and can be used again")
        tap.eq(plain.reply().status, 404, "a call that waits for its reply when its session is ended is answered with 404")
        tap.eq((bool(workers), gone(workers or [])), (True, []), "the runs of a session that is ended end with it")
    with s.connect() as c:
        tap.eq(c.ask(s.post(PING)).status, 400, "a request of an older revision without a session is answered with 400")
        tap.eq(c.ask(s.post(PING, **{"Mcp-Session-Id": "a" * 32})).status, 404, "a session that nobody has is answered with 404")
        v = s.legacy()
        tap.eq(c.ask(s.post(PING, **{**v.fields, "MCP-Protocol-Version": "1999-01-01"})).status, 400, "a revision that nobody knows in the header of a session is answered with 400")
        tap.eq(c.ask(s.post(PING, **{"Mcp-Session-Id": v.id})).json.get("result"), {}, "a session without the header of its revision is served")
    v = s.legacy("2025-03-26")
    with s.connect() as c:
        r = c.ask(s.post([{**PING, "id": 71}, {"jsonrpc": "2.0", "method": "notifications/x"},
                          {"jsonrpc": "2.0", "id": 72, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": "1"}}}], **v.fields))
        got = [m for _, m in r.seen if m]
        tap.eq(sorted(m["id"] for m in got[-1]), [71, 72], "2025-03-26: an array of messages is answered by one array, runs included")
        tap.eq(c.ask(s.post([{"jsonrpc": "2.0", "method": "notifications/x"}], **v.fields)).status, 202, "2025-03-26: an array of notifications is answered with 202")
    a, b = s.legacy(), s.legacy()
    with s.connect() as one, s.connect() as two:
        one.send(a.request("tools/call", name="execute_code", arguments={"code": FOREVER}))
        two.send(b.request("tools/call", name="execute_code", arguments={"code": FOREVER}))
        appears(lambda: len(named(s.process.pid, "cordon-python")) > 1)
        a.tell("notifications/cancelled", requestId=1)
        r = one.reply()
        tap.ok(r.status == 200 and not r.body, "notifications/cancelled ends the request of its own session, which is not answered", r.body)
        tap.eq(len(appears(lambda: [p for p in named(s.process.pid, "cordon-python")] if len(named(s.process.pid, "cordon-python")) == 1 else None) or ()), 1,
               "a request of another session with the same id goes on")
        b.delete()
        tap.eq(gone(named(s.process.pid, "cordon-python")), [], "a session that is ended takes its runs with it")


def resumption(s):
    v = s.legacy()
    c = s.connect().send(v.request("tools/call", name="execute_code", arguments={"code": "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: time.sleep(0.01)\n'done'"}))
    c.reply_head()
    first = c.event()
    tap.ok(first and first[0] and first[1] is None, "2025-11-25: a stream begins with a number and no message", first)
    c.close()
    with v.listen(first[0]) as again:
        r = again.reply()
        tap.eq(r.json.get("result", {}).get("structuredContent", {}).get("value"), "'done'", "a client that lost its connection gets its reply with Last-Event-ID", r.body)
        last = r.seen[-1][0]
    with v.listen(first[0]) as again:
        tap.eq(again.reply().json.get("id"), 1, "the events of a stream can be asked for again after its end")
    with v.listen(last) as again:
        r = again.reply()
        tap.ok(r.status == 200 and r.seen == [], "nothing comes after the last event of a stream", r.seen)
    with s.legacy().listen(first[0]) as other:
        tap.eq(other.reply().status, 400, "a stream of another session is not there")
    for bad in ("x", "1-", "-1", "999999-0", first[0] + "9"):
        with v.listen(bad) as c:
            tap.eq(c.reply().status, 400, f"Last-Event-ID {bad} is answered with 400")
    with v.listen() as c:
        tap.eq(c.reply_head().fields.get("content-type"), "text/event-stream", "GET gives the stream of a session")
        with v.listen() as d:
            tap.eq(d.reply().status, 409, "a second stream of the same session is answered with 409")
    tap.ok(appears(lambda: opens_again(v)), "the stream of a session can be opened again after its client left")
    comes_back(s)


def comes_back(s):
    """The stream of GET has a number before anything happened; its client comes back with it after the server has seen it leave."""
    v, last = s.legacy(), None
    for what in ("is given", "can be asked for again by its number", "can be asked for again a second time"):
        with v.listen(last) as c:
            head, port = c.reply_head(), c.socket.getsockname()[1]
            tap.eq(head and head.status, 200, f"2025-11-25: the stream of GET {what}", c.rest)
            last = last or c.event()[0]
        appears(lambda: has_left(s, port))
    with v.listen() as c:
        tap.eq(c.reply_head().status, 200, "2025-11-25: a client that has forgotten the number gets a stream anew")
        with v.listen(last) as d:
            tap.eq(d.reply().status, 400, "2025-11-25: the stream in whose place that came is not there any more")
    v.delete()
    with v.listen(last) as c:
        tap.eq(c.reply().status, 404, "2025-11-25: a stream ends with its session, whoever comes back for it")


def has_left(s, port):
    """Whether the server has seen the end of the connection that came from PORT: it has closed its own."""
    with open("/proc/net/tcp") as f:
        rows = [line.split()[1:4] for line in f.readlines()[1:]]
    return not any(ours.endswith(f":{s.port:04X}") and theirs.endswith(f":{port:04X}") and state in ("01", "08") for ours, theirs, state in rows)  # open, or only theirs is closed


def opens_again(v):
    with v.listen() as c:
        return c.reply_head().status == 200


# --- many, and slow ones ---------------------------------------------------------------------------

def many(s):
    """More calls at once than cordond takes: each is answered, none twice."""
    got, errors = [], []

    def one(n):
        try:
            with s.connect() as c:
                r = c.ask(s.modern("tools/call", number=n, name="execute_code", arguments={"code": f"{n} + 0"}))
                got.append((r.json.get("id"), r.json["result"]["structuredContent"]["value"]))
        except (OSError, KeyError, ValueError) as e:
            errors.append(repr(e))
    threads = [threading.Thread(target=one, args=(n,)) for n in range(1, 49)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    tap.eq((sorted(got), errors), ([(n, str(n)) for n in range(1, 49)], []), "forty-eight calls at once on as many connections are answered, each with its own value")


def drip_begin(s):
    """Clients that send a part of a request and then nothing; looked at when the rest of the tests is over."""
    good = s.modern("tools/list")
    return [s.connect().send(good[:40]), s.connect().send(good[:-5]), s.connect()]


def drip_end(slow):
    tap.eq((slow[0].reply().status, slow[0].ended()), (408, True), "a head that does not come to its end is answered with 408, and the connection closed")
    tap.ok(slow[2].ended(), "a connection on which nothing is said is closed")


def crowd(s):
    idle = [s.connect() for _ in range(300)]
    with s.connect() as c:
        tap.eq(c.ask(s.modern("tools/list")).status, 200, "three hundred idle connections do not keep a client away")
    for c in idle:
        c.close()


def deaf(s):
    """A client that asks for much and does not read."""
    c = s.connect()
    call = s.modern("tools/call", name="execute_code", arguments={"code": "print('x' * 90000)"})
    c.socket.setblocking(False)
    try:
        for _ in range(2000):
            c.socket.send(call)
    except BlockingIOError:
        pass
    tap.eq(s.tool("execute_code", code="5")["structuredContent"]["value"], "5", "a client that does not read its answers holds nobody else up")
    c.close()


# --- ends ------------------------------------------------------------------------------------------

def ends():
    with Site(programs, "--profile", "standard", "--timeout", "10m", "--answer", "1s", "--drain", "0s") as s:
        made = s.tool("session", action="new")["structuredContent"]["session_id"]
        s.run(code="x = 41", session_id=made)
        job = s.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"]
        appears(lambda: "begun" in text(s.tool("wait_job", job_id=job)))
        waiting = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
        appears(lambda: len(runners(s.process.pid)) > 1)
        front = named(s.process.pid, "cordon-front")
        os.kill(front[0], signal.SIGKILL)
        tap.ok(waiting.ended(), "the connections of a front that is killed end")
        tap.eq(s.run(code="x + 1", session_id=made)["structuredContent"]["value"], "42", "a new front serves after the old one was killed, and sessions are still there")
        r = s.tool("wait_job", job_id=job, cancel=True)
        tap.eq(r["structuredContent"]["stdout"], "begun\n", "a job is still there after its front was killed")
        tap.ok(appears(lambda: len(named(s.process.pid, "cordon-front")) == 1), "there is one front again")
        waiting.close()
        waiting = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
        appears(lambda: runners(s.process.pid))
        tree = family(s.process.pid)
        tap.eq((s.end(), gone(tree - {s.process.pid})), (0, []), "SIGTERM ends the server with 0, every connection and every run")
    with Site(programs, "--profile", "standard", "--timeout", "10m") as s:
        waiting = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
        appears(lambda: runners(s.process.pid))
        tree = family(s.process.pid)
        s.process.kill()
        tap.eq(gone(tree - {s.process.pid}), [], "SIGKILL of cordond leaves nothing running")
        waiting.close()
    tapsys.cordon(programs, ["pool", "stop", "--force"])


def contained(s):
    front = named(s.process.pid, "cordon-front")[0]
    with open(f"/proc/{front}/status") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    tap.eq((status.get("NoNewPrivs"), status.get("Seccomp")), ("1", "2"), "the front of HTTP has no new privileges, and a table of system calls")
    words = b"".join(bytes_of(p, "cmdline") for p in family(s.process.pid))
    tap.ok(s.token.encode() not in words, "the token is on no command line")
    if os.geteuid() == 0:
        envs = b"".join(bytes_of(p, "environ") for p in family(s.process.pid))
        tap.ok(s.token.encode() not in envs, "the token is in no environment")
        open_now = []
        for n in os.listdir(f"/proc/{front}/fd"):
            with contextlib.suppress(FileNotFoundError):  # a connection that has just ended
                open_now.append(os.readlink(f"/proc/{front}/fd/{n}"))
        tap.eq([name for name in open_now if "memfd" in name], [], "the front has closed the file of the token")


def files(s):
    st = os.stat(s.file)
    tap.eq((stat.S_IMODE(st.st_mode), len(s.token)), (0o600, 52), "a token that is made is in a file for its owner alone, and has 260 bits")
    tap.ok("made" in s.said, "the first start tells that it made a token, and where", s.said)
    with Site(programs) as again:
        tap.ok(again.token == s.token and "made" not in again.said, "the next start takes the same token", again.said)
    own = programs.dir / "token"
    for mode, content, word in ((0o644, "a" * 40, "closed to others"), (0o600, "short", "32 to 512"), (0o600, "a" * 600, "32 to 512"), (0o600, "a b" * 20, "32 to 512")):
        own.write_text(content)
        own.chmod(mode)
        r = tapsys.cordon(programs, ["serve", "--http", "0", "--token-file", own])
        tap.ok(r.code == 2 and word in r.err, f"a token file of mode {mode:o} with {content[:12]!r} is refused", r.err)
    own.write_text("Zm9v" * 10 + "\n")
    own.chmod(0o600)
    with Site(programs, "--token-file", str(own), "--allow-host", "agent.example,other.example") as t:
        with t.connect() as c:
            good = t.modern("tools/list")
            tap.eq(c.ask(good).status, 200, "the operator's own token is asked for")
            for name, status in (("agent.example", 200), ("other.example:443", 200), ("third.example", 403)):
                tap.eq(c.ask(good.replace(b"Host: 127.0.0.1:%d" % t.port, b"Host: " + name.encode())).status, status, f"--allow-host: the host {name} is answered with {status}")
        with t.connect() as c:
            r = c.ask(t.head("GET", "/.well-known/oauth-protected-resource", Host="agent.example", Content_Type=None))
            tap.eq(r.json.get("resource"), "https://agent.example/mcp", "--allow-host: a name of the operator's is one that is reached by TLS")
    alone = start(programs, ["--http", "0"])
    said = alone.stderr.readline().decode()
    port = int(re.search(r"http://[^/]*:(\d+)/mcp", said).group(1))
    reached = {}
    for address in ("127.0.0.1", "127.0.0.2"):  # both are this machine: a server of all addresses has both
        with socket.socket() as c:
            reached[address] = c.connect_ex((address, port)) == 0
    tap.eq(reached, {"127.0.0.1": True, "127.0.0.2": False}, "--http with a port alone listens at 127.0.0.1 and at no other address", said)
    alone.terminate()
    stop(alone)
    for where, word in (("0.0.0.0:8080", "--allow-host"), ("[::]:8080", "--allow-host"), ("localhost:80", "in numbers"), ("70000", "in numbers"), ("127.0.0.1:", "in numbers"), ("x", "in numbers")):
        r = tapsys.cordon(programs, ["serve", "--http", where])
        tap.ok(r.code == 2 and word in r.err, f"--http {where} is refused: {word}", r.err)
    r = tapsys.cordon(programs, ["serve", "--stdio", "--allow-host", "x"])
    tap.ok(r.code == 2 and "--http" in r.err, "--allow-host without --http is a usage error", r.err)


with Site(programs, "--profile", "standard", "--timeout", "10m", "--answer", "2s", "--drain", "0s") as site:
    slow = drip_begin(site)
    files(site)
    malformed(site)
    strangers(site)
    progress(site)
    tasks(site)
    with Site(programs, "--profile", "standard", "--timeout", "10m", "--drain", "0s") as patient:  # a run that becomes a job outlives its connection, and has no value yet
        modern(patient)
        heavy(patient)  # no slow body of another client counts here
        disconnect(patient)
        legacy(patient)
        resumption(patient)
        many(patient)
        deaf(patient)
    contained(site)
    ends()
    drip_end(slow)
    crowd(site)
tap.eq(tapsys.cordon(programs, ["audit", "verify"]).code, 0, "the audit of all runs served over HTTP is whole")
tap.done()
