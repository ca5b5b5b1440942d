# SPDX-License-Identifier: Apache-2.0
"""Files of `strict`: served over the worker's channel, beneath /workspace, /tmp and what --ro and --rw show, and nowhere else; cold, warm, in
sessions.

Usage: served_files.py BUILD. What honest programs print is in tests/cases/python/benign/files.cases; messages that a program forges
are in guards_lost.py."""
import atexit
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time

import exits
import pooltest
import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
TOP = programs.dir / "served"
TOP.mkdir()
TOP.chmod(0o755)


class Person(pooltest.User):
    def __init__(self, who):
        super().__init__(tap, programs, who)
        self.home = TOP / who
        (self.home / "in/sub").mkdir(parents=True)
        (self.home / "out").mkdir()
        (self.home / "in/data.csv").write_text("a,b\n1,2\n")
        os.symlink("/etc/passwd", self.home / "in/link")
        os.symlink("/etc", self.home / "in/sub/etc")
        if who == "user" and os.geteuid() == 0:
            subprocess.run(["chown", "-Rh", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", str(self.home)], check=True)

    def run(self, code, *options, **more):
        return self("run", "--json", "--profile", "strict", *options, "-c", code, **more)

    def says(self, code, want, name, *options):
        r = self.run(code, *options)
        self.ok(r["status"] == "ok" and r["stdout"] == want, name, r["stdout"], r)
        return r


# --- modes, text and bytes, as Python has them: the same program by Python's own files prints the same ---------

MODES = r"""
import io, os
def tried(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e)[:60]
for mode in ("r", "w", "a", "x", "r+", "w+", "a+", "x+", "rb", "wb", "ab+", "rw", "", "q", "rbt", "U", "r+b"):
    with open("m.bin", "wb") as f:
        f.write(b"one\r\ntwo\nthree")
    f = tried(open, "m.bin", mode)
    if isinstance(f, tuple):
        print(mode, f)
        continue
    print(mode, f.readable(), f.writable(), f.seekable(), f.tell(), tried(f.read, 2), f.closed, f.mode, f.name)
    print(tried(f.write, "zz" if "b" not in mode else b"zz"), tried(f.seek, 0), tried(f.readline), tried(f.readlines), tried(f.truncate, 4), f.close(), f.closed)
    print(tried(f.read), tried(f.__enter__), open("m.bin", "rb").read())
    os.remove("m.bin")
with open("t", "w", encoding="utf-16", newline="\r\n") as f:
    print(f.write("a\nb\u00e9\n"), f.encoding)
print(open("t", "rb").read(), open("t", encoding="utf-16").read(), ascii(open("t", encoding="utf-16", newline="").read()))
print(tried(open("t", encoding="ascii").read), ascii(open("t", encoding="ascii", errors="replace").read()[:4]))
with open("b", "wb+", buffering=0) as f:
    print(f.write(bytearray(b"0123456789")), open("b").read(), f.seek(-3, 2), f.read(), f.tell(), f.seek(2), f.truncate(), f.read())
with open("l", "w") as f:
    f.writelines(str(i) + "\n" for i in range(3000))
    print("last", end="", file=f)
with open("l") as f:
    print(next(f), sum(len(line) for line in f), f.readline() == "")
print(tried(open, "nothing/x", "w"), tried(open, "nothing"), tried(open, "l/x"), tried(open, "."), tried(open, "l", "x"), tried(open, b"l").read(4))
print(tried(os.listdir, "l"), tried(os.mkdir, "l"), tried(os.rmdir, "nothing"), tried(os.remove, "."), tried(os.rename, "nothing", "y"))
print(tried(open, "a\0b"), tried(open, 3.5), tried(open, "l", encoding=5), tried(open, "l", "rb", encoding="utf-8"), tried(open, "x" * 300))
os.makedirs("d/e/f"); os.chdir("d"); print(os.path.basename(os.getcwd()), os.listdir(), os.path.abspath("e") == os.getcwd() + "/e", os.path.realpath("e/../e") == os.getcwd() + "/e")
print(os.path.relpath("e/f", "e"), tried(os.rmdir, "e"), os.removedirs("e/f"), os.path.exists("e"), tried(os.makedirs, "../l"))
class Odd(str):
    def __str__(self): return "odd"
with open("odd", "w") as f:
    f.write(Odd("plain")); print(tried(f.write, 5), tried(f.read))
print(open("odd").read(), os.stat("odd").st_size, os.path.getsize("odd"), [ (e.name, e.is_file(), e.is_dir(), e.stat().st_size) for e in os.scandir(".")])
"""


def same_as_python(p):
    folder = p.home / "python"
    folder.mkdir()
    want = subprocess.run(["/usr/bin/python3", "-I", "-X", "utf8", "-c", MODES], cwd=folder, capture_output=True, text=True).stdout
    tap.ok(want.count("\n") > 40, "Python's own files have something to compare with", want)
    for warm in (False, True):
        how = "warm" if warm else "cold"
        if warm:
            p.ok(p("pool", "start", "--profile", "strict").code == 0, "a pool is started")
            atexit.register(p, "pool", "stop", "--force")
            pooltest.until(lambda: all(t["ready"] for t in p.status()["templates"]))
        r = p.run(MODES)
        differ = [f"{a!r} but Python: {b!r}" for a, b in zip(r["stdout"].splitlines(), want.splitlines()) if a != b]
        p.ok(r["status"] == "ok" and r["stdout"] == want, f"{how}: every mode of open() and every error is as Python's", *differ[:8], r)


# --- paths that lead elsewhere ---------------------------------------------------------------------------------

OUTSIDE = ["/etc/passwd", "/", "..", "../etc/passwd", "/workspace/../etc/passwd", "/tmp/../../etc/passwd", "/workspace/../../../../etc/passwd", "//etc//passwd",
           "/proc/self/maps", "/proc/self/root/etc/passwd", "/proc/self/fd/0", "/dev/null", "/dev/zero", "/dev/stdin", "/usr/bin/env", "/live/own/workspace/x", "/cordon-python",
           "/workspacex", "/tmpx", "/WORKSPACE/x", "/sys/kernel", "sub/../../etc/passwd", "/run", "/workspace/./../etc/passwd"]
ACTS = """
import glob, os, pathlib, shutil, sys, tempfile, zipfile
open('own', 'w').write('own')
acts = [lambda p: open(p).read(), lambda p: open(p, 'w'), lambda p: open(p, 'a'), lambda p: open(p, 'x'), lambda p: open(p, 'r+b'), os.listdir, lambda p: next(os.scandir(p)), os.remove, os.rmdir,
        lambda p: os.mkdir(p + '/new'), lambda p: os.rename(p, 'got'), lambda p: os.rename('own', p), lambda p: os.truncate(p, 0), os.chdir, os.stat, lambda p: shutil.copy(p, 'got'), lambda p: shutil.copy('own', p),
        shutil.rmtree, lambda p: shutil.move('own', p), lambda p: pathlib.Path(p).read_text(), lambda p: pathlib.Path(p).touch(), lambda p: list(pathlib.Path(p).iterdir()),
        lambda p: tempfile.mkdtemp(dir=p), lambda p: zipfile.ZipFile(p, 'w'), lambda p: zipfile.ZipFile(p).namelist()]
for path in %r:
    for i, act in enumerate(acts):
        try:
            print('REACHED', path, i, act(path))
        except OSError as e:
            if e.errno not in (13, 18, 20, 40, 21, 16) + (2,) * (act is shutil.rmtree):
                print('as if it were there:', path, i, repr(e))
        except zipfile.BadZipFile:
            print('REACHED', path, i)
    if os.path.exists(path) or os.path.isdir(path) or glob.glob(path + '*') and path not in ('/tmp', '/workspace'):
        print('seen', path)
print(sorted(os.listdir('/workspace')), open('own').read())
"""


def elsewhere(p):
    r = p.says(ACTS % (OUTSIDE,), "['own'] own\n", f"{len(OUTSIDE)} paths that lead elsewhere are reached by nothing")
    told = [v["detail"] for v in r["violations"] if v["rule"] == "py.files.outside"]
    p.ok(any(t.startswith("/etc/passwd:") for t in told) and all(v["layer"] == "filesystem" and v["hint"] for v in r["violations"]), "what was tried elsewhere is reported by path", r)
    r = p.says("import os\nprint(os.path.exists('/etc/passwd'), os.path.isdir('/usr'))", "False False\n", "what lies elsewhere is not seen")
    p.ok(r["violations"] == [], "to ask whether something is there is nothing to report", r)
    p.says("import os\nopen('/tmp/../workspace/x', 'w').write('1')\nos.mkdir('d')\nprint(open('d/../x').read(), os.listdir('/workspace/d/..') == os.listdir('.'))", "1 True\n", "a path may go up within the two folders")
    p.says("import os\nfor s in ('/workspace', '/tmp'):\n    for f in (os.rmdir, os.remove, lambda p: os.rename(p, 'y')):\n        try:\n            print('REACHED', f(s))\n        except OSError as e:\n            print(e.errno)",
           "16\n21\n16\n" * 2, "the two folders themselves stay")


def links(p):
    code = """
import os, pathlib, shutil, zipfile
print(os.path.islink('link'), os.path.exists('link'), pathlib.Path('link').is_symlink(), os.path.isfile('link'))
for act in (lambda: open('link').read(), lambda: open('sub/etc/passwd').read(), lambda: os.listdir('sub/etc'), lambda: os.stat('link'), lambda: open('link', 'w'), lambda: os.truncate('link', 0),
            lambda: shutil.copytree('.', 'all'), lambda: open('sub/etc/new', 'w'), lambda: os.mkdir('sub/etc/new'), lambda: os.rename('data.csv', 'sub/etc/d'), lambda: os.rename('sub/etc/passwd', 'p'),
            lambda: os.remove('sub/etc/passwd'), lambda: pathlib.Path('link').read_bytes(), lambda: zipfile.ZipFile('z', 'w').write('link')):
    try:
        print('REACHED', act())
    except OSError as e:
        print('held')
print([n for _, _, ns in os.walk('sub') for n in ns], open('data.csv').read())
os.remove('link'); print(os.path.lexists('link'))
"""
    r = p.run(code, "--in", str(p.home / "in"))
    p.ok(r["status"] == "ok" and r["stdout"] == "True False True False\n" + "held\n" * 14 + "['etc'] a,b\n1,2\n\nFalse\n", "a link that --in brought is told and never followed", r["stdout"], r)


# --- in and out, limits ----------------------------------------------------------------------------------------

def in_and_out(p):
    r = p.run("import csv\nrows = list(csv.reader(open('data.csv')))\nopen('sum.txt', 'w').write(str(rows))\nf = open('open.txt', 'w')\nf.write('not closed')",
              "--in", str(p.home / "in/data.csv"), "--out", str(p.home / "out"))
    files = {f["path"]: f["bytes"] for f in r["files"]}
    p.ok(r["status"] == "ok" and files == {"/workspace/sum.txt": 24, "/workspace/open.txt": 10} and (p.home / "out/sum.txt").read_text() == "[['a', 'b'], ['1', '2']]"
         and (p.home / "out/open.txt").read_text() == "not closed", "--in brings files, --out takes them, also what was not closed", files, r)
    r = p.run("try:\n    open('big', 'wb').write(bytes(5000000))\nexcept OSError as e:\n    print(e.errno)", "--disk", "1m")
    p.ok(r["stdout"] == "28\n" and "limit.disk" in r.rules(), "the quota of bytes holds, and is reported", r)
    r = p.run("import os\ntry:\n    for i in range(1000):\n        open(f'f{i}', 'w').close()\nexcept OSError as e:\n    print(e.errno, len(os.listdir()) < 200)", "--inodes", "100")
    p.ok(r["stdout"] == "28 True\n" and "limit.inodes" in r.rules(), "the quota of files holds, and is reported", r)
    r = p.says("held = [open(f'f{i % 7}', 'a+') for i in range(300)]\nfor i, f in enumerate(held):\n    f.write('x')\n    f.flush()\nprint(sum(len(open(f'f{i}').read()) for i in range(7)))", "300\n",
               "hundreds of open files need no descriptor", "--descriptors", "16", "--timeout", "120s")
    p.says("f = open('x', 'wb')\nf.truncate(50000000)\nf.close()\nwith open('x', 'rb') as f:\n    print(f.seek(40000000), len(f.read(10)), len(f.read()))", "40000000 10 9999990\n", "a large file is read from its middle")
    r = p("run", "--json", "--profile", "locked", "-c", "open('x', 'w')")
    p.ok(r["status"] == "blocked" and r.rules() == ["py.call.open"], "locked has no files, by its list", r)


# --- folders and files of the host -------------------------------------------------------------------------------

SHOWN = """
import glob, os, pathlib, shutil, zipfile
def tried(f, *args):
    try:
        return f(*args)
    except OSError as e:
        return e.errno
print(open('/data/data.csv').read().split(), sorted(os.listdir('/data')), os.path.isdir('/data/sub'), os.stat('/data/data.csv').st_size, open('/one').read(3), sorted(glob.glob('/data/*.csv')))
print(sorted(n for _, folders, files in os.walk('/data') for n in files), pathlib.Path('/data/../one').read_text()[:1], os.path.exists('/dat'), os.path.exists('/data/data.csv/x'))
os.chdir('/data'); print(os.getcwd(), open('data.csv').readline().strip()); os.chdir('/workspace')
ro = [lambda: open('/data/data.csv', 'w'), lambda: open('/data/data.csv', 'a'), lambda: open('/data/data.csv', 'r+'), lambda: open('/data/new', 'w'), lambda: os.remove('/data/data.csv'),
      lambda: os.mkdir('/data/new'), lambda: os.rmdir('/data/sub'), lambda: os.rename('/data/data.csv', '/data/b'), lambda: os.truncate('/data/data.csv', 0), lambda: pathlib.Path('/data/data.csv').touch(),
      lambda: open('/one', 'w'), lambda: os.truncate('/one', 0), lambda: shutil.rmtree('/data/sub'), lambda: os.rename('/out/old', '/data/old'), lambda: os.rename('/data/data.csv', '/out/d')]
print([tried(f) for f in ro], tried(os.mkdir, '/data/sub'), tried(open, '/data/nothing', 'r+'))
open('/out/new', 'w').write('new'); open('/out/old', 'a').write('2'); os.makedirs('/out/d/e'); open('/two', 'w').write('second'); os.rename('/out/new', '/out/d/n')
open('x', 'w').write('moved'); print(tried(os.rename, 'x', '/out/x'), tried(os.rename, '/out/old', '/three/old')); shutil.move('x', '/out/x')
print(tried(os.remove, '/two'), tried(os.rmdir, '/out'), tried(os.remove, '/data'), tried(open, '/two/x'), tried(os.listdir, '/two'), tried(open, '/two', 'x'), open('/two').read())
print([tried(f) for f in (lambda: open('/data/link').read(), lambda: open('/data/sub/etc/passwd').read(), lambda: os.listdir('/data/sub/etc'), lambda: open('/out/../etc/passwd'), lambda: open('/secret'),
                          lambda: open('/data/../../etc/passwd'))], os.path.islink('/data/link'))
"""


def shown(p):
    made = lambda name, text: (p.home / name).parent.mkdir(exist_ok=True) or (p.home / name).write_text(text)
    for name, text in (("rw/old", "1"), ("third/f", "3"), ("two", "first"), ("secret", "s")):
        made(name, text)
    os.chmod(p.home / "two", 0o600)
    if p.who == "user" and os.geteuid() == 0:
        subprocess.run(["chown", "-Rh", f"{tapsys.ROOTLESS}:{tapsys.ROOTLESS}", str(p.home)], check=True)
    share = ["--ro", f"{p.home}/in:/data", "--rw", f"{p.home}/rw:/out", "--ro", f"{p.home}/in/data.csv:/one", "--rw", f"{p.home}/two:/two", "--rw", f"{p.home}/third:/three"]
    r = p.run(SHOWN, *share)
    want = ("['a,b', '1,2'] ['data.csv', 'link', 'sub'] True 8 a,b ['/data/data.csv']\n['data.csv', 'etc', 'link'] a False False\n/data a,b\n"
            + "[" + ", ".join(["30"] * 15) + "] 17 2\n18 18\n16 16 30 20 20 17 second\n[40, 40, 40, 13, 13, 13] True\n")
    differ = [f"{a!r} but wanted {b!r}" for a, b in zip(r["stdout"].splitlines(), want.splitlines()) if a != b]
    p.ok(r["status"] == "ok" and r["stdout"] == want, "folders and files of --ro and --rw are served as a mount would show them: read-only ones cannot be changed, links lead nowhere", *differ, r)
    left = {n: (p.home / "rw" / n).read_text() for n in ("old", "d/n", "x")}
    owner = (p.home / "rw").stat().st_uid
    p.ok(left == {"old": "12", "d/n": "new", "x": "moved"} and (p.home / "rw/d/e").is_dir() and (p.home / "two").read_text() == "second" and (p.home / "rw/d/n").stat().st_uid == owner,
         "what is written through --rw is on the host at once, and belongs to the owner of the folder", left)
    p.ok((p.home / "in/data.csv").read_text() == "a,b\n1,2\n" and not (p.home / "in/new").exists() and (p.home / "in/sub").is_dir(), "nothing of what --ro shows was changed")
    told = sorted({v["detail"].split(":")[0] for v in r["violations"] if v["rule"] == "py.files.outside"})
    p.ok(told == ["/data/../../etc/passwd", "/out/../etc/passwd", "/secret"], "paths beside the shared folders are reported by name", told, r)
    r = p.run("import os\nprint(os.getcwd(), os.listdir())\nopen('here', 'w').write('h')\nprint(open('/data/sub/here').read())", "--ro", f"{p.home}/in:/data", "--rw", f"{p.home}/third:/workspace", "--rw", f"{p.home}/third:/data/sub")
    p.ok(r["stdout"] == "/workspace ['f']\nh\n" and (p.home / "third/here").read_text() == "h", "a program starts in the folder that --rw shows as /workspace, and the longest name that a path begins with says where it lies", r)
    for options, words in ((["--profile", "locked"], "a program of Python under locked can open no file, so it would not see /data"), (["--lang", "ruby"], "a program of Ruby under strict can open no file")):
        r = p("run", "--json", *options, "--ro", f"{p.home}/in:/data", "-c", "1")
        p.ok(r.code == 125 and words in r.err + r.out, f"--ro is refused by name where nothing is served: {options[1]}", r.out, r.err)
    for language, dest in (("ruby", "/workspace/data"), ("javascript", "/workspaces")):
        r = p("run", "--json", "--lang", language, "--ro", f"{p.home}/in:{dest}", "-c", "1")
        p.ok(r.code == 125 and "under strict can open no file" in r.err + r.out, f"--ro at {dest} is refused by name to a program of {language}, which imports nothing from there", r.out, r.err)


# --- the process that serves -----------------------------------------------------------------------------------

APPENDS = """import time
try:
    for i in range(200):
        open('x', 'a').write('.')
        time.sleep(0.01)
except OSError as e:
    print(e.errno)
try:
    print(len(open('x').read()))
except OSError as e:
    print(e.errno)
"""


def strike(call, act):
    """What CALL gives, a program of APPENDS, and what was seen of the process that serves its files right before ACT, which is done to
    it when it first waits for a request."""
    processes, found, ended = pooltest.Processes(programs), [], threading.Event()

    def watch():
        while not ended.is_set() and not found:
            for pid in (pid for pid, name in processes.all().items() if name == "cordon-tool"):
                status = pooltest.proc(pid, "status") or ""
                if "Seccomp:\t2" in status and "State:\tS" in status:  # else it is still on its way to the first request's end
                    found.append((status, pid, len(os.listdir(f"/proc/{pid}/fd"))))
                    act(pid)
    watcher = threading.Thread(target=watch)
    watcher.start()
    r = call()
    ended.set()
    watcher.join()
    return r, found


def during_a_request(number):
    """It is stopped, so that the next request finds no answer, and then gets its signal."""
    def act(pid):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)  # too short on a busy machine, perhaps: then the signal comes between two requests, and it is tried again
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)
    return act


