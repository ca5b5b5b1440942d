#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions in a workspace: the head is what they begin with, each call is a commit, a head that moved is what the next call sees,
a fork is in a clone.

Usage: workspace_sessions.py BUILD."""
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tapsys
from tapsys import House, cordon, users
from workspacetest import TOP, fresh, git, own_disks, programs, stacked_states, tap, workspace

own_disks(users())
LIST = "import os\nprint(sorted(os.listdir('/workspace')))"


def call(session, code, *options, who):
    return cordon(programs, ["session", "run", "--json", session, "-c", code, *options], who)


def head(name, who, ref="main"):
    return git(name, "rev-parse", ref, who=who).strip()


def show(name, path, who, ref="main"):
    return git(name, "show", f"{ref}:{path}", who=who)


def session(*options, who):
    return cordon(programs, ["session", "new", "--profile", "standard", *options], who)


def snapshot(r):
    return r["snapshot"] or {}


def ordinary(who, how=""):
    start = fresh("w", {"a": "a\n", "d/e": "e\n"}, who)
    made = session("--workspace", "w", who=who)
    s = made.out.strip()
    tap.ok(made.code == 0 and s, f"{who}{how}: a session is made in a workspace", made.story())
    r = call(s, "print(open('a').read(), open('/workspace/d/e').read())", who=who)
    tap.ok(r["status"] == "ok" and r["stdout"] == "a\n e\n\n", f"{who}{how}: a session in a workspace has the files of the head", r.story())
    tap.ok(snapshot(r).get("changed") is False and snapshot(r).get("id") == start == head("w", who), f"{who}{how}: a call that touched nothing makes no commit", r.story())
    r = call(s, "x = 7\nopen('d/new', 'w').write('n')\nimport os; os.remove('a')", who=who)
    tap.ok(snapshot(r).get("changed") is True and snapshot(r)["id"] == head("w", who) and git("w", "log", "-1", "--format=%an", who=who).strip() == r["id"],
           f"{who}{how}: a call that changed files is a commit with the call's id as its author", r.story())
    tap.eq(git("w", "ls-tree", "-r", "--name-only", "main", who=who), "d/e\nd/new\n", f"{who}{how}: the commit of a call has what the call made and not what it removed")
    r = call(s, "open('half', 'w').write('h')\n1 / 0", who=who)
    tap.ok(r["status"] == "error" and snapshot(r).get("id") is None and "stays in the session" in snapshot(r)["reason"] and "half" not in git("w", "ls-tree", "main", who=who),
           f"{who}{how}: what a failed call changed stays in the session and is in no commit", r.story())
    r = call(s, "print(x, open('half').read())", who=who)
    tap.ok(r["stdout"] == "7 h\n" and snapshot(r).get("changed") is True and show("w", "half", who) == "h", f"{who}{how}: the next call that ends well commits it", r.story())
    restored = workspace("restore", "w", "head~2", "--json", who=who)
    r = call(s, LIST + "\nprint(x, open('a').read())", who=who)
    tap.ok(r["stdout"] == "['a', 'd']\n7 a\n\n" and snapshot(r).get("id") == restored["id"], f"{who}{how}: a live session sees a restore at its next call, and keeps its variables", r.story())
    r = call(s, "open('after', 'w').write('1')", who=who)
    tap.eq(git("w", "log", "-1", "--format=%P", who=who).strip(), restored["id"], f"{who}{how}: the next commit of the session follows the restore")
    listed = [e["workspace"] for e in cordon(programs, ["session", "list", "--json"], who).json if e["session"] == s]
    tap.eq(listed, ["w"], f"{who}{how}: session list names the workspace")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who), "", f"{who}{how}: git fsck is clean after the commits of a session")
    return s


def behind(who):
    """Where a session cannot follow the head it is told why not."""
    fresh("w", {"a": "a\n"}, who)
    s = session("--workspace", "w", who=who).out.strip()
    call(s, "open('mine', 'w').write('m')\n1 / 0", who=who)
    workspace("import", "w", TOP / "in", who=who)
    (TOP / "in/b").write_text("b\n")
    other = workspace("import", "w", TOP / "in", "--json", who=who)["id"]
    r = call(s, LIST, who=who)
    tap.ok(r["status"] == "ok" and r["stdout"] == "['a', 'mine']\n" and snapshot(r).get("id") is None and snapshot(r)["reason"].startswith("conflict: w changed") and head("w", who) == other,
           f"{who}: a session with changes of its own keeps them when the head moves, and is told why", r.story())
    cordon(programs, ["session", "close", s], who)
    s = session("--workspace", "w", who=who).out.strip()
    workspace("delete", "w", who=who)
    r = call(s, LIST + "\nopen('x', 'w').close()", who=who)
    tap.ok(r["status"] == "ok" and snapshot(r).get("id") is None and "no workspace 'w'" in snapshot(r)["reason"], f"{who}: a session whose workspace was deleted goes on and commits nothing", r.story())
    cordon(programs, ["session", "close", s], who)
    none = session("--workspace", "nowhere", who=who)
    tap.ok(none.code == 125 and "no workspace 'nowhere'" in none.err, f"{who}: a session in a workspace that is not there is refused by name", none.story())


def forked(who, s, how=""):
    base = head("w", who)
    f = cordon(programs, ["session", "fork", "--json", s], who)
    b = f["session"]
    tap.eq(f["workspace"], "w@clone-1", f"{who}{how}: the fork of a session in a workspace is in a clone of it", f.story())
    r = call(b, "print(x)\nopen('branch', 'w').write('b')", who=who)
    tap.ok(r["stdout"] == "7\n" and snapshot(r).get("workspace") == "w@clone-1" and head("w", who) == base and show("w", "branch", who, "clone-1") == "b",
           f"{who}{how}: what the fork changes is committed to the clone, and not to the workspace", r.story())
    r = call(s, LIST, who=who)
    tap.ok("branch" not in r["stdout"] and snapshot(r).get("workspace") == "w", f"{who}{how}: the session that was forked does not see it", r.story())
    tap.ok(workspace("verify", "w@clone-1", who=who).code == 0 and workspace("merge", "w@clone-1", who=who).code == 0, f"{who}{how}: the clone of a fork can be verified and merged")
    r = call(s, LIST, who=who)
    tap.ok("branch" in r["stdout"], f"{who}{how}: the session sees the merge at its next call", r.story())
    r = call(b, "print(1)\nopen('late', 'w').close()", who=who)
    tap.ok(r["status"] == "ok" and "has no clone 'clone-1'" in (snapshot(r).get("reason") or ""), f"{who}{how}: the fork goes on when its clone is gone, and is told", r.story())


def hostile(who):
    """What a session may leave, and what it may try while it lives."""
    base = fresh("w", {"a": "a\n"}, who)
    s = session("--workspace", "w", who=who).out.strip()
    r = call(s, "import os\nos.mkfifo('fifo'); os.symlink('/etc/passwd', 'abs'); os.mkdir('.git'); os.mkdir('shut'); open('shut/f', 'w').write('f'); os.chmod('shut', 0)\n"
             "open('closed', 'w').write('c'); os.chmod('closed', 0)\nrefused = []\n"
             "for act in (lambda: os.makedirs('/live/own/.layers/upper'), lambda: open('/live/own/.layers/forged', 'w'), lambda: os.rename('/live/own/.layers', '/live/own/l'),\n"
             "            lambda: os.rmdir('/live/own/.layers'), lambda: os.rename('/live/own/workspace', '/live/own/w'), lambda: os.rmdir('/live/own/workspace')):\n"
             "    try: act()\n    except OSError as e: refused.append(e.errno)\nprint(len(refused), os.listdir('/live/own/.layers'))", who=who)
    tap.eq(r["stdout"], "6 []\n", f"{who}: a session sees nothing of its layers, and can make, move and remove neither them nor its /workspace", r.story())
    left = sorted(e["path"] for e in snapshot(r).get("left_out", ()))
    tap.ok(left == ["abs", "fifo"] or left == [".git", "abs", "fifo"], f"{who}: what a call left that cannot be kept is listed by name", r.story())
    tap.eq(git("w", "ls-tree", "-r", "--name-only", "main", who=who), "a\nclosed\nshut/f\n", f"{who}: files of mode 000 are committed, and nothing that a guest tried to forge", r.story())
    r = call(s, "import threading, time\ndef swap():\n    n = 0\n    while True:\n        n += 1\n        try:\n            os.unlink('t'); os.symlink('/etc/shadow', 't'); os.unlink('t'); open('t', 'w').write('mine')\n"
             "        except OSError: pass\nopen('t', 'w').write('mine')\nthreading.Thread(target=swap, daemon=True).start()\ntime.sleep(0.1)", who=who)
    text = git("w", "log", "-p", "--format=", f"{base}..main", who=who)
    tap.ok("root:" not in text and git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who) == "", f"{who}: a thread that swaps a file for a link while it is committed gets nothing of the host's",
           r.story(), text[-300:])
    workspace("restore", "w", base, who=who)
    cordon(programs, ["session", "close", s], who)
    fresh("w", {"a": "a\n", "d/e": "e\n"}, who)
    s = session("--workspace", "w", who=who).out.strip()
    call(s, "import os, threading\nopen('d/own', 'w').close(); os.unlink('d/own')\nfd = os.open('/workspace/d', os.O_RDONLY)\ndef make():\n    n = 0\n    while True:\n        n += 1\n        try:\n"
         "            os.close(os.open('x%d' % (n % 50), os.O_CREAT | os.O_WRONLY, dir_fd=fd)); os.unlink('x%d' % ((n - 7) % 50), dir_fd=fd)\n        except OSError: pass\n"
         "for _ in range(3): threading.Thread(target=make, daemon=True).start()", who=who)
    seen = []
    for i in range(4):
        (TOP / "in/a").write_text(f"{i}\n")
        workspace("import", "w", TOP / "in", who=who)
        r = call(s, "print(open('/workspace/a').read(), os.listdir('/workspace/d'))", who=who)
        seen.append(r["stdout"] if r["status"] == "ok" else r.story())
    tap.eq(seen, [f"{i}\n ['e']\n" for i in range(4)], f"{who}: threads that make files in the layers of before keep nobody from following the head, and reach none of the new ones")
    cordon(programs, ["session", "close", s], who)


def stands(who):
    """Where a session stands when it is forked: its files were laid anew by somebody who looked at them, or its folder is gone."""
    fresh("w", {"d/e": "e\n"}, who)
    s = session("--workspace", "w", who=who).out.strip()

    def forks(where, what):
        f = cordon(programs, ["session", "fork", "--json", s], who)
        seen = [call(name, "print(os.getcwd(), open('/workspace/d/e').read())", who=who)["stdout"] for name in (s, f["session"] or s)]
        tap.eq((f.code, seen), (0, [f"{where} e\n\n"] * 2), f"{who}: a session {what} is forked, and both go on", f.story())
        cordon(programs, ["session", "close", f["session"] or "none"], who)

    call(s, "import os\nos.chdir('d')", who=who)
    workspace("snapshot", "w", who=who)
    tap.eq(cordon(programs, ["session", "get", s, "d/e", "-"], who).out, "e\n", f"{who}: a file of a session whose head moved since its last call is read")
    forks("/workspace/d", "whose files were looked at after its head had moved")
    call(s, "os.mkdir('g')\nos.chdir('g')\nos.rmdir('../g')", who=who)
    forks("/workspace", "that stands in a folder which it removed")
    cordon(programs, ["session", "close", s], who)


def layers(who):
    """What an overlay has and a copy has not: files below cost the session nothing, and stay as long as it has them."""
    fresh("w", {**{f"many/f{i}": f"{i}\n" for i in range(200)}, "a": "a\n", "d/e": "e\n", "d/x": "x\n"}, who)
    home = House.of(who)["CORDON_STATE"] + "/workspaces"
    others = {n for n in os.listdir(home) if n.startswith(".used-")}
    s = session("--workspace", "w", "--inodes", "40", "--disk", "64k", who=who).out.strip()
    r = call(s, "import os\nprint(len(os.listdir('many')), open('many/f199').read())\nos.chdir('d')", who=who)
    tap.eq(r["stdout"], "200 199\n\n", f"{who}: a session has more files below it than its own quota holds", r.story())
    r = call(s, "n = 0\ntry:\n    for i in range(100): open(f'/tmp/{i}', 'w').close(); n += 1\nexcept OSError as e: print(e.errno, 20 < n < 45)", who=who)
    tap.eq(r["stdout"], "28 True\n", f"{who}: what a session upon layers makes is counted", r.story())
    (TOP / "in/d/e").write_text("moved\n")
    workspace("import", "w", TOP / "in", who=who)
    r = call(s, "print(os.getcwd(), open('e').read(), len(os.listdir('/workspace/many')))", who=who)
    tap.eq(r["stdout"], "/workspace/d moved\n 200\n", f"{who}: a session that has used up its files sees a moved head, by relative names too", r.story())
    r = call(s, "for i in range(n): os.unlink(f'/tmp/{i}')\nos.unlink('e'); os.unlink('x'); os.chdir('..'); os.rmdir('d'); os.mkdir('d'); open('d/only', 'w').write('o')\nopen('a', 'a').write('+')", who=who)
    changed = {f["path"]: f["change"] for f in r["files"]}
    tap.ok(changed == {"/workspace/a": "modified", "/workspace/d/only": "created"}, f"{who}: a call's files are those of its upper layer, and one of the head's is told as changed", r.story())
    tap.eq(git("w", "diff", "--name-status", "main~1", "main", who=who), "M\ta\nD\td/e\nA\td/only\nD\td/x\n", f"{who}: a removed folder that was made again hides what was in it from the commit")
    f = cordon(programs, ["session", "fork", "--json", s], who)
    b = f["session"]
    seen = "print(os.listdir('d'), open('a').read(), len(os.listdir('many')))"
    tap.eq(call(b, seen, who=who)["stdout"], "['only'] a\n+ 200\n", f"{who}: a fork has removed files, folders made again and changed files as its session has them")
    r = call(b, "open('d/branch', 'w').write('b'); os.unlink('many/f0')", who=who)
    tap.ok(git("w", "diff", "--name-status", "main", f["workspace"].split("@")[1], who=who) == "A\td/branch\nD\tmany/f0\n", f"{who}: the commit of a fork has what the fork changed", r.story())
    tap.eq(call(s, seen, who=who)["stdout"], "['only'] a\n+ 200\n", f"{who}: a session upon layers sees nothing of its fork's changes")
    clone = f["workspace"]
    workspace("restore", clone, "head~1", who=who)
    tap.eq(call(b, "print(os.listdir('d'), os.path.exists('many/f0'))", who=who)["stdout"], "['only'] True\n", f"{who}: a fork upon layers sees a restore of its clone at its next call")
    g = cordon(programs, ["session", "fork", "--json", b], who)
    call(b, "open('d/later', 'w').close()", who=who)
    r = call(g["session"], "print(os.listdir('d'), open('a').read())\nopen('deep', 'w').write('d')", who=who)
    tap.ok(r["stdout"] == "['only'] a\n+\n" and show("w", "deep", who, g["workspace"].split("@")[1]) == "d", f"{who}: a fork of a fork upon layers has files of its own", r.story())
    cordon(programs, ["session", "close", g["session"]], who)
    for what, how in (("a file of the head", "g = open('many/f1')"), ("a file of its own", "g.close(); g = open('a')"), ("its folder", "g.close(); g = os.open('.', os.O_RDONLY)"),
                      ("a mapped file", "os.close(g)\nimport mmap\nwith open('many/f2', 'rb') as h: g = mmap.mmap(h.fileno(), 0, access=mmap.ACCESS_READ)")):
        call(s, how, who=who)
        r = cordon(programs, ["session", "fork", s], who)
        tap.ok(r.code == 125 and "workspace" in r.err, f"{who}: a session upon layers with {what} open is not forked", r.story())
    call(s, "g.close()\ng = open('a')", who=who)
    workspace("restore", "w", "head~1", who=who)
    r = call(s, "print(open('a').read(), g.read())", who=who)
    tap.eq(r["stdout"], "a\n a\n+\n", f"{who}: a file that is open when the head moves is the old one, and its name the new one", r.story())
    r = cordon(programs, ["session", "fork", s], who)
    tap.ok(r.code == 125 and "open" in r.err, f"{who}: a session with a file of the layers of before open is not forked", r.story())
    call(s, "g.close()\nopen('mine', 'w').close()\n1 / 0", who=who)
    for i in range(3):
        (TOP / "in/a").write_text(f"{i}\n")
        workspace("import", "w", TOP / "in", who=who)
        cordon(programs, ["exec", "--workspace", "w", "--", "/bin/true"], who)
    r = call(s, "print(open('a').read(), open('d/x').read(), len(os.listdir('many')))", who=who)
    tap.ok(r["stdout"] == "a\n x\n 200\n" and "conflict" in snapshot(r)["reason"], f"{who}: what a session has below it is there after other runs have tidied up", r.story())
    workspace("delete", "w", who=who)
    r = call(s, "print(open('many/f7').read(), len(os.listdir('many')))\nos.unlink('many/f8')", who=who)
    tap.eq((r["status"], r["stdout"]), ("ok", "7\n 200\n"), f"{who}: what a session has below it is there after its workspace was deleted", r.story())
    for name in (s, b):
        cordon(programs, ["session", "close", name], who)
    def left():
        return {n for n in os.listdir(home) if n.startswith(".used-")} - others
    before = len(left())
    # what is dying still holds them: the next command after that finds them
    gone = tapsys.until(lambda: [workspace(verb, "w", who=who) for verb in ("create", "delete")] and not left())
    tap.eq((before, gone), (2, True), f"{who}: checkouts that were left to a session and its fork go when those are over")


def copied(who, state):
    """Where there is no overlay a session has a copy, which counts against its quota."""
    before, House.of(who)["CORDON_STATE"] = House.of(who)["CORDON_STATE"], str(state)
    forked(who, ordinary(who, ", as a copy"), ", as a copy")
    fresh("w", {"a": "a\n"}, who)
    s = session("--workspace", "w", "--disk", "1m", who=who).out.strip()
    (TOP / "in/big").write_text("x" * 3000000)
    workspace("import", "w", TOP / "in", who=who)
    r = call(s, "print('ran')", who=who)
    tap.ok(r.code == 125 and "ran" not in (r["stdout"] or "") and "fit" in r.out, f"{who}: a call is refused where the new head does not fit the quota of a session with a copy", r.story())
    (TOP / "in/big").unlink()
    workspace("import", "w", TOP / "in", who=who)
    r = call(s, LIST, who=who)
    tap.ok(r["stdout"] == "['a']\n", f"{who}: the next call has the files of a head that fits", r.story())
    r = call(s, "import os\nos.makedirs('/live/own/.layers/upper'); open('/live/own/.layers/upper/forged', 'w').write('x'); open('b', 'w').close()", who=who)
    tap.eq(git("w", "ls-tree", "-r", "--name-only", "main", who=who), "a\nb\n", f"{who}: no layer that a guest forged beside its copy is taken for one", r.story())
    cordon(programs, ["pool", "stop", "--force"], who)
    House.of(who)["CORDON_STATE"] = before


def through(who):
    """Every way to a session's files goes through its layers: served files of strict, tools, session files, put and get."""
    start = fresh("w", {"a": "a\n", "d/e": "e\n", "d/x": "x\n"}, who)
    s = cordon(programs, ["session", "new", "--workspace", "w"], who).out.strip()
    r = call(s, "import os\nprint(open('/workspace/a').read(), sorted(os.listdir('/workspace')))\nwith open('/workspace/d/new', 'w') as f: f.write('n')\nos.remove('/workspace/d/x')", who=who)
    tap.ok(r["stdout"] == "a\n ['a', 'd']\n" and git("w", "diff", "--name-status", start, "main", who=who) == "A\td/new\nD\td/x\n", f"{who}: strict: a session upon layers has its files served, and commits what it changed", r.story())
    workspace("restore", "w", start, who=who)
    r = call(s, "print(sorted(os.listdir('/workspace/d')))", who=who)
    tap.eq(r["stdout"], "['e', 'x']\n", f"{who}: strict: a session upon layers sees a restore", r.story())
    cordon(programs, ["session", "close", s], who)
    s = session("--workspace", "w", who=who).out.strip()
    r = call(s, "print(ReadFile('a')['text'], sorted(n['name'] for n in ListFiles('d')['names']))\nWriteFile('d/made', 'm'); Edit('a', 'a', 'b')\nprint(open('a').read(), open('d/made').read())", "--worker", "execute", who=who)
    tap.ok(r["status"] == "ok" and r["stdout"].endswith("b\n m\n") and "['e', 'x']" in r["stdout"] and git("w", "diff", "--name-status", start, "main", who=who) == "M\ta\nA\td/made\n",
           f"{who}: tools of a session upon layers read and change what the program sees, and the call commits it", r.story())
    for action, words, want in (("read", "d/e\0" + "\0" * 3, "e\n"), ("list", "d\0", "made"), ("search", "/workspace\0" + "b$\0lines\0" + "0\0", "/workspace/a")):
        r = cordon(programs, ["session", "files", s, action], who, text=words)
        tap.ok(r["status"] == "ok" and want in r.out.replace("\\n", "\n"), f"{who}: session files {action} sees the files of a session upon layers", r.story())
    r = cordon(programs, ["session", "get", s, "d/x", "-"], who)
    tap.eq(r.out, "x\n", f"{who}: session get takes a file of the lower layer", r.story())
    (TOP / "put").write_text("p\n")
    r = cordon(programs, ["session", "put", s, f"{TOP}/put:d/e"], who)
    tap.ok(r.code == 0 and show("w", "d/e", who) == "p\n", f"{who}: session put replaces a file of the lower layer, and commits it", r.story())
    cordon(programs, ["session", "close", s], who)


