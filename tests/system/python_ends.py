# SPDX-License-Identifier: Apache-2.0
"""How Python programs end, and that the supervisor is none the worse for it.

Usage: python_ends.py BUILD. One row a program: how it must end, exit code, type of the error, what was printed."""
import atexit
import ctypes
import os
import resource
import sys
import tempfile

import exits
import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)

BOMB = "import zlib\nprint('before')\nbomb = zlib.compress(b'0' * 10**7)\nx = [zlib.decompress(bomb) for i in range(200)]\n"
ENDLESS = ("import sys\nsys.setrecursionlimit(10**9)\nprint('before')\n"
           "class A:\n    def __repr__(self): return repr(A())\nrepr(A())\n")
STACK = {"status": "crashed", "layer": "resources", "signal": 11, "error.type": "StackOverflow",
         "reason": "killed by signal 11 (SEGV): stack exhausted (limit 256 MB); nest objects less deeply"}
CLOSES = ("import sqlite3\ndb = sqlite3.connect(':memory:')\nclass A:\n    def __conform__(self, protocol):\n        db.close()\n        return 1\n"
          "print('before')\ndb.execute('select ?', (A(),))\n")
MANY = """import threading
b = threading.Barrier(13)
def allocates():
    x = [bytearray(700) for i in range(100)]
    b.wait()
    b.wait()
for i in range(12): threading.Thread(target=allocates, daemon=True).start()
b.wait()
"""  # twelve threads that all have allocated
THREADS = ("import threading\nhold = threading.Barrier(3)\nt = [threading.Thread(target=hold.wait, daemon=True) for i in range(2)]\n"
           "[x.start() for x in t]\nprint(threading.active_count() - 1)\nhold.wait()\n[x.join() for x in t]\n")
