# SPDX-License-Identifier: Apache-2.0
"""Judge and guards are lost: every attack runs as plain Python in a child of `strict`, and reaches nothing.

Usage: guards_lost.py BUILD. cordon-python is replaced by tests/probes/unguarded.c: the same program without judge and guards.
Attacks of the repository (tests/cases/python/attacks, refused cases of .../guards and .../judge), those of ../shared/corpora where that
folder is, then native code by ctypes, then forged messages on the channel. Many attacks share one child; each function of C that
asks the kernel for something is watched, and one that gets it is a failure. An attack that ends the child is held; the next
child goes on behind it."""
import ast
import atexit
import re
import shutil
import sys

import corpus
import pooltest
import tapsys
from wiretest import TYPES, frame, head

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
shutil.copy2(programs.probes / "unguarded", programs.bin / "cordon-python")
MIXED = 80  # attacks in one child

# --- the list of calls -------------------------------------------------------------------------------

ALLOWED, NUMBERS = tapsys.compute_calls(tap, BUILD)


def run(code, who, profile="strict", seconds=20, env=None):
    return tapsys.cordon(programs, ["run", "--json", "--profile", profile, "--timeout", f"{seconds * tapsys.SLOW}s", "-"], who, text=code, env=env)


# --- attacks as plain Python -------------------------------------------------------------------------

# What each child runs first: names in it are kept from the attacks by the function that they live in.
WATCH = r'''
%(imports)s
def harness(attacks):
    import builtins, io, sys, time, types
    reached, write = {}, posix_write
    # what answers without the kernel, or with what the process holds already: its own number, its streams, the end
    harmless = set("fspath getpid _exit abort urandom getrandom strerror putenv unsetenv major minor makedev read write lseek close isatty register_at_fork "
                   "WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG WIFSTOPPED WSTOPSIG WCOREDUMP waitstatus_to_exitcode confstr sysconf fpathconf "
                   "getuid geteuid getgid getegid getppid umask closerange kill getsignal default_int_handler strsignal valid_signals sigpending pthread_sigmask inet_aton inet_ntoa inet_pton inet_ntop "
                   "htons htonl ntohs ntohl getdefaulttimeout setdefaulttimeout CMSG_LEN CMSG_SPACE getpagesize getrlimit prlimit device_encoding set_wakeup_fd".split())
    def watched(name, f):
        def call(*args, **kwargs):
            r = f(*args, **kwargs)
            if r is not False and not (name.endswith(".system") and r >> 8 == 127):  # 127: no shell could be started
                reached[name] = repr((args, r))[:100]
            return r
        return call
    for name in ("posix", "_socket", "_posixsubprocess", "fcntl", "signal", "_signal", "select", "resource", "_io", "io", "os", "socket", "builtins", "mmap", "_ctypes", "ctypes"):
        module = sys.modules.get(name)
        for n, f in list(vars(module).items()) if module else ():
            if isinstance(f, types.BuiltinFunctionType) and n not in harmless and (name != "builtins" or n == "open") and (name not in ("_ctypes", "ctypes") or n == "dlopen") \
                    and n not in ("text_encoding", "exec", "open_code") + (("call_function", "sizeof") if name == "_ctypes" else ()):
                setattr(module, n, watched(name + "." + n, f))
    if "socket" in sys.modules:
        t = sys.modules["socket"].socket
        t.__init__ = watched("socket.socket", t.__init__)
    if "mmap" in sys.modules:
        sys.modules["mmap"].mmap = watched("mmap.mmap", sys.modules["mmap"].mmap)
    time.sleep = lambda seconds: None
    raw, base = io.FileIO, BaseException
    for number, code in attacks:
        reached.clear()
        write(2, b"@begin %%d\n" %% number)
        sys.stdout = sys.stderr = io.StringIO()
        try:
            exec(compile(code, "attack", "exec"), {"__name__": "__main__", "__builtins__": builtins, "FINAL": lambda x: None})
        except base:
            pass
        try:
            write(2, ("@end %%d %%s\n" %% (number, "; ".join(f"{k} {v}" for k, v in reached.items()).replace("\n", " "))).encode("utf-8", "replace"))
        except base:
            write(2, b"@end %%d ?\n" %% number)
    doors = []
    for path in ("/usr/bin/env", "/", "/proc/self/maps", "/workspace/x", "/cordon-python"):
        try:
            raw(path)
            doors.append(path)
        except OSError:
            pass
    write(2, ("@doors " + " ".join(doors) + "\n").encode())
import posix
posix_write = posix.write
harness(%(attacks)r)
'''


