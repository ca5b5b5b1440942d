#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Turns modules of our own, which guests get in the place of Python's, into C.

The interpreter that compiles them is the one that cordon-python is linked with.
Usage: embed.py OUTPUT NAME=FILE..."""
import marshal
import sys

output, modules = sys.argv[1], [word.split("=", 1) for word in sys.argv[2:]]
arrays, rows = [], []
for number, (name, path) in enumerate(modules):
    with open(path, "rb") as f:
        code = marshal.dumps(compile(f.read(), f"<frozen {name}>", "exec", dont_inherit=True, optimize=2))
    lines = [", ".join(map(str, code[i:i + 24])) for i in range(0, len(code), 24)]
    arrays.append(f"static const unsigned char code_{number}[] = {{\n    " + ",\n    ".join(lines) + "};\n")
    rows.append(f'    {{"{name}", code_{number}, sizeof code_{number}}},')
with open(output, "w", encoding="utf-8") as f:
    f.write("/* Made by src/worker/python/library/embed.py. */\n#include \"worker/python/guard_own.h\"\n\n" + "".join(arrays) +
            "\nconst struct guard_own_code guard_own_code[] = {\n" + "\n".join(rows) + "\n    {0},\n};\n")