def until_hit(call, number, hit):
    """The result of the first of ten tries that HIT says was struck in the middle of a request; all others must be as if nothing had been."""
    for _ in range(10):
        r, found = strike(call, during_a_request(number))
        if hit(r) or not (r["status"] == "ok" and r["stdout"] == "200\n"):
            break
    return r, found


def server(p):
    r, found = strike(lambda: p.run(APPENDS), lambda pid: os.kill(pid, signal.SIGKILL))
    lost = lambda r: r["status"] == "crashed" and r["error"]["type"] == "JailLost" and r["error"]["category"] == "HOST" and "cordon-tool" in r["reason"] and not r["violations"]
    p.ok(found and (r["status"] == "ok" and r["stdout"] == "200\n" and not r["violations"] or lost(r)), "a program whose files' process is killed between two requests goes on with another", r)
    r, _ = until_hit(lambda: p.run(APPENDS), signal.SIGKILL, lost)
    p.ok(lost(r) and r.code == exits.by_signal(signal.SIGKILL), "a run whose files' process is killed during a request ends, and it is the host's fault", r)
    r, found = strike(lambda: p.run(APPENDS, "--timeout", f"{4 * tapsys.SLOW}s"), lambda pid: os.kill(pid, signal.SIGSTOP))
    p.ok(r["status"] == "crashed" and r["error"]["category"] == "HOST" and "cordon-tool" in r["reason"] and "stopped" in r["reason"],
         "a run that waits for its files until its time is over, since their process is stopped, is told so", r)
    told = lambda r: any(v["rule"] == "py.files.unserved" and "signal 11" in v["detail"] for v in r["violations"] or ())
    r, _ = until_hit(lambda: p.run(APPENDS), signal.SIGSEGV, told)
    p.ok(told(r) and r["status"] == "ok" and r["stdout"] == "5\n5\n", "a program whose files' process dies of a request gets an error, which is told, and runs on", r)
    for name, limit, most in (("descriptors", resource.RLIMIT_NOFILE, 100), ("address space", resource.RLIMIT_AS, 400 << 20)):
        r = p.run("open('x', 'w').write('1')\nprint(open('x').read())", preexec_fn=lambda: resource.setrlimit(limit, (most, most)))
        p.ok(r["stdout"] == "1\n", f"a program has its files where the user's own limit of {name} is below that of the process that serves them", r)
    p("session", "new", "struck")
    told = lambda r: any(v["rule"] == "py.files.unserved" and "signal 9" in v["detail"] for v in r["violations"] or ())
    call = lambda code="import os\nos.path.exists('x') and os.remove('x')\n" + APPENDS: p("session", "run", "struck", "--json", "-c", code)
    r, _ = until_hit(call, signal.SIGKILL, lambda r: told(r) and r["stdout"] != "200\n")  # the error of exists() is "no"
    p.ok(told(r) and r["stdout"].startswith("5\n"), "a call whose files' process is killed during a request gets an error, which is told", r)
    p.ok(call("open('y', 'w').write('1')\nprint(open('y').read())")["stdout"] == "1\n", "a session whose files' process was killed has its files in the next call")
    p("session", "close", "struck")
    if found:
        status = dict(line.split(":\t", 1) for line in found[0][0].splitlines() if ":\t" in line)
        p.ok(status["Seccomp"] == "2" and status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == 0 and status["Uid"].split()[1] != "0", "the process that serves files has a table of system calls, no capability, and is not root", status)
        p.ok(found[0][2] <= 7, "the process that serves files holds its streams, a socket, the folder and its two parts", found[0][2])
    tool = programs.bin / "cordon-tool"
    hidden = tool.rename(programs.bin / "away")
    try:
        p.says("print(6 * 7)", "42\n", "a run without files needs no process that serves files")
        r = p.run("try:\n    open('x', 'w')\nexcept OSError as e:\n    print(e.errno)")
        p.ok("42" not in r["stdout"] and r.out.count("cordon-tool") >= 1, "where the program is not there, a run with files says so", r)
    finally:
        hidden.rename(tool)