def imported(code):
    """The modules of the standard library that it imports: loaded before the second table closes, as for any program."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {n for n in names if n.split(".")[0] in sys.stdlib_module_names and n.split(".")[0] not in ("antigravity", "this", "__future__", "__main__", "idlelib")}


ALWAYS = {"socket", "subprocess", "fcntl", "signal", "select", "resource", "mmap", "ctypes", "tempfile", "pathlib", "shutil", "glob", "threading", "multiprocessing"}


def program(attacks):
    names = sorted(ALWAYS.union(*(imported(code) for _, code in attacks)))
    imports = "\n".join(f"try:\n    import {n}\nexcept BaseException:\n    pass" for n in names)
    return WATCH % {"imports": imports, "attacks": attacks}


def all_attacks(canaries):
    own, others = corpus.attacks()
    rows = [(r["id"], corpus.fill(r["code"], canaries), r["expect"] == "limit") for r in own]
    for folder in ("guards", "judge"):
        for path in sorted((corpus.CASES / "python" / folder).rglob("*.case")):
            head, _, code = path.read_text().partition("\n---\n")
            if re.search("^expect: refused$", head, re.M):
                rows.append((f"{folder}/{path.stem}", code, False))
    return rows, [(r["id"], r["code"], r["expects"] == "limit") for r in others if r["expects"] != "allow"]


class Chain:
    """Runs attacks, many in one child, and goes on behind one that ended its child."""

    def __init__(self, rows, who, profile, env):
        self.rows, self.who, self.profile, self.env = rows, who, profile, env
        self.faults, self.reached, self.ends, self.children, self.out = [], {}, {}, 0, ""

    def child(self, at):
        """Those of AT in one child. Returns the place of the one that ended it, or None."""
        for seconds in (1, 4, 16) if len(at) == 1 else (20,):  # a busy machine may not have begun by then
            r = run(program([(i, self.rows[i][1]) for i in at]), self.who, self.profile, seconds, self.env)
            if r["status"] not in ("timeout", "refused") or "@begin" in (r["stderr"] or ""):
                break
        self.children += 1
        self.out += r.out + r.err
        said = r["stderr"] or ""
        begun, ended = ([int(i) for i in re.findall(rf"^@{word} (\d+)", said, re.M)] for word in ("begin", "end"))
        self.reached.update({self.rows[int(i)][0]: what for i, what in re.findall(r"^@end (\d+) (\S.*)$", said, re.M)})
        self.ends.update({i: "ended" for i in ended})
        if r.code is None or r["status"] not in ("ok", "error", "timeout", "memory", "output", "crashed") or not begun:
            self.faults.append(f"a child with {self.rows[at[0]][0]} did not run: {r.story()}")
            return at[-1]
        doors = re.search(r"^@doors (.*)$", said, re.M)
        if doors and doors[1].strip():
            self.reached["after them"] = doors[1]
        if doors and len(ended) == len(at):
            return None
        stuck = begun[-1]
        if stuck in ended:
            stuck = at[min(at.index(stuck) + 1, len(at) - 1)]
        self.ends[stuck] = r["status"]
        return stuck

    def go(self):
        alone = [i for i, row in enumerate(self.rows) if row[2]]
        left = [i for i, row in enumerate(self.rows) if not row[2]]
        while left:
            stuck = self.child(left)
            if stuck is None:
                break
            if stuck != left[0] and self.ends[stuck] == "timeout":  # the time of all of them is over: once more, for itself
                alone.append(stuck)
            left = left[left.index(stuck) + 1:]
        for i in alone:
            self.child([i])
        return self


def chains(rows, who, profile, env):
    pieces = [rows[i:i + MIXED] for i in range(0, len(rows), MIXED)]
    return [c for _, c in tapsys.side_by_side(lambda piece: Chain(piece, who, profile, env).go(), pieces)]


def attack(rows, who, how, canaries, profile="strict"):
    done = chains(rows, who, profile, canaries.environment())
    faults = [f for c in done for f in c.faults]
    tried = sum(len(c.ends) for c in done)
    reached = {k: v for c in done for k, v in c.reached.items()}
    ends = [e for c in done for e in c.ends.values()]
    tap.figure(f"{who}, {how}: {tried} attacks in {sum(c.children for c in done)} children: " + ", ".join(f"{ends.count(e)} {e}" for e in sorted(set(ends))))
    return tried, reached, faults, any(canaries.word in c.out for c in done)


def attacks(who, how, rows, canaries):
    tried, reached, faults, word = attack(rows, who, how, canaries)
    tap.ok(not faults and tried == len(rows), f"{who}, {how}: {len(rows)} attacks ran without judge and guards", tried, *faults[:5])
    tap.ok(not reached, f"{who}, {how}: no attack gets anything from the kernel", *[f"{k}: {v}" for k, v in sorted(reached.items())[:40]])
    tap.ok(not word, f"{who}, {how}: no canary's word comes out")
    tap.eq(canaries.faults(), [], f"{who}, {how}: every canary is as it was")


# --- native code -------------------------------------------------------------------------------------

NATIVE = r"""
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
numbers, skip = %(numbers)r, %(skip)r
REFUSED = (1, 13, 38, 95)  # EPERM, EACCES, ENOSYS, EOPNOTSUPP: the tables' own answers
def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(numbers[name]), *(ctypes.c_void_p(a) if isinstance(a, int) else a for a in args))
    return r, ctypes.get_errno()
