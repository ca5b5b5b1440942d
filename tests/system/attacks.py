# SPDX-License-Identifier: Apache-2.0
"""Every probe through `cordon exec`, as root and as an ordinary user, with canaries around it.

Usage: attacks.py BUILD [NAME…]. A probe that merely crashed is a failure; so is one that could not
try. Counts attacks by the seven categories and eight layers of the threat model."""
import collections
import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys
import termios
import time

import exits
import tapsys

BUILD, ONLY = sys.argv[1], sys.argv[2:]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
probes = tapsys.probe_table(programs)
table = {p.name: p for p in probes}

# --- the table itself -----------------------------------------------------------------------------

ITEMS = set(range(1, 49)) - {48}  # 48, timing side channels, is out of scope: SECURITY.md says so
covered = {i for p in probes for i in p.items}
attacks = [p for p in probes if not p.benign and not p.payload]
if not ONLY:
    tap.ok(ITEMS <= covered, "every item of the operating-system list has a live probe", f"none for {sorted(ITEMS - covered)}")
    tap.ok(48 not in covered, "nothing claims to contain side channels")
    for p in attacks:
        if not (p.twin in table and table[p.twin].benign):
            tap.ok(False, f"{p.name} has a benign twin", f"not a benign probe: {p.twin!r}")
    tap.ok(all(p.twin in table for p in attacks), "every attack has a benign twin")
    # the system calls that must be blocked, by the probe that tries each and must be named in `violations`
    blocked = {"socket": "socket", "connect": "connect", "bind": "bind", "listen": "listen", "accept": "accept", "execve": "execve",
               "fork": "fork", "vfork": "vfork", "clone": "clone", "ptrace": "ptrace-parent", "mount": "mount", "umount": "umount",
               "chroot": "chroot", "reboot": "reboot", "kexec_load": "kexec-load"}
    for call, probe in blocked.items():
        tap.ok(probe in table and table[probe].rule, f"{call} is denied and named ({probe})")

# --- what only the outside can see ----------------------------------------------------------------

mounts = lambda: sorted(" ".join(l.split()[3:]) for l in open("/proc/self/mountinfo"))
MOUNTS = mounts()


def processes_named(name, program):
    """Those that run this very PROGRAM: others may try the same beside us."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        try:
            if p.name.isdigit() and (p / "comm").read_text().strip() == name and os.path.samestat(os.stat(p / "exe"), os.stat(program)):
                found.append(int(p.name))
        except OSError:
            pass
    return found


def check_daemonize(c, r):
    left = processes_named("cordon-daemon", c.ro / "probe")
    return [f"the daemon lives on: {left}"] if left else [] if r.seconds < 10 * tapsys.SLOW else [f"the run took {r.seconds:.1f} s"]


def check_traps(c, r):
    bad = []
    again = tapsys.exec_json(programs, ["--rw", str(c.rw / "d")], ["/bin/true"], c.who)
    if again.code != exits.NEVER_RAN:
        bad.append(f"--rw through the guest's link was taken: {again.story()}")
    reader = tapsys.exec_json(programs, ["--stdin", str(c.rw / "out")], ["/bin/true"], c.who)
    if reader.code is None:
        bad.append("--stdin with the guest's fifo hangs")
    return bad


def check_lease(c, r):
    start = time.monotonic()
    try:
        os.close(os.open(c.rw / "leased", os.O_RDWR | os.O_NONBLOCK))
    except BlockingIOError:
        return ["the lease outlived the run"]
    return []


def check_forged(c, r):
    if r["status"] != "ok" or "forged" in r.json or '"status":"ok"' not in r["stdout"] or r["session"] is not None:
        return ["the forged result was not kept apart"]
    return []


def check_one_line(c, r):
    return [] if r["stdout_bytes"] > 3 << 20 else [f"{r['stdout_bytes']} bytes of 3 MB"]


def check_kinds(c, r):
    n = len(r["violations"])
    return [] if 10 <= n <= 1000 and len(r.out) < 1 << 20 else [f"{n} violations, {len(r.out)} bytes of result"]


def check_flood(c, r):
    hit = [v for v in r["violations"] if "connect" in v["rule"]]
    return [] if len(hit) <= 1000 and r.seconds < 30 * tapsys.SLOW else [f"{len(hit)} violations in {r.seconds:.1f} s"]


def check_exit_code(c, r):
    return [] if r["exit_code"] == 0 and r.code == 0 else [f"exit code {r['exit_code']}: a child of pid 1 answered for the guest"]


def check_binary(c, r):
    json.dumps(r.json).encode("utf-8")  # no lone surrogates
    return []


def check_output_end(c, r):
    return [] if r.code == exits.LIMIT and r["truncated"] else [f"exit {r.code}, truncated {r['truncated']}"]


def check_limit(c, r):
    return [] if r.code == exits.LIMIT else [f"exit status {r.code}, not that of a limit"]


CHECKS = {"daemonize": check_daemonize, "rw-traps": check_traps, "rw-lease": check_lease, "forged-result": check_forged,
          "one-line": check_one_line, "notify-kinds": check_kinds, "notify-flood": check_flood, "clone-parent": check_exit_code,
          "binary": check_binary, "flood": check_output_end, "flood-stderr": check_output_end,
          **{n: check_limit for n in ("stopped", "ignores-term", "leader-exits", "sleep-forever", "cpu-spin", "cpu-children")}}


class CoreHandler:
    """While it is in place the machine's core dumps go to a script that leaves a mark."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern")

    def __init__(self, home):
        self.mark, self.script = home / "handled", home / "handler"
        self.script.write_text(f"#!/bin/sh\necho \"$1\" >> {self.mark}\ncat > /dev/null\n")
        self.script.chmod(0o755)

    def __enter__(self):
        self.old = self.pattern.read_text()
        self.pattern.write_text(f"|{self.script} %e")
        return self

    def __exit__(self, *_):
        self.pattern.write_text(self.old)

    def marks(self):
        return self.mark.read_text().split() if self.mark.exists() else []

    def works(self):
        """Whether it is started for a program that is in no jail. The kernel waits for none of them, so one that was started before
        has had its time when this one has left its mark."""
        seen = self.marks().count("sh")
        subprocess.run(["/bin/sh", "-c", "kill -SEGV $$"], cwd="/tmp", stderr=subprocess.DEVNULL)
        return tapsys.until(lambda: self.marks().count("sh") > seen, 5)


