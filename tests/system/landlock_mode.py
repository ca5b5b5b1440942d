#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The weaker mode, --mode landlock: what its table in docs/deployment.md says, line by line."""
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import exits
import tapsys
from tapsys import Tap, users

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = Tap()
programs = tapsys.Programs(BUILD)
SOURCE = pathlib.Path(sys.argv[2])
RACES = 60

ATTRIBUTES = """
import os, sys
path, tried = sys.argv[1], []
for name, call in (("chmod", lambda: os.chmod(path, 0o777)), ("chown", lambda: os.chown(path, os.getuid(), os.getgid())),
                   ("utime", lambda: os.utime(path, (1, 1))), ("fchmod", lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o777))):
    try:
        call()
        tried.append(name)
    except PermissionError:
        pass
print("changed:", *tried)
"""

CACHES = """
import os
print(os.getcwd())
for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "HF_HOME"):
    at = os.environ[name]
    os.makedirs(at, exist_ok=True)
    open(at + "/kept", "w").close()
    print(at)
"""


class Place:
    def __init__(self, who):
        self.who = who
        self.top = pathlib.Path(subprocess.run(["mktemp", "-d", "/var/tmp/cordon-landlock-XXXXXX"], capture_output=True, text=True,
                                               check=True).stdout.strip())
        self.top.chmod(0o755)
        self.uid = 0 if who == "root" else tapsys.ROOTLESS

    def folder(self, name):
        path = self.top / name
        path.mkdir(parents=True)
        os.chown(path, self.uid, self.uid)
        return path

    def file(self, name, text, mode=0o644):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.uid, self.uid)
        return path

    def run(self, options, *argv):
        return tapsys.exec_json(programs, ["--mode", "landlock", *options], argv, self.who)

    def sh(self, script, *options):
        return self.run(options, "/bin/sh", "-c", script)


def files(p):
    who = p.who
    secret = p.file("secret", "SECRET\n", 0o600)
    r = p.run([], "/bin/cat", str(secret))
    tap.ok("SECRET" not in r.out and r["status"] == "error", f"{who}: a file outside cannot be opened", r.story())
    shown = p.file("shown/file", "shown\n")
    os.chown(shown.parent, p.uid, p.uid)
    r = p.run(["--ro", str(shown.parent)], "/bin/cat", str(shown))
    tap.eq(r["stdout"], "shown\n", f"{who}: --ro shows a folder at its own path", r.story())
    r = p.sh(f"echo x > {shown}", "--ro", str(shown.parent))
    tap.ok(shown.read_text() == "shown\n", f"{who}: what --ro shows cannot be written", r.story())
    r = p.run(["--ro", f"{shown.parent}:/elsewhere"], "/bin/true")
    tap.ok(r.code == exits.NEVER_RAN and "no mounts" in r.err, f"{who}: DEST is refused by name", r.story())
    r = p.sh("echo one > own && read t < own && echo $t && pwd")
    lines = (r["stdout"] or "").split()
    tap.ok(lines[:1] == ["one"] and len(lines) == 2 and not os.path.exists(lines[1]), f"{who}: the scratch folder is writable, and gone afterwards", r.story())
    r = p.run([], "/usr/bin/python3", "-S", "-c", CACHES)
    top, *places = (r["stdout"] or "/none").split()
    tap.ok(r["status"] == "ok" and len(places) == 5 and all(at.startswith(os.path.dirname(top) + "/tmp") and not os.path.exists(at) for at in places),
           f"{who}: temporary files and caches lie in the scratch folder, which is gone afterwards", r.story())
    r = p.sh("head -c 300000 /dev/zero > big; wc -c < big", "--disk", "64k", "--processes", "0")
    tap.ok("300000" not in r.out, f"{who}: --disk bounds each file", r.story())


def attributes(p):
    who = p.who
    target = p.file("attributes/file", "x\n", 0o644)
    os.chown(target.parent, p.uid, p.uid)
    before = os.stat(target)
    for option in ("--ro", "--rw"):
        r = p.run([option, str(target.parent)], "/usr/bin/python3", "-S", "-c", ATTRIBUTES, str(target))
        after = os.stat(target)
        tap.ok(r["stdout"] == "changed:\n" and (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime),
               f"{who}: owner, mode and times of a file below {option} cannot be changed", r.story())
        tap.ok(any("chmod" in rule for rule in r.rules()), f"{who}: the attempt below {option} is reported", r.rules())
    r = tapsys.exec_json(programs, ["--rw", f"{target.parent}:/w"], ["/usr/bin/python3", "-S", "-c", ATTRIBUTES, "/w/file"], who)
    tap.ok("chmod" in (r["stdout"] or ""), f"{who}: in mode full a program changes the mode of its own file", r.story())


