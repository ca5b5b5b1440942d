#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon workspace`: what it prints is what git prints; every odd kind of file has its answer; killed at any instant, the
head is the old state or the new one.

Usage: workspace.py BUILD [KILLS [SEED]]. With KILLS only that part, so many times."""
import ctypes
import io
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

sys.dont_write_bytecode = True
import tapsys
from tapsys import House, users
from workspacetest import TOP, git_as, programs, store, swap, tap, workspace


if os.path.ismount("/dev/shm") and os.access("/dev/shm", os.W_OK):  # each object is synced: on a busy disk that takes longer than the test has
    for person in users():
        shm = pathlib.Path(tempfile.mkdtemp(prefix="cordon-workspace-", dir="/dev/shm"))
        tapsys.atexit.register(shutil.rmtree, shm, ignore_errors=True)
        if person == "user" and os.geteuid() == 0:
            os.chown(shm, tapsys.ROOTLESS, tapsys.ROOTLESS)
        House.of(person)["CORDON_STATE"] = str(shm)


def git(*words, cwd="/", binary=False, who="root"):
    code, out = git_as(who, *words, cwd=cwd)
    return code, out if binary else out.decode("utf-8", "surrogateescape")


def in_store(name, *words, who="root"):
    return git("--git-dir", store(name, who), *words, who=who)


def fsck(name, who="root"):
    code, text = in_store(name, "fsck", "--strict", "--no-dangling", "--no-progress", who=who)
    return code == 0 and not text, text


def raw(*words, who="root"):
    """Exit status and the very bytes."""
    r = subprocess.run(programs.command(["workspace", *words], who), env=tapsys.clean_env(None, who), cwd="/",
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return r.returncode, r.stdout.decode("utf-8", "surrogateescape")


def fresh(name, who="root"):
    workspace("delete", name, who=who)
    r = workspace("create", name, who=who)
    return r.out.strip() if r.code == 0 else None


def folder(name, files):
    """A folder with these files: text, bytes, or a link's target as a tuple of one."""
    top = TOP / name
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(mode=0o755)
    for path, content in files.items():
        at = os.path.join(os.fsencode(top), os.fsencode(path))
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if isinstance(content, tuple):
            os.symlink(content[0], at)
        else:
            with open(at, "wb") as f:
                f.write(content.encode() if isinstance(content, str) else content)
    return top


def left_out(run):
    return {e["path"]: e["reason"] for e in (run.json or {}).get("left_out", ())}


# --- the ordinary way, as both users ----------------------------------------------------------------
FIRST = {"main.py": "def f(a):\n    return a\n\n\ndef g(b):\n    return b\n", "data/x.bin": bytes(range(256)), "data/a b.txt": "blank\n",
         "caf\u00e9\"\\\n\t.txt": "odd\n", "no-newline": "end", "sub/deep/er": "x\n", "link": ("data/a b.txt",), "sub/up": ("../main.py",)}
SECOND = {**FIRST, "main.py": "def f(a):\n    return a + 1\n\n\ndef g(b):\n    return b\n\n\ndef h(c):\n    return c\n", "new.txt": "n\n",
          "no-newline": "end\n", "data/x.bin": bytes(255), "link": "now a file\n"}
del SECOND["sub/deep/er"]


def ordinary(who):
    name = f"plain-{who}"
    genesis = fresh(name, who)
    tap.ok(genesis and len(genesis) == 40, f"{who}: create makes a genesis commit and prints its id", genesis)
    made, told = workspace("create", "told", who=who), workspace("create", "told-json", "--json", who=who)
    tap.ok("told is made" in made.err and "cordon workspace import told FOLDER" in made.err and told.err == "",
           f"{who}: create says what it made and what comes next; with --json it is the object alone", made.story(), told.story())
    back = workspace("restore", "told", "genesis", who=who)
    tap.ok("told has the files of genesis" in back.err and "cordon workspace log told" in back.err, f"{who}: restore says which files are there, and where the others are", back.story())
    workspace("delete", "told", who=who), workspace("delete", "told-json", who=who)
    tap.eq(in_store(name, "log", "--format=%an %s", who=who)[1], "cordon genesis\n", f"{who}: git log shows the genesis commit")
    one = workspace("import", name, folder("first", FIRST), "--message", "first\n\nwith a body", who=who)
    second = folder("second", SECOND)
    os.chmod(second / "new.txt", 0o744)  # its owner's right is the one that counts
    os.chmod(second / "no-newline", 0o655)
    two = workspace("import", name, second, "--json", who=who)
    tap.ok(one.code == 0 and two.code == 0 and two["changed"], f"{who}: two folders are imported", one.story(), two.story())
    again = workspace("import", name, second, "--json", who=who)
    tap.ok(again.code == 0 and again["changed"] is False and again["id"] == two["id"],
           f"{who}: importing the same files again makes no commit", again.story())
    for words, theirs in ((["log"], ["log"]), (["log", "--patch"], ["log", "-p"]), (["log", "--lines", "1"], ["log", "-1"]),
                          (["diff"], ["diff", "main~1", "main"]), (["diff", "--stat"], ["diff", "--numstat", "main~1", "main"]),
                          (["diff", "genesis", "head~1"], ["diff", genesis, "main~1"]),
                          (["diff", "head", "head~1"], ["diff", "main", "main~1"])):
        code, mine = raw(words[0], name, *words[1:], who=who)
        want = in_store(name, *theirs, who=who)[1]
        tap.ok(code == 0 and mine == want and mine, f"{who}: `workspace {' '.join(words)}` prints what `git {' '.join(theirs[:2])}` prints",
               mine, "-- git:", want)
    j = workspace("diff", name, "--json", who=who).json
    tap.eq(sorted((f["status"], f["path"]) for f in j["files"]),
           [("A", "new.txt"), ("D", "sub/deep/er"), ("M", "data/x.bin"), ("M", "main.py"), ("M", "no-newline"), ("T", "link")],
           f"{who}: diff --json names each file that changed")
    clone = store(name, who).parent.parent.parent / "clone"
    code, text = git("clone", "-q", store(name, who), clone, who=who)
    same = code == 0 and all(os.path.lexists(os.path.join(os.fsencode(clone), os.fsencode(p))) for p in SECOND)
    tap.ok(same and (clone / "main.py").read_text() == SECOND["main.py"] and os.access(clone / "new.txt", os.X_OK)
           and not os.access(clone / "main.py", os.X_OK) and not os.access(clone / "no-newline", os.X_OK), f"{who}: git clone gives the files, and which of them are executable", text)
    tap.ok(*fsck(name, who)[:1], f"{who}: git fsck --strict has nothing to say", fsck(name, who)[1])
    return name, genesis, two["id"]


