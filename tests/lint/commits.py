# SPDX-License-Identifier: Apache-2.0
"""Commits say what and why: a subject of at most 72 characters, and a reason in the body of each that changes the product by
more than a few lines.

Usage: commits.py SOURCE. TAP. Looks at the commits since SINCE, where this rule began to be checked; a folder without that
history (a release, a shallow clone) has none to look at."""
import pathlib
import subprocess
import sys

from tap import case, done

SINCE = "ed5b6479b0cb"
SUBJECT = 72
FEW = 20   # changed lines of src/ that explain themselves
WORDS = 5  # of a body that is one

root = pathlib.Path(sys.argv[1])


def wrong(subject, body, lines):
    """What is wrong with a commit that changes so many LINES of src/, or None."""
    if len(subject) > SUBJECT:
        return f"its subject has {len(subject)} characters, {SUBJECT} fit"
    if lines > FEW and len(body.split()) < WORDS:
        return f"it changes {lines} lines of src/ and gives no reason"
    return None


def git(*words):
    return subprocess.run(["git", "-C", str(root), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60)


case(wrong("x" * 73, "because it must be so", 0) and not wrong("x" * 72, "", 0), "a subject of more than 72 characters is found")
case(wrong("Change", "", 21) and wrong("Change", "too short", 21) and not wrong("Change", "", 20), "a larger change without a reason is found")
case(not wrong("Change", "Without it a run waited for ever.", 500), "a larger change with a reason is right")
told = git("log", "--no-merges", "--numstat", "--format=%x01%h%x00%s%x00%b%x00", f"{SINCE}..HEAD")
bad, seen = [], 0
for text in told.stdout.split("\x01")[1:] if told.returncode == 0 else ():
    name, subject, body, numbers = text.split("\0", 3)
    rows = [r.split("\t") for r in numbers.splitlines() if r.count("\t") == 2]
    lines = sum(int(a) + int(b) for a, b, path in rows if path.startswith("src/") and a != "-")
    seen += 1
    if why := wrong(subject, body, lines):
        bad.append(f"{name} {subject}: {why}")
case(not bad, f"each commit of {seen} says what and why" if seen else "there is no history here to be looked at", *bad)
done()