SECOND = f"{tapsys.SLOW}s"  # where the processor is emulated the start of Python alone takes a second
SOON = "{soon}"  # a time limit that leaves a program the time to print
LONG = tapsys.LONG
ROWS = [  # name, source, options, {key: value}, printed
    ("runs to its end", "print('x')", [], {"status": "ok", "exit_code": 0}, "x\n"),
    ("raises", "print('x')\ndef f():\n    return 1 / 0\nf()", [], {"status": "error", "error.type": "ZeroDivisionError", "error.line": 3, "exit_code": 1}, "x\n"),
    ("memory bomb", "print('before')\nx = []\nwhile True: x.append('y' * 10**6)", LONG, {"status": "memory", "layer": "resources", "error.type": "MemoryError"}, "before\n"),
    *((f"patterns without end in {size} MB", "import re\nx = []\nfor i in range(10**9): x.append(re.compile(f'a{i}(b|c)*'))", [*LONG, "--memory", f"{size}m"], {"status": "memory", "layer": "resources"}, "")
      for size in (16, 17, 18, 20, 24)),  # the compiler of patterns forgets to say so at some
    ("one huge list", "print('before')\nx = [0] * 10**9", [], {"status": "memory"}, "before\n"),
    ("endless loop", "print('before', end='')\nwhile True: pass", ["--timeout", SOON], {"status": "timeout", "exit_code": -9, "signal": 9, "error.message": f"Execution timeout exceeded ({SOON})"}, "before"),
    ("CPU time", "while True: pass", ["--cpu", SECOND], {"status": "timeout"}, ""),
    ("sleeps too long", "import time\nprint('before')\ntime.sleep(500)", ["--timeout", SOON], {"status": "timeout"}, "before\n"),
    ("recursion in C without an end", ENDLESS, LONG, STACK, "before\n"),
    ("recursion in C without an end, memory by rlimit", ENDLESS, ["--memory-by", "rlimit", *LONG], STACK, "before\n"),
    ("a stack that nobody uses takes no address space", "print(sum(range(10)))", ["--memory-by", "rlimit", "--memory", "128m"], {"status": "ok"}, "45\n"),
    ("stacks of threads are of the usual size", THREADS, ["--memory-by", "rlimit", "--memory", "512m"], {"status": "ok"}, "2\n"),
    ("threads that use little take little of the limit", MANY + "x = bytearray(250 << 20)\nb.wait()\nprint(len(x) >> 20)\n", ["--memory-by", "rlimit", "--memory", "512m"], {"status": "ok"}, "250\n"),
    # Why strict has no sqlite3, not even in memory. A Python in which this row fails is a reason to think again.
    ("an object that sqlite3 asks in the middle of a statement ends the interpreter", CLOSES, [], {"status": "crashed", "signal": 11}, "before\n"),
    ("recursion", "def f(): f()\nf()", [], {"status": "error", "error.type": "RecursionError"}, ""),
    ("deep recursion of the parser", "(" * 5000, [], {"status": "blocked", "error.type": "ValidationError"}, ""),
    ("huge number", "x = 9 ** 9 ** 9", ["--timeout", f"{2 * tapsys.SLOW}s"], {"status": "timeout"}, ""),
    ("huge number as text", "print(len(str(10 ** 10000)))", [], {"status": "error", "error.type": "ValueError"}, ""),
    ("fails for another reason after a refusal", "try:\n    bytearray(1 << 50)\nexcept MemoryError:\n    pass\nraise ValueError('later')", [], {"status": "error", "layer": None, "error.type": "ValueError"}, ""),
    ("grows a list by realloc", "x = [0] * (12 << 20)\nwhile True: x.extend(x[:1 << 20])", [], {"status": "memory", "layer": "resources", "error.type": "MemoryError"}, ""),
    ("raises MemoryError itself", "raise MemoryError('no evidence')", [], {"status": "error", "layer": None, "error.type": "MemoryError"}, ""),
    ("asks for most of the limit twice", "print('before')\na = bytearray(300 * 2**20)\nb = bytearray(300 * 2**20)", [], {"status": "memory", "layer": "resources"}, "before\n"),
    ("maps half of the limit three times", "print('before')\nx = [bytearray(200 * 2**20) for i in range(3)]", [], {"status": "memory", "layer": "resources"}, "before\n"),
    ("asks for most of the limit once", "print(len(bytearray(300 * 2**20)))", [], {"status": "ok"}, "314572800\n"),
    ("more at once than any machine has", "print('before')\nx = bytearray(1 << 50)", [], {"status": "memory", "layer": "resources", "error.type": "MemoryError"}, "before\n"),
    ("huge string", "x = 'x' * 10**10", [], {"status": "memory"}, ""),
    ("decompression bomb", BOMB, [], {"status": "memory"}, "before\n"),
    ("sys.exit", "import sys\nprint('x')\nsys.exit(3)", [], {"status": "error", "exit_code": 3, "error.type": "ExitStatus"}, "x\n"),
    ("sys.exit(0)", "import sys\nsys.exit()", [], {"status": "ok", "exit_code": 0}, ""),
    ("sys.exit with words", "import sys\nsys.exit('no')", [], {"status": "error", "exit_code": 1, "stderr": "no\n"}, ""),
    ("os._exit", "import os\nprint('x')\nos._exit(4)", [], {"status": "error", "exit_code": 4}, "x\n"),
    ("kills itself", "import os\nprint('x')\nos.kill(os.getpid(), 9)", [], {"status": "crashed", "signal": 9}, "x\n"),
    ("aborts", "import os\nprint('x')\nos.abort()", [], {"status": "crashed", "signal": 6}, "x\n"),
    ("segmentation fault", "import ctypes\nprint('x')\nctypes.string_at(0)", [], {"status": "crashed", "signal": 11}, "x\n"),
    ("closes its stdout", "import os\nprint('x')\nos.close(1)\nopen('/workspace/f', 'w').write('still here')", [], {"status": "ok"}, "x\n"),
    ("garbage on the channel", "import os\nprint('x')\nos.write(3, b'garbage')\nwhile True: pass", [], {"status": "error", "error.type": "ProtocolError", "layer": "process"}, "x\n"),
    ("a flood of garbage", "import os\nwhile True: os.write(3, b'\\x81\\x0a' * 1000)", [], {"status": "error", "error.type": "ProtocolError"}, ""),
    ("says it is done, and goes on", "import os\nprint('x')\nos.write(3, b'\\x82' + bytes([DONE]) + b'\\x00')\nwhile True: pass", [], {"status": "ok", "exit_code": 0}, "x\n"),
    ("closes the channel", "import os\nprint('x')\nos.close(3)", [], {"status": "ok"}, "x\n"),
    ("floods its output", "while True: print('x' * 1000)", ["--output", "10k"], {"status": "output", "truncated": True}, None),
    ("prints more than is kept", "for i in range(3000): print(i)", ["--output", "10k"], {"status": "ok", "truncated": True, "stdout_bytes": 13890}, None),
    ("value", "x = 20\nx + 22", [], {"status": "ok", "value": "42"}, ""),
    ("a last value of more digits than Python writes is no failure", "print('x')\n2 ** 20000", [], {"status": "ok", "exit_code": 0, "value": "<int object; its repr raised ValueError>"}, "x\n"),
    ("a last value whose repr raises is no failure", "class A:\n    def __repr__(self): return 1 / 0\nA()", [], {"status": "ok", "value": "<A object; its repr raised ZeroDivisionError>"}, ""),
    ("a last value whose repr ends the program", "import sys\nclass A:\n    def __repr__(self): sys.exit(3)\nA()", [], {"status": "error", "exit_code": 3}, ""),
    ("a value of 100,000 characters of three bytes each is kept whole", "chr(0x4e8c) * 99998", [], {"status": "ok", "value": "'" + "\u4e8c" * 99998 + "'", "truncated": False}, ""),
    ("a value of one character more is cut, and says so", "chr(0x4e8c) * 99999", [], {"status": "ok", "truncated": True}, ""),
    ("an answer of 100,000 characters of four bytes each is kept whole", "FINAL(chr(0x1f600) * 100000)", [], {"status": "ok", "final": "\U0001f600" * 100000, "truncated": False}, ""),
    ("final", "FINAL({'a': 1})\nprint('not here')", [], {"status": "ok", "is_final": True, "final": "{'a': 1}"}, ""),
    ("final in a function", "def f():\n    FINAL(7)\nf()", [], {"status": "ok", "is_final": True, "final": "7"}, ""),
    ("a tool", "print(echo(1, b=[2]))", ["--tool", "echo"], {"status": "ok"}, "{'args': [1], 'kwargs': {'b': [2]}}\n"),
    ("a tool too often", "for i in range(60): echo(i)", ["--tool", "echo", *LONG], {"status": "error", "error.type": "RuntimeError"}, ""),
    ("a tool that was not given", "echo(1)", [], {"status": "error", "error.type": "NameError", "error.hint": "echo is a tool, and this run was not given it: --tool echo gives it"}, ""),
    ("arguments that are too long", "echo('x' * 10**6)", ["--tool", "echo"], {"status": "error", "error.type": "ValueError"}, ""),
    ("its input", "print(input())", ["--stdin", "{input}"], {"status": "ok"}, "some input\n"),
    ("no input", "print(input())", [], {"status": "error", "error.type": "EOFError"}, ""),
    ("threads", "import threading\nseen = []\nt = [threading.Thread(target=seen.append, args=(1,)) for i in range(4)]\n[x.start() for x in t]\n[x.join() for x in t]\nprint(seen)", [], {"status": "ok"}, "[1, 1, 1, 1]\n"),
    ("starts programs where it may", "import os, subprocess\nprint(subprocess.run(['/bin/echo', 'out'], capture_output=True, text=True).stdout, end='')\n"
     "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, -2])))\n",
     ["--processes", "8", "--memory-by", "rlimit"], {"status": "ok"}, "out\n[1, 2]\n"),
    ("starts no program otherwise", "import subprocess\ntry: subprocess.run(['/bin/echo', 'out'])\nexcept OSError: print('no')\n", [], {"status": "ok"}, "no\n"),
    ("may start programs, but no namespace", "import subprocess\nprint(subprocess.run(['/usr/bin/unshare', '-U', 'true'], capture_output=True).returncode)\n",
     ["--processes", "8", "--memory-by", "rlimit"], {"status": "ok"}, "1\n"),
    ("what it started dies with it", "import subprocess\nsubprocess.Popen(['/bin/sleep', '1000'])\nprint('left')\n", ["--processes", "8", "--memory-by", "rlimit"], {"status": "ok"}, "left\n"),
    ("asyncio", "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    print('slept')\nasyncio.run(f())", [], {"status": "ok"}, "slept\n"),
    ("exit functions", "import atexit\natexit.register(print, 'bye')", [], {"status": "ok"}, "bye\n"),
    ("a thread that outlives main", "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()", [], {"status": "ok"}, "late\n"),
    ("a pool of threads that outlives main", "import concurrent.futures, time\ne = concurrent.futures.ThreadPoolExecutor(1)\ne.submit(lambda: (time.sleep(0.1), print('late')))\nprint('first')", [], {"status": "ok"}, "first\nlate\n"),
    ("a log that is written at the end", "import logging, logging.handlers, sys\nlogging.getLogger().addHandler(logging.handlers.MemoryHandler(100, target=logging.StreamHandler(sys.stdout)))\nlogging.warning('held back')", [], {"status": "ok"}, "held back\n"),
    ("the same where pandas is loaded ahead", "# pandas\nimport logging, logging.handlers, sys\nlogging.getLogger().addHandler(logging.handlers.MemoryHandler(100, target=logging.StreamHandler(sys.stdout)))\nlogging.warning('held back')", [], {"status": "ok"}, "held back\n"),
    ("no handler but its last resort", "import logging\nlogging.lastResort = None\nprint(1)", [], {"status": "ok"}, "1\n"),
    ("its environment", "import os\nprint(sorted(os.environ))", ["--env", "A=1"], {"status": "ok"}, "['A', 'HF_HOME', 'HOME', 'LANG', 'MALLOC_ARENA_MAX', 'MPLBACKEND', 'MPLCONFIGDIR', 'PATH', 'PWD', 'PYTHONDONTWRITEBYTECODE', 'TMPDIR', 'XDG_CACHE_HOME']\n"),
    ("variables that steer a loader", "import os\nprint(os.environ['LD_PRELOAD'], os.environ['LD_LIBRARY_PATH'])", ["--env", "LD_PRELOAD=/nothing.so", "--env", "LD_LIBRARY_PATH=/workspace"], {"status": "ok", "stderr": ""}, "/nothing.so /workspace\n"),
    ("what it finds open", "import os\nfor i in range(64):\n    try: os.fstat(i)\n    except OSError: continue\n    print(i, end=' ')", [], {"status": "ok"}, "0 1 2 3 "),
    ("where it is", "import os, time\nprint(os.getcwd(), os.getpid(), os.getuid(), time.tzname, os.path.exists('/var'), os.listdir('/.old'))", [], {"status": "ok"}, "/workspace 2 1000 ('UTC', 'UTC') False []\n"),
    ("os is not loaded for a program that does not need it", "import sys\nprint('os' in sys.modules)", [], {"status": "ok"}, "False\n"),
    ("another encoding", "print('\\xe9'.encode('latin-1'), '\\xfc'.encode('idna'), b'\\x80'.decode('cp1252'))", [], {"status": "ok"}, "b'\\xe9' b'xn--tda' \u20ac\n"),
    ("the collector", "import gc, weakref\nclass A: pass\na = A()\na.a = a\nseen = weakref.ref(a)\ndel a\nprint(gc.isenabled(), gc.collect() > 0, seen())", [], {"status": "ok"}, "True True None\n"),
    ("files", "import os\nos.makedirs('a/b')\nopen('a/b/c.txt', 'w').write('12345')\nos.symlink('/etc/passwd', 'link')", [], {"status": "ok", "files": [{"path": "/workspace/a/b/c.txt", "bytes": 5, "change": "created", "type": None, "saved": None}]}, ""),
    ("a program of one comment", "# nothing", [], {"status": "ok"}, ""),
    ("too long a source", "x = 1\n" * 10000, [], {"status": "blocked", "error.type": "ValidationError", "error.message": "Security violations: Code exceeds size limit (50KB)"}, ""),
    ("a source of 50,000 characters of three bytes each", "#" + "\u4e8c" * 49999, [], {"status": "ok"}, ""),
    ("a source of 50,001 characters of three bytes each", "#" + "\u4e8c" * 50000, [], {"status": "blocked", "error.message": "Security violations: Code exceeds size limit (50KB)"}, ""),
    ("far too long a source", "x = 1\n" * 300000, [], {"status": "blocked", "error.type": "ValidationError", "error.message": "Security violations: Code exceeds size limit (50KB)"}, ""),
    ("not UTF-8", b"x = '\xff'\n", [], {"status": "blocked", "error.type": "ValidationError"}, ""),
    ("NUL", b"x = 1\0\n", [], {"status": "blocked", "error.type": "ValidationError"}, ""),
    ("syntax", "x = (\n", [], {"status": "blocked", "error.type": "ValidationError", "error.line": 1}, ""),
]


