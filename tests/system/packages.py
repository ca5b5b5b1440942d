#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packages of a virtual environment are somebody else's code. When a template imports them they find nothing that a
guest would not find; an environment that somebody else could change is refused by name; ordinary ones work
everywhere.   packages.py BUILD"""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import exits
import tapsys
from pooltest import User, until

tap = tapsys.Tap()
programs = tapsys.Programs(sys.argv[1])
VERSION = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                         stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

# Looks around when it is imported, and again when Python tells it that a fork is near.
SPY = '''
import ctypes, errno, os, stat
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *args):
    ctypes.set_errno(0)
    return 0 if getattr(libc, name)(*args) >= 0 else ctypes.get_errno()

def descriptors():
    found = {}
    for fd in range(1024):
        try:
            found[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
        except OSError:
            pass
    return found

def processes(fd):
    """How many processes a descriptor of /proc shows."""
    try:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        names = os.listdir(here)
        os.close(here)
        return sum(n.isdigit() for n in names)
    except OSError:
        return 0

def capabilities():
    head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(head, data)
    return sum(data)

def writable(folder):
    try:
        os.close(os.open(folder + "/planted", os.O_WRONLY | os.O_CREAT, 0o600))
        return True
    except OSError:
        return False

def reads(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
        return True
    except OSError:
        return False

def succeeds(what, *args):
    try:
        what(*args)
        return True
    except OSError:
        return False

def forks():
    """By the C library: Python would call the functions that are registered for a fork, this one among them."""
    pid = libc.fork()
    if pid == 0:
        libc._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return pid > 0

def look():
    fds = descriptors()
    import socket
    return {
        "descriptors": sorted(fds),
        "sockets": [fd for fd, kind in fds.items() if kind == stat.S_IFSOCK],
        "folders": [fd for fd, kind in fds.items() if kind == stat.S_IFDIR],
        "processes": sum(processes(fd) for fd in fds),
        "capabilities": capabilities(),
        "writable": [f for f in ("/", "/usr", "/usr/lib", "/etc", "/dev", "/live", "/cordon-packages", "/home", "/var") if writable(f)],
        "sealed": reads("/.sealed"),
        "proc": reads("/proc/self/status"),
        "sockets made": [f for f in (socket.AF_INET, socket.AF_UNIX, socket.AF_NETLINK) if succeeds(socket.socket, f, socket.SOCK_DGRAM)],
        "mount": call("mount", b"x", b"/tmp", b"tmpfs", 0, None) or call("umount2", b"/tmp", 2),
        "ptrace": call("ptrace", 16, os.getppid(), 0, 0),
        "signals": [p for p in (1, os.getppid(), 100) if succeeds(os.kill, p, 0)],
        "forks": forks(),
        "pid": os.getpid(),
    }

found = look()
before = []
os.register_at_fork(before=lambda: before.append(look()))
open("/tmp/left", "w").write("left by an import")
kept = open("/tmp/kept", "w")
'''


class Environment:
    """A virtual environment and a policy that names it, in a folder of their own."""

    def __init__(self, u, modules, preload):
        self.u = u
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-packages-", dir="/var/tmp"))
        self.top.chmod(0o755)
        self.site = self.top / f"venv/lib/python{VERSION}/site-packages"
        self.site.mkdir(parents=True)
        (self.top / "venv/pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        for name, text in modules.items():
            (self.site / name).parent.mkdir(parents=True, exist_ok=True)
            (self.site / name).write_text(text)
        self.policy = self.top / "config/cordon/policy.yaml"
        self.policy.parent.mkdir(parents=True)
        self.policy.write_text(tapsys.POLICY + f"python: {{environment: {self.top}/venv, preload: [{preload}]}}\n")
        self.env = {"XDG_CONFIG_HOME": str(self.top / "config")}
        self.own()
        atexit.register(self.close)

    def own(self):
        if self.u.who == "user" and os.geteuid() == 0:
            subprocess.run(["chown", "-hR", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", self.top], check=True)

    def __call__(self, *args, **more):
        return self.u(*args, env=self.env, **more)

    def start(self):
        self("pool", "start", "--profile", "standard", "--packages", "--size", "1")
        ready = until(lambda: ((self("pool", "status", "--json").json or {}).get("templates") or [{}])[0].get("ready"), 60)
        return self.u.ok(ready, "a pool with the environment is up", self("pool", "status"))

    def close(self):
        self("pool", "stop", "--force")
        shutil.rmtree(self.top, ignore_errors=True)


def what_an_import_finds(u):
    """The same package looks around at import and at the fork, in a template."""
    e = Environment(u, {"spy.py": SPY}, "spy")
    if not e.start():
        return
    s = e("session", "new", "--profile", "standard", "--packages").out.strip()
    r = e("session", "run", "--json", s, "-", text="import sys, os, json\nahead = 'spy' in sys.modules\nimport spy\n"
          "print(json.dumps({'ahead': ahead, 'import': spy.found, 'fork': (spy.before or [{}])[0], 'files': sorted(os.listdir('/tmp')), 'pid': os.getpid()}))\n")
    try:
        seen = json.loads((r.json or {}).get("stdout", ""))
    except ValueError:
        u.ok(False, "the package was loaded ahead and tells what it found", r)
        return
    u.ok(seen["ahead"], "the package was loaded ahead and tells what it found", r)
    for when in ("import", "fork"):
        got = seen[when]
        at = f"at {when} a package of a template"
        u.ok(got.get("descriptors") in ([0, 1, 2, 3], [0, 1, 2, 3, 4]) and not got["sockets"] and not got["folders"],
             f"{at} has no descriptor but its streams and a pipe", got)
        u.ok(got.get("processes") == 0 and got.get("proc") is False, f"{at} sees no process of the host", got)
        u.ok(got.get("capabilities") == 0, f"{at} has no capability", got)
        u.ok(got.get("writable") == [], f"{at} can write nothing but its own scratch folders", got)
        u.ok(got.get("sealed") is False, f"{at} is behind Landlock", got)
        u.ok(got.get("sockets made") == [], f"{at} can make no socket", got)
        u.ok(got.get("mount") and got.get("ptrace"), f"{at} can neither mount nor trace", got)
        u.ok(got.get("signals") == [] and got.get("forks") is False, f"{at} can neither signal nor fork", got)
    u.ok(seen["files"] == [], "what an import left in /tmp is in no child", seen["files"])
    u.ok(seen["import"]["pid"] != seen["pid"], "a library that keeps its pid to notice a fork notices it", seen)
    r = e("session", "run", "--json", s, "-", text="import spy\ntry:\n  spy.kept.write('x'); spy.kept.flush(); print('wrote')\nexcept OSError:\n  print('closed')\n")
    u.ok(r["status"] == "ok" and r["stdout"] == "closed\n", "a file that a package kept open is closed in a child, and is not its channel", r)
    e.close()


def bad_imports(u):
    """What a package does wrong ends its template with a reason, and nothing else."""
    for name, text, words in (("a thread", "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n", "has started a thread"),
                              ("an exit", "import os\nos._exit(0)\n", "has ended the process"),
                              ("an exception", "raise ValueError('no such thing')\n", "cannot be imported")):
        e = Environment(u, {"bad.py": text}, "bad")
        e("pool", "start", "--profile", "standard", "--packages", "--size", "1")
        told = lambda: words in e("pool", "status").out
        u.ok(until(told, 60), f"a module that is loaded ahead and makes {name}: the pool says so", e("pool", "status"))
        r = e("run", "--json", "-", text="print(1)\n")
        u.ok(r["status"] == "ok", f"after {name} at import a program runs without the pool", r)
        e.close()


def ordinary(u):
    """An ordinary package: cold, warm, in a session and in a branch of it."""
    e = Environment(u, {"ours/__init__.py": "import random\nfrom . import part\nanswer = 42\nnumber = random.random()\n", "ours/part.py": "word = 'part'\n"}, "ours")
    (e.site / "link.py").symlink_to("ours/part.py")
    program = "import ours, ours.part, link\nprint(ours.answer, ours.part.word, link.word)\n"
    run = lambda: e("run", "--json", "--profile", "standard", "-", text=program)
    r = run()
    u.ok(r["status"] == "ok" and r["stdout"] == "42 part part\n", "an ordinary package works cold", r)
    if e.start():
        made = lambda: e("pool", "status", "--json").json["templates"][0]
        for _ in range(10):  # who is not answered within 50 ms goes without, as a busy machine may bring about
            before, r = made(), run()
            warm = until(lambda: made()["made"] > before["made"], 5)
            if warm:
                break
        u.ok(r["status"] == "ok" and r["stdout"] == "42 part part\n", "an ordinary package works warm", r)
        u.ok(warm, "the warm run with a package took a child of the pool", before, made())
        s = e("session", "new", "--profile", "standard", "--packages").out.strip()
        r = e("session", "run", "--json", s, "-", text=program)
        u.ok(r["stdout"] == "42 part part\n", "an ordinary package works in a session", r)
        b = e("session", "fork", s).out.strip()
        r = e("session", "run", "--json", b, "-", text="print(ours.answer + 1)\n")
        u.ok(r["stdout"] == "43\n", "an ordinary package works in a branch of a session", r)
    e.close()


def changeable(u):
    """Whoever can change what is imported is in the template: every folder and file of it is looked at, and on the way."""
    somebody = 65533
    e = Environment(u, {"ours/__init__.py": "answer = 42\n", "ours/deep/part.py": "x = 1\n"}, "ours")
    run = lambda: e("run", "--json", "--profile", "standard", "-", text="import ours\nprint(ours.answer)\n")

    def refused(what, path, words):
        r = run()
        u.ok(r.code == exits.NEVER_RAN and str(path) in r.err + r.out and words in r.err + r.out, f"{what} is refused by name", r)

    def works(what):
        r = run()
        u.ok(r["status"] == "ok" and r["stdout"] == "42\n", f"{what} works", r)

    works("an environment that only its owner can write")
    for what, path in (("a package folder that others may write", e.site / "ours"), ("a file of a package that others may write", e.site / "ours/deep/part.py"),
                       ("a folder deep in a package that others may write", e.site / "ours/deep"), ("site-packages that others may write", e.site),
                       ("a folder on the way that others may write", e.site.parent), ("the environment itself that others may write", e.top / "venv"),
                       ("pyvenv.cfg that others may write", e.top / "venv/pyvenv.cfg")):
        mode = path.stat().st_mode & 0o7777
        for bits, whose in ((0o002, "everybody"), (0o020, "the group")):
            path.chmod(mode | bits)
            refused(f"{what} ({whose})", path, "chmod go-w")
        path.chmod(mode)
    works("an environment with its modes put right")
    if os.geteuid() == 0:
        for what, path in (("a package file of somebody else", e.site / "ours/__init__.py"), ("a package folder of somebody else", e.site / "ours/deep")):
            os.chown(path, somebody, somebody)
            refused(what, path, "root or you must own it")
            e.own() if u.who == "user" else os.chown(path, 0, 0)
    aside = e.top / "aside"
    aside.mkdir()
    (aside / "inner").mkdir()
    e.site.rename(aside / "inner/site")
    e.site.symlink_to(aside / "inner/site")
    e.own()
    works("an environment whose site-packages is a link")
    aside.chmod(0o777)
    refused("a folder behind the link site-packages that others may write", aside, "chmod go-w")
    aside.chmod(0o755)
    (aside / "shared").mkdir()
    (aside / "shared").chmod(0o777)
    (aside / "shared/more.py").write_text("x = 1\n")
    (e.site / "more.py").symlink_to(aside / "shared/more.py")
    e.own()
    refused("a link in site-packages that leads to a folder others may write", aside / "shared", "chmod go-w")
    (e.site / "more.py").unlink()
    works("an environment without a link that leads to what others may write")
    (aside / "inner/site/ours").chmod(0o777)
    e("pool", "start", "--profile", "standard", "--packages", "--size", "1")
    u.ok(until(lambda: "chmod go-w" in e("pool", "status").out, 60), "a pool does not load ahead an environment that others may write, and says why", e("pool", "status"))
    e.close()


tapsys.enter_empty_network()
for who in tapsys.users():
    user = User(tap, programs, who)
    what_an_import_finds(user)
    bad_imports(user)
    ordinary(user)
    changeable(user)
tap.done()
