# SPDX-License-Identifier: Apache-2.0
"""The files of the library -> a C table of their texts, at build time.

usage: embed.py OUT FILE..."""
import pathlib
import sys

out, *files = sys.argv[1:]


def c_string(line):
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in line)


with open(out, "w", encoding="ascii") as f:
    f.write("/* Made by src/worker/javascript/library/embed.py of the files beside it: edit those. */\n#include \"worker/javascript/library/library.h\"\n\n")
    for i, name in enumerate(files):
        lines = pathlib.Path(name).read_bytes().splitlines(keepends=True)
        f.write(f"static const char text_{i}[] =\n" + "\n".join("    " + c_string(line) for line in lines) + ";\n")
    f.write("const struct js_library_file js_library[] = {\n")
    for i, name in enumerate(files):
        f.write(f'    {{.name = "cordon:{pathlib.Path(name).name}", .text = text_{i}, .len = sizeof text_{i} - 1}},\n')
    f.write(f"}};\nconst size_t js_library_count = {len(files)};\n")
