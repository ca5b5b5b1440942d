# SPDX-License-Identifier: Apache-2.0
"""The tour of `make demo`, with the programs that are built: every step behaves, and the last lines can be typed.

Usage: demo.py BUILD."""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tapsys

tap = tapsys.Tap()
programs = tapsys.Programs(sys.argv[1])
TOP = pathlib.Path(__file__).resolve().parents[2]
r = subprocess.run([str(TOP / "demo/run"), str(programs.cordon)], cwd=TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * tapsys.SLOW,
                   env=tapsys.clean_env())
steps = re.findall(r"^(\d+)\. (.+)$", r.stdout, re.M)
last = re.search(r"^(\d+) of (\d+) behaved\. Try next:\n(.*)", r.stdout, re.M | re.S)
tap.ok(r.returncode == 0 and last and last.group(1) == last.group(2) == str(len(steps)), "every step of the tour behaves as it says", r.stdout[-1500:], r.stderr[-500:])
advice = [line.strip().split("      ")[0] for line in (last.group(3) if last else "").splitlines() if "cordon" in line]
tap.ok(len(advice) >= 5, "the tour ends with commands to try", advice)
for words in advice[:2]:
    done = subprocess.run(["/bin/sh", "-c", words], cwd=TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * tapsys.SLOW, env=tapsys.clean_env())
    tap.eq((done.returncode, done.stdout), (0, "42\n"), f"what the tour says to try works: {words.replace(str(programs.cordon), 'cordon')}")
tap.done()