def large(who):
    """Two versions of a file of 20 MB, in lines of two bytes: by lines they take gigabytes."""
    name = f"large-{who}"
    fresh(name, who)
    short = lambda a, n: (a * n).encode()
    workspace("import", name, folder("large-1", {"big\x1b[2J": short("a\nb\n", 5 << 20), "small": "1\n", "gone": short("x\n", 3 << 20)}), who=who)
    workspace("import", name, folder("large-2", {"big\x1b[2J": short("b\na\nc\n", 4 << 20), "small": "2\n"}), who=who)
    bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
    for words, theirs in ((["diff"], ["diff", "main~1", "main"]), (["diff", "--stat"], ["diff", "--numstat", "main~1", "main"]), (["log", "--patch", "--lines", "1"], ["log", "-p", "-1"])):
        r = subprocess.run(programs.command(["workspace", words[0], name, *words[1:]], who), env=tapsys.clean_env(None, who), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=bound)
        lines = sorted(r.stderr.decode("utf-8", "surrogateescape").splitlines())
        tap.eq((r.returncode, lines), (0, ["cordon workspace: big^[[2J: larger than 4 MB, so it is not compared line by line", "cordon workspace: gone: larger than 4 MB, so it is not compared line by line"]),
               f"{who}: `workspace {' '.join(words)}` of files of 20 MB needs less than 600 MB, and names what is not compared by lines")
        tap.eq(r.stdout.decode("utf-8", "surrogateescape"), in_store(name, *theirs, who=who)[1], f"{who}: of such files `workspace {' '.join(words)}` prints what git prints")
    j = workspace("diff", name, "--json", who=who).json
    tap.eq([(f["path"], f["binary"], f["large"]) for f in j["files"]], [("big\x1b[2J", True, True), ("gone", True, True), ("small", False, False)], f"{who}: diff --json says which file was too large for lines")