# --- the runs -------------------------------------------------------------------------------------

def one(canaries, p, who):
    name = f"{who}: {p.name}: {p.what}"
    terminal = None
    if "{pty}" in p.options:
        master, terminal = os.openpty()
    run = tapsys.run_probe(programs, canaries, p, who, pty=terminal)
    bad = [tapsys.ended_as_declared(p, run)]
    if run.json is not None:
        bad += tapsys.shape_faults(run.json)
        if p.rule and not any(re.search(p.rule, r) for r in run.rules()):
            bad.append(f"no violation matches {p.rule!r}: {run.rules()}")
        if p.benign and run["violations"]:
            bad.append(f"a false alarm: {run['violations'][:3]}")
        if not canaries.word.isspace() and canaries.word in run.out and "{word}" not in p.args + p.options:
            bad.append("the secret word is in the result")
    if run.json is not None and p.name in CHECKS:
        bad += CHECKS[p.name](canaries, run)
    if terminal is not None:
        pending = fcntl.ioctl(terminal, termios.FIONREAD, b"\0\0\0\0")
        if pending != b"\0\0\0\0":
            bad.append("something was typed into the caller's terminal")
        os.close(master)
        os.close(terminal)
    bad += canaries.faults()
    if mounts() != MOUNTS:
        bad.append("the mounts outside changed")
    bad = [b for b in bad if b]
    return tap.ok(not bad, name, *bad, run.story()), run


contained = collections.Counter()
for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    for p in probes:
        if p.payload or ONLY and p.name not in ONLY:
            continue
        good, run = one(canaries, p, who)
        if good and not p.benign:
            contained[p.name] += 1
    # the caller's own streams: one open file that the guest's input must not share
    own = os.open(canaries.ro / "readable", os.O_RDONLY)
    os.lseek(own, 3, os.SEEK_SET)
    before = fcntl.fcntl(own, fcntl.F_GETFL)
    tapsys.exec_json(programs, ["--ro", str(canaries.ro)], [str(canaries.ro / "probe"), "stdio-flags"], who, stdin=own)
    tap.ok(fcntl.fcntl(own, fcntl.F_GETFL) == before and os.lseek(own, 0, os.SEEK_CUR) == 3, f"{who}: the caller's stdin is as it was")
    os.close(own)
    # a core handler, which runs outside every jail
    if os.access(CoreHandler.pattern, os.W_OK) and os.geteuid() == 0:
        with CoreHandler(canaries.home) as handler:
            if not handler.works():
                tap.skip(f"{who}: no core handler for the guest", "this kernel runs none at all")
            else:
                for name in ("core-dump", "abort", "segfault"):
                    tapsys.run_probe(programs, canaries, table[name], who)
                tap.ok(handler.works() and "probe" not in handler.marks(), f"{who}: no core handler for the guest", handler.marks())
    else:
        tap.skip(f"{who}: no core handler for the guest", "core_pattern cannot be set here")
    good, why = tapsys.plant_intact(programs)
    tap.ok(good, f"{who}: the kernel's own canaries are intact", why)
    cores = [str(p) for d in (canaries.home, canaries.rw, pathlib.Path("/"), pathlib.Path("/tmp")) for p in d.glob("core*") if p.is_file()]
    tap.ok(not cores, f"{who}: no core file", cores)
    canaries.close()

