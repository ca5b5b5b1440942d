#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a tool call costs: `execute_code print(1)` by stdio, unix socket and HTTP, beside the warm run without a server and beside bare Python; and
how many runs a second 1, 10 and 200 clients get.

Usage: serve.py BUILD [--rounds N] [--seconds N]. In each round every way has five calls in a row, so that all share the machine's good and bad minutes.
The ratios are of p50. BENCH_STRICT=1: a missed goal is a failure."""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("--rounds", type=int, default=40)
options.add_argument("--seconds", type=float, default=5)
o = options.parse_args()
BUILD = pathlib.Path(o.build).resolve()
CORDON = str(BUILD / "cordon")
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-", dir="/tmp"))
ENV = {"PATH": "/usr/bin:/bin", "HOME": str(TOP), "LANG": "C.UTF-8", "CORDON_STATE": str(TOP / "state"), "XDG_CONFIG_HOME": str(TOP / "config"), "XDG_RUNTIME_DIR": str(TOP / "state")}
META = "io.modelcontextprotocol/"
IN_A_ROW, PAUSE = 5, 0.006  # as bench/python.c: a waiting child is there again after it
GOALS = {"stdio": 1.5, "unix socket": 1.5, "HTTP": 2.0}
PARAMS = {"name": "execute_code", "arguments": {"code": "print(1)"}, "_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}).encode()


class Line:
    """A client of lines."""

    def __init__(self, put, get):
        self.put, self.get = put, get

    def call(self):
        self.put(CALL + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            piece = self.get(65536)
            if not piece:
                sys.exit("bench: the server ended")
            data += piece
        return data


class Web:
    def __init__(self):
        head = (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
                f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: execute_code\r\nContent-Length: {len(CALL)}\r\n\r\n")
        self.request = head.encode() + CALL
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self):
        self.socket.sendall(self.request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more()
        head, body = data.split(b"\r\n\r\n", 1)
        length = re.search(rb"Content-Length: (\d+)", head)
        while (len(body) < int(length.group(1))) if length else not body.endswith(b"0\r\n\r\n"):
            body += self.more()
        return body

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            sys.exit("bench: the server ended")
        return data


def timed(client):
    began = time.perf_counter()
    data = client.call()
    took = (time.perf_counter() - began) * 1e3
    if b'"stdout":"1\\n"' not in data.replace(b'": ', b'":'):
        sys.exit(f"bench: not the answer: {data[:400]}")
    time.sleep(PAUSE)
    return took


def warm_turn():
    warm.stdin.write("\n")
    warm.stdin.flush()
    return [float(x) for x in warm.stdout.readline().split()]


def bare_turn():
    began = time.perf_counter()
    subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
    return [(time.perf_counter() - began) * 1e3]


def part(times, p):
    return sorted(times)[min(len(times) - 1, int(len(times) * p))]


def rate(clients):
    """Runs a second over HTTP, and their p99."""
    times, over = [], time.monotonic() + o.seconds
    web = [Web() for _ in range(clients)]

    def work(w):
        while time.monotonic() < over:
            began = time.perf_counter()
            w.call()
            times.append((time.perf_counter() - began) * 1e3)

    threads = [threading.Thread(target=work, args=(w,)) for w in web]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return len(times) / (time.monotonic() - began), part(times, 0.5), part(times, 0.99)


for folder in ("state", "config", "config/cordon", "socket"):
    (TOP / folder).mkdir(mode=0o700)
(TOP / "config/cordon/policy.yaml").write_text('version: 1\nrates: {executions: 1000, window: 1ms}\naudit: {sync: "off", duplicates: 0}\n')
missed, processes = [], []
try:
    subprocess.run([CORDON, "pool", "start", "--size", "8"], env=ENV, check=True, stdout=subprocess.DEVNULL)
    stdio = subprocess.Popen([CORDON, "serve", "--stdio"], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    site = subprocess.Popen([CORDON, "serve", "--http", "0", "--socket", str(TOP / "socket/mcp")], env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    warm = subprocess.Popen([str(BUILD / "bench/python_bench"), str(BUILD), "--turns", "warm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    processes += [stdio, site, warm]
    port, file = re.search(r":(\d+)/mcp, token (?:made, )?in (\S+)", site.stderr.readline()).groups()
    token = pathlib.Path(file).read_text().strip()
    unix = socket.socket(socket.AF_UNIX)
    unix.connect(str(TOP / "socket/mcp"))
    ways = {"stdio": Line(lambda d: (stdio.stdin.write(d), stdio.stdin.flush()), lambda n: os.read(stdio.stdout.fileno(), n)), "unix socket": Line(unix.sendall, unix.recv), "HTTP": Web()}
    times = {name: [] for name in ("bare", "warm", *ways)}
    for i in range(o.rounds + 1):
        turn = {"bare": bare_turn(), "warm": warm_turn(), **{name: [timed(c) for _ in range(IN_A_ROW)] for name, c in ways.items()}}
        for name in times if i else ():  # the first round fills caches and is not counted
            times[name] += turn[name]
    bare, base = part(times["bare"], 0.5), part(times["warm"], 0.5)
    print(f"execute_code print(1): {o.rounds} rounds\n{'':<32} {'p50 ms':>8} {'p99 ms':>8} {'/warm':>7} {'/bare':>7}  goal")
    for name, label in (("bare", "bare python3 -I -S -c"), ("warm", "warm run, no server"), *((n, f"execute_code by {n}") for n in ways)):
        p50, most = part(times[name], 0.5), GOALS.get(name)
        verdict = "" if most is None else f"{most:.1f} of the warm run, {'met' if p50 <= most * base else 'missed'}"
        missed += [name] if verdict.endswith("missed") else []
        print(f"{label:<32} {p50:>8.3f} {part(times[name], 0.99):>8.3f} {p50 / base:>7.2f} {p50 / bare:>7.2f}  {verdict}")
    for clients in (1, 10, 200):
        got, p50, p99 = rate(clients)
        print(f"{f'{clients} clients of HTTP':<32} {got:>8.0f} runs a second, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)
    print("The client is Python, and its time is in these figures. Absolute times prove nothing: they are this machine's in this minute.")
finally:
    for p in processes:
        if p.stdin:
            p.stdin.close()
        if p.args[1] == "serve":
            p.terminate()
        p.wait(60)
    subprocess.run([CORDON, "pool", "stop", "--force"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(TOP, ignore_errors=True)
sys.exit(1 if missed and os.environ.get("BENCH_STRICT") == "1" else 0)
