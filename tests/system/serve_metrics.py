#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon serve --metrics`: whether what it says is Prometheus' text format, and true."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import tapsys
from gatetest import apart
from httptest import Site, Wire
from mcptest import PATIENCE, Connection, appears, named, runners, whole
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
FOREVER = "import time\nwhile True:\n    time.sleep(0.01)\n"
HELD = "try:\n    while True:\n        pass\nexcept KeyboardInterrupt:\n    print('let go')\n"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?|\+Inf|NaN)")
PARTS = ("_bucket", "_sum", "_count")
KINDS = ("ok", "error", "limit", "never_ran", "cancelled", "crashed")
ENDS = {"ok": "ok", "error": "error", "timeout": "limit", "blocked": "never_ran", "refused": "never_ran"}
BOUNDS = ["0.001", "0.002", "0.005", "0.010", "0.025", "0.050", "0.100", "0.250", "0.500", "1.000", "2.500", "5.000", "10.000", "30.000", "60.000", "300.000", "+Inf"]


def family_of(name, kinds):
    for part in PARTS:
        if name.endswith(part) and kinds.get(name[:-len(part)]) == "histogram":
            return name[:-len(part)]
    return name


def histogram(name, values):
    """Whether the buckets of each label set rise to their count."""
    sets = {}
    for (sample, labels), value in values.items():
        rest = tuple(p for p in labels if p[0] != "le")
        if sample == name + "_bucket":
            sets.setdefault(rest, []).append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
    for rest, buckets in sets.items():
        counts = [v for _, v in buckets]
        if [b for b, _ in buckets] != sorted({b for b, _ in buckets}) or counts != sorted(counts) or buckets[-1][0] != float("inf"):
            raise ValueError(f"{name}{rest}: its buckets do not rise")
        if values.get((name + "_count", rest)) != counts[-1] or (name + "_sum", rest) not in values:
            raise ValueError(f"{name}{rest}: its count is not that of the last bucket")
    if not sets:
        raise ValueError(f"{name}: a histogram without buckets")


def parse(text):
    """{(name, labels): value}; ValueError: a line, or their order, is not of the format."""
    kinds, values, done, now = {}, {}, set(), None
    if not text.endswith("\n"):
        raise ValueError("no newline at the end")
    told = None
    for line in text[:-1].split("\n"):
        m = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if m:
            what, name, rest = m.groups()
            if what == "HELP":
                if name in done or name in kinds:
                    raise ValueError(f"told twice: {line}")
                done.add(now)
                told, now = name, name
            elif told != name or name in kinds or rest not in ("counter", "gauge", "histogram"):
                raise ValueError(f"a type out of its place: {line}")
            else:
                kinds[name] = rest
            continue
        m = SAMPLE.fullmatch(line)
        if not m:
            raise ValueError(f"no sample: {line}")
        name = family_of(m.group(1), kinds)
        labels = tuple((k, v) for k, v in re.findall(LABEL, m.group(2) or ""))
        if name != now or name not in kinds:
            raise ValueError(f"a sample away from its family: {line}")
        if len({k for k, _ in labels}) != len(labels) or (m.group(1), labels) in values:
            raise ValueError(f"twice: {line}")
        if kinds[name] == "counter" and not name.endswith("_total"):
            raise ValueError(f"a counter without _total: {line}")
        values[m.group(1), labels] = float(m.groups()[-1])
    for name, kind in kinds.items():
        if not any(family_of(s, kinds) == name for s, _ in values) and kind != "gauge":
            raise ValueError(f"no sample of {name}")
        if kind == "histogram":
            histogram(name, values)
    return values


def parser_itself():
    good = "# HELP a_total x\n# TYPE a_total counter\na_total 1\n"
    rows = [("a newline that lacks", good[:-1]), ("a sample before its type", "a_total 1\n" + good), ("a sample twice", good + "a_total 2\n"), ("a family twice", good + good),
            ("a counter without its ending", good.replace("_total", "")), ("a number that is none", good.replace(" 1\n", " one\n")), ("a label without quotes", good.replace("a_total 1", "a_total{b=c} 1")),
            ("a kind that nobody knows", good.replace("counter", "meter")), ("a line that is empty", good + "\n"),
            ("buckets that fall", '# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'),
            ("a count that is another", '# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 1\nh_count 1\n')]
    found = []
    for what, text in rows:
        try:
            parse(text)
        except ValueError:
            found.append(what)
    tap.eq((found, parse(good)), ([what for what, _ in rows], {("a_total", ()): 1.0}), "the parser of this test refuses what is not the format")


