# SPDX-License-Identifier: Apache-2.0
"""clang-format has the last word on layout. TAP, one case a file; `clang-format -i FILE` is the fix."""
import pathlib
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
files = sorted(p for top in ("src", "bench", "tests", "include", "bindings") for p in (root / top).rglob("*.[ch]"))
# one process for all: it starts for longer than it looks at a file
run = subprocess.run(["/usr/bin/clang-format", "--dry-run", "-Werror", *map(str, files)], cwd=root, stderr=subprocess.PIPE)
told = {}
for line in run.stderr.decode(errors="replace").splitlines():
    told.setdefault(line.split(":")[0], []).append(line)
failures = 0
for count, p in enumerate(files, 1):
    wrong = told.pop(str(p), [])
    print(f"{'not ok' if wrong else 'ok'} {count} - layout of {p.relative_to(root)}")
    for line in wrong[:3]:
        print("#", line)
    failures += bool(wrong)
if run.returncode and not failures:
    print("Bail out! clang-format:", *[line for rows in told.values() for line in rows][:3])
print(f"1..{len(files)}")
sys.exit(run.returncode != 0 or not files)
