# SPDX-License-Identifier: Apache-2.0
"""Limits with certainty: what ends a run, how it is called, and how soon.

Usage: limits.py BUILD [--fast]. One run is the real default time-out of thirty seconds."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys

import exits
import tapsys

BUILD, FAST = sys.argv[1], "--fast" in sys.argv
MARKER = "[... output truncated ...]"
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
table = {p.name: p for p in tapsys.probe_table(programs)}
canaries = None


def probe(name, *options, args=(), who, **more):
    return tapsys.exec_json(programs, ["--ro", str(canaries.ro), *options], [str(canaries.ro / "probe"), name, *args], who, **more)


def shell(script, *options, who, **more):
    return tapsys.exec_json(programs, ["--processes", "16", *options], ["/bin/sh", "-c", script], who, **more)


def says(run, status, reason, code, name):
    j = run.json or {}
    text = f"{j.get('reason') or ''} {(j.get('error') or {}).get('message') or ''}".lower()
    return tap.ok(j.get("status") == status and (reason in text) and run.code == code, name, run.story())


def timed_out(start, limit, reason, name, figure="wall_ms", tries=10):
    """START() is a run that must end at LIMIT seconds, each time in the right words, and soon in the best of TRIES."""
    def attempt():
        run = start()
        says(run, "timeout", reason, exits.LIMIT, f"{name}: status timeout, reason {reason}")
        message = ((run.json or {}).get("error") or {}).get("message") or ""
        tap.ok(message.startswith("Execution timeout exceeded"), f"{name}: the message says that the time was exceeded", message)
        tap.ok(run["signal"] == 9 and run["exit_code"] == -9, f"{name}: signal 9, exit_code -9", run.story())
        used = ((run.json or {}).get("usage") or {}).get(figure)
        late = used / 1000 - limit if used is not None else 1e9
        tap.ok(late >= -0.05 * tapsys.SLOW, f"{name}: the run does not end before the limit", f"{figure} {used}")
        return late, run
    late, run = tapsys.soonest(attempt, tries)
    tap.ok(late <= tapsys.LATE, f"{name}: ends within {tapsys.LATE * 1000:.0f} ms of the limit", f"{late:.3f} s late in the best of {tries}")
    return late, run


lateness, overruns = [], []
for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)

    # --- time ---
    for name in ("sleep-forever", "stopped", "ignores-term", "leader-exits"):
        late, run = timed_out(lambda: probe(name, "--timeout", "500ms", who=who), 0.5, "wall", f"{who}: {name}")
        lateness.append(late)
        overruns.append(run.seconds - 0.5)
    # on its own clock: the processor's time, not the wall's, which others share
    timed_out(lambda: probe("cpu-spin", "--cpu", "1s", "--timeout", "60s", who=who), 1.0, "cpu", f"{who}: CPU time", figure="cpu_ms")
    spin = "while :; do :; done"
    if who == "root":  # a cgroup counts what the children of an idle program use
        timed_out(lambda: shell(f"{spin} & {spin} & wait", "--cpu", "1s", "--timeout", "60s", who=who), 1.0, "cpu", f"{who}: CPU time of two processes", figure="cpu_ms")
    else:  # without one the program's own clock counts, and the figure is of both
        says(shell(f"{spin} & {spin}", "--cpu", "1s", "--timeout", "60s", who=who), "timeout", "cpu", exits.LIMIT, f"{who}: CPU time of two processes: status timeout, reason cpu")
    timed_out(lambda: shell("sleep 100 & sleep 100 & exec sleep 100", "--timeout", "500ms", who=who), 0.5, "wall", f"{who}: a tree of sleepers")
    run = probe("benign-time", "--timeout", "20s", "--cpu", "20s", who=who)
    tap.ok(run["status"] == "ok", f"{who}: twin: within its time", run.story())

    # --- memory ---
    by = {}
    for how in ("auto", "cgroup", "rlimit"):
        run = probe("memory-bomb", "--memory", "64m", "--memory-by", how, who=who)
        if run["status"] == "refused":
            tap.ok(run.code == exits.NEVER_RAN and who == "user" and how == "cgroup", f"{who}: memory by {how}: refused, by name", run.story())
            continue
        contained = run["status"] == "memory" or (run["status"] == "ok" and run.last_line().startswith("CONTAINED"))
        tap.ok(contained, f"{who}: 64 MB of memory, by {how}", run.story())
        by[how] = json.dumps(run["layers"])
        twin = probe("benign-memory", "--memory", "256m", "--memory-by", how, who=who)
        tap.ok(twin["status"] == "ok" and not twin["violations"], f"{who}: twin: 100 MB of 256, by {how}", twin.story())
    bare = tapsys.cordon(programs, ["exec", "--json", "--processes", "4", "--", "/bin/true"], who, accept=False)
    tap.ok(bare["status"] == "ok" or bare["status"] == "refused" and bare.code == exits.NEVER_RAN and bare["layer"] == "resources",
           f"{who}: several processes without a cgroup are refused by name, or there is one", bare.story())
    # a program that does not handle ENOMEM is ended by memory, and the result says so
    script = "a = []\nwhile True: a.append(bytearray(1 << 20))"
    run = tapsys.exec_json(programs, ["--memory", "64m"], ["/usr/bin/python3", "-S", "-c", script], who)
    tap.ok(run["status"] == "memory" and run.code == exits.LIMIT or run["status"] == "error" and "MemoryError" in (run["stderr"] or ""),
           f"{who}: a memory bomb in Python", run.story())
    # one request for more than there is: the program hears it, and the result says what it failed for
    big = "bytearray(2 << 30)"
    run = tapsys.exec_json(programs, ["--memory-by", "rlimit"], ["/usr/bin/python3", "-S", "-c", big], who)
    tap.ok(run["status"] == "memory" and run.code == exits.LIMIT and run.rules() == ["limit.memory"] and "MemoryError" in run["stderr"],
           f"{who}: 2 GB at once, of 512 MB, without a cgroup", run.story())
    run = tapsys.exec_json(programs, ["--memory-by", "rlimit"], ["/usr/bin/python3", "-S", "-c", f"try: {big}\nexcept MemoryError: print('less then')"], who)
    tap.ok(run["status"] == "ok" and run["stdout"] == "less then\n" and run.rules() == ["limit.memory"], f"{who}: a program that copes with a MemoryError at 2 GB ends ok, and the limit is listed", run.story())
    # less than was asked for, by the caller's own doing: that is the limit then, and told as such
    little = lambda: resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
    for what, words in (("run", ["run", "--json", "--profile", "standard", "-c", "x = [bytearray(1 << 20) for i in range(400)]"]),
                        ("exec", ["exec", "--json", "--", "/usr/bin/python3", "-S", "-c", "x = [bytearray(1 << 20) for i in range(400)]"])):
        run = tapsys.cordon(programs, words, who, preexec_fn=little)
        tap.ok(run["status"] == "memory" and any("ulimit -v" in n for n in run["notes"] or ()), f"{who}: {what} where the caller has a lower limit of its own", run.story())
        twin = tapsys.cordon(programs, [*words[:-1], "x = [bytearray(1 << 20) for i in range(40)]"], who, preexec_fn=little)
        tap.ok(twin["status"] == "ok" and not twin["notes"], f"{who}: twin: {what} that is content with it", twin.story())
    many = ("import threading\nb = threading.Barrier(13)\ndef allocates():\n    x = [bytearray(700) for i in range(100)]\n    b.wait()\n    b.wait()\n"
            "for i in range(12): threading.Thread(target=allocates, daemon=True).start()\nb.wait()\nraise KeyError\n")
    run = tapsys.exec_json(programs, ["--memory-by", "rlimit"], ["/usr/bin/python3", "-S", "-c", many], who)
    tap.ok(run["status"] == "error" and run["exit_code"] == 1, f"{who}: a program with twelve threads that fails for something else is not one that wanted memory", run.story())
    if "cgroup" in by:  # address space is free there; what no machine has is refused by the kernel, before the cgroup hears of it
        for what, code, status in (("fails for it", "bytearray(1 << 50)", "memory"), ("copes with it", "try: bytearray(1 << 50)\nexcept MemoryError: print(1)", "ok"),
                                   ("fails for something else", "try: bytearray(1 << 50)\nexcept MemoryError: raise KeyError", "error")):
            run = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--memory-by", "cgroup", "-c", code], who)
            tap.ok(run["status"] == status and not run.rules(), f"{who}: a petabyte at once, in a cgroup, of a program that {what}", run.story())
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 3 << 30:
        run = tapsys.exec_json(programs, ["--memory", "3g", "--memory-by", "rlimit"], ["/usr/bin/python3", "-S", "-c", big], who)
        tap.ok(run["status"] == "ok" and not run.rules(), f"{who}: twin: 2 GB of 3", run.story())
    else:
        tap.skip(f"{who}: twin: 2 GB of 3", "the machine has less")
    run = probe("memory-children", "--memory", "64m", "--processes", "8", who=who)
    if "cgroup" in by:  # the children end by memory; whether the run does is for the parent to say
        tap.ok(run["status"] == "memory" or run.last_line().startswith("CONTAINED"), f"{who}: memory spread over children", run.story())
    run = probe("memfd-bomb", "--memory", "64m", "--memory-by", "rlimit", who=who)
    tap.ok(run["status"] == "ok" and run.last_line().startswith("CONTAINED"), f"{who}: a memfd bomb without a cgroup", run.story())

    # --- what fails the call and is listed ---
    for name, rule, options, args in (
            ("descriptors", "descriptors", ("--descriptors", "32"), ()),
            ("disk-tmp", "disk", ("--disk", "8m"), ("/tmp",)),
            ("disk-workspace", "disk", ("--disk", "8m"), ("/workspace",)),
            ("inodes", "inodes", ("--inodes", "1000"), ()),
            ("fork-bomb", "processes", ("--processes", "8"), ()),
            ("zombies", "processes", ("--processes", "8"), ()),
            ("thread-bomb", "threads|processes", ("--threads", "16"), ())):
        run = probe(name, *options, args=args, who=who)
        tap.ok(run["status"] == "ok" and run.last_line().startswith("CONTAINED"), f"{who}: {name} fails the call", run.story())
        hits = [v for v in run["violations"] or () if v["layer"] == "resources"]
        tap.ok(any(any(word in v["rule"] for word in rule.split("|")) for v in hits),
               f"{who}: {name} is in violations, layer resources", run["violations"])
    # a supervisor that gets no processor when the program starts still tells its refusals from its own
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        seen = sum("limit.processes" in probe("zombies", "--processes", "8", who=who).rules() for _ in range(20))
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    tap.ok(seen == 20, f"{who}: zombies on a busy machine are in violations each time", f"{seen} of 20")
    run = probe("descriptors", "--descriptors", "32", who=who)
    tap.ok("28 descriptors" in run.last_line() or "29 descriptors" in run.last_line(), f"{who}: 32 descriptors are 32, stdio included", run.last_line())
    run = probe("thread-bomb", "--threads", "16", who=who)
    tap.ok("CONTAINED 16 threads" in run.last_line(), f"{who}: 16 threads are 16", run.last_line())
    for name, place, option in (("disk-tmp", "/tmp", ("--disk", "8m")), ("disk-both", "", ("--disk", "8m"))):
        run = probe(name, *option, args=(place,) if place else (), who=who)
        kb = int(re.search(r"(\d+) KB", run.last_line() + " 0 KB").group(1))
        tap.ok(7000 <= kb <= 8192, f"{who}: {name}: 8 MB are 8 MB", run.last_line())
    run = probe("inodes", "--inodes", "1000", who=who)
    files = int(re.search(r"(\d+) files", run.last_line() + " 0 files").group(1))
    tap.ok(900 <= files <= 1000, f"{who}: 1000 inodes are 1000", run.last_line())
    run = probe("thread-bomb", "--threads", "0", who=who)
    tap.ok("0 threads" in run.last_line(), f"{who}: no thread where --threads is 0", run.story())
    run = probe("fork", "--processes", "0", who=who)
    tap.ok(run.last_line().startswith("CONTAINED"), f"{who}: no process where --processes is 0", run.story())
    run = probe("benign-fork", "--processes", "32", who=who)
    tap.ok(run["status"] == "ok" and not run["violations"], f"{who}: twin: a few at a time, three hundred in all", run.story())
    run = probe("benign-threads", "--threads", "8", who=who)
    tap.ok(run["status"] == "ok" and not run["violations"], f"{who}: twin: eight threads of eight", run.story())
    run = shell("cd /workspace && i=0; while [ $i -lt 200 ]; do echo x > f$i; i=$((i+1)); done; echo fine", "--inodes", "300", "--disk", "4m", who=who)
    tap.ok(run["stdout"] == "fine\n" and not run["violations"], f"{who}: twin: 200 files of 300", run.story())

    # --- output ---
    run = shell("head -c 300000 /dev/zero | tr '\\0' 'a'; printf END", "--output", "64k", who=who)
    j = run.json or {}
    out = j.get("stdout", "")
    tap.ok(j.get("status") == "ok" and run.code == 0 and j.get("truncated") is True, f"{who}: output over the cap goes on to its end", run.story())
    tap.ok(out.count(MARKER) == 1 and out.startswith("aaaa") and out.endswith("END"), f"{who}: output over the cap is head, marker and tail", out[:40], out[-40:])
    tap.ok(j.get("stdout_bytes") == 300003, f"{who}: the exact count of bytes is in the result", j.get("stdout_bytes"))
    tap.ok(len(out) <= 65536 + len(MARKER) + 4, f"{who}: no more than the cap is kept", len(out))
    run = shell("head -c 60000 /dev/zero | tr '\\0' 'a'", "--output", "64k", who=who)
    tap.ok(run["truncated"] is False and len(run["stdout"] or "") == 60000 and MARKER not in run["stdout"], f"{who}: twin: under the cap all is kept", run.story())
    run = shell("head -c 300000 /dev/zero | tr '\\0' 'e' >&2", "--output", "64k", who=who)
    tap.ok(run["truncated"] is True and run["stderr_bytes"] == 300000 and MARKER in (run["stderr"] or ""), f"{who}: stderr is capped as well", run.story())
    for name in ("flood", "flood-stderr"):
        run = probe(name, "--output", "64k", who=who)
        says(run, "output", "output", exits.LIMIT, f"{who}: {name} ends the run as output")
        total = (run["stdout_bytes"] or 0) + (run["stderr_bytes"] or 0)
        tap.ok(10 * 65536 <= total <= 40 * 65536 and run["truncated"] is True, f"{who}: {name}: at ten times the cap", total)
    run = probe("flood", "--output", "64k", who=who)
    tap.ok(run["signal"] == 9, f"{who}: a flood is killed", run.story())
    plain = tapsys.cordon(programs, ["exec", "--output", "64k", "--processes", "4", "--", "/bin/sh", "-c", "head -c 300000 /dev/zero | tr '\\0' a"], who)
    tap.ok(plain.code == 0 and MARKER in plain.out and len(plain.out) < 70000, f"{who}: without --json the cap holds while it streams", len(plain.out))
    bad = canaries.faults()
    tap.ok(not bad, f"{who}: the canaries are intact", *bad)
    canaries.close()

ms = lambda xs: f"{max(xs) * 1000:.0f} ms at most, {sorted(xs)[len(xs) // 2] * 1000:.0f} ms p50"
tap.figure(f"time-outs end after the limit by: {ms(lateness)} (goal 100 ms); until cordon is back: {ms(overruns)}")

# --- the one real default -------------------------------------------------------------------------
if not FAST:
    for who in tapsys.users()[:1]:
        late, run = timed_out(lambda: tapsys.exec_json(programs, [], ["/bin/sleep", "3600"], who), 30.0, "wall", f"{who}: the default time-out of 30 s",
                              tries=3)
        message = ((run.json or {}).get("error") or {}).get("message") or ""
        tap.ok("Execution timeout exceeded (30s)" in message, f"{who}: Execution timeout exceeded (30s)", run.story())
        tap.figure(f"the default time-out of 30 s came {late * 1000:.0f} ms late")
tap.done()
