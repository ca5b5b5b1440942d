#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`--workspace` of `run` and `exec`: what a guest sees is the head, what it leaves is the next commit, and nothing that it can
leave does anything else.

Usage: workspace_runs.py BUILD [KILLS]. With KILLS only that part, so many times (`make workspace-kill`)."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import exits
import mcptest
import tapsys
from tapsys import House, cordon, users
from workspacetest import TOP, fresh, git, mount, own_disks, programs, stacked_states, store, tap, workspace

own_disks(users())


def run_in(name, script, *options, who, **more):
    """A shell script in the workspace NAME."""
    return cordon(programs, ["exec", "--json", "--processes", "8", "--workspace", name, *options, "--", "/bin/sh", "-c", script], who, **more)


def head(name, who, env=None):
    """{path: (mode, id)} of the head."""
    lines = [l for l in git(name, "ls-tree", "-r", "-z", "main", who=who, env=env).split("\0") if l]
    return {l.split("\t", 1)[1]: (l.split()[0], l.split()[2]) for l in lines}


def fsck(name, who, env=None):
    return git(name, "fsck", "--strict", "--no-dangling", "--no-progress", who=who, env=env)


def blob(text):
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def on_disk(top):
    """The same as head() of a folder."""
    found = {}
    for p in sorted(top.rglob("*")):
        if p.is_symlink():
            found[str(p.relative_to(top))] = ("120000", blob(os.readlink(p)))
        elif p.is_file():
            found[str(p.relative_to(top))] = ("100755" if p.stat().st_mode & 0o100 else "100644", blob(p.read_text()))
        elif not any(p.iterdir()):
            found[str(p.relative_to(top))] = ("an empty folder", "")
    return found


BASE = {"a": "a\n", "b": "b\n", "d/x": "x\n", "d/y": "y\n", "d/e/z": "z\n", "f/only": "o\n", "g/1": "1\n"}


def ordinary(who, env=None, label=""):
    before = fresh("w", BASE, who, env=env)
    seen = run_in("w", "cat a d/e/z; pwd; ls /live/own/.layers; echo forged > /live/own/.layers/upper/x 2>/dev/null && echo REACHED", who=who, env=env)
    tap.ok(seen["status"] in ("ok", "error") and seen["stdout"].startswith("a\nz\n") and "REACHED" not in seen["stdout"] and "upper" not in seen["stdout"],
           f"{who}{label}: a guest sees the files of the head, and not the layers", seen.story())
    r = run_in("w", "echo more >> a; rm b d/x; rm -r f; mkdir f; echo new > f/other; rm -r g; echo file > g; mkdir -p n/m; echo q > n/m/q; "
               "mv d/y d/moved; ln -s ../a d/link; ln a hard; echo s > run.sh; chmod 0755 run.sh", who=who, env=env)
    snap = r["snapshot"] or {}
    want = {"a": ("100644", blob("a\nmore\n")), "hard": ("100644", blob("a\nmore\n")), "d/e/z": ("100644", blob("z\n")), "d/moved": ("100644", blob("y\n")),
            "d/link": ("120000", blob("../a")), "f/other": ("100644", blob("new\n")), "g": ("100644", blob("file\n")), "n/m/q": ("100644", blob("q\n")),
            "run.sh": ("100755", blob("s\n"))}
    below = pathlib.Path((env or House.of(who))["CORDON_STATE"], "workspaces/w/trees")
    same = next(p for p in below.iterdir() if p.name[0] != ".").joinpath("d/e/z").stat().st_ino
    tap.ok(r["status"] == "ok" and snap.get("changed"), f"{who}{label}: a run that changed files makes a commit", r.story())
    tap.eq(head("w", who, env), want, f"{who}{label}: changed, deleted, moved, replaced and new files are in the commit as the guest left them", r.story())
    tap.eq(git("w", "log", "-1", "--format=%H %an", who=who, env=env).strip(), f"{snap.get('id')} {r['id']}", f"{who}{label}: the commit's author is the execution's id")
    again = run_in("w", "cat a f/other g; ls f", who=who, env=env)
    tap.ok(again["stdout"] == "a\nmore\nnew\nfile\nother\n" and again["snapshot"]["changed"] is False and again["snapshot"]["id"] == snap.get("id"),
           f"{who}{label}: the next run sees that commit, and makes none if it changes nothing", again.story())
    tap.eq(next(p for p in below.iterdir() if p.name[0] != ".").joinpath("d/e/z").stat().st_ino, same, f"{who}{label}: a file that no run touched is not checked out again")
    begun = next(json.loads(l) for l in cordon(programs, ["audit", "show", r["id"] or "none", "--json"], who, env=env).out.splitlines() if '"writes"' in l)
    writes = begun["args"]["writes"]
    tap.ok(writes[:1] == ["/workspace"] and any("/workspaces/w/trees/" in p for p in writes), f"{who}{label}: the audit's `writes` names the workspace", begun)
    failed = run_in("w", "echo lost > a; exit 3", who=who, env=env)
    tap.ok(failed["status"] == "error" and failed["snapshot"]["id"] is None and "discarded" in failed["snapshot"]["reason"] and
           git("w", "rev-parse", "main", who=who, env=env).strip() == snap.get("id"), f"{who}{label}: what a failed run changed is discarded", failed.story())
    tap.eq(fsck("w", who, env), "", f"{who}{label}: git fsck --strict has nothing to say")
    state = pathlib.Path((env or House.of(who))["CORDON_STATE"], "workspaces/w/trees")
    trees = [p.name for p in state.iterdir() if p.name[0] != "."]
    tap.eq(trees, [git("w", "rev-parse", "main^{tree}", who=who, env=env).strip()], f"{who}{label}: one checkout is kept, of the head")
    tap.eq(on_disk(state / trees[0]), head("w", who, env), f"{who}{label}: the checkout, which was brought up to date and not made anew, has the head's files and nothing else")
    tap.eq((state / trees[0] / "a").read_text(), "a\nmore\n", f"{who}{label}: a failed run did not change the files below it")
    (state / ".boot").write_text("another boot\n")
    (state / trees[0] / "a").write_text("")
    rebooted = run_in("w", "cat a", who=who, env=env)
    tap.eq(rebooted["stdout"], "a\nmore\n", f"{who}{label}: a checkout of an earlier boot, whose files may be cut, is made anew", rebooted.story())
    return before


