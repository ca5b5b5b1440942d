# SPDX-License-Identifier: Apache-2.0
"""The client libraries against a server that is broken or lies: whatever it sends, a call ends with an answer or with an error of the
library's own, the program lives on, and what is not for the call does not reach it.

Usage: hostile.py BUILD SOURCE LIBRARY. The server is this program, at a socket; for each request of a case it sends the next bytes."""
import contextlib
import fcntl
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

BUILD, SOURCE, LIBRARY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/system"))
import driving  # noqa: E402
import mcptest  # noqa: E402
import tapsys  # noqa: E402

tap = tapsys.Tap()
GONE, PROTOCOL, ANSWER = ("ServerGone",), ("ProtocolError", "Protocol"), (None,)
EITHER = PROTOCOL + ANSWER if LIBRARY == "c" else PROTOCOL  # in C a field of another kind is a field that is not there
LONGEST = 64 << 20  # bytes of a line that a library reads


def message(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def reply(number, **result):
    return message(id=number, result={"content": [], "isError": False, **result})


def good(number, **more):
    return reply(number, structuredContent={"status": "ok", "value": "7", "stdout": "", **more})


def other(number):
    """A good answer, but not the one that is for this call."""
    return good(number, value="8")


def progress(token, ms):
    return message(method="notifications/progress", params={"progressToken": token, "progress": ms, "message": "on"})


RUN = {"do": "run", "args": {"code": "1", "on_output": "tell", "on_progress": "tell"}}
GIVEN_UP = {"do": "run", "args": {"code": "1", "on_output": "cancel"}}
LONG = {"do": "run", "args": {"code": "#" * 3000000}}
PLAIN = {"do": "run", "args": {"code": "1"}}
SESSION = {"do": "session", "as": "s"}
MADE = lambda n: reply(n, structuredContent={"action": "new", "session_id": "s" * 20, "expires_in_s": 5})  # noqa: E731
GET = {"do": "get", "on": "s", "args": {"path": "f"}}
PART = lambda n: reply(n, structuredContent={"status": "ok", "data": "YWJj", "next_offset": 3})  # noqa: E731

LARGE = "x" * (20 << 20)

# What it is, what is done, what the server sends for each request, how the last step may end, and what else must be so of its answer.
CASES = [
    ("a line that is no JSON", [RUN], [lambda n: b"cordon: something\n" + good(n)], GONE),
    ("an empty line", [RUN], [lambda n: b"\n" + good(n)], GONE),
    ("a line that is no UTF-8", [RUN], [lambda n: good(n).replace(b'"7"', b'"\xff\xfe"')], GONE + PROTOCOL),
    ("a message that is a list", [RUN], [lambda n: b"[1]\n" + good(n)], GONE),
    ("a message that is null", [RUN], [lambda n: b"null\n" + good(n)], GONE),
    ("a message that is a number", [RUN], [lambda n: b"5\n" + good(n)], GONE),
    ("lists in lists, 100000 deep", [RUN], [lambda n: b"[" * 100000 + b"]" * 100000 + b"\n" + good(n)], GONE),
    ("a line that does not end", [RUN], [lambda n: b"{" + b" " * (LONGEST + (1 << 20))], GONE),
    ("an end in the middle of a line", [RUN], [lambda n: good(n)[:-5] + b"END"], GONE),
    ("a reply without result and error", [RUN], [lambda n: message(id=n)], PROTOCOL),
    ("a result that is a number", [RUN], [lambda n: message(id=n, result=5)], PROTOCOL),
    ("an error that is a word", [RUN], [lambda n: message(id=n, error="no")], PROTOCOL),
    ("an error without words", [RUN], [lambda n: message(id=n, error={})], PROTOCOL),
    ("fields that are a list", [RUN], [lambda n: reply(n, structuredContent=[1])], EITHER, lambda a: a.get("raised") or a["result"].get("status") == "refused"),
    ("content that is a number", [RUN], [lambda n: message(id=n, result={"content": 5})], EITHER),
    ("content of numbers", [RUN], [lambda n: message(id=n, result={"content": [5, None]})], EITHER),
    ("output that is a number", [RUN], [lambda n: good(n, stdout=5)], EITHER, lambda a: not a.get("output")),
    ("a job whose handle is a number", [RUN], [lambda n: good(n, status="running", job_id=5)], PROTOCOL),
    ("a session without a handle", [SESSION], [lambda n: reply(n, structuredContent={"action": "new"})], PROTOCOL),
    ("a part of a file that leads back to itself", [SESSION, GET], [MADE, PART, PART], PROTOCOL),
    ("a part of a file that leads to what is no number", [SESSION, GET], [MADE, lambda n: reply(n, structuredContent={"status": "ok", "data": "YWJj", "next_offset": {}})], PROTOCOL),
    ("a part of a file that is no base64", [SESSION, GET], [MADE, lambda n: reply(n, structuredContent={"status": "ok", "data": "YW?Jj"})], PROTOCOL),
    ("replies to others, and one twice", [RUN], [lambda n: other(n + 1) + other(-1) + other(n + 2 ** 64) + other(10 ** 30) + other(f"{n}") + other(n + 0.5) + other([n]) + other({"a": n}) + good(n) + other(n)], ANSWER),
    ("progress of others, and of a form that is none", [RUN],
     [lambda n: progress(n + 5, 1) + progress([n], 1) + progress(f"{n}", 1) + message(method="notifications/progress") + message(method="notifications/progress", params=5) +
      message(method="notifications/other", params={"progressToken": n, "progress": 1}) + progress(n, "soon") + progress(n, None) + progress(n, 7) + good(n)],
     ANSWER, lambda a: a["progress"] == [7]),
    ("progress that goes backwards, and nobody asked for", [PLAIN], [lambda n: progress(n, 500) + progress(n, 2) + progress(n, -2) + good(n)], ANSWER),
    ("an end in the middle of a request", [LONG], None, GONE, lambda a: "given up" not in a["message"]),
    ("an end while a callback gives the run up", [GIVEN_UP], [lambda n: good(n, status="running", job_id="j", stdout="on") + b"END"], ("GivenUp", "AbortError", "Cancelled")),
    ("20000 notifications", [RUN], [lambda n: message(method="notifications/message", params={"data": "x" * 50}) * 20000 + good(n)], ANSWER),
    ("output of 20 MiB", [PLAIN], [lambda n: good(n, stdout=LARGE)], ANSWER, lambda a: a["result"]["stdout"] == LARGE),
    ("an answer in small pieces", [PLAIN], [lambda n: [bytes([b]) for b in good(n)]], ANSWER),
]


def read(connection):
    """Waits until the client has what was sent, so that the next part comes by itself."""
    end = time.monotonic() + mcptest.PATIENCE
    while struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0] and time.monotonic() < end:
        time.sleep(0.0001)


