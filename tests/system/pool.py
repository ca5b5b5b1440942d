# SPDX-License-Identifier: Apache-2.0
"""The warm pool, sessions and the REPL as people use them, with the real interpreter, as root and as an ordinary user.

Usage: pool.py BUILD. What the holder does with clients that are none, and with a template that dies under a crowd, is
in src/pool/test_holder.c too, with a small guest; here every part is the product's."""
import atexit
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import exits
import tapsys
from pooltest import Processes, User, proc, until

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
processes = Processes(programs)
ours = processes.all


# --- the pool ---------------------------------------------------------------------------------------

def pool(u):
    r = u("pool", "status")
    u.ok(r.code == 1 and "no holder" in r.out, "pool status says that there is no holder", r)
    starts = [subprocess.Popen(programs.command(["pool", "start", "--profile", "strict", "--size", "3"], u.who), env=tapsys.clean_env({}, u.who),
                               stdin=subprocess.DEVNULL, cwd="/") for _ in range(8)]
    codes = [p.wait(60) for p in starts]
    held = lambda: [pid for pid, name in ours().items() if name == "cordon-holder"]
    until(lambda: len(held()) == 1)  # who lost the race ends in a moment
    holders = held()
    u.ok(codes == [0] * 8 and len(holders) == 1, "eight clients that start the pool at once make one holder", codes, holders)
    pid = u.status().get("pid")
    u.ok(pid == holders[0], "the holder that lives is the one that answers")
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    u.ok("NoNewPrivs:\t1" in status and "Seccomp:\t2" in status, "the holder has narrowed itself")
    fds = pathlib.Path(f"/proc/{pid}/fd")
    if os.geteuid() == 0:
        kinds = sorted({os.readlink(f).split(":")[0] for f in fds.iterdir() if int(f.name) < 3})
        u.ok(kinds == ["/dev/null"], "the holder has no descriptor of its caller", kinds)
        u.ok(pathlib.Path(f"/proc/{pid}/environ").read_bytes() in (b"", b"\0"), "the holder has no environment variable of its caller")
    t = u.full("strict")
    u.ok(t and t["state"] == "ready" and t["ready"] == 3, "three children wait", u.status())

    made, leases = t["made"], u.status()["leases"]
    r = u.warm(lambda: u("run", "--json", "-", text="x = 6\nprint('hello')\nx * 7\n"))
    u.ok(r["status"] == "ok" and r["stdout"] == "hello\n" and r["value"] == "42", "a run with a pool gives its output and its value", r)
    u.ok(not tapsys.shape_faults(r.json), "the result of a run with a pool has its shape", tapsys.shape_faults(r.json))
    u.ok(u.status()["leases"] == leases + 1, "a run with a pool is a warm one")
    t = u.full("strict")
    u.ok(t and t["made"] == made + 1, "one child is made in place of one that was used", t)
    marks = [u.warm(lambda: u("run", "--json", "-", text="try:\n    print(mark)\nexcept NameError:\n    print('none')\nmark = 1\n"))["stdout"] for _ in range(5)]
    u.ok(marks == ["none\n"] * 5, "a child is used once", marks)
    cold = u("run", "--json", "--ro", "/usr/share/doc:/doc", "-", text="print(1)\n")
    u.ok(cold["status"] == "ok" and u.status()["leases"] == leases + 6, "what a warm child cannot have is built as always", cold)
    u("pool", "start", "--profile", "standard", "--size", "1")
    u.full("standard")
    shows = lambda *where: u("run", "--json", "--profile", "standard", "--env", "A=1", "--env", "HOME=/workspace", *where, "-", text="import os\nprint(sorted(os.environ.items()))\n")
    envs = [u.warm(shows), shows("--ro", "/usr/share/doc:/doc")]
    u.ok(envs[0]["stdout"] == envs[1]["stdout"] and all(pair in envs[0]["stdout"] for pair in ("('A', '1')", "('HOME', '/workspace')"))
         and u.status()["leases"] == leases + 7, "variables: warm or not, a program sees the same", *envs)

    results = []
    crowd = [threading.Thread(target=lambda i=i: results.append(u("run", "--json", "-", text=f"print({i})\n")["stdout"])) for i in range(12)]
    [c.start() for c in crowd]
    [c.join() for c in crowd]
    u.ok(sorted(results) == sorted(f"{i}\n" for i in range(12)), "twelve runs at once give twelve results", results)
    r = u("run", "--json", "-", text="import subprocess\n")
    u.ok(r["status"] == "blocked" and r.code == exits.NEVER_RAN, "a warm run is refused by the same judge", r)
    r = tapsys.late_enough(lambda seconds: u("run", "--json", "--timeout", f"{int(1000 * seconds)}ms", "-", text="print('before')\nwhile True: pass\n"), 0.3)
    u.ok(r["status"] == "timeout" and r["stdout"] == "before\n", "a warm run has the same limits", r)

    # a template that dies
    u.full("strict")
    before = u.template("strict")
    nests = [str(p) for p, n in ours().items() if n == "cordon-nest"]
    templates = [p for p, n in ours().items() if n == "cordon-python" and (re.findall(r"PPid:\t(\d+)", proc(p, "status")) or [""])[0] in nests
                 and "strict" in proc(p, "cmdline")]
    u.ok(len(templates) == 1, "there is one template of the profile", templates, ours())
    settled(u, templates[0])
    small(u)
    os.kill(templates[0], signal.SIGKILL)
    t = until(lambda: (lambda t: t if t.get("crashes") == before["crashes"] + 1 and t["ready"] == 3 else None)(u.template("strict")))
    u.ok(bool(t) and t["starts"] == before["starts"] + 1 and t["error"], "a template that is killed is noticed, reported and started again", u.status())
    r = u("run", "--json", "-", text="print(1)\n")
    u.ok(r["stdout"] == "1\n", "runs go on after a template was killed", r)

    # a client that is killed in the middle of a run
    u.full("strict")
    processes.at_rest()
    quiet = processes.lasting()

    def endless():
        p = subprocess.Popen(programs.command(["run", "-"], u.who), env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE, cwd="/",
                             stdout=subprocess.DEVNULL)
        p.stdin.write(b"while True: pass\n")
        p.stdin.close()
        return p
    client = u.holding(endless, "strict")
    u.ok(u.template("strict").get("lent") == 1, "a client has a child", u.status())
    if u.who == "root":
        u.ok(until(lambda: re.search(r"Uid:\t[1-9]\d*\t[1-9]", proc(client.pid, "status"))), "a client of root has no root's uid while its child runs", proc(client.pid, "status")[:400])
    client.kill()
    client.wait()
    u.ok(until(lambda: u.template("strict").get("lent") == 0 and u.full("strict") and processes.lasting() <= quiet),
         "the child of a client that is killed in its run is gone", quiet, ours())


