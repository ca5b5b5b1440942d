#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the modules that every start of the interpreter imports into C.

From the disk they cost a start of its own: two folders listed, three files looked for under each name that
a module can have. The interpreter that compiles them is the one that cordon-python is linked with.
`make gains GAINS="--alone FROZEN"`: without them a cold run takes 6 % longer (2 CPUs, aarch64).
Usage: freeze.py OUTPUT STDLIB"""
import marshal
import os
import sys

MODULES = {"encodings": "encodings/__init__.py", "encodings.aliases": "encodings/aliases.py",
           "encodings.utf_8": "encodings/utf_8.py"}
OWN = {"cordon_figures": "figures.py"}  # beside this script


def array(number, code):
    lines = [", ".join(map(str, code[i:i + 24])) for i in range(0, len(code), 24)]
    return f"static const unsigned char code_{number}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


output, stdlib = sys.argv[1:]
arrays, rows = [], []
here = os.path.dirname(os.path.abspath(__file__))
for number, (name, path) in enumerate([*MODULES.items(), *OWN.items()]):
    with open(os.path.join(here if name in OWN else stdlib, path), "rb") as f:
        code = compile(f.read(), f"<frozen {name}>", "exec", dont_inherit=True, optimize=0)
    arrays.append(array(number, marshal.dumps(code)))
    package = int(path.endswith("__init__.py"))
    rows.append(f'    {{.name = "{name}", .code = code_{number}, .size = sizeof code_{number}, .is_package = {package}}},')
with open(output, "w", encoding="utf-8") as f:
    f.write("/* Made by src/worker/python/freeze.py. */\n#include \"worker/python/interp.h\"\n\n"
            "#if PY_VERSION_HEX >= 0x030b0000\n" + "".join(arrays) +
            "\nconst struct _frozen py_interp_frozen[] = {\n" + "\n".join(rows) + "\n    {0},\n};\n#endif\n")