def serve(listener, script):
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as lines:
        if script is None:  # it ends with the beginning of a request
            connection.recv(1000)
            return
        for make, line in zip(script, lines):
            said = make(json.loads(line)["id"])
            try:
                for part in said if isinstance(said, list) else [said]:
                    connection.sendall(part.removesuffix(b"END"))
                    if isinstance(said, list):
                        read(connection)
            except OSError:  # the client has had enough
                return
            if isinstance(said, bytes) and said.endswith(b"END"):
                return
        with contextlib.suppress(OSError):
            lines.read()  # until the client is gone


def judge(folder, name, steps, script, kinds, holds=lambda answer: True):
    path = folder / "s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    server = threading.Thread(target=serve, args=(listener, script), daemon=True)
    server.start()
    driver = driving.Driver(driving.libraries(BUILD, SOURCE)[LIBRARY], str(path), dict(os.environ))
    for step in steps:
        answer = driver.tell(step)
    said = str(answer.get("message"))
    good_end = answer.get("raised") in kinds and "no answer" not in said and "does not answer" not in said
    good_end = good_end and (kinds != ANSWER or answer["result"]["value"] == "7") and holds(answer)
    tap.ok(good_end, f"{LIBRARY}: {name}: {kinds[0] or 'the answer'}", str(answer)[:1000])
    tap.eq(driver.end(), 0, f"{LIBRARY}: {name}: the program ends by itself")
    listener.close()
    path.unlink()