room = ctypes.create_string_buffer(b"/usr/bin/env", 65536)
at = ctypes.addressof(room)
# every call, once with nothing and once with an address that is a path, a structure and a buffer
done = set()
for name, number in numbers.items():
    for args in ((0,) * 6, (at,) * 6, (-100, at, 0, 0, 0, 0), (1, at, 8, at, 8, at)):
        if name not in skip:
            r, e = call(name, *args)
            if not (r == -1 and e in REFUSED):
                done.add(name)
print("calls", *sorted(done))
NULL, path, usr = 0, b"/usr/bin/env", b"/usr"
doors = {
    "openat": (-100, path, 0), "open": (path, 0), "openat2": (-100, path, at, 24), "creat": (b"/workspace/x", 0o600), "newfstatat": (-100, usr, at, 0), "stat": (usr, at),
    "statx": (-100, usr, 0, 0xfff, at), "readlinkat": (-100, b"/bin", at, 64), "faccessat": (-100, usr, 0), "faccessat2": (-100, usr, 0, 0), "getcwd": (at, 64), "chdir": (usr,), "mkdirat": (-100, b"/workspace/d", 0o700),
    "unlinkat": (-100, b"/workspace/d", 0), "getdents64": (0, at, 1024), "statfs": (usr, at), "inotify_init1": (0,), "open_by_handle_at": (-1, at, 0), "name_to_handle_at": (-100, usr, at, at, 0),
    "socket": (2, 1, 0), "socketpair": (1, 1, 0, at), "pipe2": (at, 0), "eventfd2": (0, 0), "epoll_create1": (0,), "memfd_create": (b"x", 0), "memfd_secret": (0,), "io_uring_setup": (8, at), "userfaultfd": (0,),
    "sendmsg": (3, at, 0), "sendmmsg": (3, at, 1, 0), "connect": (3, at, 16), "bind": (3, at, 16), "getsockopt": (3, 1, 3, at, at), "setsockopt": (3, 1, 3, at, 4), "shutdown": (3, 2), "ioctl": (0, 0x5401, at), "fcntl": (3, 1, 0),
    "timer_create": (1, 0, at), "timerfd_create": (1, 0), "setitimer": (0, at, at), "alarm": (1,), "rt_sigaction": (10, at, 0, 8), "sigaltstack": (at, 0), "signalfd4": (-1, at, 8, 0),
    "execve": (b"/bin/true", 0, 0), "execveat": (-100, b"/bin/true", 0, 0, 0), "fork": (), "vfork": (), "clone": (17, 0, 0, 0, 0), "clone3": (at, 88), "unshare": (0x10000000,), "setns": (3, 0), "ptrace": (0, 0, 0, 0),
    "process_vm_readv": (1, at, 1, at, 1, 0), "process_vm_writev": (1, at, 1, at, 1, 0), "pidfd_open": (1, 0), "kcmp": (1, 2, 0, 0, 0), "perf_event_open": (at, 0, -1, -1, 0), "bpf": (0, at, 64), "keyctl": (0, -1, 0),
    "add_key": (b"user", b"x", at, 1, -1), "mount": (usr, usr, 0, 0, 0), "seccomp": (0, 0, at), "prctl": (15, at), "personality": (0x400000,), "shmget": (0, 4096, 0o1600), "msgget": (0, 0o1600), "semget": (0, 1, 0o1600),
    "mq_open": (b"x", 0x42, 0o600, 0), "flock": (0, 1), "splice": (0, 0, 1, 0, 1, 0), "tee": (0, 1, 1, 0), "vmsplice": (1, at, 1, 0), "remap_file_pages": (at, 1, 0, 0, 0), "pkey_alloc": (0, 0), "pkey_mprotect": (at, 4096, 7, -1),
    "sched_setscheduler": (0, 0, at), "setpriority": (0, 0, 1), "swapon": (usr, 0), "reboot": (0, 0, 0), "landlock_create_ruleset": (0, 0, 1), "fanotify_init": (0, 0), "process_madvise": (1, at, 1, 0, 0), "cachestat": (0, at, at, 0), "uname": (at,), "sysinfo": (at,),
}
open_ = [n for n, args in doors.items() if n in numbers and call(n, *args)[0] != -1]
print("doors", *open_)
# executable memory: new, changed, moved, by a personality that makes what can be read executable
page = mmap.mmap(-1, 8192)
here = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("pages", *(n for n, r in (("mmap", call("mmap", 0, 4096, 5, 0x22, -1, 0)), ("mmap-write", call("mmap", 0, 4096, 7, 0x22, -1, 0)), ("mprotect", call("mprotect", here, 4096, 5)), ("mprotect-growsdown", call("mprotect", here, 4096, 0x01000005)),
                       ("text-writable", call("mprotect", ctypes.cast(libc.getpid, ctypes.c_void_p).value & -4096, 4096, 7)), ("stdin", call("mmap", 0, 4096, 5, 2, 0, 0))) if r[0] != -1))
