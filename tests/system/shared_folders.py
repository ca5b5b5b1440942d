#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a caller shares with a guest: never what trusted code opens or executes later, never through a link that an
earlier guest planted, never a mount that the host makes afterwards."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import exits
import tapsys
from tapsys import Tap, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])


class Place:
    """A folder of its own for one user, with state and policy inside."""

    def __init__(self, who, name):
        self.who = who
        self.top = programs.dir / f"{who}-{name}"
        self.top.mkdir()
        for sub in ("state", "config/cordon", "work"):
            (self.top / sub).mkdir(parents=True)
        os.chmod(self.top / "state", 0o700)
        self.env = {"CORDON_STATE": str(self.top / "state"), "XDG_CONFIG_HOME": str(self.top / "config"),
                    "XDG_RUNTIME_DIR": str(self.top / "state")}

    def file(self, name, text, mode=0o755):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def policy(self, text):
        self.file("config/cordon/policy.yaml", text, 0o644)

    def own(self):
        if self.who == "user" and os.geteuid() == 0:
            subprocess.run(["chown", "-hR", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", self.top], check=True)

    def run(self, *args, where=None):
        self.own()
        command = programs.command(["exec", *args], self.who)
        if where:
            command[command.index(str(programs.cordon))] = str(where)
        p = subprocess.run(command, env=tapsys.clean_env(self.env, self.who), capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, cwd="/", check=False)
        return tapsys.Run(p.returncode, p.stdout, p.stderr, 0)

    def refused(self, folder, what, words, where=None):
        r = self.run("--rw", f"{folder}:/shared", "--", "/bin/touch", "/shared/planted", where=where)
        tap.ok(r.code == exits.NEVER_RAN and words in r.err and not (pathlib.Path(folder) / "planted").exists(),
               f"{self.who}: --rw {what} is refused by name", r.story())

    def runs(self, folder, what, where=None):
        r = self.run("--rw", f"{folder}:/shared", "--", "/bin/touch", "/shared/planted", where=where)
        tap.ok(r.code == 0 and (pathlib.Path(folder) / "planted").exists(), f"{self.who}: --rw {what} works", r.story())


def own_programs(who):
    """A checkout with build/ in it is enough for a guest to replace the programs that run outside the jail."""
    p = Place(who, "programs")
    inside = p.top / "checkout/build"
    shutil.copytree(programs.bin, inside, symlinks=True)
    (p.top / "checkout/src").mkdir()
    cordon = inside / "cordon"
    p.refused(inside, "the folder of Cordon's programs", "Cordon's own program", cordon)
    p.refused(p.top / "checkout", "a folder above Cordon's programs", "Cordon's own program", cordon)
    p.runs(p.top / "checkout/src", "a folder beside Cordon's programs", cordon)
    (p.top / "bin").mkdir()
    (p.top / "bin/cordon").symlink_to(cordon)
    p.refused(p.top / "bin", "the folder of a link to Cordon", "Cordon's own program", p.top / "bin/cordon")
    p.refused(inside, "the folder that a link to Cordon leads to", "Cordon's own program", p.top / "bin/cordon")
    shutil.move(inside / "cordon-nest", p.top / "x")
    (p.top / "checkout/libexec/cordon").mkdir(parents=True)
    shutil.move(p.top / "x", p.top / "checkout/libexec/cordon/cordon-nest")
    p.refused(p.top / "checkout/libexec", "the folder above libexec/cordon", "Cordon's own program", cordon)


def named_by_the_policy(who):
    """Scripts that run outside the jail after a guest has run."""
    p = Place(who, "policy")
    script = p.file("alerts/tell.sh", "#!/bin/sh\ncat >/dev/null\n")
    setting = p.file("settings/tell.conf", "x\n")
    judge = p.file("judges/judge.sh", "#!/bin/sh\n")
    tool = p.file("tools/ocr.py", "print(1)\n")
    (p.top / "log").mkdir()
    p.policy(f"""audit:
  alert_command: ["{script}", "--config={setting}", "{p.top}/list/users"]
  alert_file: "{p.top}/log/alerts"
arena:
  judges:
    - {{name: own, command: ["/bin/sh", "{judge}"]}}
tools:
  ocr_document: {{risk: low, command: [/usr/bin/python3, "{tool}"], schema: {{type: object}}}}
search:
  collections: ["handbook={p.top}/shelf/handbook"]
""")
    p.refused(script.parent, "the folder of audit.alert_command", "audit.alert_command")
    p.refused(setting.parent, "the folder of a file in --config= of the alert command", "audit.alert_command")
    p.refused(p.top / "log", "the folder of audit.alert_file", "audit.alert_file")
    p.refused(judge.parent, "the folder of a judge's script", "a judge of the arena")
    p.refused(tool.parent, "the folder of a host tool's script", "a host tool")
    (p.top / "shelf/handbook").mkdir(parents=True)
    p.refused(p.top / "shelf", "the folder above a collection", "search.collections")
    p.refused(p.top / "shelf/handbook", "a collection", "search.collections")
    (p.top / "list").mkdir()
    p.refused(p.top / "list", "the folder of an argument that is not there yet", "audit.alert_command")
    p.refused(p.top / "config", "the folder above the policy", "policy")
    p.refused(p.top / "state", "the state folder", "the state folder")
    (p.top / "state/audit").mkdir(mode=0o700, exist_ok=True)
    p.refused(p.top / "state/audit", "a folder in the state folder", "the state folder")
    p.runs(p.top / "work", "a folder that nothing is read from")


MOUNTS = """import ctypes, sys
print('ready', flush=True)
sys.stdin.readline()
for i in range(9): ctypes.CDLL(None).mount(b'a', b'/%d' % i, b'tmpfs', 0, None)
"""


def swapped_alert_folder(who):
    """While one guest runs, a guest of another caller's, who shares the folder above, turns the folder of the alert file into a link."""
    p = Place(who, "alerts")
    log, kept, keys = (p.top / "shared" / name for name in ("log", "kept", "keys"))
    for folder in (log, keys):
        folder.mkdir(parents=True, mode=0o700)
    p.policy(f'audit: {{alert_file: "{log}/alerts", duplicates: 0}}\n')
    plain = dict(p.env, XDG_CONFIG_HOME=str(p.top / "plain"))
    for kind, command in (("exec", ["exec", "--", "/usr/bin/python3", "-I", "-S", "-c", MOUNTS]),
                          ("run", ["run", "--profile", "open", "--stdin", "-", "--code", MOUNTS])):
        p.own()
        with subprocess.Popen(programs.command(command, who), env=tapsys.clean_env(p.env, who), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd="/") as victim:
            began = "ready\n" in iter(victim.stdout.readline, "")
            swap = tapsys.cordon(programs, ["exec", "--processes", "4", "--rw", f"{p.top}/shared:/s", "--", "/bin/sh", "-c", "cd /s && mv log kept && ln -s keys log"], who, env=plain)
            tap.ok(began and swap.code == 0 and log.is_symlink(), f"{who}: {kind}: a guest of another run replaces the folder of the alert file", swap.story())
            told = victim.communicate("go\n")[0]
        tap.ok(not list(keys.iterdir()), f"{who}: {kind}: no alert is written where the planted link leads", told)
        tap.ok((kept / "alerts").exists() and (kept / "alerts").read_text().count("Excessive violations: ") == 1,
               f"{who}: {kind}: the alert is written into the folder that the run began with", told)
        log.unlink()
        (kept / "alerts").unlink(missing_ok=True)
        kept.rename(log)
    p.own()
    r = p.run("--", "/usr/bin/python3", "-I", "-S", "-c", MOUNTS)
    tap.ok((log / "alerts").exists() and "Excessive violations: 9" in (log / "alerts").read_text(), f"{who}: an alert is written to its file where nobody replaces the folder", r.story())


def packages(who):
    """A virtual environment whose site-packages is a link: what it leads to is loaded, too."""
    p = Place(who, "packages")
    lib = p.top / "venv/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    lib.mkdir(parents=True)
    (p.top / "elsewhere").mkdir()
    (lib / "site-packages").symlink_to(p.top / "elsewhere")
    (p.top / "venv/pyvenv.cfg").write_text("include-system-site-packages = false\n")
    p.policy(f'python: {{environment: "{p.top}/venv"}}\n')
    p.refused(p.top / "elsewhere", "the folder that site-packages leads to", "python.environment")
    p.refused(lib, "a folder of the virtual environment", "python.environment")
    p.runs(p.top / "work", "a folder beside the virtual environment")


def mounted_twice():
    """A bind mount shows a part of the virtual environment at a second place; nothing above it is seen from there."""
    p = Place("root", "twice")
    site = p.top / "venv/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (site / "ours/deep").mkdir(parents=True)
    (p.top / "venv/pyvenv.cfg").write_text("include-system-site-packages = false\n")
    p.policy(f'python: {{environment: "{p.top}/venv"}}\n')
    for sub in ("second", "work/inner", "benign", "elsewhere"):
        (p.top / sub).mkdir(parents=True)
    p.own()

    def shared(what, mounts, folder, good):
        script = "".join(f"mount --bind {a} {b} && " for a, b in mounts)
        r = subprocess.run(["unshare", "-m", "/bin/sh", "-c", f"{script}exec {programs.cordon} exec --rw {folder}:/shared -- /bin/true"],
                           env=tapsys.clean_env(p.env, "root"), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        refused = r.returncode == exits.NEVER_RAN and "python.environment" in r.stderr and "no program may write" in r.stderr
        tap.ok(r.returncode == 0 if good else refused, f"root: --rw {what} {'works' if good else 'is refused by name'}", r.stdout, r.stderr)

    shared("a second mount of a package's folder", [(site / "ours", p.top / "second")], p.top / "second", False)
    shared("a folder in a second mount of a package's folder", [(site / "ours", p.top / "second")], p.top / "second/deep", False)
    shared("a folder with a package mounted in it", [(site / "ours", p.top / "work/inner")], p.top / "work", False)
    shared("a folder that is mounted in the environment", [(p.top / "elsewhere", site / "ours")], p.top / "elsewhere", False)
    shared("a second mount of a folder of nobody's", [(p.top / "benign", p.top / "second")], p.top / "second", True)
    shared("a folder with a mount of nobody's in it", [(p.top / "benign", p.top / "work/inner")], p.top / "work", True)


def system_folders(who):
    p = Place(who, "system")
    for folder in ("/usr", "/usr/lib", "/etc", "/usr/bin"):
        r = p.run("--rw", f"{folder}:/shared", "--", "/bin/true")
        tap.ok(r.code == exits.NEVER_RAN and ("may write" in r.err or "lies in" in r.err or "Permission denied" in r.err),
               f"{who}: --rw {folder} is refused", r.story())


def kernel_files(who):
    """What our own processes ask the kernel by name: of processes, of cgroups; and what every program takes for nothing."""
    p = Place(who, "kernel")
    uid = [] if who == "root" or os.geteuid() != 0 else ["/usr/bin/setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups"]
    with subprocess.Popen([*uid, "/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
        while pathlib.Path(f"/proc/{other.pid}/comm").read_text() != "cat\n":
            time.sleep(0.01)
        p.refused(f"/proc/{other.pid}", "the kernel's files of a process of the same user", "the kernel's own files")
        other.stdin.close()
    p.refused("/dev/null", "the file that takes everything", "the kernel's own file")
    if who == "root":
        p.refused("/sys/fs/cgroup", "the folder of cgroups", "the kernel's own files")
        p.refused("/dev", "the folder of devices", "/dev")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chmod(folder, 0o777)
        p.runs(folder, "a folder of memory in /dev/shm")


def planted_links(who):
    """A guest that may write a folder turns a part of it into a link; the next run shows that part."""
    p = Place(who, "links")
    secret = p.file("private/key", "TOP-SECRET\n", 0o600)
    p.file("work/data/public", "public\n", 0o644)
    r = p.run("--processes", "4", "--rw", f"{p.top}/work:/p", "--", "/bin/sh", "-c",
              "cd /p && mv data data.old && ln -s ../private data")
    tap.ok(r.code == 0 and (p.top / "work/data").is_symlink(), f"{who}: a guest plants a link in its folder", r.story())
    for option in ("--ro", "--rw"):
        r = p.run(option, f"{p.top}/work/data:/d", "--", "/bin/cat", "/d/key")
        tap.ok(r.code == exits.NEVER_RAN and "TOP-SECRET" not in r.out and str(secret.parent) in r.err,
               f"{who}: {option} does not follow the planted link, and says where it leads", r.story())
    r = p.run("--ro", f"{p.top}/work/data.old:/d", "--", "/bin/cat", "/d/public")
    tap.ok(r.out == "public\n", f"{who}: --ro of the real folder works", r.story())


def second_mounts(who):
    """A part of a trusted tree that is mounted a second time, in a mount namespace of the test's own."""
    p = Place(who, "second")
    script = p.file("alerts/deep/tell.sh", "#!/bin/sh\ncat >/dev/null\n")
    p.policy(f'audit: {{alert_command: ["{p.top}/again/deep/tell.sh"]}}\n')
    (p.top / "state/audit").mkdir(mode=0o700)
    for sub in ("part", "again", "work/inner", "work/plain", "free", "free/sub"):
        (p.top / sub).mkdir()

    def run(mounts, share):
        p.own()
        command = programs.command(["exec", "--rw", f"{share}:/shared", "--", "/bin/touch", "/shared/planted"], who)
        binds = "".join(f"mount --bind {p.top}/{what} {p.top}/{at} && " for what, at in mounts)
        r = subprocess.run(["unshare", "-m", "/bin/sh", "-c", binds + 'exec "$@"', "sh", *command], capture_output=True, text=True,
                           env=tapsys.clean_env(p.env, who), stdin=subprocess.DEVNULL, cwd="/", check=False)
        return tapsys.Run(r.returncode, r.stdout, r.stderr, 0)

    alerts = [("alerts", "again")]  # the policy names the script by its second mount
    for what, mounts, share, words in (
            ("a part of the state folder that is mounted elsewhere", [*alerts, ("state/audit", "part")], p.top / "part", "the state folder"),
            ("the state folder that is mounted elsewhere", [*alerts, ("state", "part")], p.top / "part", "the state folder"),
            ("a folder with the state folder mounted in it", [*alerts, ("state", "work/inner")], p.top / "work", "the state folder"),
            ("a folder with a part of the state folder mounted in it", [*alerts, ("state/audit", "work/inner")], p.top / "work",
             "the state folder"),
            ("the folder of a script that the policy names by a second mount", alerts, script.parent.parent, "audit.alert_command"),
            ("a folder above such a script, mounted a third time", [*alerts, ("alerts", "part")], p.top / "part", "audit.alert_command")):
        r = run(mounts, share)
        tap.ok(r.code == exits.NEVER_RAN and words in r.err and not list(p.top.rglob("planted")), f"{who}: --rw {what} is refused by name", r.story())
    for what, mounts, share in (
            ("a folder that is mounted a second time, and that nothing is read from", [*alerts, ("free", "part")], p.top / "part"),
            ("a part of it", [*alerts, ("free/sub", "part")], p.top / "part"),
            ("a folder with another mounted in it", [*alerts, ("free", "work/inner")], p.top / "work")):
        r = run(mounts, share)
        tap.ok(r.code == 0 and list(p.top.rglob("planted")), f"{who}: --rw {what} works", r.story())
        for planted in p.top.rglob("planted"):
            planted.unlink()


def later_mounts():
    """On a host whose mounts are shared (systemd's default) a mount that is made later stays outside."""
    p = Place("root", "mounts")
    shared = p.top / "shared"
    shared.mkdir()
    inner = f"""set -e
mount -t tmpfs shared {shared}; mount --make-shared {shared}; mkdir {shared}/sub
mkfifo {p.top}/go {p.top}/seen
{programs.cordon} exec --ro {shared}:/s --rw {p.top}/work:/w --timeout 30s --processes 4 -- /bin/sh -c \
  'echo ready > /w/ready; while ! test -e /w/go; do sleep 0.02; done; cat /s/sub/secret 2>/dev/null && echo REACHED; echo looked' > {p.top}/out &
while ! test -e {p.top}/work/ready; do sleep 0.02; done
mount -t tmpfs secret {shared}/sub; echo word > {shared}/sub/secret; touch {p.top}/work/go
wait
umount -R {shared}
"""
    r = subprocess.run(["unshare", "-m", "/bin/sh", "-c", inner], env=tapsys.clean_env(p.env, "root"), capture_output=True,
                       text=True, stdin=subprocess.DEVNULL, check=False)
    out = (p.top / "out").read_text()
    tap.eq(out, "looked\n", "root: a mount that the host makes later does not show up inside", r.stderr)


def result_of(place, *args):
    r = place.run("--json", *args)
    return r, (r["layers"] or {}).get("resources", ""), [(v["rule"], v["outcome"]) for v in r["violations"] or ()]


FILL = """import os
for i in range(4):
    with open(f'/shared/{i}', 'wb') as f: f.write(bytes(1 << 20))
try:
    with open('/shared/large', 'wb') as f: f.write(bytes(2 << 20))
except OSError as e: print('large', e.errno)
"""


def quota(who):
    """--disk cannot bound what is written to the host's own file system; the result does not say that it does."""
    p = Place(who, "quota")
    r, layer, _ = result_of(p, "--disk", "1m", "--rw", f"{p.top}/work:/shared", "--", "/usr/bin/python3", "-S", "-c", FILL)
    written = sum(f.stat().st_size for f in (p.top / "work").iterdir() if f.name != "large")
    tap.ok(written == 4 << 20 and layer.startswith("weak: ") and "--disk" in layer,
           f"{who}: where a --rw folder takes more than --disk, the layer resources is reported as weak", r.story())
    tap.ok(r["stdout"] == "large 27\n" and (p.top / "work/large").stat().st_size <= (1 << 20) + 4096,
           f"{who}: one file of a --rw folder does not grow past --disk", r.story())
    r, layer, rules = result_of(p, "--disk", "1m", "--", "/usr/bin/python3", "-S", "-c", FILL.replace("/shared", "/workspace"))
    tap.ok(r["status"] == "error" and layer == "on" and ("limit.disk", "denied") in rules,
           f"{who}: without --rw --disk holds and the layer resources is on", r.story())
    r, layer, _ = result_of(p, "--ro", f"{p.top}/work:/shared", "--", "/bin/true")
    tap.eq(layer, "on", f"{who}: --ro does not make the layer resources weak", r.story())
    r, layer, _ = result_of(p, "--mode", "landlock", "--rw", f"{p.top}/work", "--", "/bin/true")
    tap.ok(layer.startswith("weak: ") or r.code == exits.NEVER_RAN and "Linux 6.12" in r.out,
           f"{who}: in mode landlock the layer resources is weak as well", r.story())


def modes(who):
    """The mode of what is shared belongs to the caller, whatever the program and those that it leaves behind do."""
    p = Place(who, "modes")
    work = p.top / "work"
    one = p.file("one", "x\n", 0o640)
    for before, change, what in ((0o750, "chmod 0777 /shared", "opens"), (0o750, "chmod 0 /shared", "shuts"),
                                 (0o700, "(while :; do chmod 0777 /shared; done) & exit 0", "opens without end, in the background,")):
        os.chmod(work, before)
        r, _, rules = result_of(p, "--processes", "4", "--rw", f"{work}:/shared", "--", "/bin/sh", "-c", change)
        tap.eq(work.stat().st_mode & 0o7777, before, f"{who}: a folder shared with --rw that the program {what} has its mode again", r.story())
        if "while" not in change:
            tap.eq(rules, [("shared.mode", "undone")], f"{who}: that the program {what} the folder is reported as undone", r.story())
    r, _, rules = result_of(p, "--rw", f"{one}:/one", "--", "/bin/chmod", "0666", "/one")
    tap.ok(one.stat().st_mode & 0o7777 == 0o640 and rules == [("shared.mode", "undone")],
           f"{who}: a file shared with --rw has its mode again", r.story())
    os.chmod(work, 0o750)
    r, _, rules = result_of(p, "--timeout", "300ms", "--processes", "4", "--rw", f"{work}:/shared", "--", "/bin/sh", "-c",
                            "chmod 0777 /shared; sleep 60")
    tap.ok(r["status"] == "timeout" and work.stat().st_mode & 0o7777 == 0o750, f"{who}: the mode is put back after a time-out, too", r.story())
    r, _, rules = result_of(p, "--processes", "4", "--rw", f"{work}:/shared", "--", "/bin/sh", "-c",
                            "mkdir /shared/sub && chmod 0711 /shared/sub && echo x > /shared/sub/file && chmod 0600 /shared/sub/file")
    sub = work / "sub"
    tap.ok(r["status"] == "ok" and rules == [] and sub.stat().st_mode & 0o7777 == 0o711 and (sub / "file").stat().st_mode & 0o7777 == 0o600,
           f"{who}: modes of what is in a --rw folder are the program's to change", r.story())
    os.chmod(work, 0o750)
    r, _, rules = result_of(p, "--mode", "landlock", "--rw", f"{work}", "--", "/bin/chmod", "0777", f"{work}")
    tap.ok(work.stat().st_mode & 0o7777 == 0o750 and r["status"] in ("error", "refused"),
           f"{who}: in mode landlock the mode of a --rw folder cannot be changed", r.story())


def modes_after_run(who):
    """A Python program that says it is done, while a thread of it goes on."""
    p = Place(who, "pythonmodes")
    os.chmod(p.top / "work", 0o750)
    program = p.file("p.py", "import os, threading\ndef go():\n    while True: os.chmod('/shared', 0o777)\n"
                     "threading.Thread(target=go, daemon=True).start()\nos.chmod('/shared', 0o777)\nprint('done')\n")
    p.own()
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "open", "--rw", f"{p.top}/work:/shared", program], who, env=p.env)
    tap.ok(r["stdout"] == "done\n" and (p.top / "work").stat().st_mode & 0o7777 == 0o750,
           f"{who}: `run` puts the mode back when the last thread is dead", r.story())


for who in users():
    quota(who)
    modes(who)
    modes_after_run(who)
    own_programs(who)
    named_by_the_policy(who)
    swapped_alert_folder(who)
    packages(who)
    system_folders(who)
    kernel_files(who)
    planted_links(who)
    if os.geteuid() == 0:
        second_mounts(who)
if "root" in users():
    later_mounts()
    mounted_twice()
tap.done()