# The connection that a process has without a client of its own: the server at it ends, after an answer or before, and the next call, or the one after it, makes another.
AGAIN = {
    "python": ["-c", "import cordon, sys\nif sys.argv[1:]:\n    cordon.run('1')\n    sys.stdin.readline()\ntry:\n    r = cordon.run('1')\nexcept cordon.ServerGone:\n    r = cordon.run('1')\nprint(r.value)"],
    "node": ["--input-type=module", "-e", f"""const {{ run, ServerGone }} = await import("{BUILD / 'bindings/node/index.js'}");
        if (process.argv[1]) {{ await run("1"); await new Promise((on) => process.stdin.once("data", on)); process.stdin.destroy(); }}
        try {{ console.log((await run("1")).value); }} catch (e) {{ if (e instanceof ServerGone) console.log((await run("1")).value); }}"""],
    "ruby": [f"-I{SOURCE / 'bindings/ruby'}", "-rcordon", "-e",
             "if ARGV[0]; Cordon.run('1'); $stdin.gets; end; begin; r = Cordon.run('1'); rescue Cordon::ServerGone; r = Cordon.run('1'); end; puts r.value"],
}


def again(folder, first, words, name):
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        head, _, more = driving.libraries(BUILD, SOURCE)[LIBRARY]
        process = subprocess.Popen([head[0], *AGAIN[LIBRARY], *words], env={**os.environ, **more, "CORDON_SOCKET": str(path)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        serve(listener, [first])
        process.stdin.write("\n")  # it has ended
        process.stdin.flush()
        threading.Thread(target=serve, args=(listener, [good]), daemon=True).start()
        tap.eq(process.communicate(timeout=mcptest.PATIENCE)[0], "7\n", f"{LIBRARY}: a call without a client connects anew where the server was lost {name}")
    path.unlink()


def tick(pid):
    """A signal for which the driver in C has a handler, once it has; Ruby has one of its own, which ends it."""
    words = pathlib.Path(f"/proc/{pid}/status").read_text().split("SigCgt:")
    if LIBRARY == "c" and len(words) > 1 and int(words[1].split()[0], 16) >> (signal.SIGUSR2 - 1) & 1:
        os.kill(pid, signal.SIGUSR2)


def full(folder):
    """A server that is slow, whose queue of connections is full: a client waits for its place. Node's own connect does not."""
    path, before, answers = folder / "s", [], []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        try:
            while True:
                before.append(socket.socket(socket.AF_UNIX))
                before[-1].setblocking(False)
                before[-1].connect(str(path))
        except BlockingIOError:
            before.pop().close()
        driver = driving.Driver(driving.libraries(BUILD, SOURCE)[LIBRARY], str(path), dict(os.environ))
        asked = threading.Thread(target=lambda: answers.append(driver.tell(PLAIN)))
        asked.start()
        tapsys.until(lambda: tick(driver.process.pid) or answers, 2 / tapsys.SLOW)  # which must not come yet; a client waits ten seconds
        for other in before:
            listener.accept()[0].close()
            other.close()
        threading.Thread(target=serve, args=(listener, [good]), daemon=True).start()
        asked.join(mcptest.PATIENCE)
        tap.eq([(a.get("result") or {}).get("value") for a in answers], ["7"], f"{LIBRARY}: a server whose queue is full is waited for", answers)
        driver.end()
    path.unlink()


def starved():
    """A program that has no descriptor left for a server: Node then gives a process without streams."""
    words = f"""import {{ openSync }} from "node:fs";
        const {{ Client }} = await import("{BUILD / 'bindings/node/index.js'}");
        try {{ for (;;) openSync("/dev/null"); }} catch {{}}
        try {{ await new Client().run("1"); }} catch (e) {{ console.log(e.name); }}"""
    r = subprocess.run([tapsys.NODE, "--input-type=module", "-e", words], capture_output=True, text=True, timeout=mcptest.PATIENCE,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    tap.eq((r.returncode, r.stdout), (0, "ServerGone\n"), f"{LIBRARY}: a program without descriptors is told that no server can be started", r.stderr)


with tempfile.TemporaryDirectory() as made:
    if LIBRARY == "node":
        starved()
    else:
        full(pathlib.Path(made))
    if LIBRARY in AGAIN:
        again(pathlib.Path(made), lambda n: b"END", [], "in a call")
        again(pathlib.Path(made), lambda n: good(n) + b"END", ["later"], "between two calls")
    for case in CASES:
        judge(pathlib.Path(made), *case)
tap.done()
