# SPDX-License-Identifier: Apache-2.0
"""The faults: signals, readers, disks, descriptors, memory. Each strikes once, is held while others must go on, and is lifted.

A victim is found by its place below the client or the holder of this very run, and signalled by a descriptor of it: a pid
that has come to mean somebody else is never hit."""
import os
import pathlib
import resource
import signal
import time

import fault_commands
import traces


def find(victim, home, client):
    """Pids of processes that have this part in the run just now; the nearest first."""
    if victim == "client":
        return [client.pid]
    if victim == "holder":
        return [home.holder] if home.holder else []
    if victim in ("template", "template's nest", "init of a child"):
        nests = named(home.holder, "cordon-nest")
        if victim == "template's nest":
            return nests
        templates = [t for n in nests for t in named(n, "cordon-python")]
        return templates if victim == "template" else [i for t in templates for i in named(t, "cordon-python")]
    own = {"builder": "cordon", "nest": "cordon-nest", "janitor": "cordon-janitor", "approvals": "cordon-approvals", "new holder": "cordon-holder",
           "server of files": "cordon-tool", "keeper of workspaces": "cordon-workspace",
           "reader of pictures": "cordon-image", "painter": "cordon-plot"}
    return named(client.pid, own[victim]) or (named(os.getpid(), own[victim]) if victim == "new holder" else [])


def named(parent, name):
    found = (traces.process(pid) for pid in traces.children(parent))
    return [p.pid for p in found if p and p.name == name[:15] and p.state not in "ZX"]  # the kernel keeps 15 letters


class Fault:
    small = until_end = False  # on the home with the small disk; lifted when the client has ended, not before
    out, capacity, quota, close, instant, silent = "pipe", None, None, False, 0, False
    takes_sessions = False

    def before_start(self):
        """A function that runs in the client before it is executed."""
        return None

    def early(self, home):
        """Before the client is started."""

    def must_work(self, command):
        """Whether the command has to give its right answer in spite of it."""
        return False

    def wait_instant(self, client):
        while time.monotonic() < client.began + self.instant and not client.ended():
            time.sleep(0.0003)

    def strike(self, home, command, client):
        """True: it hit."""
        return True

    def hold(self, home, command, client, others):
        """What is wrong while the fault is on, in words. OTHERS looks whether other runs go on,
        and is told who is stopped."""
        return []

    def lift(self, home, client):
        pass

    def excuses(self, command, run):
        """True: beside a right answer and a refusal by name this is the truth, too."""
        return False


class Signal(Fault):
    def __init__(self, number, victim, instant):
        self.number, self.victim, self.instant, self.fd = number, victim, instant, None
        self.silent = victim == "client" and number != signal.SIGSTOP  # nobody is left to answer
        if number == signal.SIGKILL and victim in ("holder", "template", "template's nest", "init of a child"):
            self.takes_sessions = True

    @property
    def name(self):
        return f"{signal.Signals(self.number).name} to the {self.victim} after {self.instant * 1000:.1f} ms"

    def strike(self, home, command, client):
        self.wait_instant(client)
        while not client.ended():
            for pid in find(self.victim, home, client):
                try:
                    self.fd = os.pidfd_open(pid)
                    if pid not in find(self.victim, home, client):
                        raise ProcessLookupError
                    signal.pidfd_send_signal(self.fd, self.number)
                    self.pid = pid
                    return True
                except OSError:  # it ended meanwhile
                    self.done()
        return False

    def hold(self, home, command, client, others):
        return others(f"while the {self.victim} is stopped", self.pid) if self.number == signal.SIGSTOP else []

    def lift(self, home, client):
        if self.number == signal.SIGSTOP and self.fd is not None:
            try:
                signal.pidfd_send_signal(self.fd, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.done()

    def done(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


class Reader(Fault):
    """It reads so many bytes, and then no more; or it closes its end."""
    capacity = 4096

    def __init__(self, count, close):
        self.quota, self.close, self.silent = count, close, close
        self.name = f"a reader that {'closes' if close else 'stalls'} after {count} bytes"

    def hold(self, home, command, client, others):
        if self.close:
            return []
        wrong = others("while the reader is stalled", None)
        if command.holds_place and not traces.until(lambda: home("stop", "--list", "--json")["count"] == 0):
            wrong.append("a run whose reader is stalled keeps its place")
        return wrong

    def lift(self, home, client):
        if not self.close:
            client.read_on()

    def excuses(self, command, run):
        return self.close and run.code not in (0, None)


class Disk(Fault):
    small = until_end = True
    WORDS = {"blocks": "a full disk", "inodes": "a disk without inodes", "read-only": "a read-only disk"}

    def __init__(self, what, instant):
        self.what, self.instant = what, instant  # at 0 it is there before the command
        self.name = f"{self.WORDS[what]} after {instant * 1000:.1f} ms"

    def apply(self, home):
        home.read_only() if self.what == "read-only" else home.fill(self.what)

    def early(self, home):
        if self.instant == 0:
            self.apply(home)

    def strike(self, home, command, client):
        self.wait_instant(client)
        if self.instant:
            self.apply(home)
        return True

    def hold(self, home, command, client, others):
        if command.name != "stop":
            return []
        traces.until(client.ended)
        r = home("run", "--json", "--no-wait", *fault_commands.COLD, "-", text="print(1)\n")
        return [] if r["status"] in ("denied", "refused") else [f"stopped on {self.name}, but a run goes on: {r.story()}"]

    def lift(self, home, client):
        home.writable() if self.what == "read-only" else home.unfill()

    def must_work(self, command):
        # where nobody can write, nobody can be told to stop, nor begin: there `stop` says so
        return command.name in ("eval", "eval of a stream", "policy show") or command.name == "stop" and self.what != "read-only"


class FullOutput(Fault):
    out, name = "/dev/full", "standard output on a full disk"

    def excuses(self, command, run):
        return run.code == 0 if not command.prints else run.code not in (0, None) and run.code > 0


class FewDescriptors(Fault):
    def __init__(self, count):
        self.count, self.name = count, f"{count} descriptors at most"

    def before_start(self):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.count, self.count))


