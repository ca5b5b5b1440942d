# SPDX-License-Identifier: Apache-2.0
"""A small client of `cordon serve --http`, for its tests: requests as bytes, replies as they came, streams event by event."""
import json
import re
import select
import socket
import subprocess

import tapsys
from mcptest import META, MODERN, PATIENCE, whole


class Site:
    """One `cordon serve --http` at a port of its own."""

    def __init__(self, programs, *options, who="root", env=None):
        self.process = subprocess.Popen(programs.command(["serve", "--http", "127.0.0.1:0", *options], who), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=tapsys.clean_env(env, who))
        self.said = self.process.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp, (?:token (?:made, )?in (\S+))?", self.said)
        self.port = int(found.group(1)) if found else 0
        self.file = found.group(2) if found else None
        self.token = open(self.file).read().strip() if self.file else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, signal=15):
        if self.process.poll() is None:
            self.process.send_signal(signal)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def head(self, method="POST", path="/mcp", **fields):
        """The head of a good request, but for FIELDS, of which None leaves one out."""
        all_of_it = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}",
                     "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        all_of_it.update({k.replace("_", "-"): v for k, v in fields.items()})
        lines = [f"{method} {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in all_of_it.items() if v is not None]
        return "\r\n".join(lines + ["", ""]).encode("latin-1")

    def post(self, message, **fields):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.head(Content_Length=len(body), **fields) + body

    def modern(self, method, number=1, meta=None, fields=None, **params):
        """A request of the newest revision, with its headers."""
        params["_meta"] = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}, **(meta or {})}
        own = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if "name" in params:
            own["Mcp-Name"] = params["name"]
        return self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, **{**own, **(fields or {})})

    def tool(self, name, **arguments):
        with self.connect() as c:
            return c.ask(self.modern("tools/call", name=name, arguments=arguments)).json.get("result") or {}

    def run(self, **arguments):
        return whole(self, self.tool("execute_code", **arguments))

    def connect(self):
        return Wire(self.port)

    def legacy(self, version="2025-11-25", **capabilities):
        return Session(self, version, capabilities)


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body
        try:
            self.json = json.loads(body) if body else {}
        except ValueError:
            self.json = {}

    @property
    def code(self):
        return (self.json.get("error") or {}).get("code")


class Wire:
    """One connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.rest, self.events = b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def more(self):
        """Reads once; False: nothing comes any more."""
        ready, _, _ = select.select([self.socket], [], [], PATIENCE)
        try:
            data = self.socket.recv(1 << 16) if ready else b""
        except OSError:
            data = b""
        self.rest += data
        return bool(data)

    def until(self, mark):
        while mark not in self.rest:
            if not self.more():
                return None
        before, self.rest = self.rest.split(mark, 1)
        return before

    def exactly(self, n):
        parts, have = [], 0  # joined once: an answer may be 64 MB
        while have + len(self.rest) < n:
            parts.append(self.rest)
            have += len(self.rest)
            self.rest = b""
            if not self.more():
                self.rest = b"".join(parts)
                return None
        data, self.rest = b"".join([*parts, self.rest[:n - have]]), self.rest[n - have:]
        return data

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # it was refused before its end; the answer says why
        return self

    def reply_head(self):
        head = self.until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode().split("\r\n")
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        return Reply(int(first.split()[1]), fields, b"")

    def chunk(self):
        size = self.until(b"\r\n")
        if size is None:
            return None
        data = self.exactly(int(size, 16) + 2)
        return data[:-2] if data is not None else None

    def event(self):
        """The next event of a stream as (id, message); None: the stream is over. Comments are left out."""
        while True:
            if self.events:
                return self.events.pop(0)
            data = self.chunk()
            if not data:
                return None
            for text in data.decode().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line and not line.startswith(":"))
                if "data" in fields:
                    self.events.append((fields.get("id"), json.loads(fields["data"]) if fields["data"] else None))

    def reply(self):
        """The next response, whole: the last message of a stream is its body."""
        r = self.reply_head()
        while r and r.status == 100:
            r = self.reply_head()
        if r is None:
            return Reply(0, {}, b"")
        if r.fields.get("content-type") == "text/event-stream":
            r.seen = []
            while (e := self.event()) is not None:
                r.seen.append(e)
            last = [m for _, m in r.seen if m and "method" not in m]
            return_value = Reply(r.status, r.fields, json.dumps(last[-1]).encode() if last else b"")
            return_value.seen = r.seen
            return return_value
        return Reply(r.status, r.fields, self.exactly(int(r.fields.get("content-length", "0"))) or b"")

    def ask(self, data):
        return self.send(data).reply()

    def ended(self):
        """Waits for the end of the connection."""
        while self.more():
            pass
        return True


class Session:
    """A conversation of a revision that has sessions; each request has a connection of its own."""

    def __init__(self, site, version, capabilities):
        self.site, self.version, self.number = site, version, 0
        with site.connect() as c:
            self.opened = c.ask(site.post({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}}))
        self.id = self.opened.fields.get("mcp-session-id")
        self.fields = {"Mcp-Session-Id": self.id, **({"MCP-Protocol-Version": version} if version >= "2025-06-18" else {})}
        self.tell("notifications/initialized")

    def tell(self, method, **params):
        with self.site.connect() as c:
            return c.ask(self.site.post({"jsonrpc": "2.0", "method": method, "params": params}, **self.fields))

    def request(self, method, **params):
        self.number += 1
        return self.site.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}, **self.fields)

    def ask(self, method, **params):
        with self.site.connect() as c:
            return c.ask(self.request(method, **params))

    def tool(self, name, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments).json.get("result") or {}

    def listen(self, last=None):
        c = self.site.connect()
        fields = {**self.fields, **({"Last-Event-ID": last} if last else {})}
        return c.send(self.site.head("GET", Content_Type=None, **fields))

    def delete(self):
        with self.site.connect() as c:
            return c.ask(self.site.head("DELETE", Content_Type=None, **self.fields))