def moved(who, env=None, label=""):
    """Folders under other names: those of the head, whose files lie in the lower layer, and those that the run made."""
    fresh("moved", BASE, who, env=env)
    r = run_in("moved", "mv d/e g/e; mv d dd; mkdir m; echo 1 > m/1; mv m f/m; rm -r g/1; mv f d; mv dd/y .", who=who, env=env)
    tap.eq((r["status"], {p: v[1] for p, v in head("moved", who, env).items()}),
           ("ok", {"a": blob("a\n"), "b": blob("b\n"), "dd/x": blob("x\n"), "y": blob("y\n"), "g/e/z": blob("z\n"), "d/only": blob("o\n"), "d/m/1": blob("1\n")}),
           f"{who}{label}: folders that a run renamed, of the head and its own, are in the commit under their new names alone", r.story())
    tap.eq(fsck("moved", who, env), "", f"{who}{label}: git fsck accepts renamed folders")


def untouched(who):
    """A run beside folders that it does not touch: the objects of those are not there while it runs."""
    fresh("u", {"d/x": "x\n", "e/deep/y": "y\n", "f/z": "z\n"}, who)
    first = run_in("u", "echo 1 > d/x", who=who)
    objects = store("u", who) / "objects"
    hidden = [objects / i[:2] / i[2:] for i in git("u", "rev-parse", "main:e", "main:e/deep", "main:f", "main:e/deep/y", "main:f/z", who=who).split()]
    there = all(p.exists() for p in hidden)
    for p in hidden:
        p.rename(p.with_name("hidden-" + p.name))
    runs = [run_in("u", f"cat d/x e/deep/y f/z; echo {i} > d/x", who=who) for i in (2, 3)]
    for p in hidden:
        p.with_name("hidden-" + p.name).rename(p)
    tap.ok(first["status"] == "ok" and there and [(r["status"], r["stdout"]) for r in runs] == [("ok", "1\ny\nz\n"), ("ok", "2\ny\nz\n")],
           f"{who}: a run reads nothing of the store about folders that it does not touch", *[r.story() for r in runs])
    tap.eq(fsck("u", who), "", f"{who}: git fsck accepts what such runs committed")


