# SPDX-License-Identifier: Apache-2.0
"""What the whole-system tests share: TAP, cordon as root and as an ordinary user, canaries.

Attacks are only ever started through cordon, and only in an empty network namespace of the test."""
import atexit
import concurrent.futures
import ctypes
import fcntl
import json
import os
import pathlib
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

import schema

SLOW = int(os.environ.get("TAPSYS_SLOW", "1"))  # an emulated machine gets that many times the time
LONG = ["--timeout", f"{30 * SLOW}s", "--cpu", f"{30 * SLOW}s"]  # for what fills memory, the stack or the output, which such a machine does slowly
NODE = shutil.which("node") or "/usr/bin/node"  # scripts/setup installs Debian's only where there is none
LATE = 0.25 * SLOW  # seconds that the end of a run may come after its limit; a quiet machine needs 4 ms
ROOTLESS = 61234  # an ordinary uid that no account has
STATUSES = {"ok", "error", "blocked", "denied", "timeout", "memory", "output", "crashed", "refused"}
LAYERS = ("input", "process", "syscalls", "resources", "network", "filesystem", "output", "gate")
REQUIRED_LAYERS = ("input", "process", "syscalls", "resources", "network", "filesystem", "output", "audit")
KEYS = {  # docs/exec.md, "The JSON object"
    "id": str, "status": str, "layer": (str, type(None)), "reason": (str, type(None)), "notes": list, "violations": list,
    "stdout": str, "stderr": str, "stdout_bytes": int, "stderr_bytes": int, "truncated": bool,
    "value": object, "is_final": bool, "final": object, "error": (dict, type(None)),
    "exit_code": (int, type(None)), "signal": (int, type(None)), "usage": dict, "layers": dict,
    "files": list, "snapshot": object, "session": object,
}


# --- TAP ------------------------------------------------------------------------------------------

class Tap:
    def __init__(self):
        self.count = self.failures = 0

    def ok(self, good, name, *details):
        self.count += 1
        self.failures += not good
        name = "".join(c if c.isprintable() and c != "#" else "?" for c in name)
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        for d in details if not good else ():
            for line in str(d).splitlines()[:30]:
                print("#", line[:600])
        sys.stdout.flush()
        return good

    def eq(self, got, want, name, *details):
        return self.ok(got == want, name, f"got {got!r}, want {want!r}", *details)

    def skip(self, name, reason):
        if os.environ.get("CORDON_MUST_WORK"):
            return self.ok(False, f"{name} (cannot be skipped here: {reason})")
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def figure(self, text):
        print("#=", text, flush=True)

    def done(self):
        if schema.seen:
            self.ok(not schema.faults, "every result and report that this test saw follows its schema", *schema.faults[:10])
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failures else 0)


def on_terminal(programs, args, who, env):
    """What a command writes to a terminal that is its stdout and stderr, as bytes."""
    ours, theirs = os.openpty()
    p = subprocess.Popen(programs.command(args, who), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=clean_env({"TERM": "xterm", **env}, who), cwd="/")
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # nobody has it open any more
            break
        seen += data
    os.close(ours)
    p.wait(60)
    return seen


# --- the programs, for both users -----------------------------------------------------------------

class Programs:
    """A copy of the programs that every user can run, in a folder that goes away with the test."""

    def __init__(self, build):
        build = pathlib.Path(build)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cordon-test-", dir="/tmp"))
        os.chmod(self.dir, 0o755)
        atexit.register(shutil.rmtree, self.dir, ignore_errors=True)
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for p in find_programs(build):
            shutil.copy2(p, self.bin / p.name)
        self.cordon = self.bin / "cordon"
        self.nest = self.bin / "cordon-nest"
        self.probes = build / "tests/probes"

    def command(self, args, who="root", accept=True):
        args = [str(a) for a in args]
        if accept and who == "user" and "--processes" in args and "--memory-by" not in args:
            # several processes and no cgroup to count them together: only where the caller accepts that
            args[1:1] = ["--memory-by", "rlimit"]
        cmd = [str(self.cordon), *args]
        if who == "user" and os.geteuid() == 0:
            cmd = ["/usr/bin/setpriv", f"--reuid={ROOTLESS}", f"--regid={ROOTLESS}", "--clear-groups", "--", *cmd]
        return cmd