def killed(who, count):
    """Clients of a session that are killed while its layers are laid, read and committed."""
    fresh("w", {"a": "a\n", **{f"d/{i}": "x" for i in range(50)}}, who)
    lost, acknowledged, ended = [], 0, 0
    chance = random.Random(count)
    for i in range(count):
        s = session("--workspace", "w", who=who).out.strip()
        (TOP / "in/a").write_text(f"{i}\n")
        workspace("import", "w", TOP / "in", who=who)
        client = subprocess.Popen(programs.command(["session", "run", "--json", s, "-c", f"open('b', 'w').write('{i}')"], who), env=tapsys.clean_env(None, who), cwd="/", stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(chance.random() * 0.15)  # the instant of the kill, not a condition
        client.kill()
        out = client.communicate()[0]
        if out:
            acknowledged += 1
            lost += [i] if json.loads(out)["snapshot"]["id"] not in git("w", "rev-list", "main", who=who) else []
        r = call(s, "print(open('a').read())", who=who)
        ended += r["status"] != "ok"
        if r["status"] == "ok" and r["stdout"] != f"{i}\n\n":
            lost.append((i, r.story()))
        cordon(programs, ["session", "close", s], who)
    tap.figure(f"{count} clients killed: {acknowledged} had answered, {ended} sessions ended with them")
    tap.ok(not lost, f"{who}: a client that is killed while it lays, runs or commits ends the session or leaves it with the files of the head, and loses no acknowledged commit", *lost)
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who), "", f"{who}: git fsck is clean after clients of sessions were killed")