def changed_kinds(who):
    """A checkout that is brought up to date: names that change what they are."""
    fresh("k", BASE, who)
    run_in("k", "echo 1 > a", who=who)
    script = "rm -r d; echo file > d; rm b; mkdir -p b/c; echo 1 > b/c/1; chmod +x a; rm f/only; ln -s ../a f/only; mv g/1 g/2; mkdir -p h/i; echo 2 > h/i/j"
    r = run_in("k", script, who=who)
    again = run_in("k", "true", who=who)
    [tree] = [p for p in (store("k", who).parent / "trees").iterdir() if not p.name.startswith(".")]
    tap.eq((r["status"], again["status"], tree.name, on_disk(tree)), ("ok", "ok", git("k", "rev-parse", "main^{tree}", who=who).strip(), head("k", who)),
           f"{who}: a checkout follows files that became folders, folders that became files, modes, links and names", r.story(), again.story())


def odd(who, env=None, label=""):
    """Whatever a guest leaves has the answer that import gives."""
    fresh("odd", BASE, who, env=env)
    r = run_in("odd", "mkfifo fifo; ln -s /etc/passwd abs; ln -s ../../etc out; mkdir .git; echo '[core]' > .git/config; echo '* -diff' > .gitattributes; mkdir empty; "
               "echo secret > shut; chmod 0 shut; mkdir closed; echo in > closed/in; chmod 0 closed; chmod 0 d; rm a; mkfifo a; chmod 0 .; chmod 0 /live/own; true", who=who, env=env)
    left = {e["path"]: e["reason"] for e in (r["snapshot"] or {}).get("left_out", ())}
    tap.eq(sorted(left), [".git", ".gitattributes", "a", "abs", "fifo", "out"], f"{who}{label}: what a guest left that cannot be kept is listed by name", r.story())
    got = head("odd", who, env)
    tap.eq({p: got.get(p) for p in ("shut", "closed/in", "d/x", "d/e/z", "a", "b")},
           {"shut": ("100644", blob("secret\n")), "closed/in": ("100644", blob("in\n")), "d/x": ("100644", blob("x\n")), "d/e/z": ("100644", blob("z\n")), "a": None,
            "b": ("100644", blob("b\n"))}, f"{who}{label}: files and folders of mode 000 are committed, a file that became a FIFO is gone", got)
    tap.eq(fsck("odd", who, env), "", f"{who}{label}: git fsck accepts what such a guest left")
    big = cordon(programs, ["exec", "--json", "--disk", "1m", "--workspace", "odd", "--", "/usr/bin/dd", "if=/dev/zero", "of=big", "bs=65536", "count=64"], who, env=env)
    tap.ok(big["status"] == "error" and "No space" in big["stderr"] and big["snapshot"]["id"] is None, f"{who}{label}: a workspace's upper layer has the quota of --disk", big.story())
    copied = cordon(programs, ["exec", "--json", "--disk", "1m", "--workspace", "odd", "--", "/bin/sh", "-c", "echo 1 >> b"], who, env=env)
    tap.ok(copied["snapshot"]["changed"], f"{who}{label}: a run within that quota commits", copied.story())
    now = git("odd", "rev-parse", "main", who=who, env=env)
    for what, script in {"files with holes": "/usr/bin/truncate -s 700K s1 s2 s3", "many hard links": "dd if=/dev/zero of=h bs=1024 count=600 2>/dev/null; for i in 1 2 3; do ln h h$i; done"}.items():
        much = run_in("odd", script, "--disk", "1m", who=who, env=env)
        tap.ok(much["status"] == "error" and "of its quota" in much["reason"] and git("odd", "rev-parse", "main", who=who, env=env) == now,
               f"{who}{label}: {what} cannot make a commit larger than the quota of the run", much.story())


def store_room(who):
    """The store that a run's commit goes to: from 80 % of its room on the run says so, from 95 % on that it is nearly full."""
    fresh("s", BASE, who)
    policy = TOP / "store.yaml"
    policy.write_text("workspaces: {store: 1m}\n")
    os.chmod(policy, 0o644)
    for size, least, most, words in ((400, 1, 79, []), (400, 80, 94, ["% of the room for its store\n"]), (80, 95, 100, ["% of the room for its store: it is nearly full\n"])):
        r = run_in("s", f"head -c {size}K /dev/urandom > big", "--policy", policy, who=who)
        line = cordon(programs, ["exec", "--policy", policy, "--workspace", "s", "--", "/bin/true"], who).err
        tap.ok(r["status"] == "ok" and least <= (r["snapshot"]["used_percent"] or 0) <= most and (all(w in line and "workspace s uses" in line for w in words) if words else not line),
               f"{who}: a run whose store is filled to {least} % or more, and {most} % at most, has that in its result, and says it from 80 % on", r.story(), line)
    now = git("s", "rev-parse", "main", who=who)
    r = run_in("s", "head -c 400K /dev/urandom > big", "--policy", policy, who=who)
    tap.ok(r["status"] == "error" and "workspaces.store" in r["reason"] and git("s", "rev-parse", "main", who=who) == now, f"{who}: what a run left that does not fit into the store is refused by name, and the head stays",
           r.story())


