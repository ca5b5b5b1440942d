# SPDX-License-Identifier: Apache-2.0
"""What packages are made of: one version everywhere, `make uninstall` that leaves nothing, programs without their tests.

Usage: packaging.py BUILD SOURCE. `make deb-test` is the long one: it makes the Debian packages and tries them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tapsys

build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
tap = tapsys.Tap()


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, **more)
    return done.returncode, done.stdout


def introspect(what):
    code, text = run("/usr/bin/meson", "introspect", what, build)
    return json.loads(text) if code == 0 else {}


# --- one version ------------------------------------------------------------------------------------
version = introspect("--projectinfo")["version"]
tap.ok(re.fullmatch(r"\d+\.\d+\.\d+(-[0-9a-z.]+)?", version), "the project's version is a semantic one", version)
tap.eq(run(build / "cordon", "--version"), (0, f"cordon {version}\n"), "cordon --version says the project's version")
installed = introspect("--installed")
pages = [pathlib.Path(p) for p in installed if p.endswith(".1")]
wrong = [p.name for p in pages if f'"cordon {version}"' not in p.read_text().splitlines()[0]]
tap.ok(len(pages) > 10 and not wrong, "every man page that is installed says the project's version", len(pages), *wrong)
pc = build / "meson-private/cordon.pc"
tap.ok(f"\nVersion: {version}\n" in pc.read_text(), "cordon.pc says the project's version", pc.read_text())
library = [p for p in installed if re.search(r"/libcordon\.so", p)]
tap.ok([p.endswith(f".so.{version}") for p in library] == [True], "libcordon's file is named by the project's version", *library)
head = re.search(r"^## (\S+?),? ", (source / "CHANGELOG.md").read_text(), re.M)
tap.eq(head and head.group(1), version, "the first section of CHANGELOG.md is the project's version")
said = [str(p.relative_to(source)) for folder in ("src", "include", "man", "completions", "bindings", "demo", "scripts")
        for p in (source / folder).rglob("*") if p.is_file() and p.suffix != ".pyc" and version.encode() in p.read_bytes()]
tap.ok(not said, "no source says the version itself: it stands in meson.build alone", *said)

# --- the programs without the tests -------------------------------------------------------------------
code, text = run("ninja", "-C", build, "-t", "query", "programs")
built = set(re.findall(r"^    \| (\S+)$", text, re.M))
made = {os.path.relpath(p, build) for p in installed if p.startswith(f"{build}/")}
every = {line.split(": ")[0] for line in run("ninja", "-C", build, "-t", "targets", "all")[1].splitlines()}
missing = sorted(made & every - built)
tap.ok(code == 0 and len(made & every) >= 7 and not missing, "the target `programs` builds all that is installed", text, *missing)
shipped = {"policies/max-safety.yaml", "policies/production.yaml"}
tap.ok(shipped <= built, "the target `programs` puts the policies that --policy knows by name beside the program", *sorted(shipped - built))
sources = run("ninja", "-C", build, "-t", "inputs", "programs")[1].split("\n")
theirs = [i for i in sources if re.match(r"(\.\./)*(tests|bench)/|.*/test_", i)]
tap.ok(len(sources) > 100 and not theirs, "the target `programs` builds nothing of tests and benches", len(sources), *theirs)

# --- a build says how far it is -----------------------------------------------------------------------------
with tempfile.TemporaryDirectory(prefix="cordon-progress-") as small:
    pathlib.Path(small, "meson.build").write_text("project('small', 'c')\nalias_target('programs', executable('a', 'a.c'))\n")
    pathlib.Path(small, "a.c").write_text("int main(void) { return 0; }\n")
    code, text = run(source / "scripts/build", "piped", "programs", cwd=small)
    tap.ok(code == 0 and re.search(r"configuring piped\n(?:.*\n)*building piped: [23] steps\n(?:.*\n)*built in \d+ s\n", text),
           "a build without a terminal says its steps and its time", code, text)
    code, text = run("script", "-qec", f"{source}/scripts/build seen programs", "/dev/null", cwd=small)
    tap.ok(code == 0 and "building seen: 1 of " in text, "a build on a terminal counts its steps", code, text)
    pathlib.Path(small, "a.c").write_text("int main(void) { return no; }\n")
    code, text = run(source / "scripts/build", "piped", "programs", cwd=small)
    tap.ok(code != 0 and "a.c:1:" in text and "built in" not in text, "a build that fails shows the compiler's words and fails", code, text)

# --- debian/ ----------------------------------------------------------------------------------------------
debian = source / "debian"
tap.ok(re.match(rf"cordon \({re.escape(version)}-\d+\) ", (debian / "changelog").read_text()), "debian/changelog begins with the project's version",
       (debian / "changelog").read_text().splitlines()[0])
control = (debian / "control").read_text()
packages = re.findall(r"^Package: (\S+)$", control, re.M)
major = re.search(r"SONAME +libcordon\.so\.(\d+)", run("objdump", "-p", library[0])[1]).group(1)
tap.eq(sorted(packages), ["cordon", "cordon-javascript", "cordon-ruby", "libcordon-dev", f"libcordon{major}", "node-cordon", "python3-cordon", "ruby-cordon"], "the package of the library is named by its soname")
needs = set(re.findall(r"[a-z][a-z0-9.+-]+", re.search(r"^Build-Depends:(.*?)^\S", control, re.M | re.S).group(1)))
programs = re.sub(r"#.*", "", re.split(r"^# ---- beyond.*", (source / "scripts/packages").read_text(), flags=re.M)[0]).split()
unnamed = set(programs) - needs - {"build-essential", "ninja-build"}  # every builder has the one, meson brings the other
tap.ok(len(programs) > 8 and not unnamed, "debian/control asks for every package that building the programs needs", sorted(unnamed))
exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library[0])[1].splitlines()}
listed = set(re.findall(r"^ (\w+)@Base ", (debian / f"libcordon{major}.symbols").read_text(), re.M))
tap.eq(sorted(exported ^ listed), [], "the symbols file has the functions that the library exports")
prefix = next(o["value"] for o in introspect("--buildoptions") if o["name"] == "prefix")
below = {os.path.relpath(p, prefix) for p in installed.values()}
taken = [line.split()[0].removeprefix("debian/tmp/").removeprefix("usr/") for p in packages for kind in ("install", "manpages")
         if (debian / f"{p}.{kind}").exists() for line in (debian / f"{p}.{kind}").read_text().splitlines() if line.strip()]
# Debian's own packages are for one Python, what is below /usr/local for several; Ruby looks elsewhere there
taken = [t.replace("lib/python3/", "lib/python3*/").replace("lib/ruby/vendor_ruby", "lib/site_ruby") for t in taken]
fits = lambda path, pattern: any(pathlib.PurePath(part).match(pattern) for part in [path, *map(str, pathlib.PurePath(path).parents)] if part != ".")
nowhere = sorted(b for b in below if not any(fits(b, t) for t in taken))
tap.ok(len(below) > 30 and not nowhere, "every file that is installed is in a package", *nowhere)
empty = [t for t in taken if not any(fits(b, t) for b in below) and t != "lib/*/libcordon.so"]  # the link is made at the installation
tap.ok(not empty, "no package asks for a file that is not installed", *empty)

profile = (build / "packaging/apparmor").read_text()
tap.ok(f"\nprofile cordon {prefix}/bin/cordon flags=(unconfined) {{\n  userns,\n" in profile and "@" not in profile,
       "the AppArmor profile is for the program where it is installed", profile)

# --- install, uninstall ---------------------------------------------------------------------------------
ours = [build / "meson-logs/install-log.txt", build / "installed", build / "prefix"]  # the user's own installation
before = {p: p.read_bytes() if p.exists() else None for p in ours}
work = pathlib.Path(tempfile.mkdtemp(prefix="cordon-uninstall-", dir="/tmp"))
install = source / "scripts/install"


def tree(top):
    return sorted(str(p.relative_to(top)) for p in top.rglob("*"))


try:
    (build / "installed").unlink(missing_ok=True)
    (build / "prefix").write_text(prefix + "\n")
    code, text = run(install, "--remove", build)
    tap.ok(code == 1 and "nothing was installed" in text, "make uninstall says so where nothing was installed", code, text)
    os.chmod(work, 0o755)
    (work / "closed").mkdir(mode=0o555)
    # the script comes by standard input: another user may not be able to read where it lies
    who = ["/usr/bin/setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*who, "sh", "-s", "--", str(build), prefix, str(work / "closed")], input=install.read_text(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, cwd="/")
    tap.eq((done.returncode, done.stdout), (1, f"install: you may not write {work}/closed; use `sudo make install`, or `make install PREFIX=$HOME/.local`\n"),
           "make install where one may not write says so in one line, with what to do")
    dest = work / "empty"
    for time in ("first", "second"):
        code, text = run(install, build, prefix, dest)
        tap.ok(code == 0 and f"{dest}{prefix}/bin/cordon" in text, f"make install, the {time} time, says where the program is", code, text)
    count = len(tree(dest))
    code, text = run(install, "--remove", build)
    tap.ok(count > 50 and code == 0 and not dest.exists(), "make uninstall leaves nothing of two installations, folders included", code, text,
           *(tree(dest) if dest.exists() else ()))
    dest = work / "used"
    top = pathlib.Path(f"{dest}{prefix}")
    for folder in ("share/man/man1", "libexec/cordon", "bin"):
        (top / folder).mkdir(parents=True)
    for name in ("bin/other", "libexec/cordon/note", "share/man/man1/other.1"):
        (top / name).write_text("not ours\n")
    there = tree(dest)
    run(install, build, prefix, dest)
    (top / "share/cordon/policies/mine.yaml").write_text("not ours\n")
    code, text = run(install, "--remove", build)
    kept = ["share/cordon", "share/cordon/policies", "share/cordon/policies/mine.yaml"]
    tap.eq(tree(dest), sorted(there + [os.path.relpath(top / k, dest) for k in kept]), "make uninstall leaves what others put into the same folders",
           code, text)
finally:
    for p, content in before.items():
        p.unlink(missing_ok=True) if content is None else p.write_bytes(content)
    shutil.rmtree(work, ignore_errors=True)
tap.done()
