# SPDX-License-Identifier: Apache-2.0
"""What libcordon exports and what it can reach, read from symbol tables. symbols.py LIBRARY EXPR BASE MONITOR: the archives of the
rooms. TAP.

Conditions, the monitor and the client are in one library, so each is looked at by itself: what a condition can reach is what the
objects of its room refer to."""
import re
import subprocess
import sys


def nm(*args):
    return subprocess.run(["nm", *args], capture_output=True, text=True, check=True).stdout.splitlines()


def names(library, *args):
    return {line.split()[-1].split("@")[0] for line in nm("-D", *args, library)}


def objects(archive, only=""):
    """What the members of an archive refer to and do not define themselves."""
    wanted, defined = set(), set()
    for line in nm("-A", archive):
        member, _, rest = line.rpartition(": ") if ": " in line else line.rpartition(":")
        if only in member:
            kind, name = rest.split()[-2:]
            (wanted if kind in "Uw" else defined).add(name)
    return wanted, defined


# all that conditions may call: copying, comparing, formatting into a buffer, two functions that take a double apart
ALLOWED = r"(mem(cpy|move|set|cmp|chr)|str(len|chr|cmp|ncmp)|v?snprintf|frexp|ldexp|floor|ceil|log2|__.*|_ITM_.*|_GLOBAL_OFFSET_TABLE_)$"
# and what the client may: memory, one socket, one process that it starts, to wait for these, and to know its own process from a forked copy
CLIENT = (r"(malloc|calloc|realloc|free|abort|strtoll|strcspn|strerror|environ|stderr|v?f?printf|fputs?|fwrite|clock_gettime|syscall|socket|setsockopt|socketpair|connect|shutdown|send|recv|fstat(64)?"
          r"|poll|read|write|getpid|pread\d*|close|eventfd|memfd_create|posix_spawn\w*|sig(empty|add)set|kill|waitpid)$")
# the monitor: memory, two functions of a double, random bytes for the key of its tables
MONITOR = r"(calloc|realloc|free|exp|log|getentropy|abort|stderr|fprintf|strerror)$"
library, expr, base, monitor = sys.argv[1:5]
exported, reached = names(library, "--defined-only"), names(library, "--undefined-only")
wanted, defined = objects(expr)
more, own = objects(base, "utf8.c")
conditions = sorted(n for n in (wanted | more) - defined - own if not re.match(ALLOWED, n))
client = sorted(n for n in reached if not re.match(ALLOWED, n) and not re.match(CLIENT, n) and not re.match(MONITOR, n))
wanted_by_monitor, defined_by_monitor = objects(monitor)
for name in ("err.c", "buf.c", "fit.c", "jsonw.c", "utf8.c"):
    more, own = objects(base, name)
    wanted_by_monitor, defined_by_monitor = wanted_by_monitor | more, defined_by_monitor | own
watching = sorted(n for n in wanted_by_monitor - defined_by_monitor if not re.match(ALLOWED, n) and not re.match(MONITOR, n))
sanitized = any(n.startswith(("__asan", "__ubsan")) for n in reached)
cases = [(len(exported) > 30 and all(n.startswith("cordon_") for n in exported), "every exported symbol is cordon_*", exported),
         (sanitized or (len(defined) > 50 and not conditions), "conditions reach no allocator, file, locale or process", conditions),
         (sanitized or (len(defined_by_monitor) > 20 and not watching), "the monitor reaches memory, and no file, clock, locale or process", watching),
         (sanitized or not client, "the client reaches memory, one socket and one process, and no thread, file or signal handler", client)]
for n, (good, name, detail) in enumerate(cases, 1):
    print(f"{'ok' if good else 'not ok'} {n} - {name}")
    if not good:
        print("#", detail)
print(f"1..{len(cases)}")
sys.exit(not all(c[0] for c in cases))