def names(who):
    """The policy's rules for names hold for every command that brings files into a session or a workspace."""
    fresh("w", {"a": "a\n"}, who)
    start = head("w", who)
    for path, text in {"tools/helper.py": "def helper(): pass\n", "tools/WordCount.py": "def other(): pass\n", "good/tools/helper.py": "", "tools-too/helper.py": ""}.items():
        (TOP / "names" / path).parent.mkdir(parents=True, exist_ok=True)
        (TOP / "names" / path).write_text(text)
    (TOP / "ends").write_text("def WordCount(): pass\n")
    warn = TOP / "warn.yaml"
    warn.write_text("verification: warn\n")
    warn.chmod(0o644)
    s = session("--workspace", "w", who=who).out.strip()

    def write(path, text, *options):
        return cordon(programs, ["session", "files", s, "write", *options], who, text=path + "\0" + text)

    r = write("tools/helper.py", "def helper(): pass\n")
    tap.ok(r["status"] == "error" and "/workspace/tools/helper.py" in r["reason"] and "naming" in r["reason"], f"{who}: session files write refuses a name that breaks a rule", r.story())
    r = write("tools/WordCount.py", "def other(): pass\n")
    tap.ok(r["status"] == "error" and head("w", who) == start, f"{who}: session files write refuses a tool that does not export its name, and commits nothing", r.story())
    r = write("tools/helper.py", "def helper(): pass\n", "--policy", str(warn))
    tap.ok(r["status"] == "ok" and "tools/helper.py" in r["warning"], f"{who}: with `verification: warn` session files write warns", r.story())
    r = write("tools/WordCount.py", "def WordCount(): pass\n")
    tap.ok(r["status"] == "ok" and "warning" not in r.json, f"{who}: session files write takes a tool that keeps the rules", r.story())
    start = head("w", who)
    for what, word, refused in (("a folder with", TOP / "names", True), ("a file as", f"{TOP}/ends:tools/helper.py", True), ("a file without the export of", f"{TOP}/names/tools/WordCount.py:tools/WordCount.py", True),
                                ("a folder elsewhere than", f"{TOP}/names/good:deeper", False), ("a file that is", f"{TOP}/ends:tools/WordCount.py", False)):
        r = cordon(programs, ["session", "put", s, str(word)], who)
        tap.ok((r.code == 125 and "naming" in r.err) if refused else r.code == 0, f"{who}: session put of {what} a tool: {'refused' if refused else 'copied'}", r.story())
        if refused:
            tap.eq(head("w", who), start, f"{who}: session put of {what} a tool: nothing is committed")
    r = cordon(programs, ["session", "put", s, str(TOP / "names"), "--policy", str(warn)], who)
    tap.ok(r.code == 0 and "/tools/" in r.err, f"{who}: with `verification: warn` session put warns, and copies", r.story())
    r = session("--in", str(TOP / "names"), who=who)
    tap.ok(r.code == 125 and "naming" in r.err, f"{who}: session new --in of a folder that breaks a rule is refused", r.story())
    start = head("w", who)
    r = workspace("import", "w", TOP / "names", who=who)
    tap.ok(r.code == 2 and "naming" in r.err and head("w", who) == start, f"{who}: workspace import of a folder that breaks a rule is refused, and commits nothing", r.story())
    r = workspace("import", "w", TOP / "names", "--policy", warn, who=who)
    tap.ok(r.code == 0 and "/workspace/tools/" in r.err and head("w", who) != start, f"{who}: with `verification: warn` workspace import warns, and commits", r.story())
    r = call(s, "import os\nopen('/workspace/tools/lower.py', 'w').write('x = 1')", who=who)
    tap.ok(r["status"] == "ok" and "tools/lower.py" in git("w", "ls-tree", "-r", "--name-only", "main", who=who), f"{who}: what a program writes by itself is its own", r.story())
    cordon(programs, ["session", "close", s], who)


