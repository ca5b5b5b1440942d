#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon serve --metrics`: whether what it says is Prometheus' text format, and true."""
import os
import re
import signal
import sys

import tapsys
from httptest import Site, Wire
from mcptest import appears, named
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
FOREVER = "import time\nwhile True:\n    time.sleep(0.01)\n"
HELD = "try:\n    while True:\n        pass\nexcept KeyboardInterrupt:\n    print('let go')\n"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?|\+Inf|NaN)")
PARTS = ("_bucket", "_sum", "_count")


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
    with Measured("--policy", str(policy), "--profile", "standard", "--timeout", "10m", "--drain", "10m") as s:
        r = s.get("/metrics")
        tap.ok(r.status == 200 and r.fields["content-type"].startswith("text/plain; version=0.0.4"), "--metrics answers in the text format of Prometheus", r.status, r.fields)
        tap.eq((s.get("/health").status, s.get("/health").body), (200, b"ok\n"), "--metrics: /health is 200 while the server takes work")
        for code, more in (("print(1)", {}), ("2", {}), ("import sys\nsys.exit(3)", {}), ("while True: pass", {"timeout_ms": 300}), ("def (", {})):
            s.tool("execute_code", code=code, **more)
        s.tool("wait_job", job_id="job-" + "a" * 26)
        f = s.measure()
        tap.eq(ended(f, "run", "ok", "error", "limit", "never_ran", "cancelled", "crashed"), [2, 1, 1, 1, 0, 0], "runs are counted by how they ended")
        tap.eq((value(f, "cordon_serve_requests_total", verb="run"), value(f, "cordon_serve_refused_total")), (5, 1), "requests and refusals of the server itself are counted")
        tap.ok(value(f, "cordon_serve_duration_seconds_count", verb="run") == 5 and value(f, "cordon_serve_duration_seconds_sum", verb="run") >= 0.3, "the times of runs are a histogram")
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
strangers()
tapsys.cordon(programs, ["pool", "stop", "--force"])
tap.done()
