#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a client gets out of cordond that has taken its front over: the table of requests, and nothing beside it.

tests/probes/front_relay.c takes the place of cordon-front and passes on what this test tells it to ask; cordond and all else are the product's."""
import json
import os
import select
import shutil
import subprocess
import sys

import tapsys
from mcptest import Server
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
DONE, RUNNING, GOING, REFUSED, CANCELLED = range(5)
SESSION, JOB = "mcp-" + "a" * 26, "job-" + "a" * 26
MOST = 1 << 20  # LIMIT_SOURCE of src/base/limits.h
REQUESTS, ENDS, SESSIONS = 32, 64, 16  # LIMIT_SERVE_REQUESTS, _ENDS, _SESSIONS


class Front(Server):
    """A front that does what it is told."""

    def __init__(self, *options):
        super().__init__(programs, *options, legacy=None)
        self.said, self.over = [], False

    def take(self, seconds):
        ready, _, _ = select.select([self.source()], [], [], seconds)
        data = os.read(self.source(), 1 << 20) if ready else b""
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.said += [line.decode().split() for line in lines if line != b"end"]
        self.over = bool(ready and not data) or b"end" in lines  # cordond ends a front that does not say so itself
        return not self.over

    def tell(self, *words):
        self.write((" ".join(map(str, words)) + "\n").encode())

    def ask(self, number, verb, handle="-", limits=(0, 0, 0), language=0, body="", size=None):
        self.tell("ask", number, verb, handle, *limits, language, len(body) if size is None else size)
        if body:
            self.tell("piece", number, body)

    def heard(self, number):
        heads = [w for w in self.said if w[0] == "says" and int(w[1]) == number and int(w[2]) != GOING]
        text = b"".join(bytes.fromhex(w[2]) for w in self.said if w[0] == "piece" and int(w[1]) == number and len(w) > 2)
        return (int(heads[0][2]), heads[0][3], text.decode()) if heads and len(text) >= int(heads[0][5]) else None

    def answer(self, number):
        """(stand, handle, text) of a request; without a stand: there is none."""
        return self.until(lambda: self.heard(number)) or (None, "", "no answer")

    def hung_up(self):
        """What cordond said before its end; None: it did not end."""
        return self.said if self.until(lambda: self.over) else None


def result(text):
    lines = text.splitlines()
    return json.loads(lines[-1]).get("result", {}) if lines[-1].startswith("{") else {}


def beyond():
    """What is not of the table, or not in the present state: cordond hangs up, and takes what the client had along."""
    rows = (("a verb that nobody has", lambda f: f.ask(1, "EXEC")),
            ("a request without a number", lambda f: f.ask(0, "SESSION_LIST")),
            ("the verb of figures", lambda f: f.ask(1, "METRICS")),
            ("the verb of health", lambda f: f.ask(1, "HEALTH")),
            ("a run with the handle of a session", lambda f: f.ask(1, "RUN", SESSION, body="1")),
            ("a call of a session with the handle of a job", lambda f: f.ask(1, "SESSION_RUN", JOB, body="1")),
            ("a call of a session without a handle", lambda f: f.ask(1, "SESSION_RUN", body="1")),
            ("a handle that is a path", lambda f: f.ask(1, "SESSION_RUN", "mcp-../../../../../../etc/pass", body="1")),
            ("a handle that is an option", lambda f: f.ask(1, "SESSION_RUN", "--policy=/tmp/another.yaml.....", body="1")),
            ("a handle that is too long", lambda f: f.ask(1, "SESSION_RUN", SESSION + "a", body="1")),
            ("limits for a verb that has none", lambda f: f.ask(1, "CHECK", limits=(5, 0, 0), body="1")),
            ("a language for a verb that has none", lambda f: f.ask(1, "SESSION_RUN", SESSION, language=1, body="1")),
            ("a language that nobody has", lambda f: f.ask(1, "RUN", language=1000, body="1")),
            ("a body that is longer than the longest program", lambda f: f.ask(1, "RUN", size=MOST + 2)),
            ("a body for a verb that has none", lambda f: f.ask(1, "SESSION_LIST", size=1)),
            ("a second request with the number of one that waits", lambda f: (f.ask(1, "RUN", size=5), f.ask(1, "RUN", size=5))),
            ("one request more than there may be", lambda f: [f.ask(n, "RUN", size=5) for n in range(1, REQUESTS + 2)]),
            ("one answer to approvals more than there may be", lambda f: [f.ask(n, "APPROVAL_ANSWER", JOB, size=5) for n in range(1, ENDS + 2)]),
            ("more of a body than was announced", lambda f: (f.ask(1, "RUN", size=2), f.tell("piece", 1, "123"))),
            ("a piece for a run that is under way", lambda f: (f.ask(1, "RUN", body="while True: pass"), f.tell("piece", 1, "1"))),
            ("a frame that is for fronts", lambda f: f.tell("says")),
            ("bytes that are no frame", lambda f: f.tell("noise")))
    for what, act in rows:
        with Front() as f:
            act(f)
            tap.eq(f.hung_up(), [], f"cordond hangs up at {what}")