UNPRINTABLE = "print('x')\ns = SyntaxError('m', ('f', 1, -5, 'text', 1, -3))\ns.offset, s.end_offset, s.end_lineno, s.text = -10**6, -10**5, 1, 'abc\\udc80'\nraise s\n"
GUARDED = [  # of the profiles with guards alone
    ("an error that Python cannot print is named, without an address", UNPRINTABLE, [],
     {"status": "error", "error.type": "SyntaxError", "stderr": 'Traceback (most recent call last):\n  File "<stdin>", line 4, in <module>\n    raise s\n  File "f", line 1\nSyntaxError: it cannot be printed\n'}, "x\n"),
    ("an error is printed as Python prints it, with the lines of the program", "def f():\n    raise ValueError('a') from KeyError('b')\nf()\n", [],
     {"stderr": 'KeyError: \'b\'\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "<stdin>", line 3, in <module>\n    f()\n  File "<stdin>", line 2, in f\n    raise ValueError(\'a\') from KeyError(\'b\')\nValueError: a\n'}, ""),
]
IN_ORDER = "threads and executors ran in order, in one thread: start() and submit() return when the work is done"
CAUSES = "e = None\nfor i in range(100000):\n    n = ValueError(i)\n    n.__cause__ = e\n    e = n\nraise e\n"
STRICT = [  # of strict alone
    ("sqlite3 is refused in memory, too, and the hint says what takes its place", CLOSES, [], {"status": "blocked", "violations": "keep rows in lists and dicts"}, ""),
    ("recursion in C without an end is named where the program only computes, too", ENDLESS, LONG, STACK, "before\n"),
    ("a chain of 100,000 causes is an error like another", CAUSES, [], {"status": "error", "error.type": "ValueError", "signal": None}, ""),
    ("threads and executors run in order, which is said once and is no violation",
     "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nfor i in range(2):\n    threading.Thread(target=print, args=(i,)).start()\n"
     "with ThreadPoolExecutor() as pool:\n    print(list(pool.map(abs, [-2, -3])))\n", [], {"status": "ok", "notes": [IN_ORDER], "violations": []}, "0\n1\n[2, 3]\n"),
    ("a program that starts no thread is told nothing", "import threading\nprint(threading.Lock().acquire())\n", [], {"status": "ok", "notes": []}, "True\n"),
    ("a wait that nobody can end is an error at once", "import threading\nthreading.Event().wait()\n", [], {"status": "error", "error.type": "RuntimeError", "error.line": 2}, ""),
    ("an exception of a thread is printed and ends only the thread", "import threading\nthreading.Thread(target=int, args=('x',), name='t').start()\nprint('on')\n", [], {"status": "ok", "violations": []}, "on\n"),
    ("time zones are there without a file", "import zoneinfo, datetime\nz = zoneinfo.ZoneInfo('America/New_York')\nprint(datetime.datetime(2024, 7, 1, tzinfo=z).utcoffset(), len(zoneinfo.available_timezones()) > 300)\n",
     [], {"status": "ok", "violations": []}, "-1 day, 20:00:00 True\n"),
    ("a zone that is none is not found, and no file is looked for", "import zoneinfo\nfor key in ('No/Where', '../passwd', '/etc/passwd'):\n    try: zoneinfo.ZoneInfo(key)\n    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as e: print(type(e).__name__)\n",
     [], {"status": "ok", "violations": []}, "ZoneInfoNotFoundError\nValueError\nValueError\n"),
    ("warnings are caught", "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter('always')\n    warnings.warn('hm')\nprint(len(w), w[0].category.__name__)\n", [], {"status": "ok"}, "1 UserWarning\n"),
    ("a hint comes whole, also the longest", "import nosuchmodule\n", [], {"status": "blocked", "violations": "zoneinfo"}, ""),
    ("what there is of a module is told while it runs, too", "import sys\ngetattr(sys, 'mod' + 'ules')\n", [], {"status": "error", "violations": "of sys there is stdin, stdout"}, ""),
]