# --- sessions --------------------------------------------------------------------------------------------------

def sessions(p):
    name = f"served-{p.who}"
    call = lambda n, code: p("session", "run", n, "--json", "-c", code)
    p.ok(p("session", "new", name).code == 0, "a session is made")
    r = call(name, "import os\nf = open('log', 'w')\nf.write('one')\nos.makedirs('d')")
    p.ok(r["status"] == "ok" and [x["path"] for x in r["files"]] == ["/workspace/log"], "a call of a session writes, and its files are listed", r)
    r = call(name, "f.write(' two')\nf.flush()\nprint(open('log').read(), os.listdir())")
    p.ok(r["stdout"] in ("one two ['log', 'd']\n", "one two ['d', 'log']\n"), "a file stays open from one call to the next", r)
    branches = [f"{name}-{i}" for i in range(3)]
    for b in branches:
        p.ok(p("session", "fork", name, b).code == 0, f"{b} is forked")
    runs = [r for _, r in tapsys.side_by_side(lambda b: (call(b, f"for i in range(50):\n    open('log', 'a').write({b[-1]!r})\n    os.rename('log', 'other'); os.rename('other', 'log')\nprint(open('log').read())")), branches)]
    p.ok([r["stdout"] for r in runs] == [f"one two{b[-1] * 50}\n" for b in branches], "branches that change the same names at once each see their own", *runs)
    r = call(name, "f.write(' three')\nf.close()\nprint(open('log').read())")
    p.ok(r["stdout"] == "one two three\n", "the session has what it wrote itself", r)
    (p.home / "put.txt").write_text("put")
    p.ok(p("session", "put", name, str(p.home / "put.txt")).code == 0 and call(name, "print(open('put.txt').read())")["stdout"] == "put\n", "what session put brings is read")
    p.ok(p("session", "get", name, "log", "-").out == "one two three", "session get takes what was written")
    for n in [name, *branches]:
        p("session", "close", n)


