#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of the host in a session (--ro, --rw): what it reads and writes there, what a fork has of them, what may not be shared, and what
links and swaps on the host come to.

Usage: session_shares.py BUILD."""
import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
import exits
import tapsys
from pooltest import User
from tapsys import House, until, users
from workspacetest import TOP, fresh, own_disks, programs, tap, workspace

own_disks(users())


class Folders:
    """On the host, for one user: data to read, out to write in, and a secret beside them."""

    def __init__(self, who):
        self.top = TOP / f"shares-{who}"
        shutil.rmtree(self.top, ignore_errors=True)
        for name, text in {"data/f": "hello", "data/sub/g": "below", "out/old": "1", "secret": "the secret", "other/f": "another"}.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        os.symlink(self.top / "secret", self.top / "data/link")
        os.symlink("../secret", self.top / "data/up")
        os.symlink(self.top / "data", self.top / "by-link")
        os.mkfifo(self.top / "fifo")
        self.uid = tapsys.ROOTLESS if who == "user" and os.geteuid() == 0 else os.geteuid()
        for path in [self.top, *self.top.rglob("*")]:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def __getitem__(self, name):
        return self.top / name


def ordinary(u, f):
    s = u.new("--profile", "standard", "--ro", f"{f['data']}:/data", "--rw", f"{f['out']}:/out", "--ro", f"{f['other']}/f:/one")
    r = u.cell(s, "print(open('/data/f').read(), open('/data/sub/g').read(), open('/one').read())")
    u.ok(r["stdout"] == "hello below another\n", "a session reads the folders and the file that --ro shows it", r, s)
    r = u.cell(s, "import os\nfor what in (lambda: open('/data/f', 'w'), lambda: open('/data/new', 'w'), lambda: os.remove('/data/f'), lambda: os.chmod('/data/f', 0o600)):\n"
               "    try:\n        what()\n        print('done')\n    except OSError as e:\n        print(e.errno)")
    u.ok(r["stdout"] == "30\n" * 4 and f["data/f"].read_text() == "hello", "nothing in a folder of --ro can be written, made, removed or given another mode", r)
    r = u.cell(s, "open('/out/new', 'w').write('n'); open('/out/old', 'a').write('2'); os.mkdir('/out/d')")
    left = f["out/new"].stat() if f["out/new"].exists() else None
    u.ok(r["status"] == "ok" and left and left.st_uid == f.uid and f["out/old"].read_text() == "12" and f["out/d"].is_dir(),
         "what a session writes in a folder of --rw is on the host at once, and its owner is that of the folder", r, left)
    u.ok(r["violations"] == [], "a new file in a folder of --rw is no finding", r)
    record = u("audit", "tail", "--json", "-n", "1")
    u.ok("/out" in record.out and str(f["out"]) in record.out, "the audit's record of a call names what it may write", record)
    branch = u("session", "fork", s).out.strip()
    r = u.cell(branch, "print(open('/data/f').read()); open('/out/branch', 'w').write('b'); open('/data/f', 'w')")
    u.ok(r["stdout"] == "hello\n" and f["out/branch"].read_text() == "b" and "Read-only" in (r["message"] or r.out), "a branch has the folders of its session, and the same rights there", r)
    u("session", "close", s)
    r = u.cell(branch, "print(open('/data/sub/g').read())")
    u.ok(r["stdout"] == "below\n", "a branch keeps the folders when its session is closed", r)
    shown = [t for t in u.status()["templates"] if t["state"] == "shared"]
    u("session", "close", branch)
    u.ok(len(shown) == 1 and shown[0]["sessions"] == 1 and until(lambda: not [t for t in u.status()["templates"] if t["state"] == "shared"]),
         "a session with folders has a template of its own, which ends with the last branch", shown, u.status())


def served(u, f):
    """`strict` has no system call for files: the folders are served, in each call and to each branch."""
    s = u.new("--ro", f"{f['data']}:/data", "--rw", f"{f['out']}:/out", "--ro", f"{f['other']}/f:/one")
    r = u.cell(s, "import os\nprint(open('/data/f').read(), open('/data/sub/g').read(), open('/one').read(), sorted(os.listdir('/data')))")
    u.ok(r["stdout"] == "hello below another ['f', 'link', 'sub', 'up']\n" and r["violations"] == [], "a session of strict reads the folders and the file that --ro shows it", r, s)
    r = u.cell(s, "for what in (lambda: open('/data/f', 'w'), lambda: open('/data/new', 'w'), lambda: os.remove('/data/f'), lambda: open('/one', 'a'), lambda: open('/data/link').read(), lambda: open('/data/../secret')):\n"
               "    try:\n        what()\n        print('done')\n    except OSError as e:\n        print(e.errno)")
    u.ok(r["stdout"] == "30\n" * 4 + "40\n13\n" and f["data/f"].read_text() == "hello", "in a session of strict nothing of --ro can be changed, and no link or path leads out of it", r)
    r = u.cell(s, "open('/out/strict', 'w').write('s'); os.mkdir('/out/sd')")
    left = f["out/strict"].stat() if f["out/strict"].exists() else None
    u.ok(r["status"] == "ok" and left and left.st_uid == f.uid and f["out/sd"].is_dir(), "what a session of strict writes in a folder of --rw is on the host at once, and its owner is that of the folder", r, left)
    branch = u("session", "fork", s).out.strip()
    u("session", "close", s)
    r = u.cell(branch, "print(open('/data/f').read()); open('/out/forked', 'w').write('b'); open('/data/f', 'w')")
    u.ok(r["stdout"] == "hello\n" and f["out/forked"].read_text() == "b" and "Read-only" in (r["message"] or r.out), "a branch in strict has the folders of its session, and the same rights there", r)
    os.rename(f["data"], f["moved"])
    os.rename(f["other"], f["data"])
    r = u.cell(branch, "print(open('/data/f').read())")
    u.ok(r.code == exits.NEVER_RAN and "was replaced by another folder" in (r["reason"] or ""), "a call in strict is refused when another folder has come to the name of one that would be served", r)
    os.rename(f["data"], f["other"])
    os.rename(f["moved"], f["data"])
    r = u.cell(branch, "print(open('/data/f').read())")
    u.ok(r["stdout"] == "hello\n", "the session of strict that could not be called is as it was", r)
    u("session", "close", branch)
    r = u("repl", "--ro", f"{f['data']}:/data", "--rw", f"{f['out']}:/out", text="x = open('/data/f').read()\nx\nn = open('/out/typed', 'w').write(x)\n")
    u.ok("'hello'" in r.out and f["out/typed"].read_text() == "hello", "the prompt of strict takes --ro and --rw", r)
    f["out/typed"].unlink()


def counted(u, f):
    """What idle sessions hold has a limit (sessions.memory_percent): a template that is there for one of them alone is part of it."""
    def beside(name):
        s = u.sessions()[name]
        return s["idle_memory_mb"] - s["memory_mb"] - s["files_bytes"] / 2**20
    plain, shared = u.new("--profile", "standard"), u.new("--profile", "standard", "--ro", f"{f['data']}:/data")
    own, one = beside(plain), beside(shared)
    u.ok(one > 0.5 and abs(own) < 0.3, "of an idle session with folders its own template counts, and of another one nothing but itself", own, one, u.sessions())
    branch = u("session", "fork", shared).out.strip()
    u.cell(shared, "1")  # each is looked at once a rest
    both = beside(shared) + beside(branch)
    u.ok(0.5 * one < both < 1.5 * one, "the template of a session and its branch counts once", one, both, u.sessions())
    for s in (plain, shared, branch):
        u("session", "close", s)


def prompt(u, f):
    r = u("repl", "--profile", "standard", "--ro", f"{f['data']}:/data", "--rw", f"{f['out']}:/out", text="x = open('/data/f').read()\nx\nn = open('/out/typed', 'w').write(x)\n")
    u.ok("'hello'" in r.out and f["out/typed"].read_text() == "hello", "the prompt takes --ro and --rw", r)


def restored(u, f):
    fresh("w", {"a": "1\n"}, u.who)
    s = u.new("--profile", "standard", "--workspace", "w", "--ro", f"{f['data']}:/data")
    first = u.cell(s, "open('a', 'w').write(open('/data/f').read())")
    workspace("restore", "w", "head~1", who=u.who)
    r = u.cell(s, "print(open('a').read(), open('/data/f').read())")
    u.ok(first["snapshot"]["changed"] and r["stdout"] == "1\n hello\n", "a session in a workspace that is restored keeps its folders of the host, and commits nothing of them", first, r)
    u("session", "close", s)


def refused(u, f):
    state = House.of(u.who)["CORDON_STATE"]
    rows = [
        (["--rw", f"{state}:/shared"], "the state folder", "the state folder for writing"),
        (["--rw", f"{pathlib.Path(state).parent}:/shared"], "the state folder", "a folder above the state folder for writing"),
        (["--rw", f"{state}/workspaces:/shared"], "the state folder", "the workspaces for writing"),
        (["--rw", f"{programs.bin}:/shared"], "Cordon's own program", "Cordon's programs for writing"),
        (["--ro", f"{f['by-link']}:/data"], "goes through a symbolic link", "a folder behind a link"),
        (["--ro", f"{f['fifo']}:/data"], "neither a folder nor a regular file", "a FIFO"),
        (["--ro", f"{f['missing']}:/data"], "No such file", "a folder that is not there"),
        (["--ro", f"{f['data']}:data"], "DEST must be absolute", "a relative destination"),
        (["--ro", f"{f['data']}:/workspace/data"], "a session's own files", "a place in /workspace"),
        (["--rw", f"{f['out']}"], "a session's own files", "a place in /tmp by its own name"),
        (["--ro", f"{f['data']}:/usr/lib/python3"], "the interpreter that a session is forked from", "a place that the interpreter reads"),
        (["--ro", f"{f['data']}:/cordon-python"], "the interpreter that a session is forked from", "the place of Cordon's own worker"),
        (["--ro", f"{f['data']}:/proc/x"], "belongs to the jail itself", "a place of the jail's own"),
        (["--ro", f"{f['data']}:/a/../b"], "is not an absolute path without", "a place with `..` in it"),
        ([*["--ro", f"{f['data']}:/data"] * 29], "given more than 28 times together", "29 folders"),
    ]
    for options, words, what in rows:
        r = u("session", "new", "--profile", "standard", *options)
        u.ok(r.code == exits.NEVER_RAN and words in r.err, f"a session cannot share {what}, and says why", r)
    for options, words in ((["--profile", "locked"], "a program of Python under locked can open no file, so it would not see /data"), (["--profile", "strict", "--lang", "ruby"], "a program of Ruby under strict can open no file")):
        r = u("session", "new", *options, "--ro", f"{f['data']}:/data")
        u.ok(r.code == exits.NEVER_RAN and words in r.err, f"a session whose programs would see nothing of a folder says so at once: {' '.join(options)}", r)
    s = u.new("--profile", "standard")
    rows = [(["session", "run", s, "--ro", f"{f['data']}:/data", "-c", "1"], "--ro is for new"), (["repl", "--session", s, "--rw", f"{f['out']}:/out"], "keeps the folders that it sees")]
    for words, say in rows:
        r = u(*words)
        u.ok(r.code == exits.NEVER_RAN and say in r.err, f"{words[0]} of a session that is there takes no folder", r)
    u("session", "close", s)
    u.ok(not u.sessions(), "what was refused left no session behind", u.sessions())


def hostile(u, f):
    s = u.new("--profile", "open", "--ro", f"{f['data']}:/data", "--rw", f"{f['out']}:/out")
    code = ("import os\nos.path.lexists('/out/l') and os.remove('/out/l')\nos.symlink(%r, '/out/l'); os.symlink('../secret', '/out/u')\n"
            "for p in ('/data/link', '/data/up', '/data/../secret', '/out/l', '/out/u', '/out/../secret'):\n    try:\n        print(open(p).read())\n    except OSError as e:\n        print('no')" % str(f["secret"]))
    r = u.cell(s, code)
    u.ok(r["stdout"] == "no\n" * 6, "links in a shared folder, the host's and the session's own, lead to nothing outside it", r)
    other = u.new("--profile", "standard", "--ro", f"{f['other']}:/other")
    r = u.cell(other, "import os\nprint(os.path.exists('/data'), os.path.exists('/out'), os.listdir('/other'))")
    u.ok(r["stdout"] == "False False ['f']\n", "a session sees nothing of what another one shares", r)
    u("session", "close", other)
    os.rename(f["data"], f["moved"])
    os.rename(f["other"], f["data"])
    r = u.cell(s, "print(open('/data/f').read())")
    u.ok(r["stdout"] == "hello\n", "a session goes on with the folder that it was given when another comes to that name", r)
    os.rename(f["out"], f["moved-out"])
    os.rename(f["data"], f["out"])
    r = u.cell(s, "open('/out/late', 'w')")
    u.ok(r.code == exits.NEVER_RAN and "was replaced by another folder" in (r["reason"] or "") and not f["out/late"].exists() and not f["moved-out/late"].exists(),
         "a call is refused when another folder has come to the name of one that it may write in", r)
    os.rename(f["out"], f["other"])
    os.rename(f["moved-out"], f["out"])
    r = u.cell(s, "open('/out/late', 'w').close(); os.chmod('/out', 0o777)")
    u.ok(r["status"] == "ok" and f["out/late"].exists(), "the session that could not be called is as it was", r)
    os.rename(f["moved"], f["data"])
    before = f["out"].stat().st_mode & 0o7777
    u("session", "close", s)
    u.ok(before == 0o777 and until(lambda: f["out"].stat().st_mode & 0o7777 == 0o755), "a folder of --rw has its own mode again when its session is over", oct(before), oct(f["out"].stat().st_mode))


for person in users():
    user, folders = User(tap, programs, person), Folders(person)
    ordinary(user, folders)
    served(user, folders)
    counted(user, folders)
    prompt(user, folders)
    restored(user, folders)
    refused(user, folders)
    hostile(user, folders)
    user("pool", "stop", "--force")
tap.done()
