#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a run keeps for later stays in its own file system, which has a quota; and no run may take the last room of a disk of the host.

Usage: storage.py BUILD."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import exits
import tapsys
from tapsys import Programs, Tap, cordon, users

tap, programs = Tap(), Programs(sys.argv[1])
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-storage-", dir="/tmp"))
os.chmod(TOP, 0o755)
tapsys.atexit.register(shutil.rmtree, TOP, ignore_errors=True)
tapsys.enter_empty_network()  # and so the mounts of the test are its own


def mounted(disk):
    """A disk with little room there; it goes before the folder does."""
    tapsys.atexit.register(subprocess.run, ["umount", "--lazy", str(disk)], stderr=subprocess.DEVNULL)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=777", "none", str(disk)], stderr=subprocess.DEVNULL).returncode == 0


CACHES = """import os, pathlib, tempfile
os.chdir('/workspace')
for place in (os.environ['XDG_CACHE_HOME'], os.environ['MPLCONFIGDIR'], os.environ['HF_HOME'], tempfile.gettempdir(), os.path.expanduser('~')):
    os.makedirs(place, exist_ok=True)
    (pathlib.Path(place) / 'kept').write_bytes(b'x' * 1000)
    print(os.path.realpath(place).startswith(('/tmp', '/live/own/tmp')))
"""


def caches(who):
    env = {"CORDON_STATE": str(state(who)), "XDG_CACHE_HOME": str(TOP), "HF_HOME": str(TOP), "TMPDIR": "/tmp"}
    for home in ("/tmp", "/workspace"):
        r = cordon(programs, ["run", "--json", "--profile", "standard", "--env", f"HOME={home}", "-c", CACHES], who, env=env)
        want = ["True"] * 4 + ["True" if home == "/tmp" else "False"]
        tap.eq((r["stdout"] or "").split(), want, f"{who}: HOME {home}: caches and temporary files of libraries lie in the run's own /tmp, whatever the caller's variables say", r.story())
    cordon(programs, ["workspace", "create", "w"], who, env=env)
    r = cordon(programs, ["exec", "--json", "--workspace", "w", "--env", "HOME=/workspace", "--", "/usr/bin/python3", "-c",
                          "open('m.py', 'w').write('a = 1')\nimport sys\nsys.path.insert(0, '.')\nimport m, os, tempfile\n"
                          "for at in (*(os.environ[v] for v in ('XDG_CACHE_HOME', 'MPLCONFIGDIR', 'HF_HOME')), tempfile.gettempdir()):\n"
                          "    os.makedirs(at, exist_ok=True)\n    open(at + '/c', 'w').close()"], who, env=env)
    names = cordon(programs, ["workspace", "diff", "w", "--stat", "genesis", "head"], who, env=env).out
    tap.ok(r["status"] == "ok" and [line.split("\t")[-1] for line in names.splitlines()] == ["m.py"], f"{who}: neither bytecode nor caches of a run are committed", r.story(), names)
    r = cordon(programs, ["exec", "--json", "--processes", "4", "--disk", "1m", "--", "/bin/sh", "-c", "mkdir -p $HF_HOME && exec dd if=/dev/zero of=$HF_HOME/model bs=65536 count=64"], who, env=env)
    tap.ok(r["status"] == "error" and "No space" in r["stderr"], f"{who}: a cache counts against the quota of the run", r.story())


def state(who):
    home = TOP / f"state-{who}"
    if not home.exists():
        home.mkdir(mode=0o700)
        if who == "user" and os.geteuid() == 0:
            os.chown(home, tapsys.ROOTLESS, tapsys.ROOTLESS)
    return home


