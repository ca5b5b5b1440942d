#!/usr/bin/python3
"""What a run was refused is evidence: the same in each way to run a program, in the result and in the record."""
import json
import sys

import tapsys
from tapsys import Tap, users

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = Tap()
programs = tapsys.Programs(BUILD)

# 1,200 dull refusals, all different, then the four that matter. By libc's syscall(), so that the numbers are the
# machine's own.
CROWD = """
import ctypes, platform
libc = ctypes.CDLL(None)
for i in range(1200):
    libc.mount(b"none", b"/tmp/%d" % i, b"tmpfs", 0, None)
x86 = platform.machine() == "x86_64"
for number in ((321, 101, 425, 246) if x86 else (280, 117, 425, 104)):
    libc.syscall(number, 0, 0, 0, 0)
print("done")
"""
MATTER = {"seccomp.bpf", "seccomp.ptrace", "seccomp.io_uring_setup", "seccomp.kexec_load"}
WAYS = {"cold": ["--ro", "/usr/share/doc:/doc"]}  # what a warm child does not have


def crowd(who, way):
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "open", *WAYS[way], "-"], who, text=CROWD)
    tap.eq(r["status"], "ok", f"{who}, {way}: the program runs to its end", r.story())
    missing = MATTER - set(r.rules())
    tap.ok(not missing, f"{who}, {way}: 1,200 refused mounts hide none of four other refusals in the result", missing)
    tap.ok((r["violations_total"] or 0) >= 1204, f"{who}, {way}: every refusal is counted", r["violations_total"])
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none", "--json"], who)
    quoted = " ".join(json.dumps(v) for line in shown.out.splitlines() if line.startswith("{")
                      for v in [json.loads(line)])
    missing = {m for m in MATTER if m not in quoted}
    tap.ok(not missing, f"{who}, {way}: the record names each of the four as well", missing, shown.story())


for who in users():
    for way in WAYS:
        crowd(who, way)
tap.done()
