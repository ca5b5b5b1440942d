"""What a session may do between two calls, and what one call may leave to the next: nothing.

Usage: session_rest.py BUILD. As root and as an ordinary user, in sessions and in branches of them."""
import atexit
import os
import sys
import tempfile

import tapsys
from pooltest import User

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)


# --- standard input -----------------------------------------------------------------------------------

def file_with(text):
    fd, path = tempfile.mkstemp(dir=programs.dir)
    os.write(fd, text.encode())
    os.fchmod(fd, 0o644)
    os.close(fd)
    return path


def own_input(u, s, what):
    """Each call reads what it was given, whatever the call before left unread."""
    first, second = file_with("one\ntwo\nthree\n"), file_with("four\nfive\n")
    read_all = "import sys\nsys.stdin.read()\n"
    r = u.cell(s, "input()\n", "--stdin", first)
    u.ok(r["value"] == "'one'", f"{what}: a call reads its own input", r)
    r = u.cell(s, read_all, "--stdin", second)
    u.ok(r["value"] == r"'four\nfive\n'", f"{what}: the next call does not get the lines that the call before left unread", r)
    u.cell(s, "input()\n", "--stdin", first)
    r = u.cell(s, read_all, "--timeout", "10s")
    u.ok(r["value"] == "''", f"{what}: a call without an input is at the end of its input at once", r)
    u.cell(s, "import sys\nfrom sys import stdin\nstdin.readline()\n", "--stdin", first)
    r = u.cell(s, "stdin.readline(), sys.stdin is stdin\n", "--stdin", second)
    u.ok(r["value"] == r"('four\n', True)", f"{what}: a reader that the guest kept reads the input of the call", r)
    u.cell(s, "raw = sys.stdin.buffer\nraw.read(2)\n", "--stdin", first)
    r = u.cell(s, "raw.read()\n", "--stdin", second)
    u.ok(r["value"] == r"b'four\nfive\n'", f"{what}: so does one of bytes", r)
    u.cell(s, "import os\nos.close(0)\n", "--stdin", first)
    r = u.cell(s, "input()\n", "--stdin", second)
    u.ok(r["value"] == "'four'", f"{what}: a call after one that closed its input has its own", r)
    u.cell(s, "import io\nsys.stdin = io.StringIO('of the guest')\n", "--stdin", first)
    r = u.cell(s, "sys.stdin.read()\n", "--stdin", second)
    u.ok(r["value"] == "'of the guest'", f"{what}: what the guest put in the place of its input stays there", r)
    u.cell(s, "sys.stdin = sys.__stdin__\n")


def inputs(u):
    s = u.new("--profile", "standard")
    own_input(u, s, "session")
    u.cell(s, "input()\n", "--stdin", file_with("left\nbehind\n"))
    branch = u("session", "fork", s).out.strip()
    r = u.cell(branch, "sys.stdin.read()\n", "--stdin", file_with("new\n"))
    u.ok(r["value"] == r"'new\n'", "a branch does not get the lines that its session left unread", r)
    own_input(u, branch, "branch")
    r = u.cell(s, "sys.stdin.read()\n", "--stdin", file_with("old\n"))
    u.ok(r["value"] == r"'old\n'", "nor does the session after it was forked", r)
    for name in (s, branch):
        u("session", "close", name)
    r = u("repl", "--profile", "standard", "--stdin", file_with("a\nb\n"), text="x = input()\ny = input()\nx, y\n")
    u.ok("('a', 'b')" in r.out, "the blocks of one repl read one input, line after line", r)


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")
    inputs(user)
tap.done()
