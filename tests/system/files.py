#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files into a jail and out of it: --in, --out, `session put` and `get`; modules beside the program; the paths that are shown.

Usage: files.py BUILD SOURCE."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import exits
import tapsys
from pooltest import User
from tapsys import Programs, Tap, users

tap, programs = Tap(), Programs(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2])
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-files-", dir="/tmp"))
os.chmod(TOP, 0o755)
tapsys.atexit.register(shutil.rmtree, TOP, ignore_errors=True)
tapsys.enter_empty_network()
LIST = "import os; print(sorted(os.path.relpath(os.path.join(d, f), '/workspace') for d, _, fs in os.walk('/workspace') for f in fs))"


class Person(User):
    """Somebody with a folder of their own, where every command is given."""

    def __init__(self, who):
        super().__init__(tap, programs, who)
        self.home = TOP / who
        self.home.mkdir()
        (self.home / "project/sub").mkdir(parents=True)
        (self.home / "project/helper.py").write_text("def answer():\n    return 42\n")
        (self.home / "project/data.csv").write_text("a,b\n")
        (self.home / "project/sub/deep.txt").write_text("deep\n")
        os.symlink("/etc/passwd", self.home / "project/link")
        if who == "user" and os.geteuid() == 0:
            subprocess.run(["chown", "-Rh", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", str(self.home)], check=True)

    def __call__(self, *args, **more):
        return super().__call__(*args, cwd=str(self.home), **more)

    def run(self, code, *options, **more):
        return self("run", "--json", "--profile", "standard", *options, "-c", code, **more)

    def text(self, name):
        return (self.home / name).read_text()


def copied_in(p):
    r = p.run(LIST, "--in", "project", "--in", "project/data.csv:in/renamed.csv", "--in", "project/sub:more")
    p.ok(r["stdout"] == "['data.csv', 'helper.py', 'in/renamed.csv', 'link', 'more/deep.txt', 'sub/deep.txt']\n",
         "--in copies a folder's contents, a file under another name, and a folder under a name", r)
    p.ok(r["files"] == [], "what was copied in and left alone is not listed as left by the program", r)
    r = p.run("import os; open('data.csv', 'a').write('c,d\\n'); print(open('data.csv').read()); os.remove('helper.py')", "--in", "project")
    p.ok(r["stdout"] == "a,b\nc,d\n\n" and p.text("project/data.csv") == "a,b\n" and (p.home / "project/helper.py").exists(),
         "a program may change its copy, and the host's files stay as they are", r)
    p.ok([(f["path"], f["change"]) for f in r["files"] or ()] == [("/workspace/data.csv", "modified")], "a copy that the program changed is listed as modified", r)
    r = p("exec", "--in", "project", "--in", "project/data.csv:x/y", "--", "/bin/cat", "sub/deep.txt", "x/y")
    p.ok(r.out == "deep\na,b\n", "exec has --in as run has it", r)
    r = p("exec", "--disk", "64k", "--in", "/usr/lib/python3.11/pydoc_data" if os.path.isdir("/usr/lib/python3.11/pydoc_data") else "/usr/include", "--", "/bin/true")
    p.ok(r.code == exits.NEVER_RAN and "does not fit in /workspace; raise --disk" in r.err, "a copy that does not fit is refused, and the line says what to raise", r)
    for word, text in (("absent", "--in absent: No such file or directory"), ("project/data.csv:../x", "'../x' is no path in /workspace"),
                       ("project/data.csv:/etc/x", "'/etc/x' is no path in /workspace"), ("project/link", "goes through a symbolic link")):
        r = p.run("1", "--in", word)
        p.ok(r.code == exits.NEVER_RAN and text in r.err and len(r.err.splitlines()) == 1, f"--in {word} is refused in one line", r)
    for profile in ("locked",):
        for option in ("--in", "--out"):
            r = p("run", "--profile", profile, option, "project", "-c", "1")
            p.ok(r.code == exits.NEVER_RAN and f"{option}: a program under {profile} has no files" in r.err and "--stdin FILE" in r.err and "--profile standard" in r.err,
                 f"{profile} has no files: {option} is refused with what to do instead", r)


def beside(p):
    (p.home / "main.py").write_text("import helper, os\nprint(helper.answer(), os.getcwd(), os.path.abspath('x'), __file__)\n")
    r = p("run", "--profile", "standard", "--in", "project", "main.py")
    p.ok(r.out == "42 /workspace /workspace/x /workspace/main.py\n", "a module beside the program is imported, and paths are shown as /workspace", r)
    r = p.run("import os; print(os.path.realpath('/workspace'), os.path.realpath('/tmp/x')); open('/workspace/absent')")
    p.ok("/live" not in r.out and "/workspace /tmp/x\n" == r["stdout"], "no path of a result is one that only the jail knows", r)


LEAVE = """
import os
os.makedirs('a/b'); open('a/b/c.bin', 'wb').write(b'1' * 10)
open('run.sh', 'w').write('#!/bin/sh'); os.chmod('run.sh', 0o777)
os.symlink('/etc/passwd', 'link2'); os.symlink('a', 'folder'); open('.bashrc', 'w').write('evil'); os.makedirs('.git'); open('.git/config', 'w').write('evil')
for name in ('holes1', 'holes2'):
    open(name, 'wb').truncate(70000)
"""


def taken_out(p):
    out = p.home / "out"
    r = p.run(LEAVE, "--disk", "128k", "--out", "out", "--in", "project")
    got = sorted(str(f.relative_to(out)) for f in out.rglob("*") if not f.is_dir())
    p.ok(got == ["a/b/c.bin", "holes1", "run.sh"] and (out / "run.sh").stat().st_mode & 0o7111 == 0,
         "--out takes regular files, not executable; no link, no name with a dot, no more than --disk with holes counted, nothing that was copied in", got, r)
    reasons = {f["path"]: f.get("reason") for f in r["files"] or ()}
    p.ok("dot" in (reasons.get("/workspace/.bashrc") or "") and "--disk" in (reasons.get("/workspace/holes2") or "") and r.code == exits.FAILED,
         "each file that was not taken has its reason, and the exit status is 1", r)
    p.ok([f["saved"] for f in r["files"] or () if f["saved"]] == ["out/a/b/c.bin", "out/holes1", "out/run.sh"], "the result tells where each file was taken to", r)
    (out / "run.sh").unlink()
    os.symlink("../victim", out / "run.sh")
    (p.home / "victim").write_text("mine")
    shutil.rmtree(out / "a")
    (p.home / "elsewhere").mkdir()
    os.symlink("../elsewhere", out / "a")
    if p.who == "user" and os.geteuid() == 0:
        subprocess.run(["chown", "-Rh", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", str(p.home)], check=True)
    code = "import os; os.makedirs('a/b'); open('a/b/c', 'w').write('x'); open('run.sh', 'w').write('new'); open('fine', 'w').write('f')"
    r = p("run", "--profile", "standard", "--out", "out", "-c", code)
    p.ok("not taken: /workspace/run.sh: there is one of that name; --replace overwrites it" in r.err and "a/b/c: its folder goes through a symbolic link" in r.err
         and p.text("out/fine") == "f" and r.code == exits.FAILED, "--out overwrites nothing and follows no link in DIR; the other files are taken", r)
    p.ok(p.text("victim") == "mine" and not list((p.home / "elsewhere").iterdir()), "nothing was written behind a link of DIR")
    r = p("run", "--profile", "standard", "--out", "out", "--replace", "-c", "open('run.sh', 'w').write('new')")
    p.ok(r.code == exits.DONE and p.text("out/run.sh") == "new" and not (out / "run.sh").is_symlink() and p.text("victim") == "mine" and "took 1 file: out/run.sh" in r.err,
         "--replace replaces the link itself, not what it leads to", r)
    r = p("exec", "--out", "made", "--", "/bin/sh", "-c", "echo hello > note")
    p.ok(r.code == exits.DONE and p.text("made/note") == "hello\n", "exec --out makes the folder and takes what the program left", r)
    p.ok(not [f for f in p.home.rglob(".cordon-*")], "nothing half written is left in a folder of the host")
    state = pathlib.Path(tapsys.House.of(p.who)["CORDON_STATE"])
    r = p("exec", "--out", str(state), "--", "/bin/true")
    p.ok(r.code == exits.NEVER_RAN and "the state folder" in r.err, "--out into Cordon's own folders is refused", r)
    r = p("exec", "--rw", "made:/workspace", "--out", "out", "--", "/bin/true")
    p.ok(r.code == exits.NEVER_RAN and "is /workspace itself" in r.err, "--out beside a --rw that keeps the files already is refused", r)


def dropped(p):
    r = p("run", "--profile", "standard", "-c", "open('plot.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n'); open('b', 'w')")
    p.ok("cordon: 2 files were dropped (/workspace/b, /workspace/plot.png (image/png)); --out DIR keeps what it leaves\n" in r.err, "without --out a line names the files that were dropped", r)
    r = p("exec", "--", "/bin/sh", "-c", "echo > one")
    p.ok("cordon: 1 file was dropped (/workspace/one); --out DIR" in r.err, "without --out exec names the files that were dropped, too", r)
    r = p("run", "--profile", "standard", "--in", "project", "-c", "1")
    p.ok(r.err == "", "a program that left nothing gets no such line", r)
    heads = {"png": b"\\x89PNG\\r\\n\\x1a\\n", "jpg": b"\\xff\\xd8\\xff\\xe0", "gif": b"GIF89a", "webp": b"RIFF0000WEBP", "txt": b"text"}
    r = p.run("\n".join(f"open('x.{k}', 'wb').write(b'{v.decode()}')" for k, v in heads.items()))
    p.ok({f["path"]: f["type"] for f in r["files"] or ()} == {"/workspace/x.png": "image/png", "/workspace/x.jpg": "image/jpeg", "/workspace/x.gif": "image/gif",
                                                              "/workspace/x.webp": "image/webp", "/workspace/x.txt": None}, "a file of the result has its type and size", r)


def in_sessions(p):
    name = p.new("--profile", "standard", "--in", "project")
    r = p.cell(name, "import helper; print(helper.answer(), open('data.csv').read())")
    p.ok(r["stdout"] == "42 a,b\n\n", "session new --in copies into the session's /workspace", r)
    r = p("session", "put", name, "project/data.csv:in/data.csv")
    p.ok(r.code == exits.DONE and p.cell(name, "print(open('/workspace/in/data.csv').read())")["stdout"] == "a,b\n\n", "session put copies a file in", r)
    (p.home / "project/data.csv").write_text("new\n")
    p.ok(p("session", "put", name, "project").code == exits.DONE and p.cell(name, "print(open('data.csv').read())")["stdout"] == "new\n\n",
         "session put replaces a file that is there")
    p.cell(name, "import os; os.makedirs('o'); open('o/made', 'w').write('by the guest'); os.symlink('/etc/passwd', 'o/link'); os.symlink('/etc', 'folder'); os.mkdir('sub2')\n"
                 "os.symlink('/workspace/o', 'in2')")
    r = p("session", "get", name, "o/made", "got")
    p.ok(r.code == exits.DONE and p.text("got") == "by the guest", "session get copies a file out", r)
    r = p("session", "get", name, "/workspace/o/made", "got")
    p.ok(r.code == exits.NEVER_RAN and "--replace" in r.err, "session get overwrites nothing", r)
    p.ok(p("session", "get", name, "--replace", "o/made", "got").code == exits.DONE, "session get --replace does")
    p.ok(p("session", "get", name, "o/made", "-").out == "by the guest", "session get to - prints the file")
    for path in ("o/link", "folder/passwd", "sub2", "../x", "absent", "/etc/passwd"):
        r = p("session", "get", name, path, "never")
        p.ok(r.code == exits.NEVER_RAN and not (p.home / "never").exists() and len(r.err.splitlines()) == 1, f"session get {path} is refused in one line", r)
    r = p("session", "put", name, "got:in2/got")
    p.ok(r.code == exits.NEVER_RAN and p.cell(name, "print(os.listdir('o'))")["stdout"].count("got") == 0, "session put goes through no link that the guest made", r)
    told = p("audit", "tail", "--json").out
    p.ok('"put"' in told and '"got"' in told, "put and get are on record")
    r = p("session", "new", "--profile", "locked", "--in", "project")
    p.ok(r.code == exits.NEVER_RAN and "a program under locked has no files" in r.err, "a session of locked has no files", r)
    r = p("session", "new", "files-of-strict", "--in", "project")
    p.ok(r.code == exits.DONE and p.cell("files-of-strict", "print(open('data.csv').read(), end='')")["stdout"] == p.text("project/data.csv"), "a session of strict reads what --in brought", r)
    p("session", "close", "files-of-strict")
    r = p("repl", "--profile", "standard", "--in", "project", text="import helper\nhelper.answer()\n")
    p.ok(r.out == "42\n", "repl has --in as session new has it", r)
    r = p("repl", "--session", name, "--in", "project", text="1\n")
    p.ok(r.code == exits.NEVER_RAN and "cordon session put" in r.err, "repl --in into a session that is there names session put", r)
    p("pool", "start", "--profile", "standard")
    p.full("standard")
    r = p.warm(lambda: p.run(LIST, "--in", "project"))
    p.ok("data.csv" in (r["stdout"] or "") and r["files"] == [] and p.template("standard").get("made", 0) > 0 and p.status().get("leases", 0) > 0,
         "a run with --in takes a child of the pool", r, p.status())
    p("pool", "stop", "--force")


def science(p):
    """The profile of docs/policy.md, word for word."""
    lines = (SOURCE / "docs/policy.md").read_text().splitlines()
    start = next(i for i, l in enumerate(lines) if l == "    profiles:" and lines[i + 1] == "      science:")
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("    "))
    (p.home / "science.yaml").write_text("\n".join(l[4:] for l in lines[start:end]) + "\n")
    r = p("policy", "check", "science.yaml")
    p.ok(r.code == exits.DONE and "0 warnings" in r.out, "the profile science of the documents is good", r)

    def run(code):
        return p("run", "--json", "--policy", "science.yaml", "--profile", "science", "-c", "import numpy as np\na = np.arange(6).reshape(2, 3)\n" + code)
    r = run("a[0, 0] = 9\nprint((a.T @ a).sum(), a[a > 4].tolist(), np.linalg.det(np.eye(2)), np.fft.fft([1, 2])[0].real, np.random.default_rng(1).integers(1), [int(x) for x in a.flat][1])")
    p.ok(r["stdout"] == "288 [9, 5] 1.0 3.0 0 1\n", "numpy computes under the rules of strict", r)
    for code in ("np.lib.stride_tricks.as_strided(a, (99,))", "a.ctypes", "np.ctypeslib", "np.core", "a.tofile('x')", "np.memmap('x')", "from numpy.lib import stride_tricks", "a.__array_interface__",
                 "import subprocess", "import pandas"):
        r = run(code)
        p.ok(r["status"] == "blocked", f"science refuses {code}", r)
    r = run("np.loadtxt('/etc/passwd', dtype=str)")
    p.ok(r["status"] == "error" and "root" not in r["stdout"] and "filesystem" in [v["layer"] for v in r["violations"]], "numpy opens no file under science", r)
    (p.home / "bad.yaml").write_text("profiles: {strict: {packages: true}}\n")
    r = p("policy", "check", "bad.yaml")
    p.ok("packages of strict stays false; make a profile with base: strict" in r.err + r.out, "a built-in profile keeps its packages", r)


def packages(p):
    site = p.home / "venv/lib" / f"python3.{sys.version_info.minor}/site-packages"
    (site / "ownpackage").mkdir(parents=True)
    (site / "ownpackage/__init__.py").write_text("VALUE = 7\n")
    native = next(pathlib.Path("/usr/lib/python3/dist-packages").glob("kiwisolver/_cext*.so"), None)
    if native:
        shutil.copy(native, site / "_cext.so")
    if p.who == "user" and os.geteuid() == 0:
        subprocess.run(["chown", "-Rh", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", str(p.home)], check=True)
    subprocess.run(["chmod", "-R", "go-w", str(p.home)], check=True)
    code = "import ownpackage; print(ownpackage.VALUE, ownpackage.__file__)"
    r = p.run(code, "--venv", "venv")
    p.ok(r["stdout"] == "7 /cordon-packages/ownpackage/__init__.py\n", "--venv gives a program the packages of an environment, by a relative path, too", r)
    if native:
        r = p.run("import _cext; print(_cext.__name__)", "--venv", "venv")
        p.ok(r["stdout"] == "_cext\n", "a native extension of an environment can be imported", r)
    r = p.run("open('/cordon-packages/x', 'w')", "--venv", "venv")
    p.ok(r["status"] == "error" and not (site / "x").exists(), "the environment is read-only", r)
    r = p.run("1", "--venv", "project")
    p.ok(r.code == exits.NEVER_RAN and "it is no environment of this Python" in r.err, "--venv of another version of Python, or of none, is refused by name", r)
    r = p("run", "--venv", "venv", "-c", "1")
    p.ok(r.code == exits.NEVER_RAN and "a program under strict has no packages" in r.err, "strict has no packages: --venv is refused", r)
    name = p.new("--profile", "standard", "--venv", "venv")
    r = p("session", "run", "--venv", "venv", name, "-c", code)
    p.ok(r.out.startswith("7 "), "a session can have an environment of its own", r)
    p("pool", "stop", "--force", "--venv", "venv")
    r = p.run("import nosuchpackage.part")
    hint = (r["error"] or {}).get("hint", "")
    p.ok(all(w in hint for w in ("'nosuchpackage'", "apt install python3-nosuchpackage", "--venv DIR", "--in FOLDER", "cordon pool start --packages")), "the hint of a missing module names it and how to get it", r)
    r = p("run", "--profile", "standard", "-c", "import nosuchpackage")
    p.ok(r.err.count("there is no module 'nosuchpackage' here") == 1, "without --json the hint is one line", r)
    for profile in ("strict", "standard"):
        r = p("run", "--profile", profile, "-c", "def load():\n    return open('numbers.csv')\nload()\n")
        p.ok("--in FILE copies one into its /workspace" in r.err, f"{profile}: a file that is not there has a hint how to bring it in", r)
        p.ok(r.err.count('  File "') == 2 and "<frozen" not in r.err, f"{profile}: the traceback of a failed open ends at the program's own line", r)
    note = "cordon pool start --profile standard --packages` keeps them loaded"
    first, second = (p("run", "--profile", "standard", "-c", "if 0: import pandas") for _ in range(2))
    p.ok(note in first.err and note not in second.err, "the hint that packages can be kept loaded is said once", first, second)


def figures(p):
    if not os.path.isdir("/usr/lib/python3/dist-packages/matplotlib"):
        return tap.skip(f"{p.who}: plt.show() saves figures", "python3-matplotlib is not installed")
    code = ("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nplt.plot([2, 1]); plt.figure(); plt.show()\nprint(plt.get_fignums())")
    r = p("run", "--json", "--profile", "standard", "--timeout", "2m", "--cpu", "2m", "--out", "plots", "-c", code, timeout=150)
    p.ok([(f["path"], f["type"]) for f in r["files"] or ()] == [(f"/workspace/figure-{i}.png", "image/png") for i in (1, 2, 3)] and r["stdout"] == "[]\n",
         "plt.show() without a display saves each open figure once, with its type in the result", r)
    p.ok((p.home / "plots/figure-1.png").read_bytes()[:4] == b"\x89PNG", "--out takes the figures", r)


for who in users():
    person = Person(who)
    copied_in(person)
    beside(person)
    taken_out(person)
    dropped(person)
    in_sessions(person)
    science(person)
    packages(person)
for who in users()[-1:]:  # its package is the slowest to load
    figures(person)
tap.done()
