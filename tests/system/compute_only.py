# SPDX-License-Identifier: Apache-2.0
"""A profile that computes only: a process whose guards are lost reaches no file, no socket, no timer, no executable page.

Usage: compute_only.py BUILD. The profile `bare` is plain Python with its true builtins and ctypes, without judge and
guards, behind the same table of system calls as `strict`: what it can do is what whoever breaks `strict` could do."""
import atexit
import html
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

import pooltest
import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)

POLICY = tapsys.POLICY + """
profiles:
  bare: {base: none, summary: "plain Python that computes only", imports: any, guards: false, compute_only: true}
  open_bare: {base: none, summary: "the same without that table", imports: any, guards: false, compute_only: false}
run: {profiles: [strict, standard, open, bare, open_bare]}
"""
folder = pathlib.Path(tempfile.mkdtemp(prefix="cordon-compute-", dir="/tmp"))
atexit.register(lambda: subprocess.run(["rm", "-rf", folder]))
os.chmod(folder, 0o755)
(folder / "policy.yaml").write_text(POLICY)

# the table's own words, from the build's test: what may happen on this machine
ALLOWED, NUMBERS = tapsys.compute_calls(tap, BUILD)


def run(profile, code, who):
    return tapsys.cordon(programs, ["run", "--json", "--policy", folder / "policy.yaml", "--profile", profile, "-"], who, text=code)


def text(r):
    return html.unescape(r["stdout"] or "")


# --- whoever has broken everything above the kernel --------------------------------------------------

FILES = '''
import ctypes, os, io, socket, signal, mmap, select, fcntl
attempts = {
    "open": lambda: open("/usr/bin/env", "rb").read(4),
    "open-write": lambda: open("/workspace/x", "w"),
    "os.open": lambda: os.open("/", os.O_RDONLY),
    "stat": lambda: os.stat("/usr"),
    "listdir": lambda: os.listdir("/usr"),
    "exists": lambda: 1 / os.path.exists("/usr"),
    "readlink": lambda: os.readlink("/bin"),
    "getcwd": os.getcwd,
    "mkdir": lambda: os.mkdir("/workspace/d"),
    "unlink": lambda: os.unlink("/tmp/x"),
    "socket": socket.socket,
    "socketpair": socket.socketpair,
    "pipe": os.pipe,
    "timer": lambda: signal.setitimer(signal.ITIMER_REAL, 100),
    "handler": lambda: signal.signal(signal.SIGUSR1, lambda *a: None),
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "lock": lambda: fcntl.flock(0, fcntl.LOCK_SH),
    "ioctl": lambda: fcntl.ioctl(0, 0x5401, b" " * 64),
    "executable": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
    "uname": os.uname,
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "REACHED")
    except (OSError, ZeroDivisionError) as e:
        print(name, type(e).__name__)
'''
NATIVE = '''
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
SKIP = %r
done = []
for number in range(480):
    if number in SKIP:
        continue
    ctypes.set_errno(0)
    r = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if not (r == -1 and ctypes.get_errno() in (1, 38, 95)):  # EPERM, ENOSYS, EOPNOTSUPP: the tables' own answers
        done.append(number)
page = ctypes.create_string_buffer(8192)
at = ctypes.addressof(page) + 4095 & -4096
executable = libc.mprotect(ctypes.c_void_p(at), 4096, 7)
plain = libc.mprotect(ctypes.c_void_p(at), 4096, 3)
print("calls", *done)
print("pages", executable, plain)
'''
# the end, a return from a handler that does not run, and what waits for ever with these arguments
SKIP = [NUMBERS[n] for n in ("exit", "exit_group", "rt_sigreturn", "restart_syscall", "pause", "sigreturn", "clone", "rt_sigsuspend",
                             "ppoll", "pselect6", "select", "vfork", "fork", "close_range", "dup3", "dup2", "close") if n in NUMBERS]
if platform.machine() == "x86_64":
    SKIP += [335, 336]  # uretprobe, uprobe: the kernel lets them past every filter, and answers SIGILL where no probe put them