def done_number():
    """The number of DONE on the wire: the place in the one table."""
    import pathlib, re
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/msg.h").read_text()
    worker = re.search(r"#define WIRE_WORKER_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1)
    main = re.search(r"#define WIRE_MESSAGES\(X\)(.*?)\n\n", text, re.S).group(1).replace("WIRE_WORKER_MESSAGES(X)", worker)
    number = re.findall(r"X\((\w+), ", main).index("DONE") + 1
    assert 23 < number < 256  # one byte after its head in CBOR
    return number


DEEP = "x = iter([0, 1, 2])\nfor i in range(200000):\n    x = filter(None, x)\nprint(list(x))\n"


def in_a_session(who):
    """Deep objects in a cell; a cell that uses up the stack ends its session, and says so."""
    r = tapsys.cordon(programs, ["session", "new", "deep", "--profile", "open"], who)
    tap.eq(r.code, 0, f"{who}: a session for deep objects", r.err)
    r = tapsys.cordon(programs, ["session", "run", "deep", "--json", "-"], who, text=DEEP)
    tap.ok(r["status"] == "ok" and r["stdout"] == "[1, 2]\n", f"{who}: 200,000 nested filters run in a session", r.story())
    r = tapsys.cordon(programs, ["session", "run", "deep", "--json", *LONG, "-"], who, text=ENDLESS)
    faults = [k for k, v in STACK.items() if pick(r.json, k) != v]
    tap.ok(not faults and r["stdout"] == "before\n", f"{who}: recursion in C without an end is named in a session, too", faults, r.story())


def ran(who, profile, options, text):
    """The run of a row, and the time limit that SOON was."""
    limit = None

    def attempt(seconds):
        nonlocal limit
        limit = f"{seconds}s"
        return tapsys.cordon(programs, ["run", "--json", "--profile", profile, *[o.replace(SOON, limit) for o in options], "-"], who, text=text)
    return (tapsys.late_enough(attempt, 1) if SOON in options else attempt(1)), limit


def pick(result, key):
    for part in key.split("."):
        result = (result or {}).get(part)
    return result


WARM = "warm" in sys.argv[2:]  # the same rows with children of a pool

for who in tapsys.users():
    if WARM:
        r = tapsys.cordon(programs, ["pool", "start", "--profile", "standard", "--profile", "open", "--profile", "strict"], who)
        tap.eq(r.code, 0, f"{who}: a pool is started", r.err)
        atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)  # also when the test itself breaks
    canaries = tapsys.Canaries(programs, who)
    given = canaries.ro / "input"
    given.write_text("some input\n")
    for name, source, options, want, printed in ROWS + GUARDED + STRICT:
        options = [o.replace("{input}", str(given)) for o in options]
        text = source.replace("[DONE]", f"[24, {done_number()}]") if isinstance(source, str) else source
        profiles = ("strict",) if any(name == row[0] for row in STRICT) else ("strict", "locked") if any(name == row[0] for row in GUARDED) else ("strict", "standard") if "size limit" in str(want) else ("standard", "open")
        for profile in profiles:
            r, soon = ran(who, profile, options, text)
            wanted = {k: v.replace(SOON, soon) if isinstance(v, str) else v for k, v in want.items()}
            what = f"{who}: {profile}: {name}"
            faults = [f"{k} is {pick(r.json, k)!r}, not {v!r}" for k, v in wanted.items()
                      if (pick(r.json, k) != v if k != "violations" or v == [] else not any(v in x["hint"] for x in r["violations"]))]
            if printed is not None and r["stdout"] != printed:
                faults.append(f"stdout is {(r['stdout'] or '')[:200]!r}, not {printed!r}")
            tap.ok(not faults, what, *faults, r.story())
            tap.eq(tapsys.shape_faults(r.json), [], f"{what}: the result has its shape")
    endless = programs.dir / "endless.py"  # a file: who reads standard input waits for it no longer than that either
    endless.write_text("while True: pass\n")
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--timeout", "1ms", str(endless)], who)
    tap.eq((r.code, r["status"], r["layer"], pick(r.json, "error.type"), pick(r.json, "error.message")),
           (exits.LIMIT, "timeout", "resources", "TimeoutError", "Execution timeout exceeded (0.001s)"), f"{who}: a time that is over before the program begins is a timeout, and no fault of the host", r.story())
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
    canaries.close()
    if WARM:
        in_a_session(who)
        r = tapsys.cordon(programs, ["pool", "status", "--json"], who)
        tap.ok((r["leases"] or 0) > len(ROWS) and all(t["crashes"] == 0 for t in r["templates"]), f"{who}: {r['leases']} runs were warm, no template died",
               *[(t["name"], t["crashes"], t["error"]) for t in r["templates"] or ()])
        tap.eq(tapsys.cordon(programs, ["pool", "stop"], who).code, 0, f"{who}: the holder stops when it is told to")