def small(who):
    """A disk of 8 MB, of which a policy keeps 4 MB or half free."""
    disk = TOP / f"disk-{who}"
    disk.mkdir()
    if not mounted(disk):
        tap.skip(f"{who}: a disk with little room", "no file system can be mounted here")
        return
    env = {"CORDON_STATE": str(state(who))}
    kept = TOP / "kept.yaml"
    kept.write_text("workspaces: {free: 4m, free_percent: 5}\n")
    part = TOP / "part.yaml"
    part.write_text("workspaces: {free: 1m, free_percent: 50}\n")
    os.chmod(kept, 0o644)
    os.chmod(part, 0o644)
    write = ["--", "/bin/sh", "-c", "echo x > file; test ! -d /data || echo x > /data/file"]
    for policy in (kept, part):
        room = [cordon(programs, ["exec", "--json", "--policy", policy, *words, *write], who, env=env) for words in (["--rw", f"{disk}:/data"], ["--out", disk / "out"])]
        tap.ok(all(r["status"] == "ok" for r in room), f"{who}: {policy.stem}: a run may write where there is room", [r.story() for r in room])
    (disk / "full").write_bytes(b"x" * (5 << 20))
    before = sorted(str(p) for p in disk.rglob("*"))
    for policy in (kept, part):
        for option, word in (("--rw", f"{disk}:/data"), ("--out", f"{disk}/out")):
            r = cordon(programs, ["exec", "--policy", policy, option, word, *write], who, env=env)
            tap.ok(r.code == exits.NEVER_RAN and f"{option} {disk}" in r.err and "are kept free (workspaces.free" in r.err and r.err.count("\n") == 1,
                   f"{who}: {policy.stem}: {option} to a disk with less room than the policy keeps free is refused by name before the run", r.story())
    tap.eq(sorted(str(p) for p in disk.rglob("*")), before, f"{who}: a run that was refused for want of room wrote nothing")
    r = cordon(programs, ["exec", "--json", "--policy", kept, "--ro", f"{disk}:/data", "--", "/bin/cat", "/data/file"], who, env=env)
    tap.eq(r["status"], "ok", f"{who}: a full disk can still be read by a run", r.story())


FILL = "import sys\nf = open('/workspace/f', 'wb')\nf.write(b'x' * int(sys.argv[1]))\nf.flush()\nsys.stdin.read(1)\n"
NEAR = {percent: f"its files take more than {percent} % of --disk or --inodes: what does not fit is refused" for percent in (80, 95)}


def announced(who):
    """The quota of a run: told while it runs, and at its end."""
    env = {"CORDON_STATE": str(state(who))}
    for part, want in ((0.5, []), (0.85, [NEAR[80]]), (0.97, [NEAR[95]])):
        r = cordon(programs, ["exec", "--json", "--disk", "4m", "--", "/usr/bin/python3", "-c", FILL, str(int(part * (4 << 20)))], who, env=env)
        tap.eq((r["status"], r["notes"]), ("ok", want), f"{who}: {part:.0%} of --disk: what the result says of it", r.story())
    r = cordon(programs, ["run", "--disk", "4m", "--profile", "standard", "-c", f"open('f', 'wb').write(b'x' * {int(0.9 * (4 << 20))})"], who, env=env)
    tap.ok(NEAR[80] in r.err, f"{who}: a run says on standard error that its quota is nearly used", r.story())
    r = cordon(programs, ["exec", "--json", "--inodes", "100", "--", "/bin/sh", "-c", "i=0; while [ $i -lt 85 ]; do : > f$i; i=$((i+1)); done"], who, env=env)
    tap.eq((r["status"], r["notes"]), ("ok", [NEAR[80]]), f"{who}: --inodes is announced, too", r.story())
    p = subprocess.Popen(programs.command(["exec", "--events", "--disk", "4m", "--", "/usr/bin/python3", "-c", FILL, str(int(0.9 * (4 << 20)))], who), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=tapsys.clean_env(env), cwd="/", text=True)
    seen = []
    for line in p.stdout:  # it waits for its input until somebody has seen the event
        event = json.loads(line)
        seen.append(event["event"])
        if event["event"] == "progress":
            tap.eq((event["what"], event["message"]), ("room", NEAR[80]), f"{who}: --events tells while the program runs that its quota is nearly used")
            p.stdin.close()
    tap.ok("progress" in seen and seen[-1] != "progress" and p.wait() == 0, f"{who}: the program goes on after its quota was announced", seen)


def taken(who):
    """A disk of 8 MB, of which 4 MB are kept free; the program takes 5 MB of it once it runs."""
    disk = TOP / f"taken-{who}"
    disk.mkdir()
    if not mounted(disk):
        tap.skip(f"{who}: a disk that a run fills", "no file system can be mounted here")
        return
    policy = TOP / "taken.yaml"
    policy.write_text("workspaces: {free: 4m, free_percent: 5}\n")
    os.chmod(policy, 0o644)
    fill = "import time\nwith open('/data/f', 'wb') as f:\n    f.write(b'x' * (5 << 20))\nwhile True:\n    time.sleep(1)\n"
    r = cordon(programs, ["exec", "--json", "--policy", policy, "--timeout", "60s", "--rw", f"{disk}:/data", "--", "/usr/bin/python3", "-c", fill], who, env={"CORDON_STATE": str(state(who))})
    tap.ok((r["status"], r["layer"], r["error"]["type"]) == ("error", "filesystem", "StorageError") and "--rw /data" in r["reason"] and "the run was ended" in r["reason"] and r.code == 1,
           f"{who}: a run that takes the room which is kept free on a disk of the host is ended by name", r.story())


for person in users():
    caches(person)
    small(person)
    announced(person)
    taken(person)
tap.done()