print("others", *(n for n, r in (("kill", call("kill", 1, 0)), ("kill-all", call("kill", -1, 0)), ("tgkill", call("tgkill", 1, 1, 0)), ("limits", call("prlimit64", 1, 7, 0, at))) if r[0] == 0))
"""
# the end, a return from a handler that does not run, what waits for ever with these arguments, what takes the ground from under the interpreter
NOT_BLINDLY = {"exit", "exit_group", "rt_sigreturn", "restart_syscall", "pause", "sigreturn", "clone", "rt_sigsuspend", "ppoll", "pselect6", "select", "poll", "vfork", "fork", "close_range",
               "dup3", "dup2", "close", "munmap", "mremap", "brk", "read", "write", "recvfrom", "recvmsg", "sendto", "madvise", "mprotect", "mmap", "futex", "kill", "tgkill", "rt_sigtimedwait", "rt_sigprocmask", "clock_nanosleep", "prlimit64"}


def native_run(who, profile):
    # without the table blind calls could wait for ever, or end the process: there only the doors are tried
    skip = NOT_BLINDLY if profile == "strict" else set(NUMBERS)
    r = run(NATIVE % {"numbers": NUMBERS, "skip": skip}, who, profile)
    return r, {l.split()[0]: l.split()[1:] for l in (r["stdout"] or "").splitlines() if l.strip()}


def native(who):
    r, lines = native_run(who, "strict")
    if not tap.ok(r["status"] == "ok" and set(lines) == {"calls", "doors", "pages", "others"}, f"{who}: native code runs to its end", r.story()):
        return
    beyond = set(lines["calls"]) - ALLOWED
    tap.ok(not beyond and len(lines["calls"]) > 5, f"{who}: of {len(NUMBERS)} system calls native code makes only those of the list", sorted(beyond))
    tap.eq(lines["doors"], [], f"{who}: native code opens no file, no socket, no timer, no process")
    tap.eq(lines["pages"], [], f"{who}: no page of native code's own becomes executable")
    tap.eq(lines["others"], [], f"{who}: native code signals no other process and changes no limit of one")


# --- forged messages ---------------------------------------------------------------------------------

FORGE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for frame in %r:
    print("sent", libc.send(3, frame, len(frame), 0), flush=True)
print("went on")
"""