def settled(u, template):
    """A template's memory is a file that its children map: nobody may ever change it."""
    maps = [line.split(None, 5) for line in proc(template, "maps").splitlines()]
    files = [m[0] for m in maps if len(m) > 5 and "cordon-template" in m[5]]
    shared = [m for m in maps if m[1].endswith("s")]
    u.ok(len(files) > 2 and not shared, "the template's memory is mapped from files, and nothing of it is shared", maps)
    u.ok("cordon-template" not in "".join(os.readlink(f) for f in pathlib.Path(f"/proc/{template}/fd").iterdir()), "the template has no descriptor of its memory's files")
    want = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    seals, written = set(), []
    for where in files:
        fd = os.open(f"/proc/{template}/map_files/{where}", os.O_RDWR)
        seals.add(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & want)
        try:
            written.append(os.pwrite(fd, b"x", 0))
        except PermissionError:
            pass
        os.close(fd)
    u.ok(seals == {want}, "the files of the template's memory are sealed", seals)
    u.ok(not written, "the files of the template's memory cannot be written", written)
    u.ok(any(m[1] == "r-xp" and m[0] in files for m in maps), "the code that every child runs is in a sealed file", maps)
    # a page that the template wrote, and that is in no file of its memory, is an entry that every fork copies
    copied = [(m[5], k) for m, k in zip(maps, re.findall(r"^Anonymous: +(\d+)", proc(template, "smaps"), re.M))
              if len(m) > 5 and m[5].startswith("/") and m[1] == "r--p" and k != "0"]
    u.ok(len(maps) > 20 and not copied, "constants that the loader wrote are in a sealed file", copied)
    empty = [m for m in maps if m[1] == "---p" and len(m) > 5 and m[5].startswith("/")]
    u.ok(not empty, "a template has no map of a file that nobody can read: every fork copies its maps", empty)
    blocks = [m for m in maps if m[1] == "rw-p" and m[0] in files and int(m[0].split("-")[1], 16) - int(m[0].split("-")[0], 16) == 1 << 20]
    u.ok(len(blocks) < 2, "the objects of a template are one map, not one for each block of the interpreter", blocks)


def written(u, profile):
    """KB of its template's memory that a waiting child has written: copies of its own. Inits and templates write next to nothing, and the
    first children of a template come before its memory is a file: the least of what is left."""
    u.full(profile)
    def of(pid):
        parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", proc(pid, "smaps"), flags=re.M)
        return sum(int(k) for p in parts if "cordon-template" in p.split("\n")[0] for k in re.findall(r"^Private_Dirty: +(\d+)", p, re.M))

    def all_of_them():
        return {p: of(p) for p, n in ours().items() if n == "cordon-python" and profile in proc(p, "cmdline")}

    def when_done():
        """A child that waits fetches what it will write a little later."""
        before = all_of_them()
        time.sleep(0.3)
        return before if before == all_of_them() else None
    return min((kb for kb in (until(when_done) or {}).values() if kb > 300), default=0)


def small(u):
    r = u("pool", "start", "--profile", "locked", "--size", "4")
    u.ok("python: locked: " in r.err and "cordon pool status" in r.err and r.out == "", "pool start says what is made ready, and how to see how far it is", r.story())
    strict, locked = written(u, "strict"), written(u, "locked")
    u.ok(0 < strict <= 1.2 * locked, "a child of strict has no more pages of its own than one of locked, which has half the modules", strict, locked)


