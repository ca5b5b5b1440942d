#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a cordon-front can still do once it belongs to its client: tests/probes/front.c takes its place, started by the real cordond.

Its main and what that gives up are the product's. Once with its table of system calls, which refuses everything; once with one that lets all through, so that what Landlock,
rlimits and missing capabilities refuse is seen by itself: a table says EPERM to an open, Landlock EACCES."""
import ctypes
import errno
import os
import re
import shutil
import sys

import tapsys
from mcptest import appears, named, start, stop
from tapsys import Tap, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
EPERM, EACCES = errno.EPERM, errno.EACCES
ACTS = {"read-file": "open a file", "list-folder": "open a folder", "make-file": "make a file", "duplicate": "duplicate a descriptor", "socket": "make a socket",
        "connect": "connect", "bind": "bind a socket", "unix-socket": "make a unix socket", "process": "start a process", "signal": "signal cordond",
        "namespace": "make a namespace", "code": "map memory that runs", "limits": "raise its limits", "program": "execute a program"}
BY_TABLE = dict.fromkeys(ACTS, EPERM)
# Landlock's ABI -> what it refuses without a table; a limit that is lowered for good comes with the missing capabilities
BY_LANDLOCK = {1: {"read-file": EACCES, "list-folder": EACCES, "make-file": EACCES, "program": EACCES, "limits": EPERM},
               4: {"connect": EACCES, "bind": EACCES}, 6: {"signal": EPERM}}


def landlock():
    """The ABI of this kernel: landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION)."""
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint(1))


def acts(process):
    """{act: error} as the front tells it, to its last line or its end; and whatever else was said."""
    found, said = {}, []
    for line in iter(process.stderr.readline, b""):
        said.append(line.decode())
        m = re.match(rb"act (\S+) (\d+)$", line)
        if m:
            found[m.group(1).decode()] = int(m.group(2))
        if "end" in found:
            break
    return found, said


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)


def look(probe, who, kind, options, want):
    (programs.bin / "cordon-front").unlink()  # one that ends may still run the old one
    shutil.copy2(programs.probes / probe, programs.bin / "cordon-front")
    server = start(programs, options, who)
    got, said = acts(server)
    where = f"{who}, {kind}, {'with its table' if probe == 'front' else 'without its table'}"
    for act, error in want.items():
        tap.eq(errno.errorcode.get(got.get(act), got.get(act)), errno.errorcode[error], f"{where}: a front cannot {ACTS[act]}", *said[-3:])
    front = appears(lambda: named(server.pid, "cordon-front"))
    if front and os.geteuid() == 0:
        told = status(front[0])
        tap.eq((told["NoNewPrivs"], told["Seccomp"], {int(told[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")}),
               ("1", "2", {0}), f"{where}: the front has no capability and gains none, and a table")
    server.terminate()
    stop(server)


abi = landlock()
for user in users():
    lower = {act: error for least, row in BY_LANDLOCK.items() if abi >= least for act, error in row.items()}
    if user == "user":
        lower["process"] = errno.EAGAIN  # RLIMIT_NPROC, which does not count for root
    for name, words in (("stdio", ["--stdio"]), ("HTTP", ["--http", "127.0.0.1:0"])):
        look("front", user, name, words, BY_TABLE)
        look("front-unfiltered", user, name, words, lower)
tap.done()
