# SPDX-License-Identifier: Apache-2.0
"""`make costs`: that it runs, that its tables have a figure or a reason in every row, and that README.md's table is the one that it prints.

Usage: costs.py BUILD. No figure is compared: machines differ."""
import pathlib
import re
import shutil
import subprocess
import sys

import tapsys

tap = tapsys.Tap()
top = pathlib.Path(__file__).resolve().parents[2]


def tables(text):
    """Each table as its rows, a row as its cells; the line of dashes is left out."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines() if not re.fullmatch(r"[|-]+", line)] for t in found]


r = subprocess.run([str(top / "bench/costs"), sys.argv[1], "2"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
printed = tables(r.stdout)
if not tap.ok(r.returncode == 0 and len(printed) == 2, "make costs runs, and prints two tables", r.stdout, r.stderr):
    tap.done()
ratios, times = printed
FIGURE, REASON = r"\d+\.\d{2}", r"not measured: \S.*"
tap.ok(ratios[0] == ["", "what is between the program and you", "what it needs", "a start of Python"] and all(len(row) == 4 and re.fullmatch(f"{FIGURE}|{REASON}", row[3]) for row in ratios[1:]),
       "every row of the first table has a figure, or says why there is none", *ratios)
tap.ok(times[0] == ["", "`/bin/true`", "a line of Python"] and all(re.fullmatch(r"\d+\.\d", row[2]) and re.fullmatch(r"(\d+\.\d)?", row[1]) for row in times[1:]), "the second table has milliseconds", *times)
measured = {row[0]: re.fullmatch(FIGURE, row[3]) is not None for row in ratios[1:]}
tap.ok(measured["`cordon run`"], "a run under Cordon is measured", measured)
if shutil.which("bwrap"):
    tap.ok(measured["bubblewrap"] and any(row[0].startswith("bubblewrap") and row[1] for row in times), "bubblewrap is measured where it is installed", measured)
else:
    tap.skip("bubblewrap is measured where it is installed", "bubblewrap is not installed")
own = [t for t in tables((top / "README.md").read_text()) if t[0][-1] == "a start of Python"]
tap.ok(len(own) == 1 and [row[:3] for row in own[0]] == [row[:3] for row in ratios], "README.md's table of what a start costs has the rows and columns that make costs prints", own, ratios)
tap.ok(own and all(re.fullmatch(r"\d+\.\d+|" + REASON, row[3]) for row in own[0][1:]), "every row of README.md's table has a figure, or says why there is none", own)
tap.done()
