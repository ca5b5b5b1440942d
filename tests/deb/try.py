# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of build-deb/ in a clean Debian root: installed, used, removed, nothing left.

Usage: try.py DEBS [SUITE]. As root: the root is made by mmdebstrap below /var/tmp and removed afterwards. bubblewrap makes it
the root of a mount namespace: in a mere chroot the kernel gives nobody a user namespace, and so no jail. TAP."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
sys.dont_write_bytecode = True
import tapsys  # noqa: E402

debs = sorted(p for p in pathlib.Path(sys.argv[1]).resolve().glob("*.deb") if "-dbgsym_" not in p.name)
suite = sys.argv[2] if len(sys.argv) > 2 else "bookworm"
tap = tapsys.Tap()
NAMES = ["cordon", "cordon-javascript", "cordon-ruby", "libcordon-dev", "libcordon0", "node-cordon", "python3-cordon", "ruby-cordon"]
# What the package manager itself writes: its database, caches, logs, and what a program compiled of Python leaves beside it
NOISE = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "etc/ld.so.cache", "debs", "proc", "sys", "dev", "tmp", "run", "root")


def tree(top):
    found = set()
    for folder, folders, files in os.walk(top):
        rel = os.path.relpath(folder, top)
        folders[:] = [f for f in folders if os.path.normpath(os.path.join(rel, f)) not in NOISE and f != "__pycache__"]
        found |= {os.path.normpath(os.path.join(rel, f)) for f in folders + files}
    return {f for f in found if f not in NOISE}