def refusals(who):
    fresh("r", BASE, who)
    now = git("r", "rev-parse", "main", who=who)
    for words in (["--workspace", "none"], ["--workspace", "../x"], ["--workspace", ""], ["--workspace", "r", "--ro", "/usr:/workspace/u"],
                  ["--workspace", "r", "--mode", "landlock"]):
        r = cordon(programs, ["exec", *words, "--", "/bin/true"], who)
        tap.ok(r.code == exits.NEVER_RAN and r.err.count("\n") == 1, f"{who}: exec {' '.join(words)} is a usage error in one line", r.story())
    words = cordon(programs, ["exec", "--workspace", "r", "--", "/bin/false"], who)
    tap.eq(words.err.strip(), "cordon: workspace r: the run ended with status error: its files are discarded", f"{who}: without --json one line says what became of the files", words.story())
    blocked = cordon(programs, ["run", "--json", "--workspace", "r", "-c", "import socket"], who)
    tap.ok(blocked["status"] == "blocked" and blocked["snapshot"] is None and git("r", "rev-parse", "main", who=who) == now,
           f"{who}: a program that is blocked commits nothing", blocked.story())
    (TOP / "judged.yaml").write_text("arena:\n  enabled: true\n  risk: critical\n  paths: [/workspace]\n")
    judged, free = (cordon(programs, ["exec", "--json", "--policy", TOP / "judged.yaml", *words, "--", "/bin/true"], who) for words in (["--workspace", "r"], []))
    tap.ok(judged.rules() == ["gate.arena"] and free["status"] == "ok", f"{who}: a policy whose judges are asked about /workspace has them asked about a run in a workspace, and no other",
           judged.story(), free.story())
    python = cordon(programs, ["run", "--json", "--profile", "open", "--workspace", "r", "-c", "open('a','a').write(open('b').read())"], who)
    tap.eq(head("r", who).get("a"), ("100644", blob("a\nb\n")), f"{who}: a Python program in a workspace commits what it wrote", python.story())
    tap.eq([f["path"] for f in python["files"]], ["/workspace/a"], f"{who}: `files` has what the run changed, and not the files below", python.story())


def conflict(who):
    """Two runs begin with the same state: the first to end commits, the other is told."""
    fresh("c", BASE, who)
    env = tapsys.clean_env(None, who)
    slow = subprocess.Popen(programs.command(["exec", "--json", "--stdin", "-", "--workspace", "c", "--", "/bin/sh", "-c", "read go; echo $go > a"], who), env=env, cwd="/",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    trees = pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces/c/trees")
    until = time.monotonic() + 30 * tapsys.SLOW
    while time.monotonic() < until and not (trees.is_dir() and any(not p.name.startswith(".") for p in trees.iterdir())):
        time.sleep(0.01)
    first = run_in("c", "echo first > b", who=who)
    out, err = slow.communicate(b"second\n", timeout=60 * tapsys.SLOW)
    late = json.loads(out)
    tap.ok(first["snapshot"]["changed"] and late["status"] == "error" and "conflict" in (late["reason"] or "") and late["snapshot"]["id"] is None and slow.returncode == 1,
           f"{who}: of two runs from one state the second is a named conflict", first.story(), late)
    told = f"its files were not committed: conflict: another run or command changed c after this run began (at {git('c', 'rev-parse', 'main~1', who=who)[:12]}); run it again"
    tap.eq(late["reason"], told, f"{who}: a conflict names the workspace, the state that the run began with, and what to do")
    tap.eq(git("c", "rev-list", "--count", "main", who=who).strip(), "3", f"{who}: the conflict left the head to the first run")


def take(lock, name, kind, reader=False):
    """The lock of the workspace NAME, to change it or to read it, as src/workspace/names.c has it; False: somebody else has it."""
    number = 2166136261
    for byte in name.encode():
        number = (number ^ byte) * 16777619 % 2**32
    try:
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, 2 * number + reader, 1, 0))
        return True
    except BlockingIOError:
        return False


