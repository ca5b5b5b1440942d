#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions in a workspace: the head is what they begin with, each call is a commit, a head that moved is what the next call sees,
a fork is in a clone.

Usage: workspace_sessions.py BUILD."""
import sys

sys.dont_write_bytecode = True
from tapsys import cordon, users
from workspacetest import TOP, fresh, git, own_disks, programs, tap, workspace

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


def ordinary(who):
    start = fresh("w", {"a": "a\n", "d/e": "e\n"}, who)
    made = session("--workspace", "w", who=who)
    s = made.out.strip()
    tap.ok(made.code == 0 and s, f"{who}: a session is made in a workspace", made.story())
    r = call(s, "print(open('a').read(), open('/workspace/d/e').read())", who=who)
    tap.ok(r["status"] == "ok" and r["stdout"] == "a\n e\n\n", f"{who}: a session in a workspace has the files of the head", r.story())
    tap.ok(snapshot(r).get("changed") is False and snapshot(r).get("id") == start == head("w", who), f"{who}: a call that touched nothing makes no commit", r.story())
    r = call(s, "x = 7\nopen('d/new', 'w').write('n')\nimport os; os.remove('a')", who=who)
    tap.ok(snapshot(r).get("changed") is True and snapshot(r)["id"] == head("w", who) and git("w", "log", "-1", "--format=%an", who=who).strip() == r["id"],
           f"{who}: a call that changed files is a commit with the call's id as its author", r.story())
    tap.eq(git("w", "ls-tree", "-r", "--name-only", "main", who=who), "d/e\nd/new\n", f"{who}: the commit of a call has what the call made and not what it removed")
    r = call(s, "open('half', 'w').write('h')\n1 / 0", who=who)
    tap.ok(r["status"] == "error" and snapshot(r).get("id") is None and "stays in the session" in snapshot(r)["reason"] and "half" not in git("w", "ls-tree", "main", who=who),
           f"{who}: what a failed call changed stays in the session and is in no commit", r.story())
    r = call(s, "print(x, open('half').read())", who=who)
    tap.ok(r["stdout"] == "7 h\n" and snapshot(r).get("changed") is True and show("w", "half", who) == "h", f"{who}: the next call that ends well commits it", r.story())
    restored = workspace("restore", "w", "head~2", "--json", who=who)
    r = call(s, LIST + "\nprint(x, open('a').read())", who=who)
    tap.ok(r["stdout"] == "['a', 'd']\n7 a\n\n" and snapshot(r).get("id") == restored["id"], f"{who}: a live session sees a restore at its next call, and keeps its variables", r.story())
    r = call(s, "open('after', 'w').write('1')", who=who)
    tap.eq(git("w", "log", "-1", "--format=%P", who=who).strip(), restored["id"], f"{who}: the next commit of the session follows the restore")
    listed = [e["workspace"] for e in cordon(programs, ["session", "list", "--json"], who).json if e["session"] == s]
    tap.eq(listed, ["w"], f"{who}: session list names the workspace")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who), "", f"{who}: git fsck is clean after the commits of a session")
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
    fresh("w", {"a": "a\n"}, who)
    s = session("--workspace", "w", "--disk", "1m", who=who).out.strip()
    (TOP / "in/big").write_text("x" * 3000000)
    workspace("import", "w", TOP / "in", who=who)
    r = call(s, "print('ran')", who=who)
    tap.ok(r.code == 125 and "ran" not in (r["stdout"] or "") and "fit" in r.out, f"{who}: a call is refused where the new head does not fit the session's quota", r.story())
    (TOP / "in/big").unlink()
    workspace("import", "w", TOP / "in", who=who)
    r = call(s, LIST, who=who)
    tap.ok(r["stdout"] == "['a']\n", f"{who}: the next call has the files of a head that fits", r.story())
    cordon(programs, ["session", "close", s], who)
    full = session("--workspace", "w", "--inodes", "100", who=who)
    tap.ok(full.code == 0, f"{who}: a session with room for the files is made", full.story())
    none = session("--workspace", "nowhere", who=who)
    tap.ok(none.code == 125 and "no workspace 'nowhere'" in none.err, f"{who}: a session in a workspace that is not there is refused by name", none.story())


def forked(who, s):
    base = head("w", who)
    f = cordon(programs, ["session", "fork", "--json", s], who)
    b = f["session"]
    tap.eq(f["workspace"], "w@clone-1", f"{who}: the fork of a session in a workspace is in a clone of it", f.story())
    r = call(b, "print(x)\nopen('branch', 'w').write('b')", who=who)
    tap.ok(r["stdout"] == "7\n" and snapshot(r).get("workspace") == "w@clone-1" and head("w", who) == base and show("w", "branch", who, "clone-1") == "b",
           f"{who}: what the fork changes is committed to the clone, and not to the workspace", r.story())
    r = call(s, LIST, who=who)
    tap.ok("branch" not in r["stdout"] and snapshot(r).get("workspace") == "w", f"{who}: the session that was forked does not see it", r.story())
    tap.ok(workspace("verify", "w@clone-1", who=who).code == 0 and workspace("merge", "w@clone-1", who=who).code == 0, f"{who}: the clone of a fork can be verified and merged")
    r = call(s, LIST, who=who)
    tap.ok("branch" in r["stdout"], f"{who}: the session sees the merge at its next call", r.story())
    r = call(b, "print(1)\nopen('late', 'w').close()", who=who)
    tap.ok(r["status"] == "ok" and "has no clone 'clone-1'" in (snapshot(r).get("reason") or ""), f"{who}: the fork goes on when its clone is gone, and is told", r.story())


def hostile(who):
    """What a session may leave, and what it may try while it lives."""
    base = fresh("w", {"a": "a\n"}, who)
    s = session("--workspace", "w", who=who).out.strip()
    r = call(s, "import os\nos.mkfifo('fifo'); os.symlink('/etc/passwd', 'abs'); os.mkdir('.git'); os.mkdir('shut'); open('shut/f', 'w').write('f'); os.chmod('shut', 0)\n"
             "open('closed', 'w').write('c'); os.chmod('closed', 0)\nos.makedirs('/live/own/.layers/upper'); open('/live/own/.layers/upper/forged', 'w').write('x')", who=who)
    left = sorted(e["path"] for e in snapshot(r).get("left_out", ()))
    tap.ok(left == ["abs", "fifo"] or left == [".git", "abs", "fifo"], f"{who}: what a call left that cannot be kept is listed by name", r.story())
    tap.eq(git("w", "ls-tree", "-r", "--name-only", "main", who=who), "a\nclosed\nshut/f\n", f"{who}: files of mode 000 are committed, and no layer that a guest forged is taken for one", r.story())
    r = call(s, "import threading, time\ndef swap():\n    n = 0\n    while True:\n        n += 1\n        try:\n            os.unlink('t'); os.symlink('/etc/shadow', 't'); os.unlink('t'); open('t', 'w').write('mine')\n"
             "        except OSError: pass\nopen('t', 'w').write('mine')\nthreading.Thread(target=swap, daemon=True).start()\ntime.sleep(0.1)", who=who)
    text = git("w", "log", "-p", "--format=", f"{base}..main", who=who)
    tap.ok("root:" not in text and git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who) == "", f"{who}: a thread that swaps a file for a link while it is committed gets nothing of the host's",
           r.story(), text[-300:])
    workspace("restore", "w", base, who=who)
    cordon(programs, ["session", "close", s], who)


def prompt(who):
    base = fresh("p", {"a": "a\n"}, who)
    blocks = TOP / "blocks"
    blocks.write_text("open('one', 'w').write('1')\nopen('two', 'w').write('2')\n")
    with open(blocks, encoding="utf-8") as lines:
        r = cordon(programs, ["repl", "--profile", "standard", "--workspace", "p"], who, stdin=lines)
    tap.ok(r.code == 0 and git("p", "rev-list", "--count", f"{base}..main", who=who).strip() == "2", f"{who}: each block of a repl in a workspace is a commit", r.story(), git("p", "log", "--stat", who=who))
    r = cordon(programs, ["session", "run", "x", "--workspace", "p", "-c", "1"], who)
    tap.ok(r.code == 125 and "--workspace is for new" in r.err, f"{who}: --workspace of session run is a usage error", r.story())


for person in users():
    live = ordinary(person)
    forked(person, live)
behind(users()[-1])
hostile(users()[0])
hostile(users()[-1])
prompt(users()[-1])
for person in users():
    cordon(programs, ["pool", "stop", "--force"], person)
tap.done()
