# SPDX-License-Identifier: Apache-2.0
"""What only this machine can show: cgroup version 2, Landlock's older ABI, and that nothing is left.

Usage: checks.py BUILD. Meant for the machine of `make vm-test`, which it has to itself."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import exits
import tapsys

BUILD = sys.argv[1]
GROUPS = pathlib.Path("/sys/fs/cgroup")
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tap.figure(f"{platform.machine()}, Linux {platform.release()}, security modules "
           f"{pathlib.Path('/sys/kernel/security/lsm').read_text() if os.path.exists('/sys/kernel/security/lsm') else '(not shown)'}")
tap.ok(platform.release().startswith("6.1."), "this is Debian 12's own kernel", platform.release())
tap.ok((GROUPS / "cgroup.controllers").exists(), "cgroup version 2 alone is mounted")
lacking = {p.name: missing for p in sorted(programs.bin.iterdir())
           if (missing := re.findall(r"(\S+) => not found", subprocess.run(["/usr/bin/ldd", p], capture_output=True, text=True).stdout))}
tap.eq(lacking, {}, "every program finds the libraries that it is linked with")
numpy = subprocess.run(["/usr/bin/python3", "-c", "import numpy"], stderr=subprocess.PIPE, text=True)
tap.ok(numpy.returncode == 0, "numpy, which templates load ahead, can be imported", numpy.stderr)


def world():
    """All that a run could leave behind."""
    return {"cgroups": sorted(str(p) for p in GROUPS.rglob("*") if p.is_dir()),
            "mounts": sorted(line.split(" ", 3)[3] for line in open("/proc/self/mountinfo")),
            "processes": [p for p in os.listdir("/proc") if p.isdigit() and user_process(p)],
            "/tmp": sorted(f for f in os.listdir("/tmp") if not f.startswith("cordon-house-")),  # the test's own
            "/dev/shm": sorted(os.listdir("/dev/shm")), "/run": sorted(os.listdir("/run"))}


def user_process(pid):
    try:
        os.readlink(f"/proc/{pid}/exe")  # kernel threads have none
        return True
    except OSError:
        return False


before = world()

# --- doctor ---------------------------------------------------------------------------------------

for who in tapsys.users():
    run = tapsys.cordon(programs, ["doctor", "--json"], who)
    checks = {c["name"]: c for c in run["checks"] or ()}
    tap.ok(run.code == 0 and run["ok"] is True, f"{who}: doctor finds the default policy met", run.story())
    for name, c in checks.items():
        if "full" in c["needed_by"].split(", "):
            tap.ok(c["state"] == "enforced", f"{who}: doctor: {name} ({c['detail']})", c)
        else:
            tap.figure(f"{who}: doctor: {name}: {c['state']}: {c['detail']}")
    tap.ok("ABI 2" in checks.get("landlock", {}).get("detail", ""), f"{who}: Landlock ABI 2", checks.get("landlock"))
    group = checks.get("cgroup", {})
    tap.ok("version 2" in group.get("detail", "") and group.get("state") == "enforced" or who == "user", f"{who}: cgroup version 2", group)

# --- runs -----------------------------------------------------------------------------------------

for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    probe = lambda name, *options, **more: tapsys.exec_json(programs, ["--ro", str(canaries.ro), *options], [str(canaries.ro / "probe"), name], who, **more)
    ex = lambda options, *argv, **more: tapsys.exec_json(programs, options, argv, who, **more)
    r = ex([], "/bin/echo", "hello")
    tap.ok(r.code == 0 and r["stdout"] == "hello\n" and not r["violations"], f"{who}: an honest program runs", r.story())
    tap.ok(not tapsys.shape_faults(r.json), f"{who}: the result of an honest program has its shape", *tapsys.shape_faults(r.json))
    on = {l: str((r["layers"] or {}).get(l)) for l in ("process", "syscalls", "resources", "network", "filesystem")}
    tap.ok(all(v == "on" for v in on.values()), f"{who}: five layers are on", on)
    r = ex(["--mode", "landlock"], "/bin/echo", "hello")  # it stands on Landlock alone, and this one is too old
    tap.ok(r.code == exits.NEVER_RAN and r["status"] == "refused" and r["layer"] == "filesystem" and "ABI 6; this is 2" in (r["reason"] or ""),
           f"{who}: the weaker mode is refused, by name", r.story())
    # its built-in modules were compiled on the machine that built, which may be of the other architecture
    r = tapsys.cordon(programs, ["run", "--json", "-"], who, text="import math\nprint(math.floor(6.5) * 7, 'ä'.encode().hex())\n")
    tap.ok(r.code == 0 and r["stdout"] == "42 c3a4\n", f"{who}: a Python program runs in cordon-python", r.story())
    how = "cgroup v2" if who == "root" else "rlimit, per process"
    r = ex(["--processes", "4"], "/bin/sh", "-c", "echo a | cat; id -u")
    tap.ok(r["status"] == "ok" and (r["stdout"] or "").startswith("a\n") and r["stdout"] != "a\n0\n", f"{who}: a program of several processes runs", r.story())
    tap.ok((r["usage"] or {}).get("memory_by") == how, f"{who}: memory of several processes by {how}", r["usage"])
    if who == "root":
        for script in ("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", "(x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done) & wait"):
            r = ex(["--memory", "64m", "--memory-by", "cgroup", "--processes", "4"], "/bin/bash", "-c", script)
            tap.ok(r["status"] == "memory" and r.code == exits.LIMIT, f"{who}: a memory bomb in a cgroup ends as memory", r.story())
            tap.ok(((r["usage"] or {}).get("memory_mb") or 999) <= 72, f"{who}: the peak of a memory bomb in a cgroup is at most its limit, and what the kernel lets a process have that it ends", r["usage"])
        r = probe("memory-children", "--memory", "64m", "--memory-by", "cgroup", "--processes", "8")
        tap.ok(r["status"] == "memory" or r.last_line().startswith("CONTAINED"), f"{who}: memory that is spread over children is contained", r.story())
        r = probe("memfd-bomb", "--memory", "64m", "--memory-by", "cgroup")
        tap.ok(r["status"] == "memory" or r.last_line().startswith("CONTAINED"), f"{who}: a memfd bomb is contained", r.story())
    else:
        r = probe("memory-bomb", "--memory", "64m")
        tap.ok(r["status"] in ("ok", "memory") and (r["status"] == "memory" or r.last_line().startswith("CONTAINED")), f"{who}: a memory bomb is contained", r.story())
        r = ex(["--memory-by", "cgroup"], "/bin/true")
        tap.ok(r.code == exits.NEVER_RAN and r["status"] == "refused" and r["layer"] == "resources", f"{who}: --memory-by cgroup without a cgroup is refused by name", r.story())
    r = probe("cpu-spin", "--cpu", "1s", "--timeout", "20s")
    tap.ok(r["status"] == "timeout" and "cpu" in (r["reason"] or "").lower() and r.code == exits.LIMIT, f"{who}: the CPU limit ends a program", r.story())
    tap.ok((r["usage"] or {}).get("cpu_ms", 0) >= 900, f"{who}: CPU time is counted", r["usage"])
    r = ex(["--timeout", "1s"], "/bin/sleep", "100")
    tap.ok(r["status"] == "timeout" and "wall" in (r["reason"] or "").lower() and r.code == exits.LIMIT, f"{who}: the time limit ends a program", r.story())
    r = probe("fork-bomb", "--processes", "8", "--timeout", "20s")
    tap.ok(r.last_line().startswith("CONTAINED") and any("processes" in x for x in r.rules()), f"{who}: a fork bomb is contained and listed", r.story())
    r = probe("flood", "--output", "64k")
    tap.ok(r["status"] == "output" and r["truncated"] is True and r.code == exits.LIMIT, f"{who}: a flood of output ends as output", r.story())
    r = ex(["--output", "64k", "--processes", "4"], "/bin/sh", "-c", "head -c 200000 /dev/zero | tr '\\0' a")
    tap.ok(r["status"] == "ok" and r["truncated"] is True and r["stdout_bytes"] == 200000, f"{who}: output over the cap is cut", r.story())
    r = ex(["--rw", str(canaries.rw) + ":/data"], "/bin/sh", "-c", "echo made > /data/made")
    made = canaries.rw / "made"
    tap.ok(r["status"] == "ok" and made.exists() and made.read_text() == "made\n" and made.stat().st_uid == canaries.rw.stat().st_uid,
           f"{who}: --rw writes as the folder's owner", r.story())
    bad = canaries.faults()
    tap.ok(not bad, f"{who}: the canaries are intact", *bad)
    canaries.close()

# --- the other doors into an x86-64 kernel ------------------------------------------------------------

if platform.machine() == "x86_64":
    # getpid by int 0x80 and by x32: harmless, and only where it works outside does its failure inside say anything. Nobody listens at port 1.
    bare = subprocess.run([programs.probes / "probe", "foreign-arch", "-", "1"], stdout=subprocess.PIPE, text=True).stdout
    tap.ok(bare.count("answered, and reached nothing") == 2, "outside, int 0x80 and x32 work", bare)
    for who in tapsys.users():
        canaries = tapsys.Canaries(programs, who)
        r = tapsys.exec_json(programs, ["--ro", str(canaries.ro), "--processes", "8"], [str(canaries.ro / "probe"), "foreign-arch", "-", "1"], who)
        tap.ok(r["status"] == "ok" and re.match("CONTAINED int 0x80: .*; x32: ", r.last_line()) and "answered" not in r.last_line(), f"{who}: int 0x80 and x32 do not work inside", r.story())
        canaries.close()

# --- the tightest limit on tasks: what builds the jail needs more than the guest gets --------------------

for options in (["--threads", "0"], ["--threads", "0", "--memory-by", "cgroup"], ["--threads", "0", "--processes", "0", "--descriptors", "16"]):
    r = tapsys.exec_json(programs, options, ["/bin/echo", "hello"])
    tap.ok(r.code == 0 and r["stdout"] == "hello\n" and not r["violations"], f"root: {' '.join(options)}", r.story())

# --- a folder without mapped mounts: 6.1 has none of tmpfs ------------------------------------------

shared = pathlib.Path("/run/shared")
shared.mkdir()
# /run of this machine is smaller than what a policy keeps free; a tmpfs takes nothing before it is written. -n: mount writes nothing of its own to /run
subprocess.run(["mount", "-n", "-t", "tmpfs", "-o", "size=4g", "none", shared], check=True)
r = tapsys.exec_json(programs, ["--rw", str(shared)], ["/bin/true"])
tap.ok(r["status"] == "refused" and r.code == exits.NEVER_RAN and r["layer"] == "filesystem", "root: --rw where mounts cannot be mapped is refused, by name", r.story())
tap.figure(f"root: --rw on tmpfs: {r['reason']} / {(r['error'] or {}).get('message')}")
subprocess.run(["umount", "-n", shared], check=True)
shared.rmdir()

# --- a cgroup that was delegated to an ordinary user, as systemd does -------------------------------

home = GROUPS / "delegated"
session = home / "session"
session.mkdir(parents=True)
(home / "cgroup.subtree_control").write_text("+memory +pids")
for p in (home, home / "cgroup.procs", home / "cgroup.subtree_control", session, session / "cgroup.procs"):
    os.chown(p, tapsys.ROOTLESS, tapsys.ROOTLESS)


def as_delegate(options, *argv):
    cmd = programs.command(["exec", "--json", *options, "--", *argv], "user", accept=False)
    p = subprocess.run(["/bin/sh", "-c", f'echo $$ > {session}/cgroup.procs; exec "$@"', "sh", *cmd], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tapsys.clean_env({}, "user"), timeout=60)
    return tapsys.Run(p.returncode, p.stdout, p.stderr, 0)


r = as_delegate(["--processes", "4"], "/bin/sh", "-c", "echo a | cat")
tap.ok(r["stdout"] == "a\n" and (r["usage"] or {}).get("memory_by") == "cgroup v2", "user: a delegated cgroup is used", r.story())
r = as_delegate(["--memory", "64m", "--memory-by", "cgroup", "--processes", "4"], "/bin/bash", "-c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done")
tap.ok(r["status"] == "memory" and r.code == exits.LIMIT, "user: a memory bomb in a delegated cgroup", r.story())
tap.eq([p.name for p in home.iterdir() if p.is_dir()], ["session"], "user: nothing is left in the delegated cgroup")
session.rmdir()
home.rmdir()

# --- leftovers --------------------------------------------------------------------------------------

for i in range(12):  # and with the supervisor killed at some moment
    p = subprocess.Popen(programs.command(["exec", "--processes", "4", "--", "/bin/sh", "-c", "sleep 1000 & sleep 1000"]),
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(0.03 * i)
    p.kill()
    p.wait()
# A supervisor killed between the making of its cgroup and the start of its janitor leaves the empty folder to the next run
time.sleep(2)
swept = {str(p) for p in GROUPS.iterdir() if p.is_dir()} - set(before["cgroups"])
tapsys.exec_json(programs, [], ["/bin/true"])
for tries in range(100):
    after = world()
    if after == before:
        break
    time.sleep(0.1)
for what in before:
    left = [x for x in after[what] if x not in before[what]]
    tap.ok(not left, f"no leftovers: {what}", *[(x, open(f"/proc/{x}/cmdline").read()) if what == "processes" else x for x in left])
tap.figure(f"cgroups that were left to the next run: {len(swept - set(after['cgroups']))} of 12 kills")
tap.done()
