# SPDX-License-Identifier: Apache-2.0
"""clang-format has the last word on layout. TAP, one case a file; `clang-format -i FILE` is the fix."""
import pathlib
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
files = sorted(p for top in ("src", "bench", "tests", "include", "bindings") for p in (root / top).rglob("*.[ch]"))
failures = 0
for count, p in enumerate(files, 1):
    run = subprocess.run(["/usr/bin/clang-format", "--dry-run", "-Werror", str(p)], cwd=root, stderr=subprocess.PIPE)
    print(f"{'ok' if run.returncode == 0 else 'not ok'} {count} - layout of {p.relative_to(root)}")
    for line in run.stderr.decode(errors="replace").splitlines()[:3] if run.returncode else ():
        print("#", line)
    failures += run.returncode != 0
print(f"1..{len(files)}")
sys.exit(failures > 0 or not files)
