# SPDX-License-Identifier: Apache-2.0
"""What a guarded program reads: --stdin by input(), sys.stdin and its bytes; cold and warm.

Usage: python_input.py BUILD"""
import atexit
import sys

import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
who = tapsys.users()[-1]
GIVEN = b"3\n1 2 3\nraw\r\nx\r\ny\rz \xff"
LINES = """import sys
n = int(input('n? '))
numbers = list(map(int, sys.stdin.readline().split()))
print(n, numbers, sys.stdin.buffer.readline(), [line for line in sys.stdin], repr(sys.stdin.read()))
"""
SAYS = "n? 3 [1, 2, 3] b'raw\\r\\n' ['x\\n', 'y\\n', 'z \\udcff'] ''\n"
PARTS = """import sys
print(repr(sys.stdin.read(3)), repr(sys.stdin.buffer.read(2)), repr(sys.stdin.readline(2)), sys.stdin.readlines())
try:
    input()
except EOFError as e:
    print('the end:', e)
sys.stdout.buffer.write(b'bytes')
"""
PARTS_SAY = "'3\\n1' b' 2' ' 3' ['\\n', 'raw\\n', 'x\\n', 'y\\n', 'z \\udcff']\nthe end: EOF when reading a line\nbytes"
given = programs.dir / "given.txt"
given.write_bytes(GIVEN)


def out(r):
    return r["stdout"] or ""


def run(code, *options):
    return tapsys.cordon(programs, ["run", "--json", "--profile", "strict", *options, "-c", code], who)


for warm in (False, True):
    how = "warm" if warm else "cold"
    if warm:
        tap.eq(tapsys.cordon(programs, ["pool", "start", "--profile", "strict"], who).code, 0, "a pool is started")
        atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)
    r = run(LINES, "--stdin", str(given))
    tap.ok(r["status"] == "ok" and out(r) == SAYS, f"{how}: lines by input(), sys.stdin and its bytes, in any order", out(r), r.story())
    r = run(PARTS, "--stdin", str(given))
    tap.ok(r["status"] == "ok" and out(r) == PARTS_SAY, f"{how}: parts of lines, and the end", out(r), r.story())
    tap.eq(r["violations"], [], f"{how}: reading is nothing to report")
    r = run("input()")
    tap.ok(r["status"] == "error" and r["error"]["type"] == "EOFError", f"{how}: without --stdin there is nothing to read", r.story())

r = tapsys.cordon(programs, ["run", "--json", "--profile", "locked", "--stdin", str(given), "-c", "print(input())"], who)
tap.ok(r["status"] == "blocked" and r.rules() == ["py.call.input"], "locked: input() is refused", r.story())
r = run("import sys\nprint(getattr(sys.stdin, 'fileno')())", "--stdin", str(given))
tap.ok(r["status"] == "error" and r["error"]["type"] == "OSError", "the stream shows no descriptor", r.story())
r = run("import sys\nprint(type(sys.stdin.buffer)('/etc/passwd'))", "--stdin", str(given))
tap.ok(r["status"] == "error" and r["error"]["type"] == "TypeError", "the stream's type opens nothing", r.story())
tap.done()
