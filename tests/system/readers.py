# SPDX-License-Identifier: Apache-2.0
"""Whoever reads what `cordon` writes: readers that stall, leave, or are slow; a disk without room.

Usage: readers.py BUILD. As root and as an ordinary user, each with a state folder of its own. A stalled reader is a
pipe that nobody reads. Nothing here is asserted by a time: what must happen is waited for while nobody reads."""
import atexit
import fcntl
import functools
import json
import os
import pathlib
import pty
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import exits
import tapsys

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and cordon leaves it so: as nohup asks

BUILD = sys.argv[1]
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
OURS = {(s.st_dev, s.st_ino): p.name for p in programs.bin.iterdir() for s in [p.stat()]}
LIMIT = ["--timeout", f"{tapsys.SLOW}s"]  # in which a program writes more than a pipe holds
until = functools.partial(tapsys.until, seconds=60)
MARK = b"\n[... output truncated ...]\n"
ENDLESS = {1: "while True: print('y' * 99)", 2: "while True: __import__('sys').stderr.write('y' * 99 + '\\n')"}
SHELL = {1: ["/usr/bin/yes"], 2: ["/bin/sh", "-c", f"while :; do echo {'y' * 99} >&2; done"]}


def below(pid):
    """{pid: name} of the processes that PID started, and those that they started."""
    parents, names = {}, {}
    for p in pathlib.Path("/proc").iterdir():
        try:
            if p.name.isdigit():
                fields = (p / "stat").read_text().rsplit(")", 1)[1].split()
                parents[int(p.name)] = int(fields[1])
                names[int(p.name)] = (p / "comm").read_text().strip()
        except OSError:
            pass
    found, more = {}, [pid]
    while more:
        at = more.pop()
        for child, parent in parents.items():
            if parent == at and child not in found:
                found[child] = names[child]
                more.append(child)
    return found


class State:
    """A state folder for one user, with the built-in policy: ten places."""

    def __init__(self, who):
        self.who = who
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-readers-", dir="/var/tmp"))
        atexit.register(shutil.rmtree, self.home, ignore_errors=True)
        self.dir = self.home / "state"
        self.dir.mkdir(mode=0o700)
        (self.home / "cordon").mkdir()
        policy = self.home / "cordon/policy.yaml"
        policy.write_text("version: 1\nrates: {executions: 1000, window: 1ms}\nbreakers: {failures: 1000}\n"
                          "audit: {sync: \"off\", duplicates: 0, failures: 0, slow_factor: 0, violations: 0}\n")
        for path in (self.home, self.dir, policy.parent, policy):
            os.chmod(path, 0o700)
            if who == "user" and os.geteuid() == 0:
                os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
        self.env = {"CORDON_STATE": str(self.dir), "XDG_CONFIG_HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.dir)}

    def run(self, *args, **more):
        return tapsys.cordon(programs, args, self.who, env=self.env, **more)

    def start(self, args, text=None, **streams):
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **streams}
        with tempfile.TemporaryFile() as source:
            source.write((text or "").encode())
            source.seek(0)
            return subprocess.Popen(programs.command(args, self.who), stdin=source, env=tapsys.clean_env(self.env, self.who),
                                    cwd="/", **streams)

    def records(self, kind):
        """Read as they stand: a line that is half written is not there yet."""
        found = []
        for p in sorted((self.dir / "audit").glob("*.jsonl")):
            for line in p.read_bytes().split(b"\n"):
                try:
                    found += [json.loads(line)]
                except ValueError:
                    pass
        return [r for r in found if r.get("kind") == kind]

    def ends(self):
        return [r["status"] for r in self.records("end")]

    def running(self):
        return (self.run("stop", "--list", "--json").json or {}).get("count")

    def close(self):
        self.run("pool", "stop")


