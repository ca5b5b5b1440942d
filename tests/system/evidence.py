#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a run was refused is evidence: the same in each way to run a program, in the result and in the record."""
import json
import pathlib
import re
import sys

import exits
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
# One call of each kind that a jail reports; numbers of x86-64 and of aarch64.
SILENT = """
import ctypes, platform
libc = ctypes.CDLL(None)
x86 = platform.machine() == "x86_64"
for a, b in ((321, 280), (101, 117), (425, 425), (246, 104), (298, 241), (323, 282), (311, 271), (175, 105), (304, 265), (300, 262),
             (248, 217), (135, 92), (165, 40), (272, 97), (319, 279), (164, 170), (103, 116)):
    libc.syscall(a if x86 else b, 1, 0, 0, 0, 0)
print("done")
"""
MATTER = {"seccomp.bpf", "seccomp.ptrace", "seccomp.io_uring_setup", "seccomp.kexec_load"}
COLD = ["--ro", "/usr/share/doc:/doc"]  # what a warm child does not have
WAYS = {"cold": ["run", "--profile", "open", *COLD], "warm": ["run", "--profile", "open"], "session": ["session", "run", "crowd"], "branch": ["session", "run", "crowded"]}


def crowds(who):
    tapsys.cordon(programs, ["pool", "start", "--profile", "open"], who)
    tapsys.cordon(programs, ["session", "new", "crowd", "--profile", "open"], who)
    tapsys.cordon(programs, ["session", "fork", "crowd", "crowded"], who)
    for way in WAYS:
        crowd(who, way)
    tapsys.cordon(programs, ["pool", "stop", "--force"], who)


def crowd(who, way):
    r = tapsys.cordon(programs, [*WAYS[way], "--json", "-"], who, text=CROWD)
    tap.eq(r["status"], "ok", f"{who}, {way}: the program runs to its end", r.story())
    missing = MATTER - set(r.rules())
    tap.ok(not missing, f"{who}, {way}: 1,200 refused mounts hide none of four other refusals in the result", missing)
    tap.ok((r["violations_total"] or 0) >= 1204, f"{who}, {way}: every refusal is counted", r["violations_total"])
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none", "--json"], who)
    quoted = " ".join(json.dumps(v) for line in shown.out.splitlines() if line.startswith("{")
                      for v in [json.loads(line)])
    missing = {m for m in MATTER if m not in quoted}
    tap.ok(not missing, f"{who}, {way}: the record names each of the four as well", missing, shown.story())


MARKUP = """
import os
open("/workspace/<img src=x>.txt", "w").close()
class E(Exception): pass
E.__name__ = E.__qualname__ = "<script>alert(1)</script>"
raise E(os.environ.get("MY_API_TOKEN", "no token"))
"""


def cleaned(who):
    """Whatever comes from the guest is cleaned: types, hints, names of files, and secrets that it was given."""
    policy = programs.dir / f"{who}-html.yaml"
    policy.write_text("output: {escape: html}\n")
    policy.chmod(0o644)
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "open", "--policy", policy, "--env",
                                 "MY_API_TOKEN=tok-1234567890", "-"], who, text=MARKUP)
    error = r["error"] or {}
    tap.ok("&lt;script&gt;" in error.get("type", "") and "<" not in error.get("type", "<"),
           f"{who}: markup in an exception's type is escaped", r.story())
    tap.eq([f["path"] for f in r["files"] or ()], ["/workspace/&lt;img src=x&gt;.txt"],
           f"{who}: markup in a file's name is escaped")
    tap.ok("tok-1234567890" not in r.out and "[REDACTED:environment]" in error.get("message", ""),
           f"{who}: a secret that --env gave to the guest is redacted in its output", r.story())
    markup(who)


DATA = """
import json
print(json.dumps({"a": "x<y & 'z'"}))
FINAL("<p>it's</p>")
"""
PAGE = "print('<img src=x onerror=alert(1)> <script>1</script>')\n'<svg onload=x>'\n"