def states(who, name, genesis, two):
    s = workspace("snapshot", name, "--name", "good", "--message", "keep", "--json", who=who)
    back = workspace("restore", name, genesis[:12], "--json", who=who)
    empty = in_store(name, "ls-tree", "-r", "main", who=who)[1]
    tap.ok(s.code == 0 and back.code == 0 and back["changed"] and empty == "", f"{who}: restore to genesis leaves no file",
           s.story(), back.story(), empty)
    again = workspace("restore", name, "genesis", "--json", who=who)
    tap.ok(again.code == 0 and again["changed"] is False and again["id"] == back["id"], f"{who}: restore to the files that the head has makes no commit", again.story())
    forth = workspace("restore", name, "good", "--json", who=who)
    trees = in_store(name, "rev-parse", f"{two}^{{tree}}", "main^{tree}", who=who)[1].split()
    tap.ok(forth.code == 0 and trees[0] == trees[1], f"{who}: restore to a named snapshot brings every file back", forth.story(), trees)
    log = workspace("log", name, "--json", who=who).json
    tap.eq([c["message"].splitlines()[0][:9] for c in log], ["restore " + s["id"][0], "restore " + genesis[0], "keep", "import", "first", "genesis"],
           f"{who}: what a restore undid stays in the log")
    tap.ok(workspace("snapshot", name, "--name", "good", who=who).code == 2, f"{who}: a snapshot's name is given once")
    for word in ("nosuch", "head~99", "head~18446744073709551615", "ffffff", "head~x", "../x", "-", ""):
        r = workspace("restore", name, word, who=who)
        tap.ok(r.code == 2 and r.err.count("\n") == 1, f"{who}: restore to '{word}' is refused in one line", r.story())
    tar = TOP / f"{who}.tar"
    bundle = TOP / f"{who}.bundle"
    out = subprocess.run(programs.command(["workspace", "export", name, "good", "--tar", "-"], who), env=tapsys.clean_env(None, who),
                         stdout=subprocess.PIPE, cwd="/").stdout
    mine = {m.name: (m.type, m.mode & 0o100, m.linkname) for m in tarfile.open(fileobj=io.BytesIO(out), errors="surrogateescape") if not m.isdir()}
    theirs = git("--git-dir", store(name, who), "archive", "main", binary=True, who=who)[1]
    want = {m.name: (m.type, m.mode & 0o100, m.linkname) for m in tarfile.open(fileobj=io.BytesIO(theirs), errors="surrogateescape") if not m.isdir()}
    tap.eq(mine, want, f"{who}: the tar archive has the files, links and modes that git archive has")
    tap.eq(subprocess.run(["tar", "xOf", "-", "main.py"], input=out, stdout=subprocess.PIPE).stdout.decode(), SECOND["main.py"],
           f"{who}: tar unpacks a file of the archive unchanged")
    if who == users()[0]:
        first = workspace("export", name, "--bundle", bundle, who=who)
        twice = workspace("export", name, "--bundle", bundle, who=who)
        code, text = git("clone", "-q", bundle, TOP / "from-bundle")
        tap.ok(first.code == 0 and code == 0 and git("rev-parse", "HEAD", cwd=TOP / "from-bundle")[1] == in_store(name, "rev-parse", "main", who=who)[1],
               "git clone of a bundle has the same head", first.story(), text)
        tap.ok(twice.code == 2 and "already" in twice.err, "an export does not overwrite a file", twice.story())
        bad = workspace("export", name, "nosuch", "--tar", tar, who=who)
        tap.ok(bad.code == 2 and not tar.exists(), "an export that fails leaves no file", bad.story())
    listed = {w["workspace"]: w for w in workspace("list", "--json", who=who).json}
    real = in_store(name, "rev-list", "--count", "main", who=who)[1].strip()
    sizes = [int(l.split()[3]) for l in in_store(name, "ls-tree", "-r", "-l", "main", who=who)[1].splitlines()]
    got = listed.get(name, {})
    tap.eq((str(got.get("commits")), got.get("files"), got.get("bytes")), (real, len(sizes), sum(sizes)),
           f"{who}: list counts commits, files and bytes as git does")
    tap.ok(workspace("delete", name, who=who).code == 0 and not store(name, who).exists() and workspace("log", name, who=who).code == 2,
           f"{who}: a deleted workspace is gone")


def usage():
    for words in ((), ("nosuch",), ("create",), ("create", "a", "b"), ("create", "../x"), ("create", "A"), ("log", ".lock"), ("import", "a"),
                  ("export", "none"), ("list", "a"), ("import", "none", "/nonexistent"), ("diff", "none")):
        r = workspace(*words)
        tap.ok(r.code == 2 and r.err.count("\n") == 1 and not r.out, f"`workspace {' '.join(words)}` is a usage error in one line", r.story())
    fresh("twice")
    r = workspace("create", "twice")
    tap.ok(r.code == 2 and "already" in r.err, "a second workspace of the same name is refused", r.story())


def damaged():
    """One workspace that cannot be read keeps nobody from the others."""
    for name in ("a-first", "b-damaged", "c-last"):
        fresh(name)
    (store("b-damaged") / "refs/heads/main").write_text("not an id\n")
    r = workspace("list", "--json")
    names = [w["workspace"] for w in r.json or ()]
    tap.ok(r.code == 1 and "'b-damaged' cannot be read" in r.err and r.err.count("\n") == 1 and {"a-first", "c-last"} <= set(names) and "b-damaged" not in names,
           "list --json has every workspace but a damaged one, which its one line names, and exits with 1", r.story())
    r = workspace("list")
    tap.ok(r.code == 1 and "a-first" in r.out and "c-last" in r.out, "list goes on behind a damaged workspace", r.story())
    shutil.rmtree(store("b-damaged").parent)
    (store("c-last").parent / "/".join("d" * 80)).mkdir(parents=True)
    r = workspace("delete", "c-last")
    tap.ok(r.code == 1 and "nested too deep to remove" in r.err, "delete says that folders are nested too deep, which nothing of ours makes", r.story())
    for rest in store("c-last").parent.parent.glob(".*c-last*"):
        shutil.rmtree(rest)
    tap.eq(workspace("list").code, 0, "list without a damaged workspace exits with 0")


