# SPDX-License-Identifier: Apache-2.0
"""The machine's only service: mounts what a Debian would, runs the suites, prints, powers off.

What a suite prints stands between two lines that begin with @@@; tests/vm/run reads them."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import time

libc = ctypes.CDLL(None, use_errno=True)


def mount(kind, where, options=""):
    pathlib.Path(where).mkdir(parents=True, exist_ok=True)
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, options.encode()) != 0:
        say(f"mount {where}: {os.strerror(ctypes.get_errno())}")


def say(text):
    print("@@@", text, flush=True)


def end_of(suite, until):
    """Its exit status. We are process 1, and reap orphans meanwhile as every init does: a test may wait until one is gone."""
    while time.monotonic() < until:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == suite.pid:
            suite.returncode = os.waitstatus_to_exitcode(status)
            return suite.returncode
        if pid == 0:
            time.sleep(0.05)
    return "timeout"


def suite(name, argv, limit, env, folder, place):
    say(f"begin {name} {limit} {place}")
    start = time.monotonic()
    try:
        code = end_of(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **env}), start + limit)
    except OSError as e:
        code = e.strerror.replace(" ", "-")
    seconds = time.monotonic() - start
    try:
        os.kill(-1, signal.SIGKILL)  # we are process 1: what a suite that was cut has left, and holders that wait for more work
        while True:
            os.waitpid(-1, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    say(f"end {name} {code} {seconds:.0f}")


def main():
    os.environ.update(PATH="/usr/bin:/usr/sbin", HOME="/root", LANG="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
    os.chdir("/")
    mount("proc", "/proc")
    console = os.open("/dev/console", os.O_RDWR | os.O_NOCTTY)
    for fd in (0, 1, 2):
        os.dup2(console, fd)
    mount("sysfs", "/sys")
    mount("securityfs", "/sys/kernel/security")
    mount("devpts", "/dev/pts", "mode=620,ptmxmode=666")
    mount("tmpfs", "/dev/shm", "mode=1777")
    mount("mqueue", "/dev/mqueue")
    mount("tmpfs", "/run", "mode=755")
    mount("cgroup2", "/sys/fs/cgroup")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        if not os.path.lexists("/dev/" + name):
            os.symlink(target, "/dev/" + name)
    pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory +pids +cpu")
    subprocess.run(["/usr/sbin/ldconfig"])
    subprocess.run(["busybox", "ip", "link", "set", "lo", "up"])  # clients of HTTP are at loopback
    say("up")
    job = json.loads(pathlib.Path("/cordon/job.json").read_text())
    os.environ.update(job["environment"])
    for i, s in enumerate(job["suites"], 1):
        suite(s["name"], s["argv"], s["limit"], s["env"], s["folder"], f"{i}/{len(job['suites'])}")
    say("done")


try:
    main()
except BaseException as e:
    print("@@@ broken", repr(e), flush=True)
os.sync()
time.sleep(0.5)
libc.reboot(0x4321fedc)  # RB_POWER_OFF
time.sleep(60)
