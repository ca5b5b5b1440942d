# SPDX-License-Identifier: Apache-2.0
"""What the whole-system tests of the pool share: the processes of this test, and a user who runs cordon."""
import os
import pathlib
import time

import tapsys
import traces
from tapsys import until


def proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


class Processes:
    """Those that run a program of this test, in whatever namespace: the programs are a copy of its own."""

    def __init__(self, programs):
        self.files = {(s.st_dev, s.st_ino): p.name for p in programs.bin.iterdir() for s in [p.stat()]}

    def all(self):
        """{pid: name of the program} of those that live."""
        found = {}
        for p in pathlib.Path("/proc").iterdir():
            if p.name.isdigit():
                try:
                    s = os.stat(p / "exe")
                    if (s.st_dev, s.st_ino) in self.files and "Z" not in (p / "stat").read_text().rsplit(")", 1)[1].split()[0]:
                        found[int(p.name)] = self.files[s.st_dev, s.st_ino]
                except OSError:
                    pass
        return found

    def lasting(self):
        """How many there are, without what a template has only prepared."""
        return traces.lasting({pid: p for pid in self.all() for p in [traces.process(pid)] if p})

    def at_rest(self):
        """The same when nothing comes or goes any more: a template prepares its next child a little later."""
        def still():
            before = self.all()
            time.sleep(0.2)
            return before if before == self.all() else None
        return until(still) or {}


class User:
    """Runs cordon as root or as an ordinary user; what is told about it begins with who it was."""

    def __init__(self, tap, programs, who):
        self.tap, self.programs, self.who = tap, programs, who

    def __call__(self, *args, text=None, **more):
        return tapsys.cordon(self.programs, args, self.who, text=text, **more)

    def ok(self, good, name, *details):
        return self.tap.ok(good, f"{self.who}: {name}", *[self.tell(d) for d in details])

    @staticmethod
    def tell(d):
        if isinstance(d, tapsys.Run):
            d.json = d.json if isinstance(d.json, dict) else None
            return d.story()
        return d

    def status(self):
        """What the holder says. One that lives and does not answer in time, on a busy machine, is asked again."""
        def said():
            s = self("pool", "status", "--json").json or {}
            return s if s.get("answers") or not s.get("running") or s.get("process") == "stopped" else None
        return until(said) or {}

    def warm(self, attempt):
        """The result of attempt() when it had a child of the pool: who is not answered within 50 ms goes without, as a busy machine may
        bring about."""
        for _ in range(20):
            before = self.status()["leases"]
            r = attempt()
            if self.status()["leases"] > before:
                break
        return r

    def holding(self, start, profile):
        """The process that start() gives, a client that stays, once a child of PROFILE is lent to it; as for warm()."""
        for _ in range(10):
            client = start()
            if until(lambda: self.template(profile).get("lent") == 1, 5):
                break
            client.kill()
            client.wait()
        return client

    def template(self, name):
        return next((t for t in self.status().get("templates", ()) if t["name"] == name), {})

    def full(self, name):
        return until(lambda: (lambda t: t if t.get("ready") and t["ready"] == t["warm"] and not t["asked"] else None)(self.template(name)))

    def cell(self, session, source, *options, **more):
        return self("session", "run", "--json", *options, session, "-", text=source, **more)

    def sessions(self):
        """Those that live. No list is no answer of the holder in time: it is asked again."""
        listed = until(lambda: (lambda r: [r.json] if isinstance(r.json, list) else None)(self("session", "list", "--json"))) or [[]]
        return {s["session"]: s for s in listed[0] if s["state"] != "over"}

    def new(self, *words):
        r = self("session", "new", *words)
        return r.out.strip() if r.code == 0 else f"not-made-{r.err.strip()}"
