# SPDX-License-Identifier: Apache-2.0
"""The audit and the approvals as an operator reads them: columns of `audit tail`, `approve list --watch`, alerts about repeated code.

Usage: people.py BUILD."""
import hashlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile

import exits
import tapsys
from pooltest import until

BUILD = sys.argv[1]
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)


class Place:
    """A state folder of its own, with the policy as it is delivered and what is added to it."""

    def __init__(self, who, policy):
        self.who = who
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cordon-people-"))
        (self.dir / "state").mkdir(mode=0o700)
        (self.dir / "policy.yaml").write_text("version: 1\n" + policy)
        (self.dir / "again.py").write_text("print('x')\n")
        (self.dir / "bad.py").write_text("import subprocess\n")
        (self.dir / "fails.py").write_text("1 / 0\n")
        for p in (self.dir, *self.dir.iterdir()):
            p.chmod(0o700 if p.name == "state" else 0o755 if p.is_dir() else 0o644)
            if who == "user" and os.geteuid() == 0:
                os.chown(p, tapsys.ROOTLESS, tapsys.ROOTLESS)
        self.env = {"CORDON_STATE": str(self.dir / "state"), "XDG_CONFIG_HOME": str(self.dir / "none"),
                    "XDG_RUNTIME_DIR": str(self.dir / "state"), "TZ": "UTC"}

    def __call__(self, *words, **more):
        return tapsys.cordon(programs, [str(w) for w in words], self.who, env=self.env, **more)

    def run(self, name):
        return self("run", "--policy", self.dir / "policy.yaml", self.dir / name)

    def begin(self, *words):
        return subprocess.Popen(programs.command([str(w) for w in words], self.who), env=tapsys.clean_env(self.env, self.who), cwd="/",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def close(self):
        shutil.rmtree(self.dir)


def tail(who):
    tapsys.one_day()
    p = Place(who, "")
    p.run("again.py")
    p.run("bad.py")
    p("stop", "--why", "a good reason")
    p.run("again.py")
    p("resume", "--why", "all is well")
    p("exec", "--", "/bin/false")
    r = p("audit", "tail", "--lines", 50)
    rows = r.out.splitlines()
    row = lambda *words: any(all(w in line for w in words) for line in rows)
    tap.ok(row(" uid:", " run ", " bad.py ", " blocked ", " run-", "Blocked import: subprocess"), f"{who}: audit tail shows who, what, file, verdict, run and why", r.out)
    tap.ok(row(" exec ", " /bin/false ", " error 1 "), f"{who}: audit tail shows the program and the exit status of an exec", r.out)
    tap.ok(row(" stop ", " uid:", "a good reason (pid ") and row(" resume ", " uid:", "all is well (pid "), f"{who}: audit tail shows who stopped and resumed, and why", r.out)
    tap.ok(all(len(line.split()[0]) == 8 and line.split()[0].count(":") == 2 for line in rows), f"{who}: audit tail shows a record of today with the time alone", r.out)
    p.close()


def headings(who):
    p = Place(who, "")
    empty = tapsys.on_terminal(programs, ["audit", "tail"], who, p.env).decode()
    tap.ok("TIME" not in empty and "there is no log" in empty, f"{who}: where there is no log audit tail says so, without headings", empty)
    p.run("again.py")
    seen = tapsys.on_terminal(programs, ["audit", "tail"], who, p.env).decode().replace("\r", "").splitlines()
    tap.ok(seen[0].split() == ["TIME", "RECORD", "WHO", "WHAT", "FILE", "VERDICT", "RUN", "WHY"] and len(seen) > 1, f"{who}: at a terminal audit tail has headings", seen)
    end = next((x for x in seen if " again.py " in x and " ok " in x), "")
    at = {w: seen[0].index(w) for w in ("WHO", "WHAT", "FILE", "VERDICT", "RUN")}
    tap.ok([end[at[w]:].split(" ")[0] for w in ("WHAT", "FILE", "VERDICT")] == ["run", "again.py", "ok"] and end[at["WHO"]:].startswith("uid:") and end[at["RUN"]:].startswith("run-"),
           f"{who}: each heading of audit tail stands over its column", seen[0], end)
    for word in ("stop", "resume"):
        tapsys.on_terminal(programs, [word, "--why", "a reason"], who, p.env)
    rows = [x for x in tapsys.on_terminal(programs, ["audit", "tail"], who, p.env).decode().replace("\r", "").splitlines() if "a reason (pid " in x]
    tap.eq([(x[at["WHO"]:].split(" ")[0].split(":")[0], x[at["WHAT"]:].split(" ")[0], x[at["VERDICT"]:].split(" ")[0]) for x in rows], [("uid", w, w) for w in ("stop", "resume")],
           f"{who}: who stopped and resumed moves no column of audit tail", rows)
    plain, lines = p("audit", "tail").out, tapsys.on_terminal(programs, ["audit", "tail", "--json"], who, p.env).decode().splitlines()
    tap.ok("TIME" not in plain and "again.py" in plain, f"{who}: in a pipe audit tail has no headings", plain)
    tap.ok(lines and all(x.startswith("{") for x in lines), f"{who}: audit tail --json has no headings at a terminal either", lines)
    p.close()


def columns(who):
    """What a breaker did is told apart, and the name of a session moves no column."""
    p = Place(who, "breakers: {failures: 1, cooldown: 100ms}\n")
    p.run("fails.py")
    until(lambda: p.run("again.py").code == 0)
    rows = p("audit", "tail", "--kind", "breaker").out
    tap.ok(all(f" run run breaker {state} " in " ".join(rows.split()) for state in ("open", "half-open", "closed")),
           f"{who}: audit tail tells an open, a half-open and a closed breaker apart", rows)
    s = p("session", "new").out.strip()
    p("session", "run", s, "-", text="1\n")
    p("pool", "stop", "--force")
    rows = [x for x in p("audit", "tail", "--lines", 50).out.splitlines() if " run-" in x]
    called = [x for x in rows if f" session {s} " in x]
    tap.ok(called and len({x.index(" run-") for x in rows}) == 1, f"{who}: audit tail keeps its columns where a session is named", rows)
    p.close()


def repeated(who):
    p = Place(who, "rates: {executions: 1000}\n")
    for _ in range(19):
        p.run("again.py")
    quiet = p("audit", "tail", "--kind", "alert").out
    p.run("again.py")
    loud = p("audit", "tail", "--kind", "alert").out
    tap.ok("Duplicate" not in quiet and "Duplicate code" in loud, f"{who}: a script that a person runs again alerts at its 20th run and not before", quiet, loud)
    p.close()


def waited(who):
    """Whoever waits for a long run knows it: it is on record, and no line at the terminal."""
    p = Place(who, "audit: {slow_factor: 2, slow_records: 2, slow_floor: 1ms}\n")
    for _ in range(3):
        p.run("again.py")
    (p.dir / "again.py").write_text("import time\ntime.sleep(10)\n")
    r = p.run("again.py")
    alerts = p("audit", "tail", "--kind", "alert").out
    tap.ok(r.code == 0 and r.err == "" and "Unusually long execution" in alerts, f"{who}: an unusually long run is an alert on record, and not told to whoever waited for it", r.story(), alerts)
    p.close()


def approve(who):
    p = Place(who, "approval: {mode: HITL}\n")
    watch = p.begin("approve", "list", "--watch")
    asked = p.begin("run", "--policy", p.dir / "policy.yaml", p.dir / "again.py")
    line = watch.stdout.readline().decode() if select.select([watch.stdout], [], [], 30 * tapsys.SLOW)[0] else ""
    tap.ok(line.startswith("ap-"), f"{who}: approve --watch prints a question when it is asked", line)
    line = line or "ap-none"
    # while the first one waits: what is printed at a later look is the second one alone
    other = p.begin("run", "--policy", p.dir / "policy.yaml", p.dir / "fails.py")
    more = watch.stdout.readline().decode() if select.select([watch.stdout], [], [], 30 * tapsys.SLOW)[0] else ""
    other.terminate()
    other.communicate(timeout=60 * tapsys.SLOW)
    r = p("approve", "no", line.split()[0], "--why", "it prints")  # anybody may say no
    try:
        out = asked.communicate(timeout=60 * tapsys.SLOW)
    except subprocess.TimeoutExpired:
        asked.kill()
        out = asked.communicate()
    tap.ok(r.code == 0 and out[0] == b"" and b"it prints" in out[1], f"{who}: a question that was watched is answered, and the run ends with the reason", r.err, out)
    rows = p("audit", "tail", "--kind", "approval").out.splitlines()
    tap.ok(any("uid" in x and "it prints" in x and line.split()[0] in x for x in rows), f"{who}: audit tail shows who answered which question, and why", rows)
    tap.ok(all(any(f" approval {state} " in x for x in rows) for state in ("asked", "answered", "denied")),
           f"{who}: audit tail tells a question, its answer and the refusal of the run apart", rows)
    watch.kill()
    rest = watch.communicate()[0].decode()
    tap.ok(more.startswith("ap-") and more.split()[0] != line.split()[0] and not any(i.split()[0] in rest for i in (line, more)),
           f"{who}: approve --watch goes on to the next question, and prints each once", line, more, rest)
    p.close()


def code_kept(who):
    p = Place(who, "audit: {code: true}\n")
    folder = p.dir / "state/audit/code"
    for name in ("again.py", "again.py", "bad.py"):
        p("run", "--policy", str(p.dir / "policy.yaml"), str(p.dir / name))
    kept = {f.name: f.read_bytes() for f in folder.iterdir()} if folder.is_dir() else {}
    tap.ok(sorted(kept.values()) == [b"import subprocess\n", b"print('x')\n"] and all(hashlib.sha256(v).hexdigest() == k for k, v in kept.items()),
           f"{who}: with audit.code each program is kept once, named by its hash, also one that was refused", kept)
    records = [json.loads(line) for line in p("audit", "tail", "--json", "--kind", "begin").out.splitlines()]
    tap.ok({r["code_hash"] for r in records} == set(kept) and all(f.stat().st_mode & 0o777 == 0o600 for f in folder.iterdir()) and folder.stat().st_mode & 0o077 == 0,
           f"{who}: the records name the files, which nobody else can read", records)
    for f in folder.iterdir():
        f.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    r = p("run", "--policy", str(p.dir / "policy.yaml"), "-c", "print('never')")
    tap.ok(r.code == exits.NEVER_RAN and "never" not in r.out, f"{who}: a program whose code cannot be kept does not run", r.story())
    p.close()
    p = Place(who, "")
    p("run", "-c", "print(1)")
    tap.ok(not (p.dir / "state/audit/code").exists(), f"{who}: without audit.code nothing of it is kept")
    p.close()


for user in tapsys.users():
    code_kept(user)
    tail(user)
    headings(user)
    columns(user)
    approve(user)
repeated("root" if os.geteuid() == 0 else "user")
waited("root" if os.geteuid() == 0 else "user")
tap.done()
