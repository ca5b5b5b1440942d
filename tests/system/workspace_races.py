#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names that change kind while Cordon reads or writes them: links, FIFOs, folders and hard links put in each other's place. What is
read is never what a link leads to, what is written never lands where one leads, a file with two names is never changed by way of the other one, and nobody
waits for a FIFO. And settings that a guest plants, for git, for Python, for a shell and for Cordon itself: nobody obeys them, however quickly they come and go.

Usage: workspace_races.py BUILD [COUNT [RACE...]]. COUNT: rounds of each race (`make workspace-races`: 10,000). RACE: only these, of session, import, hard_link,
settings, planted and tools."""
import functools
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import tapsys
import workspacetest
from tapsys import cordon, users
from workspacetest import TOP, own_disks, programs, swap, tap

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 10
WHO = users()[0]
own_disks([WHO])
SECRET = "the secret of the host"
workspace, git = functools.partial(workspacetest.workspace, who=WHO), functools.partial(workspacetest.git, who=WHO)


def listing(top):
    """Names, kinds and contents below TOP: what nobody may have changed."""
    return sorted((str(p.relative_to(top)), p.lstat().st_mode, p.lstat().st_uid, p.read_text() if p.is_file() else "") for p in top.rglob("*"))


def canary():
    """A folder of the host that the guest's links lead to. Everybody may write in it: only who follows a link does."""
    top = TOP / "canary"
    (top / "sub").mkdir(parents=True, exist_ok=True)
    (top / "file").write_text(SECRET)
    (top / "sub/file").write_text(SECRET)
    for p in (top, top / "sub", top / "file", top / "sub/file"):
        os.chmod(p, 0o777)
    return top


# The guest: a thread that puts other kinds of files, most often a link to the canary, in the place of each folder that the
# workspace has.
THREAD = """
import os, threading
def swap():
    others = [os.mkfifo, lambda p: os.link('/workspace/keep', p), lambda p: open(p, 'w').close(), lambda p: os.symlink({canary!r} + '/file', p)]
    n = 0
    while True:
        for i in range({folders}):
            n += 1
            path, new = '/workspace/d%d' % i, '/tmp/new'
            try:
                if n % 5:
                    os.symlink({canary!r}, new)
                else:
                    others[n // 5 % len(others)](new)
                os.rename(path, '/tmp/old%d' % n)
            except OSError:
                pass
            try:
                os.rename(new, path)
            except OSError:
                pass
            try:
                os.unlink(new)
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
"""
FOLDERS = 30


# The guest: a thread that puts hard links to one file in the place of each file that the workspace has.
HARD_LINKS = """
import os, threading
def swap():
    n = 0
    while True:
        for i in range({folders}):
            n += 1
            new = '/workspace/new%d' % n
            try:
                os.link('/workspace/keep', new)
                os.rename(new, '/workspace/f%d' % i)
            except OSError:
                pass
            try:
                os.unlink(new)  # a rename onto another name of the same file does nothing
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
"""
# The guest: a thread that gives a folder and a file with settings, in turn, each name that git would obey, and an honest one.
SETTINGS = """
import os, threading
os.makedirs('/workspace/conf/hooks', exist_ok=True)
for name, text in (('HEAD', 'ref: refs/heads/main'), ('config', '[core]\\n\\tfsmonitor = touch {canary}/reached\\n'), ('hooks/post-checkout', 'touch {canary}/reached')):
    with open('/workspace/conf/' + name, 'w') as f:
        f.write(text)
with open('/workspace/plain', 'w') as f:
    f.write('* filter=planted diff=planted')
def swap():
    while True:
        for folder, file in {names!r}:
            for a, b in (('conf', folder), ('plain', file), (folder, 'conf'), (file, 'plain')):
                try:
                    os.rename('/workspace/' + a, '/workspace/' + b)
                except OSError:
                    pass
threading.Thread(target=swap, daemon=True).start()
"""
OBEYED = [(".git", ".gitattributes"), (".GIT", ".gitmodules"), ("git~1", ".Mailmap"), (".git ", ".gitattributes."), (".g\u200cit", ".GITMODULES")]