# `cordon check`
for source, code, want in (("import subprocess\n", exits.FAILED, {"is_safe": False, "risk_level": "high", "blocked_operations": ["Blocked import: subprocess"], "message": "Security violations: Blocked import: subprocess"}),
                           ("print(1)\n", exits.DONE, {"is_safe": True, "risk_level": "safe", "blocked_operations": [], "message": "Code passed validation", "violations": []}),
                           ("class A(metaclass=B): pass\n", exits.FAILED, {"blocked_operations": ["Blocked: metaclass usage"]}),
                           ("class A:\n    def __get__(self, o, t): pass\n", exits.FAILED, {"blocked_operations": ["Blocked descriptor method: __get__"]}),
                           ("eval('1')\nexec('2')\n", exits.FAILED, {"blocked_operations": ["Blocked function: eval", "Blocked function: exec"]}),
                           ("import json, subprocess\n", exits.FAILED, {"blocked_operations": ["Blocked import: subprocess"]}),
                           ("from code_api import search\n", exits.DONE, {"is_safe": True}),
                           ("x = (\n", exits.FAILED, {"is_safe": False, "risk_level": "high"})):
    r = tapsys.cordon(programs, ["check", "--json", "-"], tapsys.users()[-1], text=source)
    tap.ok(r.code == code and all(r[k] == v for k, v in want.items()), f"check: {source!r}", r.story())


