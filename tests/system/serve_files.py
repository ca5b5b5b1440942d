#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files, snapshots and pictures of sessions, as clients of `cordon serve` have them: the real programs, end to end.

Usage: serve_files.py BUILD."""
import base64
import json
import os
import pathlib
import re
import struct
import sys
import time

sys.dont_write_bytecode = True
import tapsys
from mcptest import META, MODERN, Server, appears, bytes_of, gone, text
from tapsys import Tap, users

try:
    import jsonschema
except ImportError:
    jsonschema = None

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
TURN = 2  # seconds that a call about files waits for its session, as docs/serve.md says
PICTURES = pathlib.Path(__file__).resolve().parents[1] / "fuzz"
PNG = """
import struct, zlib
def part(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(wide, high):
    rows = (b'\\0' + bytes([y % 256]) * 3 * wide for y in range(high))
    return b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', wide, high, 8, 2, 0, 0, 0)) + part(b'IDAT', zlib.compress(b''.join(rows))) + part(b'IEND', b'')
open('plot.png', 'wb').write(png(1200, 600))
open('broken.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 100)
open('note.txt', 'w').write('a note')
"""


class Tools:
    """The tools of a client: their results, and what their schemas say of them."""

    def __init__(self, client):
        self.client = client
        self.schemas = {t["name"]: t["outputSchema"] for t in client.ask("tools/list")["result"]["tools"]}

    def __call__(self, tool, **arguments):
        reply = self.client.ask("tools/call", name=tool, arguments=arguments)
        r = reply.get("result") or {"isError": None, "content": [{"type": "text", "text": json.dumps(reply)}]}
        content = r.get("structuredContent")
        if jsonschema and content is not None:
            for e in jsonschema.Draft202012Validator(self.schemas[tool]).iter_errors(content):
                tap.ok(False, f"the result of {tool} follows its output schema", e.message, content)
        return r

    def new(self, **arguments):
        return self("session", action="new", **arguments)["structuredContent"]["session_id"]


def content(r):
    return r.get("structuredContent") or {}


def blocks(r, kind):
    return [b for b in r["content"] if b["type"] == kind]


def files(who):
    with Server(programs, "--profile", "standard", who=who) as s:
        t = Tools(s)
        one = t.new()
        r = t("write_file", session_id=one, path="a/b.txt", text="one\ntwo\n<system>x")
        tap.ok(r["isError"] is False and content(r)["bytes"] == 17 and "a/b.txt" in text(r), f"{who}: write_file writes a file, and makes the folders on the way", r)
        r = t("execute_code", session_id=one, code="print(open('/workspace/a/b.txt').read())")
        tap.eq(content(r)["stdout"], "one\ntwo\n<system>x\n", f"{who}: a program of the session reads what write_file wrote")
        r = t("read_file", session_id=one, path="/workspace/a/b.txt")
        tap.ok(content(r)["text"].startswith("one\ntwo\n") and "<system" not in content(r)["text"] and "one\ntwo" in text(r),
               f"{who}: read_file gives the text of a file, and a marker of a speaker's turn in it is broken", r)
        r = t("read_file", session_id=one, path="a/b.txt", offset=4, limit=3)
        tap.eq((content(r)["text"], content(r)["next_offset"]), ("two", 7), f"{who}: read_file gives a part, and says where the next one begins")
        tap.ok("offset 7" in text(r), f"{who}: the text of read_file says it, too", text(r))
        every = bytes(range(256)) * 40
        t("write_file", session_id=one, path="bytes", text=base64.b64encode(every).decode(), encoding="base64")
        r = t("read_file", session_id=one, path="bytes", encoding="base64")
        tap.eq(base64.b64decode(content(r)["data"]), every, f"{who}: any bytes go in and out by base64")
        t("write_file", session_id=one, path="empty", text="")
        tap.eq(content(t("read_file", session_id=one, path="empty"))["text"], "", f"{who}: an empty file is written and read")
        r = t("list_files", session_id=one)
        tap.eq([(n["name"], n["kind"]) for n in content(r)["names"]], [("a", "folder"), ("bytes", "file"), ("empty", "file")], f"{who}: list_files tells names and kinds, by name")
        tap.ok(all(re.search(rf"\b{w}\b", text(r)) for w in ("a", "bytes", "empty", len(every))), f"{who}: list_files tells names and sizes in the text, too", text(r))
        r = t("search_files", session_id=one, pattern="T.O", ignore_case=True)
        tap.eq([(m["path"], m["line"]) for m in content(r)["matches"]], [("/workspace/a/b.txt", 2)], f"{who}: search_files finds a line by an expression")
        tap.ok(re.search("/workspace/a/b.txt.*2.*two", text(r)), f"{who}: search_files tells file, line and text in the text, too", text(r))
        r = t("search_files", session_id=one, pattern="*.txt", what="names")
        tap.eq([m["path"] for m in content(r)["found"]], ["/workspace/a/b.txt"], f"{who}: search_files finds a file by its name")
        tap.ok("/workspace/a/b.txt" in text(r), f"{who}: search_files tells a file that it found in the text, too", text(r))
        r = t("search_files", session_id=one, pattern="((")
        tap.ok(r["isError"] and "parenthesis" in text(r), f"{who}: an expression that is wrong is an error that says where", r)
        if who == users()[-1]:
            refused(who, t, one)
            names(who, t)
            full(who, t)
            at_once(who, s, t)
        fork = content(t("session", action="fork", session_id=one))["session_id"]
        t("write_file", session_id=fork, path="empty", text="of the fork")
        tap.eq((content(t("read_file", session_id=fork, path="empty"))["text"], content(t("read_file", session_id=one, path="empty"))["text"]), ("of the fork", ""),
               f"{who}: the files of a fork are its own")
        if who == users()[-1]:
            links(who, s, t, one)
            modern_links(who)
        with Server(programs, "--profile", "standard", who=who) as other:
            of_other = Tools(other)
            for tool, more in (("read_file", {"path": "empty"}), ("write_file", {"path": "x", "text": ""}), ("list_files", {}), ("search_files", {"pattern": "x"}),
                               ("snapshot", {"action": "list"})):
                r = of_other(tool, session_id=one, **more)
                tap.ok(r["isError"] and "no such session" in text(r), f"{who}: {tool} does not reach the session of another client", r)


def refused(who, t, one):
    t("execute_code", session_id=one, code="import os\nos.symlink('/etc/passwd', 'out')\nos.symlink('/etc', 'folder')\nos.mkfifo('pipe')\nopen('/tmp/t', 'w').write('t')")
    r = t("read_file", session_id=one, path="out", encoding="base64")
    tap.ok(r["isError"] and "data" not in content(r), f"{who}: read_file of the bytes of a link that leads out is an error", r)
    for path in ("../etc/passwd", "/etc/passwd", "a/../../etc/passwd", "out", "folder/passwd", "pipe", "nothing", "a", "/workspace/../etc/passwd", "/tmp/t", "a//b.txt", "/workspacex"):
        r = t("read_file", session_id=one, path=path)
        tap.ok(r["isError"] and content(r).get("status") == "error" and "root:" not in json.dumps(r), f"{who}: read_file of {path} is an error", r)
    for path in ("../x", "/etc/x", "/", ".", "", "folder/x", "a/../../x", "a", "/tmp/x", "a/b.txt/c", "x" * 300):
        r = t("write_file", session_id=one, path=path, text="x")
        tap.ok(r["isError"] and "--in" not in text(r), f"{who}: write_file to {path[:20]!r} is an error that names no option of the command line", r)
    t("write_file", session_id=one, path="out", text="mine")
    r = t("read_file", session_id=one, path="out")
    tap.eq(content(r).get("text"), "mine", f"{who}: write_file replaces a link, and does not follow it")
    r = t("write_file", session_id=one, path="big", text="x" * (2 << 20) + "y")
    tap.ok(r["isError"] and "at most 2 MiB" in text(r), f"{who}: a file that is longer than a call may have is an error", text(r))
    r = t("write_file", session_id=one, path="x", text="no base64", encoding="base64")
    tap.ok(r["isError"] and "base64" in text(r), f"{who}: a text that is no base64 is an error", r)
    elsewhere = "list_files without a path"
    for tool, more, hint in (("read_file", {"path": "a"}, "list_files tells"), ("list_files", {"path": "a/b.txt"}, elsewhere), ("list_files", {"path": "nothing"}, elsewhere)):
        r = t(tool, session_id=one, **more)
        tap.ok(r["isError"] and hint in text(r), f"{who}: {tool} of {more['path']} says what to do instead", r)
    for more, word in (({"path": "a", "offset": -1}, "offset"), ({"path": "a", "encoding": "utf-16"}, "encoding"), ({"path": "a", "mode": "w"}, "mode"), ({}, "path")):
        r = t("read_file", session_id=one, **more)
        tap.ok(r["isError"] and word in text(r), f"{who}: read_file with {more} is an error that names {word}", r)


def names(who, t):
    """Names and texts that are as long as they can be are cut, and the rest is asked for by another call."""
    one = t.new()
    t("execute_code", session_id=one, code="""import os
os.mkdir('long'); os.mkdir('shut')
for i in range(900):
    open(b'long/%03d' % i + b'\\xff' * 250, 'w').write('x\\n' * 2)
open('shown', 'w').write(chr(0x202e) * 50000)
open('shut/x', 'w').write('x')
open('large', 'w').truncate(9 << 20)
os.chmod('shut', 0)""")
    for tool, key, more in (("list_files", "names", {}), ("search_files", "found", {"pattern": "*", "what": "names"})):
        r = t(tool, session_id=one, path="long", **more)
        told = content(r).get(key, [])
        tap.ok(r["isError"] is False and content(r).get("cut") is True and 100 < len(told) < 900 and "more" in text(r), f"{who}: {tool} cuts a list of names that would not fit, and says so", text(r)[:300])
    got, at = "", 0
    while at is not None and len(got) < 400000:
        r = t("read_file", session_id=one, path="shown", offset=at)
        got, at = got + content(r).get("text", "?" * 400000), content(r).get("next_offset")
    tap.eq(got, "<U+202E>" * 50000, f"{who}: a text that grows when it is marked is read in several parts, and nothing of it is lost")
    r = t("search_files", session_id=one, pattern="nothing")
    tap.ok(content(r).get("skipped") == 2 and "2 files or folders were not searched" in text(r),
           f"{who}: a search that cannot look into a folder or a file does not say that nothing is there", r)


def at_once(who, s, t):
    """Clients call tools side by side, and so do models."""
    one = t.new()
    t("write_file", session_id=one, path="a", text="a")
    for _ in range(20):
        began = time.monotonic()
        calls = [s.send("tools/call", name="read_file", arguments={"session_id": one, "path": "a"}) for _ in range(3)]
        reads = [s.send("resources/read", uri=f"cordon://{one}/a") for _ in range(3)]
        got = [content(s.reply(n).get("result") or {}).get("text") for n in calls] + [((s.reply(n).get("result") or {}).get("contents") or [s.reply(n)])[0].get("text") for n in reads]
        if got == ["a"] * 6 or time.monotonic() - began < TURN:  # a machine that needs longer for all six shows nothing
            break
    tap.eq(got, ["a"] * 6, f"{who}: files of one session that are asked for at once are all given")
    run = s.send("tools/call", name="execute_code", arguments={"session_id": one, "code": "print(1, flush=True)\nwhile True:\n    pass", "timeout_ms": 60000})
    appears(lambda: any(v["session"] == one and v["state"] == "busy" for v in tapsys.cordon(programs, ["session", "list", "--json"], who).json))
    r = s.ask("resources/read", uri=f"cordon://{one}/a").get("error") or {}
    tap.ok(r.get("code") == -32603 and "another call" in r.get("message", ""), f"{who}: a resource whose session is in a call is not said to be missing", r)
    s.tell("notifications/cancelled", requestId=run)


def full(who, t):
    """Which of its limits a session has reached is told by its name."""
    one = t.new()
    for code, word in (("n = 0\ntry:\n    while True:\n        open(f'/tmp/{n}', 'w').close()\n        n += 1\nexcept OSError:\n    pass", "files and folders"),
                       ("import os\nfor n in os.listdir('/tmp'):\n    os.unlink('/tmp/' + n)\ntry:\n    with open('/tmp/b', 'wb') as f:\n        while True:\n            f.write(bytes(1 << 20))\nexcept OSError:\n    pass", "bytes")):
        t("execute_code", session_id=one, code=code)
        r = t("write_file", session_id=one, path="more", text="x" * 10000)
        tap.ok(r["isError"] and "does not fit" in text(r) and word in text(r).split("may")[-1] and "remove some" in text(r), f"{who}: write_file where no {word} are left says so, and what to do", text(r))


def recorded(who):
    """What was asked for and not done is in the audit as what was done is."""
    tapsys.cordon(programs, ["workspace", "create", "tried"], who)
    with Server(programs, "--profile", "standard", "--workspaces", "tried", who=who) as s:
        t = Tools(s)
        one = t.new(workspace="tried")
        t("execute_code", session_id=one, code="import os\nos.symlink('/etc/passwd', 'out')")
        for tool, more in (("read_file", {"path": "out"}), ("read_file", {"path": "../etc/shadow"}), ("list_files", {"path": "nowhere"}), ("search_files", {"path": "out", "pattern": "x"}),
                           ("write_file", {"path": "out/x", "text": "x"}), ("snapshot", {"action": "restore", "snapshot": "never"})):
            t(tool, session_id=one, **more)
    records = [json.loads(line) for line in tapsys.cordon(programs, ["audit", "tail", "--json"], who).out.splitlines()]
    kept = [(e["args"]["event"], e["args"]["from"], bool(e["reason"])) for e in records if e["kind"] == "session" and e["session"] == one and e["status"] == "error"]
    tap.eq(kept, [("got", "out", True), ("got", "../etc/shadow", True), ("listed", "nowhere", True), ("searched", "out", True), ("put", "out/x", True), ("restore", "never", True)],
           f"{who}: each call about files that failed is on record, with its reason")


def links(who, s, t, one):
    r = t("execute_code", session_id=one, code="open('link me.txt', 'w').write('linked')\nopen('raw', 'wb').write(bytes([0, 255]))")
    told = {b["name"]: b["uri"] for b in blocks(r, "resource_link")}
    tap.eq(sorted(told), ["/workspace/link me.txt", "/workspace/raw"], f"{who}: files that a call left are told as links")
    got = s.ask("resources/read", uri=told.get("/workspace/link me.txt")).get("result") or {"contents": [{}]}
    tap.eq(got["contents"][0].get("text"), "linked", f"{who}: a link can be read as a resource")
    got = s.ask("resources/read", uri=told.get("/workspace/raw")).get("result") or {"contents": [{}]}
    tap.eq(got["contents"][0].get("blob"), "AP8=", f"{who}: a resource that is no text is its bytes")
    for uri in (f"cordon://{one}/../x", f"cordon://{one}/%2e%2e/x", f"cordon://{one}/nothing", "cordon://mcp-" + "a" * 26 + "/raw", "file:///etc/passwd", f"cordon://{one}/a%00b", 7):
        r = s.ask("resources/read", uri=uri)
        tap.eq((r.get("error") or {}).get("code"), -32002, f"{who}: {str(uri).replace(one, 'SESSION')} is no resource")
    r = t("execute_code", code="open('x', 'w').write('x')")
    tap.eq(blocks(r, "resource_link"), [], f"{who}: a run without a session has no links: its files are gone")


def modern_links(who):
    """2026-07-28 has hints for caches at what is read, and another number for what is not there."""
    with Server(programs, "--profile", "standard", legacy=None, who=who) as s:
        one = Tools(s).new()
        Tools(s)("write_file", session_id=one, path="a", text="linked")
        got = s.ask("resources/read", uri=f"cordon://{one}/a").get("result") or {"contents": [{}]}
        tap.eq((got["contents"][0].get("text"), got.get("resultType"), got.get("ttlMs"), got.get("cacheScope")), ("linked", "complete", 0, "private"),
               f"{who}: {MODERN}: a resource is read, and says that it may not be kept")
        for uri in (f"cordon://{one}/nothing", "cordon://mcp-" + "a" * 26 + "/a", "file:///etc/passwd"):
            r = s.ask("resources/read", uri=uri)
            tap.eq((r.get("error") or {}).get("code"), -32602, f"{who}: {MODERN}: {uri.replace(one, 'SESSION')} is no resource")


def pictures(who):
    with Server(programs, "--profile", "standard", who=who) as s:
        t = Tools(s)
        one = t.new()
        for what, more in (("a run", {}), ("a call of a session", {"session_id": one})):
            r = t("execute_code", code=PNG, **more)
            shown = [base64.b64decode(b["data"]) for b in blocks(r, "image") if b["mimeType"] == "image/png"]
            tap.eq([struct.unpack(">II", p[16:24]) for p in shown], [(800, 400)], f"{who}: the picture that {what} left is told as a block, scaled; a broken one is not")
            tap.ok("plot.png" in text(r) and content(r)["status"] == "ok", f"{who}: text and object of {what} are whole beside it", text(r))
        r = t("read_file", session_id=one, path="plot.png")
        tap.ok(len(blocks(r, "image")) == 1 and content(r)["shown"] is True and "data" not in content(r), f"{who}: read_file of a picture shows it", content(r))
        r = t("read_file", session_id=one, path="broken.png")
        tap.ok(blocks(r, "image") == [] and content(r)["shown"] is False and "base64" in text(r), f"{who}: a picture that cannot be read is named, and how to have its bytes", r)
        tap.eq([b["name"] for b in blocks(t("execute_code", code=PNG, session_id=one), "resource_link")], ["/workspace/note.txt"], f"{who}: what is shown is not linked, too")


def slow_pictures(who):
    """A picture of 40 megapixels that lacks its last bytes, under 300 names: none is shown, and each takes as long as a good one."""
    with Server(programs, "--profile", "standard", "--answer", f"{20 * tapsys.SLOW}s", who=who) as s:
        r = Tools(s)("execute_code", code=PNG + "import os\nopen('0.png', 'wb').write(png(6300, 6300)[:-100])\nfor n in range(1, 300):\n    os.link('0.png', f'{n}.png')")
        tap.ok(content(r)["status"] == "ok" and len(content(r)["files"]) == 303 and len(blocks(r, "image")) <= 1,
               f"{who}: pictures that take long to decode and cannot be shown do not hold up the answer of a run", text(r)[:600])


def other_pictures(who):
    """JPEG, GIF and WebP: read by cordon-image as PNG is, and sent as a PNG of its own."""
    files = {"wide" + p.suffix: p.read_bytes() for p in sorted(PICTURES.glob("image_*/wide.*")) if p.suffix != ".png"}
    tap.eq(sorted(files), ["wide.gif", "wide.jpg", "wide.webp"], "the pictures of the test are there")
    with Server(programs, "--profile", "standard", who=who) as s:
        t = Tools(s)
        one = t.new()
        code = "\n".join(f"open({name!r}, 'wb').write({data!r})" for name, data in files.items())
        code += "\nopen('broken.jpg', 'wb').write(b'\\xff\\xd8\\xff' + b'x' * 100)\nopen('old.bmp', 'wb').write(b'BM' + b'x' * 100)"
        for what, more in (("a run", {}), ("a call of a session", {"session_id": one})):
            r = t("execute_code", code=code, **more)
            shown = [base64.b64decode(b["data"]) for b in blocks(r, "image") if b["mimeType"] == "image/png"]
            tap.eq([(p[:4], struct.unpack(">II", p[16:24])) for p in shown], [(b"\x89PNG", (800, 200))] * 3,
                   f"{who}: JPEG, GIF and WebP that {what} left are blocks, written anew and scaled; what is broken or of another kind is not")
        tap.eq([b["name"] for b in blocks(r, "resource_link")], ["/workspace/old.bmp"], f"{who}: a picture of another kind is a link")
        for name in files:
            r = t("read_file", session_id=one, path=name)
            tap.ok(len(blocks(r, "image")) == 1 and content(r)["shown"] is True, f"{who}: read_file of {name} shows it", content(r))


def snapshots(who):
    tapsys.cordon(programs, ["workspace", "create", "served"], who)
    tapsys.cordon(programs, ["workspace", "create", "private"], who)
    with Server(programs, "--profile", "standard", "--workspaces", "other,served", who=who) as s:
        t = Tools(s)
        told = next(v for v in s.ask("tools/list")["result"]["tools"] if v["name"] == "session")["description"]
        tap.ok("other,served" in told and "private" not in told, f"{who}: the session tool names the workspaces that the operator gives", told)
        for name in ("private", "served@x", "serve", "--idle", "../served", ""):
            r = t("session", action="new", workspace=name)
            made = content(r).get("session_id")
            tap.ok(r["isError"] if name else made, f"{who}: a session in the workspace {name!r} is " + ("refused" if name else "one in none"), r)
        tap.ok(t("session", action="list", workspace="served")["isError"], f"{who}: only new takes a workspace")
        one = t.new(workspace="served")
        t("write_file", session_id=one, path="a", text="first")
        r = t("snapshot", session_id=one, action="create", name="begin", message="a is there")
        begin = content(r).get("id")
        tap.ok(r["isError"] is False and begin and begin in text(r), f"{who}: a snapshot has an id", r)
        t("execute_code", session_id=one, code="open('a', 'w').write('second')\nopen('b', 'w').write('b')\nx = 5")
        r = t("snapshot", session_id=one, action="diff", snapshot="begin")
        tap.eq(sorted((f["path"], f["status"]) for f in content(r)["changes"]["files"]), [("a", "M"), ("b", "A")], f"{who}: diff tells what differs")
        tap.ok("-first" in content(r)["patch"] and "+second" in text(r), f"{who}: diff tells how it differs, as a patch", text(r))
        r = t("snapshot", session_id=one, action="list")
        tap.ok(begin in [v["id"] for v in content(r)["snapshots"]] and "a is there" in text(r), f"{who}: list has the snapshot with its message", text(r))
        r = t("snapshot", session_id=one, action="restore", snapshot="begin")
        tap.ok(r["isError"] is False, f"{who}: a snapshot is restored", r)
        tap.eq(content(t("read_file", session_id=one, path="a"))["text"], "first", f"{who}: read_file sees the restored files at once")
        r = t("execute_code", session_id=one, code="import os\nprint(sorted(os.listdir('/workspace')), x)")
        tap.eq(content(r)["stdout"], "['a'] 5\n", f"{who}: the program of the session sees the restored files, and keeps its variables")
        r = t("snapshot", session_id=one, action="restore", snapshot="nothing")
        tap.ok(r["isError"] and "no snapshot" in text(r), f"{who}: a snapshot that is not there is an error that says what can be named", r)
        for more, word in (({"action": "restore"}, "snapshot"), ({"action": "list", "name": "x"}, "name"), ({"action": "create", "to": "x"}, "to"), ({"action": "drop"}, "action")):
            r = t("snapshot", session_id=one, **more)
            tap.ok(r["isError"] and word in text(r), f"{who}: snapshot with {more} is an error that names {word}", r)
        fork = content(t("session", action="fork", session_id=one))["session_id"]
        t("write_file", session_id=fork, path="a", text="of the fork")
        r = t("snapshot", session_id=fork, action="list")
        tap.ok(content(r)["workspace"].startswith("served@"), f"{who}: the snapshots of a fork are those of its clone", content(r).get("workspace"))
        tap.eq(content(t("read_file", session_id=one, path="a"))["text"], "first", f"{who}: what the fork writes is not in the session's workspace")
        plain = t.new()
        r = t("snapshot", session_id=plain, action="create")
        tap.ok(r["isError"] and "workspace" in text(r) and "session" in text(r), f"{who}: a session without a workspace has no snapshots, and is told how to have some", r)
    log = tapsys.cordon(programs, ["workspace", "log", "served", "--json"], who).json
    tap.ok("a is there\n" in [c["message"] for c in log], f"{who}: the command line sees the same snapshots", log)


def comparisons(who):
    """Files that were written to be compared: two million lines of one digit each, by chance, take minutes."""
    tapsys.cordon(programs, ["workspace", "create", "compared"], who)
    chance = "import random\nfor n in range(3):\n    open(str(n), 'w').write('\\n'.join(format(random.getrandbits(2000000), 'b')))"
    with Server(programs, "--profile", "standard", "--workspaces", "compared", "--answer", f"{40 * tapsys.SLOW}s", who=who) as s:
        t = Tools(s)
        one = t.new(workspace="compared")
        t("execute_code", session_id=one, code="import random\nopen('long', 'w').write('\\n'.join(str(random.random()) for n in range(180000)))\nfor n in range(9):\n"
          "    open(f'long{n}', 'w').write(open('long').read())")
        r = t("snapshot", session_id=one, action="diff", snapshot="genesis")
        tap.ok(r["isError"] is False and len(content(r)["patch"]) == 100000 and content(r)["cut"] is True and len(content(r)["changes"]["files"]) == 10,
               f"{who}: of a patch of 30 MB the beginning is shown", text(r)[:300])
        for _ in range(2):
            t("execute_code", session_id=one, code=chance)
        r = t("snapshot", session_id=one, action="diff")
        tap.ok(r["isError"] is True and "took more than 10 s and was ended" in text(r), f"{who}: a comparison that takes too long is ended, and says so", text(r)[:300])
        s.send("tools/call", name="snapshot", arguments={"session_id": one, "action": "diff"})
        works = appears(lambda: [p for p in s.family() if b"\0diff\0" in bytes_of(p, "cmdline")])
    tap.eq((bool(works), gone(works)), (True, []), f"{who}: a comparison ends with its client")
    tapsys.cordon(programs, ["workspace", "delete", "compared"], who)


def put_in_workspace(who):
    """What `session put` brought is the workspace's, as what a call wrote is."""
    tapsys.cordon(programs, ["workspace", "create", "put"], who)
    tapsys.cordon(programs, ["session", "new", "--profile", "standard", "--workspace", "put", "filled"], who)
    tapsys.cordon(programs, ["session", "put", "filled", "/etc/hostname:name"], who)
    told = tapsys.cordon(programs, ["workspace", "diff", "put", "--json"], who).json or {"files": []}
    tap.eq([f["path"] for f in told["files"]], ["name"], f"{who}: a file that session put brought into a workspace is committed")
    tapsys.cordon(programs, ["workspace", "restore", "put", "genesis"], who)
    r = tapsys.cordon(programs, ["session", "get", "filled", "name", "-"], who)
    tap.ok(r.code == 125 and "name" in r.err, f"{who}: session get sees a restore as a call does", r.story())
    tapsys.cordon(programs, ["session", "close", "filled"], who)


def only_its_own(who):
    """A call names the files that it changed, and not those that were changed a moment before it began: by a call, by write_file, by a
    fork. The clock of stamps ticks every few milliseconds, and calls follow faster than that."""
    policy = programs.dir / f"{who}-quick.yaml"
    policy.write_text("rates: {executions: 1000}\n")
    policy.chmod(0o644)
    with Server(programs, "--profile", "standard", "--policy", str(policy), who=who) as s:
        t = Tools(s)
        wrong = []

        def call(session, n):
            r = content(t("execute_code", session_id=session, code=f"open('f{n % 7}', 'w').write('x' * {n + 1})"))
            told = [f["path"] for f in r.get("files", [r])]
            if told != [f"/workspace/f{n % 7}"]:
                wrong.append((n, told))
        for _ in range(3):
            one = t.new()
            for n in range(45):  # a session may make 50
                call(one, n)
        tap.ok(not wrong, f"{who}: a call that follows another at once lists its own files alone", *wrong[:5])
        wrong.clear()
        one = t.new()
        for n in range(45):
            t("write_file", session_id=one, path="put", text=str(n))
            call(one, n)
        tap.ok(not wrong, f"{who}: a call that follows write_file at once lists its own files alone", *wrong[:5])
        wrong.clear()
        one = t.new()
        call(one, 0)
        for n in range(20):
            two = content(t("session", action="fork", session_id=one))["session_id"]
            call(two, n)
            t("session", action="close", session_id=two)
        tap.ok(not wrong, f"{who}: the first call of a fork lists its own files alone", *wrong[:5])


def closed_meanwhile(who):
    """A file is asked for in a session that is closed at the same time: it is done, or the answer says that the session is no more."""
    tapsys.cordon(programs, ["workspace", "create", "closing"], who)
    with Server(programs, "--profile", "standard", "--workspaces", "closing", who=who) as s:
        told = []
        for n in range(10):
            one = s.tool("session", action="new", workspace="closing")["structuredContent"]["session_id"]
            asked = s.send("tools/call", name="write_file", arguments={"session_id": one, "path": "a", "text": str(n)})
            closes = s.send("tools/call", name="session", arguments={"action": "close", "session_id": one})
            told.append(text(s.reply(asked)["result"]))
            s.reply(closes)
        tap.ok(all(w.startswith("written") or "closed" in w for w in told), f"{who}: a file call whose session is closed meanwhile says so", *told)


def roles(who):
    """The gate knows these tools by the names of those that code calls: a role that lacks one lacks it here."""
    policy = programs.dir / f"{who}-files.yaml"
    policy.write_text("run: {role: explore}\nroles: {explore: {tools: [ReadFile, ListFiles, session]}}\n")
    policy.chmod(0o644)
    with Server(programs, "--profile", "standard", "--policy", str(policy), who=who) as s:
        t = Tools(s)
        one = t.new()
        t("execute_code", session_id=one, code="open('a', 'w').write('x')")
        tap.eq(content(t("read_file", session_id=one, path="a")).get("text"), "x", f"{who}: a role that has ReadFile reads")
        for tool, more in (("write_file", {"path": "a", "text": "y"}), ("search_files", {"pattern": "x"}), ("search_files", {"pattern": "*", "what": "names"}),
                           ("snapshot", {"action": "restore", "snapshot": "genesis"}), ("snapshot", {"action": "create"})):
            r = t(tool, session_id=one, **more)
            tap.ok(r["isError"] and content(r).get("status") == "denied" and content(r).get("rule") == "gate.role" and "gate.role" in text(r),
                   f"{who}: {tool} {more} is denied to a role that lacks its tool", r)
        tap.eq(content(t("read_file", session_id=one, path="a")).get("text"), "x", f"{who}: what was denied did not happen")
    tapsys.cordon(programs, ["stop", "--why", "test"], who)
    with Server(programs, "--profile", "standard", who=who) as s:
        r = Tools(s)("session", action="new")
        one = content(r).get("session_id")
        if one:
            r = Tools(s)("list_files", session_id=one)
        tap.ok(r["isError"] and "stop" in text(r), f"{who}: cordon stop is for files, too", r)
    tapsys.cordon(programs, ["resume", "--why", "test"], who)


SECRET = "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"  # no digit: the gate leaves those out by itself


def breakers(who):
    """A breaker that opens is told by a message of the log, where the era and the client have it."""
    def fails(s, meta=None):
        for _ in range(3):
            s.ask("tools/call", meta, name="execute_code", arguments={"code": f"raise ValueError('{SECRET}')"})
        return [n["params"] for n in s.notes if n["method"] == "notifications/message"]
    policy = programs.dir / f"{who}-breakers.yaml"
    text = "breakers: {{failures: 3, counts: [error]{}}}\n"
    for what, legacy, level, meta, told in (
            ("2025-11-25", "2025-11-25", None, None, True), ("2024-11-05", "2024-11-05", "warning", None, True), ("2025-11-25 with level error", "2025-11-25", "error", None, False),
            (f"{MODERN} with a level", None, None, {META + "logLevel": "info"}, True), (f"{MODERN} without a level", None, None, None, False)):
        state = programs.dir / f"{who}-breaker-{abs(hash(what))}"
        state.mkdir(mode=0o700)
        policy.write_text(text.format(""))
        policy.chmod(0o644)
        if who == "user" and os.geteuid() == 0:
            os.chown(state, tapsys.ROOTLESS, tapsys.ROOTLESS)
        with Server(programs, "--policy", str(policy), legacy=legacy, who=who, env={"CORDON_STATE": str(state)}) as s:
            if level:
                tap.ok("result" in s.ask("logging/setLevel", level=level), f"{who}: {what}: a level is set")
            got = fails(s, meta)
            if told:
                tap.ok(got and all(g["level"] == "warning" and g["logger"] == "cordon.breaker" and g["data"]["state"] == "open" and "ValueError" in g["data"]["message"] for g in got),
                       f"{who}: {what}: a breaker that opens is told by a message of the log", got)
            else:
                tap.eq(got, [], f"{who}: {what}: nothing is told of a breaker")
            if told:  # a shorter cooldown makes the next run the probe
                policy.write_text(text.format(", cooldown: 1ms"))
                s.ask("tools/call", meta, name="execute_code", arguments={"code": "1"})
                later = [n["params"] for n in s.notes if n["method"] == "notifications/message"][len(got):]
                tap.eq([(g["level"], g["data"]["state"]) for g in later], [] if level else [("notice", "half-open"), ("notice", "closed")],
                       f"{who}: {what}: the probe of a breaker and that it closed are told, below a warning", later)
                kept = (state / "gate.live").read_bytes()
                tap.ok(SECRET not in json.dumps(got + later) and SECRET.encode() not in kept and all("[REDACTED:github]" in g["data"]["message"] for g in got + later),
                       f"{who}: {what}: a secret in what the program raised is redacted in what is told and kept of a breaker", got + later)
            if legacy and level:
                tap.eq((s.ask("logging/setLevel", level="loud").get("error") or {}).get("code"), -32602, f"{who}: {what}: a level that nobody knows is refused")


def breakers_of_jobs(who):
    """Where the run was answered with a job or a task, or came in an array, it is told as well, and once."""
    late = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: time.sleep(0.01)\n1/0"
    knows = {META + "clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}, META + "logLevel": "info"}
    policy = programs.dir / f"{who}-breakers-of-jobs.yaml"
    policy.write_text("breakers: {failures: 3, counts: [error]}\n")
    policy.chmod(0o644)

    def told(s):
        return [n["params"]["data"]["state"] for n in s.notes if n["method"] == "notifications/message"]

    def by_job(s):
        job = content(s.tool("execute_code", code=late)).get("job_id", "none")
        while content(s.tool("wait_job", job_id=job)).get("status") == "running":
            pass
        return lambda: s.tool("wait_job", job_id=job)

    def by_task(s):
        task = s.ask("tools/call", knows, name="execute_code", arguments={"code": late})["result"].get("taskId", "none")
        while s.ask("tasks/get", knows, taskId=task).get("result", {}).get("status") == "working":
            pass
        return lambda: s.ask("tasks/get", knows, taskId=task)

    def by_array(s):
        s.number += 1
        r = s.raw(json.dumps([{"jsonrpc": "2.0", "id": s.number, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": "1/0"}}}]).encode() + b"\n")
        return lambda: r
    for what, legacy, answer, run in (("a job", "2025-11-25", "100ms", by_job), ("a task", None, "100ms", by_task), ("an array", "2025-03-26", "45s", by_array)):
        state = programs.dir / f"{who}-breaker-of-{run.__name__}"
        state.mkdir(mode=0o700)
        if who == "user" and os.geteuid() == 0:
            os.chown(state, tapsys.ROOTLESS, tapsys.ROOTLESS)
        with Server(programs, "--policy", str(policy), "--profile", "standard", "--answer", answer, legacy=legacy, who=who, env={"CORDON_STATE": str(state)}) as s:
            again = [run(s) for _ in range(3)][-1]
            first = told(s)
            again()
            tap.ok(first and set(first) == {"open"} and told(s) == first, f"{who}: {what}: a breaker that opens is told, and not told again with the same result", first, told(s))


for user in users():
    files(user)
    pictures(user)
    other_pictures(user)
    snapshots(user)
    put_in_workspace(user)
    only_its_own(user)
    closed_meanwhile(user)
    recorded(user)
    roles(user)
    if user == users()[-1]:
        slow_pictures(user)
        comparisons(user)
        breakers(user)
        breakers_of_jobs(user)
    tap.eq(tapsys.cordon(programs, ["audit", "verify"], user).code, 0, f"{user}: the audit of all of it is whole")
    tapsys.cordon(programs, ["pool", "stop", "--force"], user)
tap.done()
