# SPDX-License-Identifier: Apache-2.0
"""A scripted model on loopback, a gateway before it and a small client, for the tests of `cordon proxy`. All three are in a network
namespace of the test's own, so that nothing can go out."""
import atexit
import ctypes
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tapsys

PATIENCE = 60 * tapsys.SLOW
KEY = "sk-test/0123456789abcdef+KEYKEYKEY"
LOOP = "I will look at it again. "


def own_network():
    """An empty network with nothing but loopback."""
    if os.geteuid() != 0:
        if os.environ.get("PROXYTEST") != "1":
            os.execve("/usr/bin/unshare", ["unshare", "-rn", "/usr/bin/python3", *sys.argv], {**os.environ, "PROXYTEST": "1"})
    elif ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as s:
        import fcntl
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running


# --- what a model says ----------------------------------------------------------------------------

def words(n, start=0):
    """Text without a loop: no three words repeat."""
    return " ".join(f"{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}{'uvwxyz'[i // 100 % 6]}" for i in range(start, start + n)) + " "


def chat(text=None, end=None, tool=None, **more):
    delta = {}
    if text is not None:
        delta["content"] = text
    if tool is not None:
        delta["tool_calls"] = tool
    o = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "up-1",
         "choices": [{"index": 0, "delta": delta, "finish_reason": end}], **more}
    return b"data: " + json.dumps(o).encode() + b"\n\n"


def usage(a, b):
    return b"data: " + json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "up-1", "choices": [],
                                   "usage": {"prompt_tokens": a, "completion_tokens": b, "total_tokens": a + b}}).encode() + b"\n\n"