def earlier_boot(who):
    """Somebody reads the workspace, and so the checkouts of other states stay."""
    fresh("e", BASE, who)
    run_in("e", "true", who=who)
    home = pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces")
    trees = home / "e/trees"
    with open(home / ".lock", "r+b") as lock:
        take(lock, "e", fcntl.F_RDLCK, reader=True)
        (trees / ".boot").write_text("another boot\n")
        next(p for p in trees.iterdir() if p.name[0] != ".").joinpath("a").write_text("")
        seen = run_in("e", "cat a", who=who)
        tap.eq(seen["stdout"], "a\n", f"{who}: a checkout of an earlier boot is made anew while somebody else reads the workspace", seen.story())
        next(p for p in trees.iterdir() if p.name[0] != ".").joinpath("kept").write_text("")
        run_in("e", "true", who=who)
        tap.ok(next(p for p in trees.iterdir() if p.name[0] != ".").joinpath("kept").exists(), f"{who}: a checkout of this boot is used again meanwhile")


def killed(who):
    """cordon-workspace ends by a signal while it commits; the signals that a supervisor blocks are not blocked in it."""
    fresh("y", BASE, who)
    program = programs.bin / "cordon-workspace"
    real = program.rename(programs.bin / "cordon-workspace.real")
    try:
        for verb in ("checkout", "keep"):
            program.write_text(f'#!/bin/sh\n[ "$3" = {verb} ] && echo strange && exit 0\nexec {real} "$@"\n')
            program.chmod(0o755)
            r = run_in("y", "echo lost > a", who=who)
            tap.ok(r.code == (1 if verb == "keep" else exits.NEVER_RAN) and "an answer that cordon does not understand; are both of the same version?" in r.err + (r.json or {}).get("reason", ""),
                   f"{who}: {verb}: a cordon-workspace of another version is named as such", r.story())
        for name in ("TERM", "KILL"):
            program.write_text(f'#!/bin/sh\n[ "$3" = keep ] && kill -{name} $$\nexec {real} "$@"\n')
            program.chmod(0o755)
            r = run_in("y", "echo lost > a", who=who)
            tap.ok(r["status"] == "error" and f"killed by signal {getattr(signal, 'SIG' + name):d} (SIG{name})" in r["reason"] and r["snapshot"]["id"] is None,
                   f"{who}: a commit that SIG{name} ended is an error that names the signal", r.story())
        tap.eq(head("y", who).get("a"), ("100644", blob("a\n")), f"{who}: the head is where it was before a commit that was killed")
        program.write_text(f'#!/bin/sh\n[ "$3" = keep ] && kill -KILL $PPID\nexec {real} "$@"\n')
        r = run_in("y", "echo kept > a", who=who)
        tap.ok(r.code == -signal.SIGKILL and mcptest.appears(lambda: head("y", who).get("a") == ("100644", blob("kept\n"))),
               f"{who}: a commit is finished though the run's supervisor was killed", r.story(), head("y", who))
    finally:
        real.rename(program)


