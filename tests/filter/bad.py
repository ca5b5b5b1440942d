# SPDX-License-Identifier: Apache-2.0
"""A mistake in a filter table fails the build and names its place: tests/filter/bad/*.filter.

The first line of each says `# want LINE: beginning of the message`. Usage: bad.py FILTERGEN FOLDER"""
import pathlib
import subprocess
import sys
import tempfile

generator, folder = sys.argv[1], pathlib.Path(sys.argv[2])
count = failures = 0
with tempfile.TemporaryDirectory() as out:
    for p in sorted(folder.glob("*.filter")):
        line, message = p.read_text().splitlines()[0].removeprefix("# want ").split(": ", 1)
        r = subprocess.run([generator, f"{out}/x.c", f"{out}/a.c", p], capture_output=True, text=True)
        good = r.returncode == 1 and r.stderr.startswith(f"{p}:{line}: {message}")
        count += 1
        failures += not good
        print(f"{'ok' if good else 'not ok'} {count} - {p.name}: {message}")
        if not good:
            print(f"# exit {r.returncode}, said: {r.stderr.strip()}")
print(f"1..{count}")
sys.exit(failures > 0 or count == 0)