for who in tapsys.users():
    r = run("bare", FILES, who)
    lines = dict(l.split() for l in text(r).splitlines() if len(l.split()) == 2)
    tap.ok(len(lines) == 21 and "REACHED" not in lines.values(), f"{who}: plain Python reaches no file, socket, timer or executable page", lines, r.story())
    told = {(v["rule"], v["detail"].split()[0]) for v in r["violations"] or ()}
    tap.ok({("py.compute.call", "openat"), ("py.compute.call", "mmap"), ("py.compute.call", "socketpair")} <= told,
           f"{who}: what only this table refuses is told", sorted(told))
    tap.ok({"seccomp.socket", "seccomp.execve"} <= {rule for rule, _ in told}, f"{who}: what the first table reports is still seen by the supervisor", sorted(told))
    twin = run("open_bare", FILES, who)
    reached = {l.split()[0] for l in text(twin).splitlines() if l.endswith("REACHED")}
    tap.ok({"open", "stat", "listdir", "socketpair", "timer", "executable"} <= reached,
           f"{who}: without the table the same program reaches files, pairs, timers and executable pages", sorted(reached), twin.story())

    r = run("bare", NATIVE % (SKIP,), who)
    names = {n: name for name, n in NUMBERS.items()}
    done = [names.get(int(n), n) for l in text(r).splitlines() if l.startswith("calls") for n in l.split()[1:]]
    tap.ok(r["status"] == "ok" and len(done) > 5 and set(done) <= ALLOWED, f"{who}: of all system calls a native attacker can make only those of the list",
           sorted(set(done) - ALLOWED), r.story())
    tap.ok("pages -1 0" in text(r), f"{who}: memory never becomes executable, and stays writable", text(r))

# --- what computes runs as before --------------------------------------------------------------------

HONEST = {
    "a time is parsed and printed": ("import datetime, time\nd = datetime.datetime.strptime('2024-02-29', '%Y-%m-%d')\n"
                                     "print(d.strftime('%a %d %b'), time.strftime('%H', time.gmtime(0)), time.mktime(d.timetuple()) > 0, time.localtime(0).tm_year)\n",
                                     "Thu 29 Feb 00 True 1970\n"),
    "a time is parsed by a name that was put together": ("from datetime import datetime\nimport time\nn = ''.join(['strp', 'time'])\n"
                                                         "print(getattr(datetime, n)('2024-02-29', '%Y-%m-%d'), getattr(time, n)('2024', '%Y').tm_year)\n", "2024-02-29 00:00:00 2024\n"),
    "rare encodings": ("print('é'.encode('cp1252'), b'\\x81'.decode('cp500'), 'x'.encode('utf-16-be'), 'ü.de'.encode('idna'), str(b'a', 'koi8_r'))\n",
                       "b'\\xe9' a b'\\x00x' b'xn--tda.de' a\n"),
    "a name of a character": ("import re\nprint(re.findall('\\\\N{DIGIT ONE}', '121'), 'é'.encode('ascii', 'namereplace'))\n",
                              "['1', '1'] b'\\\\N{LATIN SMALL LETTER E WITH ACUTE}'\n"),
    "a library that counts": ("import statistics\nprint(statistics.mode([1, 1, 2]), statistics.multimode('aabb'))\n", "1 ['a', 'b']\n"),
    "counters and copies": ("import collections\nprint(collections.Counter('aab').most_common(1), collections.UserDict(a=1).copy())\n", "[('a', 2)] {'a': 1}\n"),
    "sleep, chance and digests": ("import time, random, hashlib\ntime.sleep(0.01)\nrandom.random(); random.SystemRandom().random()\n"
                                  "print(hashlib.sha256(b'').hexdigest()[:8], hashlib.md5(b'').hexdigest()[:8], hashlib.blake2b(b'').hexdigest()[:8])\n",
                                  "e3b0c442 d41d8cd9 786a02f7\n"),
    "memory in large pieces": ("x = bytearray(50_000_000)\nx += bytes(20_000_000)\nprint(len(x), sum(len([0] * 10**6) for _ in range(20)))\n", "70000000 20000000\n"),
    "tests of its own": ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\nunittest.main(exit=False)\nprint('after')\n", "after\n"),
    "a module that is not there": ("try:\n    import code_api.search\nexcept ImportError:\n    print('none')\n", "none\n"),
    "imports in functions": ("def f():\n    import fractions, statistics, calendar\n    return fractions.Fraction(1, 3), statistics.mean([1, 3]), calendar.isleap(2024)\nprint(*f())\n", "1/3 2 True\n"),
}
processes = pooltest.Processes(programs)


def filters():
    """Of each process of the interpreter: its number in its own namespace, and how many tables lie over each other."""
    found = []
    for pid in processes.all():
        status = pooltest.proc(pid, "status")
        numbers = re.search(r"^NSpid:(.*)$", status, re.M), re.search(r"^Seccomp_filters:\s+(\d+)$", status, re.M)
        if "cordon-python" in status and all(numbers):
            found.append((numbers[0][1].split()[-1], int(numbers[1][1])))
    return found