def strangers(u):
    path = next(pathlib.Path(tapsys.clean_env({}, u.who)["CORDON_STATE"], "run").glob("holder-*.sock"))
    refused, bad = u.status()["refused_peers"], u.status()["bad_frames"]
    for junk in (b"", b"\x80", b"\x00" * 4000, bytes(range(256)) * 200, b"\x82\x18\x20\x00"):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(10)
        try:
            s.connect(str(path))
            s.send(junk)
            gone = s.recv(10) == b""
        except OSError:
            gone = True
        s.close()
        if u.who == "root" or os.geteuid() != 0:
            u.ok(gone, f"garbage of {len(junk)} bytes: the connection is closed")
    if os.geteuid() == 0 and u.who == "user":
        u.ok(u.status()["refused_peers"] >= refused + 5, "a process of another uid is refused by the holder", u.status())
    elif os.geteuid() == 0:
        u.ok(u.status()["bad_frames"] >= bad + 3, "frames of garbage are counted", u.status())
        r = tapsys.cordon(programs, ["pool", "status", "--json"], "user", env={"CORDON_STATE": str(path.parents[1])})
        u.ok(r.code != 0, "another user does not reach the socket of the holder", r)
    u.ok(u("run", "--json", "-", text="print(1)\n")["stdout"] == "1\n", "the holder serves its own user after garbage")


