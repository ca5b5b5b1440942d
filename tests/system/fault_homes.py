# SPDX-License-Identifier: Apache-2.0
"""The places a fault campaign works in: a user with a state folder, a pool in it, and clients whose reader we are.

A home on the disk has the machine's own speed of syncing; a small one is a tmpfs that can be filled and made read-only."""
import atexit
import ctypes
import fcntl
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import tapsys
import traces

POLICY = """version: 1
limits: {timeout: 5m}
rates: {executions: 1000, window: 1ms, concurrent: 10}
breakers: {failures: 1000, counts: [lost]}
approval: {iterations: 0}
workspaces: {free: 0, free_percent: 0}
audit: {sync: "on", duplicates: 0, failures: 0, slow_factor: 0, violations: 0}
"""  # ten places, as people have; records on the disk before a program runs, as people have; a limit that no fault is held for
SMALL = 16 << 20
MS_RDONLY, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 32, 4096, 2
libc = ctypes.CDLL(None, use_errno=True)
started = {}  # pid -> Popen of every client, so that nobody else waits for it


def system_call(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class Client:
    """One start of cordon, read by a thread that can stall, close, or never have been there."""

    def __init__(self, home, args, text="", out="pipe", capacity=None, quota=None, closes=False, prepare=None, terminal=False):
        """QUOTA: so many bytes are read; then the reader stalls, or CLOSES its end."""
        self.began, self.bytes, self.quota, self.closes = time.monotonic(), bytearray(), quota, closes
        self.reading = threading.Event()  # a reader that has stalled reads on
        self.err = tempfile.TemporaryFile()
        self.read_end = None
        stdin = tempfile.TemporaryFile()
        stdin.write(text.encode())
        stdin.seek(0)
        if out == "pipe":
            self.read_end, stdout = os.pipe()
            if capacity:
                fcntl.fcntl(self.read_end, fcntl.F_SETPIPE_SZ, capacity)
        else:
            stdout = os.open(out, os.O_WRONLY)
        # what only root can do before the start is done by root; else nothing stands between us and the program
        drop_later = home.drops and getattr(prepare, "as_root", False)
        more = dict(user=tapsys.ROOTLESS, group=tapsys.ROOTLESS, extra_groups=[]) if home.drops and not drop_later else {}
        master = None
        if terminal:
            master, slave = pty.openpty()
            stdin, inner = os.fdopen(slave, "r+b", 0), prepare

            def prepare():
                fcntl.ioctl(0, 0x540E, 0)  # TIOCSCTTY
                inner and inner()
        self.p = subprocess.Popen(home.command(args, drop_later), stdin=stdin, stdout=stdout, stderr=self.err, cwd="/", env=home.env,
                                  start_new_session=True, preexec_fn=prepare, **more)
        self.pid, self.master = self.p.pid, master
        started[self.pid] = self.p
        stdin.close()
        os.close(stdout)
        self.reader = threading.Thread(target=self.read, daemon=True)
        if self.read_end is not None:
            self.reader.start()

    def read(self):
        if self.quota == 0 and not self.closes:
            self.reading.wait()
            self.quota = None
        while self.quota is None or self.quota > len(self.bytes):
            data = os.read(self.read_end, 65536 if self.quota is None else min(65536, self.quota - len(self.bytes)))
            if not data:
                break
            self.bytes += data
            if self.quota is not None and self.quota <= len(self.bytes) and not self.closes:
                self.reading.wait()
                self.quota = None
        os.close(self.read_end)

    def read_on(self):
        self.reading.set()

    def ended(self):
        return self.p.poll() is not None

    def finish(self, seconds):
        """What it gave, as a tapsys.Run; the code is None when it did not end by itself."""
        try:
            code = self.p.wait(seconds * tapsys.SLOW)
        except subprocess.TimeoutExpired:
            self.err.write(f"\n[not ended: {traces.where(self.pid)}; load {os.getloadavg()[0]:.0f}]".encode())
            self.p.kill()
            self.p.wait()
            code = None
        took = time.monotonic() - self.began
        if self.read_end is not None:
            self.read_on()
            self.reader.join(10)
        if self.master is not None:
            os.close(self.master)
        self.err.seek(0)
        return tapsys.Run(code, self.bytes.decode("utf-8", "replace"), self.err.read().decode("utf-8", "replace"), took)


class Home:
    """A state folder, its policy and its pool."""
    pool_size = 2

    def __init__(self, programs, who, small=False):
        self.programs, self.who, self.small = programs, who, small
        self.drops = who == "user" and os.geteuid() == 0
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-faults-", dir="/var/tmp"))
        os.chmod(self.top, 0o755)
        self.state, self.tmp = self.top / "state", self.top / "tmp"
        for folder in (self.state, self.tmp, self.top / "config", self.top / "config/cordon"):
            folder.mkdir(mode=0o700)
        if small:
            size = f"size={SMALL},nr_inodes=400,mode=700"
            system_call(libc.mount(b"tmpfs", bytes(self.state), b"tmpfs", 0, size.encode()), "mount a tmpfs")
        (self.top / "config/cordon/policy.yaml").write_text(POLICY)
        self.asks = self.top / "config/asks.yaml"
        self.asks.write_text("approval: {mode: HITL}\n")
        for path in (self.state, self.tmp, self.top / "config", self.top / "config/cordon", self.top / "config/cordon/policy.yaml", self.asks):
            if self.drops:
                os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
        self.env = {"CORDON_STATE": str(self.state), "XDG_CONFIG_HOME": str(self.top / "config"), "XDG_RUNTIME_DIR": str(self.state),
                    "TMPDIR": str(self.tmp), "PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}
        self.holder, self.session, self.usual = None, None, {}
        atexit.register(self.close)

    def command(self, args, drop=False):
        return self.programs.command(args, "user" if drop else "root", accept=False)

    def __call__(self, *args, text="", seconds=20, **more):
        return Client(self, args, text, **more).finish(seconds)

    # --- its pool ---

    def status(self):
        return self("pool", "status", "--json").json or {}

    def full(self):
        """Whether as many children wait as should, and nothing is on its way."""
        status = self.status()
        rows = status.get("templates") or ()
        return status if rows and all(t["state"] == "ready" and t["ready"] == t["warm"] and not t["asked"] and not t["lent"] for t in rows) else None

    def restore(self):
        """The pool as it was: who lost its holder or its template starts it again, as people do. What is wrong, in words, or None."""
        if not self.holder or not traces.alive(self.holder):
            r = self("pool", "start", "--size", self.pool_size)
            if r.code != 0:
                return f"the pool does not start again: {r.story()}"
            self.session = None
        status = traces.until(self.full, 3)
        if not status and self.stop_pool():  # a template that died often is given time before it is started again
            status = self("pool", "start", "--size", self.pool_size).code == 0 and traces.until(self.full, 20)
        if not status:
            return f"the pool does not get full again: {self.status()}"
        self.holder = status["pid"]
        return None

    def stop_pool(self):
        """True when it is gone."""
        self("pool", "stop", "--force")
        gone = traces.until(lambda: not (self.holder and traces.alive(self.holder)))
        if gone:
            self.holder = self.session = None
        return gone

    def own_session(self):
        """The name of a session that lives and holds x = 6."""
        if self.session and self("session", "run", "--json", self.session, "-", text="x\n")["value"] == "6":
            return self.session
        r = self("session", "new")
        self.session = r.out.strip() if r.code == 0 else None
        if self.session:
            self("session", "run", "--json", self.session, "-", text="x = 6\n")
        return self.session

    def sessions(self):
        return sorted(s["session"] for s in self("session", "list", "--json").json or () if s["state"] != "over")

    # --- its disk ---

    def fill(self, what):
        """No block or no inode is left. Ours is root's file, which nobody counts."""
        if what == "inodes":
            for i in range(400):
                try:
                    os.close(os.open(self.state / f"filler-{i}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
                except OSError:
                    return
        fd = os.open(self.state / "filler-0", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        size = 1 << 20
        while size:
            try:
                os.write(fd, bytes(size))
            except OSError:
                size //= 2
        os.close(fd)

    def unfill(self):
        for path in self.state.glob("filler-*"):
            path.unlink()

    def read_only(self):
        """A read-only mount over the folder: whoever opens from now on cannot write."""
        where = bytes(self.state)
        system_call(libc.mount(where, where, None, MS_BIND, None), "bind the state folder")
        system_call(libc.mount(None, where, None, MS_BIND | MS_REMOUNT | MS_RDONLY, None), "make it read-only")

    def writable(self):
        system_call(libc.umount2(bytes(self.state), MNT_DETACH), "take the read-only mount away")

    def fresh_state(self):
        """Nothing of before is known; the pool of before is not reached any more, so it is ended first."""
        if not self.stop_pool() and self.holder:
            os.kill(self.holder, signal.SIGKILL)
            self.holder = self.session = None
        for path in self.state.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def close(self):
        if self.top.exists():
            self("pool", "stop", "--force")
            if self.holder and traces.alive(self.holder):
                os.kill(self.holder, signal.SIGKILL)
            if self.small:
                libc.umount2(bytes(self.state), MNT_DETACH)
            shutil.rmtree(self.top, ignore_errors=True)