# --- every odd kind of file -------------------------------------------------------------------------
def odd_files():
    fresh("odd")
    top = folder("odd", {"plain": "p\n", "in": ("plain",), "sub/up": ("../plain",), "abs": ("/etc/passwd",), "out": ("../secret",),
                         "sub/out": ("../../secret",), "through": ("sub/../../secret",), "dangling": ("nowhere",), "hook": (".git/hooks/x",),
                         "loop": ("loop",), ".git/config": "[core]\n", "sub/.GIT/config": "x", "git~1": "x", ".gitmodules": "x", ".gitattributes": "* -diff\n",
                         "sub/.mailmap": "Root <cordon@cordon>\n", ".gitignore": "plain\n", "A": "1", "a": "2", "x\\y": "b", "x\\.git": "b", "gi7eb~10": "s", "sub/.gitignore": ("../plain",), b"\xff\xfe": "bytes", "-rf": "m",
                         "n" * 255: "long", "\u202egpj.exe": "bidi", "esc\x1b[2J": "e", "%s%n": "f", "d/" * 63 + "deep": "63", "e/" * 66 + "deeper": "66"})
    (TOP / "secret").write_text("the secret\n")
    os.link(top / "plain", top / "hard")
    os.mkfifo(top / "fifo")
    s = socket.socket(socket.AF_UNIX)
    os.chdir(top)
    s.bind("sock")
    os.chdir("/")
    (top / "empty/in").mkdir(parents=True)
    with open(top / "sparse", "wb") as f:
        f.truncate(8 << 20)
    with open(top / "huge", "wb") as f:
        f.truncate((256 << 20) + 1)
    with open(top / "terabyte", "wb") as f:
        f.truncate(1 << 40)
    os.chmod(top / "plain", 0o4755)
    if os.geteuid() == 0:
        os.mknod(top / "dev", 0o600 | 0o020000, os.makedev(1, 8))
    r = workspace("import", "odd", top, "--json")
    left = left_out(r)
    kept = {l.split("\t", 1)[1]: l.split()[0] for l in in_store("odd", "ls-tree", "-r", "-z", "main")[1].split("\0") if l}
    want = {".git": "git takes", "sub/.GIT": "git takes", "git~1": "git takes", ".gitmodules": "submodules", ".gitattributes": "attributes",
            "sub/.mailmap": "authors", "abs": "absolute", "out": "out of", "sub/out": "out of", "through": ".. behind", "hook": "git obeys",
            "x\\.git": "git takes", "gi7eb~10": "submodules", "sub/.gitignore": "a link of a name",
            "fifo": "FIFO", "sock": "socket", "huge": "256 MB", "terabyte": "256 MB"}
    if os.geteuid() == 0:
        want["dev"] = "device"
    for path, reason in want.items():
        tap.ok(reason in left.get(path, "") and path not in kept, f"import: {path} is left out by name", left.get(path), r.story())
    tap.ok(any("too deep" in v for v in left.values()) and len(left) == len(want) + 1, "import: a folder 65 deep is left out, and nothing else is",
           {k: v for k, v in left.items() if k not in want})
    for path, mode in {"plain": "100755", "hard": "100755", "in": "120000", "sub/up": "120000", "dangling": "120000", "loop": "120000",
                       ".gitignore": "100644", "A": "100644", "a": "100644", "x\\y": "100644", "\udcff\udcfe": "100644", "-rf": "100644", "n" * 255: "100644",
                       "\u202egpj.exe": "100644", "esc\x1b[2J": "100644", "%s%n": "100644", "sparse": "100644", "d/" * 63 + "deep": "100644"}.items():
        tap.eq(kept.get(path), mode, f"import: {path[:20]!r} is kept with the mode that git has for it")
    tap.ok(not any(p.startswith("empty") for p in kept), "import: an empty folder is dropped")
    tap.eq(in_store("odd", "cat-file", "-s", "main:sparse")[1].strip(), str(8 << 20), "import: a sparse file is kept with its holes as zeros")
    tap.ok(b"the secret" not in subprocess.run(["grep", "-rlz", "the secret", str(store("odd"))], stdout=subprocess.PIPE).stdout
           and "the secret" not in in_store("odd", "log", "-p", "--text")[1], "import: nothing outside the folder was read through a link")
    tap.ok(*fsck("odd")[:1], "import: git fsck --strict accepts a store with every odd name", fsck("odd")[1])
    code, text = git("clone", "-q", store("odd"), TOP / "odd-clone")
    tap.ok(code == 0 and (TOP / "odd-clone" / "x\\y").exists() and not (TOP / "odd-clone/.git/hooks/x").exists(), "git clone takes every odd name", text)
    tap.eq(raw("log", "odd", "--patch")[1], in_store("odd", "log", "-p")[1], "log --patch prints odd names as git does")
    tap.eq(raw("diff", "odd", "--stat")[1], in_store("odd", "diff", "--numstat", "main~1", "main")[1], "diff --stat prints odd names as git does")
    s.close()


def terminal():
    """On a terminal nothing in a name or a file acts on it."""
    fresh("tty")
    workspace("import", "tty", folder("tty", {"esc": "\x1b]0;owned\x07\u202e\n"}))
    master, slave = os.openpty()
    p = subprocess.Popen(programs.command(["workspace", "log", "tty", "--patch"]), env=tapsys.clean_env(), stdin=subprocess.DEVNULL, stdout=slave,
                         stderr=slave, cwd="/")
    os.close(slave)
    text = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    p.wait()
    os.close(master)
    tap.ok(b"owned" in text and b"\x1b" not in text and "\u202e".encode() not in text, "on a terminal a file's escape sequences are shown, not sent", text)


def unreadable():
    """As an ordinary user: what may not be read is named, the rest is committed."""
    who = "user"
    fresh("modes", who)
    top = folder("modes", {"yes": "1\n", "no": "2\n", "shut/in": "3\n"})
    os.chmod(top / "no", 0)
    os.chmod(top / "shut", 0)
    r = workspace("import", "modes", top, "--json", who=who)
    tap.eq(left_out(r), {"no": "it may not be read", "shut": "it may not be read"}, "user: files and folders that may not be read are left out by name", r.story())
    os.chmod(top / "shut", 0o700)