def workspace(p):
    w = f"w-{p.who}"
    p("workspace", "create", w)
    p("workspace", "import", w, str(p.home / "in/sub"))
    (p.home / "base.txt").write_text("base")
    p("workspace", "import", w, str(p.home / "python"))
    r = p.run("import os, shutil\nprint(open('odd').read() if os.path.exists('odd') else sorted(os.listdir())[:1])\nopen('l', 'a').write('+')\nos.remove('t')\nopen('/tmp/q', 'w').write('q')\nshutil.move('/tmp/q', 'q')", "--workspace", w)
    p.ok(r["status"] == "ok" and not r["violations"], "a run in a workspace reads and changes its files", r)
    out = p("workspace", "diff", w).out
    p.ok("deleted file" in out and "+++ b/q" in out and "+++ b/l" in out, "what a run in a workspace changed through served files is committed", out)


first, last = tapsys.users()[0], tapsys.users()[-1]
for who in tapsys.users():
    p = Person(who)
    if who == last:
        same_as_python(p)
        elsewhere(p)
    else:
        p.says("open('x', 'w').write('1')\nprint(open('x').read())", "1\n", "a program writes and reads")
    links(p)
    shown(p)
    if who == last:
        in_and_out(p)
        workspace(p)
    sessions(p) # root's have ids of their own: a file is made with that of its session
    server(p)
tap.done()