# ---- faults of the host: each is named, with what to do, and `check --json` prints its object ----

def bounded(limit, value):
    return lambda: resource.setrlimit(limit, (value, value))


def without_proc():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0 or libc.mount(None, b"/", None, 0x4000 | 0x40000, None) != 0 or libc.umount2(b"/proc", 2) != 0:
        os._exit(77)


CHECK_KEYS = {"status", "layer", "is_safe", "risk_level", "blocked_operations", "message", "violations"}
FAULTS = [("no address space", bounded(resource.RLIMIT_AS, 10 << 20), "does not fit into 10240 KB of address space; raise `ulimit -v`")]
if os.geteuid() == 0:
    FAULTS.append(("no /proc", without_proc, "/proc is not mounted here; mount it"))
for what, fault, words in FAULTS:
    r = tapsys.cordon(programs, ["check", "--json", "-"], "root" if os.geteuid() == 0 else "user", text="print(1)\n", preexec_fn=fault)
    tap.ok(r.code == exits.USAGE and set(r.json or ()) == CHECK_KEYS and r["status"] == "refused" and r["is_safe"] is False and words in r["message"],
           f"{what}: check --json prints one object that says refused and why", r.story())
    r = tapsys.cordon(programs, ["run", "--json", "-"], "root" if os.geteuid() == 0 else "user", text="print(1)\n", preexec_fn=fault)
    tap.ok(r.code == exits.NEVER_RAN and r["status"] == "refused" and words in r["reason"], f"{what}: run --json says refused and why", r.story())
