# SPDX-License-Identifier: Apache-2.0
"""A server that is started with its sockets, as systemd does it, for tests of `cordon serve --activated`; and its figures."""
import re
import subprocess
import urllib.request

import tapsys
from httptest import Site

GIVEN = """import os, sys
fds = list(map(int, sys.argv[1].split(",")))
for i, fd in enumerate(fds):
    os.dup2(fd, 40 + i)
for i in range(len(fds)):
    os.dup2(40 + i, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def activate(programs, sockets, *options):
    fds = [s.fileno() for s in sockets]
    return subprocess.Popen(["/usr/bin/python3", "-I", "-c", GIVEN, ",".join(map(str, fds)), *programs.command(["serve", "--activated", *options])],
                            pass_fds=fds, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=tapsys.clean_env())


class Given(Site):
    """The HTTP side of such a server; metrics: the port of its figures, where it has one."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.said = process.stderr.readline().decode()
        self.file = self.said.split()[-1]
        self.token = open(self.file).read().strip()
        self.metrics = None
        if "--metrics" in process.args:
            self.metrics = int(re.search(r"127\.0\.0\.1:(\d+)/metrics", process.stderr.readline().decode()).group(1))


def figures(port):
    """{name and labels: value}; serve_metrics.py is the test that looks at the format."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as r:
        lines = r.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}