def markup(who):
    """Text in JSON is what the program wrote; what a browser would run in it is listed."""
    for profile in ("strict", "standard"):
        options = ["run", "--json", "--profile", profile]
        r = tapsys.cordon(programs, [*options, "-"], who, text=DATA)
        tap.ok(r["final"] == "<p>it's</p>" and json.loads(r["stdout"] or "0") == {"a": "x<y & 'z'"} and r.rules() == [],
               f"{who}: JSON that a program prints under {profile} is JSON in the result", r.story())
        r = tapsys.cordon(programs, [*options, "-"], who, text=PAGE)
        seen = [(v["layer"], v["rule"], v["times"], v["outcome"], v["detail"]) for v in r["violations"] or ()]
        tap.eq(seen, [("output", "output.markup", 2, "seen", "stdout holds markup that a browser runs: <img onerror>"),
                      ("output", "output.markup", 1, "seen", "value holds markup that a browser runs: <svg onload>")],
               f"{who}: markup that a browser would run is listed under {profile}", r.story())
        tap.ok(r["status"] == "ok" and r.code == exits.DONE, f"{who}: a page that is printed under {profile} is no failure", r.story())
        r = tapsys.cordon(programs, [*options, "--escape", "html", "-"], who, text=PAGE)
        tap.ok("<" not in r["stdout"] + r["value"] and "&lt;script&gt;" in r["stdout"] and r.rules() == [],
               f"{who}: with --escape html the text is fit for a page under {profile}", r.story())
    r = tapsys.cordon(programs, ["run", "--escape", "xml", "-"], who, text="1")
    tap.ok(r.code == exits.NEVER_RAN and "--escape" in r.err and "html" in r.err, f"{who}: an escape that is none is refused by name", r.story())
    r = tapsys.cordon(programs, ["run", "--profile", "strict", "-"], who, text=PAGE)
    tap.ok(r.err == "", f"{who}: without --json nobody is told of markup", r.story())


def wire_number(name):
    """The number of a message on the wire: its place in the one table."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/msg.h").read_text()
    worker = re.search(r"#define WIRE_WORKER_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1)
    table = re.search(r"#define WIRE_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1).replace("WIRE_WORKER_MESSAGES(X)", worker)
    number = re.findall(r"X\((\w+), ", table).index(name) + 1
    return bytes([number]) if number < 24 else bytes([24, number])


# The first call says that it is done, and stays: it answers for the judge of the calls that follow.
FORGER = """
import os, threading
def answer():
    os.write(3, b"\\x82" + {done!r} + b"\\x00")
    while True:
        frame = os.read(3, 1 << 18)
        if not frame: os._exit(0)
        kind = frame[1:3] if frame[1] == 24 else frame[1:2]
        if kind == {source!r}: os.write(3, b"\\x83" + {report!r} + b"\\x01\\x00")
        if kind == {go!r}: os.write(3, b"\\x82" + {done!r} + b"\\x00")