class Stalled:
    """One start of cordon whose stream (1 or 2) goes into a pipe that nobody reads until `read`."""

    def __init__(self, state, args, text=None, stream=1):
        self.state, self.stream = state, stream
        self.other = tempfile.TemporaryFile()
        self.read_end, write_end = os.pipe()
        self.flags = fcntl.fcntl(write_end, fcntl.F_GETFL)
        self.write_end = write_end
        pair = ("stdout", "stderr") if stream == 1 else ("stderr", "stdout")
        self.process = state.start(args, text, **{pair[0]: write_end, pair[1]: self.other})

    def full(self):
        """The pipe has taken all that it can take."""
        p = select.poll()
        p.register(self.write_end, select.POLLOUT)
        return not p.poll(0)

    def waiting(self):
        return struct.unpack("i", fcntl.ioctl(self.read_end, termios.FIONREAD, b"1234"))[0]

    def read(self):
        """Everything, to its end; the exit status."""
        os.close(self.write_end)
        self.write_end = -1
        with os.fdopen(self.read_end, "rb") as f:
            data = f.read()
        self.read_end = -1
        return data, self.process.wait(60)

    def said(self):
        """What came on the other stream."""
        self.other.seek(0)
        return self.other.read()

    def close(self):
        for fd in (self.read_end, self.write_end):
            if fd >= 0:
                os.close(fd)
        self.read_end = self.write_end = -1
        self.other.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# --- the ways to run something ---------------------------------------------------------------------

def ways(state, stream):
    """(name, arguments, input) of every way in which a program's output goes to the caller as it comes."""
    yield "exec", ["exec", *LIMIT, "--", *SHELL[stream]], None
    yield "a cold run", ["run", *LIMIT, "--profile", "open"], ENDLESS[stream]
    state.run("pool", "start", "--profile", "open")
    until(lambda: "ready" in state.run("pool", "status").out)
    yield "a warm run", ["run", *LIMIT, "--profile", "open"], ENDLESS[stream]
    for name in ("first", "second"):
        state.run("session", "new", f"{name}{stream}", "--profile", "open")
    yield "a call of a session", ["session", "run", *LIMIT, f"first{stream}"], ENDLESS[stream]
    state.run("session", "fork", f"second{stream}", f"branch{stream}")
    yield "a call of a branch", ["session", "run", *LIMIT, f"branch{stream}"], ENDLESS[stream]
    yield "repl", ["repl", *LIMIT, "--profile", "open"], ENDLESS[stream] + "\n\n"


def a_stalled_reader(who, stream):
    state = State(who)
    name = {1: "stdout", 2: "stderr"}[stream]
    for way, args, text in ways(state, stream):
        before = len(state.ends())
        s = Stalled(state, args, text, stream)
        title = f"{who}: {way}, nobody reads its {name}"
        ended = until(lambda: len(state.ends()) > before)
        tap.ok(ended and state.ends()[-1] == "timeout", f"{title}: the time limit ends the run, and that is on record",
               state.ends()[before:], s.process.poll(), s.waiting())
        tap.ok(until(lambda: state.running() == 0), f"{title}: the slot of the run is free")
        tap.ok(until(lambda: not below(s.process.pid)), f"{title}: no process of the run is left",
               below(s.process.pid))
        tap.eq(fcntl.fcntl(s.write_end, fcntl.F_GETFL), s.flags, f"{title}: the caller's pipe is as it was")
        data, code = s.read()
        lines = set(data.replace(MARK, b"\n").split(b"\n")[1:-2])
        tap.ok(code in (exits.LIMIT, exits.NEVER_RAN) and len(data) > 70000 and len(lines - {b"y", b"y" * 99}) <= 3,
               f"{title}: a reader that comes back gets the whole of it", code, len(data), sorted(lines)[:5])
        s.close()
    state.close()


def big_results(who):
    """One JSON object that nobody reads."""
    state = State(who)
    state.run("session", "new", "s", "--profile", "open")
    code = "import sys\nsys.stdout.write('z' * 900000)\nsys.stderr.write('e' * 90000)"
    for way, args, text in (("exec", ["exec", "--json", "--", "/usr/bin/head", "-c", "900000", "/dev/zero"], None),
                            ("run", ["run", "--json", "--profile", "open"], code),
                            ("session run", ["session", "run", "--json", "--output", "1m", "s"], code),
                            ("repl", ["repl", "--json", "--output", "1m", "--profile", "open"],
                             "import sys\nx = sys.stdout.write('z' * 900000)\n")):
        before = len(state.ends())
        s = Stalled(state, args, text)
        title = f"{who}: {way} --json, nobody reads it"
        tap.ok(until(lambda: len(state.ends()) > before and state.ends()[-1] == "ok"), f"{title}: the end of the run is on record",
               state.ends())
        tap.ok(until(lambda: state.running() == 0), f"{title}: the slot of the run is free")
        data, code_ = s.read()
        objects = [json.loads(line) for line in data.splitlines()]
        tap.ok(code_ == 0 and objects and all(o["status"] == "ok" for o in objects), f"{title}: the result is whole when it is read",
               code_, data[:200])
        s.close()
    state.close()