def find_programs(build):
    found = [p for p in sorted(build.glob("src/prog/**/cordon*")) + sorted(build.glob("cordon*"))
             if p.is_file() and os.access(p, os.X_OK)]
    if not any(p.name == "cordon" for p in found):
        print("1..0 # SKIP this build has no cordon" if not os.environ.get("CORDON_MUST_WORK")
              else "Bail out! this build has no cordon")
        sys.exit(0 if not os.environ.get("CORDON_MUST_WORK") else 1)
    return found


def users():
    return ("root", "user") if os.geteuid() == 0 else ("user",)


class Run:
    """What one start of cordon gave."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        try:
            self.json = json.loads(out)
        except ValueError:
            self.json = None
        if isinstance(self.json, dict):
            schema.look(self.json)

    def __getitem__(self, key):
        return self.json.get(key) if isinstance(self.json, dict) else None

    def rules(self):
        return [v.get("rule", "") for v in self["violations"] or ()]

    def last_line(self):
        lines = (self["stdout"] or "").rstrip("\n").splitlines()
        return lines[-1] if lines else ""

    def story(self):
        if not isinstance(self.json, dict):
            return f"exit {self.code}; stdout {self.out[:300]!r}; stderr {self.err[:300]!r}"
        j = dict(self.json)
        for k in ("stdout", "stderr"):
            j[k] = j.get(k, "")[-200:] if isinstance(j.get(k), str) else j.get(k)
        j["violations"] = (j.get("violations") or [])[:6]
        return f"exit {self.code}; {json.dumps(j)[:1500]}; stderr {self.err[-300:]!r}"


POLICY = """version: 1
rates: {executions: 1000, window: 1ms, concurrent: 200}
breakers: {failures: 1000}
audit: {sync: "off", duplicates: 0, failures: 0, slow_factor: 0, violations: 0}
"""  # tests run hundreds of programs a minute, most of which fail on purpose


class House:
    """State and policy of one user, away from the machine's own."""
    made = {}

    @classmethod
    def of(cls, who):
        if who not in cls.made:
            top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-house-", dir="/tmp"))
            atexit.register(shutil.rmtree, top, ignore_errors=True)
            config = top / "config/cordon"
            config.mkdir(parents=True)
            (config / "policy.yaml").write_text(POLICY)
            (top / "state").mkdir(mode=0o700)
            if who == "user" and os.geteuid() == 0:
                for p in (top, top / "config", config, config / "policy.yaml", top / "state"):
                    os.chown(p, ROOTLESS, ROOTLESS)
            cls.made[who] = {"CORDON_STATE": str(top / "state"), "XDG_CONFIG_HOME": str(top / "config"),
                             "XDG_RUNTIME_DIR": str(top / "state")}
        return cls.made[who]


def clean_env(extra=None, who="root"):
    env = {**House.of(who), "PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}
    env.update(extra or {})
    return env


def cordon(programs, args, who="root", env=None, timeout=60, accept=True, text=None, **more):
    """Runs it to its end; a run that does not end is killed and shows as exit status None. TEXT: its stdin."""
    more.setdefault("stdin", subprocess.DEVNULL if text is None else subprocess.PIPE)
    more.setdefault("cwd", "/")
    start = time.monotonic()
    p = subprocess.Popen(programs.command(args, who, accept), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=clean_env(env, who), **more)
    try:
        out, err = p.communicate(text.encode() if isinstance(text, str) else text, timeout=timeout * SLOW)
        code = p.returncode
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        code = None
    return Run(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), time.monotonic() - start)