def event(kind, **more):
    return f"event: {kind}\ndata: ".encode() + json.dumps({"type": kind, **more}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


class Line:
    """The upstream's side of one request: chunks are sent as they are given; `closed` waits for the other side's end."""

    def __init__(self, sock, head, body):
        self.sock, self.head, self.body = sock, head, body
        self.begun = False
        self.over = threading.Event()

    def send(self, data):
        if not self.begun:
            self.start()
        self.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def start(self, status="200 OK", kind="text/event-stream"):
        self.begun = True
        self.sock.sendall(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())

    def plain(self, status, body):
        body = json.dumps(body).encode() if not isinstance(body, bytes) else body
        self.begun = True
        self.sock.sendall(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def end(self):
        self.sock.sendall(b"0\r\n\r\n")

    def closed(self, seconds=0.0):
        """Whether the gateway has closed the connection, within so long."""
        ready, _, _ = select.select([self.sock], [], [], seconds)
        if not ready:
            return False
        try:
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class Upstream:
    """Answers by the model's name: SCRIPTS maps it to a function of a Line."""

    def __init__(self, scripts):
        self.scripts, self.seen, self.lock = scripts, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(sock,), daemon=True).start()

    def one(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = sock.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                size = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
                while len(data) < size:
                    data += sock.recv(65536)
                body, data = json.loads(data[:size]), data[size:]
                line = Line(sock, head.decode(), body)
                with self.lock:
                    self.seen.append(line)
                if self.scripts[body["model"]](line) == "close":
                    return
        except OSError:
            pass
        finally:
            sock.close()

    def asked(self, model):
        with self.lock:
            return [line for line in self.seen if line.body["model"] == model]


# --- the gateway ----------------------------------------------------------------------------------

class Gateway:
    def __init__(self, programs, policy, env=None, who="root", state=None):
        """STATE: the folder of runs that it serves; else one of its own."""
        self.folder = tempfile.mkdtemp(prefix="cordon-proxy-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.policy = os.path.join(self.folder, "policy.yaml")
        with open(self.policy, "w") as f:
            f.write(policy)
        if who == "user" and os.geteuid() == 0:
            for path in (self.folder, self.policy):
                os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
        self.state = str(state or os.path.join(self.folder, "state"))
        self.log = os.path.join(self.folder, "log")
        self.process = subprocess.Popen(programs.command(["proxy", "--http", "127.0.0.1:0", "--policy", self.policy], who),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.log, "w"),
                                        env=tapsys.clean_env({"CORDON_STATE": self.state, **(env or {})}, who))
        until = time.monotonic() + PATIENCE
        found = None
        while not found and self.process.poll() is None and time.monotonic() < until:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/v1.*?(?:in (\S+))?\n", self.said())
            time.sleep(0.01)
        self.port = int(found.group(1)) if found else 0
        self.token = open(found.group(2)).read().strip() if found and found.group(2) else ""

    def said(self):
        with open(self.log) as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def front(self):
        """The pid of the contained process: the gateway tells its address a little before that one is started."""
        def children():
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
                return f.read().split()
        return int(tapsys.until(children)[0])

    def records(self):
        rows = []
        for name in sorted(os.listdir(os.path.join(self.state, "audit"))):
            if name.endswith(".jsonl"):
                with open(os.path.join(self.state, "audit", name)) as f:
                    rows += [json.loads(line) for line in f]
        return [r for r in rows if r["kind"] == "model"]

    def wait_records(self, count):
        until = time.monotonic() + PATIENCE
        while len(self.records()) < count and time.monotonic() < until:
            time.sleep(0.01)
        return self.records()

    def open(self, body, path="/v1/chat/completions", token=None, method="POST", headers=None):
        """A request that was sent; its answer is the caller's to read."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        own = {"Authorization": f"Bearer {self.token if token is None else token}", "Content-Type": "application/json", **(headers or {})}
        c.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body), own)
        return c

    def ask(self, body, path="/v1/chat/completions", **more):
        c = self.open(body, path, **more)
        try:
            return Answer(c.getresponse())
        finally:
            c.close()


class Answer:
    """All of an answer: events of a stream, or an object."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        try:
            self.raw = response.read()
            self.whole = True
        except (http.client.IncompleteRead, OSError) as problem:
            self.raw, self.whole = getattr(problem, "partial", b""), False
        self.events, self.json = [], None
        if "event-stream" in (self.headers.get("Content-Type") or ""):
            for part in self.raw.decode().split("\n\n"):
                for row in part.split("\n"):
                    if row.startswith("data: "):
                        self.events.append(row[6:] if row == "data: [DONE]" else json.loads(row[6:]))
        elif self.raw:
            self.json = json.loads(self.raw)

    @property
    def text(self):
        """What the model said, as the client has it."""
        out = []
        for e in self.events:
            if isinstance(e, dict) and e.get("choices"):
                out.append(e["choices"][0]["delta"].get("content") or "")
            elif isinstance(e, dict) and e.get("type") == "content_block_delta":
                out.append(e["delta"].get("text") or "")
            elif isinstance(e, dict) and e.get("type") == "response.output_text.delta":
                out.append(e["delta"])
        if self.json and self.json.get("choices"):
            out.append(self.json["choices"][0]["message"]["content"] or "")
        if self.json and self.json.get("content"):
            out += [b.get("text", "") for b in self.json["content"]]
        return "".join(out)

    @property
    def ends(self):
        """Reasons why it ended, in the order in which they came."""
        out = []
        for e in self.events:
            if isinstance(e, dict) and e.get("choices") and e["choices"][0].get("finish_reason"):
                out.append(e["choices"][0]["finish_reason"])
            elif isinstance(e, dict) and e.get("type") == "message_delta":
                out.append(e["delta"]["stop_reason"])
            elif isinstance(e, dict) and e.get("type") in ("response.completed", "response.incomplete"):
                out.append((e["response"].get("incomplete_details") or {}).get("reason") or e["response"]["status"])
        return out


def policy(port, rows, more=""):
    """ROWS: (name, shape, tier, models)."""
    lines = ["upstreams:"]
    for name, shape, tier, models in rows:
        base = f"http://127.0.0.1:{port}" + ("/v1" if shape == "openai" else "")
        lines.append(f"  {name}: {{url: \"{base}\", shape: {shape}, tier: {tier}, key_env: MODEL_KEY, models: [{', '.join(models)}]}}")
    return "\n".join(lines) + "\nrates: {model_calls: 100000, model_burst: 100000}\naudit: {sync: \"off\"}\n" + more