def both_streams(who):
    """Events of both streams go by one descriptor, which nobody reads."""
    state = State(who)
    state.run("session", "new", "s", "--profile", "open")
    lines = "import sys\nfor n in range({}):\n    sys.stdout.write('z' * 5000)\n    sys.stderr.write('e' * 5000)"
    for way, args, what, count in (("run", ["run", "--events", "--output", "1m", "--profile", "open"], "less than the cap", 40),
                                   ("run", ["run", "--events", "--output", "1m", "--profile", "open"], "more than the cap", 300),
                                   ("session run", ["session", "run", "--events", "--output", "1m", "s"], "less than the cap", 40)):
        before = len(state.ends())
        s = Stalled(state, args, lines.format(count))
        title = f"{who}: {way} --events, nobody reads {what} of both streams"
        tap.ok(until(s.full if count > 40 else lambda: len(state.ends()) > before), f"{title}: {'the reader is behind' if count > 40 else 'the end of the run is on record'}")
        data, code = s.read()
        events = [json.loads(line) for line in data.splitlines()]
        told = {k: sum(len(e["text"]) for e in events if e["event"] == k) for k in ("stdout", "stderr")}
        tap.eq((code, state.ends()[before:]), (0, ["ok"]), f"{title}: the run ends as it would with a reader", events[-1:])
        tap.ok(min(told.values()) >= min(count * 5000, 1000000), f"{title}: what it wrote is there when it is read", told)
        s.close()
    state.close()


def ten_stalled(who):
    state = State(who)
    ten = [Stalled(state, ["exec", *LIMIT, "--", *SHELL[1 + i % 2]], stream=1 + i % 2) for i in range(10)]
    tap.ok(until(lambda: state.ends() == ["timeout"] * 10), f"{who}: ten runs whose readers stall end at their limit",
           state.ends())
    r = state.run("run", "--no-wait", "--json", text="print(11)")
    alive = [s.process.poll() is None for s in ten]
    tap.ok(r["stdout"] == "11\n" and all(alive), f"{who}: an eleventh runs at once while none of the ten was read", r.story(),
           alive)
    for s in ten:
        data, code = s.read()
        if code != exits.LIMIT or len(data) < 70000:
            tap.ok(False, f"{who}: one of the ten lost its output", code, len(data))
        s.close()
    # ten writers of one pipe: what one of them sees as room another one takes
    before = len(state.ends())
    read_end, write_end = os.pipe()
    shared = [state.start(["exec", *LIMIT, "--", "/usr/bin/yes"], stdout=write_end) for _ in range(10)]
    tap.ok(until(lambda: len(state.ends()) == before + 10), f"{who}: ten runs that share one pipe that nobody reads end, too",
           state.ends()[before:])
    tap.ok(until(lambda: state.running() == 0), f"{who}: ten runs that share a pipe leave no slot taken")
    os.close(read_end)
    os.close(write_end)
    tap.ok(all(p.wait(60) is not None for p in shared), f"{who}: ten runs that share a pipe end when the reader leaves")
    state.close()