def swapped():
    """A folder whose names change kind while it is read: a link is never followed, and no FIFO stops the reader."""
    top = folder("race", {f"f{i}": "honest\n" for i in range(40)})
    (TOP / "secret").write_text("the secret\n")
    fresh("race")
    p = swap(top, TOP / "secret")
    ends = {}
    for _ in range(40):
        r = workspace("import", "race", top, "--json", timeout=20)
        ends[r.code] = ends.get(r.code, 0) + 1
    alive = p.poll() is None
    p.kill()
    p.wait()
    tap.ok(alive and set(ends) <= {0, 1} and ends.get(0), "a folder that is changed while it is imported: each import ends", ends)
    tap.ok("the secret" not in in_store("race", "log", "-p", "--all")[1], "a link that is put in a file's place is never followed")
    tap.ok(*fsck("race")[:1], "a folder that is changed while it is imported leaves a clean store", fsck("race")[1])


# --- containment, locks, disk -----------------------------------------------------------------------
def contained():
    """What the process that reads guests' files has given up, as the kernel tells it while it waits for its reader."""
    fresh("held")
    workspace("import", "held", folder("held", {"big": os.urandom(3 << 20)}))
    r, w = os.pipe()
    p = subprocess.Popen(programs.command(["workspace", "export", "held", "--tar", "-"]), env=tapsys.clean_env(), stdin=subprocess.DEVNULL, stdout=w, cwd="/")
    os.close(w)
    os.read(r, 1)  # it writes now, and waits
    status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
    exe = os.readlink(f"/proc/{p.pid}/exe")
    tap.ok(exe.endswith("cordon-workspace") and "\nSeccomp:\t2" in status and "\nNoNewPrivs:\t1" in status, "cordon-workspace runs behind seccomp, with no new privileges",
           exe, status)
    tap.ok("\nCapPrm:\t0000000000000000" in status and "\nCapEff:\t0000000000000000" in status, "cordon-workspace that prints has no capability, also for root", status)
    busy = workspace("delete", "held")
    tap.ok(busy.code == 1 and str(p.pid) in busy.err, "a workspace is not deleted while somebody reads it, who is named", busy.story())
    also = workspace("snapshot", "held")
    tap.ok(also.code == 0, "a reader does not keep others from committing", also.story())
    while os.read(r, 1 << 20):
        pass
    os.close(r)
    p.wait()
    tap.ok(workspace("delete", "held").code == 0, "a workspace that nobody reads any more can be deleted")
    for words in ([], ["--from-cordon", "", "list", "", "", "", "", "0 0 0"], ["log", "x"]):
        r = subprocess.run([str(programs.bin / "cordon-workspace"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        tap.eq(r.returncode, 2, f"cordon-workspace by hand ({len(words)} words) is a usage error")


def unfinished():
    """An export that is killed while it writes."""
    fresh("cut")
    workspace("import", "cut", folder("cut", {f"f{i}": os.urandom(4 << 20) for i in range(10)}))
    left, file = [], TOP / "cut.tar"
    for i in range(5):
        p = subprocess.Popen(programs.command(["workspace", "export", "cut", "--tar", str(file)]), env=tapsys.clean_env(), stdin=subprocess.DEVNULL, cwd="/")
        until = time.monotonic() + 60
        while p.poll() is None and time.monotonic() < until and not any("cut.tar" in n or "(deleted)" in n and str(TOP) in n for n in links(p.pid)):
            pass  # its file is open
        p.kill()
        p.wait()
        left += [n for n in os.listdir(TOP) if n.endswith(".tar") and file.stat().st_size < 40 << 20]
    tap.ok(not left, "an export that is killed leaves no unfinished file", left)
    file.unlink(missing_ok=True)
    done = workspace("export", "cut", "--tar", file)
    tap.ok(done.code == 0 and len(tarfile.open(file).getnames()) == 10, "an export that is not killed leaves the whole file", done.story())
    again = workspace("export", "cut", "--tar", file)
    tap.ok(again.code == 2 and "exists already" in again.err, "an export replaces no file", again.story())


def links(pid):
    """What the descriptors of PID and of its children lead to."""
    found = []
    try:
        kids = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *kids):
            found += [os.readlink(f"/proc/{one}/fd/{n}") for n in os.listdir(f"/proc/{one}/fd")]
    except OSError:
        pass
    return found


def config(text):
    """A folder of configuration whose policy has TEXT, too."""
    top = TOP / "config"
    (top / "cordon").mkdir(parents=True, exist_ok=True)
    (top / "cordon/policy.yaml").write_text(tapsys.POLICY + text)
    return str(top)


def half_done():
    """What git and libgit2 leave where they are killed, at every place where they leave it."""
    fresh("half")
    objects = ["objects/tmp_obj_a", "objects/pack/pack_git2_a", "incoming/ab/tmp"]
    locks = ["HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock", "refs/tags/t.lock"]
    for name in (*objects, *locks):
        (store("half") / name).parent.mkdir(parents=True, exist_ok=True)
        (store("half") / name).write_text("half")
    seen = workspace("log", "half")
    tap.ok(seen.code == 0 and all((store("half") / name).exists() for name in (*objects, *locks)), "who only reads a workspace removes nothing from it", seen.story())
    r = workspace("snapshot", "half", "--name", "t")
    tap.eq((r.code, [name for name in (*objects, *locks) if (store("half") / name).exists()]), (0, []), "half-written objects and locks of processes that were killed are gone before the next commit", r.story())


def bounds():
    """What a store and the disk may be filled to."""
    fresh("bound")
    env = {"XDG_CONFIG_HOME": config("workspaces: {store: 1m}\n")}
    one = workspace("import", "bound", folder("one", {"a": os.urandom(400_000)}), "--json", env=env)
    tap.ok(one.code == 0 and not one.err, "a store that is half full is not announced", one.story())
    two = workspace("import", "bound", folder("two", {"a": os.urandom(400_000)}), "--json", env=env)
    tap.ok(two.code == 0 and "% of the 1 MB of its store" in two.err and "nearly full" not in two.err, "a store of which more than 80 % are used is announced", two.story())
    same = workspace("import", "bound", TOP / "one", "--json", env=env)
    tap.ok(same.code == 0 and same["changed"], "files that the store has take no room in it", same.story())
    more = workspace("import", "bound", folder("three", {"a": os.urandom(145_000)}), "--json", env=env)
    tap.ok(more.code == 0 and "nearly full" in more.err, "a store of which more than 95 % are used is announced as nearly full", more.story())
    full = workspace("import", "bound", folder("four", {"a": os.urandom(400_000)}), "--json", env=env)
    tap.ok(full.code == 1 and "workspaces.store" in full.err and in_store("bound", "rev-parse", "main")[1].strip() == more["id"], "what does not fit into the store is refused by name, and the head stays", full.story())
    (store("bound").parent / "usage").unlink(missing_ok=True)
    again = workspace("import", "bound", TOP / "four", "--json", env=env)
    tap.ok(again.code == 1 and "workspaces.store" in again.err, "what does not fit is refused by name, too, where a killed process left no count of the store", again.story())
    for words in (("snapshot", "bound"), ("restore", "bound", "genesis")):
        r = workspace(*words, env=env)
        tap.ok(r.code == 0 and "nearly full" in r.err, f"{words[0]} is a commit, too, and says that the store is nearly full", r.story())
    tap.ok(workspace("import", "bound", TOP / "four", "--json").code == 0, "a policy with more room lets in what did not fit")
    env = {"XDG_CONFIG_HOME": config("workspaces: {free: 1024g}\n")}
    for words in (("create", "no-room"), ("import", "bound", TOP / "one"), ("snapshot", "bound"), ("restore", "bound", "genesis")):
        r = workspace(*words, env=env)
        tap.ok(r.code == 1 and "workspaces.free" in r.err and r.err.count("\n") == 1, f"{words[0]} is refused by name where less than workspaces.free is free on the disk", r.story())
    tap.ok(workspace("log", "bound", env=env).code == 0 and workspace("delete", "bound", env=env).code == 0, "on a disk with too little room a workspace can be read, and deleted")


def small_disk(name, size, case):
    """A folder on a tmpfs of its own; None where none can be mounted, and CASE is skipped."""
    home = TOP / name
    home.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"{size},mode=700", "none", str(home)], stderr=subprocess.DEVNULL).returncode:
        tap.skip(case, "no tmpfs can be mounted here")
        return None
    return home


