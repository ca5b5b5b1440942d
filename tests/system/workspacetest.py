# SPDX-License-Identifier: Apache-2.0
"""What the whole-system tests of workspaces share: a folder that goes away with the test, a state folder on a disk of its own for each
user, `cordon workspace`, git on a store, and a process that changes the kinds of names."""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tapsys
from tapsys import House, cordon

tap, programs = tapsys.Tap(), tapsys.Programs(sys.argv[1])
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-workspace-", dir="/tmp"))
os.chmod(TOP, 0o755)
atexit.register(shutil.rmtree, TOP, ignore_errors=True)
GIT_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8"}


def mount(*words, **more):
    """Its place is given back before TOP is removed: a folder that something is mounted on stays."""
    atexit.register(subprocess.run, ["umount", "-l", words[-1]], stderr=subprocess.DEVNULL)
    return subprocess.run(["mount", *words], **more)


def own_disks(people):
    """A state folder on a tmpfs for each: objects are synced, and others write on the machine's disk. In a mount namespace of the test's."""
    tapsys.enter_empty_network()
    for person in people:
        home = TOP / f"home-{person}"
        home.mkdir()
        mount("-t", "tmpfs", "none", str(home), check=True)
        if person == "user" and os.geteuid() == 0:
            os.chown(home, tapsys.ROOTLESS, tapsys.ROOTLESS)
        os.chmod(home, 0o700)
        House.of(person)["CORDON_STATE"] = str(home)


def stacked_states(people):
    """For each a state folder where the kernel gives no overlay, because it already is one over another; none where overlays cannot be stacked."""
    below = TOP / "stack"
    below.mkdir()
    at = None
    mount("-t", "tmpfs", "none", str(below), check=True)
    for level in (1, 2):
        at = below / f"m{level}"
        for p in (at, below / f"u{level}", below / f"w{level}", below / "l0"):
            p.mkdir(exist_ok=True)
        lower = below / ("l0" if level == 1 else "m1")
        upper, work = below / f"u{level}", below / f"w{level}"
        if mount("-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "none", str(at), stderr=subprocess.DEVNULL).returncode:
            tap.skip("a workspace where there is no overlay", "overlays cannot be stacked here")
            return
    for who in people:
        state = at / f"state-{who}"
        state.mkdir(mode=0o700)
        if who == "user" and os.geteuid() == 0:
            os.chown(state, tapsys.ROOTLESS, tapsys.ROOTLESS)
        yield who, state


def workspace(*words, who="root", **more):
    return cordon(programs, ["workspace", *map(str, words)], who, **more)


def store(name, who="root", env=None):
    return pathlib.Path((env or House.of(who))["CORDON_STATE"], "workspaces", name, "store.git")


def git_as(who, *words, cwd="/"):
    """git as the user WHO: exit status and bytes."""
    drop = ["setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups", "--"] if who == "user" and os.geteuid() == 0 else []
    r = subprocess.run([*drop, "git", *map(str, words)], cwd=cwd, env=GIT_ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return r.returncode, r.stdout


def git(name, *words, who, env=None):
    """What git says about the store of the workspace NAME."""
    return git_as(who, "--git-dir", store(name, who, env), *words)[1].decode("utf-8", "surrogateescape")


def fresh(name, files, who, **more):
    """A new workspace with FILES, {path: text}, as its head: its id."""
    workspace("delete", name, who=who, **more)
    workspace("create", name, who=who, **more)
    top = TOP / "in"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    return workspace("import", name, top, "--json", who=who, **more)["id"]


SWAP = r"""
import os, sys
top, secret = sys.argv[1:]
kinds = [lambda p: os.symlink(secret, p), os.mkfifo, os.mkdir, lambda p: open(p, "w").write("honest\n")]
print("ready", flush=True)
while True:
    for kind in kinds:
        for i in range(0, 40, 3):
            path = f"{top}/f{i}"
            kind(path + ".t")
            try:
                os.rename(path + ".t", path)
            except OSError:
                (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
                os.rename(path + ".t", path)
"""


def swap(top, secret):
    """A process that makes each third of the files f0 to f39 in TOP a link to SECRET, a FIFO, a folder and a file in turn. It has begun."""
    p = subprocess.Popen([sys.executable, "-c", SWAP, str(top), str(secret)], stdout=subprocess.PIPE)
    p.stdout.readline()
    return p
