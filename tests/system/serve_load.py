#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many clients of `cordon serve` at once, some of them bad: every run is answered or cancelled, none is lost or doubled, nothing
grows. In the middle a front, a runner and cordond are killed.

Usage: serve_load.py BUILD [CLIENTS RUNS]; `make serve-load` has 200 and 10000. The seed is printed; SEED repeats it."""
import json
import os
import random
import signal
import socket
import sys
import threading
import time

import tapsys
from httptest import Wire
from mcptest import META, MODERN, PATIENCE, appears, family, gone, named, start
from servetest import Given, activate, figures
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
CLIENTS, RUNS = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (20, 100)
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 30))
UNIX, STDIO = min(28, CLIENTS // 4), min(12, CLIENTS // 6)  # the others are of HTTP
GROWTH = 24 << 20  # bytes that a process may have more at the end than after a third: what allocators keep
SLOW = 60000  # bytes of output that its client reads slowly
kills_until = 0.0  # requests that were begun before this moment may have lost their connection by a kill of ours
lock = threading.Lock()
count = {"answered": 0, "left": 0, "broken": 0, "busy": 0, "refused": 0, "garbage": 0, "half": 0, "slow": 0, "wrong": 0, "hung": 0}
sent, took, wrong, refusals = 0, [], [], []


def note(what, *more):
    with lock:
        count[what] += 1
        if what in ("wrong", "hung"):
            wrong.append((what, *more))


class Broken(Exception):
    """The connection ended before the answer."""


class Busy(Exception):
    """There were as many calls as the server has at once, for longer than a client waits."""


class Lines:
    """A client of lines: of the socket, or of a server of its own."""

    def __init__(self, path=None):
        self.path, self.process, self.number, self.rest, self.seen = path, None, 0, b"", set()
        self.open()

    def open(self):
        self.rest = b""
        if self.path:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(self.path)
            self.put, self.get = self.socket.sendall, self.socket.recv
        else:
            self.process = start(programs, ["--stdio", "--policy", str(policy)])
            self.put = lambda data: (self.process.stdin.write(data), self.process.stdin.flush())
            self.get = lambda n: os.read(self.process.stdout.fileno(), n)

    def send(self, code):
        self.number += 1
        self.put((json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {
            "name": "execute_code", "arguments": {"code": code}, "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}}) + "\n").encode())

    def answer(self, size=1 << 16):
        while True:
            while b"\n" not in self.rest:
                data = self.get(size)
                if not data:
                    raise Broken
                self.rest += data
            line, self.rest = self.rest.split(b"\n", 1)
            value = json.loads(line)
            if value.get("id") is None:  # a note, or what is said to garbage
                continue
            if value["id"] in self.seen or value["id"] > self.number:
                note("wrong", "an answer that nobody asked for, or twice", value["id"])
            self.seen.add(value["id"])
            if value["id"] == self.number:
                return value

    def leave(self):
        """Goes away with a request open, and comes back."""
        self.end()
        self.seen, self.number = set(), 0
        self.open()

    def garbage(self, data):
        self.put(data.replace(b"\n", b" ") + b"\n")

    def end(self):
        if self.process:
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                try:
                    stream.close()
                except OSError:
                    pass
            if self.process.wait(PATIENCE) != 0:
                note("wrong", "cordon serve --stdio ended with", self.process.returncode)
        else:
            self.socket.close()


class Web:
    """A client of HTTP; its connection stays while it can."""

    def __init__(self):
        self.wire = None

    def send(self, code):
        if self.wire is None:
            self.wire = Wire(site.port)
        self.wire.send(site.modern("tools/call", name="execute_code", arguments={"code": code}))

    def answer(self, size=0):
        began = time.monotonic()
        r = self.wire.reply()
        if r.status == 503:
            raise Busy
        if r.status == 0 and time.monotonic() - began > PATIENCE - 1:
            raise TimeoutError
        if r.status != 200:
            self.leave()
            raise Broken
        return r.json

    def leave(self):
        if self.wire:
            self.wire.close()
        self.wire = None

    def garbage(self, data):
        w = Wire(site.port).send(data + b"\r\n\r\n")
        r = w.reply()
        if r.status and r.status < 400:
            note("wrong", "garbage was answered with", r.status)
        w.close()

    def end(self):
        self.leave()


def hold(number):
    """Where something is to be killed, nobody begins more until it is: the kills fall into the middle of work."""
    for part, event in kills:
        if number >= RUNS * part:
            event.wait(PATIENCE)


def one_run(client, rng, number):
    """A run, well or badly behaved."""
    global sent
    way, word = rng.random(), f"run-{number}"
    slow = way > 0.96
    code = f"print('{word}')" + (f"\nprint('x' * {SLOW})" if slow else "")
    if way < 0.04:
        client.garbage(rng.randbytes(rng.randrange(1, 400)))
        note("garbage")
    if 0.04 < way < 0.06:
        s = socket.create_connection(("127.0.0.1", site.port))
        s.sendall(site.head()[:rng.randrange(1, 40)])
        half_open.append(s)
        note("half")
    with lock:
        sent += 1
    began = time.monotonic()
    client.send(code)
    if way > 0.88 and not slow:
        client.leave()
        note("left")
        return
    if slow:
        note("slow")
        time.sleep(0.05)
    reply = client.answer(997 if slow else 1 << 16)
    result = reply.get("result") or {}
    out = (result.get("structuredContent") or {}).get("stdout", "")
    if result.get("isError") or "error" in reply:
        note("refused")
        refusals.append(str(reply)[:300])
    elif out.split("\n")[0] == word and (not slow or len(out) > SLOW):
        note("answered")
        took.append(time.monotonic() - began)
    else:
        note("wrong", word, reply)


def work(index, make):
    rng = random.Random(SEED * 1000 + index)
    client = make()
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            break
        hold(number)
        began = time.monotonic()
        try:
            one_run(client, rng, number)
        except TimeoutError:
            note("hung", "no answer and no end", index, number)
        except Busy:
            note("busy")
        except (Broken, OSError, ValueError) as e:
            if began > kills_until:
                note("wrong", "a connection that nobody broke", index, number, repr(e))
            else:
                note("broken")
            for _ in range(100):
                try:
                    client.leave()
                    break
                except OSError:
                    time.sleep(0.1)
    client.end()


def memory(pids):
    total = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as f:
                total[pid] = sum(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))
        except OSError:
            pass
    return total


def progress(part):
    """Waits until about that part of all runs was begun: those that hold have a number and no request."""
    return appears(lambda: sent >= RUNS * part - CLIENTS)


def kill(name):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for pid in named(site.process.pid, name):
            try:
                os.kill(pid, signal.SIGKILL)
                return True
            except ProcessLookupError:
                pass  # a runner ends soon: the next one
    return False


policy = programs.dir / "policy.yaml"
policy.write_text("rates: {concurrent: 10}\n")
path = str(programs.dir / "socket")
unix, tcp = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET)
unix.bind(path)
unix.listen(128)
tcp.bind(("127.0.0.1", 0))
tcp.listen(256)
half_open, threads = [], []
kills = [(part, threading.Event()) for part in (0.25, 0.4, 0.55)]
numbers = iter(range(RUNS))
OPTIONS = ("--metrics", "0", "--policy", str(policy), "--drain", "30s")
print(f"# {CLIENTS} clients ({UNIX} of the socket, {STDIO} of stdio), {RUNS} runs, SEED={SEED}", flush=True)
tapsys.cordon(programs, ["pool", "start", "--size", "8"])
site = Given(activate(programs, [unix, tcp], *OPTIONS), tcp.getsockname()[1])
makers = [lambda: Lines(path)] * UNIX + [Lines] * STDIO + [Web] * (CLIENTS - UNIX - STDIO)
threads += [threading.Thread(target=work, args=(i, make), daemon=True) for i, make in enumerate(makers)]
for t in threads:
    t.start()
progress(0.25)
kills_until = float("inf")
front = kill("cordon-front")
kills[0][1].set()
progress(0.4)
endless = site.connect().send(site.modern("tools/call", name="execute_code", arguments={"code": "while True: pass"}))
runner = kill("cordon-runner")  # that one, or one beside it
kills[1][1].set()
progress(0.55)
tree = family(site.process.pid)
site.process.kill()
site.process.wait()
endless.close()
left = gone(tree - {site.process.pid})
site = Given(activate(programs, [unix, tcp], *OPTIONS), tcp.getsockname()[1])
kills_until = time.monotonic() + 30  # until each has noticed
kills[2][1].set()
progress(0.7)
pids = [site.process.pid, *named(site.process.pid, "cordon-front")]
before = memory(pids)
deadline = time.monotonic() + PATIENCE + RUNS * 0.5 * tapsys.SLOW
for t in threads:
    t.join(max(0, deadline - time.monotonic()))
after = memory(pids)
if not tap.ok(site.process.poll() is None, "the server is there at the end of it"):
    print("#", site.process.returncode, site.process.stderr.read().decode())
    tap.done()
    sys.exit(1)
tap.ok(front and runner, "a front and a runner were killed in the middle")
tap.eq(left, [], "SIGKILL of cordond in the middle leaves nothing running")
tap.eq([t.name for t in threads if t.is_alive()], [], "every client came to its end")
tap.eq((count["wrong"], count["hung"]), (0, 0), "every run was answered with its own output, or its connection ended; none twice", *wrong[:10])
tap.eq(count["answered"] + count["left"] + count["broken"] + count["busy"] + count["refused"] + count["wrong"] + count["hung"], RUNS, "every run is one of answered, refused, left by its client, turned away or broken by a kill", count)
# Each of the two kills of a server may break one run of every client, and clients leave by chance: of few runs that is a large part.
least = min(RUNS * 0.6, RUNS - count["left"] - count["busy"] - 2 * CLIENTS - 2)
tap.ok(count["answered"] > least and count["refused"] < RUNS * 0.02 + 2, "most runs were answered, and none refused but those whose runner was killed", count, *refusals[:5])


def settled():
    f = figures(site.metrics)
    ended = sum(v for k, v in f.items() if k.startswith('cordon_serve_ended_total{verb="run"'))
    return f if f.get("cordon_serve_running") == 0 and f.get("cordon_serve_requests_open") == 0 and ended == f['cordon_serve_requests_total{verb="run"}'] else None


f = appears(settled)
tap.ok(f, "after it every request that the server took has ended, and none is open", figures(site.metrics))
f = f or figures(site.metrics)
# a gate that is asked by a killed runner loses a slot, and says so
tap.ok(f["cordon_gate_admitted_total"] <= sent + 1 and f["cordon_gate_running"] == 0 and f["cordon_gate_queue"] == 0, "no run was run twice, and the gate has none left", sent, f["cordon_gate_admitted_total"])
grown = {pid: (before[pid], after[pid]) for pid in before if pid in after and after[pid] > before[pid] + GROWTH}
tap.eq(grown, {}, "cordond and its fronts have not grown")
for s in half_open:
    s.close()
tree = family(site.process.pid)
tap.eq((site.end(), gone(tree - {site.process.pid})), (0, []), "SIGTERM ends the server with 0, and nothing is left")
tapsys.cordon(programs, ["pool", "stop", "--force"])
tap.eq(tapsys.cordon(programs, ["audit", "verify"]).code, 0, "the audit of all of it is whole")
took.sort()
if took:
    print(f"# {count}\n# answered runs: p50 {took[len(took) // 2] * 1e3:.1f} ms, p99 {took[int(len(took) * 0.99)] * 1e3:.1f} ms")
tap.done()