def side_by_side(work, items, at_once=os.cpu_count() or 1):
    """work(item) of each, AT_ONCE at a time; (item, result) in the order of the items. For runs that do not look at each other."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        yield from zip(items, pool.map(work, items))


def exec_json(programs, options, argv, who="root", **more):
    return cordon(programs, ["exec", "--json", *options, "--", *argv], who, **more)


def honest_first(tap, programs):
    """Where not even an honest program runs, a hundred failures more say nothing."""
    for who in users():
        r = exec_json(programs, [], ["/bin/echo", "hello"], who)
        if not tap.ok(r["stdout"] == "hello\n" and r.code == 0, f"{who}: an honest program runs", r.story()):
            print("Bail out! no honest program runs", flush=True)
            tap.done()


def shape_faults(result):
    """What is wrong with a result object, by docs/exec.md, "The JSON object"."""
    if not isinstance(result, dict):
        return ["no JSON object"]
    faults = [f"{k} is missing" for k in KEYS if k not in result]
    for k, kind in KEYS.items():
        if k in result and not isinstance(result[k], kind):
            faults.append(f"{k} is {result[k]!r}")
        if k in result and kind is int and isinstance(result[k], bool):
            faults.append(f"{k} is a truth value")
    if result.get("status") not in STATUSES:
        faults.append(f"status is {result.get('status')!r}")
    if result.get("layer") not in (None, *LAYERS):
        faults.append(f"layer is {result.get('layer')!r}")
    for v in result.get("violations") or ():
        if set(v) - {"times", "column", "outcome", "places"} != {"layer", "rule", "detail", "line", "hint"}:
            faults.append(f"a violation has the keys {sorted(v)}")
        elif v["layer"] not in LAYERS or not v["rule"] or not isinstance(v["detail"], str):
            faults.append(f"a violation is {v}")
        elif any(ord(c) < 32 or ord(c) == 127 for c in v["detail"] + v["rule"]) or len(v["detail"]) > 1000:
            faults.append(f"a violation's detail is not fit to print: {v['detail'][:80]!r}")
    usage = result.get("usage")
    if isinstance(usage, dict) and not {"wall_ms", "cpu_ms", "memory_mb"} <= set(usage):
        faults.append(f"usage has the keys {sorted(usage)}")
    error = result.get("error")
    if isinstance(error, dict) and set(error) - {"retry_after_s", "hint"} != {"category", "type", "message", "line"}:
        faults.append(f"error has the keys {sorted(error)}")
    elif isinstance(error, dict) and not (isinstance(error.get("hint", "-"), str) and error.get("hint", "-")):
        faults.append(f"the hint of an error is {error['hint']!r}")
    layers = result.get("layers")
    if isinstance(layers, dict) and not set(REQUIRED_LAYERS) <= set(layers):
        faults.append(f"layers lacks {sorted(set(REQUIRED_LAYERS) - set(layers))}")
    return faults


# --- an empty network namespace -------------------------------------------------------------------

def enter_empty_network():
    """This process and all it starts: no interface but a loopback of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_net, new_user, new_mount = 0x40000000, 0x10000000, 0x00020000
    if libc.unshare(ctypes.c_int(new_net | new_mount | (0 if os.geteuid() == 0 else new_user))) != 0:
        raise OSError(ctypes.get_errno(), "no empty network namespace: attacks are not run without one")
    if os.geteuid() != 0:
        uid, gid = os.environ["TAPSYS_UID"].split(":")
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    # mounts of its own too, so that what others mount meanwhile is not taken for a leftover
    if libc.mount(None, b"/", None, ctypes.c_ulong(0x4000 | 0x40000), None) != 0:  # MS_REC | MS_PRIVATE
        raise OSError(ctypes.get_errno(), "no private mounts")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, request + bytes(16))  # SIOCSIFFLAGS
    names = [n for _, n in socket.if_nameindex()]
    assert names == ["lo"], f"the namespace is not empty: {names}"


def until(condition, seconds=20):
    """The first true answer of CONDITION, or its last one."""
    end = time.monotonic() + seconds * SLOW
    while True:
        got = condition()
        if got or time.monotonic() > end:
            return got
        time.sleep(0.01)


