# SPDX-License-Identifier: Apache-2.0
"""What a session may do between two calls, and what one call may leave to the next: nothing.

Usage: session_rest.py BUILD. As root and as an ordinary user, in sessions and in branches of them."""
import atexit
import contextlib
import json
import os
import re
import pathlib
import signal
import subprocess
import sys
import tempfile
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


# --- standard input -----------------------------------------------------------------------------------

def file_with(text):
    fd, path = tempfile.mkstemp(dir=programs.dir)
    os.write(fd, text.encode())
    os.fchmod(fd, 0o644)
    os.close(fd)
    return path


def own_input(u, s, what):
    """Each call reads what it was given, whatever the call before left unread."""
    first, second = file_with("one\ntwo\nthree\n"), file_with("four\nfive\n")
    read_all = "import sys\nsys.stdin.read()\n"
    r = u.cell(s, "input()\n", "--stdin", first)
    u.ok(r["value"] == "'one'", f"{what}: a call reads its own input", r)
    r = u.cell(s, read_all, "--stdin", second)
    u.ok(r["value"] == r"'four\nfive\n'", f"{what}: the next call does not get the lines that the call before left unread", r)
    u.cell(s, "input()\n", "--stdin", first)
    r = u.cell(s, read_all, "--timeout", "10s")
    u.ok(r["value"] == "''", f"{what}: a call without an input is at the end of its input at once", r)
    u.cell(s, "import sys\nfrom sys import stdin\nstdin.readline()\n", "--stdin", first)
    r = u.cell(s, "stdin.readline(), sys.stdin is stdin\n", "--stdin", second)
    u.ok(r["value"] == r"('four\n', True)", f"{what}: a reader that the guest kept reads the input of the call", r)
    u.cell(s, "raw = sys.stdin.buffer\nraw.read(2)\n", "--stdin", first)
    r = u.cell(s, "raw.read()\n", "--stdin", second)
    u.ok(r["value"] == r"b'four\nfive\n'", f"{what}: a reader of bytes that the guest kept reads the input of the call", r)
    u.cell(s, "import os\nos.close(0)\n", "--stdin", first)
    r = u.cell(s, "input()\n", "--stdin", second)
    u.ok(r["value"] == "'four'", f"{what}: a call after one that closed its input has its own", r)
    u.cell(s, "import io\nsys.stdin = io.StringIO('of the guest')\n", "--stdin", first)
    r = u.cell(s, "sys.stdin.read()\n", "--stdin", second)
    u.ok(r["value"] == "'of the guest'", f"{what}: what the guest put in the place of its input stays there", r)
    u.cell(s, "sys.stdin = sys.__stdin__\n")


def inputs(u):
    s = u.new("--profile", "standard")
    own_input(u, s, "session")
    u.cell(s, "input()\n", "--stdin", file_with("left\nbehind\n"))
    branch = u("session", "fork", s).out.strip()
    r = u.cell(branch, "sys.stdin.read()\n", "--stdin", file_with("new\n"))
    u.ok(r["value"] == r"'new\n'", "a branch does not get the lines that its session left unread", r)
    own_input(u, branch, "branch")
    r = u.cell(s, "sys.stdin.read()\n", "--stdin", file_with("old\n"))
    u.ok(r["value"] == r"'old\n'", "a session that was forked does not get the lines that it left unread before", r)
    for name in (s, branch):
        u("session", "close", name)
    r = u("repl", "--profile", "standard", "--stdin", file_with("a\nb\n"), text="x = input()\ny = input()\nx, y\n")
    u.ok("('a', 'b')" in r.out, "the blocks of one repl read one input, line after line", r)


# --- rest ---------------------------------------------------------------------------------------------

# The worker waits for its next call with the interpreter's lock: only a thread that works without it could go on.
SPIN = """import hashlib, threading
threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2000000000), daemon=True).start()
"""


def guests(state):
    """Processes of workers in this state of /proc/PID/stat."""
    return [pid for pid, name in processes.all().items() if name == "cordon-python" and state_of(pid) == state]


def state_of(pid):
    return (proc(pid, "stat").rpartition(")")[2].split() or ["gone"])[0]


