# SPDX-License-Identifier: Apache-2.0
"""What libcordon exports and what it can reach, read from its symbol table. symbols.py LIBRARY. TAP on stdout."""
import re
import subprocess
import sys


def names(*args):
    out = subprocess.run(["nm", "-D", *args, sys.argv[1]], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


# all it may call: copying, comparing, formatting into a buffer, two functions that take a double apart
ALLOWED = r"(mem(cpy|move|set|cmp|chr)|str(len|chr|cmp|ncmp)|v?snprintf|frexp|ldexp|floor|ceil|log2|__.*|_ITM_.*)$"
exported, wanted = names("--defined-only"), names("--undefined-only")
bad = sorted(n for n in wanted if not re.match(ALLOWED, n))
sanitized = any(n.startswith(("__asan", "__ubsan")) for n in wanted)
cases = [(len(exported) > 30 and all(n.startswith("cordon_") for n in exported), "every exported symbol is cordon_*", exported),
         (sanitized or not bad, "no allocator, file, locale or process is reachable", bad)]
for n, (good, name, detail) in enumerate(cases, 1):
    print(f"{'ok' if good else 'not ok'} {n} - {name}")
    if not good:
        print("#", detail)
print(f"1..{len(cases)}")
sys.exit(not all(c[0] for c in cases))
