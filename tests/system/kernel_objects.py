#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel objects that a guest can make, each made without end: what bounds it, and what it costs the machine.

tests/probes/objects.c makes one kind in the jail until the kernel refuses, and holds it; this test looks at the
machine's kernel memory meanwhile. SECURITY.md has the same table for people; a row that is missing there fails."""
import pathlib
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
}
NOISE_TRIES = 5  # others use the machine too: the smallest of some measurements counts


def kernel_mb():
    """What the kernel holds and cannot take back, in MB."""
    fields = dict(line.split(":") for line in open("/proc/meminfo"))
    return sum(int(fields[k].split()[0]) for k in ("SUnreclaim", "PageTables", "KernelStack")) / 1024


def make(programs, who, name):
    """What the guest says it made, and by how much the kernel's memory grew while it held it."""
    before = kernel_mb()
    with subprocess.Popen(programs.command(
            ["exec", "--memory", f"{MEMORY_MB}m", "--memory-by", "rlimit", "--timeout", "60s", "--stdin", "-", "--ro",
             f"{programs.dir}/objects:/objects", "--", "/objects/objects", name], who),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=tapsys.clean_env({}, who)) as p:
        said = p.stdout.readline().strip()
        grown = kernel_mb() - before
        p.stdin.close()
        return said or p.stderr.read().strip(), grown


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