def cpu_seconds(pid):
    """What it has used, or None when it is gone."""
    fields = proc(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else None


def stopped_guest(before):
    """The one worker that rests now and did not before."""
    def found():
        new = set(guests("T")).difference(before)
        return new.pop() if len(new) == 1 else None
    return until(found)


def records(u, session):
    """What the audit has of a session beside its calls: (event, why) of each record."""
    found = []
    for p in sorted(pathlib.Path(tapsys.House.of(u.who)["CORDON_STATE"], "audit").glob("*.jsonl")):
        for line in p.read_bytes().splitlines():
            r = json.loads(line)
            if r["kind"] == "session" and r["session"] == session:
                found.append(r)
    return found


def ends(u, session):
    return [r for r in records(u, session) if r["args"].get("event") == "ended"]


def let_run(guest):
    """Undoes the stop from outside, as a guest that found a way would, until it has used more than a stop can take."""
    before = cpu_seconds(guest)
    os.kill(guest, signal.SIGCONT)

    def used():
        now = cpu_seconds(guest)  # read once: the holder may end the guest between two reads
        return now is None or now > before + 0.5
    return until(used)


def does_not_rest(u, s, guest, what):
    used = let_run(guest)
    u.ok(used, f"{what}: (the guest was made to run between two calls)", proc(guest, "stat"))
    r = u.cell(s, "1\n")
    u.ok(r["status"] == "refused" and r["layer"] == "resources" and r.rules() == ["limit.rest"] and "CPU time between two calls" in (r["reason"] or "")
         and r.code == exits.NEVER_RAN, f"{what}: a session that used CPU time while it rested is ended and says so by rule, and the call is not run", r)
    u.ok(until(lambda: state_of(guest) in ("gone", "Z")), f"{what}: the process of a session that did not rest is gone")
    r = u("session", "run", "--json", s, "-", text="1\n")
    u.ok(r.rules() == ["limit.rest"], f"{what}: later calls of a session that did not rest name the rule too", r)
    u("session", "list")
    got = ends(u, s)
    u.ok(len(got) == 1 and "CPU time between two calls" in got[0]["args"]["from"] and got[0]["layer"] == "resources"
         and any("limit.rest" in v for v in got[0]["security_violations"]), f"{what}: the end of a session that did not rest is on record once, with the rule", got)


def rest(u):
    before = guests("T")
    s = u.new("--profile", "standard")
    u.cell(s, SPIN)
    guest = stopped_guest(before)
    used = cpu_seconds(guest)
    time.sleep(2)
    still = cpu_seconds(guest)
    r = u.cell(s, "import time\nbefore = time.process_time()\nwhile time.process_time() < before + 0.2: pass\nthreading.active_count()\n")
    u.ok(r["status"] == "ok" and r["value"] == "2" and still == used,
         "a session whose thread works without end rests for 2 s without using CPU time, and goes on", r, used, still)
    # a fork needs a session without threads: the branch spins by itself afterwards
    quiet = u.new("--profile", "standard")
    other = stopped_guest([*before, guest])
    branch = u("session", "fork", quiet).out.strip()
    u.cell(branch, SPIN)
    branched = stopped_guest([*before, guest, other])
    does_not_rest(u, s, guest, "session")
    does_not_rest(u, branch, branched, "branch")
    r = u.cell(quiet, "6 * 7\n")
    u.ok(r["value"] == "42", "the session that the branch came from goes on", r)
    os.kill(other, signal.SIGCONT)
    time.sleep(1.5)  # more than one look of the holder
    r = u.cell(quiet, "6 * 7\n")
    u.ok(r["value"] == "42", "a session that was continued and used no CPU time goes on", r)
    u("session", "close", quiet)


# --- the second clock -----------------------------------------------------------------------------------

# A file that it holds open tells it from a template, which uses CPU time of its own when it starts.
BUSY = """import time
mark = open('/workspace/at-work', 'w')
time.sleep(600)
"""


def start(u, *args, text):
    client = subprocess.Popen(programs.command(args, u.who), env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/")
    client.stdin.write(text.encode())
    client.stdin.close()
    client.stdin = None
    return client


def worker_at_work():
    """The worker that runs BUSY."""
    def holds_the_mark(pid):
        try:
            return any(os.readlink(f).endswith("/at-work") for f in pathlib.Path(f"/proc/{pid}/fd").iterdir())
        except OSError:  # it has ended meanwhile
            return False
    return until(lambda: next((pid for pid, name in processes.all().items() if name == "cordon-python" and holds_the_mark(pid)), None))


def at_work(u, *args):
    client = start(u, *args, text=BUSY)
    return client, worker_at_work()


def warm_at_work(u, *args):
    """With a child of the pool: a run that a busy holder keeps waiting for 50 ms goes without one, and is begun anew."""
    for _ in range(5):
        leases = u.status()["leases"]
        client, guest = at_work(u, *args)
        if u.status()["leases"] == leases + 1:
            return client, guest
        client.kill()
        client.communicate()
    u.ok(False, "(a run is a warm one)", u.status())
    return at_work(u, *args)


def client_is_stopped(u, what, client, guest):
    os.kill(client.pid, signal.SIGSTOP)
    u.ok(guest and until(lambda: state_of(client.pid) == "T"), f"{what}: (the program runs, its client is stopped)", guest)
    gone = until(lambda: state_of(guest) in ("gone", "Z", "X"), 15)
    u.ok(gone and state_of(client.pid) == "T", f"{what}: a guest whose client is stopped is ended behind its wall limit", guest, proc(guest, "stat"))
    os.kill(client.pid, signal.SIGCONT)
    out = json.loads(client.communicate(timeout=60 * tapsys.SLOW)[0] or "{}")
    u.ok(out.get("status") == "timeout" and out.get("layer") == "resources", f"{what}: a client that was stopped beyond the wall limit reports the limit when it goes on", out)


def clocks(u):
    u("pool", "start", "--profile", "standard", "--size", "2")
    u.full("standard")
    client_is_stopped(u, "warm run", *warm_at_work(u, "run", "--json", "--profile", "standard", "--timeout", "3s", "-"))
    s = u.new("--profile", "standard")
    branch = u("session", "fork", s).out.strip()
    later = u.new("--profile", "standard")
    for name, what in ((s, "session"), (branch, "branch")):
        client_is_stopped(u, what, *at_work(u, "session", "run", "--json", "--timeout", "3s", name, "-"))
    r = u.cell(later, "x = 42\n", "--timeout", "2s")
    time.sleep(3)
    r = u.cell(later, "import time\ntime.sleep(3)\nx\n", "--timeout", "30s")
    u.ok(r["value"] == "42", "the clock of a call ends with it: a session rests, and works, longer than the limit of the call before", r)
    client = start(u, "session", "run", "--json", "--timeout", "60s", later, "-", text="import time\ntime.sleep(3)\nx\n")
    u.ok(until(lambda: u.sessions().get(later, {}).get("state") == "busy"), "(a call runs)")
    os.kill(client.pid, signal.SIGSTOP)
    time.sleep(4)  # longer than the program sleeps: its end waits for the client
    os.kill(client.pid, signal.SIGCONT)
    out = json.loads(client.communicate(timeout=60 * tapsys.SLOW)[0] or "{}")
    u.ok(out.get("value") == "42", "a call whose client was stopped for less than its limit is done", out)
    u("session", "close", later)


# --- memory of idle sessions ------------------------------------------------------------------------------

@contextlib.contextmanager
def dies_slowly(guest):
    """A process that is killed meanwhile keeps its memory: it may run on one CPU only, which a real-time process has. Where
    that is not allowed, or there is no other CPU, it dies as fast as it can."""
    spinner = None
    try:
        cpu = max(os.sched_getaffinity(guest))
        if os.geteuid() == 0 and len(os.sched_getaffinity(guest)) > 1:
            os.sched_setaffinity(guest, {cpu})
            spinner = subprocess.Popen([sys.executable, "-c", "import os, sys, time\n"
                                        f"os.sched_setaffinity(0, {{{cpu}}})\nos.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))\n"
                                        "print(flush=True)\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            spinner.stdout.readline()
        yield
    finally:
        if spinner:
            spinner.kill()
            spinner.communicate()
        until(lambda: state_of(guest) in ("gone", "Z", "X"))


def idle_memory(u):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    policy = file_with(tapsys.POLICY + "sessions: {memory_percent: 1}\n")
    if u.who == "user" and os.geteuid() == 0:
        os.chown(policy, tapsys.ROOTLESS, tapsys.ROOTLESS)
    little = ("--policy", policy)
    limit = machine // 100 + (256 << 20)
    options = ("--profile", "standard", "--memory", f"{limit >> 20}m")
    fill = f"held = bytearray({machine // 100 * 3 // 4})\nfor i in range(0, len(held), 4096): held[i] = 1\n"
    shared = f"import mmap\nheld = mmap.mmap(-1, {machine // 100 * 3 // 4})\nfor i in range(0, len(held), 4096): held[i] = 1\n"
    before = guests("T")
    large = u.new(*options)
    guest = stopped_guest(before)
    small = u.new(*options)
    u.cell(large, fill)
    listed = u.sessions()
    u.ok(listed[large]["idle_memory_mb"] > machine / 100 * 0.74 / 2**20 and listed[small]["idle_memory_mb"] < 40,
         "session list tells what each idle session holds", listed)
    text = u("session", "list").out
    u.ok(re.search(r"idle sessions hold [\d.]{1,5} [MG]B together; .* over [\d.]{1,5} [MG]B ", text), "session list tells what idle sessions hold together, in units of people", text)
    for what, r in (("call", u.cell(small, "6 * 7\n", *little)),
                    ("new session", u("session", "new", "--json", *options, *little)),
                    ("fork", u("session", "fork", "--json", small, *little))):
        u.ok(r["status"] == "refused" and r.code == exits.NEVER_RAN and r["layer"] == "resources" and r.rules() == ["limit.idle_memory"] and
             f"close {large} (" in (r["reason"] or ""), f"a {what} is refused while idle sessions hold too much, and names the one to close", r)
    r = u.cell(large, "len(held) > 0\n", *little)
    u.ok(r["value"] == "True", "the session that holds the memory can be called itself", r)
    r = u.cell(small, "6 * 7\n")
    u.ok(r["value"] == "42", "the call that was refused is done under the default of half the machine's memory", r)
    branch = u("session", "fork", large).out.strip()
    listed = u.sessions()
    u.ok(sum(s["idle_memory_mb"] for s in listed.values()) < machine / 100 / 2**20 * 1.2, "what a session and its branch have in common counts once", listed)
    with dies_slowly(guest):
        u("session", "close", large)
        r = u.cell(small, "6 * 7\n", *little)
        u.ok(f"close {branch} (" in (r["reason"] or ""), "what a branch holds counts in full while the session that it came from is still dying", r)
    r = u.cell(small, "6 * 7\n", *little)
    u.ok(f"close {branch} (" in (r["reason"] or ""), "what a branch holds counts as what a session holds", r)
    u("session", "close", branch)
    r = u.cell(small, "6 * 7\n", *little)
    u.ok(r["value"] == "42", "a call is done once the session that held the memory is closed", r)
    large = u.new(*options)
    u.cell(large, shared)
    r = u.cell(small, "6 * 7\n", *little)
    u.ok(f"close {large} (" in (r["reason"] or ""), "memory that a session shares with nobody counts, though it is made to be shared", r)
    u("session", "close", large)
    u("session", "close", small)


# --- ends that no client sees ---------------------------------------------------------------------------

def alive(u):
    return u.status().get("sessions")


def idle_pair(u):
    """A session and its branch, which end soon: on a busy machine the first may be over before it is forked."""
    while True:
        s = u.new("--profile", "standard", "--idle", "2s")
        fork = u("session", "fork", s)
        if fork.code == 0 or "idle for" not in fork.err:
            return s, fork.out.strip()


def idle_ends(u):
    keeper = u.new("--profile", "standard")
    shut = u.new("--profile", "standard")
    u("session", "close", shut)
    ways = {"session list": lambda: u("session", "list"),
            "a call of another session": lambda: u.cell(keeper, "1\n"),
            "a call of the session itself": lambda: u.cell(s, "1\n"),
            "a new session": lambda: u("session", "close", u.new("--profile", "standard"))}
    for way, look in ways.items():
        s, branch = idle_pair(u)
        u.ok(until(lambda: alive(u) == 1), "(a session and its branch ended of idleness)", u.status())
        u.ok(not ends(u, s), "while nobody asks the holder, the end of idle sessions is not recorded", ends(u, s))
        look()
        for name, what in ((s, "session"), (branch, "branch")):
            got = ends(u, name)
            u.ok(len(got) == 1 and "idle for" in got[0]["args"]["from"], f"{way}: that a {what} ended of idleness is on record", got)
    u("session", "list")
    u.cell(keeper, "1\n")
    u.ok(len(ends(u, s)) == 1, "an end that the holder left is recorded once, however many clients look", ends(u, s))
    u.ok([r["args"]["event"] for r in records(u, shut)] == ["opened", "closed"], "a session that was closed is not recorded as ended too", records(u, shut))
    client = subprocess.Popen(programs.command(["session", "run", keeper, "-"], u.who), env=tapsys.clean_env({}, u.who), stdin=subprocess.PIPE, cwd="/")
    client.stdin.write(b"open('begun', 'w').close()\nwhile True: pass\n")
    client.stdin.close()
    u.ok(until(lambda: (u.sessions().get(keeper) or {}).get("state") == "busy"), "(a call runs)", u.sessions())
    client.kill()
    client.wait()
    u.ok(until(lambda: alive(u) == 0), "(its client was killed)", u.status())
    u("session", "list")
    got = ends(u, keeper)
    u.ok(len(got) == 1 and "client went away" in got[0]["args"]["from"], "that a session ended because its client was killed is on record", got)


def ends_with_the_holder(u):
    u("pool", "stop", "--force")
    u("pool", "start", "--profile", "standard", "--idle", "4s")  # the session comes before that is over
    s = u.new("--profile", "standard", "--idle", "500ms")
    u.ok(until(lambda: u("pool", "status").code == 1), "(the last session was idle for too long, and the holder ended after it)")
    u("session", "list")
    got = ends(u, s)
    u.ok(len(got) == 1 and "idle for" in got[0]["args"]["from"], "the end of that session is on record though its holder is gone", got)
    s = u.new("--profile", "standard")
    u("pool", "stop", "--force")
    u("session", "list")
    got = ends(u, s)
    u.ok(len(got) == 1 and "holder ended" in got[0]["args"]["from"], "the end of a session that was ended with its holder is on record", got)


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")
    inputs(user)
    rest(user)
    clocks(user)
    idle_memory(user)
    idle_ends(user)
    ends_with_the_holder(user)
tap.done()
