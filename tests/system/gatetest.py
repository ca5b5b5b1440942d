# SPDX-License-Identifier: Apache-2.0
"""What the tests of the gate share: a state folder with policies for one user, and somebody else who answers."""
import atexit
import json
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import time

from tapsys import ROOTLESS, clean_env, cordon


class State:
    """A state folder and policies for one user."""

    def __init__(self, programs, who):
        self.programs = programs
        self.who = who
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-gate-", dir="/var/tmp"))
        atexit.register(self.close)
        self.dir = self.home / "deep" / "state"
        self.dir.parent.mkdir(mode=0o700)
        self.dir.mkdir(mode=0o700)
        for path in (self.home, self.dir.parent, self.dir):
            self.own(path)
        # the built-in policy: what the other tests widen is what is tried here
        self.env = {"CORDON_STATE": str(self.dir), "XDG_CONFIG_HOME": str(self.home / "none"), "XDG_RUNTIME_DIR": str(self.dir)}

    def own(self, path):
        if self.who == "user" and os.geteuid() == 0:
            os.chown(path, ROOTLESS, ROOTLESS)

    def policy(self, text):
        path = self.home / f"policy-{time.monotonic_ns()}.yaml"
        path.write_text(text)
        os.chmod(path, 0o600)
        self.own(path)
        return str(path)

    def run(self, *args, **more):
        return cordon(self.programs, args, self.who, env=self.env, **more)

    def start(self, *args):
        return subprocess.Popen(self.programs.command(args, self.who), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=clean_env(self.env), cwd="/")

    def listed(self):
        r = self.run("stop", "--list", "--json")
        return r.json or {}

    def wait_for(self, count):
        """Until so many run; a figure of the state, not a time."""
        for _ in range(600):
            if self.listed().get("count") == count:
                return True
            time.sleep(0.05)
        return False

    def audit(self):
        return [json.loads(line) for p in sorted((self.dir / "audit").glob("*.jsonl")) for line in p.read_text().splitlines()]

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)


def apart(command, env, terminal=True):
    """Runs COMMAND below a process that nobody here started any more (it forked twice), at a terminal of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cordon-apart-"))
    if os.fork() == 0:
        try:
            os.setsid()
            between = os.getpid()
            if os.fork() == 0:
                while os.getppid() == between:  # until then whoever asked is an ancestor
                    time.sleep(0.001)
                pid, fd = pty.fork() if terminal else (os.fork(), -1)
                if pid == 0:
                    out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT)
                    os.dup2(out, 1)
                    os.dup2(out, 2)
                    os.execve(command[0], command, env)
                (folder / "new").write_text(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                (folder / "new").rename(folder / "status")
        finally:
            os._exit(0)  # nothing of the test's own runs in here
    os.wait()
    for _ in range(3000):
        if (folder / "status").exists():
            break
        time.sleep(0.02)
    code = int((folder / "status").read_text()) if (folder / "status").exists() else None
    text = (folder / "out").read_text(errors="replace") if (folder / "out").exists() else ""
    shutil.rmtree(folder)
    return code, text