class LittleMemory(Fault):
    """An address space that is too small: what cannot be had is refused, and nothing is killed."""

    def __init__(self, size):
        self.size, self.name = size, f"{size >> 10} KB of address space"

    def before_start(self):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (self.size, self.size))

    def excuses(self, command, run):
        answer = command.answer(run)
        if isinstance(answer, dict) and answer.get("status") == "memory":
            return any("ulimit -v" in note for note in answer["notes"])
        # a program that is too large for its loader is ended by the kernel before it is one
        return run.code == -signal.SIGSEGV and self.size < 5 << 20 and not run.out


class SmallGroup(Fault):
    """A memory cgroup that is too small: the kernel kills whom it likes, and the client may be among them."""
    until_end = True

    def __init__(self, size):
        self.size, self.name, self.path = size, f"a memory cgroup of {size >> 10} KB", None

    V1, V2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")

    @classmethod
    def place(cls):
        """(folder, version) where root can make a memory cgroup, or None."""
        if os.geteuid() != 0:
            return None
        if os.access(cls.V1 / "memory.limit_in_bytes", os.W_OK):
            return cls.V1, 1
        enabled = cls.V2 / "cgroup.subtree_control"
        return (cls.V2, 2) if enabled.exists() and "memory" in enabled.read_text().split() else None

    def limit(self, size):
        (self.path / ("memory.limit_in_bytes" if self.version == 1 else "memory.max")).write_text(str(size))

    def before_start(self):
        top, self.version = self.place()
        self.path = top / f"faults-{os.getpid()}-{time.monotonic_ns()}"
        self.path.mkdir()
        self.limit(self.size)

        def enter(procs=self.path / "cgroup.procs"):
            procs.write_text("0")
        enter.as_root = True
        return enter

    def lift(self, home, client):
        self.limit("-1" if self.version == 1 else "max")

    def remove(self):
        for pid in (self.path / "cgroup.procs").read_text().split():  # a holder that was started in it
            (self.path.parent / "cgroup.procs").write_text(pid)
        traces.until(lambda: not (self.path / "cgroup.procs").read_text().split())
        self.path.rmdir()

    def killed(self):
        words = (self.path / ("memory.oom_control" if self.version == 1 else "memory.events")).read_text().split()
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0

    def excuses(self, command, run):
        if not self.killed():
            return False
        # the client itself, or the program in its run: that it was killed is the truth, and that it was too large would not be
        return run.code == -signal.SIGKILL or run["status"] == "crashed" and run["signal"] == signal.SIGKILL