def one_day(seconds=60):
    """What the caller does in its next SECONDS is of one day, UTC: the audit begins a new file at midnight. Waits for it where it is near."""
    today = lambda: int(time.time() // 86400)
    begun = today()
    if int((time.time() + seconds * SLOW) // 86400) != begun:
        until(lambda: today() != begun, seconds + 1)


def compute_calls(tap, build):
    """The system calls that can happen in a child that computes only, on this machine, by the build's own test of the tables; and the
    numbers of all calls by their names."""
    said = subprocess.run([f"{build}/src/jail/test_filter", "/nonexistent"], capture_output=True, text=True).stdout
    lists = dict(re.findall(r"^#= filter (\w+) compute over python-compute, calls that can happen: (.*)$", said, re.M))
    for arch, words in sorted(lists.items()):
        tap.figure(f"{arch}: {len(words.split())} calls: {words}")
        tap.ok(len(words.split()) <= 35, f"{arch}: at most 35 system calls can happen in a child that computes only", words)
    tap.ok(set(lists) == {"x86_64", "aarch64"}, "the calls of both architectures are listed", sorted(lists))
    macros = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True).stdout
    numbers = {name: int(n) for name, n in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)$", macros, re.M)}
    return set(lists.get(os.uname().machine, "").split()), numbers


def soonest(attempt, tries=10, late=LATE):
    """The best of up to TRIES: attempt() gives seconds of lateness and what else there is to look at; the first that is no later than
    LATE ends it. Other programs can make a run late, never early: one that is in time shows that the limit is kept."""
    best = None
    for _ in range(tries):
        now = attempt()
        if best is None or now[0] < best[0]:
            best = now
        if best[0] <= late:
            break
    return best


def late_enough(attempt, seconds):
    """attempt(SECONDS) is a run that prints something and is ended by its time limit. Where that came before the first word, or the
    judge had next to none of it, on a machine that is busy, it is tried again with four times as long; what a time limit loses is
    lost then, too."""
    for longer in (1, 4, 16):
        run = attempt(seconds * longer * SLOW)
        if run["status"] not in ("timeout", "refused") or run["stdout"]:
            break
    return run


# --- canaries -------------------------------------------------------------------------------------

def arm_program(port):
    """A 32-bit ARM program: dials 127.0.0.1:port, exits with 10 if that worked, else with 7."""
    code = [0xe3a00002, 0xe3a01001, 0xe3a02000, 0xe3007119, 0xef000000,  # socket(2, 1, 0)
            0xe28f101c, 0xe3a02010, 0xe300711b, 0xef000000,              # connect(r0, &address, 16)
            0xe3500000, 0x03a0000a, 0x13a00007, 0xe3a07001, 0xef000000]  # exit(r0 ? 7 : 10)
    text = struct.pack("<14I", *code) + struct.pack("<H", 2) + struct.pack(">HI", port, 0x7f000001) + bytes(8)
    size = 84 + len(text)
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 40, 1, 0x10054, 52, 0, 0x05000000, 52, 32, 1, 0, 0, 0)
    return head + struct.pack("<8I", 1, 0, 0x10000, 0x10000, size, size, 5, 0x1000) + text


