#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Storms at `cordon serve`: clients that give up, ask twice and vanish, without and with processes that are killed and stopped. Afterwards nothing is left under way,
every slot is free, and figures and audit agree."""
import collections
import json
import os
import random
import signal
import sys

import tapsys
from mcptest import Connection, appears, connects, named, start, stop
from servetest import figures
from tapsys import Tap

SLOTS, CLIENTS, STEPS = 4, 6, 300
CODES = ["1", "print('x' * 1000)", "import time; time.sleep(0.05)", "raise ValueError('a')", "while True: pass", "print("]
STILL = ("serve_running", "serve_requests_open", "serve_sessions", "serve_clients", "gate_running", "gate_queue", "gate_parked", "pool_sessions")
tap = Tap()
programs = tapsys.Programs(sys.argv[1])
folder = programs.dir / "storm"
folder.mkdir(mode=0o700)
path, policy = folder / "mcp", programs.dir / "policy.yaml"
policy.write_text(f"version: 1\nrates: {{concurrent: {SLOTS}, executions: 1000, window: 1ms}}\nbreakers: {{failures: 3, cooldown: 50ms}}\naudit: {{sync: 'off', duplicates: 0}}\n")


class Storm:
    """A server and its clients, which do at random what clients can do at the wrong moment. What they do is the same for the same WHICH; what meets what is not."""

    def __init__(self, which, kills):
        self.random, self.kills, self.env = random.Random(which), kills, {"CORDON_STATE": str(programs.dir / f"state-{which}")}
        self.cordon("pool", "start", "--size", "2")
        self.server = start(programs, ["--socket", str(path), "--policy", str(policy), "--profile", "standard", "--timeout", "10m", "--answer", "200ms", "--metrics", "0"], env=self.env)
        self.port = int(self.server.stderr.readline().decode().rsplit(":", 1)[1].split("/")[0])
        appears(lambda: connects(path))
        self.clients = [None] * CLIENTS

    def cordon(self, *words):
        return tapsys.cordon(programs, list(words), env=self.env)

    def told(self):
        f = figures(self.port)
        return [f.get("cordon_" + n, 0) for n in STILL]

    def call(self, c, name, **arguments):
        number = c.send("tools/call", name=name, arguments=arguments)
        c.asked.append(number)
        return number

    def known(self, c, key):
        """Handles that C was given, of jobs or sessions."""
        found = [((r.get("result") or {}).get("structuredContent") or {}).get(key) for r in c.replies.values()]
        return [h for h in found if h]

    def step(self, c):
        act, sessions, jobs = self.random.random(), self.known(c, "session_id"), self.known(c, "job_id")
        if act < 0.45 or not c.asked:
            number = self.call(c, "execute_code", code=self.random.choice(CODES))
            if act < 0.15:
                c.tell("notifications/cancelled", requestId=number)
        elif act < 0.6:
            c.tell("notifications/cancelled", requestId=self.random.choice(c.asked))
        elif act < 0.7 and jobs:
            job = self.random.choice(jobs)
            for cancel in self.random.sample([False, True, True], 3):
                self.call(c, "wait_job", job_id=job, cancel=cancel)
        elif act < 0.75:
            self.call(c, "session", action="new")
        elif act < 0.85 and sessions:
            self.call(c, *(("session",) if act < 0.8 else ("execute_code",)), session_id=sessions[-1], **({"action": "close"} if act < 0.8 else {"code": "1"}))
        elif act < 0.9:
            return True
        else:
            c.until(lambda: c.asked[-1] in c.replies or self.random.random() < 0.5)
        return False

    def disturb(self):
        """One process of the server's is killed, or stopped; a front only killed, since nobody can tell a stopped one from a client that is silent."""
        name = self.random.choice(["cordon-runner", "cordon-runner", "cordon-ready", "cordon-front"])
        found = [p for p in named(self.server.pid, name) if b"metrics" not in open(f"/proc/{p}/cmdline", "rb").read()]
        if found:
            os.kill(self.random.choice(found), signal.SIGKILL if name == "cordon-front" or self.random.random() < 0.6 else signal.SIGSTOP)

    def rage(self):
        for n in range(STEPS):
            at = self.random.randrange(CLIENTS)
            try:
                if not self.clients[at]:
                    self.clients[at] = Connection(path, legacy=None)
                    self.clients[at].asked = []
                leaves = self.step(self.clients[at]) or not self.clients[at].take(0)
            except OSError:  # its front was killed
                leaves = True
            if leaves and self.clients[at]:
                self.clients[at].end()
                self.clients[at] = None
            if self.kills and n % 8 == 0:
                try:
                    self.disturb()
                except (FileNotFoundError, ProcessLookupError):  # it has just ended
                    pass
        for c in self.clients:
            if c:
                c.end()

    def full(self):
        """Whether all slots can be had again, and the queue behind them drains."""
        with Connection(path, legacy=None) as c:
            appears(lambda: (c.tool("execute_code", code="1").get("structuredContent") or {}).get("status") == "ok")  # closes the breaker of the tool, if it is open
            asked = [c.send("tools/call", name="execute_code", arguments={"code": "while True: pass"}) for _ in range(2 * SLOTS)]
            reached = appears(lambda: [figures(self.port)["cordon_gate_" + n] for n in ("running", "queue")] == [SLOTS, SLOTS])
            for number in asked:
                c.tell("notifications/cancelled", requestId=number)
            return reached and appears(lambda: self.told()[4:6] == [0, 0])

    def records(self):
        return [json.loads(line) for line in self.cordon("audit", "export").out.splitlines()]

    def end(self):
        self.server.terminate()
        code = stop(self.server)
        self.cordon("pool", "stop", "--force")
        return code


def unpaired(records):
    """Runs that do not have exactly one end on record."""
    ends = collections.Counter(r["begin_seq"] for r in records if r["kind"] in ("end", "lost"))
    return [r for r in records if r["kind"] == "begin" and ends[r["seq"]] != 1]


def look(which, kills):
    what = f"a storm {'with' if kills else 'without'} processes that are killed and stopped"
    s = Storm(which, kills)
    s.rage()
    appears(lambda: not any(s.told()))
    tap.eq(s.told(), [0] * len(STILL), f"{what}: nothing is left under way, no session either", STILL)
    tap.ok(s.full(), f"{what}: all slots can be had again, and the queue drains")
    appears(lambda: not any(s.told()))
    f = figures(s.port)
    ended = {w: f.get(f'cordon_serve_ended_total{{verb="run",end="{w}"}}') for w in ("ok", "error")}
    tap.eq(s.end(), 0, f"{what}: the server ends with 0")
    own = collections.Counter(r["status"] for r in s.records() if (r["kind"], r["tool"]) == ("end", "run") and r["error_type"] != "Stopped")
    if not kills:  # one that is killed after its record is on none of our lists
        tap.eq({w: own[w] for w in ended}, ended, f"{what}: as many runs ended well, and by their own error, by the figures as by the audit")
    appears(lambda: not unpaired(s.records()) or not s.cordon("run", "-c", "1"))  # the next start finds those that were killed
    tap.eq(unpaired(s.records()), [], f"{what}: every run that began has one end on record")
    tap.eq(s.cordon("audit", "verify").code, 0, f"{what}: the audit is whole")


look(1, False)
look(2, True)
tap.done()
