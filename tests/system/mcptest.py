# SPDX-License-Identifier: Apache-2.0
"""A small client of `cordon serve --stdio`, for its tests: it waits for what it is told to wait for, and keeps the rest."""
import json
import os
import select
import signal
import socket
import subprocess
import time

import schema
import tapsys

PATIENCE = 60 * tapsys.SLOW  # seconds: the end of a wait that would never end; no test depends on how long one takes
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Client:
    """What both kinds of connection share; legacy: the revision of its handshake, None: each message says the newest."""

    def __init__(self, legacy, opens):
        self.legacy, self.number, self.rest = legacy, 0, b""
        self.lines, self.replies, self.notes = [], {}, []
        if legacy and opens:
            self.opened = self.ask("initialize", protocolVersion=legacy, capabilities={}, clientInfo={"name": "test", "version": "1"})
            self.tell("notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def meta(self, more=None):
        own = {} if self.legacy else {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        return {**own, **(more or {})}

    def send(self, method, meta=None, **params):
        self.number += 1
        if self.meta(meta):
            params["_meta"] = self.meta(meta)
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def tell(self, method, **params):
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def take(self, seconds):
        """One look at what the server wrote; False: it is gone."""
        ready, _, _ = select.select([self.source()], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.source(), 1 << 20)
        except OSError:
            return False
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            value = json.loads(line)
            self.lines.append(value)
            if isinstance(value, dict) and "method" in value:
                self.notes.append(value)
            elif isinstance(value, dict):
                self.replies[value.get("id")] = value
                content = (value.get("result") or {}).get("structuredContent")
                if isinstance(content, dict):
                    schema.look(content)
        return bool(data)

    def until(self, ready):
        """Reads until READY() is true, and gives what it gave; None: the server is gone, or nothing happens any more."""
        end = time.monotonic() + PATIENCE
        alive = True
        while not (got := ready()) and alive and time.monotonic() < end:
            alive = self.take(0.5)
        return got or ready() or None

    def reply(self, number):
        return self.until(lambda: self.replies.get(number)) or {"error": {"code": 0, "message": "no reply"}}

    def ask(self, method, meta=None, **params):
        return self.reply(self.send(method, meta, **params))

    def call(self, name, meta=None, **arguments):
        return self.ask("tools/call", meta, name=name, arguments=arguments)

    def tool(self, name, **arguments):
        """The result of a tool."""
        return self.call(name, **arguments).get("result") or {"content": [{"text": "no result"}], "isError": None}

    def run(self, **arguments):
        """The result of execute_code once its program has ended: on a busy machine a short --answer makes a job of any run."""
        return whole(self, self.tool("execute_code", **arguments))

    def raw(self, data):
        """What it answers to these bytes, as the next message without a method."""
        before = len(self.lines)
        self.write(data)
        return self.until(lambda: [v for v in self.lines[before:] if not (isinstance(v, dict) and "method" in v)])


class Server(Client):
    """One `cordon serve --stdio` and its client."""

    def __init__(self, programs, *options, legacy="2025-11-25", who="root", env=None, opens=True):
        self.process = start(programs, ["--stdio", *options], who, env)
        super().__init__(legacy, opens)

    def source(self):
        return self.process.stdout.fileno()

    def write(self, data):
        self.process.stdin.write(data if isinstance(data, bytes) else (json.dumps(data) + "\n").encode())
        self.process.stdin.flush()

    def family(self):
        """Pids of the server and of all below it, by now."""
        return family(self.process.pid)

    def end(self):
        return stop(self.process)


class Connection(Client):
    """One connection to the socket of `cordon serve --socket`."""

    def __init__(self, path, legacy="2025-11-25", opens=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        super().__init__(legacy, opens)

    def source(self):
        return self.socket.fileno()

    def write(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else (json.dumps(data) + "\n").encode())

    def end(self):
        self.socket.close()


def start(programs, options, who="root", env=None):
    return subprocess.Popen(programs.command(["serve", *options], who), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=tapsys.clean_env(env, who))


def stop(process):
    """Its exit status, once its client is gone; None: it did not end."""
    for stream in (process.stdin, process.stdout, process.stderr):
        try:
            stream.close()
        except OSError:
            pass
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return None


def whole(client, result):
    """RESULT, or what came of the job that it names."""
    while (told := result.get("structuredContent") or {}).get("status") == "running":
        result = client.tool("wait_job", job_id=told["job_id"])
    return result


def text(result):
    return result["content"][0]["text"] if result.get("content") else ""


def stat(pid):
    """Name, state, parent of a process; None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        return name, rest.split()[0], int(rest.split()[1])
    except (OSError, IndexError):
        return None


def bytes_of(pid, name):
    """A file of /proc; nothing of a process that has just ended."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def family(root):
    found, grew = {root}, True
    while grew:
        grew = False
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in found and (stat(name) or ("", "", 0))[2] in found:
                found.add(int(name))
                grew = True
    return found


def named(root, name):
    return [p for p in family(root) if (stat(p) or ("",))[0] == name]


def runners(cordond):
    """Its own children of that name: what one of them forks has it for a moment, too."""
    return [p for p in named(cordond, "cordon-runner") if (stat(p) or ("", "", 0))[2] == cordond]


def gone(pids):
    """Waits until none of PIDS is alive; what is left."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        left = [p for p in pids if (stat(p) or ("", "Z"))[1] not in "ZX"]
        if not left:
            return []
        time.sleep(0.02)
    return left


def holds_common_lock(pid):
    """Whether others wait for PID: byte 0 of a file of ours is locked for microseconds, by whoever reads or changes it. Later bytes are the places of runs."""
    try:
        files = os.listdir(f"/proc/{pid}/fdinfo")
    except OSError:
        return False
    locks = [line.split() for f in files for line in bytes_of(pid, f"fdinfo/{f}").decode().splitlines() if line.startswith("lock:")]
    return any(words[-2] == "0" for words in locks)


def halt(pid):
    """Stops PID; whether it is. While it has a lock that others need it goes on: they would be refused, as test stuck shows."""
    try:
        os.kill(pid, signal.SIGSTOP)
        appears(lambda: (stat(pid) or ("", "X"))[1] in "TZX")
        if holds_common_lock(pid):
            os.kill(pid, signal.SIGCONT)
            return False
        return True
    except ProcessLookupError:
        return False


def connects(path):
    """Whether somebody listens at PATH: the file is there a little before."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(path))
        return True
    except OSError:
        return False


def appears(look):
    """Waits until LOOK() gives something, and gives that: a second look may find something else."""
    return tapsys.until(look, PATIENCE / tapsys.SLOW)