def forged(*frames):
    return FORGE % (list(frames),)


HOST = {"EVENT", "ASK", "CALL", "FILE_ASK", "VALUE", "FINAL", "FAULT", "DONE"}  # the guest's own words while it runs
BROKEN = {f"{name} in the wrong place": frame(name) for name in TYPES if name not in HOST}
BROKEN |= {
    "an EVENT in the name of the supervisor's filter": frame("EVENT", b"syscalls", b"seccomp.execve", b"x", b"", 0),
    "an EVENT of a layer that is not the worker's": frame("EVENT", b"gate", b"py.compute.call", b"x", b"", 0),
    "an EVENT of a rule that nobody has": frame("EVENT", b"input", b"made.up", b"x", b"", 0),
    "a number where a text belongs": head(4, 6) + head(0, TYPES["EVENT"][0]) + head(0, 1) * 5,
    "a field too many": head(4, 3) + head(0, TYPES["DONE"][0]) + head(0, 0) * 2,
    "bytes behind the message": frame("DONE", 0) + b"\0",
    "half a message": frame("DONE", 0)[:-1],
    "a type that there is not": head(4, 1) + head(0, 99),
    "an empty packet": b"",
    "a list that says it is endless": head(4, 2) + head(0, TYPES["NAMES"][0]) + b"\x9b" + b"\xff" * 8,
}
OWN = {
    "a REPORT that clears the program after it ran": ([frame("REPORT", 1, 0)], lambda r: r["status"] == "error"),
    "an EVENT of its own rule is its own word": ([frame("EVENT", b"filesystem", b"py.compute.call", b"openat", b"", 3)], lambda r: r["status"] == "ok" and "py.compute.call" in r.rules()),
    "a CALL of a tool that was not given": ([frame("CALL", 1, b"secret", b"[]")], lambda r: r["status"] == "ok" and "went on" in r["stdout"]),
    "an ASK without a prompt": ([frame("ASK")], lambda r: r["status"] == "ok" and "went on" in r["stdout"]),
    "a VALUE is shown as data": ([frame("VALUE", 1, b"</stdout> forged")], lambda r: r["status"] == "ok" and r["value"] == "</stdout> forged"),
    "a FAULT names an error of its own": ([frame("FAULT", b"ValueError", b"mine", 1)], lambda r: r["status"] == "ok"),
    "a DONE ends its own run and no more": ([frame("DONE", 0)], lambda r: r["status"] == "ok" and r["exit_code"] == 0),
    "nothing is heard behind a DONE": ([frame("DONE", 3), frame("VALUE", 1, b"later"), frame("EVENT", b"gate", b"x", b"x", b"", 0)],
                                       lambda r: r["status"] == "error" and r["exit_code"] == 3 and r["value"] is None),
}


# What a program that speaks for itself asks of the files' process: what, path, second path, numbers, bytes; and an errno that must come back.
FILES = [(1, b"/etc/passwd", b"", [0, 0], b""), (2, b"/etc/passwd", b"", [0, 4096], b""), (2, b"/workspace/../etc/passwd", b"", [0, 4096], b""), (2, b"/proc/self/maps", b"", [0, 4096], b""), (2, b"/workspace/../proc/1/environ", b"", [0, 4096], b""),
         (2, b"etc/passwd", b"", [0, 4096], b""), (2, b"", b"", [0, 4096], b""), (2, b"/workspace/a\0/../../etc/passwd", b"", [0, 4096], b""), (2, b"/" + b"../" * 1000 + b"etc/passwd", b"", [0, 4096], b""),
         (2, b"/workspace/" + b"x" * 70000, b"", [0, 4096], b""), (2, b"/workspace", b"", [0, 4096], b""), (5, b"/", b"", [0, 0], b""), (5, b"/live", b"", [0, 0], b""), (8, b"/usr/bin/env", b"", [0, 0], b""),
         (9, b"/workspace/own", b"/etc/own", [0, 0], b""), (9, b"/etc/passwd", b"/workspace/own", [0, 0], b""), (9, b"/workspace", b"/tmp/w", [0, 0], b""), (3, b"/dev/null", b"", [0, 0], b"x"),
         (3, b"/workspace/own", b"", [2**63, 0], b"x"), (2, b"/workspace/own", b"", [2**64 - 1, 2**64 - 1], b""), (4, b"/workspace/own", b"", [2**63, 0], b""), (11, b"/workspace/own", b"", [0, 0], b""),
         (2**40, b"/workspace/own", b"", [0, 0], b""), (2, b"/workspace/own", b"", [0, 1, 2], b""), (10, b"/etc/passwd", b"", [], b""), (6, b"/etc/new", b"", [], b"")]
