# SPDX-License-Identifier: Apache-2.0
"""The characters that repr() shows as they are, asked of the Python that builds this: the edges of its table, for
error.c. printable.py OUTPUT"""
import platform
import sys
import unicodedata

edges, shown = [], False
for c in range(0x110000):
    if chr(c).isprintable() != shown:
        edges.append(c)
        shown = not shown
if shown:
    edges.append(0x110000)
lines = [", ".join(f"0x{e:x}" for e in edges[i:i + 10]) + "," for i in range(0, len(edges), 10)]
with open(sys.argv[1], "w") as f:
    f.write(f"/* Made by printable.py of CPython {platform.python_version()}, Unicode {unicodedata.unidata_version}. */\n"
            '#include "expr/error.h"\n\n'
            "const uint32_t expr_printable_edges[] = {\n    " + "\n    ".join(lines) + "\n};\n"
            f"const size_t expr_printable_count = {len(edges)};\n")
