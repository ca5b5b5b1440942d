#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel objects that a guest can make, each made without end: what bounds it, and what it costs the machine.

tests/probes/objects.c makes one kind in the jail until the kernel refuses, and holds it; this test looks at the
machine's kernel memory meanwhile. SECURITY.md has the same table for people; a row that is missing there fails."""
import pathlib
import re
import subprocess
import sys

import tapsys
from tapsys import Tap, users

MEMORY_MB = 64  # the run's limit
REFUSED = 0

# name: (how many at most, MB of kernel memory at most, what bounds it)
OBJECTS = {
    "posix-locks": (4096, 8, "counted by the supervisor"),
    "ofd-locks": (REFUSED, 8, "refused"),
    "flocks": (MEMORY_MB * 256, 32, "one a mapped file, which takes address space"),
    "landlock-rules": (REFUSED, 8, "refused"),
    "pipe-pages": (1024, 8, "descriptors, at the usual size each"),
    "epoll-items": (4096, 8, "descriptors"),
    "timers": (256, 8, "RLIMIT_SIGPENDING"),
    "pending-signals": (256, 8, "RLIMIT_SIGPENDING"),
    "timer-descriptors": (64, 8, "descriptors"),
    "inotify-watches": (REFUSED, 8, "refused"),
    "semaphores": (REFUSED, 8, "refused"),
    "messages": (REFUSED, 8, "refused"),
    "message-queues": (REFUSED, 8, "refused"),
    "shared-segments": (REFUSED, 8, "refused"),
    "socket-buffers": (8192, 32, "descriptors, at the usual size each"),
    "page-tables": (MEMORY_MB * 256, 3 * MEMORY_MB, "two for each page of address space"),
    "negative-dentries": (None, 32, "the kernel frees them when it needs memory"),
    "attributes": (REFUSED, 8, "refused"),
    "mappings": (MEMORY_MB * 256, 32, "address space, and the kernel's 65,530"),
    "file-names": (10000, 32, "inodes"),
    "short-links": (10000, 32, "inodes"),
    "event-descriptors": (64, 8, "descriptors"),
    "mapping-names": (MEMORY_MB * 256, 32, "one a mapping"),
    "threads": (64, 16, "`--threads`"),
}

# Every call that a guest's table allows, by what it leaves in the kernel: a row of OBJECTS. A call that is allowed one day and
# stands in neither list fails here.
MAKES = {
    "posix-locks": "fcntl", "flocks": "flock", "pipe-pages": "pipe pipe2 splice tee", "epoll-items": "epoll_create epoll_create1 epoll_ctl",
    "timers": "timer_create", "pending-signals": "kill tkill tgkill", "timer-descriptors": "timerfd_create",
    "event-descriptors": "eventfd eventfd2 signalfd signalfd4", "socket-buffers": "socket socketpair sendto",
    "page-tables": "mmap brk mremap", "mappings": "mmap mprotect pkey_mprotect madvise mlock mlock2 munlock map_shadow_stack", "mapping-names": "prctl",
    "negative-dentries": "stat lstat newfstatat statx access faccessat faccessat2 open openat",
    "file-names": "open openat creat mkdir mkdirat mknod mknodat link linkat rename renameat renameat2", "short-links": "symlink symlinkat",
    "threads": "clone fork vfork",
}
# What is done, or counted by a limit of the process itself, when it returns.
LEAVES_NOTHING = """
    alarm arch_prctl capget chdir chmod chown clock_getres clock_gettime clock_nanosleep close close_range copy_file_range dup dup2 dup3
    epoll_pwait epoll_pwait2 epoll_wait execve execveat exit fadvise64 fallocate fchdir fchmod fchmodat fchown fchownat fdatasync fgetxattr
    flistxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list
    getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority
    getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr ioctl ioprio_get
    lchown lgetxattr listxattr llistxattr lseek membarrier mincore mlockall msync munlockall munmap nanosleep pause personality pkey_alloc
    pkey_free poll ppoll pread64 preadv preadv2 prlimit64 pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
    recvfrom recvmsg restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
    sched_setaffinity sched_setparam sched_setscheduler sched_yield seccomp select sendfile set_robust_list set_tid_address setfsgid
    setfsuid setgid setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid shutdown
    sigaltstack statfs sync_file_range sysinfo time timer_delete timer_getoverrun timer_gettime timer_settime timerfd_gettime
    timerfd_settime times truncate umask uname unlink unlinkat utime utimensat utimes wait4 waitid write writev"""
