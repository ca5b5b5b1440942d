# SPDX-License-Identifier: Apache-2.0
"""What holds the state folder up: processes that are stopped with a lock, a full disk, a read-only one, no descriptors.

Usage: stuck.py BUILD. As root and as an ordinary user. The next command works, or is refused by a sentence that names
what is in the way; `cordon stop` works in any case; afterwards everything is as before and `audit verify` passes."""
import ctypes
import errno
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tapsys import ROOTLESS, SLOW, Programs, Tap, cordon, clean_env, soonest, users

tap = Tap()
programs = Programs(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND, MS_RDONLY, MS_REC, MS_PRIVATE = 32, 4096, 1, 0x4000, 0x40000
LOCK = """
import fcntl, os, signal, struct, sys
path, first, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fd = os.open(path, os.O_RDWR)
command = fcntl.F_OFD_SETLK if kind == "ofd" else fcntl.F_SETLK
fcntl.fcntl(fd, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, first, 1, 0))
os.kill(os.getpid(), signal.SIGSTOP)
"""


def private_mounts():
    """Mounts of this test's own; without root in a user namespace that keeps the uid."""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(0x00020000 | (0 if uid == 0 else 0x10000000)) != 0:
        raise OSError(ctypes.get_errno(), "no mounts of our own")
    if uid != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def mount(source, target, kind, flags, data=None):
    words = [None if w is None else str(w).encode() for w in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


class State:
    def __init__(self, who, size=None):
        self.who = who
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-stuck-", dir="/var/tmp"))
        self.dir = self.home / "state"
        self.dir.mkdir(mode=0o700)
        self.uid = ROOTLESS if who == "user" and os.geteuid() == 0 else os.geteuid()
        self.mounted = size is not None
        if size:
            mount("tmpfs", self.dir, "tmpfs", 0, f"size={size},mode=700,uid={self.uid}")
        (self.home / "policy.yaml").write_text("version: 1\nrates: {executions: 1000, window: 1ms, concurrent: 50}\n")
        for path in (self.home, self.dir, self.home / "policy.yaml"):
            os.chown(path, self.uid, -1)
        os.chmod(self.home / "policy.yaml", 0o600)
        self.env = {"CORDON_STATE": str(self.dir), "XDG_CONFIG_HOME": str(self.home / "none"), "XDG_RUNTIME_DIR": str(self.dir)}

    def run(self, *args, **more):
        more.setdefault("timeout", 40)
        return cordon(programs, args, self.who, env=self.env, **more)

    def execute(self, *options, **more):
        return self.run("exec", "--json", "--policy", self.home / "policy.yaml", *options, "--", "/bin/echo", "hello", **more)

    def sleeper(self):
        """A run that goes on; it has begun when this returns."""
        before = len(self.kinds())
        p = subprocess.Popen(programs.command(["exec", "--json", "--policy", str(self.home / "policy.yaml"), "--timeout", "300s",
                                               "--", "/bin/sleep", "300"], self.who),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(self.env), cwd="/")
        for _ in range(600):
            if self.run("stop", "--list", "--json")["count"] == 1 and len(self.kinds()) > before and self.guests(p.pid):
                break
            time.sleep(0.02)
        return p

    def guests(self, pid):
        """Whether the program itself runs: a stop before that is a refusal."""
        def grandparent(name):
            try:
                up = pathlib.Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[1]
                return int(pathlib.Path(f"/proc/{up}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                return 0
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"/bin/sleep\x00300\x00" and grandparent(entry.name) == pid:
                    return True
            except OSError:
                pass
        return False

    def kinds(self):
        """A line that is half written is not there yet."""
        return [json.loads(line)["kind"] for p in sorted((self.dir / "audit").glob("*.jsonl")) for line in p.read_text().split("\n")[:-1]]

    def holder(self, name, byte, kind="ofd"):
        """A process that holds a lock and is stopped."""
        command = [sys.executable, "-c", LOCK, str(self.dir / name), str(byte), kind]
        who = {"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid != os.geteuid() else {}
        p = subprocess.Popen(command, **who)
        _, status = os.waitpid(p.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"the holder ended: {status}"
        return p

    def whole(self, name):
        r = self.execute()
        tap.ok(r.code == 0 and r["stdout"] == "hello\n", f"{self.who}: {name}: a run works again", r.story())
        r = self.run("audit", "verify")
        tap.ok(r.code == 0, f"{self.who}: {name}: audit verify passes", r.story())

    def close(self):
        if self.mounted:
            libc.umount2(str(self.dir).encode(), 2)
        shutil.rmtree(self.home, ignore_errors=True)


def let_go(p):
    os.kill(p.pid, signal.SIGCONT)
    p.wait()


def stops_at_once(s, when):
    """`cordon stop` again, which finds nothing new to do: each time as soon as the last. A second is less than the wait for a lock that
    a run has (LIMIT_LOCK_MS) and than --patience."""
    took, r = soonest(lambda: (lambda r: (r.seconds, r))(s.run("stop", "--json")), 5, SLOW)
    tap.ok(r["stopped"] is True and took <= SLOW, f"{s.who}: stop returns within a second {when}", f"{took:.3f} s at best", r.story())


def names(text, p):
    return f"pid {p.pid} (" in text and "stopped" in text and f"kill -CONT {p.pid}" in text


def running(who):
    """Nothing in the way, and a run that goes on."""
    s = State(who)
    s.whole("a new state folder")

    def attempt():
        run = s.sleeper()
        r = s.run("stop", "--json")
        run.communicate()
        tap.eq(s.run("resume").code, 0, f"{who}: resume lets runs in again")
        return r.seconds, r
    took, r = soonest(attempt, 5, SLOW)
    tap.ok(r.code == 0 and r["count"] == 1 and r["runs"][0]["end"] == "ended" and took <= SLOW, f"{who}: stop of a run that goes on returns within a second",
           f"{took:.3f} s at best", r.story())
    s.close()


def audit_lock(who):
    s = State(who)
    s.whole("a new state folder")
    p = s.holder("seal/head", 0)
    for words, call in (("exec", lambda: s.execute()), ("exec --no-wait", lambda: s.execute("--no-wait"))):
        r = call()
        text = (r["error"] or {}).get("message", "")
        tap.ok(r["status"] == "refused" and names(text, p) and r["error"]["category"] == "HOST", f"{who}: {words} is refused by the name of a stopped holder of the audit's lock",
               r.story())
    waited = [re.findall(r"held for more than (\d+) ms", (s.execute(*o)["error"] or {}).get("message", "")) for o in (["--no-wait"], [])]
    tap.ok(len(waited[0]) == len(waited[1]) == 1 and int(waited[0][0]) < int(waited[1][0]), f"{who}: --no-wait gives up earlier", waited)
    for words in (("audit", "tail"), ("audit", "verify")):
        r = s.run(*words)
        tap.ok(r.code == 1 and names(r.err, p), f"{who}: {' '.join(words)} names a stopped holder of the audit's lock", r.story())
    r = s.run("stop", "--json")
    tap.ok(r["stopped"] is True and "not recorded" in r.err and names(r.err, p),
           f"{who}: stop takes effect and returns while the audit's lock is held, and says what is not recorded", r.story())
    stops_at_once(s, "while a stopped process holds the audit's lock")
    let_go(p)
    tap.eq(s.run("resume").code, 0, f"{who}: resume lets runs in again")
    s.whole("the audit's lock was held by a stopped process")
    p = s.holder("seal/head", 1)
    r = s.execute()
    tap.ok(r.code == 0 and r["stdout"] == "hello\n", f"{who}: a process that was stopped while it synced for others holds nobody up", r.story())
    let_go(p)
    s.whole("the sync lock was held by a stopped process")
    s.close()


def gate_lock(who):
    s = State(who)
    s.whole("a new state folder")
    p = s.holder("gate.live", 0)
    r = s.execute()
    tap.ok(r["status"] == "refused" and names((r["error"] or {}).get("message", ""), p),
           f"{who}: exec is refused by the name of a stopped holder of the gate's lock", r.story())
    r = s.run("stop", "--json")
    tap.ok(r.code == 0 and r["stopped"] is True, f"{who}: stop works and is recorded while the gate's lock is held", r.story())
    stops_at_once(s, "while a stopped process holds the gate's lock")
    let_go(p)
    tap.eq(s.run("resume").code, 0, f"{who}: resume lets runs in again")
    s.whole("the gate's lock was held by a stopped process")
    s.close()


def stopped_supervisor(who):
    s = State(who)
    s.whole("a new state folder")
    run = s.sleeper()
    os.kill(run.pid, signal.SIGSTOP)
    r = s.run("stop", "--json", "--patience", "1h", timeout=60)
    tap.ok(r.code == 0 and r["count"] == 1 and r["runs"][0]["end"] == "killed",
           f"{who}: stop does not wait for a supervisor that is stopped itself: it is killed", r.story())
    run.communicate()
    tap.eq(s.run("resume").code, 0, f"{who}: resume lets runs in again")
    s.whole("a stopped supervisor was killed")
    s.close()


def approvals_lock(who):
    s = State(who)
    s.whole("a new state folder")
    r = s.run("approve", "list")
    tap.eq(r.code, 0, f"{who}: approve list, nothing waits", r.story())
    p = s.holder("approvals.db", 0x40000001, "posix")  # SQLite's RESERVED byte: another is about to write
    q = s.holder("approvals.db", 0x40000002, "posix")  # and its SHARED range: nobody may read
    r = s.run("approve", "list")
    tap.ok(r.code == 1 and (names(r.err, p) or names(r.err, q)), f"{who}: approve list names a stopped holder of the approvals' lock", r.story())
    let_go(p)
    let_go(q)
    tap.eq(s.run("approve", "list").code, 0, f"{who}: approve list works when the stopped holder has gone on")
    s.close()


def no_descriptors(who):
    s = State(who)
    stopped = []
    for limit in range(4, 40):
        shutil.rmtree(s.dir)
        s.dir.mkdir(mode=0o700)
        os.chown(s.dir, s.uid, -1)
        s.execute(preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        if (s.dir / "gate.live").exists() and s.run("stop", "--list", "--json")["stopped"]:
            stopped.append(limit)
    tap.eq(stopped, [], f"{who}: a first run without a spare descriptor does not stop everybody")
    s.whole("runs without descriptors")
    (s.dir / "gate.live").unlink()
    (s.dir / "stopped").write_text("1\nsomebody\nfor a reason\n")
    os.chmod(s.dir / "stopped", 0o600)
    os.chown(s.dir / "stopped", s.uid, -1)
    r = s.execute()
    tap.ok(r["status"] == "denied" and "for a reason" in json.dumps(r.json), f"{who}: the file `stopped` stops without a mapped file", r.story())
    s.close()


def fill_up(s):
    fd = os.open(s.dir / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, bytes(4096))
    except OSError as e:
        assert e.errno == errno.ENOSPC
    os.close(fd)


def full_disk(who):
    s = State(who, "8m")
    s.whole("a new state folder")
    tap.eq(s.run("approve", "list").code, 0, f"{who}: approve list shows what waits")
    (s.home / "asks.yaml").write_text("version: 1\napproval: {mode: HITL}\n")
    os.chmod(s.home / "asks.yaml", 0o600)
    os.chown(s.home / "asks.yaml", s.uid, -1)
    r = s.run("exec", "--json", "--policy", s.home / "asks.yaml", "--no-wait", "--", "/bin/echo", "hello")
    question = re.search(r"ap-[0-9a-f]{12}", r.out)[0]
    run = s.sleeper()
    fill_up(s)
    r = s.run("approve", "list")
    tap.ok(r.code == 0 and question in r.out, f"{who}: approve list works on a full disk", r.story())
    r = s.run("approve", "show", question)
    tap.ok(r.code == 0 and "hello" in r.out, f"{who}: approve show works on a full disk", r.story())
    r = s.run("approve", "no", question, "--why", "test")
    tap.ok(r.code == 0 or "disk of the state folder is full" in r.err, f"{who}: an answer on a full disk is kept, or refused by name", r.story())
    kept = r.code == 0
    r = s.run("stop", "--json")
    tap.ok(r.code == 0 and r["stopped"] is True and r["count"] == 1 and r["runs"][0]["end"] == "ended",
           f"{who}: stop on a full disk ends what runs, is recorded, and says so", r.story())
    out, err = run.communicate()
    tap.ok(b"Stopped" in out, f"{who}: the run that was stopped says so", out[-400:], err[-400:])
    (s.dir / "gate.live").unlink()
    (s.dir / "filler").unlink()
    r = s.execute()
    tap.ok(r["status"] == "denied", f"{who}: a stop on a full disk is kept", r.story())
    tap.eq(s.run("resume").code, 0, f"{who}: resume lets runs in again")
    r = s.run("approve", "no", question, "--why", "test")
    tap.ok((r.code == 0) != kept, f"{who}: with room again the answer is taken, once", r.story())
    s.whole("a full disk")
    s.close()


def read_only(who):
    s = State(who)
    s.whole("a new state folder")
    tap.eq(s.run("approve", "list").code, 0, f"{who}: approve list shows what waits")
    run = s.sleeper()
    mount(s.dir, s.dir, None, MS_BIND)
    mount(None, s.dir, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    r = s.run("stop", "--json")
    tap.ok(r.code == 1 and r["stopped"] is False and r["count"] == 1 and r["runs"][0]["end"] == "ended" and "read-only" in r.err
           and "not recorded" in r.err, f"{who}: stop on a read-only folder ends what runs, and says that new ones are not refused", r.story())
    out, _ = run.communicate()
    tap.ok(b"Stopped" in out, f"{who}: the run that was stopped says so", out[-400:])
    r = s.run("stop", "--list", "--json")
    tap.eq((r.code, r["count"]), (0, 0), f"{who}: stop --list on a read-only folder", r.story())
    r = s.run("approve", "list")
    tap.ok(r.code == 0 or "read-only" in r.err.lower(), f"{who}: approve list on a read-only folder works or names it", r.story())
    r = s.execute()
    tap.ok(r["status"] != "ok" and "Read-only" in json.dumps(r.json) + r.err, f"{who}: nothing can begin there", r.story())
    assert libc.umount2(str(s.dir).encode(), 2) == 0
    s.whole("a read-only folder")
    s.close()


private_mounts()
for user in users():
    running(user)
    audit_lock(user)
    gate_lock(user)
    stopped_supervisor(user)
    approvals_lock(user)
    no_descriptors(user)
    full_disk(user)
    read_only(user)
tap.done()