answer()
"""


def judged_apart(who):
    """Who has run code may have become somebody else: its own yes is not enough."""
    names = {"done": "DONE", "report": "REPORT", "source": "JOB", "go": "GO"}
    forger = FORGER.format(**{k: wire_number(v) for k, v in names.items()})
    tapsys.cordon(programs, ["session", "new", "forger", "--profile", "standard"], who)
    r = tapsys.cordon(programs, ["session", "run", "forger", "--json", "-"], who, text=forger)
    tap.eq(r["status"], "ok", f"{who}: a guest says that its call is done, and stays", r.story())
    r = tapsys.cordon(programs, ["session", "run", "forger", "--json", "-"], who, text="this is not Python at all ((\n")
    tap.ok(r["status"] == "blocked" and "syntax" in r.rules(), f"{who}: a guest that stayed does not pass for the judge of the next call", r.story())
    tapsys.cordon(programs, ["session", "close", "forger"], who)
    tapsys.cordon(programs, ["session", "new", "honest", "--profile", "standard"], who)
    for i in range(3):
        r = tapsys.cordon(programs, ["session", "run", "honest", "--json", "-"], who, text=f"x = {i}\nprint(x)\n")
        tap.eq(r["stdout"], f"{i}\n", f"{who}: call {i} of an honest session runs", r.story())
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none", "--json"], who)
    steps = [json.loads(line)["steps"] for line in shown.out.splitlines() if '"kind": "end"' in line]
    tap.figure(f"evidence: {who}: a session's call is judged in a clean child in {steps[0].get('judge') if steps else '?'} us")
    tapsys.cordon(programs, ["session", "close", "honest"], who)


def seen(r):
    return sorted({rule for rule in r.rules() if rule.startswith("seccomp.")})


def same_everywhere(who):
    """A warm child, a session and a branch hide nothing that a cold run shows."""
    run = ["run", "--json", "--profile", "open"]
    cold = tapsys.cordon(programs, [*run, *COLD, "-"], who, text=SILENT)
    tap.ok(len(seen(cold)) >= 15, f"{who}: a cold run reports each call that was refused", seen(cold), cold.story())
    started = tapsys.cordon(programs, ["pool", "start", "--profile", "open"], who)
    tapsys.cordon(programs, ["session", "new", "evidence", "--profile", "open"], who)
    for way, r in (("a warm run", tapsys.cordon(programs, [*run, "-"], who, text=SILENT)),
                   ("a session", tapsys.cordon(programs, ["session", "run", "evidence", "--json", "-"], who, text=SILENT))):
        tap.eq(seen(r), seen(cold), f"{who}: {way} reports the same refusals as a cold run", started.story(), r.story())
    tapsys.cordon(programs, ["session", "fork", "evidence", "branch"], who)
    r = tapsys.cordon(programs, ["session", "run", "branch", "--json", "-"], who, text=SILENT)
    tap.eq(seen(r), seen(cold), f"{who}: a branch of a session reports the same refusals as a cold run", r.story())
    tapsys.cordon(programs, ["pool", "stop"], who)


def true_words(who):
    """Seen is not denied, a traceback is no attack, and what libraries do when they start is no alarm."""
    def run(profile, text, *more):
        return tapsys.cordon(programs, ["run", *more, "--profile", profile, "-"], who, text=text)
    ctypes = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mount(b'a', b'/tmp', b'tmpfs', 0, None)\n"
    r = run("standard", ctypes)
    tap.ok("seen (process)" in r.err and "ctypes" in r.err.split("seen (process)")[1].splitlines()[0],
           f"{who}: standard: ctypes, which is allowed there, is said to be seen", r.err)
    tap.ok(any(line.startswith("cordon: denied (") and "mount" in line for line in r.err.splitlines()),
           f"{who}: standard: a mount is said to be denied", r.err)
    r = run("standard", ctypes, "--json")
    ends = {v["rule"]: v.get("outcome") for v in r["violations"] or ()}
    tap.ok(ends.get("py.event.ctypes") == "seen" and ends.get("seccomp.mount") == "denied", f"{who}: standard: the result tells them apart", ends)
    program = programs.dir / f"{who}-div.py"
    program.write_text("x = 0\nprint(1 / x)\n")
    program.chmod(0o644)
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "strict", program], who)
    tap.ok(r["status"] == "error" and r["error"]["type"] == "ZeroDivisionError" and r["violations"] == [],
           f"{who}: strict: an uncaught exception of a program from a file is no attempt to open it", r.story())
    fill = "try:\n    with open('/workspace/x', 'wb') as f:\n        while True: f.write(b'x' * 65536)\nexcept OSError: print('caught')\n"
    many = "try:\n    for i in range(10**6): open(f'/workspace/{i}', 'w').close()\nexcept OSError: print('caught')\n"
    for rule, text, limit in (("limit.disk", fill, ["--disk", "4m"]), ("limit.inodes", many, ["--inodes", "100"])):
        r = run("standard", text, "--json", *limit)
        tap.ok(r["status"] == "ok" and r["stdout"] == "caught\n" and r.rules() == [rule], f"{who}: standard: a program that hides a full disk is reported: {rule}", r.story())
    for what, text in (("asyncio", "import asyncio\nasync def f(): print(1)\nasyncio.run(f())\n"), ("pandas", "import pandas\nprint(1)\n"),
                       ("matplotlib", "import matplotlib.pyplot\nprint(1)\n")):
        r = run("standard", text)
        if "ModuleNotFoundError" in r.err:
            tap.skip(f"{who}: {what} starts without an alarm", f"{what} is not installed")
        else:
            said = [line for line in r.err.splitlines() if "pool start" not in line]  # that it could be loaded ahead
            tap.ok(r.code == 0 and r.out == "1\n" and not said, f"{who}: {what} starts without an alarm", r.out, r.err)
    asks = "import platform\nprint(repr(platform.processor()))\n"
    r = run("standard", asks)
    tap.ok(r.code == 0 and r.err == "", f"{who}: a program that asks for the processor's name raises no alarm", r.out, r.err)
    r = run("standard", asks, "--json")
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none", "--json"], who).out
    tap.ok([v.get("outcome") for v in r["violations"] or ()] == ["harmless"] and "uname" in shown, f"{who}: the question for the processor's name is listed as harmless, and on record", r.story())
    r = run("standard", "import subprocess\ntry:\n    subprocess.Popen(['uname', '-a'])\nexcept OSError: pass\n")
    tap.ok("uname, -a" in r.err and "denied (process)" in r.err, f"{who}: another program that a program starts is reported", r.err)
    r = run("open", "import socket\ntry:\n    socket.socket(socket.AF_UNIX)\nexcept OSError: pass\n", "--json")
    tap.ok("seccomp.socket" in r.rules(), f"{who}: a local socket that is none of a pair is told", r.story())


def empty_packet(who):
    text = "import ctypes\nprint(ctypes.CDLL(None).send(3, b'', 0, 0), flush=True)\n"
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "open", "--timeout", "20s", "-"], who, text=text)
    tap.ok(r["status"] == "error" and (r["error"] or {}).get("type") == "ProtocolError" and "channel.garbage" in r.rules(),
           f"{who}: an empty packet on the channel ends the run as garbage; it does not hang to its limit", r.story())


for who in users():
    true_words(who)
    empty_packet(who)
    judged_apart(who)
    same_everywhere(who)
    crowds(who)
    cleaned(who)
tap.done()
