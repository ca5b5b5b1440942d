# SPDX-License-Identifier: Apache-2.0
"""What lints, and tests that need no jail, print: one case a line, details under a failed one, the plan at the end (TAP)."""
import sys

count = failures = 0


def case(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for d in details if not good else ():
        print("#", str(d)[:4000].replace("\n", "\n# "))
    return good


def skip(name, reason):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {reason}")


def done():
    print(f"1..{count}")
    sys.exit(failures > 0)
