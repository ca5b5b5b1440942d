# SPDX-License-Identifier: Apache-2.0
"""The bundled judge -> a C table of its bytes, at build time.

usage: embed.py BUNDLE OUT

The bundle is ASCII (esbuild writes it so), hence one string with a NUL behind it is the same bytes for every reader of C strings."""
import sys

bundle, out = sys.argv[1:]
with open(bundle, "rb") as f:
    data = f.read()
if any(byte > 126 or byte == 0 for byte in data):
    raise SystemExit(f"{bundle}: not ASCII")


def c_string(line):
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in line)


with open(out, "w", encoding="ascii") as f:
    f.write("/* Made by src/worker/javascript/judge/embed.py of the judge's modules and the parsers that they import: edit those. */\n"
            "#include \"worker/javascript/judge/bundle.h\"\n\n"
            "const char js_judge_bundle[] =\n")
    f.write("\n".join("    " + c_string(line) for line in data.splitlines(keepends=True)))
    f.write(f";\nconst size_t js_judge_bundle_len = sizeof js_judge_bundle - 1; /* {len(data)} */\n")
