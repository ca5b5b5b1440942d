#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a tool call costs: `execute_code print(1)` by stdio, unix socket and HTTP, beside the warm run without a server and beside bare Python; and
how many runs a second 1, 10 and 200 clients get.

Usage: serve.py BUILD [--rounds N] [--seconds N]. In each round every way has five calls in a row, so that all share the machine's good and bad minutes.
The ratios are of p50. `warm` has neither gate nor output nor audit, and the goals are held against it; the row below it has them. BENCH_STRICT=1: a missed
goal is a failure."""
import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import served

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("--rounds", type=int, default=40)
options.add_argument("--seconds", type=float, default=5)
o = options.parse_args()
META = "io.modelcontextprotocol/"
GOALS = {"stdio": 1.5, "unix socket": 1.5, "HTTP": 2.0}
LABELS = {"bare": "bare python3 -I -S -c", "warm": "warm run, no server", "flow": "the same with gate, output, audit", **{n: f"execute_code by {n}" for n in GOALS}}
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
    def __init__(self, port, token):
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
    times = []
    for _ in range(served.IN_A_ROW):
        began = time.perf_counter()
        data = client.call()
        times.append((time.perf_counter() - began) * 1e3)
        if b'"stdout":"1\\n"' not in data.replace(b'": ', b'":'):
            sys.exit(f"bench: not the answer: {data[:400]}")
        time.sleep(served.PAUSE)
    return times


def rate(web):
    """Runs a second over HTTP, and their p50 and p99."""
    times, over = [], time.monotonic() + o.seconds

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
    return len(times) / (time.monotonic() - began), served.part(times, 0.5), served.part(times, 0.99)


with served.Home(o.build) as home:
    stdio = home.serve("--stdio")
    site = home.serve("--http", "0", "--socket", str(home.socket), stdin=subprocess.DEVNULL, stdout=None, stderr=subprocess.PIPE, text=True)
    rows = home.rows_of_bench("warm", "flow")
    port, file = re.search(r":(\d+)/mcp, token (?:made, )?in (\S+)", site.stderr.readline()).groups()
    token = pathlib.Path(file).read_text().strip()
    unix = socket.socket(socket.AF_UNIX)
    unix.connect(str(home.socket))
    clients = {"stdio": Line(lambda d: (stdio.stdin.write(d), stdio.stdin.flush()), lambda n: os.read(stdio.stdout.fileno(), n)), "unix socket": Line(unix.sendall, unix.recv), "HTTP": Web(int(port), token)}
    ways = {"bare": served.bare, **{key: lambda p=p: served.turn(p) for key, p in rows.items()}, **{name: lambda c=c: timed(c) for name, c in clients.items()}}
    missed = served.table(f"execute_code print(1): {o.rounds} rounds", served.measure(o.rounds, ways), LABELS, GOALS)
    for count in (1, 10, 200):
        got, p50, p99 = rate([Web(int(port), token) for _ in range(count)])
        print(f"{f'{count} clients of HTTP':<36} {got:>8.0f} runs a second, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)
    print("The client is Python, and its time is in these figures. Absolute times prove nothing: they are this machine's in this minute.")
sys.exit(served.strict(missed))
