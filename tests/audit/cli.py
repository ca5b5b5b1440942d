# SPDX-License-Identifier: Apache-2.0
"""`cordon audit` as people use it, on logs that the driver wrote. Usage: cli.py BUILD. TAP."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from tapsys import Programs, Tap, one_day, users, ROOTLESS  # noqa: E402

build = pathlib.Path(sys.argv[1])
tap = Tap()
programs = Programs(build)
driver = programs.bin / "audit_driver"
shutil.copy2(build / "tests/audit/audit_driver", driver)


class State:
    """A state folder of its own for one user."""

    def __init__(self, who):
        self.who = who
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="state-", dir=programs.dir))
        if who == "user" and os.geteuid() == 0:
            os.chown(self.path, ROOTLESS, ROOTLESS)
        self.env = {"PATH": "/usr/bin:/bin", "CORDON_STATE": str(self.path), "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}

    def command(self, *words):
        cmd = [str(w) for w in words]
        if self.who == "user" and os.geteuid() == 0:
            cmd = ["/usr/bin/setpriv", f"--reuid={ROOTLESS}", f"--regid={ROOTLESS}", "--clear-groups", "--", *cmd]
        return cmd

    def run(self, *words):
        r = subprocess.run(self.command(*words), env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
        return r.returncode, r.stdout.decode("latin-1"), r.stderr.decode("latin-1")

    def audit(self, *words):
        return self.run(programs.cordon, "audit", *words)

    def log(self):
        return sorted((self.path / "audit").glob("*.jsonl"))[-1]


def bytes_read(state, *words):
    """How much `cordon audit WORDS` reads, and what it answers. The kernel adds what a child has read to its parent's count."""
    def count():
        return int(re.search(r"rchar: (\d+)", pathlib.Path("/proc/self/io").read_text()).group(1))
    before = count()
    answer = state.audit(*words)
    return count() - before - len(answer[1]), answer