def others(p):
    who = p.who
    r = p.run([], "/usr/bin/python3", "-S", "-c", "import os\ntry: os.kill(int('%d'), 0); print('REACHED')\nexcept OSError: print('refused')" % os.getpid())
    tap.eq(r["stdout"], "refused\n", f"{who}: another process cannot be signalled", r.story())
    r = p.run([], "/usr/bin/python3", "-S", "-c", "import socket\ntry: socket.socket(); print('REACHED')\nexcept OSError: print('refused')")
    tap.eq(r["stdout"], "refused\n", f"{who}: there are no sockets", r.story())
    r = p.run([], "/bin/ls", "/proc/self/")
    tap.ok(r["status"] == "error", f"{who}: /proc is closed", r.story())
    for options, word in ((["--processes", "2"], "--processes"), (["--proc"], "--proc")):
        r = p.run(options, "/bin/true")
        tap.ok(r.code == exits.NEVER_RAN and word in r.err, f"{who}: {options[0]} is refused by name", r.story())
    r = p.run([], "/bin/true")
    layers = r["layers"] or {}
    tap.ok(all(layers.get(x, "").startswith("weak") for x in ("process", "resources", "network", "filesystem")) and layers.get("syscalls") == "on",
           f"{who}: the result says which layers are weak", layers)


THREADS = """import threading, time
try:
    for i in range(4): threading.Thread(target=time.sleep, args=(0.2,)).start()
    print("more than two")
except RuntimeError: print("refused")
"""
IPC = """import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
print(os.uname().nodename, *(os.strerror(ctypes.get_errno()) for call in (c.semget, c.shmget, c.msgget) if call(0, 1, 0o1600) < 0), sep="|")
"""


def the_rest(p):
    who = p.who
    r = p.run(["--threads", "2", "--memory-by", "rlimit"], "/usr/bin/python3", "-S", "-c", THREADS)
    tap.eq(r["stdout"], "more than two\n", f"{who}: --threads bounds nothing without a cgroup", r.story())
    r = p.run([], "/usr/bin/python3", "-S", "-c", IPC)
    tap.eq(r["stdout"], "|".join([os.uname().nodename] + ["Operation not permitted"] * 3) + "\n", f"{who}: System V IPC is refused, and the host's name can be read", r.story())
    r = p.run([], "/usr/bin/id", "-u")
    tap.ok((r["stdout"] or "").strip() == str(p.uid) if p.uid else (r["stdout"] or "0").strip() != "0",
           f"{who}: the program is the user that started it, and never root", r.story())
    folder = p.folder("written")
    shutil.copy("/bin/true", folder / "program")
    os.chown(folder / "program", p.uid, p.uid)
    r = p.run(["--rw", str(folder)], str(folder / "program"))
    tap.ok(r.code != 0 and r["status"] != "ok", f"{who}: a file below --rw is not executed", r.story())
    r = p.run(["--rw", str(folder), "--exec-files"], str(folder / "program"))
    tap.eq(r["status"], "ok", f"{who}: with --exec-files it is", r.story())


def race(p):
    """The folder that was checked is the one that is shared, however fast its name is turned."""
    who = p.who
    real, secret = p.folder("race/real"), p.folder("private")
    p.file("private/keep", "x")
    name, spare = p.top / "race/name", p.top / "race/spare"
    name.mkdir()
    os.chown(name, p.uid, p.uid)
    over = threading.Event()

    def turn():
        while not over.is_set():
            try:
                name.rename(spare)
                name.symlink_to(secret)
                name.unlink()
                spare.rename(name)
            except OSError:
                pass
    t = threading.Thread(target=turn)
    t.start()
    won = 0
    for _ in range(RACES):
        p.run(["--rw", str(name)], "/bin/touch", f"{name}/planted", f"{secret}/planted")
        won += (secret / "planted").exists()
    over.set()
    t.join()
    tap.eq(won, 0, f"{who}: of {RACES} runs with a turning name none may write what it leads to")
    tap.ok(real.exists(), f"{who}: nothing else was touched")


# The lines of the table, each with what tries it here.
LINES = {"files outside": files, "`/workspace` and `/tmp`": files, "`--disk`, `--inodes`": files, "`--ro`, `--rw`": files, "`--proc`": others,
         "network": others, "other processes": others, "`--processes`": others, "`--threads`": the_rest, "System V IPC, host name": the_rest,
         "identity": the_rest, "owners, modes and times of files": attributes, "without `--exec-files`": the_rest}
table = (SOURCE / "docs/deployment.md").read_text().split("| | `full` | `landlock` |")[1].split("\n\n")[0]
tap.eq([line.split(" | ")[0].strip("| ") for line in table.strip().splitlines()[1:]], list(LINES),
       "each line of the table in docs/deployment.md is tried here, and each that is tried is there")
OLD = tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12)  # as Debian 12's own kernel: the mode is refused there
for who in users():
    place = Place(who)
    if OLD:
        r = place.run([], "/bin/true")
        tap.ok(r.code == exits.NEVER_RAN and r["status"] == "refused" and "needs Linux 6.12" in r["reason"], f"{who}: a kernel that cannot do it is told by name, and nothing runs", r.story())
    for look in () if OLD else (files, attributes, others, the_rest, race):
        look(place)
    subprocess.run(["rm", "-rf", place.top], check=True)
tap.done()