def a_stop(who):
    """`cordon stop` while nobody reads."""
    state = State(who)
    state.run("session", "new", "s", "--profile", "open")
    for way, args, text in (("exec", ["exec", "--timeout", "10m", "--", "/usr/bin/yes"], None),
                            ("run", ["run", "--timeout", "10m", "--profile", "open"], ENDLESS[1]),
                            ("session run", ["session", "run", "--timeout", "10m", "s"], ENDLESS[1])):
        s = Stalled(state, args, text)
        title = f"{who}: {way} that nobody reads and `cordon stop`"
        tap.ok(until(lambda: s.full() and state.running() == 1), f"{title}: the program runs, and its reader stalls")
        r = state.run("stop", "--why", "the test says so", "--json")
        ends = [x["end"] for x in (r.json or {}).get("runs", [])]
        tap.ok(r.code == 0 and ends == ["ended"], f"{title}: the run ends by itself and need not be killed", r.story())
        last = (state.records("end") or [{}])[-1]
        tap.ok(last.get("error_type") == "Stopped" and not state.records("lost"), f"{title}: the end of the run is on record, not lost", last)
        data, code = s.read()
        said = s.said().decode()
        tap.ok(code == exits.STOPPED and "stopped by uid " in said and "the test says so" in said and "cordon resume" in said,
               f"{title}: the run says who stopped it, why, and what to do", code, said)
        tap.ok(len(data) >= 60000 and set(data.replace(MARK, b"")) <= set(b"y\n"), f"{title}: what it wrote before is there", data[-50:])
        s.close()
        state.run("resume")
    before = len(state.records("begin"))
    p = state.start(["run", "--json", "--timeout", "10m", "--profile", "open"], "while True: pass", stdout=subprocess.PIPE)
    until(lambda: state.running() == 1 and len(state.records("begin")) > before)
    state.run("stop")
    out = p.communicate(timeout=60)[0]
    message = json.loads(out)["error"]["message"]
    tap.ok(p.returncode == exits.STOPPED and "stopped by uid " in message and "Z" in message and "cordon resume" in message,
           f"{who}: a run that `cordon stop` ended says so in its JSON object", message)
    state.run("resume")
    state.close()


def signals(who):
    """Whoever waits for a stalled reader can still be ended."""
    state = State(who)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        s = Stalled(state, ["exec", *LIMIT, "--", "/usr/bin/yes"])
        tap.ok(until(lambda: state.ends()[-1:] == ["timeout"]), f"{who}: a run has ended and its output was not read")
        def ended():  # a signal that comes while the run is cleaned up is still the run's: then it is sent again
            s.process.send_signal(number)
            time.sleep(0.05)
            return s.process.poll() is not None
        until(ended)
        tap.eq(s.process.returncode, -number, f"{who}: {number.name} ends a cordon that waits for its reader")
        s.close()
        for p in (state.dir / "audit").glob("*.jsonl"):
            p.unlink()
    state.close()


# --- readers that leave, and slow ones ---------------------------------------------------------------

def a_reader_that_leaves(who):
    state = State(who)
    state.run("session", "new", "s", "--profile", "open")
    chance = random.Random(7)
    started = 0
    for way, args, text in (("exec", ["exec", "--timeout", "10m", "--", "/usr/bin/yes"], None),
                            ("exec, on stderr", ["exec", "--timeout", "10m", "--", *SHELL[2]], None),
                            ("run", ["run", "--timeout", "10m", "--profile", "open"], ENDLESS[1]),
                            ("session run", ["session", "run", "--timeout", "10m", "{}"], ENDLESS[1])):
        stream = 2 if "stderr" in way else 1
        bad = []
        # less than the cap, with what the pipe holds: 10 MB, or 100,000 characters in a session
        most = [4095] if "{}" in args else [65536, chance.randrange(1 << 16), chance.randrange(1 << 20), 5 << 20]
        for take in (0, 1, 4096, *most):
            if "{}" in args:  # the call ends the session
                state.run("session", "new", f"s{take}", "--profile", "open")
            s = Stalled(state, [a.format(f"s{take}") for a in args], text, stream)
            os.close(s.write_end)
            s.write_end = -1
            left = take
            while left and (got := os.read(s.read_end, min(left, 65536))):
                left -= len(got)
            os.close(s.read_end)
            s.read_end = -1
            started += 1
            try:
                s.process.wait(60 * tapsys.SLOW)
            except subprocess.TimeoutExpired:
                bad.append(f"after {take} bytes: it goes on")
            if len(state.ends()) != started:
                bad.append(f"after {take} bytes: {len(state.ends())} ends of {started}")
            if s.process.returncode != exits.READER_LEFT:
                bad.append(f"after {take} bytes: exit status {s.process.returncode}")
            if s.said() and b" is over: stopped" not in s.said():  # a session that ends is worth a line
                bad.append(f"after {take} bytes it said {s.said()[:100]!r}")
            s.close()
        tap.ok(not bad, f"{who}: {way}: a reader that leaves after any number of bytes ends the run, without complaint, on record", *bad)
        tap.ok(set(state.ends()) <= {"error"}, f"{who}: {way}: a run whose reader leaves ends without a limit", state.ends())
    tap.eq(state.running(), 0, f"{who}: nothing runs when all readers have left")
    r = state.run("audit", "verify")
    tap.eq(r.code, 0, f"{who}: the audit is whole after readers that left", r.err)
    state.close()


