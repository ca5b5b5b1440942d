#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names that change kind while Cordon reads or writes them: links, FIFOs, folders and hard links put in each other's place. What is
read is never what a link leads to, what is written never lands where one leads, and nobody waits for a FIFO.

Usage: workspace_races.py BUILD [COUNT]. COUNT: rounds of each race (`make workspace-races`: 10,000)."""
import functools
import os
import sys

sys.dont_write_bytecode = True
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
    (top / "sub").mkdir(parents=True)
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


def racing(top):
    """A session whose thread swaps its files."""
    s = cordon(programs, ["session", "new", "--profile", "standard", "--inodes", "100000", "--workspace", "w"], WHO).out.strip()
    return s, cordon(programs, ["session", "run", "--json", s, "-c", THREAD.format(canary=str(top), folders=FOLDERS)], WHO)


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
    s, r = racing(top)
    tap.ok(r["status"] == "ok", "a thread of the session swaps its files", r.story())
    ends, strange, filled = {}, [], 0
    for i in range(COUNT):
        workspace("import", "w", (second, first)[i % 2])
        r = cordon(programs, ["session", "run", "--json", s, "-c", "1"], WHO)
        ends[r["status"]] = ends.get(r["status"], 0) + 1
        reason = (r["snapshot"] or {}).get("reason") or ""
        filled += r["status"] == "ok" and not reason.startswith("conflict")
        if r.code is None or r["status"] not in ("ok", "error", "refused"):
            strange.append(r.story())
        if r["status"] != "ok" or reason or i % 40 == 39:  # it does not follow the head any more; a session has 50 calls
            cordon(programs, ["session", "close", s], WHO)
            s, _ = racing(top)
    tap.ok(not strange, f"{COUNT} heads put into a session whose thread swaps the files: each call ends", strange[:2], ends)
    tap.ok(filled > COUNT // 3, "most of these heads were put into it", (filled, ends))
    tap.eq(listing(top), before, "what is written into a session never lands where a link of its thread leads")
    tap.ok(SECRET not in git("w", "log", "-p", "--all"), "what is committed from it is never what a link of its thread leads to")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress"), "", "git fsck is clean after the race")
    cordon(programs, ["pool", "stop", "--force"], WHO)
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


session_race()
import_race()
tap.done()
