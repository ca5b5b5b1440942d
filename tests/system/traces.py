# SPDX-License-Identifier: Apache-2.0
"""What runs below a process, and what a run could leave on the machine: one finder and one list for every test that looks.

A process is found by its place in the tree, never by a name on the whole machine: others may run Cordon beside the test."""
import collections
import ctypes
import os
import pathlib

import tapsys
from tapsys import until

Process = collections.namedtuple("Process", "pid parent name state")


# --- processes ------------------------------------------------------------------------------------

def process(pid):
    """One process, or None where there is none."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    head, tail = text.rsplit(")", 1)  # the name may hold anything
    state, parent = tail.split()[:2]
    return Process(int(pid), int(parent), head.split("(", 1)[1], state)


def alive(pid):
    p = process(pid)
    return p is not None and p.state not in "ZX"


def children(pid):
    """Pids of the children of a process that has one thread; at once, where the kernel keeps a list."""
    try:
        return [int(x) for x in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        if os.path.exists("/proc/self/task/" + str(os.getpid()) + "/children"):
            return []  # it is gone
    except OSError:
        return []
    found = (process(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit())
    return [p.pid for p in found if p and p.parent == pid]


def below(pid):
    """{pid: Process} of every living descendant, parents before their children."""
    found, todo = {}, [pid]
    while todo:
        for child in children(todo.pop(0)):
            p = process(child)
            if p and p.state not in "ZX":
                found[child] = p
                todo.append(child)
    return found


def lasting(found):
    """How many of FOUND, {pid: Process}, there are without the next child that a template prepares as soon as it has the time to: of the
    children of a template the one that has none itself. Whether it is there yet says nothing."""
    parents = {p.parent for p in found.values()}
    templates = {pid for pid, p in found.items() if p.parent in found and found[p.parent].name == "cordon-nest"}
    return len(found) - len({p.parent for pid, p in found.items() if p.parent in templates and pid not in parents})


def where(pid):
    """What a process and all below it wait for, in words: for whoever has to find out why nothing goes on."""
    told = []
    for p in filter(None, [process(pid), *below(pid).values()]):
        words = []
        for name in ("wchan", "syscall"):
            try:
                words.append(pathlib.Path(f"/proc/{p.pid}/{name}").read_text().split(" ")[0].strip())
            except OSError:
                words.append("?")
        told.append(f"{p.pid} {p.name} {p.state} in {words[0]}, call {words[1]}")
    return "; ".join(told)


def adopt_orphans():
    """Whatever loses its parent below this process becomes its child, so nothing leaves the tree."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def reap_orphans(started):
    """Adopted children that ended are taken off the table. STARTED: pids that somebody else waits for."""
    for pid in children(os.getpid()):
        p = process(pid)
        if p and p.state == "Z" and pid not in started:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def descriptors(pid):
    """How many descriptors it has open, or None where we may not look."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


# --- what else a run could leave --------------------------------------------------------------------

def mounts():
    return sorted(" ".join(line.split()[3:]) for line in open("/proc/self/mountinfo"))


def cgroups(pids=None):
    """Folders named like the cgroups of our runs; PIDS: only of runs that these supervised."""
    found = set()
    for base, dirs, _ in os.walk("/sys/fs/cgroup"):
        if base.count("/") > 12:
            dirs.clear()
        found.update(os.path.join(base, d) for d in dirs if "cordon" in d)
    return {c for c in found if pids is None or c.rsplit("/cordon-", 1)[-1].split("-")[0] in {str(p) for p in pids}}


SHARED = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/run/user", "/var/lib/cordon", os.environ.get("XDG_RUNTIME_DIR", "/nowhere")]
OF_TESTS = ("cordon-canary-", "cordon-test-", "cordon-house-", "cordon-faults-")


def files(own):
    """Everything in the folders of OWN; in those of everybody what is named like ours or owned like a guest."""
    found = {os.path.join(place, n) for place in own for n in os.listdir(place)}
    for place in SHARED:
        for n in os.listdir(place) if os.path.isdir(place) else ():
            f = os.path.join(place, n)
            try:
                owner = os.lstat(f).st_uid
            except OSError:
                continue
            if not n.startswith(OF_TESTS) and ("cordon" in n or owner == tapsys.ROOTLESS or owner >= 100000):
                found.add(f)
    return found


def system_v():
    """System V objects of guests: of an ordinary user's runs, and of ids that root's runs get. Others may have theirs."""
    found = []
    for kind in ("shm", "msg", "sem"):
        head, *rows = pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
        for row in rows:
            o = dict(zip(head.split(), row.split()))
            if int(o["uid"]) == tapsys.ROOTLESS or int(o["uid"]) >= 100000:
                found.append((kind, o.get(kind + "id"), o["uid"]))
    return sorted(found)