def a_slow_reader(who):
    state = State(who)
    size = 12 << 20
    words = "".join(f"{i:07d}\n" for i in range(size // 8)).encode()
    s = Stalled(state, ["run", "--profile", "open", "--timeout", "10m", "--cpu", "10m"],
                f"print(''.join('%07d\\n' % i for i in range({size // 8})), end='')")
    tap.ok(until(s.full), f"{who}: a program writes more than the cap to a reader that is slow")
    data, code = s.read()
    head = (10 << 20) - 65536
    tap.ok(code == 0 and data == words[:head] + MARK + words[-65536:], f"{who}: a slow reader gets everything up to the cap",
           code, len(data))
    s.close()
    # more than the cap is not even taken from a guest whose reader has not read what it is owed
    s = Stalled(state, ["exec", "--timeout", "10m", "--", "/usr/bin/yes"])

    def asleep():
        guest = [pid for pid, name in below(s.process.pid).items() if name == "yes"]
        try:
            fields = pathlib.Path(f"/proc/{guest[0]}/stat").read_text().rsplit(")", 1)[1].split()
        except (IndexError, OSError):
            return None
        return fields[0] == "S" and fields[11:13]

    def settled():
        before = asleep()
        time.sleep(0.2)
        return before and before == asleep()
    tap.ok(until(settled), f"{who}: a guest that wrote more than the cap waits for its reader", asleep())
    status = pathlib.Path(f"/proc/{s.process.pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    tap.ok(peak < 64 << 10, f"{who}: what is held for a stalled reader is bounded: below 64 MB for a cap of 10", f"{peak} KB")
    tap.figure(f"peak memory of a supervisor whose reader stalls at a cap of 10 MB: {peak >> 10} MB")
    s.close()
    state.close()


def complaints(who):
    """Our own lines on stderr, more than a pipe takes."""
    state = State(who)
    text = "".join(f"import nothing{i}\n" for i in range(300))
    want = state.run("run", text=text)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    filled = 0
    try:
        while True:
            filled += os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    p = state.start(["run"], text, stderr=write_end)
    tap.ok(until(lambda: state.ends() == ["blocked"] * 2), f"{who}: a run is refused for hundreds of reasons, and nobody reads them",
           state.ends())
    tap.ok(until(lambda: state.running() == 0), f"{who}: the slot of a refused run is free")
    os.close(write_end)
    with os.fdopen(read_end, "rb") as f:
        data = f.read()[filled:].decode()
    tap.ok(p.wait(60) == want.code == exits.NEVER_RAN and len(data) > 8192 and data == want.err, f"{who}: all reasons of a refusal are there when they are read",
           p.returncode, len(data), len(want.err))
    state.close()


def a_pipe_that_does_not_block(who):
    """The caller's own end may be one that says EAGAIN instead of waiting: others set that, and it is theirs."""
    state = State(who)
    shown = state.run("policy", "show").out.encode()
    for way, args, want in (("exec", ["exec", "--", "/usr/bin/head", "-c", "1000000", "/dev/zero"], bytes(1000000)),
                            ("policy show", ["policy", "show"], shown)):
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        filled = 0
        try:
            while True:
                filled += os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            pass
        p = state.start(args, stdout=write_end)

        def waits():
            """It has ended, or sleeps and uses no time."""
            try:
                fields = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                return True
            return p.poll() is not None or (fields[0] == "S" and not below(p.pid) and fields[11:13])

        def still():
            before = waits()
            time.sleep(0.2)
            return before and before == waits()
        until(still)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as f:
            data = f.read()
        tap.ok(p.wait(60) == 0 and data[filled:] == want, f"{who}: {way} to a full pipe that does not block loses nothing",
               p.returncode, len(data) - filled, len(want))
    state.close()


def a_terminal(who):
    """^S at a terminal is a reader that stalls."""
    state = State(who)
    master, slave = pty.openpty()
    if os.geteuid() == 0 and who == "user":
        os.fchmod(slave, 0o600)  # root's terminal, as after `su`
    termios.tcflow(slave, termios.TCOOFF)
    p = state.start(["exec", *LIMIT, "--output", "200k", "--", "/usr/bin/yes"], stdout=slave, stderr=slave)
    tap.ok(until(lambda: state.ends() == ["timeout"]), f"{who}: a run at a terminal that was stopped (^S) ends at its limit",
           state.ends())
    termios.tcflow(slave, termios.TCOON)
    os.close(slave)
    data = b""
    while True:
        try:
            data += os.read(master, 65536)
        except OSError:  # nobody has the other side any more
            break
    shown = data.replace(b"\r", b"").replace(MARK, b"\n").split(b"\n")
    tap.ok(p.wait(60) == exits.LIMIT and set(shown[:-2]) <= {b"y", b""} and b"timeout: " in shown[-2],
           f"{who}: the output to a stopped terminal comes in order when the terminal goes on (^Q)", p.returncode, data[-200:])
    os.close(master)
    state.close()


# --- a disk without room -------------------------------------------------------------------------

def commands():
    """The subcommands, as `cordon --help` lists them."""
    out = subprocess.run([programs.cordon, "--help"], stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[0] for line in out.splitlines() if line.startswith("  ")]


def printing(state):
    """(arguments, input) of everything that prints: what one row changes the next ones need."""
    last = state.records("end")[-1]["execution_id"]
    (state.home / "bad.yaml").write_text("version: 1\nlimits: {timeout: never}\n")
    os.chmod(state.home / "bad.yaml", 0o644)
    os.chmod(state.home, 0o755)
    rows = [(["exec", "--", "/bin/echo", "hello"], None), (["exec", "--json", "--", "/bin/true"], None),
            (["run"], "print(1)"), (["run", "--json"], ""), (["run", "--json"], "import socket"),
            (["check"], "import subprocess"), (["check", "--json"], "x = 1"), (["check", "--json"], "import subprocess"),
            (["check", "--lang", "expr", "-e", "ctx['a'] == 1"], None),
            (["check", "--lang", "expr", "--json", "-e", "1 +"], None),
            (["eval", "1 < 2"], None), (["eval", "--json", "1 < 2"], None), (["eval", "--prompt"], None),
            (["session", "new", "another"], None), (["session", "new", "--json"], None), (["session", "list"], None),
            (["session", "list", "--json"], None), (["session", "run", "s"], "print(1)"), (["session", "run", "s"], "6 * 7"),
            (["session", "run", "--json", "s"], "1"), (["session", "run", "--json", "none"], "1"),
            (["session", "fork", "s"], None), (["session", "fork", "--json", "s"], None), (["session", "export", "s"], None),
            (["repl"], "print(1)\n"), (["repl", "--json"], "1\n"), (["pool", "status"], None), (["pool", "status", "--json"], None),
            (["workspace", "create", "w"], None), (["workspace", "list"], None), (["workspace", "list", "--json"], None),
            (["workspace", "log", "w"], None), (["workspace", "snapshot", "w", "--json"], None), (["workspace", "export", "w", "--tar", "-"], None),
            (["policy", "show"], None), (["policy", "show", "--json"], None), (["policy", "show", "--yaml"], None),
            (["policy", "check", str(state.home / "bad.yaml")], None),
            (["policy", "check", "--json", str(state.home / "bad.yaml")], None),
            (["audit", "tail"], None), (["audit", "tail", "--json"], None), (["audit", "show", last], None),
            (["audit", "export"], None), (["audit", "verify"], None), (["audit", "verify", "--json"], None),
            (["doctor"], None), (["doctor", "--json"], None),
            (["escalate", "--category", "CODE", "--attempt", "1"], None),
            (["escalate", "--category", "CODE", "--attempt", "1", "--json"], None),
            (["monitor"], "a text\n"), (["monitor", "--every", "1"], "a text of words\n"), (["serve", "--print-config", "claude"], None),
            (["stop", "--list"], None), (["stop", "--list", "--json"], None), (["stop"], None), (["resume"], None),
            (["stop", "--json"], None), (["resume", "--json"], None), (["--help"], None), (["--version"], None)]
    if (programs.bin / "cordon-approvals").exists():
        rows += [(["approve", "list", "--json"], None)]
    return rows + [([c, "--help"], None) for c in commands()]


def a_full_disk(who):
    state = State(who)
    state.run("pool", "start")
    state.run("session", "new", "s")
    state.run("run", text="print(1)")
    want = "standard output: No space left on device"
    rows = printing(state)
    # proxy prints its help alone
    missing = set(commands()) - {a[0] for a, _ in rows if a[1:] != ["--help"]} - {"proxy"} - \
        ({"approve"} if not (programs.bin / "cordon-approvals").exists() else set())
    tap.ok(not missing, f"{who}: every subcommand of cordon is in the table of what prints", sorted(missing))
    for args, text in rows:
        with open("/dev/full", "wb") as full, tempfile.TemporaryFile() as err:
            code = state.start(args, text, stdout=full, stderr=err).wait(60 * tapsys.SLOW)
            err.seek(0)
            said = err.read().decode()
        shown = " ".join(a.replace(str(state.home), "DIR") for a in args[:5]) if args[:2] != ["audit", "show"] else "audit show"
        tap.ok(code != 0 and said.count(want) == 1, f"{who}: cordon {shown} to a full disk fails, and says why", code, said)
    with open("/dev/full", "wb") as full:
        code = state.start(["exec", "--", "/bin/sh", "-c", "echo hello >&2"], stderr=full).wait(60)
    tap.ok(code != 0, f"{who}: a lost line of stderr is no success either", code)
    with open("/dev/full", "wb") as full:
        code = state.start(["exec", "--", "/bin/true"], stdout=full, stderr=full).wait(60)
    tap.eq(code, 0, f"{who}: who has nothing to say loses nothing")
    state.close()


def a_small_disk():
    """A file system that fills up in the middle, as far as we may mount one."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cordon-small-", dir="/tmp"))
    command = ["/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c",
               f"mount -t tmpfs -o size=256k none {folder} && \"$@\" > {folder}/out; r=$?; wc -c < {folder}/out >&2; exit $r", "sh"]
    state = State("root")
    for _ in range(200):  # records enough
        state.run("exec", "--", "/bin/true")
    for way, args in (("exec", ["exec", "--", "/usr/bin/head", "-c", "1000000", "/dev/zero"]),
                      ("exec --json", ["exec", "--json", "--", "/usr/bin/seq", "100000"]),
                      ("audit export", ["audit", "export"])):
        p = subprocess.run([*command, *programs.command(args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=tapsys.clean_env(state.env), timeout=60 * tapsys.SLOW)
        said = p.stderr.decode()
        tap.ok(p.returncode == 1 and said.count("standard output: No space left on device") == 1 and "262144" in said,
               f"root: {way} to a file system that fills up fails, and says why", p.returncode, said)
    folder.rmdir()
    state.close()


tapsys.honest_first(tap, programs)
only = sys.argv[2:]
for user in tapsys.users():
    for part in (a_stalled_reader, big_results, both_streams, ten_stalled, a_stop, signals, a_reader_that_leaves, a_slow_reader,
                 complaints, a_pipe_that_does_not_block, a_terminal, a_full_disk):
        if only and part.__name__ not in only:
            continue
        if part is a_stalled_reader:
            part(user, 1)
            part(user, 2)
        else:
            part(user)
if os.geteuid() == 0 and (not only or "a_small_disk" in only):
    a_small_disk()
tap.done()