def waiting_are_closed():
    tables = dict(filters())  # 100: the template; 2: its children
    return all(n == tables.get("100", 0) + 2 for place, n in filters() if place == "2") and "2" in tables


LOCALE = ("import calendar\ntry:\n    calendar.LocaleTextCalendar(locale='%s.UTF-8').formatmonth(2024, 2)\nexcept Exception:\n    pass\n"
          "print('went on')\n")


def honest(who, how, call):
    for name, (code, want) in HONEST.items():
        r = call(code)
        tap.ok(r["status"] == "ok" and text(r) == want and not r["violations"], f"{who}, {how}: {name}", r.story())
    r = call(LOCALE % {"branch": "fr_FR"}.get(how, "de_DE"))  # the C library looks once for each, and a branch inherits what it knows
    tap.ok(text(r) == "went on\n" and r.rules() == ["py.compute.call"], f"{who}, {how}: a library that looks for a file is refused, told, and the program goes on", r.story())


for who in tapsys.users():
    honest(who, "cold", lambda code: run("strict", code, who))
    r = run("bare", "import json, math\nprint(json.dumps([math.pi]), sum(range(10)))\n", who)
    tap.ok(text(r) == "[3.141592653589793] 45\n" and not r["violations"], f"{who}: plain Python that computes runs without a violation", r.story())
    r = run("bare", "import json\njson.loads('x')\n", who)
    tap.ok(r["status"] == "error" and "JSONDecodeError" in (r["stderr"] or "") and not r["violations"],
           f"{who}: a traceback through a library is printed, and its missing source lines are no violation", r.story())

    cordon = lambda *args, code=None: tapsys.cordon(programs, args, who, text=code)
    tap.eq(cordon("pool", "start", "--profile", "strict").code, 0, f"{who}: a pool is started")
    atexit.register(cordon, "pool", "stop", "--force")

    user = pooltest.User(tap, programs, who)
    user.full("strict")
    honest(who, "warm", lambda code: user.warm(lambda: cordon("run", "--json", "-", code=code)))
    user.full("strict")
    tap.ok(pooltest.until(waiting_are_closed), f"{who}: a child that waits has closed the table before a program comes", filters())
    r = cordon("run", "--json", "--env", "TZ=Asia/Tokyo", "-", code="import time\nprint(time.localtime(0).tm_hour)\n")
    tap.ok(text(r) == "9\n" and not r["violations"], f"{who}: a run that names its time zone has it, though there is a pool", r.story())
    tap.ok(user.status()["leases"] > len(HONEST), f"{who}: the runs of a pool were warm", user.status())
    session = cordon("session", "new").out.strip()
    cell = lambda name: lambda code: cordon("session", "run", name, "--json", "-", code=code)
    honest(who, "session", cell(session))
    r = cordon("session", "run", session, "--env", "TZ=Asia/Tokyo", "-", code="print(1)\n")
    tap.ok(r.code != 0 and "cannot be given a time zone (TZ)" in r.err and not r.out, f"{who}: a session that cannot read a time zone says so", r.story())
    branch = cordon("session", "fork", session).out.strip()
    honest(who, "branch", cell(branch))
    tap.eq([cordon("session", "close", s).code for s in (branch, session)], [0, 0], f"{who}: session and branch are closed")
    tap.eq(cordon("pool", "stop", "--force").code, 0, f"{who}: the pool is stopped")

# --- what a cold start leaves out --------------------------------------------------------------------

ARCHIVE = '''
import sys, zipfile
with zipfile.ZipFile("/workspace/a.zip", "w") as z:
    z.writestr("inside.py", "x = 42")
sys.path.insert(0, "/workspace/a.zip")
import inside
print(inside.x)
'''
r = run("standard", ARCHIVE, tapsys.users()[0])
tap.ok(text(r) == "42\n", "a program without guards imports a module from an archive on sys.path", r.story())

# --- the switch --------------------------------------------------------------------------------------

for yaml, words in (("profiles: {strict: {compute_only: false}}\n", "compute_only of strict stays true"),
                    ("profiles: {standard: {compute_only: true}}\n", "compute_only of standard stays false"),
                    ("profiles: {mine: {base: strict, threads: true}}\n", "needs compute_only: false")):
    (folder / "bad.yaml").write_text(yaml)
    r = tapsys.cordon(programs, ["policy", "check", folder / "bad.yaml"], tapsys.users()[0])
    tap.ok(r.code != 0 and words in r.out + r.err, f"a policy is refused: {words}", r.story())
tap.done()