def within():
    with Front("--timeout", f"{round(700 * tapsys.SLOW)}ms") as f:
        f.ask(2, "RUN", limits=(3600000, 0, 0), body="while True: pass")
        tap.eq(result(f.answer(2)[2]).get("status"), "timeout", "cordond does not widen the time of a run, whatever a front asks")
        f.ask(3, "SESSION_NEW")
        made = f.answer(3)[1]
        f.ask(4, "SESSION_RUN", made, limits=(3600000, 0, 0), body="while True: pass")
        tap.eq(result(f.answer(4)[2]).get("status"), "timeout", "cordond does not widen the time of a session's call, whatever a front asks")
    with Front("--memory", "200m", "--output", "1000") as f:
        f.ask(1, "RUN", body="6 * 7")
        got = result(f.answer(1)[2])
        tap.eq(got.get("value"), "42", "a run that is asked by the table is answered", got)
        f.ask(3, "RUN", limits=(0, 0, 1 << 30), body="print('x' * 5000)")
        tap.eq(result(f.answer(3)[2]).get("truncated"), True, "cordond does not widen the output of a run, whatever a front asks")
        f.ask(5, "SESSION_NEW")
        made = f.answer(5)[1]
        f.ask(6, "SESSION_RUN", made, limits=(0, 0, 1 << 30), body="print('x' * 5000)")
        tap.eq(result(f.answer(6)[2]).get("truncated"), True, "cordond does not widen the output of a session's call, whatever a front asks")
        f.ask(7, "SESSION_CLOSE", made)
        f.answer(7)
        f.ask(4, "RUN", limits=(0, 1 << 40, 0), body="x = bytearray(400 << 20)")
        tap.ok(result(f.answer(4)[2]).get("status") in ("memory", "error"), "cordond does not widen the memory of a run, whatever a front asks")
        rows = (("SESSION_RUN", SESSION, "1", "no such session"), ("SESSION_FORK", SESSION, "", "no such session"), ("SESSION_CLOSE", SESSION, "", "no such session"),
                ("FILE_READ", SESSION, "a", "no such session"), ("SNAPSHOT_RESTORE", SESSION, "a", "no such session"), ("JOB_WAIT", JOB, "", "no such job"),
                ("JOB_LOOK", JOB, "", "no such job"), ("JOB_CANCEL", JOB, "", "no such job"), ("APPROVAL_ANSWER", JOB, "yes", "nothing that this client may answer"),
                ("APPROVALS", "-", "list", "no approvals"), ("SESSION_NEW", "-", "private", "gives none of that name"))
        for n, (verb, handle, body, word) in enumerate(rows, 10):
            f.ask(n, verb, handle, body=body)
            got = f.answer(n)
            tap.ok(got[0] == REFUSED and word in got[2], f"{verb} of what this client was not given is refused in words", got)
        f.ask(30, "RUN", body="while True: pass")
        f.ask(31, "SESSION_LIST")
        tap.eq(f.answer(31)[::2], (DONE, "[]"), "a request is answered while another one runs")
        f.tell("cancel", 77, 1)
        f.tell("cancel", 30, 1)
        f.ask(30, "RUN", body="5")
        tap.eq(result(f.answer(30)[2]).get("value"), "5", "the number of a request that was cancelled can be used again, and the run of the new one is answered")


