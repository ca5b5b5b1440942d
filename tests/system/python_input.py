# SPDX-License-Identifier: Apache-2.0
"""What a guarded program reads: --stdin by input(), sys.stdin and its bytes; cold and warm.

Usage: python_input.py BUILD"""
import atexit
import subprocess
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

# --- no more is waited for than is asked for: whoever feeds it keeps the pipe open until it has ended

WAITS = """import sys
print(repr(sys.stdin.read(0)), repr(sys.stdin.read(5)), repr(sys.stdin.readline(3)), repr(sys.stdin.buffer.read(0)), sys.stdin.buffer.readline(2), repr(sys.stdin.read(1)))
"""
p = subprocess.Popen(programs.command(["run", "--json", "--profile", "strict", "--timeout", "20s", "--stdin", "-", "-c", WAITS], who), stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, env=tapsys.clean_env({}, who), cwd="/")
p.stdin.write("helloabcde\u00fc".encode())
p.stdin.flush()
r = tapsys.Run(None, p.stdout.read().decode(), "", 0)
p.wait()
tap.ok(r["status"] == "ok" and out(r) == "'' 'hello' 'abc' b'' b'de' '\u00fc'\n", "a read gives what is asked for as soon as it is there", r.story())
p.stdin.close()


def fed(data, code, *options):
    (programs.dir / "fed.txt").write_bytes(data)
    return run(code, "--stdin", str(programs.dir / "fed.txt"), *options)


# --- characters are counted as they are given

r = fed(b"a\r\nb\r\nc\rd", "import sys\nprint([sys.stdin.read(2), sys.stdin.read(3), sys.stdin.readline(1), sys.stdin.read(9)])")
tap.ok(out(r) == "['a\\n', 'b\\nc', '\\n', 'd']\n", "a line's end is one character, however it is written", out(r), r.story())
r = fed(b"\x80\x81\xe4\xb8x\xe4\xb8\xad", "import sys\nprint(ascii([sys.stdin.read(1), sys.stdin.read(4), sys.stdin.read(1), sys.stdin.read(1)]))")
tap.ok(out(r) == "['\\udc80', '\\udc81\\udce4\\udcb8x', '\\u4e2d', '']\n", "a byte that is no UTF-8 is one character", out(r), r.story())

# --- a line costs no more than its length

LONG = b"x" * (24 << 20) + b"\n"


def cpu(code):
    r = fed(LONG, code, "--memory", "512m", "--cpu", "60s", "--timeout", "60s")
    return r["usage"]["cpu_ms"] if r["status"] == "ok" and out(r) == f"{len(LONG)}\n" else r.story()


whole = cpu("import sys\nprint(len(sys.stdin.buffer.read()))")
for way in ("readline()", "buffer.readline()", "read(24 * 2**20 + 1)", "readline(2**25)"):
    costs = cpu(f"import sys\nprint(len(sys.stdin.{way}))")
    tap.ok(isinstance(whole, float) and isinstance(costs, float) and costs < 10 * whole + 500, f"sys.stdin.{way} of one long line costs as much as its bytes do", whole, costs)

# --- reconfigure

r = fed(b"\xfcx\n", """import sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    stream.reconfigure(encoding='UTF-8', line_buffering=True)
sys.stdin.reconfigure(errors='replace')
sys.stdout.reconfigure(errors='backslashreplace')
print(ascii(input()), sys.stdin.errors, sys.stdout.errors, '\\ud800')
for words in ({'encoding': 'latin-1'}, {'errors': 'mine'}, {'newline': ''}, {'encoding': 1}):
    try:
        sys.stdin.reconfigure(**words)
    except Exception as e:
        print(type(e).__name__, str(e)[:40])
""")
tap.ok(r["status"] == "ok" and out(r) == "'\\ufffdx' replace backslashreplace \\ud800\nValueError the encoding of this stream stays utf-8,\n"
       "LookupError errors of this stream: strict, ignore, r\nValueError the line ends of this stream stay as new\nTypeError bad argument type for built-in operation\n",
       "reconfigure() changes how errors are treated, and refuses what these streams cannot be", out(r), r.story())

r = tapsys.cordon(programs, ["run", "--json", "--profile", "locked", "--stdin", str(given), "-c", "print(input())"], who)
tap.ok(r["status"] == "blocked" and r.rules() == ["py.call.input"], "locked: input() is refused", r.story())
r = run("import sys\nprint(getattr(sys.stdin, 'fileno')())", "--stdin", str(given))
tap.ok(r["status"] == "error" and r["error"]["type"] == "OSError", "the stream shows no descriptor", r.story())
r = run("import sys\nprint(type(sys.stdin.buffer)('/etc/passwd'))", "--stdin", str(given))
tap.ok(r["status"] == "error" and r["error"]["type"] == "TypeError", "the stream's type opens nothing", r.story())
tap.done()
