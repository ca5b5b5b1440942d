#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The system's units under a real systemd, which is process 1 of namespaces of its own: it starts the service for the first client, with every
hardening that the unit has, reads it again, restarts it and stops it.

Usage: units_live.py BUILD SOURCE. What systemd sees as its root is an overlay whose upper layer is in memory, with a /dev, a network and a cgroup of
its own: nothing that it writes reaches the machine. It starts the units of this test and no others."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import tapsys
import unitstest
from mcptest import PATIENCE, appears, bytes_of, stat
from tapsys import Tap

build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
tap = Tap()
SYSTEMD = pathlib.Path("/lib/systemd/systemd")
HOME = "/opt/cordon/bin/cordon"  # where systemd sees the programs
IDLE = "[Unit]\nDescription=nothing\nDefaultDependencies=no\n"
# Before it is systemd: what it sees. /proc/sys cannot be written while it begins, since it would raise limits of the machine; then that mount goes,
# because no jail can be built where a part of /proc is covered.
SCRIPT = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$1/fs"
cd "$1/fs"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root
cd root
for d in run opt var/lib dev; do mount -t tmpfs -o mode=755 tmpfs $d; done
for d in tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $d; done
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for n in null zero full random urandom tty; do cp -a /dev/$n dev/; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
touch dev/console
mkdir -p opt/cordon/bin run/systemd old
mount --bind "$2" opt/cordon/bin
cp -r "$1/units" run/systemd/system
systemd-sysusers --root=. "$1/cordon.sysusers"
rm -rf usr/lib/systemd/system/*.wants etc/systemd/system/*.wants
pivot_root . old
cd /
umount -l /old
exec env -i PATH=/usr/bin:/usr/sbin container=cordon-test /lib/systemd/systemd --system --unit=idle.target --log-target=console --show-status=no
"""
# One client: prints the results of the calls that it is given, as JSON; each argument is the code of a run.
CLIENT = """
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("/run/cordon/mcp")
META = "io.modelcontextprotocol/"
for n, code in enumerate(sys.argv[1:], 1):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": code},
              "_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}}).encode() + b"\\n")
    data = b""
    while not data.endswith(b"\\n"):
        piece = s.recv(1 << 20)
        if not piece:
            sys.exit("the server ended")
        data += piece
    print(json.dumps(json.loads(data)["result"].get("structuredContent") or json.loads(data)["result"]), flush=True)
"""
WEB = """
import json, sys, urllib.request
META = "io.modelcontextprotocol/"
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": "6 * 7"},
                   "_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}}).encode()
q = urllib.request.Request("http://127.0.0.1:8431/mcp", body, {"Authorization": "Bearer " + open("/var/lib/cordon-serve/serve-token").read().strip(),
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_code"})
print(json.loads(urllib.request.urlopen(q, timeout=60).read())["result"]["structuredContent"]["value"])
"""


def skipped():
    """None, or why there is no systemd to be had here."""
    if os.geteuid() != 0:
        return "only root can give systemd namespaces of its own"
    return None if SYSTEMD.exists() and unified() else "no systemd, or no cgroup of version 2"


def unified():
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return pathlib.Path(line.split()[4])
    return None


class Machine:
    """systemd in namespaces of its own; PID: as this machine counts it."""

    def __init__(self, programs, units):
        self.top, self.cgroup = programs.dir / "machine", unified() / f"cordon-units-{os.getpid()}"
        for folder in (self.top / "units", self.top / "fs", self.cgroup):
            folder.mkdir(parents=True)
        for name, text in {**units, "idle.target": IDLE, "sysinit.target": IDLE, "basic.target": IDLE}.items():
            (self.top / "units" / name).write_text(text)
        shutil.copy(source / "packaging/systemd/cordon.sysusers", self.top)
        self.process = subprocess.Popen(["/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "/bin/sh", "-c", SCRIPT, "sh", str(self.top), str(programs.bin)],
                                        preexec_fn=lambda: (self.cgroup / "cgroup.procs").write_text(str(os.getpid())), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.pid = None

    def up(self):
        """Whether it has come up; the machine's settings are then there as they are."""
        def child():
            found = [int(p) for p in os.listdir("/proc") if p.isdigit() and (stat(p) or ("", "", 0))[2] == self.process.pid]
            return found if found and pathlib.Path(f"/proc/{found[0]}/root/run/systemd/private").exists() else self.process.poll() is not None
        if not isinstance(appears(child), list):
            return False
        self.pid = child()[0]
        return appears(lambda: self("systemctl", "is-active", "idle.target").stdout == "active\n") and self("umount", "/proc/sys").returncode == 0

    def __call__(self, *words, user=None):
        inside = ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        return subprocess.run([*self.enter(), *inside, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)

    def enter(self):
        return ["/usr/bin/nsenter", "-t", str(self.pid), "--mount", "--pid", "--net", "--ipc", "--uts", "--"]

    def show(self, name):
        return self("systemctl", "show", "-P", name, "cordon-serve.service").stdout.strip()

    def run(self, *codes, user=tapsys.ROOTLESS):
        r = self("/usr/bin/python3", "-I", "-c", CLIENT, *codes, user=user)
        return [json.loads(line) for line in r.stdout.splitlines()] or [{"said": r.stderr}]

    def group(self):
        """Processes of the service."""
        found = []
        for folder, _, names in os.walk(self.cgroup / "system.slice/cordon-serve.service"):
            with contextlib.suppress(OSError):  # that of a run which has just ended
                found += pathlib.Path(folder, "cgroup.procs").read_text().split() if "cgroup.procs" in names else []
        return found

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        for _ in range(200):  # the kernel takes a moment to empty them
            for folder in sorted((p for p in self.cgroup.rglob("*") if p.is_dir()), reverse=True):
                try:
                    folder.rmdir()
                except OSError:
                    pass
            try:
                self.cgroup.rmdir()
                return True
            except OSError:
                time.sleep(0.05)
        return False


def starts(m):
    tap.eq(m("systemctl", "start", "cordon-serve.socket").returncode, 0, "systemd starts the socket")
    tap.eq(m.show("ActiveState"), "inactive", "nothing is started before the first client")
    r = m.run("6 * 7")[0]
    tap.ok(r.get("value") == "42" and set(r["layers"].values()) == {"on"}, "the first client, of any user, has its program run behind every layer under all of the unit's hardening", r, log(m))
    tap.eq((m.show("ActiveState"), m.show("SubState"), m.show("User")), ("active", "running", "cordon"), "systemd knows that the service is ready, and runs it as its own user")
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{main(m)}/status").read_text().splitlines() if ":\t" in line)
    tap.eq((status["NoNewPrivs"], int(status["CapBnd"], 16)), ("1", 0), "the server has no new privileges and no capability to gain")
    r = m("/usr/bin/python3", "-I", "-c", WEB)
    tap.eq(r.stdout, "42\n", "a client of HTTP with the token of the state folder is served at the port of the socket's unit", r.stderr)


def main(m):
    """Its process, as this machine counts it."""
    inside = m.show("MainPID")
    for pid in m.group():
        line = next((x for x in bytes_of(pid, "status").decode().splitlines() if x.startswith("NSpid:")), "")
        if line.split()[-1:] == [inside]:
            return int(pid)
    return 0


def log(m):
    """What systemd said."""
    try:
        return pathlib.Path(f"/proc/{m.pid}/root/dev/console").read_text(errors="replace")[-2000:]
    except OSError:
        return "nothing"


def lives(m):
    before = main(m)
    r = m("systemctl", "reload", "cordon-serve.service")
    tap.ok(r.returncode == 0 and main(m) == before and m.show("ActiveState") == "active", "systemctl reload: the same server goes on", r.stderr)
    os.kill(before, signal.SIGKILL)
    tap.ok(appears(lambda: m.show("NRestarts") == "1" and m.show("ActiveState") == "active"), "a server that was killed is started again", log(m))
    tap.eq(m.run("6 * 7")[0].get("value"), "42", "a client after that is served")
    drop = pathlib.Path(f"/proc/{m.pid}/root/run/systemd/system/cordon-serve.service.d")
    drop.mkdir()
    (drop / "watch.conf").write_text("[Service]\nWatchdogSec=10s\n")  # the unit's own is a minute; one that a busy machine holds up is not killed
    tap.ok(m("systemctl", "daemon-reload").returncode == 0 and m("systemctl", "restart", "cordon-serve.service").returncode == 0, "systemctl restart: the service comes up again", log(m))
    tap.eq(m.run("6 * 7")[0].get("value"), "42", "a client after a restart is served")
    before, count = main(m), int(m.show("NRestarts"))
    os.kill(before, signal.SIGSTOP)
    tap.ok(appears(lambda: int(m.show("NRestarts")) > count and m.show("ActiveState") == "active" and main(m) != before), "a server that hangs is noticed by systemd's watchdog, and started again", log(m))
    tap.eq(m.run("6 * 7")[0].get("value"), "42", "a client after that is served, too")


def runners(m):
    return [p for p in m.group() if bytes_of(p, "comm") == b"cordon-runner\n"]


def stops(m):
    appears(lambda: not runners(m))  # that of the client before
    held = subprocess.Popen([*m.enter(), "/usr/bin/python3", "-I", "-c", CLIENT, "import time; time.sleep(2); print('its end')"], stdout=subprocess.PIPE, text=True)
    tap.ok(appears(lambda: runners(m)), "a run is under way")
    r = m("systemctl", "stop", "cordon-serve.service", "cordon-serve.socket")
    said = json.loads(held.communicate(timeout=PATIENCE)[0] or "{}")
    tap.ok(r.returncode == 0 and said.get("stdout") == "its end\n", "systemctl stop: what runs comes to its end and is answered", r.stderr, said)
    tap.eq((m.show("Result"), m.group()), ("success", []), "systemctl stop: the service has ended well, and none of its processes is left")


why = skipped()
if why:
    tap.skip("the units under a real systemd", why)
else:
    programs = tapsys.Programs(build)
    m = Machine(programs, unitstest.installed(build, HOME)["system"])
    try:
        if tap.ok(m.up(), "systemd comes up as process 1 of its own namespaces", log(m), m.process.stderr.read() if m.process.poll() is not None else ""):
            starts(m)
            lives(m)
            stops(m)
    finally:
        tap.ok(m.end(), "nothing of it is left")
tap.done()