def kept_free():
    """A disk of 64 MB: more of it is kept free than it has, or a part of it."""
    home = small_disk("kept-free", "size=64m", "a part of the disk is kept free")
    if not home:
        return
    env = {"CORDON_STATE": str(home / "state")}
    r = workspace("create", "w", env={**env, "XDG_CONFIG_HOME": config("")})
    tap.ok(r.code == 1 and "1024 MB are kept free (workspaces.free" in r.err, "a policy that says nothing of it keeps 1 GB of the disk free", r.story())
    env["XDG_CONFIG_HOME"] = config("workspaces: {free: 1m, free_percent: 50}\n")
    made = workspace("create", "w", env=env)
    (home / "filler").write_bytes(bytes(40 << 20))
    r = workspace("snapshot", "w", env=env)
    tap.ok(made.code == 0 and r.code == 1 and "31 MB are kept free (workspaces.free and workspaces.free_percent" in r.err,
           "of workspaces.free and workspaces.free_percent the larger one is kept free", made.story(), r.story())
    (home / "filler").unlink()
    tap.eq(workspace("snapshot", "w", env=env).code, 0, "a disk that has room again takes the next commit")
    subprocess.run(["umount", str(home)])


def many():
    """More files than a commit holds, and more that is left out than is told by name."""
    top, shm = TOP / "many", "/dev/shm" if os.path.ismount("/dev/shm") and os.access("/dev/shm", os.W_OK) else "/tmp"
    fresh("many")
    top.mkdir()
    for i in range(1003):
        os.symlink("/", top / f"l{i}")
    r = workspace("import", "many", top, "--json")
    tap.eq((len(r["left_out"]), r["left_out_more"]), (1000, 3), "what is left out is told by name up to 1000 names, and counted beyond", r.err)
    with tempfile.TemporaryDirectory(prefix="cordon-workspace-", dir=shm) as large:
        for i in range(200_001):
            os.mkdir(f"{large}/{i}")
        before = in_store("many", "rev-parse", "main")[1]
        r = workspace("import", "many", large, "--json", timeout=200)
    tap.ok(r.code == 1 and "more than 200000 files and folders" in r.err and in_store("many", "rev-parse", "main")[1] == before,
           "a folder of more than 200000 files and folders is refused by name, and the head stays", r.story())