if os.geteuid() == 0:
    r = tapsys.cordon(programs, ["pool", "start"], "root", preexec_fn=without_proc)
    tap.ok(r.code == exits.FAILED and "/proc is not mounted here; mount it" in r.err, "no /proc: pool start says so", r.story())
# one verdict: what is in a package but not shown of it, an example in a docstring, an honest program
for what, code in (("a part of a package", "from unittest.mock import patch\nprint(1)\n"), ("the same by its module", "import unittest.mock\nprint(1)\n"),
                   ("an example of doctest", "import doctest\ndef f():\n    \"\"\"\n    >>> eval('1')\n    \"\"\"\ndoctest.testmod()\n"),
                   ("nothing", "import unittest, doctest\nprint(1)\n")):
    asked, ran = (tapsys.cordon(programs, [command, "--json", "-"], "root" if os.geteuid() == 0 else "user", text=code) for command in ("check", "run"))
    tap.ok(asked["status"] == ran["status"] == ("ok" if what == "nothing" else "blocked") and asked.rules() == ran.rules(),
           f"check and run say the same of a program that asks for {what}", asked.story(), ran.story())
# the same rule about the same word is one violation with its places, whoever is asked
for command in ("check", "run"):
    r = tapsys.cordon(programs, [command, "--json", "-"], "root" if os.geteuid() == 0 else "user", text="eval('1')\nexec('2')\nx = [eval('3'), eval('4')]\n")
    told = [(v["rule"], v["line"], [(p["line"], p["column"]) for p in v.get("places", ())]) for v in r["violations"]]
    tap.ok(told[:1] == [("py.call.eval", 1, [(1, 1), (3, 6), (3, 17)])] and [t[:2] for t in told[1:]] == [("py.call.exec", 2)],
           f"{command}: a finding that repeats is told once, with each of its places", told, r.story())
with tempfile.TemporaryDirectory() as state:
    r = tapsys.cordon(programs, ["run", "--json", "-"], "root" if os.geteuid() == 0 else "user", text="print(1)\n",
                      env={"CORDON_STATE": state}, preexec_fn=bounded(resource.RLIMIT_FSIZE, 1024))
    tap.ok(r.code == exits.NEVER_RAN and r["status"] == "refused" and "File too large" in r["reason"] and "ulimit -f" in r["reason"],
           "a limit of file sizes refuses a run by name", r.story())
tap.done()