def waits(who):
    """Somebody else holds the lock for longer than the two seconds that a person waits."""
    fresh("l", BASE, who)
    with open(pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces/.lock"), "r+b") as lock:
        def hold(kind):
            return take(lock, "l", kind)

        def begin():
            return subprocess.Popen(programs.command(["exec", "--json", "--stdin", "-", "--workspace", "l", "--", "/bin/sh", "-c", "read go; echo $go > a"], who),
                                    env=tapsys.clean_env(None, who), cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def over(run):
            out, err = run.communicate(timeout=60 * tapsys.SLOW)
            return json.loads(out or "{}"), err

        hold(fcntl.F_WRLCK)
        person, late = workspace("snapshot", "l", who=who), begin()
        time.sleep(2.2)  # more than LIMIT_LOCK_MS; with less the test would show nothing
        alive = late.poll() is None
        hold(fcntl.F_UNLCK)
        late.stdin.write(b"late\n")
        got, err = over(late)
        tap.ok(person.code == 1 and "is held for more than" in person.err and alive and got.get("status") == "ok",
               f"{who}: a run waits for another's checkout where a person's command gives up", person.story(), alive, got, err)
        trees, kept = pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces/l/trees"), []
        for word, stop in ((b"commits\n", False), (b"stopped\n", True)):
            for p in trees.iterdir():
                if p.name[0] != ".":
                    shutil.rmtree(p)
            run = begin()
            until = time.monotonic() + 30 * tapsys.SLOW
            while time.monotonic() < until and not any(p.name[0] != "." for p in trees.iterdir()):
                time.sleep(0.01)
            while time.monotonic() < until and not hold(fcntl.F_WRLCK):
                time.sleep(0.01)
            run.stdin.write(word)
            run.stdin.close()
            run.stdin = None
            children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
            while stop and time.monotonic() < until and children.exists() and children.read_text().strip():
                time.sleep(0.01)  # a signal before the program's end would end the program
            time.sleep(2.2)
            alive = run.poll() is None
            if stop:
                run.send_signal(signal.SIGINT)
                got, err = over(run)
                hold(fcntl.F_UNLCK)
            else:
                hold(fcntl.F_UNLCK)
                got, err = over(run)
            kept.append((alive, got, err))
    tap.ok(kept[0][0] and kept[0][1].get("status") == "ok" and head("l", who).get("a") == ("100644", blob("commits\n")), f"{who}: what a run left is committed when another's commit took long", kept[0])
    tap.ok(kept[1][0] and kept[1][1].get("status") == "error" and "stopped while it waited" in (kept[1][1].get("reason") or ""), f"{who}: who waits to commit can be stopped", kept[1])


# --- upper layers that no guest could make, given to the reader itself -------------------------------
def keep(name, base, folder, who="root"):
    home = os.open(pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces"), os.O_RDONLY)
    other, lock = os.open(folder, os.O_RDONLY), os.open(pathlib.Path(House.of(who)["CORDON_STATE"], "workspaces/.lock"), os.O_RDWR)
    for fd, to in ((home, 23), (other, 24), (lock, 25)):
        os.dup2(fd, to, inheritable=True)
        os.close(fd)
    words = [str(programs.bin / "cordon-workspace"), "--from-cordon", "", "keep", name, "run-x", base, "run", "0 0 0"]
    place = "import os,sys\nfor n in (3, 4, 5): os.dup2(n + 20, n)\nos.execve(sys.argv[1], sys.argv[1:], {})"
    r = subprocess.run([sys.executable, "-c", place, *words], pass_fds=(23, 24, 25), env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for fd in (23, 24, 25):
        os.close(fd)
    return r.returncode, r.stdout.decode("utf-8", "surrogateescape").split("\0"), r.stderr.decode()


def upper(kind):
    top = TOP / f"upper-{kind}"
    top.mkdir()
    if kind != "folder" and mount("-t", kind, "none", str(top), stderr=subprocess.DEVNULL).returncode:
        return None
    (top / ".layers/upper").mkdir(parents=True)
    return top


def forged():
    who = users()[0]
    base = fresh("k", BASE, who)
    top = upper("tmpfs")
    layer = top / ".layers/upper"
    os.mknod(layer / "a", 0o020000, os.makedev(0, 0))
    os.link(layer / "a", layer / "b")
    (layer / "d").mkdir()
    os.link(layer / "a", layer / "d/x")
    os.link(layer / "a", layer / "d/never-was")
    (layer / "f").mkdir()
    (layer / "f/other").write_text("o\n")
    os.setxattr(layer / "f", "user.overlay.opaque", b"y")
    (layer / "g").mkdir()
    os.setxattr(layer / "g", "user.overlay.opaque", b"n")
    os.setxattr(layer / "g", "user.overlay.redirect", b"/etc")
    (layer / "new").write_text("n\n")
    for name in ("opaque", "redirect", "metacopy", "whiteout", "origin"):
        os.setxattr(layer / "new", f"user.overlay.{name}", b"y")
    code, told, err = keep("k", base, top, who)
    tap.eq((code, {p: v[1] for p, v in head("k", who).items()}),
           (0, {"d/y": blob("y\n"), "d/e/z": blob("z\n"), "f/other": blob("o\n"), "g/1": blob("1\n"), "new": blob("n\n")}),
           "keep: whiteouts with many names delete, an opaque folder hides, every other user.overlay attribute is ignored", told, err)
    base = told[0]
    shutil.rmtree(layer)
    layer.mkdir()
    os.symlink("/etc", layer / "d")
    (layer / "new").mkdir()
    (layer / "new/file").write_text("f\n")
    (layer / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(layer / "mounted")], check=True)
    (layer / "mounted/secret").write_text("s\n")
    (layer / "bound").write_text("")
    subprocess.run(["mount", "--bind", "/etc/passwd", str(layer / "bound")], check=True)
    code, told, err = keep("k", base, top, who)
    tap.ok(code == 0 and [told[told.index(n) + 1] for n in ("bound", "mounted") if n in told] == ["it is on another file system"] * 2 and "mounted/secret" not in head("k", who) and "bound" not in head("k", who),
           "keep: a folder or file of another file system in the upper layer is left out by name, and not read", told, err)
    for name in ("mounted", "bound"):
        subprocess.run(["umount", str(layer / name)], check=True)
    shutil.rmtree(layer / "mounted")
    (layer / "bound").unlink()
    base = told[0]
    code, told, err = keep("k", base, top, who)
    tap.eq((code, sorted(head("k", who))), (0, ["f/other", "g/1", "new/file"]),
           "keep: a folder that became a link outside is gone, a file may become a folder", told, err)
    base = told[0]
    shutil.rmtree(top / ".layers")
    os.symlink("/etc", top / ".layers")
    (top / "workspace").mkdir()
    (top / "workspace/all").write_text("w\n")
    before = git("k", "rev-parse", "main", who=who)
    for place in ("layers", "upper"):
        code, told, err = keep("k", base, top, who)
        tap.ok(code == 1 and err.count("\n") == 1 and "open what the run left" in err and git("k", "rev-parse", "main", who=who) == before,
               f"keep: a link in the place of .layers{'/upper' if place == 'upper' else ''} is refused, and no copy taken for what the run left", told, err)
        (top / ".layers" if place == "layers" else top / ".layers/upper").unlink()
        if place == "layers":
            code, told, err = keep("k", base, top, who)
            tap.ok(code == 1 and "open what the run left" in err and git("k", "rev-parse", "main", who=who) == before, "keep: without .layers nothing is committed", told, err)
            (top / ".layers").mkdir()
            os.symlink("/etc", top / ".layers/upper")
    code, told, err = keep("k", base, top, who)
    tap.eq((code, head("k", who)), (0, {"all": ("100644", blob("w\n"))}), "keep: where the jail removed the upper layer the copy is committed whole", told, err)
    (top / "workspace/all").unlink()
    (top / "workspace").rmdir()
    os.symlink("/etc", top / "workspace")
    now = git("k", "rev-parse", "main", who=who)
    code, told, err = keep("k", told[0], top, who)
    tap.ok(code == 1 and err.count("\n") == 1 and git("k", "rev-parse", "main", who=who) == now, "keep: a link in the place of the files is refused, and the head stays", code, err)
    bare = upper("ramfs")
    if bare is None:
        tap.skip("keep: an upper layer without attributes", "no ramfs can be mounted here")
        return
    (bare / ".layers/upper/plain").write_text("p\n")
    (bare / ".layers/upper/plain").chmod(0)
    code, told, err = keep("k", now.strip(), bare, who)
    tap.eq((code, sorted(head("k", who))), (0, ["all", "plain"]), "keep: an upper layer on a file system without attributes has no opaque folders, and is committed", told, err)


def processes(*words):
    """Those whose command line has all of WORDS."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        try:
            line = (p / "cmdline").read_bytes().decode(errors="replace") if p.name.isdigit() else ""
        except OSError:
            continue
        found += [int(p.name)] if all(w in line for w in words) else []
    return found


def met(run):
    """Who reads what RUN left, stopped while it reads; and what it has open. Nothing: it was over before."""
    while run.poll() is None:
        for pid in processes("cordon-workspace", "keep", "read"):
            with contextlib.suppress(OSError):  # it has just ended
                os.kill(pid, signal.SIGSTOP)
                while (mcptest.stat(pid) or ("", "Z"))[1] in "RSD":
                    pass
                held = {os.readlink(f): os.stat(f) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
                if any("/.layers/upper/big" in f for f in held):
                    return pid, held
                os.kill(pid, signal.SIGCONT)
    return 0, {}


def reader(who):
    """Who turns what a guest left into a commit, stopped while it does: the guest is gone with all it started, and the reader has
    nothing but the files, the store and its answer."""
    fresh("read", {"a": "a\n"}, who)
    marker = f"guest-{who}-{os.getpid()}"
    script = f": {marker}; for i in 1 2 3; do (while :; do echo $i > spin$i; done) & done; dd if=/dev/urandom of=big bs=1M count=48 2>/dev/null"
    command = ["exec", "--json", "--processes", "8", "--workspace", "read", "--", "/bin/sh", "-c", script]
    for _ in range(5):  # on a busy machine it may have read everything before it is met
        p = subprocess.Popen(programs.command(command, who), env=tapsys.clean_env(House.of(who)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
        pid, held = met(p)
        if held:
            break
        p.communicate()
    if not held:
        tap.ok(False, f"{who}: the reader of what a run left is seen", *p.communicate())
        return
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    guests = [i for i in processes(marker) if "cordon" not in os.path.basename(os.readlink(f"/proc/{i}/exe"))]
    os.kill(pid, signal.SIGCONT)
    r = json.loads(p.communicate(timeout=120 * tapsys.SLOW)[0])
    tap.eq(guests, [], f"{who}: no process of the guest is alive while what it left is read")
    tap.ok("\nSeccomp:\t2" in status and "\nNoNewPrivs:\t1" in status and ("\nCapEff:\t0000000000000000" in status or who == "root"), f"{who}: who reads it is behind its table of calls", status)
    ours = (f"{House.of(who)['CORDON_STATE']}/workspaces", "/.layers/", "/memfd:workspace", "/dev/null", "pipe:")
    other = [f for f, st in held.items() if not f.startswith(ours) and (f != "/" or os.path.samestat(st, os.stat("/")))]  # "/": of the guest's files
    tap.ok(not other, f"{who}: who reads it holds the files, the store and its answer, and nothing else", other, list(held))
    tap.ok(r["status"] == "ok" and "big" in head("read", who), f"{who}: what the guest left is committed", r)


def stacked():
    """Where the kernel gives no overlay (here: because the state folder already is one over another) a run gets a copy."""
    for who, state in stacked_states(users()):
        ordinary(who, {**House.of(who), "CORDON_STATE": str(state)}, ", as a copy")
        odd(who, {**House.of(who), "CORDON_STATE": str(state)}, ", as a copy")


def told(who):
    """doctor says whether runs in a workspace have layers or copies."""
    fresh("t", BASE, who)
    r = run_in("t", "stat -f -c %T .", who=who)
    [row] = [c for c in cordon(programs, ["doctor", "--json"], who).json["checks"] if c["name"] == "layers of a workspace"]
    layered = r["stdout"] == "overlayfs\n"
    tap.ok(r["status"] == "ok" and (row["state"] == "enforced") == layered and (layered or "copies" in row["fix"]),
           f"{who}: doctor says of this machine whether a run in a workspace has layers, and that it gets a copy where not", row, r.story())


def kills(count):
    """Every process of runs that commit, killed at random instants."""
    who = users()[0]
    fresh("x", {f"f{i}": str(i) for i in range(20)}, who)
    rng, heads, bad = random.Random(), 2, []
    took = []
    for i in range(3):  # the fastest: what held up one of them does not hold up all
        start = time.monotonic()
        run_in("x", f"echo {i} > more", who=who)
        took.append(time.monotonic() - start)
    heads, longest, killed, committed = 5, min(took), 0, 0
    for i in range(count):
        p = subprocess.Popen(programs.command(["exec", "--json", "--workspace", "x", "--", "/bin/sh", "-c", f"echo {i} > f{i % 20}; echo {i} > n{i}"], who), env=tapsys.clean_env(None, who),
                             cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(rng.uniform(0, longest))
        os.killpg(p.pid, signal.SIGKILL)
        out = p.communicate()[0].decode()
        longest *= 1.2 if p.returncode else 0.8
        killed += p.returncode == -signal.SIGKILL
        workspace("list", who=who)
        now = int(git("x", "rev-list", "--count", "main", who=who))
        told = '"changed": true' in out
        if now not in (heads, heads + 1) or told and now != heads + 1:
            bad.append((i, heads, now, told))
        committed += now > heads
        heads = max(heads, now)
        if i % 50 == 49 and fsck("x", who):
            bad.append((i, fsck("x", who)))
    last = run_in("x", "cat f19; echo end > end", who=who)
    tap.ok(not bad and fsck("x", who) == "" and last["snapshot"]["changed"], f"runs killed at {count} instants: the head is the old state or the new one, git fsck is clean, the next run commits",
           bad[:3], fsck("x", who), last.story())
    tap.ok(killed >= count // 6 and committed, "some runs were killed before their end, and some committed", (killed, committed))


if len(sys.argv) > 2:
    kills(int(sys.argv[2]))
    tap.done()
for person in users():
    ordinary(person)
    odd(person)
    moved(person)
    untouched(person)
    reader(person)
    changed_kinds(person)
    store_room(person)
    refusals(person)
    conflict(person)
earlier_boot(users()[-1])
killed(users()[-1])
waits(users()[-1])
told(users()[-1])
forged()
stacked()
kills(16)
tap.done()