def inside(script, user=False, timeout=300):
    """A shell script in the root, with no network; as an ordinary user where asked."""
    cmd = ["bwrap", "--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", "--perms", "1777", "--tmpfs", "/tmp",
           "--tmpfs", "/run", "--unshare-net", "--cap-add", "ALL", "--clearenv", "--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "HOME", "/tmp",
           "--setenv", "LC_ALL", "C.UTF-8", "--setenv", "DEBIAN_FRONTEND", "noninteractive"]
    if user:
        cmd += ["setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups", "--"]
    done = subprocess.run([*cmd, "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=timeout * tapsys.SLOW)
    return done.returncode, done.stdout


if not tap.eq(sorted(p.name.split("_")[0] for p in debs), NAMES, "there are eight packages", sys.argv[1]):
    tap.done()
if os.geteuid() != 0:
    sys.exit("deb-test: a clean Debian root is made by root only; try: sudo make deb-test")
work = pathlib.Path(tempfile.mkdtemp(prefix="cordon-deb-", dir="/var/tmp"))
os.chmod(work, 0o755)
root = work / "root"
try:
    # what the packages depend on is in the root before: they are then installed, and removed, without a network
    fields = [subprocess.run(["dpkg-deb", "-f", str(p), "Depends"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout for p in debs]
    needed = {d.split()[0] for field in fields for d in field.split(", ") if d.strip()} - set(NAMES)
    made = subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(sorted(needed))}", suite, str(root)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not tap.eq(made.returncode, 0, f"mmdebstrap makes a clean {suite}", made.stdout[-2000:]):
        tap.done()
    before = tree(root)
    (root / "debs").mkdir()
    for p in debs:
        shutil.copy(p, root / "debs")
    code, text = inside("apt-get install -y --no-install-recommends /debs/*.deb")
    tap.eq(code, 0, "the packages are installed with what they depend on", text)
    tap.ok(tree(root) > before, "the packages put files in place")
    code, text = inside("dpkg --audit; dpkg --verify cordon cordon-javascript cordon-ruby libcordon0 libcordon-dev node-cordon python3-cordon ruby-cordon")
    tap.eq((code, text), (0, ""), "dpkg finds nothing half installed and no file changed")
    for user in (False, True):
        who = "an ordinary user" if user else "root"
        tap.eq(inside("cordon doctor >/tmp/out 2>&1 || { cat /tmp/out; exit 1; }", user), (0, ""), f"{who}: cordon doctor sees every layer")
        tap.eq(inside("echo 'print(6 * 7)' | cordon run", user), (0, "42\n"), f"{who}: cordon run judges and runs Python")
        tap.eq(inside("echo 'puts 6 * 7' | cordon run --lang ruby -", user), (0, "42\n"), f"{who}: cordon run judges and runs Ruby")
        tap.eq(inside("echo 'console.log(6 * 7)' | cordon run --lang javascript -", user), (0, "42\n"), f"{who}: cordon run judges and runs JavaScript")
        code, text = inside("echo 'let a: number = 1' | cordon run --lang typescript -", user)
        tap.ok(code != 0 and "without TypeScript" in text, f"{who}: TypeScript, which is in no package, is refused by its name", code, text)
        tap.eq(inside("cordon exec -- /bin/echo hello", user), (0, "hello\n"), f"{who}: cordon exec runs a program")
        code, text = inside("cordon exec -- /usr/bin/python3 -c 'import socket; socket.socket()'", user)
        tap.ok(code != 0 and "denied (network)" in text, f"{who}: what the jail denies is denied and named", code, text)
    tap.eq(inside("python3 -c 'import cordon; print(cordon.run(\"6 * 7\").value, cordon.validate_condition(\"1 < 2\")[0])'"), (0, "42 True\n"), "Python finds the package")
    tap.eq(inside("ruby -r cordon -e 'puts Cordon.run(\"6 * 7\").value'"), (0, "42\n"), "Ruby finds the library")
    words = "import { run } from \"/usr/share/nodejs/cordon/index.js\"; console.log((await run(\"6 * 7\")).value)"
    tap.eq(inside(f"node --input-type=module -e '{words}'"), (0, "42\n"), "Node finds the module")
    code, text = inside("ls /usr/lib/*/libcordon.so.0 /usr/lib/*/libcordon.so /usr/lib/*/pkgconfig/cordon.pc /usr/include/cordon.h")
    tap.eq(code, 0, "a program finds library, link, header and pkg-config's file", text)
    code, text = inside("cat /usr/share/cordon/apparmor")
    tap.ok(code == 0 and "\nprofile cordon /usr/bin/cordon " in text, "the AppArmor profile is for the packaged program", text)
    newer = work / "newer"  # AppArmor 3, of bookworm, does not know the profile's rules; nothing is loaded into the kernel
    made = subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", "--include=apparmor", "trixie", str(newer)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.eq(made.returncode, 0, "mmdebstrap unpacks AppArmor 4", made.stdout[-2000:])
    for link in ("bin", "sbin", "lib", "lib64"):
        if not os.path.lexists(newer / link):
            (newer / link).symlink_to(f"usr/{link}")
    for profile, wanted in ((text, 0), (text.replace("userns,", "usernames,"), 1)):
        (newer / "profile").write_text(profile)
        done = subprocess.run(["bwrap", "--bind", str(newer), "/", "--proc", "/proc", "--dev", "/dev", "/usr/sbin/apparmor_parser", "-Q", "-K", "-S", "/profile"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        tap.eq(done.returncode, wanted, f"AppArmor 4 {'refuses a profile with a false rule' if wanted else 'compiles the profile'}", done.stderr)
    enabled = sorted(f for f in tree(root) - before if f.startswith("etc/systemd"))
    tap.eq(enabled, [], "no unit is enabled by the packages: nobody's server runs unasked")
    code, text = inside(f"dpkg --remove {' '.join(NAMES)}")
    tap.eq(code, 0, "the packages are removed", text)
    # what deb-systemd-helper keeps of a package until it is purged is Debian's habit
    rest = {r for r in tree(root) - before if not r.startswith("var/lib/systemd/deb-systemd-")}
    tap.ok("var/lib/cordon/audit" in rest and all(r.startswith("var/lib/cordon") for r in rest), "the audit of root's runs stays when the packages are removed", sorted(rest))
    code, text = inside(f"dpkg --purge {' '.join(NAMES)}")
    tap.eq(code, 0, "the packages are purged", text)
    left = tree(root)
    tap.ok(left == before, "nothing of the packages is left, nothing else is gone", f"left: {sorted(left - before)}", f"gone: {sorted(before - left)}")
finally:
    shutil.rmtree(work, ignore_errors=True)
tap.done()