# --- layers input and audit: no probe of C reaches them ---------------------------------------------

def input_attacks(who):
    """The judge's own cases, as people meet it: `cordon check`, inside the jail."""
    folder, n = pathlib.Path(__file__).resolve().parents[1] / "cases/python/judge", 0
    if not (programs.bin / "cordon-python").exists():
        tap.skip(f"{who}: input: what the judge must refuse is refused", "this build has no cordon-python, which judges")
        return None
    for path in sorted(folder.glob("*.case")):
        head, _, source = path.read_bytes().decode("utf-8", "surrogateescape").partition("\n---\n")
        fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line and not line.startswith("#"))
        if fields.get("expect") != "refused" or "escapes" in fields:
            continue
        n += 1
        r = tapsys.cordon(programs, ["check", "--json", "--profile", fields["profile"].split()[0], "-"], who,
                          text=source.encode("utf-8", "surrogateescape"))
        tap.ok(r.code == exits.FAILED and r["is_safe"] is False and r["violations"], f"{who}: input: {path.stem} is refused", r.story())
    tap.ok(n > 0, f"{who}: input: there are cases that the judge must refuse", f"none in {folder}")
    return n


def audit_attacks(who):
    """What a program, or its words, could do to the log."""
    tapsys.one_day()
    state = pathlib.Path(tapsys.House.of(who)["CORDON_STATE"])
    log = lambda: sorted((state / "audit").glob("*.jsonl"))[-1]
    verify = lambda: tapsys.cordon(programs, ["audit", "verify"], who)
    forged = 'x"}\n{"seq": 1, "kind": "end", "status": "ok"}\n'
    before = len(log().read_bytes().splitlines())
    tapsys.exec_json(programs, [], ["/bin/echo", forged], who)
    after = log().read_bytes().splitlines()
    tap.ok(len(after) == before + 2 and verify().code == 0, f"{who}: audit: words with line feeds make no record of their own", after[-2:])
    r = tapsys.exec_json(programs, [], ["/bin/cat", str(log())], who)
    tap.ok(r["status"] == "error" and r["stdout"] == "", f"{who}: audit: a program does not see the log", r.story())
    r = tapsys.exec_json(programs, ["--rw", str(state)], ["/bin/true"], who)
    tap.ok(r.code == exits.NEVER_RAN, f"{who}: audit: the folder of the log cannot be lent to a program", r.story())
    good = log().read_bytes()
    log().write_bytes(good.replace(b'"tool": "exec"', b'"tool": "eXec"', 1))
    tap.ok(verify().code == 1, f"{who}: audit: one changed letter is found", verify().story())
    log().write_bytes(good)
    tap.ok(verify().code == 0, f"{who}: audit: the log verifies when that letter is changed back", verify().story())
    return 4


more = {}
if not ONLY:
    for who in tapsys.users():
        more = {"input": input_attacks(who), "audit": audit_attacks(who)}

# --- the count ------------------------------------------------------------------------------------

if not ONLY:
    rounds = len(tapsys.users())
    held = [p for p in attacks if contained[p.name] == rounds]
    tap.figure(f"attacks: {len(attacks)} probes, {len(held)} contained in all of {rounds} rounds, "
               f"{len(covered & ITEMS)} of {len(ITEMS)} list items")
    by_category = collections.Counter(p.category for p in attacks)
    names = {1: "code injection", 2: "import bypass", 3: "resource exhaustion", 4: "network", 5: "file system", 6: "descriptors", 7: "output"}
    tap.figure("by category: " + ", ".join(f"{names[c]} {by_category[c]}" for c in names))
    by_layer = collections.Counter(p.layer for p in attacks) + collections.Counter({l: n for l, n in more.items() if n is not None})
    tap.figure("by layer: " + ", ".join(f"{l} {by_layer[l]}" if more.get(l, 0) is not None else f"{l} not built" for l in tapsys.REQUIRED_LAYERS))
    for c in names:
        tap.ok(by_category[c] > 0, f"category {c} ({names[c]}) has attacks")
    for l in tapsys.REQUIRED_LAYERS:
        if more.get(l, 0) is None:
            tap.skip(f"layer {l} has attacks", "this build has no program for it")
        else:
            tap.ok(by_layer[l] > 0, f"layer {l} has attacks")
    tap.ok(len(attacks) >= 50, "at least 50 attacks in all")
tap.done()
