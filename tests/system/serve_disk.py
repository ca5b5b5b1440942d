#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose state folder has no room any more: nothing is done that cannot be recorded, every call is answered in words that name
the disk and what to do, what ran has its end on record, and all goes on when there is room."""
import os
import subprocess
import sys

import tapsys
from httptest import Site
from mcptest import appears, text, whole
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
tapsys.enter_empty_network()  # and so the mounts of the test are its own
disk = programs.dir / "disk"
disk.mkdir()
ENV = {"CORDON_STATE": str(disk / "state")}
FOREVER = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
LONG = "#" + "y" * 20000 + "\n6 * 7"  # its record is as long: what is set aside for begins is soon used up
RESERVE = 300  # records of a session; half as many take what is set aside for the ends of runs
WORDS = ("state folder", "No space left on device")


def cordon(*words):
    return tapsys.cordon(programs, list(words), env=ENV)


def fill():
    with open(disk / "full", "ab", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


def told(r):
    """Whether it was refused for want of room, in words for whoever has to make some."""
    return bool(r.get("isError")) and all(w in text(r) for w in WORDS)


def without_room(s):
    made = s.tool("session", action="new")["structuredContent"]["session_id"]
    s.run(code="x = 41", session_id=made)
    whole(s, s.tool("write_file", session_id=made, path="there", text="before"))
    job = s.tool("execute_code", code=FOREVER)["structuredContent"]["job_id"]
    fill()
    r, ran = s.run(code=LONG), 0
    while not r.get("isError") and ran < 1000:
        r, ran = s.run(code=LONG), ran + 1
    tap.ok(told(r), "a run on a full disk is refused, in words that name the disk and what to do", r)
    tap.ok(told(s.run(code="x", session_id=made)), "a call of a session on a full disk is refused in the same words")
    for tool, arguments in (("write_file", {"path": "unrecorded", "text": "u"}), ("read_file", {"path": "there"}), ("session", {"action": "fork"})):
        seen = [whole(s, s.tool(tool, session_id=made, **arguments)) for _ in range(RESERVE if tool == "write_file" else 1)]
        tap.ok(all(told(r) for r in seen), f"{tool} on a full disk is refused in the same words, however often it is asked for", next((r for r in seen if not told(r)), ""))
    tap.ok(told(s.tool("session", action="new")), "no session is made on a full disk")
    tap.ok(all(told(s.run(code=LONG)) for _ in range(RESERVE)), "a run on a full disk is refused in the same words, however often it is asked for")
    r = whole(s, s.tool("wait_job", job_id=job, cancel=True))["structuredContent"]
    tap.eq(r["stdout"], "begun\n", "a run that was under way when the disk became full is answered", r)
    r = cordon("audit", "verify")
    tap.ok(r.code == 0 and "not ended" not in r.out, "the end of a run that was under way is on record, after all that was refused", r.out, r.err)
    return made


def stopped(s):
    """The switch works without room; so does making some."""
    r = cordon("stop", "--why", "a test")
    tap.ok(r.code == 0 and "stop" in text(s.run(code="1")), "cordon stop holds on a full disk", r.out, r.err)
    tap.eq(cordon("resume").code, 0, "cordon resume works on a full disk")


def with_room(s, made):
    os.unlink(disk / "full")
    tap.eq(s.run(code="6 * 7")["structuredContent"]["value"], "42", "a run begins as soon as there is room, at the same server")
    tap.eq(s.run(code="x + 1", session_id=made)["structuredContent"]["value"], "42", "a session is as it was before the disk was full")
    names = [n["name"] for n in whole(s, s.tool("list_files", session_id=made))["structuredContent"]["names"]]
    tap.eq(names, ["there"], "what was refused for want of room was not done")
    tap.ok(not whole(s, s.tool("write_file", session_id=made, path="later", text="l")).get("isError"), "a file is written as soon as there is room")
    r = cordon("audit", "verify")
    tap.ok(r.code == 0 and "not ended" not in r.out, "the audit is whole after that", r.out, r.err)


def begins():
    """A server that finds the disk full, without a token and with one."""
    new = {"CORDON_STATE": str(disk / "new")}
    fill()
    r = tapsys.cordon(programs, ["serve", "--http", "127.0.0.1:0"], env=new)
    tap.ok(r.code == 1 and all(w in r.err for w in WORDS), "a server that has to make a token on a full disk says so and ends", r.story())
    with Site(programs, "--profile", "standard", env=ENV) as s:
        r = s.tool("execute_code", code="6 * 7")
        tap.ok(told(r) or r["structuredContent"]["value"] == "42", "a server that has its token begins on a full disk, and answers", r)
        os.unlink(disk / "full")
        tap.eq(s.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "a server that began on a full disk runs as soon as there is room")


def remounted(how):
    return subprocess.run(["mount", "-o", "remount," + how, str(disk)], stderr=subprocess.DEVNULL).returncode == 0


def read_only():
    appears(lambda: remounted("ro"))  # nobody has a file open for writing any more
    words = ("state folder", "Read-only file system")
    with Site(programs, "--profile", "standard", env=ENV) as s:
        for tool, arguments in (("execute_code", {"code": "6 * 7"}), ("session", {"action": "new"})):
            r = s.tool(tool, **arguments)
            tap.ok(r.get("isError") and all(w in text(r) for w in words), f"{tool} with a state folder that is read-only is refused in words that name it", r)
        remounted("rw")
        tap.eq(s.tool("execute_code", code="6 * 7")["structuredContent"]["value"], "42", "a server whose state folder was read-only runs as soon as it can be written")
    cordon("pool", "stop", "--force")
    appears(lambda: remounted("ro"))
    r = tapsys.cordon(programs, ["serve", "--http", "127.0.0.1:0"], env={"CORDON_STATE": str(disk / "other")})
    tap.ok(r.code == 1 and all(w in r.err for w in words), "a server whose state folder cannot be made says so and ends", r.story())


if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(disk)], stderr=subprocess.DEVNULL).returncode:
    tap.skip("a server with a full disk", "no file system can be mounted here")
else:
    try:
        with Site(programs, "--profile", "standard", "--timeout", "10m", "--answer", "1s", "--drain", "0s", env=ENV) as site:
            session = without_room(site)
            stopped(site)
            with_room(site, session)
        begins()
        cordon("pool", "stop", "--force")
        read_only()
    finally:
        cordon("pool", "stop", "--force")
        subprocess.run(["umount", "-l", str(disk)])
tap.done()