def full_disk():
    """A state folder on a file system that is too small: refused, and the head is where it was."""
    home = small_disk("small", "size=3m", "a full disk leaves the head where it was")
    if not home:
        return
    env = {"CORDON_STATE": str(home / "state"), "XDG_CONFIG_HOME": config("workspaces: {free: 0, free_percent: 0}\n")}
    repo = home / "state/workspaces/full/store.git"
    made = workspace("create", "full", env=env)
    one = workspace("import", "full", folder("one", {"a": "1\n"}), "--json", env=env)
    big = folder("big", {f"f{i}": os.urandom(300_000) for i in range(12)})
    bad = workspace("import", "full", big, "--json", env=env)
    head = git("--git-dir", repo, "rev-parse", "main")[1].strip()
    tap.ok(made.code == 0 and one.code == 0 and bad.code == 1 and bad.err.count("\n") == 1 and head == one["id"],
           "a full disk: the import is refused in one line, and the head is where it was", made.story(), one.story(), bad.story(), head)
    code, text = git("--git-dir", repo, "fsck", "--strict", "--no-dangling", "--no-progress")
    tap.ok(code == 0 and not text, "a full disk: git fsck is clean", text)
    with open(home / "filler", "wb", buffering=0) as f:
        try:
            while f.write(bytes(4096)):
                pass
        except OSError:
            pass
    again = workspace("create", "second", env=env)
    (home / "filler").unlink()
    tap.ok(again.code == 1 and sorted(p.name for p in (home / "state/workspaces").iterdir()) == [".lock", "full"],
           "a full disk: a workspace that cannot be made leaves nothing", again.story(), os.listdir(home / "state/workspaces"))
    gone = workspace("delete", "full", env=env)
    tap.ok(gone.code == 0 and workspace("create", "second", env=env).code == 0, "a full disk: delete makes room", gone.story())
    subprocess.run(["umount", str(home)])


def no_inodes():
    """A disk with room for bytes and for no file."""
    home = small_disk("inodes", "size=64m,nr_inodes=400", "a disk without inodes is told")
    if not home:
        return
    env = {"CORDON_STATE": str(home / "state"), "XDG_CONFIG_HOME": config("workspaces: {free: 0, free_percent: 0}\n")}
    workspace("create", "inodes", env=env)
    many = folder("inodes-many", {f"f{i}": f"{i}\n" for i in range(600)})
    for what, words in (("import", ("import", "inodes", many)), ("create", ("create", "second"))):
        if what == "create":
            for n in range(400):
                try:
                    (home / f"x{n}").touch()
                except OSError:
                    break
        r = workspace(*words, env=env)
        tap.ok(r.code == 1 and r.err.count("\n") == 1 and "the disk of the state folder has" in r.err and "inodes free" in r.err and "remove files there" in r.err,
               f"{what} on a disk that has no inode left names the disk, how full it is, and what to do", r.story())
    subprocess.run(["umount", str(home)])


