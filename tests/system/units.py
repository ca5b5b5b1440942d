#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The systemd units: systemd's own checks of them, and whether jails can be built where they hold.

Usage: units.py BUILD SOURCE"""
import configparser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tapsys
import unitstest
from tapsys import Tap

build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
tap = Tap()
programs = tapsys.Programs(build)
ANALYZE = shutil.which("systemd-analyze")
EXPOSED = {"system": 3.2, "user": 7.9}  # of 10, as systemd 252 counts: more is a hardening that was lost
# Each by its value: the exposure is one sum, in which a tenth more or less hides the loss of one of them, and some do not count.
EVERY = {"NoNewPrivileges": "yes", "LockPersonality": "yes", "RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "SystemCallArchitectures": "native",
         "SystemCallFilter": "~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap", "SystemCallErrorNumber": "EPERM", "UMask": "0077",
         "KillMode": "mixed", "Restart": "on-failure"}
HARDENED = {"user": EVERY, "system": EVERY | {
    "User": "cordon", "StateDirectory": "cordon-serve", "StateDirectoryMode": "0700", "CapabilityBoundingSet": "", "AmbientCapabilities": "",
    "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes", "DevicePolicy": "closed", "PrivateIPC": "yes", "RemoveIPC": "yes",
    "KeyringMode": "private", "ProtectClock": "yes", "ProtectControlGroups": "yes", "ProtectKernelModules": "yes",
    "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "IPAddressDeny": "any", "IPAddressAllow": "localhost"}}
SHELL = """set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t tmpfs tmpfs /home
mount -t tmpfs -o ro tmpfs /root
mount --bind /sys/fs/cgroup /sys/fs/cgroup
for d in / /sys/fs/cgroup; do mount -o remount,bind,ro $d; done
! touch /etc/cordon-test 2>/dev/null
cd /
exec setpriv --reuid=61234 --regid=61234 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all -- "$2" run --json -c 'print(6 * 7)'
"""


def analyze(kind, *words):
    env = {**tapsys.clean_env(), "XDG_RUNTIME_DIR": str(programs.dir), "SYSTEMD_COLORS": "0"}
    p = subprocess.run([ANALYZE, *(["--user"] if kind == "user" and words[0] == "verify" else []), *words], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, timeout=60 * tapsys.SLOW)
    return p.returncode, p.stdout


def verified(kind, texts):
    with tempfile.TemporaryDirectory(prefix="cordon-units-") as folder:
        paths = []
        for name, text in texts.items():
            paths.append(pathlib.Path(folder, name))
            paths[-1].write_text(text)
        code, said = analyze(kind, "verify", "--man=no", *map(str, paths))
        tap.ok(code == 0 and not said.strip(), f"systemd finds nothing wrong with the units of kind {kind}", said)
        broken = paths[0].with_name("cordon-broken.service")
        broken.write_text(texts["cordon-serve.service"].replace("Type=notify", "Type=notifi"))
        tap.ok("notifi" in analyze(kind, "verify", "--man=no", str(broken))[1], f"systemd finds a word in a unit of kind {kind} that it does not know")
        code, said = analyze(kind, "security", "--offline=true", "--no-pager", f"--threshold={int(EXPOSED[kind] * 10)}", str(pathlib.Path(folder, "cordon-serve.service")))
        level = re.search(r"exposure level for \S+: ([0-9.]+)", said)
        tap.ok(code == 0 and level and float(level.group(1)) <= EXPOSED[kind], f"the exposure of the service of kind {kind} is at most {EXPOSED[kind]}", said[-400:])


def sections(text):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(text)
    return parser


found = unitstest.installed(build, programs.cordon)
tap.eq({k: sorted(v) for k, v in found.items()}, {k: ["cordon-serve.service", "cordon-serve.socket"] for k in found},
       "a service and its socket are installed, for the system and for users")
for kind, texts in found.items():
    service, sock = sections(texts["cordon-serve.service"]), sections(texts["cordon-serve.socket"])
    words = service["Service"]["ExecStart"].split()[1:]
    r = tapsys.cordon(programs, words)
    tap.ok(r.code == 2 and "LISTEN_FDS" in r.err, f"the service of kind {kind} has options that the program takes; it lacks its sockets alone", r.err)
    tap.ok(service["Service"]["Type"] == "notify" and int(service["Service"]["WatchdogSec"][:-1]) > 0, f"the service of kind {kind} is waited for and watched")
    stop, drain = int(service["Service"]["TimeoutStopSec"][:-1]), int(words[words.index("--drain") + 1][:-1])
    tap.ok(stop >= drain + 20, f"the service of kind {kind} has time to drain before it is killed", stop, drain)
    mode = ("0666", True) if kind == "system" else ("0600", False)
    tap.eq((sock["Socket"]["SocketMode"], "--all-users" in words), mode, f"the unix socket of kind {kind} is for {'every user, and so is its server' if mode[1] else 'its owner'}")
    for setting, value in HARDENED[kind].items():
        tap.eq(service["Service"].get(setting), value, f"the service of kind {kind} has {setting}={value}")
    lost = [k for k in ("RestrictNamespaces", "ProtectHostname", "PrivateUsers", "ProtectProc", "ProcSubset", "ProtectKernelTunables", "ProtectKernelLogs", "MemoryDenyWriteExecute")
            if k in service["Service"]]
    tap.eq(lost, [], f"the service of kind {kind} has none of the settings under which no jail can be built")
    if ANALYZE:
        verified(kind, texts)
    else:
        tap.skip(f"systemd finds nothing wrong with the units of kind {kind}", "no systemd-analyze")
if os.geteuid() == 0:
    with tempfile.TemporaryDirectory(prefix="cordon-state-", dir="/var/tmp") as state:
        os.chown(state, 61234, 61234)
        p = subprocess.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", SHELL, "sh", state, str(programs.cordon)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tapsys.clean_env({"CORDON_STATE": state}))
        result = json.loads(p.stdout) if p.stdout else {}
        tap.ok(result.get("stdout") == "42\n" and set(result["layers"].values()) == {"on"},
               "with a read-only system, no homes, no capabilities and no new privileges a program runs behind every layer", p.stdout[-500:], p.stderr)
else:
    tap.skip("with a read-only system, no homes, no capabilities and no new privileges a program runs behind every layer", "needs root")
tap.done()