def racing(name, program):
    """A session in the workspace NAME whose thread changes its files."""
    s = cordon(programs, ["session", "new", "--profile", "standard", "--inodes", "100000", "--workspace", name], WHO).out.strip()
    return s, cordon(programs, ["session", "run", "--json", s, "-c", program], WHO)


def rounds(name, program, before=lambda i: None, code="1"):
    """COUNT calls of sessions in the workspace NAME, each of which commits while the thread works: how they ended, those that ended otherwise, and what they printed."""
    s, r = racing(name, program)
    ends, strange, said = {}, [] if r["status"] == "ok" else [r.story()], set()
    for i in range(COUNT):
        before(i)
        r = cordon(programs, ["session", "run", "--json", s, "-c", code], WHO)
        said.add(r["stdout"])
        reason = (r["snapshot"] or {}).get("reason") or ""
        end = "conflict" if reason.startswith("conflict") else "not committed" if reason else r["status"]
        ends[end] = ends.get(end, 0) + 1
        if r.code is None or r["status"] not in ("ok", "error", "refused"):
            strange.append(r.story())
        if r["status"] != "ok" or reason or i % 40 == 39:  # it does not follow the head any more; a session has 50 calls
            cordon(programs, ["session", "close", s], WHO)
            s, _ = racing(name, program)
    cordon(programs, ["pool", "stop", "--force"], WHO)
    return ends, strange, said


