# SPDX-License-Identifier: Apache-2.0
"""Writes a text file as a C string that HEADER declares: embed.py NAME INPUT OUTPUT HEADER"""
import sys

name, src, dst, header = sys.argv[1:]
text = open(src, encoding="utf-8").read()
lines = [line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines()]
with open(dst, "w", encoding="utf-8") as f:
    f.write('/* Made from the file that is shipped, so that the program and the file cannot differ. */\n')
    f.write(f'#include "{header}"\n\nconst char {name}[] =\n')
    f.write("".join(f'    "{line}\\n"\n' for line in lines) + "    ;\n")
