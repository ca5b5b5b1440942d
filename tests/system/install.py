# SPDX-License-Identifier: Apache-2.0
"""`make install` into an empty folder: what is put in place runs from there, for root and for an ordinary user.

Usage: install.py BUILD. The folder is /usr/local of a DESTDIR, so the programs find each other by where they stand."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import exits
import tapsys

build = sys.argv[1]
tap = tapsys.Tap()
log = pathlib.Path(build, "meson-logs/install-log.txt")  # what `make uninstall` goes by: not this test's
before = log.read_bytes() if log.exists() else None
dest = pathlib.Path(tempfile.mkdtemp(prefix="cordon-install-", dir="/tmp"))
os.chmod(dest, 0o755)
try:
    old = os.umask(0o022)
    run = subprocess.run(["/usr/bin/meson", "install", "-C", build, "--no-rebuild", "--quiet"],
                         env={**os.environ, "DESTDIR": str(dest)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.umask(old)
    tap.eq(run.returncode, 0, "meson install into an empty DESTDIR", run.stdout.decode(errors="replace"))
    prefixes = [p.parent.parent for p in dest.rglob("bin/cordon")]
    if not tap.eq(len(prefixes), 1, "meson install puts one bin/cordon below DESTDIR", prefixes):
        tap.done()
    prefix = prefixes[0]
    # every program that the build makes: one that is left behind would be missed only by who needs it
    made = sorted(p.name for p in pathlib.Path(build).glob("cordon*") if p.is_file() and os.access(p, os.X_OK) and p.name != "cordon")
    tap.ok({"cordon-nest", "cordon-python", "cordond", "cordon-proxy"} <= set(made), "the programs of the build are listed", made)
    for name in ("bin/cordon", *(f"libexec/cordon/{x}" for x in made)):
        p = prefix / name
        tap.ok(p.is_file() and p.stat().st_mode & 0o7777 == 0o755, f"{name} is there, 0755, not set-id")
        tap.ok(p.is_file() and b"CORDON_TEST_OFF" not in p.read_bytes(), f"{name} has no switch for the layers")
    loose = [str(p) for p in dest.rglob("*") if not p.is_symlink() and p.stat().st_mode & 0o022]
    tap.ok(not loose, "nothing installed is writable for others", *loose)
    # a program is executed, a library may be marked so; data that is would be offered to a shell
    odd = [str(p.relative_to(prefix)) for p in dest.rglob("*") if p.is_file() and not p.is_symlink() and p.stat().st_mode & 0o111 and not re.match(rb"\x7fELF|#!", p.read_bytes()[:4])]
    tap.ok(not odd, "nothing installed is executable but programs and libraries", *odd)
    source = pathlib.Path(__file__).resolve().parents[2]
    for page in sorted(source.glob("man/*.1")):
        tap.ok((prefix / "share/man/man1" / page.name).is_file(), f"the page {page.name} is there")
    for name in ("share/bash-completion/completions/cordon", "share/zsh/site-functions/_cordon", "share/fish/vendor_completions.d/cordon.fish",
                 "lib/systemd/system/cordon-serve.service", "lib/systemd/system/cordon-serve.socket", "lib/systemd/user/cordon-serve.service",
                 "lib/systemd/user/cordon-serve.socket", "lib/sysusers.d/cordon.conf", "share/cordon/apparmor", "share/cordon/policies/production.yaml",
                 "share/cordon/policies/max-safety.yaml", "share/cordon/arena-reviewer.md", "share/cordon/arena-sceptic.md",
                 *(f"share/cordon/schemas/{p.name}" for p in source.glob("schemas/*.schema.json"))):
        tap.ok((prefix / name).is_file() and (prefix / name).stat().st_size, f"{name} is there, and not empty")
    # a program that knows nothing but pkg-config finds header and library
    pc = next(prefix.rglob("cordon.pc"), None)
    if tap.ok(pc is not None, "pkg-config's file for libcordon is there"):
        env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(dest)}
        ask = lambda *words: subprocess.run(["pkg-config", *words, "cordon"], env=env, stdout=subprocess.PIPE, text=True).stdout.split()
        program = dest / "uses.c"
        program.write_text('#include <cordon.h>\nint main(void) { return cordon_compile == 0; }\n')
        run = subprocess.run(["cc", str(program), "-o", str(dest / "uses"), *ask("--cflags", "--libs")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tap.eq(run.returncode, 0, "a program is compiled and linked with what pkg-config says", run.stdout.decode(errors="replace"))
        project = next(l for l in (source / "meson.build").read_text().splitlines() if "version: '" in l).split("'")[1]
        tap.eq(ask("--modversion"), [project], "pkg-config says the version of the project")
    package = next(prefix.rglob("cordon/py.typed"), None)
    if tap.ok(package is not None, "the Python package is there"):
        env = {**tapsys.clean_env({"PATH": f"{prefix}/bin:/usr/bin:/bin"}), "PYTHONPATH": str(package.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
        words = "import cordon, cordon.aio; print(cordon.run('6 * 7').value, cordon.validate_condition('1 < 2'))"
        run = subprocess.run(["/usr/bin/python3", "-c", words], env=env, cwd="/", timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.eq(run.stdout, "42 (True, None)\n", "the installed Python package runs a program by the installed server, and has the conditions")
        words = f"import {{ run }} from '{prefix}/share/nodejs/cordon/index.js'; console.log((await run('6 * 7')).value)"
        run = subprocess.run([tapsys.NODE, "--input-type=module", "-e", words], env=env, cwd="/", timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.eq(run.stdout, "42\n", "the installed module for Node runs a program by the installed server")
        run = subprocess.run(["/usr/bin/ruby", f"-I{prefix}/lib/site_ruby", "-rcordon", "-e", "puts Cordon.run('6 * 7').value"], env=env, cwd="/", timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.eq(run.stdout, "42\n", "the installed library for Ruby runs a program by the installed server")
    for who in tapsys.users():
        cmd = [str(prefix / "bin/cordon"), "exec", "--", "/bin/true"]
        if who == "user" and os.geteuid() == 0:
            cmd = ["/usr/bin/setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups", "--", *cmd]
        for how, words in (("by its path", cmd), ("through a link", None), ("found in PATH", None)):
            if how == "through a link":
                link = dest / f"cordon-of-{who}"
                link.symlink_to(prefix / "bin/cordon")
                words = [str(link) if w == cmd[-4] else w for w in cmd]
            elif how == "found in PATH":
                words = ["cordon" if w == cmd[-4] else w for w in cmd]
            env = tapsys.clean_env({"PATH": f"{prefix}/bin:/usr/bin:/bin"}, who)
            run = subprocess.run(words, env=env, cwd="/", timeout=60,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            tap.eq(run.returncode, 0, f"{who}: the installed cordon runs a program, {how}", run.stdout.decode(errors="replace"))
        words = [*cmd[:-3], "run", "-"]
        run = subprocess.run(words, env=tapsys.clean_env(who=who), cwd="/", timeout=60, input=b"print(6 * 7)\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tap.eq((run.returncode, run.stdout), (0, b"42\n"), f"{who}: the installed cordon judges and runs Python")
    (prefix / "libexec/cordon/cordon-python").chmod(0o700)  # not early any more: the guest's id may not execute it as it is
    run = subprocess.run([str(prefix / "bin/cordon"), "run", "-"], env=tapsys.clean_env(), cwd="/", timeout=60, input=b"print(6 * 7)\n",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.eq((run.returncode, run.stdout), (0, b"42\n"), "a worker that only its owner may execute is locked before it is executed, and runs Python")
    for what, text in (("ends at once", pathlib.Path("/bin/true").read_bytes()), ("is none", b"\x7fELF and no more")):
        worker = prefix / "libexec/cordon/cordon-python"
        worker.write_bytes(text)
        worker.chmod(0o755)
        run = subprocess.run([str(prefix / "bin/cordon"), "run", "--json", "-"], env=tapsys.clean_env(), cwd="/", timeout=60, input=b"print(6 * 7)\n",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tap.ok(run.returncode == exits.NEVER_RAN and b'"status": "refused", "layer": "process"' in run.stdout and b"the worker" in run.stdout,
               f"a worker that {what} is a refusal that names it", f"exit {run.returncode}: {run.stdout!r}")
    os.rename(prefix / "libexec/cordon/cordon-nest", dest / "elsewhere")
    run = subprocess.run([str(prefix / "bin/cordon"), "exec", "--", "/bin/true"], cwd="/", timeout=60, env=tapsys.clean_env(),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.ok(run.returncode == exits.NEVER_RAN and b"cordon-nest" in run.stdout, "cordon without its cordon-nest refuses and names what is missing",
           f"exit {run.returncode}: {run.stdout!r}")
finally:
    log.write_bytes(before) if before is not None else log.unlink(missing_ok=True)
    shutil.rmtree(dest, ignore_errors=True)
tap.done()