def session_race():
    """Files are written into a session, and committed from it, while its thread swaps them."""
    top = canary()
    before = listing(top)
    first, second = TOP / "first", TOP / "second"
    for at, text in ((first, "one"), (second, "two")):
        at.mkdir()
        (at / "keep").write_text(text)
        for i in range(FOLDERS):
            (at / f"d{i}").mkdir()
            (at / f"d{i}/x").write_text(text)
    workspace("create", "w")
    workspace("import", "w", first)
    ends, strange, _ = rounds("w", THREAD.format(canary=str(top), folders=FOLDERS), lambda i: workspace("import", "w", (second, first)[i % 2]))
    filled = ends.get("ok", 0)
    tap.ok(not strange, f"{COUNT} heads put into a session whose thread swaps the files: each call ends", strange[:2], ends)
    tap.ok(filled > COUNT // 3, "most of the heads were put into the session", (filled, ends))
    tap.eq(listing(top), before, "what is written into a session never lands where a link of its thread leads")
    tap.ok(SECRET not in git("w", "log", "-p", "--all"), "what is committed from a session is never what a link of its thread leads to")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress"), "", "git fsck is clean after the race")
    tap.figure(f"session race: {COUNT} rounds, {filled} filled, calls ended {ends}")


def import_race():
    """The folder that is imported is changed meanwhile."""
    top = TOP / "race"
    top.mkdir()
    for i in range(40):
        (top / f"f{i}").write_text("honest\n")
    secret = TOP / "secret"
    secret.write_text(SECRET)
    workspace("create", "race")
    p = swap(top, secret)
    ends = {}
    for _ in range(COUNT):
        r = workspace("import", "race", top, "--json")
        ends[r.code] = ends.get(r.code, 0) + 1
    alive = p.poll() is None
    p.kill()
    p.wait()
    tap.ok(alive and set(ends) <= {0, 1}, f"a folder that is changed while it is imported {COUNT} times: each import ends", ends)
    tap.ok(SECRET not in git("race", "log", "-p", "--all"), "a link that is put in a file's place is never followed by an import")
    tap.figure(f"import race: {COUNT} rounds, imports ended {ends}")


def hard_link_race():
    """Files are written into a session, and committed from it, while its thread puts hard links to one file in their place."""
    folders = []
    for text in ("one", "two"):
        at = TOP / f"links-{text}"
        at.mkdir()
        folders.append(at)
        (at / "keep").write_text("the kept file\n")
        for i in range(FOLDERS):
            (at / f"f{i}").write_text(f"another file {text}\n")
    workspace("create", "links")
    workspace("import", "links", folders[0])
    ends, strange, said = rounds("links", HARD_LINKS.format(folders=FOLDERS), lambda i: workspace("import", "links", folders[(i + 1) % 2]), "print(open('/workspace/keep').read(), end='')")
    tap.ok(not strange, f"{COUNT} heads put into a session whose thread swaps files for hard links: each call ends", strange[:2], ends)
    tap.ok(ends.get("ok", 0) > COUNT // 3, "most of the heads were put into the session with the hard links", ends)
    changes = git("links", "log", "--format=", "--name-only", "main", "--", "keep").split()
    tap.eq((changes, git("links", "show", "main:keep"), said), (["keep"], "the kept file\n", {"the kept file\n"}),
           "what is written in the place of a hard link never changes the file under its other name")
    shared = [l for l in git("links", "log", "-p", "--format=", "--all").splitlines() if l[:1] == "+" and l[:3] != "+++" and l[1:] not in
              ("the kept file", "another file one", "another file two")]
    tap.eq(shared, [], "a file whose name becomes another file's while it is committed is one of the two, and no mixture")
    tap.eq(git("links", "fsck", "--strict", "--no-dangling", "--no-progress"), "", "git fsck is clean after the race of hard links")
    tap.figure(f"hard link race: {COUNT} rounds, calls ended {ends}")


def settings_race():
    """Settings come and go under names that git obeys while a session is committed."""
    top = TOP / "reached"
    top.mkdir(mode=0o777)
    os.chmod(top, 0o777)
    workspace("create", "settings")
    ends, strange, _ = rounds("settings", SETTINGS.format(canary=str(top), names=OBEYED))
    tap.ok(not strange, f"{COUNT} commits of a session whose thread renames settings to names that git obeys: each call ends", strange[:2], ends)
    names = set(git("settings", "log", "--format=", "--name-only", "-z", "--all").replace("\0", "\n").split("\n")) - {""}
    honest = {"conf/HEAD", "conf/config", "conf/hooks/post-checkout", "plain"}
    tap.eq(names - honest, set(), "no commit has a file under a name that git obeys, at whichever instant it was read")
    tap.ok(names & honest, "the honest names of the same files were committed", names)
    copy = TOP / "copy"
    said = subprocess.run(["git", "clone", "-q", str(workspacetest.store("settings", WHO)), str(copy)], env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.ok(said.returncode == 0 and not any(top.iterdir()), "a clone by git of a workspace with planted settings runs nothing of them", said.stdout, list(top.iterdir()))
    tap.figure(f"settings race: {COUNT} rounds, calls ended {ends}")


# What a run leaves for whoever comes next: for Python, for a shell, for Cordon itself.
PLANTED = {"sitecustomize.py": "print('REACHED')", "usercustomize.py": "print('REACHED')", "planted.pth": "import os; print('REACHED')", "pyvenv.cfg": "home = /workspace",
           "python3._pth": "/workspace", "__main__.py": "print('REACHED')", ".profile": "echo REACHED", ".bashrc": "echo REACHED", ".env": "PATH=/workspace",
           "policy.yaml": "profile: open", "cordon.yaml": "profile: open", ".cordon/policy.yaml": "profile: open", ".config/cordon/policy.yaml": "profile: open",
           "cordon/policy.yaml": "profile: open", ".local/lib/python3.11/site-packages/planted.pth": "import os; print('REACHED')"}


def planted():
    """The next run, the next command and a person's clone obey nothing that a run left in its workspace."""
    workspace("create", "plant")
    script = "import os\nfor p, t in %r.items():\n    os.makedirs(os.path.dirname('/workspace/' + p), exist_ok=True)\n    with open('/workspace/' + p, 'w') as f:\n        f.write(t)\n" % PLANTED
    r = cordon(programs, ["run", "--json", "--profile", "standard", "--workspace", "plant", "-c", script], WHO)
    tap.eq(sorted(git("plant", "ls-tree", "-r", "--name-only", "main").split()), sorted(PLANTED), "a run may leave settings as files", r.story())
    for profile in ("standard", "open"):
        r = cordon(programs, ["run", "--json", "--profile", profile, "--workspace", "plant", "-c", "import sys\nprint('mine', sys.prefix.startswith('/workspace'))"], WHO)
        tap.eq(r["stdout"], "mine False\n", f"{profile}: settings of Python that an earlier run left are not obeyed by the next one", r.story())
    r = cordon(programs, ["exec", "--json", "--processes", "8", "--workspace", "plant", "--", "/bin/sh", "-c", "/bin/bash -c 'echo mine'; /bin/sh -lc 'echo mine'"], WHO)
    tap.eq(r["stdout"], "mine\nmine\n", "settings of a shell that an earlier run left are not obeyed by the next one", r.story())
    copy = TOP / "planted"
    subprocess.run(["git", "clone", "-q", str(workspacetest.store("plant", WHO)), str(copy)], env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}, check=True)
    shown = [subprocess.run(programs.command(["policy", "show"], WHO), env=tapsys.clean_env(None, WHO), cwd=at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout for at in ("/", copy)]
    tap.ok(shown[0] and shown[0] == shown[1], "cordon that is started in a clone of a workspace with planted settings has the policy that it has elsewhere", shown)
    blocked = subprocess.run(programs.command(["run", "--json", "-c", "import socket"], WHO), env=tapsys.clean_env(None, WHO), cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    tap.ok(b'"blocked"' in blocked.stdout, "a policy that a run left does not widen the next run", blocked.stdout)


# The guest: its thread puts links to the canary, FIFOs and hard links in the place of what the tools are asked for.
TOOLS = """
import json, os, threading
open('/workspace/keep', 'w').write('the kept file')
os.mkdir('/workspace/real'); open('/workspace/real/file', 'w').write('honest')
def swap():
    n = 0
    kinds = [lambda p: os.symlink({canary!r} + '/file', p), os.mkfifo, lambda p: os.link('/workspace/keep', p), lambda p: open(p, 'w').close()]
    while True:
        n += 1
        for path, make in (('/workspace/file', kinds[n % 4]), ('/workspace/folder', lambda p: os.symlink(({canary!r}, 'real')[n % 2], p))):
            try:
                make('/tmp/new')
                os.rename('/tmp/new', path)
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
ends = {{}}
for i in range({count}):
    try:
        (lambda: ReadFile('file'), lambda: ReadFile('folder/file'), lambda: WriteFile('file', 'written'), lambda: WriteFile('folder/file', 'written'),
         lambda: Grep('secret', '.'), lambda: Edit('folder/file', 'secret', 'changed'))[i % 6]()
        end = 'ok'
    except RuntimeError as e:
        end = str(e).split(':')[0].split(' /')[0]
    ends[end] = ends.get(end, 0) + 1
print(json.dumps([open('/workspace/keep').read(), open('/workspace/real/file').read(), ends]))
"""


def tools_race():
    """Paths that tools were given change kind between one name and the next."""
    top = canary()
    before = listing(top)
    policy = TOP / "calls.yaml"
    policy.write_text("sessions: {tool_calls: 1000}\n")
    os.chmod(policy, 0o644)
    ends, kept, strange, left = {}, set(), [], COUNT
    while left > 0 and not strange:
        n = min(left, 1000)
        left -= n
        r = cordon(programs, ["run", "--json", "--profile", "standard", "--policy", policy, "--timeout", "10m", "--worker", "execute", "-c", TOOLS.format(canary=str(top), count=n)], WHO)
        if r["status"] != "ok" or SECRET in r.out:
            strange.append(r.story())
            continue
        text, behind, some = json.loads(r["stdout"])
        kept.add((text, behind))
        for end, many in some.items():
            ends[end] = ends.get(end, 0) + many
    tap.ok(not strange and sum(ends.values()) == COUNT, f"{COUNT} calls of tools whose paths a thread swaps: each ends, and none reads what a link leads to", strange[:2], ends)
    tap.eq(listing(top), before, "what a tool writes never lands where a link of the program's thread leads")
    tap.eq(kept, {("the kept file", "honest")}, "what a tool writes changes neither the other name of a hard link nor what a link inside the workspace leads to")
    tap.figure(f"tools race: {COUNT} calls, ended {ends}")


RACES = {"session": session_race, "import": import_race, "hard_link": hard_link_race, "settings": settings_race, "planted": planted, "tools": tools_race}
for race in sys.argv[3:] or RACES:
    RACES[race]()
tap.done()