def in_line(u):
    """Who stands in line at the gate has connected already, and said nothing: others may have taken its seat when its turn comes."""
    if u.who == "user" and os.geteuid() == 0:
        return  # the holder does not listen to us
    path = next(pathlib.Path(tapsys.clean_env({}, u.who)["CORDON_STATE"], "run").glob("holder-*.sock"))
    top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-policy-", dir="/var/tmp"))
    (top / "narrow.yaml").write_text("rates: {concurrent: 1}\n")
    def start(source):
        p = subprocess.Popen(programs.command(["run", "--json", "--timeout", "20s", "--policy", str(top / "narrow.yaml"), "-"], u.who),
                             env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        p.stdin.write(source)
        p.stdin.close()
        return p

    def crowded_out():
        """What the second got, and how many warm children the two took."""
        u.full("strict")
        clients, leases = u.status()["clients"], u.status()["leases"]
        first = start(b"while True: pass\n")
        alone = until(lambda: u.template("strict").get("lent") == 1)
        second = start(b"print(1)\n")
        waits = until(lambda: u.status()["clients"] >= clients + 2)
        crowd = []
        for _ in range(256):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(str(path))
            crowd.append(s)
        first.send_signal(signal.SIGTERM)
        first.wait()
        for s in crowd:
            s.close()
        out = second.stdout.read()
        second.wait()
        return alone, waits, json.loads(out or "{}"), u.status()["leases"] - leases

    # a holder that does not answer within a tenth of a second is gone without, which a busy machine can bring about: not five times
    for _ in range(5):
        alone, waits, r, taken = crowded_out()
        if taken == 2:
            break
    u.ok(alone, "one program runs, and there is no second slot")
    u.ok(waits, "the next client has connected, and waits for a slot", u.status())
    u.ok(r.get("stdout") == "1\n" and taken == 2, "a client whose connection was lost in a crowd connects again, and has a warm child", r, u.status())
    shutil.rmtree(top)


# --- sessions ---------------------------------------------------------------------------------------

def interrupted_in_line(u):
    """An interrupt of a call that waits for a slot is for its program, which has not begun."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-policy-", dir="/var/tmp"))
    (top / "narrow.yaml").write_text("rates: {concurrent: 1}\n")

    def start(*words):
        return subprocess.Popen(programs.command([*words, "--events", "--policy", str(top / "narrow.yaml")], u.who),
                                env=tapsys.clean_env({}, u.who), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
    os.chmod(top, 0o755)
    s = u.new("--profile", "standard")
    for again in ("", " of the next call, too"):
        first = start("run", "--timeout", "10m", "-c", "while True: pass")
        first.stdout.readline()  # it has begun
        second = start("session", "run", s, "--timeout", "60s", "-c", "while True: pass")
        event = json.loads(second.stdout.readline())
        said = u("session", "interrupt", s)
        first.terminate()
        first.wait()
        rest = [json.loads(line) for line in second.stdout] if said.code == 0 else second.kill()
        second.wait()
        r = rest[-1]["result"] if rest else {}
        u.ok(event.get("what") == "queue" and (r.get("error") or {}).get("type") == "KeyboardInterrupt", "an interrupt of a call that waits for a slot reaches its program" + again, event, said, rest)
    u("session", "close", s)
    shutil.rmtree(top)


def sessions(u):
    s = u.new("--profile", "standard", "--env", "ONE=1")
    u.ok(re.fullmatch(r"s-[0-9a-f]{8}", s), "a session is made", s)
    u.cell(s, "import os, json\nx = {'a': [1, 2]}\ndef f(n):\n    return n * 2\nopen('/workspace/file', 'w').write('kept')\n")
    r = u.cell(s, "x['a'].append(f(21))\nx\n")
    u.ok(r["status"] == "ok" and r["value"] == "{'a': [1, 2, 42]}" and r["session"] == s, "variables live on, the last value comes back", r)
    u.ok(not tapsys.shape_faults(r.json), "a call has its shape", tapsys.shape_faults(r.json))
    r = u.cell(s, "open('/workspace/new', 'w').write('1')\nopen('/workspace/file', 'a').close()\nopen('/workspace/file', 'r+').write('k')\n")
    u.ok(r["files"] == [{"path": "/workspace/file", "bytes": 4, "change": "modified", "type": None, "saved": None}, {"path": "/workspace/new", "bytes": 1, "change": "created", "type": None, "saved": None}],
         "files are what this call touched", r["files"])
    time.sleep(0.05)
    u.ok(u.cell(s, "1\n")["files"] == [], "a call that touches no file lists none")
    r = u.cell(s, "open('/workspace/file').read(), os.environ['ONE']\n")
    u.ok(r["value"] == "('kept', '1')", "files and environment variables of a session live on", r)
    r = u.cell(s, "os.environ.get('TWO'), input()\n", "--env", "TWO=2", "--stdin", "/etc/hostname" if os.path.exists("/etc/hostname") else "/etc/passwd")
    u.ok(r["status"] == "ok" and r["value"].startswith("('2', '"), "a call has variables and input of its own", r)
    r = u.cell(s, "input()\n")
    u.ok((r["error"] or {}).get("type") == "EOFError", "a call's own input ends with the call", r)
    r = u.cell(s, "1 / 0\n")
    u.ok(r["status"] == "error" and r["error"]["type"] == "ZeroDivisionError" and r["exit_code"] == 1, "a call that raises is an error", r)
    r = u.cell(s, "x['a'][0]\n")
    u.ok(r["value"] == "1", "an error in a call does not end the session", r)
    r = u.cell(s, "FINAL(x['a'])\nx = None\n")
    u.ok(r["is_final"] is True and r["final"] == "[1, 2, 42]" and r["status"] == "ok", "FINAL in a call gives the answer of the session", r)
    r = u.cell(s, "def f(:\n")
    u.ok(r["status"] == "blocked" and r["error"]["type"] == "ValidationError", "what does not parse is refused", r)
    r = u.cell(s, "import sys\nsys.exit(3)\n")
    u.ok(r["exit_code"] == 3 and u.cell(s, "len(x['a'])\n")["value"] == "3", "sys.exit in a call does not end the session", r)
    strict = u.new()
    r = u.cell(strict, "y = 1\n")
    r = u.cell(strict, "import subprocess\n")
    u.ok(r["status"] == "blocked" and r["error"]["type"] == "REPLSecurityError" and r.code == exits.NEVER_RAN, "a call that the rules refuse is blocked", r)
    u.ok(u.cell(strict, "y\n")["value"] == "1", "a blocked call leaves the session as it was")
    u("session", "close", strict)
    r = u.cell(s, "for i in range(20000): print('ä' * 9)\n")
    u.ok(r["truncated"] and 90000 < len(r["stdout"]) <= 100100 and r["stdout_bytes"] == 20000 * 19, "100,000 characters of output", len(r["stdout"] or ""), r)
    r = u.cell(s, "for i in range(30): echo(i)\n", "--tool", "echo")
    r2 = u.cell(s, "for i in range(30): echo(i)\n", "--tool", "echo")
    u.ok(r["status"] == "ok" and r2["status"] == "error" and u.sessions()[s]["host_calls"] >= 50, "50 calls of tools, all calls together", r, r2)

    row = u.sessions()[s]
    u.ok(row["state"] == "idle" and row["memory_mb"] > 0.5 and row["files_bytes"] >= 4096 and row["profile"] == "standard" and row["role"] is None,
         "the list of sessions shows the memory and files of a session", row)
    big = u.cell(s, "hold = bytearray(40 * 1024 * 1024)\nfor i in range(0, len(hold), 4096): hold[i] = 1\n")
    u.ok(u.sessions()[s]["memory_mb"] > row["memory_mb"] + 35, "the memory of a session is counted in its list", row, u.sessions()[s], big)

    lines = [json.loads(line) for line in u("session", "export", s).out.splitlines()]
    u.ok(lines[0]["session"] == s and lines[0]["records"] == len(lines) - 1 and lines[0]["dropped"] == 0, "the export of a session counts its records", lines[0])
    u.ok(all({"call", "began", "ended", "source", "result"} <= set(l) for l in lines[1:]) and lines[2]["source"] == "x['a'].append(f(21))\nx\n"
         and lines[2]["result"]["value"] == "{'a': [1, 2, 42]}" and [l["call"] for l in lines[1:]] == list(range(1, len(lines))),
         "a line a call: source, result, times, in order", lines[2])
    r = u("session", "close", s)
    u.ok(r.code == 0 and s not in u.sessions(), "a closed session is no longer in the list", r)
    r = u.cell(s, "1\n")
    u.ok(r["status"] == "refused" and "closed" in r["reason"] and r.code == exits.NEVER_RAN, "a call of a closed session is refused, and says why", r)
    r = u("session", "export", s)
    u.ok(r.code == 0 and len(r.out.splitlines()) == len(lines), "the records of a closed session can still be read")
    r = u.cell("never-was", "1\n")
    u.ok(r["status"] == "refused" and "cordon session list` names those" in r["reason"], "a call of a session that never was is refused, and says how to find those there are", r)
    r = u("session", "new", "Not a name")
    u.ok(r.code == exits.NEVER_RAN, "a session name that is none is refused", r)


def session_ends(u):
    def timed(seconds):
        return u.cell(u.new("--profile", "standard", "timed"), "print('before')\nwhile True: pass\n", "--timeout", f"{int(1000 * seconds)}ms")
    r, s = tapsys.late_enough(timed, 0.3), "timed"
    u.ok(r["status"] == "timeout" and r["stdout"] == "before\n" and r.code == exits.LIMIT, "a call beyond its time limit ends as timeout", r)
    r = u.cell(s, "1\n")
    u.ok("wall time limit" in (r["reason"] or ""), "a time-out ends the session, and a later call says so", r)
    for name, source, status, words in (("memory", "x = []\nwhile True: x.append(bytearray(10**6))\n", ("memory",), None),
                                        ("exit", "import os\nos._exit(3)\n", ("error",), "exit"),
                                        ("signal", "import os\nos.kill(os.getpid(), 11)\n", ("crashed",), "signal 11"),
                                        ("garbage", "import os\nos.write(3, b'garbage')\nwhile True: pass\n", ("error",), "garbage")):
        s = u.new("--profile", "standard", "--memory", "128m", f"by-{name}")
        r = u.cell(s, source)
        over = u.cell(s, "1\n")
        if name == "memory":  # MemoryError is the program's own to survive; the session lives if it did
            u.ok(r["status"] == "memory" and over["status"] in ("ok", "refused"), f"{name}: {r['reason']}", r, over)
            u("session", "close", s)
        else:
            u.ok(r["status"] in status and over["status"] == "refused" and words in over["reason"], f"{name}: {over['reason']}", r, over)
    s = u.new("--idle", "300ms")
    until(lambda: s not in u.sessions())
    r = u.cell(s, "1\n")
    u.ok(r["status"] == "refused" and "idle for" in r["reason"] and "--idle" in r["reason"], f"idle: {r['reason']}", r)

    s = u.new("--profile", "standard", "left")
    client = subprocess.Popen(programs.command(["session", "run", s, "-"], u.who), env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE, cwd="/")
    client.stdin.write(b"while True: pass\n")
    client.stdin.close()
    u.ok(until(lambda: u.sessions().get(s, {}).get("state") == "busy"), "a call is under way")
    if u.who == "root":
        u.ok(until(lambda: re.search(r"Uid:\t[1-9]\d*\t[1-9]", proc(client.pid, "status"))), "the supervisor of root's call has no root's uid", proc(client.pid, "status")[:400])
    r = u.cell(s, "1\n")
    u.ok(r["status"] == "refused" and "another call" in r["reason"], "a second call of a busy session is refused", r)
    client.kill()
    client.wait()
    u.ok(until(lambda: s not in u.sessions()), "a session ends when the client of its call is killed")
    r = u.cell(s, "1\n")
    u.ok("client went away" in (r["reason"] or ""), "a later call is told that the session's client went away", r)

    s = u.new("--profile", "standard", "stuck")
    client = subprocess.Popen(programs.command(["session", "run", "--json", s, "-"], u.who), env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd="/")
    client.stdin.write(b"print('x')\nwhile True: pass\n")
    client.stdin.close()
    until(lambda: u.sessions().get(s, {}).get("state") == "busy")
    u.ok(u("session", "close", s).code == 0, "a session in a call can be closed")
    result = json.loads(client.stdout.read())
    u.ok(client.wait() == exits.by_signal(signal.SIGKILL) and result["status"] == "crashed" and result["reason"] == "closed", "the client of a session that is closed in a call is told why", result)

    s = u.new("--profile", "standard", "busy-threads")
    u.cell(s, "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()\n")

    def used():
        """CPU time of what has two threads, by pid."""
        pids = [p for p, n in ours().items() if n == "cordon-python" and "Threads:\t2" in proc(p, "status")]
        return {p: [int(x) for x in proc(p, "stat").rpartition(")")[2].split()[11:13]] for p in pids}

    def at_rest():
        before = used()
        time.sleep(0.5)
        return before if before == used() else None
    u.ok(until(at_rest), "a thread that was left behind uses no time between two calls", used())
    u.ok(u.cell(s, "1\n")["value"] == "1", "a thread that was left behind does not keep a session from its next call")
    u("session", "close", s)


def done_number():
    """The number of DONE on the wire: the place in the one table."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/msg.h").read_text()
    worker = re.search(r"#define WIRE_WORKER_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1)
    main = re.search(r"#define WIRE_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1).replace("WIRE_WORKER_MESSAGES(X)", worker)
    return re.findall(r"X\((\w+), ", main).index("DONE") + 1


def forks(u):
    u.new("--profile", "standard", "a")
    u.cell("a", "x = [1]\nopen('/workspace/f', 'w').write('a')\nopen('/tmp/t', 'w').write('a')\n")
    r = u("session", "fork", "a", "b")
    u.ok(r.code == 0 and r.out == "b\n", "a live session is forked", r)
    u.ok(u.cell("b", "x.append(2)\nopen('/workspace/f').read() + open('/tmp/t').read()\n")["value"] == "'aa'", "a branch has the files of its session")
    u.cell("b", "open('/workspace/f', 'w').write('b')\nopen('/tmp/t', 'w').write('b')\nopen('/workspace/only-b', 'w').close()\n")
    r = u.cell("a", "import os\nx, open('/workspace/f').read(), open('/tmp/t').read(), os.listdir('/workspace')\n")
    u.ok(r["value"] == "([1], 'a', 'a', ['f'])", "a session does not see what its branch changes", r)
    r = u("session", "fork", "b", "c")
    u.ok(r.code == 0 and u.cell("c", "x, open('/workspace/f').read()\n")["value"] == "([1, 2], 'b')", "a branch of a branch has the variables and files of its origin", r)
    u.ok(u.sessions()["c"]["generation"] == 2, "a branch of a branch is generation 2")
    u("session", "close", "a")
    u("session", "close", "b")
    r = u.cell("c", "x.append(3)\nx\n")
    u.ok(r["value"] == "[1, 2, 3]", "a branch outlives the sessions it came from", r)
    r = u("session", "fork", "c", "c")
    u.ok(r.code == exits.NEVER_RAN and "lives already" in r.err, "a fork under a name that is taken is refused", r)
    u.cell("c", "f = open('/workspace/open', 'w')\n")
    r = u("session", "fork", "c")
    u.ok(r.code == exits.NEVER_RAN and "open" in r.err, f"an open file refuses: {r.err.strip()}", r)
    u.cell("c", "f.close()\nimport mmap\nf = open('/workspace/f', 'r+b')\nm = mmap.mmap(f.fileno(), 1)\nf.close()\n")
    r = u("session", "fork", "c")
    u.ok(r.code == exits.NEVER_RAN and ("map" in r.err or "open" in r.err), f"a mapped one too: {r.err.strip()}", r)
    for what, cell, undo in (("a pipe", "import os\nends = os.pipe()\n", "os.close(ends[0]), os.close(ends[1])\n"),
                             ("a pair of sockets", "import socket\nends = socket.socketpair()\n", "ends[0].close(), ends[1].close()\n"),
                             ("an event loop", "import select\nends = select.epoll()\n", "ends.close()\n")):
        u.cell("c", "m.close()\n" + cell)
        r = u("session", "fork", "c")
        u.ok(r.code == exits.NEVER_RAN and "share" in r.err, f"{what}, too: {r.err.strip()}", r)
        u.cell("c", undo)
    u.cell("c", "m.close()\nimport threading, time\nt = threading.Thread(target=time.sleep, args=(1000,), daemon=True)\nt.start()\n")
    r = u("session", "fork", "c")
    u.ok(r.code == exits.NEVER_RAN and "thread" in r.err, f"a session with threads is not forked: {r.err.strip()}", r)
    u.ok(u.cell("c", "x\n")["value"] == "[1, 2, 3]", "a session whose fork was refused goes on")
    u("session", "close", "c")
    u.new("--profile", "open", "liar")
    u.cell("liar", "import os\nos.write(3, bytes([0x82, 0x18, %d, 0]))\nos.write(3, b'left over')\nos.read(0, 1)\n" % done_number())
    r = u.cell("liar", "print('not judged')\n")
    u.ok(r["status"] == "error" and r["error"]["type"] == "ProtocolError" and not r["stdout"], "what was left on the channel is not a stop from outside", r)
    u.new("--profile", "standard", "d")
    r = u.cell("d", "import os\ntry:\n    os.fork()\nexcept OSError as e:\n    print(e.errno)\n")
    u.ok(r["stdout"] == "1\n" and r["violations"], "a fork that nobody asked for is EPERM and a violation", r)
    r = u.cell("d", "import random\nrandom.seed\n1\n")
    u("session", "fork", "d", "e")
    draws = [u.cell(s, "import os\nos.urandom(8).hex(), random.random()\n")["value"] for s in ("d", "e")]
    u.ok(draws[0] != draws[1], "a branch draws other random numbers", draws)
    u("session", "close", "d")
    u("session", "close", "e")
    fresh = u.new("--profile", "standard")
    r = u("session", "fork", fresh)
    u.ok(r.code == 0 and u.cell(r.out.strip(), "1 + 1\n")["value"] == "2", "a session that has done nothing yet can be forked", r)
    for s in (fresh, r.out.strip()):
        u("session", "close", s)


def repl(u):
    r = u("repl", "--profile", "standard", text="x = 6\ndef f(n):\n    return n * x\n\nf(7)\nif x:\n  print('yes')\nelse:\n  print('no')\n\n[1,\n2]\n# nothing\n\n")
    u.ok(r.code == 0 and r.out == "42\nyes\n[1, 2]\n", "a REPL on a pipe: blocks by the parser's own rule", r)
    r = u("repl", text="x = 1\nFINAL(x)\nprint('not here')\n")
    u.ok(r.code == 0 and r.out == "1\n", "a REPL on a pipe ends with FINAL", r)
    r = u("repl", "--json", text="import subprocess\n1 +\n2\n")
    rows = [json.loads(line) for line in r.out.splitlines()]
    u.ok([x["status"] for x in rows] == ["blocked", "blocked", "ok"] and rows[2]["value"] == "2", "repl --json prints one object for each block", r)
    r = u("repl", "--timeout", f"{200 * tapsys.SLOW}ms", text="while True: pass\n\n1\n")
    u.ok(r.code == exits.LIMIT and "is over" in r.err, "a time limit ends the repl", r)
    s = u.new("--profile", "standard")
    u("repl", "--session", s, text="z = 5\n")
    u.ok(u.cell(s, "z\n")["value"] == "5", "repl --session works in a session that stays")
    u("session", "close", s)
    main, theirs = pty.openpty()
    p = subprocess.Popen(programs.command(["repl"], u.who), stdin=theirs, stdout=theirs, stderr=theirs, env=tapsys.clean_env({}, u.who), cwd="/", close_fds=True)
    os.close(theirs)
    seen = b""

    def read_until(word, times=1):
        nonlocal seen
        end = time.monotonic() + 20 * tapsys.SLOW
        while seen.count(word) < times and time.monotonic() < end:
            if select.select([main], [], [], 0.5)[0]:
                try:
                    seen += os.read(main, 4096)
                except OSError:
                    return

    read_until(b">>> ")
    os.write(main, b"for i in range(2):\n")
    read_until(b"... ")
    os.write(main, b"  print(i)\n")
    read_until(b"... ", 2)
    os.write(main, b"\n")
    read_until(b">>> ", 2)
    os.write(main, b"'\\x1b[31m'\n")
    read_until(b">>> ", 3)
    os.write(main, b"kept = 'kept ' * 2\n")
    read_until(b">>> ", 4)
    os.write(main, b"if kept:\n")
    read_until(b"... ", 3)
    p.send_signal(signal.SIGINT)  # what is typed is forgotten, the session is not
    read_until(b">>> ", 5)
    os.write(main, b"kept\n")
    read_until(b">>> ", 6)
    os.write(main, b"\x04")
    read_until(b"nothing more", 1)
    u.ok(p.wait(30) == 0 and b">>> " in seen and b"... " in seen and b"0\r\n1\r\n" in seen and b"'kept kept '" in seen and b"\x1b[31m" not in seen, "the repl on a terminal shows prompts, and no output acts on the terminal", seen)
    os.close(main)
    u.ok(not u.sessions(), "the repl leaves no session", u.sessions())


def environment(u):
    """Packages of a virtual environment that the policy names, cold and warm, one of them compiled."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-env-", dir="/var/tmp"))
    top.chmod(0o755)
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], stdout=subprocess.PIPE, text=True).stdout.strip()
    site = top / f"venv/lib/python{version}/site-packages"
    site.mkdir(parents=True)
    (top / "venv/pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    (site / "ours.py").write_text("answer = 42\n")
    compiled = sorted(pathlib.Path(f"/usr/lib/python{version}/lib-dynload").glob("[a-z_]*.so"), key=lambda f: f.stat().st_size)[0]
    (site / "built").mkdir()
    (site / "built/__init__.py").write_text("")
    shutil.copy(compiled, site / "built")
    module = "built." + compiled.name.split(".")[0]
    policy = top / "config/cordon/policy.yaml"
    policy.parent.mkdir(parents=True)
    policy.write_text(tapsys.POLICY + f"python: {{environment: {top}/venv, preload: [ours]}}\n")
    if u.who == "user" and os.geteuid() == 0:
        os.chown(policy, tapsys.ROOTLESS, tapsys.ROOTLESS)
    env = {"XDG_CONFIG_HOME": str(top / "config")}
    program = f"import ours, sys, {module}\nprint(ours.answer, 'pandas' in sys.modules, ours.__file__, {module}.__file__)\ntry:\n  import numpy\nexcept ImportError:\n  print('no other')\n"
    wanted = f"42 False /cordon-packages/ours.py /cordon-packages/built/{compiled.name}\nno other\n"

    def run(profile="standard"):
        return u("run", "--json", "--profile", profile, "-", text=program, env=env)

    def printed(r):
        return (r.json or {}).get("stdout", "")

    r = run()
    u.ok(r["status"] == "ok" and printed(r) == wanted, "packages of an environment, without a pool", r)
    r = run("strict")
    u.ok(r["status"] == "blocked", "strict has no packages of an environment", r)
    u("pool", "start", "--profile", "standard", "--packages", "--size", "1", env=env)
    ready = lambda: (lambda t: t if t and t[0].get("ready") else None)((u("pool", "status", "--json", env=env).json or {}).get("templates"))
    u.ok(until(ready, 60), "an environment has a holder of its own", u("pool", "status", env=env))
    s = u("session", "new", "--profile", "standard", "--packages", env=env).out.strip()
    r = u("session", "run", "--json", s, "-", text="import sys\n'ours' in sys.modules, __import__('ours').answer\n", env=env)
    u.ok(r["value"] == "(True, 42)", "a session has the environment's module loaded ahead", r)
    r = run()
    u.ok(r["status"] == "ok" and printed(r) == wanted, "a run from the pool has the environment's packages", r)
    r = u("run", "--rw", str(site), "-", text="print(1)\n", env=env)
    u.ok(r.code == exits.NEVER_RAN and "python.environment" in r.err, "no program may write the folder of python.environment", r)
    u.ok(u("pool", "stop", "--force", env=env).code == 0, "pool stop --force ends the holder of an environment")
    site.chmod(0o777)
    r = run()
    u.ok(r.code == exits.NEVER_RAN and "is writable for others" in r.err + r.out, "an environment that others may write is refused", r)
    site.chmod(0o755)
    policy.write_text(tapsys.POLICY + f"python: {{environment: {top}}}\n")
    r = run()
    u.ok(r.code == exits.NEVER_RAN and "is no environment of this Python" in r.err + r.out, "a folder that is no environment is named", r)
    policy.write_text("python: {preload: [\"a b\"]}\n")
    r = run()
    u.ok(r.code == exits.NEVER_RAN and "'a b' is no name of a module" in r.err, "a preload that is no module's name is refused by name", r)
    shutil.rmtree(top)


def changing_policy(u):
    """Who lives on between runs takes up a changed policy by himself; a broken one changes nothing."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-policy-", dir="/var/tmp"))
    path = top / "mine.yaml"

    def write(text):
        path.write_text(text)
        path.chmod(0o644)

    top.chmod(0o755)
    write("sessions: {timeout: 60s}\n")
    if u.who == "user" and os.geteuid() == 0:
        os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
    p = subprocess.Popen(programs.command(["repl", "--json", "--no-wait", "--policy", str(path)], u.who), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tapsys.clean_env({}, u.who), cwd="/")

    def block(text):
        p.stdin.write(text)
        p.stdin.flush()
        return json.loads(p.stdout.readline() or "{}")

    seen = [block(b"x = 1\n").get("status")]
    write("approval: {mode: HITL}\n")
    r = block(b"x + 1\n")
    seen += [r.get("status"), (r.get("violations") or [{}])[0].get("rule")]
    write("approval: {mode: sometimes}\n")
    seen.append(block(b"x + 2\n").get("status"))
    write("sessions: {timeout: 60s}\n")
    seen.append(block(b"x + 3\n").get("value"))
    p.stdin.close()
    err = p.stderr.read().decode()
    u.ok(p.wait(30) == 0 and seen == ["ok", "denied", "gate.approval", "denied", "4"], "a changed policy counts from the next block on", (seen, err))
    u.ok(err.count("stays in force") == 1 and "mine.yaml:1:18" in err and "sometimes" in err, "a broken policy is named with its place, once, and changes nothing", err)
    kept = (json.loads(line) for line in u("audit", "export").out.splitlines())
    words = [e["args"]["event"] for e in kept if e["kind"] == "policy"]
    u.ok(words == ["policy.changed", "policy.broken", "policy.changed"], "the audit has the change, the broken policy and the repair", words)
    write("ceilings: {timeout: 1m}\n")
    made = u("session", "new", "--policy", path, "low")
    r = u("session", "run", "--policy", path, "low", "-c", "6 * 7")
    u.ok((r.code, r.out) == (0, "42\n"), "sessions work under a ceiling that is below the policy's own limit of their calls", made, r)
    u("session", "close", "low")
    shutil.rmtree(top)