OURS = ("files", "front", "front-http", "holder", "packages", "reader", "template", "tool", "workspace")  # tables of processes that are no guests
NOISE_TRIES = 5  # others use the machine too: the smallest of some measurements counts


def kernel_mb():
    """What the kernel holds and cannot take back, in MB."""
    fields = dict(line.split(":") for line in open("/proc/meminfo"))
    return sum(int(fields[k].split()[0]) for k in ("SUnreclaim", "PageTables", "KernelStack")) / 1024


def make(programs, who, name):
    """What the guest says it made, and by how much the kernel's memory grew while it held it."""
    before = kernel_mb()
    with subprocess.Popen(programs.command(
            ["exec", "--memory", f"{MEMORY_MB}m", "--memory-by", "rlimit", *tapsys.LONG, "--stdin", "-", "--ro",
             f"{programs.dir}/objects:/objects", "--", "/objects/objects", name], who),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=tapsys.clean_env({}, who)) as p:
        said = p.stdout.readline().strip()
        grown = kernel_mb() - before
        p.stdin.close()
        return said or p.stderr.read().strip(), grown


def allowed(source):
    """The calls that a guest's table allows, in any case of arguments."""
    names = set()
    for p in (source / "src/jail/filters").iterdir():
        if p.suffix in (".inc", ".filter") and p.stem not in OURS:
            rows = re.findall(r"^allow +(.*?)(?: if | *:)", p.read_text().replace("\\\n", " "), re.M)
            names.update(" ".join(rows).split())
    return names


def calls(tap, source):
    makers = set(" ".join(MAKES.values()).split())
    known, real = makers | set(LEAVES_NOTHING.split()), allowed(source)
    tap.eq((len(real) > 200, sorted(real - known), sorted(known - real)), (True, [], []),
           "each call that a guest's table allows is known to leave an object of the table in the kernel, or nothing")
    tap.eq(sorted(makers & set(LEAVES_NOTHING.split())), [], "no call is in both lists")
    tap.eq(sorted(set(MAKES) - set(OBJECTS)), [], "what calls leave in the kernel are objects of the table")


def share_of_pipes(tap, programs):
    """The kernel counts the pages of all pipes of a user; who is over his share gets pipes of one page, in every program."""
    commands = [subprocess.Popen(programs.command(
        ["exec", "--timeout", "60s", "--stdin", "-", "--ro", f"{programs.dir}/objects:/objects", "--", "/objects/objects", "pipe-pages"], "user"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=tapsys.clean_env({}, "user")) for _ in range(3)]
    said = [p.stdout.readline().strip() for p in commands]
    own = "import fcntl, os; r, w = os.pipe(); print(fcntl.fcntl(w, 1032))"  # F_GETPIPE_SZ
    prefix = programs.command(["x"], "user")
    r = subprocess.run([*prefix[:prefix.index(str(programs.cordon))], "/usr/bin/python3", "-S", "-c", own], capture_output=True, text=True, check=False)
    tap.ok(all(s.startswith("made ") for s in said) and r.stdout == "65536\n",
           "user: while three runs hold all the pipes that they can make, a pipe of the same user outside is as large as ever", said, r.stdout, r.stderr)
    for p in commands:
        p.communicate("")


def main():
    tap, programs = Tap(), tapsys.Programs(sys.argv[1])
    source = pathlib.Path(sys.argv[2])
    folder = programs.dir / "objects"
    folder.mkdir(mode=0o755)
    (folder / "objects").write_bytes((programs.probes / "objects").read_bytes())
    (folder / "objects").chmod(0o755)
    known = subprocess.run([folder / "objects", "--list"], capture_output=True, text=True, check=True).stdout.split()
    tap.eq(sorted(known), sorted(OBJECTS), "each object that the program can make has a bound in the table")
    table = (source / "SECURITY.md").read_text()
    calls(tap, source)
    share_of_pipes(tap, programs)
    for name, (most, megabytes, why) in OBJECTS.items():
        tap.ok(f"| {name} |" in table and why in table, f"SECURITY.md says what bounds {name}", why)
        for who in users():
            for _ in range(NOISE_TRIES):
                said, grown = make(programs, who, name)
                if grown <= megabytes:
                    break
            words = said.split()
            count = int(words[1]) if len(words) > 1 and words[0] == "made" else None
            tap.ok(count is not None and (most is None or count <= most),
                   f"{who}: {name} made without end are at most {most}", said)
            tap.ok(grown <= megabytes, f"{who}: {name} take at most {megabytes} MB of kernel memory",
                   f"{grown:.1f} MB: {said}")
    tap.done()


main()