def harmless(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


for who in users():
    one_day()
    s = State(who)
    code, out, err = s.audit("verify")
    tap.ok(code == 1 and not out and "there is no log in" in err, f"{who}: nothing was written yet", out, err)
    tap.eq(s.run(driver, "make", 60)[0], 0, f"{who}: sixty runs are written")
    modes = {str(p.relative_to(s.path)): oct(p.stat().st_mode & 0o7777) for p in s.path.rglob("*")}
    tap.ok(all(m == ("0o700" if (s.path / p).is_dir() else "0o600") for p, m in modes.items()), f"{who}: modes are 0700 and 0600", modes)

    code, out, err = s.audit("verify")
    tap.ok(code == 0 and re.match(r"OK: (\d+) records in 1 file, none changed: 1 to \1\nhead \1:[0-9a-f]{64}\n", out),
           f"{who}: audit verify says that the log is whole", out, err)
    count = int(out.split()[1])
    head = re.search(r"head (\S+)", out).group(1)
    code, out, err = s.audit("verify", "--json")
    verdict = json.loads(out)
    tap.ok(code == 0 and verdict["ok"] and verdict["records"] == count and verdict["broken"] is None, f"{who}: verify --json says that the log is whole", out)

    code, out, err = s.audit("tail")
    tap.ok(code == 0 and len(out.splitlines()) == 10 and harmless(out), f"{who}: tail shows ten, and none of them acts on a terminal", out)
    tap.eq(s.audit("tail", "-n", 3), s.audit("tail", "--lines", 3), f"{who}: tail -n is tail --lines")
    code, out, err = s.audit("tail", "--lines", 1000000)
    tap.ok(code == 0 and len(out.splitlines()) == count and harmless(out), f"{who}: tail --lines 1000000 shows all records, and none of them acts on a terminal")
    tap.ok("^[[2J" in out, f"{who}: tail shows escape sequences as text", out[:2000])
    code, out, err = s.audit("tail", "--lines", "3", "--json")
    lines = [json.loads(l) for l in out.splitlines()]
    tap.ok([l["seq"] for l in lines] == [count - 2, count - 1, count], f"{who}: tail --json prints the records", out)
    tap.eq(s.audit("tail", "--lines", "0"), (0, "", ""), f"{who}: tail --lines 0 shows nothing")
    code, out, err = s.audit("tail", "--lines", "4", "--json", "--status", "blocked")
    blocked = [r["seq"] for r in map(json.loads, s.log().read_text().splitlines()) if r["status"] == "blocked"]
    tap.eq([json.loads(l)["seq"] for l in out.splitlines()], blocked[-4:], f"{who}: the last four that were blocked")

    code, out, err = s.audit("export")
    raw = s.log().read_text()
    tap.ok(code == 0 and out == raw, f"{who}: export is the log, byte for byte")
    records = [json.loads(l) for l in raw.splitlines()]
    for option, key, value in (("--client", "client_id", "uid:1001"), ("--status", "status", "blocked"), ("--kind", "kind", "alert"),
                               ("--client", "client_id", "token:\x1b[31mred")):
        code, out, err = s.audit("export", option, value)
        wanted = [r["seq"] for r in records if r[key] == value]
        tap.ok(code == 0 and wanted and [json.loads(l)["seq"] for l in out.splitlines()] == wanted, f"{who}: export {option}", out[:500])
    tap.eq(len(s.audit("export", "--since", "1h")[1].splitlines()), count, f"{who}: export --since 1h has every record of a new log")
    tap.eq(s.audit("export", "--until", "1h")[1], "", f"{who}: export --until 1h has no record of a new log")
    tap.eq(s.audit("export", "--since", "2999-01-01")[1], "", f"{who}: export --since 2999 has no record")
    tap.eq(len(s.audit("export", "--since", "2000-01-01T10:30")[1].splitlines()), count, f"{who}: export --since takes a date and a time")
    s.env["TZ"] = "TST-5"  # five hours ahead of UTC
    an_hour_ago = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + 4 * 3600))
    tap.eq([len(s.audit("export", option, an_hour_ago + zone)[1].splitlines()) for option, zone in
            (("--since", ""), ("--until", ""), ("--since", "Z"), ("--until", "Z"))], [count, 0, 0, count],
           f"{who}: a date is the caller's time, and with Z behind it UTC")
    del s.env["TZ"]
    code, out, err = s.audit("export", "--since", "yesterday")
    tap.ok(code == 2 and "is not a time" in err, f"{who}: a time that is none is refused", err)

    code, out, err = s.audit("show", "run-9")
    tap.ok(code == 0 and out.count("\nrecord") == 1 + len([r for r in records if r["kind"] == "alert" and r["execution_id"] == "run-9"]) and harmless(out),
           f"{who}: show has the begin, the end and the alert", out)
    code, out, err = s.audit("show", "nobody")
    tap.ok(code == 1 and not out and "nobody" in err, f"{who}: show of what is not there")
    code, out, err = s.audit("anomalies")
    tap.ok(code == 0 and "uid:1001: Excessive validation failures: " in out and "Excessive violations: 5 in run-9" in out and harmless(out),
           f"{who}: audit anomalies names what was unusual", out)
    blocked = sum(r["client_id"] == "uid:1001" and r["validation_result"] == "blocked" for r in records)
    tap.ok(f"uid:1001: Excessive validation failures: {blocked}\n" in out, f"{who}: anomalies have the number of validation failures", out)
    code, out, err = s.audit("anomalies", "--json", "--client", "uid:1001")
    tap.ok({json.loads(l)["client_id"] for l in out.splitlines()} == {"uid:1001"}, f"{who}: anomalies --json, of one client", out)
    tap.ok(any(r["kind"] == "alert" and r["reason"] == "Excessive validation failures: 11" for r in records), f"{who}: alerts are records")

    policy = programs.dir / f"policy-{who}"
    (policy / "cordon").mkdir(parents=True)
    (policy / "cordon/policy.yaml").write_text("audit: {failures: 1000, violations: 4, window: 30m}\n")
    if who == "user" and os.geteuid() == 0:
        for p in (policy, policy / "cordon", policy / "cordon/policy.yaml"):
            os.chown(p, ROOTLESS, ROOTLESS)
    s.env["XDG_CONFIG_HOME"] = str(policy)
    code, out, err = s.audit("anomalies")
    tap.ok(code == 0 and "Excessive violations: 5" in out and "validation failures" not in out, f"{who}: anomalies by the operator's thresholds", out, err)
    del s.env["XDG_CONFIG_HOME"]

    slow = State(who)
    slow.run(driver, "times")
    code, out, err = slow.audit("anomalies")
    tap.ok("uid:5: Unusually long execution: slow-10: took 0.900 s; the mean of this client is 0.020 s\n" in out and "slow-11" not in out,
           f"{who}: anomalies name the time of a long run and the mean, and leave out what the time limit ended", out, err)

    # --- runs without an end -------------------------------------------------------------------------
    s.run(driver, "orphan")
    tap.ok("1 runs have begun and not ended" in s.audit("verify")[1], f"{who}: a writer was killed in a run")
    s.run(driver, "make", 1)
    code, out, err = s.audit("tail", "--kind", "lost")
    tap.ok(len(out.splitlines()) == 1 and " orphan" in out, f"{who}: the next start says that it is lost", out)
    tap.eq(s.audit("verify", "--expect", head)[0], 0, f"{who}: a head that was noted earlier is still there")

    # --- follow ------------------------------------------------------------------------------------------
    follower = subprocess.Popen(s.command(programs.cordon, "audit", "tail", "--follow", "--lines", "1"), env=s.env, stdout=subprocess.PIPE)
    seen = [follower.stdout.readline().decode()]
    time.sleep(2.2)  # it has looked twice and found nothing new
    writer = subprocess.Popen(s.command(driver, "follow"), env=s.env)
    seen += [follower.stdout.readline().decode() for _ in range(7)]
    writer.kill(), writer.wait(), follower.kill(), follower.wait()
    numbers = [int(l.split()[1]) for l in seen if l]
    tap.ok(len(numbers) == 8 and numbers == list(range(numbers[0], numbers[0] + 8)) and "follow-" in seen[-1], f"{who}: tail --follow sees each new record once", seen)

    # --- tampering, seen from outside -------------------------------------------------------------------------
    data = s.log().read_bytes()
    lines = data.splitlines(keepends=True)
    for name, changed, number in (
            ("an edit", b"".join(lines[:20] + [lines[20].replace(b'"tool": "run"', b'"tool": "ran"')] + lines[21:]), 21),
            ("a removed record", b"".join(lines[:20] + lines[21:]), 21),
            ("a made-up record with a colour in it", b"".join(lines[:20] + [b'{"seq": 21, "x": "\x1b[31m"}\n'] + lines[20:]), 21)):
        s.log().write_bytes(changed)
        code, out, err = s.audit("verify")
        tap.ok(code == 1 and out.startswith(f"broken at record {number} ({s.log().name}:{number})"), f"{who}: verify finds {name}", out, err)
        code, out, err = s.audit("verify", "--json")
        tap.ok(code == 1 and json.loads(out)["broken"]["record"] == number, f"{who}: verify --json finds {name}", out)
        code, out, err = s.audit("export")
        tap.ok(code == 1 and f":{number}: not record" in err and harmless(out) and harmless(err), f"{who}: export does not pass on {name}", err)
    s.log().write_bytes(data)
    tap.eq(s.audit("verify")[0], 0, f"{who}: a log that was put back verifies")

    # the hash can be checked with the tools at hand (docs/audit.md)
    line = data.splitlines()[4]
    shell = subprocess.run(["/bin/sh", "-c", "sed -n 5p \"$0\" | sed 's/, \"hash\": .*//' | tr -d '\\n' | sha256sum", str(s.log())],
                           stdout=subprocess.PIPE).stdout.decode()[:64]
    tap.eq(shell, json.loads(line)["hash"], f"{who}: sha256sum gives the hash that the next record names")
    shutil.rmtree(s.path / "audit"), shutil.rmtree(s.path / "seal")
    s.run(driver, "make", 3)
    tap.ok("was noted" in s.audit("verify", "--expect", head)[1], f"{who}: all of it gone and begun anew: the noted head tells")

    # --- what show and --since read, as the kernel counts it ---------------------------------------------------------
    long = State(who)
    long.run(driver, "make", 3000)
    whole, (_, out, _) = bytes_read(long, "export")
    times = [json.loads(line)["timestamp"] for line in out.splitlines()]
    records = len(times)
    while (second := int(time.time())) <= max(times):  # --since knows seconds; a clock that was set back meanwhile catches up
        time.sleep(0.05)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
    long.run(driver, "make", 3)
    for words, want in ((("show", "run-2"), 4), (("tail", "--since", moment), 5), (("export", "--since", moment), 5)):
        took, (code, out, err) = bytes_read(long, *words, *([] if words[0] == "export" else ["--json"]))
        tap.ok(code == 0 and len(out.splitlines()) == want and took < whole / 8,
               f"{who}: audit {words[0]}{' --since' if '--since' in words else ''} of {want} records reads less than an eighth of a log of {records}",
               f"{took} of {whole} bytes", code, len(out.splitlines()), err, f"since {moment}, records from {min(times)} to {max(times)}, now {time.time()}")

    # --- a full disk -----------------------------------------------------------------------------------------------
    full = State(who)
    script = 'mount -t tmpfs -o size=5m,mode=700 tmpfs "$CORDON_STATE" && "$0" fill && "$1" audit verify && df "$CORDON_STATE" | tail -1'
    unshare = ["/usr/bin/unshare", "-m"] if who == "root" else ["/usr/bin/unshare", "-rm"]
    code, out, err = full.run(*unshare, "/bin/sh", "-c", script, driver, programs.cordon)
    if code and "unshare" in err:
        tap.skip(f"{who}: the disk of the log is full", f"no private mount: {err.strip()[:80]}")
    else:
        tap.ok(code == 0 and "full after" in out and ", none changed" in out and "not ended" not in out,
               f"{who}: a full disk refuses new runs, and still takes the end of what runs", out, err)

    # --- usage --------------------------------------------------------------------------------------------------------
    for words in ([], ["nothing"], ["show"], ["tail", "more"], ["tail", "--lines", "x"], ["export", "--follow"], ["tail", "--expect", "1:2"],
                  ["verify", "--expect", "1:2"]):
        code, out, err = s.audit(*words)
        tap.ok(code == 2 and not out and err.startswith("cordon audit: ") and err.count("\n") == 1, f"{who}: usage {words}", out, err)

if os.geteuid() == 0:
    s = State("root")
    code, out, err = s.run(driver, "drop", ROOTLESS)
    tap.ok(code == 0 and "not ended" not in s.audit("verify")[1], "a supervisor that gave root up still writes the end", err)
    code, out, err = s.run(driver, "late", ROOTLESS)
    tap.ok(code == 0 and "1 runs have begun and not ended" in s.audit("verify")[1], "a supervisor that may not open the next day's file keeps the outcome", err)
    s.run(driver, "make", 1)
    code, out, err = s.audit("show", "late", "--json")
    end = [json.loads(l) for l in out.splitlines()][-1]
    tap.ok(end["kind"] == "end" and end["status"] == "timeout" and end["execution_time_ms"] == 5, "the next start writes the outcome that was kept", out)
    tap.eq(s.audit("verify")[0], 0, "the log of a supervisor that gave root up verifies")
    os.chmod(s.path / "audit", 0o755)
    code, out, err = s.run(driver, "make", 1)
    tap.ok(code == 1 and "has mode 755" in err, "a log folder that others can enter is refused", err)

tap.done()