def jobs():
    """A job is its client's, and a question in it is answered by no client where the policy has no elicitation."""
    with Front("--answer", "100ms", "--timeout", "10m") as f, Front() as other:
        f.ask(1, "RUN", body="while True: pass")
        job = f.answer(1)
        tap.eq(job[0], RUNNING, "a run that takes long is answered with a job")
        f.ask(2, "APPROVAL_ANSWER", job[1], body="ap-1 yes")
        got = f.answer(2)
        tap.ok(got[0] == REFUSED and "nothing that this client may answer" in got[2], "an answer to a question of a job is refused where clients are asked nothing", got)
        for n, verb in enumerate(("JOB_WAIT", "JOB_LOOK", "JOB_CANCEL"), 1):
            other.ask(n, verb, job[1])
            got = other.answer(n)
            tap.ok(got[0] == REFUSED and "no such job" in got[2], f"{verb} of another client's job is refused, also to who has its handle", got)
        number = 3
        f.ask(number, "JOB_CANCEL", job[1])
        while f.answer(number)[0] == RUNNING:  # its end takes longer than the server lets a client wait
            number += 1
            f.ask(number, "JOB_WAIT", job[1])
        tap.eq(f.answer(number)[0], CANCELLED, "a client ends its own job")


def crowded():
    """A client has so many sessions, and a session is its own."""
    with Front("--profile", "standard") as f, Front("--profile", "standard") as other:
        for n in range(1, SESSIONS + 1):
            f.ask(n, "SESSION_NEW")
            made = f.answer(n)
        f.ask(SESSIONS + 1, "SESSION_NEW")
        got = f.answer(SESSIONS + 1)
        tap.ok(made[0] == DONE and got[0] == REFUSED and f"{SESSIONS} sessions" in got[2], f"a client has no more than {SESSIONS} sessions", made, got)
        for n, verb in enumerate(("SESSION_RUN", "SESSION_FORK", "SESSION_CLOSE", "SESSION_INTERRUPT", "FILE_READ"), 1):
            other.ask(n, verb, made[1], body="1" if verb in ("SESSION_RUN", "FILE_READ") else "")
            got = other.answer(n)
            tap.ok(got[0] == REFUSED and "no such session" in got[2], f"{verb} of another client's session is refused, also to who has its handle", got)
    tapsys.cordon(programs, ["pool", "stop", "--force"])


def apart():
    """Who reads what clients send, and who does not: by the names that are linked into each."""
    linked = {p: subprocess.run(["/usr/bin/nm", str(programs.bin / p)], stdout=subprocess.PIPE, text=True, check=True).stdout.split() for p in ("cordon-front", "cordond")}
    for name, what in (("json_loadb", "JSON"), ("http_parse", "HTTP"), ("serve_rpc_take", "MCP")):
        tap.eq([name in linked[p] for p in linked], [True, False], f"cordon-front has a parser of {what}, and cordond has none")
    for prefix, what in (("json_", "jansson"), ("http_", "the room http"), ("expr_", "the room expr"), ("serve_front_", "the front")):
        found = {p: [n for n in linked[p] if n.startswith(prefix)] for p in linked}
        tap.ok(found["cordon-front"] and not found["cordond"], f"cordond has no function of {what} at all, of which cordon-front has some", found["cordond"])


apart()
shutil.copy2(programs.probes / "front-relay", programs.bin / "cordon-front")
beyond()
within()
jobs()
crowded()
tap.done()