class Measured(Site):
    def __init__(self, *options, **more):
        super().__init__(programs, "--metrics", "0", *options, **more)
        self.figures = int(re.search(r"127\.0\.0\.1:(\d+)/metrics", self.process.stderr.readline().decode()).group(1))

    def get(self, path, method="GET", host="127.0.0.1"):
        c = Wire(self.figures)
        r = c.ask(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        c.close()
        return r

    def measure(self):
        r = self.get("/metrics")
        try:
            return parse(r.body.decode())
        except ValueError as e:
            tap.ok(False, "the figures are Prometheus' text format", str(e), r.body)
            return {}


def value(figures, name, **labels):
    return figures.get((name, tuple(labels.items())))


def ended(figures, verb, *ends):
    return [value(figures, "cordon_serve_ended_total", verb=verb, end=e) for e in ends]


def counted():
    policy = programs.dir / "policy.yaml"
    policy.write_text("breakers:\n  failures: 3\nrates:\n  concurrent: 7\n")
    with Measured("--policy", str(policy), "--profile", "standard", "--timeout", "10m", "--answer", "10m", "--drain", "10m") as s:
        r = s.get("/metrics")
        tap.ok(r.status == 200 and r.fields["content-type"].startswith("text/plain; version=0.0.4"), "--metrics answers in the text format of Prometheus", r.status, r.fields)
        tap.eq((s.get("/health").status, s.get("/health").body), (200, b"ok\n"), "--metrics: /health is 200 while the server takes work")
        before = time.monotonic()
        told = [s.run(code=code, **more).get("structuredContent") or {} for code, more in
                (("print(1)", {}), ("2", {}), ("import sys\nsys.exit(3)", {}), ("while True: pass", {"timeout_ms": 300}), ("def (", {}))]
        ends = [ENDS.get(t.get("status"), "?") for t in told]
        faults = [t.get("reason") for t in told if "overloaded" in (t.get("reason") or "")]  # a machine that stood still for ten seconds
        tap.ok(ends == ["ok", "ok", "error", "limit", "never_ran"] or faults, "five runs end in their ways", *told)
        s.tool("wait_job", job_id="job-" + "a" * 26)
        s.tool("check_code", code="1")
        f = s.measure()
        tap.eq(ended(f, "run", *KINDS), [ends.count(k) for k in KINDS], "runs are counted by how they ended", *told)
        tap.eq((value(f, "cordon_serve_requests_total", verb="run"), value(f, "cordon_serve_refused_total")), (5, 1), "requests and refusals of the server itself are counted")
        tap.eq([value(f, "cordon_serve_requests_total", verb=v) for v in ("check", "job_wait", "session_run")] + ended(f, "check", "ok", "error") +
               [value(f, "cordon_serve_duration_seconds_count", verb="check")], [1, 1, 0, 1, 0, 1], "requests, ends and times of each verb are counted apart")
        bars = {dict(labels)["le"]: v for (name, labels), v in f.items() if name == "cordon_serve_duration_seconds_bucket" and dict(labels)["verb"] == "run"}
        total = value(f, "cordon_serve_duration_seconds_sum", verb="run")
        tap.ok(value(f, "cordon_serve_duration_seconds_count", verb="run") == 5 and 0.3 <= total <= time.monotonic() - before, "the times of runs are a histogram, whose sum is what they took", total)
        tap.eq((list(bars), bars.get("0.250", 5) < 5, bars.get("300.000")), (BOUNDS, True, 5), "a run of 300 ms is in none of the buckets below that, and in all that are far above it", bars)
        tap.eq((value(f, "cordon_gate_slots"), value(f, "cordon_gate_running"), value(f, "cordon_gate_queue")), (7, 0, 0), "slots, what has one and what waits for one are told")
        tap.eq((value(f, "cordon_pool_up"), value(f, "cordon_gate_breakers", state="open")), (0, 0), "a pool that is not there and breakers that are closed are told as that")
        made = s.tool("session", action="new")["structuredContent"]["session_id"]
        with s.connect() as c:
            c.send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            f = appears(lambda: (lambda f: f if value(f, "cordon_gate_running") == 1 else None)(s.measure()))
            tap.eq([value(f, "cordon_serve_" + n) for n in ("running", "requests_open", "sessions")] + [value(f, "cordon_pool_up"), value(f, "cordon_pool_sessions")], [1, 1, 1, 1, 1],
                   "a run that goes on and a session are told, and the pool that has it")
        tap.ok(appears(lambda: ended(s.measure(), "run", "cancelled") == [1]), "a run whose client left is counted as cancelled")
        for _ in range(8):  # the same fault again and again
            s.tool("execute_code", code="1 / 0")
        f = s.measure()
        tap.ok(value(f, "cordon_gate_breakers", state="open") >= 1 and value(f, "cordon_gate_breaker_opened_total") >= 1 and value(f, "cordon_gate_refused_total") >= 1,
               "a breaker that opened is told, and what it refused", [(k, v) for k, v in f.items() if "breaker" in k[0]])
        for front in named(s.process.pid, "cordon-front"):
            os.kill(front, signal.SIGKILL)
        tap.ok(appears(lambda: value(s.measure(), "cordon_serve_fronts_ended_total") == 2), "fronts that were killed are counted, and their figures go on")
        held = s.connect().send(s.modern("tools/call", name="execute_code", arguments={"code": HELD, "session_id": made}))
        appears(lambda: value(s.measure(), "cordon_serve_running") == 1)
        s.process.terminate()
        tap.ok(appears(lambda: s.get("/health").status == 503) and value(s.measure(), "cordon_serve_draining") == 1, "--metrics: /health is 503 while the server drains, and the figures go on")
        s.process.send_signal(signal.SIGINT)
        held.close()


def told(site, **wanted):
    """Waits for these values of figures without labels; what there is instead."""
    def look():
        f = site.measure()
        return {name: value(f, "cordon_" + name) for name in wanted}
    appears(lambda: look() == wanted)
    return look()


def clients():
    folder = programs.dir / "clients"
    folder.mkdir(mode=0o700)
    path = folder / "mcp"
    began = int(time.time())
    with Measured("--socket", str(path), "--profile", "standard", "--answer", "100ms", env={"CORDON_STATE": str(programs.dir / "clients-state")}) as s:
        f = s.measure()
        tap.ok(began <= value(f, "cordon_serve_start_time_seconds") <= time.time(), "the moment at which the server began is told", value(f, "cordon_serve_start_time_seconds"))
        tap.eq([value(f, "cordon_serve_" + n) for n in ("clients", "clients_total", "clients_refused_total", "results_kept", "draining", "fronts_ended_total")], [1, 0, 0, 0, 0, 0],
               "before anybody came there is the one client of HTTP")
        with Connection(path), Connection(path):
            tap.eq(told(s, serve_clients=3, serve_clients_total=2), {"serve_clients": 3, "serve_clients_total": 2}, "clients of the socket are told one by one")
        tap.eq(told(s, serve_clients=1, serve_clients_total=2), {"serve_clients": 1, "serve_clients_total": 2}, "clients that left are told as having come")
        if os.geteuid() == 0:
            subprocess.run(["/usr/bin/unshare", "-U", "--map-root-user", "/usr/bin/python3", "-c", "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(float(sys.argv[2]))\ns.connect(sys.argv[1])\ns.recv(1)", str(path), str(PATIENCE)],
                           check=False, stderr=subprocess.DEVNULL)
            tap.eq(told(s, serve_clients_refused_total=1, serve_clients_total=2), {"serve_clients_refused_total": 1, "serve_clients_total": 2}, "a connection that is turned away is counted as that")
        else:
            tap.skip("a connection that is turned away is counted as that", "needs root")
        while "job_id" not in (r := s.tool("execute_code", code="import time\ntime.sleep(0.5)"))["structuredContent"]:
            pass  # it was over before the first answer: cordond had slept for so long
        r = whole(s, r)
        tap.eq(told(s, serve_results_kept=1), {"serve_results_kept": 1}, "the result of a job that is kept for its client is told", r)


def gates():
    """One slot, so that the second run waits; a person is asked for those of a stricter policy."""
    policy, env = programs.dir / "gates.yaml", {"CORDON_STATE": str(programs.dir / "gates")}
    policy.write_text("version: 1\nrates: {concurrent: 1}\nbreakers: {failures: 100}\n")

    def command(*words):
        return tapsys.cordon(programs, list(words), env=env)
    with Measured("--policy", str(policy), "--profile", "standard", "--timeout", "10m", env=env) as s:
        s.tool("execute_code", code="1")
        none = {"gate_parked": 0, "gate_stopped": 0, "gate_stops_total": 0, "gate_waited_total": 0, "gate_admitted_total": 1, "gate_planned_total": 1, "gate_released_total": 1}
        tap.eq(told(s, **none), none, "one run was given a slot and a plan and came to its end")
        with s.connect() as a, s.connect() as b:
            a.send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            told(s, gate_running=1)
            b.send(s.modern("tools/call", name="execute_code", arguments={"code": "1"}))
            want = {"gate_running": 1, "gate_queue": 1, "gate_slots": 1, "gate_waited_total": 1, "gate_released_total": 1}
            tap.eq(told(s, **want), want, "a run that waits for the slot of another is told")
            command("stop", "--why", "a test")
            want = {"gate_running": 0, "gate_queue": 0, "gate_stopped": 1, "gate_stops_total": 1, "gate_stopped_runs_total": 1}
            tap.eq(told(s, **want), want, "cordon stop is told, and the run that it ended")
        command("resume")
        tap.eq(told(s, gate_stopped=0, gate_stops_total=1), {"gate_stopped": 0, "gate_stops_total": 1}, "cordon resume is told")
        with s.connect() as a:
            a.send(s.modern("tools/call", name="execute_code", arguments={"code": FOREVER}))
            told(s, gate_running=1)
            for runner in runners(s.process.pid):
                with contextlib.suppress(ProcessLookupError):  # one that told the figures has ended
                    os.kill(runner, signal.SIGKILL)
            a.reply()
        s.tool("execute_code", code="1")
        tap.eq(told(s, gate_lost_total=1), {"gate_lost_total": 1}, "a slot whose owner was killed is counted")
        tap.ok(appears(lambda: ended(s.measure(), "run", "crashed") == [1]), "a run whose runner was killed is counted as crashed")
        policy.write_text("version: 1\napproval: {mode: HITL, expiry: 10m}\n")
        with s.connect() as a:
            a.send(s.modern("tools/call", name="execute_code", arguments={"code": "1"}))
            want = {"gate_parked": 1, "gate_asked_total": 1, "gate_denied_total": 0, "gate_approved_total": 0}
            tap.eq(told(s, **want), want, "a run that waits for the word of a person is told")
            command("approve", "no", command("approve", "list", "--json").json[0]["id"], "--why", "a test")
            a.reply()
            want = {"gate_parked": 0, "gate_asked_total": 1, "gate_denied_total": 1, "gate_approved_total": 0}
            tap.eq(told(s, **want), want, "the word of a person is counted")
        with s.connect() as a:
            a.send(s.modern("tools/call", name="execute_code", arguments={"code": "2"}))
            question = appears(lambda: command("approve", "list", "--json").json)[0]["id"]
            said = apart(programs.command(["approve", "yes", question, "--why", "a test"]), tapsys.clean_env(env))
            a.reply()
            want = {"gate_parked": 0, "gate_asked_total": 2, "gate_denied_total": 1, "gate_approved_total": 1}
            tap.eq(told(s, **want), want, "a person's yes that a run used is counted", said)
        arena(s, policy)


def arena(site, policy):
    """Two judges. The second waits until the test lets it go on, so that the run is seen waiting for it."""
    hold = programs.dir / "judge.hold"
    for name, verdict, passed, blocked in (("for", "approve", 1, 0), ("against", "reject", 1, 1)):
        judge = programs.dir / f"judge-{name}"
        judge.write_text(f"#!/bin/sh\ncat >/dev/null\nwhile [ -e {hold} ]; do sleep 0.01; done\nprintf 'cordon-verdict 1\\ncode %s\\nverdict {verdict}\\nreason a test\\n' \"$CORDON_CODE_SHA256\"\n")
        judge.chmod(0o755)
        hold.touch()
        policy.write_text(f"version: 1\narena: {{enabled: true, timeout: 10m, judges: [{{name: a, command: [{programs.dir}/judge-for]}}, {{name: b, command: [{judge}]}}]}}\n")
        with site.connect() as a:
            a.send(site.modern("tools/call", name="execute_code", arguments={"code": "1"}))
            tap.eq(told(site, gate_parked=1), {"gate_parked": 1}, f"a run that waits for the judges is told, before one is {name} it")
            hold.unlink()
            r = a.reply()
            want = {"gate_parked": 0, "gate_arena_passed_total": passed, "gate_arena_blocked_total": blocked, "gate_asked_total": 2}
            tap.eq(told(site, **want), want, f"a decision of the arena is counted, where a judge is {name} the run", r.body)


def carried(site, code):
    """The result of a run; of one that goes on, once its program has begun."""
    r = site.tool("execute_code", code=code)["structuredContent"]
    job = r.get("job_id")
    while r["status"] == "running" and r["stdout"] != "begun\n":
        r = site.tool("wait_job", job_id=job)["structuredContent"]
    return r


def breakers():
    """Two breakers open, that of the command and that of the error. A shorter cooldown in the policy makes the next run the probe of one."""
    policy = programs.dir / "breakers.yaml"
    text = "version: 1\nrates: {{executions: 1000, window: 1ms}}\nbreakers: {{failures: 3, cooldown: {}, counts: [error]}}\n"
    for code, states, closed in (("print('begun', flush=True)\n" + FOREVER, [0, 2], 0), ("1", [0, 1], 1)):
        what, env = "closed it" if closed else "goes on", {"CORDON_STATE": str(programs.dir / f"breakers-{closed}")}
        policy.write_text(text.format("10m"))
        with Measured("--policy", str(policy), "--profile", "standard", "--timeout", "10m", "--answer", "500ms", env=env) as s:
            ends = [carried(s, "raise ValueError('x')")["status"] for _ in range(3)] + [carried(s, code)["status"]]
            tap.eq(ends, ["error"] * 3 + ["denied"], f"breakers open with the third failure, before the probe of one {what}")
            f = s.measure()
            tap.eq([value(f, "cordon_gate_breakers", state=w) for w in ("open", "half_open")], [2, 0], f"breakers that are open are told, before the probe of one {what}")
            policy.write_text(text.format("1ms"))
            r = carried(s, code)
            want = {"gate_breaker_opened_total": 2, "gate_breaker_probed_total": 1, "gate_breaker_closed_total": closed, "gate_refused_total": 1}
            tap.eq(told(s, **want), want, f"breakers that opened are counted, the run that they refused, and the probe of one, which {what}", r)
            tap.eq([value(s.measure(), "cordon_gate_breakers", state=w) for w in ("open", "half_open")], states, f"the states of breakers whose cooldown is over are told when the probe of one {what}")


def pools():
    env = {"CORDON_STATE": str(programs.dir / "pools")}
    tapsys.cordon(programs, ["pool", "start", "--size", "2"], env=env)

    def children(state):
        return value(s.measure(), "cordon_pool_children", template="strict", state=state)

    def leases():
        return tapsys.cordon(programs, ["pool", "status", "--json"], env=env).json["leases"]

    def has_child():
        """Whether a run that goes on has one: it waits for a child for 50 ms, which are too few where the machine is busy, and then goes without."""
        r = carried(s, "print('begun', flush=True)\nwhile True: pass")
        return children("lent") or not s.tool("wait_job", job_id=r["job_id"], cancel=True)
    with Measured("--timeout", "10m", "--answer", "100ms", env=env) as s:
        tap.ok(appears(lambda: children("ready") == 2), "children of a pool that wait are told by template", children("ready"))
        status = tapsys.cordon(programs, ["pool", "status", "--json"], env=env).json
        want = {"pool_up": 1, "pool_sessions": 0, "pool_leases_total": 0, "pool_declined_total": 0, "pool_waiting_memory_bytes": status["waiting_memory"]}
        tap.eq((told(s, **want), children("lent")), (want, 0), "a pool of which nobody took anything is told as that")
        tap.ok(any(has_child() for _ in range(20)), "a child that a run has is told as lent", children("lent"))
        tap.ok(appears(lambda: 0 < value(s.measure(), "cordon_pool_leases_total") == leases()), "the children that were lent so far are counted as the pool counts them")
        before = value(s.measure(), "cordon_pool_declined_total")
        tapsys.cordon(programs, ["session", "run", "nobody", "-c", "1"], env=env)
        tap.ok(appears(lambda: value(s.measure(), "cordon_pool_declined_total") > before), "a request for a child that got none is counted", before)
    tapsys.cordon(programs, ["pool", "stop", "--force"], env=env)


def strangers():
    with Measured() as s:
        tap.eq([s.get(p).status for p in ("/mcp", "/", "/metrics/", "/metrics?x=1")], [404, 404, 404, 200], "--metrics: there are two paths, and no others")
        tap.eq((s.get("/metrics", "POST").status, s.get("/metrics", "PUT").status), (404, 404), "--metrics: there is GET alone")
        tap.eq(s.get("/metrics", host="evil.example").status, 403, "--metrics: a host that is not ours is refused")
        with s.connect() as c:
            tap.eq(c.ask(s.head("GET", "/metrics", Content_Type=None)).status, 404, "the port of clients has no figures")
        for words, word in ((["--metrics", "0.0.0.0:9000"], "loopback"), (["--metrics", "x"], "in numbers")):
            r = tapsys.cordon(programs, ["serve", "--stdio", *words])
            tap.ok(r.code == 2 and word in r.err, f"{' '.join(words)} is refused: {word}", r.err)


parser_itself()
counted()
clients()
gates()
breakers()
pools()
strangers()
tapsys.cordon(programs, ["pool", "stop", "--force"])
tap.done()