# --- kill -9 at random instants ---------------------------------------------------------------------
def kills(count, rng):
    name = "killed"
    fresh(name)
    sides = [folder(f"side{i}", {**{f"d{k % 5}/f{k}": f"{i} {k}\n" for k in range(12)}, "side": str(i)}) for i in range(2)]
    acknowledged = 1
    took = []
    for i in range(3):  # the fastest: what held up one of them does not hold up all
        start = time.monotonic()
        workspace("import", name, sides[i % 2])
        took.append(time.monotonic() - start)
    whole = min(took)
    heads = 4  # commits so far, as git counts them
    bad, killed, committed = [], 0, 0
    latest = {k: whole for k in range(3)}  # of each command: the latest instant to kill it at, so that about half are still at work
    for i in range(count):
        words = (["import", name, str(sides[(i + 1) % 2])], ["snapshot", name, "--name", f"s{i}"], ["restore", name, "head~1"])[i % 3]
        p = subprocess.Popen(programs.command(["workspace", *words]), env=tapsys.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd="/")
        time.sleep(rng.uniform(0, latest[i % 3]))
        p.send_signal(signal.SIGKILL)
        out = p.communicate()[0].decode()
        latest[i % 3] *= 1.25 if p.returncode else 0.8
        told = re.match(r"[0-9a-f]{40}$", out.strip()) is not None
        code, text = in_store(name, "rev-list", "--count", "main")
        now = int(text) if code == 0 else -1
        killed += p.returncode == -signal.SIGKILL
        committed += now > heads
        if now not in (heads, heads + 1) or told and now != heads + 1:
            bad.append((i, words, heads, text, told))
        heads = max(now, heads)
        if i % 10 == 9 or i == count - 1:
            good, text = fsck(name)
            if not good:
                bad.append((i, text))
    r = workspace("snapshot", name, "--name", "after")
    tap.ok(not bad and r.code == 0, f"killed at {count} instants: the head is the old state or the new one, nothing acknowledged is lost, git fsck is clean, the next command works", bad[:3], r.story())
    tap.ok(killed >= count // 6 and committed, "some were killed before their end, and some committed", (killed, committed))
    rest = [p for p in store(name).rglob("*") if p.name.endswith(".lock") or p.name.startswith("tmp_")]
    tap.ok(not rest, "what the killed left half done is gone after the next command", rest[:3])
    bad = []
    for i in range(max(count // 3, 6)):
        verb = ("create", "delete")[i % 2]
        workspace("create" if i % 2 else "delete", "unsteady")
        p = subprocess.Popen(programs.command(["workspace", verb, "unsteady"]), env=tapsys.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")
        time.sleep(rng.uniform(0, whole))
        p.kill()
        p.wait()
        listed = {w["workspace"] for w in workspace("list", "--json").json}
        if "unsteady" in listed and not fsck("unsteady")[0]:
            bad.append((i, verb, fsck("unsteady")[1]))
    workspace("delete", "unsteady")
    r = workspace("create", "unsteady")
    tap.ok(not bad and r.code == 0, "create and delete killed at random instants: a workspace is there whole or not at all", bad[:3], r.story())
    workspace("delete", "unsteady")
    rest = [p for p in os.listdir(store(name).parent.parent) if p.startswith((".new-", ".old-"))]
    tap.ok(not rest, "nothing of the killed creates and deletes is left after the next command", rest)


def kills_full(count, rng):
    """The same on a disk that has room for a part of a commit: what fails and what is killed leaves the head."""
    home = small_disk("nearly", "size=6m", "killed on a full disk: the head is the old state or the new one")
    if not home:
        return
    env = {"CORDON_STATE": str(home / "state"), "XDG_CONFIG_HOME": config("workspaces: {free: 0, free_percent: 0}\n")}
    repo, filler = home / "state/workspaces/full/store.git", home / "filler"
    bad, refused, killed, heads = [], 0, 0, 0
    for i in range(count):
        if i % 25 == 0:  # history fills the disk for good
            filler.unlink(missing_ok=True)
            workspace("delete", "full", env=env)
            workspace("create", "full", env=env)
            heads = 1
        side = folder("side", {f"f{k}": os.urandom(20_000) for k in range(10)})
        filler.write_bytes(b"")
        room = os.statvfs(home).f_bavail * 4096
        filler.write_bytes(bytes(max(0, room - (rng.randrange(400_000) if i else 0))))  # the first finds none
        start = time.monotonic()
        p = subprocess.Popen(programs.command(["workspace", "import", "full", str(side)]), env=tapsys.clean_env(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/")
        if i % 2:
            time.sleep(rng.uniform(0, 0.1))
            p.kill()
        out = p.communicate()[0].decode()
        killed += p.returncode == -signal.SIGKILL
        refused += p.returncode == 1
        code, text = git("--git-dir", repo, "rev-list", "--count", "main")
        now = int(text) if code == 0 else -1
        told = re.match(r"[0-9a-f]{40}$", out.strip()) is not None
        clean = git("--git-dir", repo, "fsck", "--strict", "--no-dangling", "--no-progress")
        if now not in (heads, heads + 1) or told and now != heads + 1 or clean != (0, ""):
            bad.append((i, heads, text, told, clean, time.monotonic() - start))
        heads = max(now, heads)
    filler.unlink()
    workspace("delete", "full", env=env)
    tap.ok(not bad and workspace("create", "full", env=env).code == 0, f"{count} commits on a nearly full disk, half of them killed: the head is the old state or the new one, nothing acknowledged is lost, git fsck is clean", bad[:2])
    tap.ok(refused and (killed or count < 100), "some commits on a nearly full disk found it full, and some were killed", (refused, killed))
    subprocess.run(["umount", str(home)])


def certificates():
    """libgit2 parses the machine's certificates where it can read them, which takes as long as all else that a command does."""
    file = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    name = "cordon-workspace reads no certificates"
    copy = TOP / "certificates"
    if os.geteuid() or not file.is_file():
        tap.skip(name, "they are not here, or another's")
        return
    shutil.copy(file, copy)
    if subprocess.run(["mount", "--bind", str(copy), str(file)], stderr=subprocess.DEVNULL).returncode:  # a file of this test's, which nobody else opens
        tap.skip(name, "nothing can be mounted here")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = libc.inotify_add_watch(events, str(file).encode(), 0x20)  # IN_OPEN
    workspace("create", "certificates")
    r = workspace("log", "certificates")
    try:
        opened = os.read(events, 4096)
    except BlockingIOError:
        opened = b""
    with open(file, "rb"):
        pass
    tap.ok(watched >= 0 and r.code == 0 and not opened and os.read(events, 4096), name, r.story(), opened)
    os.close(events)
    subprocess.run(["umount", str(file)], check=False)


tapsys.enter_empty_network()
if len(sys.argv) > 2:
    number = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
    tap.figure(f"{sys.argv[2]} kills, --seed {number}")
    kills(int(sys.argv[2]), random.Random(number))
    kills_full(int(sys.argv[2]), random.Random(number))
    tap.done()
for person in users():
    made = ordinary(person)
    states(person, *made)
large(users()[-1])
certificates()
usage()
damaged()
odd_files()
terminal()
if os.geteuid() == 0:
    unreadable()
swapped()
contained()
half_done()
bounds()
unfinished()
many()
kept_free()
full_disk()
no_inodes()
kills(24, random.Random())
kills_full(12, random.Random())
tap.done()