def prompt(who):
    """A prompt in a workspace: each block is a call of its session."""
    start = fresh("w", {"a": "a\n"}, who)
    r = cordon(programs, ["repl", "--json", "--profile", "standard", "--workspace", "w"], who, text="x = open('/workspace/a').read()\nn = open('/workspace/n', 'w').write(x)\n1 / 0\nimport os; os.remove('a')\n")
    rows = [json.loads(line) for line in r.out.splitlines()]
    tap.eq([(row["status"], (row["snapshot"] or {}).get("changed")) for row in rows], [("ok", False), ("ok", True), ("error", False), ("ok", True)], f"{who}: repl --workspace: what became of each block's files", r.story())
    tap.eq((git("w", "log", "--format=%an", f"{start}..main", who=who).split(), git("w", "ls-tree", "-r", "--name-only", "main", who=who), show("w", "n", who)),
           ([row["id"] for row in (rows[3:4] + rows[1:2])], "n\n", "a\n"), f"{who}: repl --workspace: each block that changed files is a commit with its id as the author")
    r = cordon(programs, ["repl", "--profile", "standard", "--workspace", "nowhere"], who, text="1\n")
    tap.ok(r.code == 125 and "no workspace 'nowhere'" in r.err and not r.out, f"{who}: repl in a workspace that is not there is refused by name", r.story())
    r = cordon(programs, ["repl", "--session", "s", "--workspace", "w"], who, text="1\n")
    tap.ok(r.code == 125 and "--workspace is for a new session" in r.err, f"{who}: repl --session has the workspace of its session, and takes no other", r.story())
    r = cordon(programs, ["session", "run", "x", "--workspace", "w", "-c", "1"], who)
    tap.ok(r.code == 125 and "--workspace is for new" in r.err, f"{who}: --workspace of session run is a usage error", r.story())


for person in users():
    live = ordinary(person)
    forked(person, live)
    layers(person)
    stands(person)
behind(users()[-1])
hostile(users()[0])
hostile(users()[-1])
names(users()[-1])
for person in users():
    through(person)
killed(users()[-1], 12)
prompt(users()[-1])
for person, place in stacked_states(users()):
    copied(person, place)
for person in users():
    cordon(programs, ["pool", "stop", "--force"], person)
tap.done()