class Canaries:
    """Things outside the jail that hold a secret word, and what must still be so afterwards."""

    def __init__(self, programs, who):
        self.who, self.word = who, os.environ.get("TAPSYS_WORD") or "canary-" + secrets.token_hex(8)
        self.programs = programs
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-canary-", dir="/var/tmp"))
        os.chmod(self.home, 0o755)
        self.secret = self.home / "secret"
        self.secret.write_text(self.word + "\n")
        os.chmod(self.secret, 0o644)  # open to everybody: only the jail stands before it
        self.ro, self.rw = self.home / "ro", self.home / "rw"
        self.ro.mkdir()
        (self.ro / "readable").write_text("read me\n")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.servers = [self.tcp, socket.create_server(("::1", self.port), family=socket.AF_INET6)]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = "cordon-" + secrets.token_hex(8)
        for address in ("\0" + self.abstract, str(self.ro / "canary.sock")):
            s = socket.socket(socket.AF_UNIX)
            s.bind(address)
            s.listen(4)
            self.servers.append(s)
        os.chmod(self.ro / "canary.sock", 0o777)
        self.vsock_port = 5005
        try:
            s = socket.socket(socket.AF_VSOCK)
            s.bind((0xffffffff, 0xffffffff))  # any port: others may have canaries at the same time
            self.vsock_port = s.getsockname()[1]
            s.listen(4)
            self.servers.append(s)
        except (OSError, AttributeError):
            pass
        for s in self.servers + [self.udp]:
            s.setblocking(False)
        self.shm = pathlib.Path("/dev/shm/canary-" + secrets.token_hex(8))
        self.shm.write_text(self.word)
        os.chmod(self.shm, 0o666)
        uid = os.geteuid() if who == "root" or os.geteuid() != 0 else ROOTLESS
        self.sibling = subprocess.Popen(["/bin/sleep", "100000"], user=uid if os.geteuid() == 0 else None,
                                        env={"CANARY": self.word}, start_new_session=True, stdout=subprocess.DEVNULL)  # who reads us is not held by it
        until(self.sibling_sleeps)  # from then on it does nothing else, so that any other state is somebody's work
        self._programs_to_attack(uid)
        self.fresh_rw()
        self.left_open = [socket.socketpair()[0].detach(), os.open(self.secret, os.O_RDWR), os.open("/", os.O_RDONLY)]
        self.before = self.state()
        self.open = True
        atexit.register(self.close)  # also when the test itself breaks

    def _programs_to_attack(self, uid):
        probes = self.programs.probes
        for name in ("probe", "evil.so"):
            shutil.copy2(probes / name, self.ro / name)
        (self.ro / "arm").write_bytes(arm_program(self.port))
        os.chmod(self.ro / "arm", 0o755)
        for name, mode in (("suid", 0o4755), ("sgid", 0o2755), ("fcap", 0o755)):
            shutil.copy2(probes / "probe", self.ro / name)
            os.chmod(self.ro / name, mode)
        try:  # every capability, effective
            os.setxattr(self.ro / "fcap", "security.capability", struct.pack("<5I", 0x02000001, 0xffffffff, 0, 0x1ff, 0))
        except OSError:
            pass

    def sibling_sleeps(self):
        status = pathlib.Path(f"/proc/{self.sibling.pid}/status").read_text()
        return "TracerPid:\t0" in status and "State:\tS" in status

    def vsock_answers(self):
        """Whether a program without a jail reaches our listener by the local address: without its transport it does not."""
        try:
            with socket.socket(socket.AF_VSOCK) as s:
                s.settimeout(2)
                s.connect((1, self.vsock_port))  # VMADDR_CID_LOCAL
        except (OSError, AttributeError):
            return False
        for s in self.servers:  # it was us
            if s.family == socket.AF_VSOCK:
                s.accept()[0].close()
        return True

    def fresh_rw(self):
        shutil.rmtree(self.rw, ignore_errors=True)
        self.rw.mkdir()
        if os.geteuid() == 0 and self.who == "user":
            os.chown(self.rw, ROOTLESS, ROOTLESS)
        os.chmod(self.rw, 0o755)

    def fill(self, text):
        for name, value in {"ro": self.ro, "rw": self.rw, "secret": self.secret, "port": self.port,
                            "udp": self.udp.getsockname()[1], "abstract": self.abstract, "pid": self.sibling.pid,
                            "key": os.environ.get("TAPSYS_KEY", "0x7777"), "mq": os.environ.get("TAPSYS_MQ", "/none"),
                            "shm": self.shm.name, "word": self.word,
                            "vsock": self.vsock_port}.items():
            text = text.replace("{" + name + "}", str(value))
        return text.split()

    def environment(self):
        """The caller's: full of what must not get in."""
        return {"CORDON_CANARY": self.word, "AWS_SECRET_ACCESS_KEY": self.word, "PYTHONPATH": "/" + self.word,
                "NODE_OPTIONS": "--" + self.word, "RUBYOPT": "-W" + self.word, "BASH_ENV": "/" + self.word,
                "LD_LIBRARY_PATH": "/" + self.word, "SSH_AUTH_SOCK": "/" + self.word}

    def state(self):
        def seen(path):
            s = os.lstat(path)
            return s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns, s.st_nlink
        files = [self.secret, self.shm, *sorted(self.ro.iterdir()), pathlib.Path("/dev/null"), pathlib.Path("/usr/bin/env"),
                 pathlib.Path("/etc/passwd"), self.programs.cordon, self.programs.nest]
        return {str(p): seen(p)[:3] if p.name == "null" else seen(p) for p in files if p.exists()}

    def faults(self):
        """What is no longer as it was, in words."""
        bad = []
        if self.secret.read_text() != self.word + "\n" or self.shm.read_text() != self.word:
            bad.append("a secret file was changed")
        now = self.state()
        bad += [f"{p} was changed: {self.before.get(p)} -> {now.get(p)}" for p in self.before if now.get(p) != self.before[p]]
        for s in self.servers:
            try:
                s.accept()
                bad.append(f"somebody connected to {s.getsockname()!r}")
            except BlockingIOError:
                pass
        try:
            bad.append(f"the resolver heard {self.udp.recv(512)!r}")
        except BlockingIOError:
            pass
        if self.sibling.poll() is not None:
            bad.append(f"the sibling died: {self.sibling.returncode}")
        elif not self.sibling_sleeps():
            bad.append("the sibling is traced or stopped")
        for p in self.rw.rglob("*"):
            s = os.lstat(p)
            if s.st_mode & 0o6000:
                bad.append(f"{p} is set-id: {s.st_mode:o}")
            if s.st_uid != self.rw.stat().st_uid:
                bad.append(f"{p} belongs to {s.st_uid}")
            if (stat.S_ISCHR(s.st_mode) or stat.S_ISBLK(s.st_mode)) and s.st_rdev != 0:  # 0:0 opens nothing
                bad.append(f"{p} is a device")
            try:
                if not stat.S_ISLNK(s.st_mode) and any(a.startswith("security.") for a in os.listxattr(p)):
                    bad.append(f"{p} has {os.listxattr(p)}")
            except OSError:
                pass
        if os.path.exists("/dev/shm/from-the-guest"):
            bad.append("the guest left shared memory")
        return bad

    def close(self):
        if not self.open:
            return
        self.open = False
        self.sibling.kill()
        self.sibling.wait()
        for s in self.servers + [self.udp]:
            s.close()
        for fd in self.left_open:
            os.close(fd)
        self.shm.unlink(missing_ok=True)
        shutil.rmtree(self.home, ignore_errors=True)