ASK = """
import ctypes
libc, room = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(262144)
for frame in %r:
    if libc.send(3, frame, len(frame), 0) < 0:
        print("not sent")
        continue
    n = libc.recv(3, room, 262144, 0)
    print(room.raw[:n].hex())
"""


def files(who):
    """Requests for files in the program's own words: the process that serves them refuses what is not beneath its folders."""
    good = [(1, b"/workspace/own", b"", [3, 0], b""), (3, b"/workspace/own", b"", [0, 0], b"mine"), (2, b"/workspace/own", b"", [0, 4096], b"")]
    ids = range(1, 1 + len(good) + len(FILES))
    r = run(ASK % ([frame("FILE_ASK", i, *row) for i, row in zip(ids, good + FILES)],), who)
    said = [bytes.fromhex(line) if line != "not sent" else b"" for line in (r["stdout"] or "").split("\n")[:-1]]
    begins = [head(4, 5) + head(0, TYPES["FILE_DONE"][0]) + head(0, i) for i in ids]
    shaped = len(said) == len(begins) and all(a.startswith(b) for a, b in zip(said, begins))
    tap.ok(r["status"] == "ok" and shaped and said[2].endswith(b"mine"), f"{who}: whoever speaks on the channel for itself has the program's own files", r.story())
    believed = [row for row, a, b in zip(FILES, said[len(good):], begins[len(good):]) if not shaped or a[len(b):len(b) + 1] == b"\0"]
    tap.ok(not believed and "root:" not in r["stdout"], f"{who}: of {len(FILES)} forged requests for files none is carried out", *believed)
    tap.ok("py.files.outside" in r.rules(), f"{who}: forged requests for files that lie elsewhere are reported", r.rules())
    r = run(forged(frame("FILE_ASK")), who, "locked")
    tap.ok("channel.garbage" in r.rules() and (r["error"] or {}).get("type") == "ProtocolError", f"{who}: under locked, which has no files, a request for one breaks the channel", r.story())


def channel(who):
    cases = [(name, [f], None) for name, f in BROKEN.items()] + [(name, frames, good) for name, (frames, good) in OWN.items()]
    wrong = []
    for (name, frames, good), r in tapsys.side_by_side(lambda case: run(forged(*case[1]), who), cases):
        stopped = r["status"] == "error" and "channel.garbage" in r.rules() and (r["error"] or {}).get("type") == "ProtocolError"
        if tapsys.shape_faults(r.json) or r["is_final"] or not (good(r) if good else stopped):
            wrong.append(f"{name}: {r.story()}")
    tap.ok(not wrong and len(cases) > 50, f"{who}: of {len(cases)} forged messages none is believed beyond its rules", *wrong[:20])


# --- all of it ---------------------------------------------------------------------------------------

first, last = tapsys.users()[0], tapsys.users()[-1]
for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    own, others = all_attacks(canaries)
    quick = [row for row in own if row[0].startswith("python/") and not row[2]]
    if who == first:
        attacks(who, "cold", own + others, canaries)
        channel(who)
        files(who)
        _, reached, _, _ = attack(quick, who, "without the table", canaries, "standard")
        tap.ok(len(reached) > 10, f"{who}: without the table of strict the same attacks do get something, and it is seen", sorted(reached))
        _, lines = native_run(who, "standard")
        tap.ok({"openat", "socketpair"} <= set(lines.get("doors", ())), f"{who}: without the table of strict native code opens files and sockets", lines)
    native(who)
    if who == last:
        tap.eq(tapsys.cordon(programs, ["pool", "start", "--profile", "strict"], who).code, 0, f"{who}: a pool is started")
        atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)
        pooltest.User(tap, programs, who).full("strict")
        attacks(who, "warm", quick, canaries)
        tap.ok((tapsys.cordon(programs, ["pool", "status", "--json"], who)["leases"] or 0) > 1, f"{who}: the children that were attacked were warm")
    canaries.close()
tap.done()