def packages(u):
    if not os.path.exists("/usr/lib/python3/dist-packages/pandas/__init__.py"):
        tap.skip(f"{u.who}: packages", "no pandas")
        return
    u("pool", "start", "--profile", "standard", "--packages", "--size", "2")
    t = until(lambda: u.full("standard+packages"), 60)
    u.ok(t, "a template with packages has one thread", u.status())
    s = u.new("--profile", "standard", "--packages")
    r = u.cell(s, "import sys\n'pandas' in sys.modules\n")
    u.ok(r["value"] == "True", "a template with packages has them loaded", r)
    r = u.cell(s, "import pandas as pd, numpy as np\npd.DataFrame({'a': np.arange(4)}).sum().to_dict()\n")
    u.ok(r["value"] == "{'a': 6}", "packages of a template work in a session", r)
    r = u.cell(s, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig('figure.png')\n")
    u.ok(r["status"] == "ok" and any(f["path"] == "/workspace/figure.png" and f["bytes"] > 1000 for f in r["files"]), "a figure of matplotlib is in the files of the result", r)
    r = u("session", "fork", s)
    u.ok(r.code == 0, "a session with packages can be forked", r)
    for name in u.sessions():
        u("session", "close", name)


def ends(u):
    s = u.new()
    r = u("pool", "stop")
    u.ok(r.code == 1 and "1 session lives" in r.err, "a session keeps the holder", r)
    r = u("pool", "stop", "--force")
    u.ok(r.code == 0 and until(lambda: not ours()), "pool stop --force ends the holder and its sessions, and no process is left", r, ours())
    r = u.cell(s, "1\n")
    u.ok(r["status"] == "refused" and r.code == exits.NEVER_RAN, "without a holder there is no session", r)
    r = u("run", "--json", "-", text="print(1)\n")
    u.ok(r["stdout"] == "1\n", "a program runs without a holder", r)

    u("pool", "start", "--profile", "strict", "--size", "2")
    u.new("--profile", "standard", "doomed")
    u.full("strict")
    holder = u.status()["pid"]
    os.kill(holder, signal.SIGKILL)
    u.ok(until(lambda: not ours()), "the holder is killed: everything it held dies with it", ours())
    u("pool", "start", "--profile", "strict", "--idle", "500ms")
    u.ok(until(lambda: u("pool", "status").code == 1, 30) and until(lambda: not ours()), "a holder that nobody asks ends by itself", ours())
    for idle in (0.5, 2, 8):  # a busy machine may take longer than that from one command to the next
        u("pool", "start", "--profile", "strict", "--idle", f"{int(1000 * idle)}ms")
        holder, s = u.status().get("pid"), u.new("--idle", f"{int(6000 * idle)}ms")
        time.sleep(3 * idle)
        lives = s in u.sessions()
        if lives and u.status().get("pid") == holder:
            break
        u("pool", "stop", "--force")
    u.ok(lives, "a holder does not end while a session lives", u.status())
    u.ok(until(lambda: u("pool", "status").code == 1, 30) and until(lambda: not ours()), "a holder ends when its last session is over", ours())


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")  # also when the test itself breaks
    pool(user)
    strangers(user)
    in_line(user)
    interrupted_in_line(user)
    sessions(user)
    session_ends(user)
    forks(user)
    repl(user)
    changing_policy(user)
    environment(user)
    packages(user)
    ends(user)
tap.done()