def under_plant(programs_dir):
    """Starts this script again with the kernel's own canaries planted (see tests/probes/plant.c)."""
    if "TAPSYS_WORD" in os.environ:
        return
    env = dict(os.environ, TAPSYS_WORD="canary-" + secrets.token_hex(8), TAPSYS_KEY=hex(secrets.randbelow(1 << 30) + 1),
               TAPSYS_MQ="/cordon-" + secrets.token_hex(4), TAPSYS_UID=f"{os.getuid()}:{os.getgid()}")
    plant = str(pathlib.Path(programs_dir) / "tests/probes/plant")
    os.execve(plant, [plant, env["TAPSYS_WORD"], env["TAPSYS_KEY"], env["TAPSYS_MQ"], "--", "/usr/bin/python3", *sys.argv], env)


def plant_intact(programs):
    e = os.environ
    p = subprocess.run([programs.probes / "plant", "--check", e["TAPSYS_WORD"], e["TAPSYS_KEY"], e["TAPSYS_MQ"]],
                       stderr=subprocess.PIPE, text=True)
    return p.returncode == 0, p.stderr.strip()


# --- probes ---------------------------------------------------------------------------------------

class Probe:
    def __init__(self, row):
        self.name, items, category, self.layer, self.twin, self.ends, self.rule, self.options, self.args, self.what = [
            "" if x == "-" else x for x in row]
        self.items = [int(x) for x in items.split(",") if x]
        self.category = int(category)
        self.benign = self.name.startswith("benign-")
        self.payload = not self.benign and not self.category


def probe_table(programs):
    out = subprocess.run([programs.probes / "probe", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [Probe(line.split("\t")) for line in out.splitlines()[1:]]


def run_probe(programs, canaries, probe, who, env=None, pty=None, add=()):
    canaries.fresh_rw()
    options = [o for o in canaries.fill(probe.options) if o != "{pty}"]
    if add and add[0] not in options:
        options += add
    if SLOW > 1 and "timeout" not in probe.ends:
        options = ["--timeout", f"{30 * SLOW}s", "--cpu", f"{30 * SLOW}s", *options]
    argv = [str(canaries.ro / "probe"), probe.name, *canaries.fill(probe.args)]
    for fd in canaries.left_open:
        os.set_inheritable(fd, True)
    more = {"pass_fds": canaries.left_open}
    if "{pty}" in probe.options and pty is not None:
        def own_terminal():
            os.setsid()
            fcntl.ioctl(pty, 0x540E, 0)  # TIOCSCTTY
        more.update(stdin=pty, preexec_fn=own_terminal)
    return exec_json(programs, ["--ro", str(canaries.ro), *options], argv, who,
                     env={**canaries.environment(), **(env or {})}, **more)


def ended_as_declared(probe, run):
    """None, or what is wrong with the way a probe's run ended."""
    if run.code is None:
        return "it did not end"
    if run.json is None:
        return "no result object"
    verdict = run.last_line()
    if "REACHED" in (run["stdout"] or "") and any(l.startswith("REACHED") for l in run["stdout"].splitlines()):
        return verdict
    for ends in probe.ends.split("|"):
        status, _, detail = ends.partition(" ")
        if run["status"] != status:
            continue
        if status == "ok" and detail == "binary":
            return None if run["stdout"] == "[Binary output detected and removed]" else f"it said {run['stdout'][:60]!r}"
        if status == "ok" and detail == "silent":
            return None if run["stdout"] == "" else f"it said {run['stdout'][:60]!r}"
        if status == "ok":
            return None if verdict.startswith("CONTAINED") else f"no verdict: {verdict!r}"
        if status == "crashed" and run["signal"] != int(detail):
            return f"signal {run['signal']}, not {detail}"
        return None
    return f"status {run['status']}, not {probe.ends}: {verdict}"
