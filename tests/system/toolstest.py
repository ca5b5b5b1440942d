# SPDX-License-Identifier: Apache-2.0
"""What tests of tools share: a program that prints what came of each call, and its lines as values."""
import json

# each call of a program prints one line of JSON: what came back, or the words of the exception
CALLS = """import json
def t(f, *a, **k):
    try:
        print(json.dumps(f(*a, **k)))
    except RuntimeError as e:
        print(json.dumps(str(e)))
"""


def lines_of(r):
    """The lines that the program printed, as values; and its result."""
    try:
        return [json.loads(line) for line in (r["stdout"] or "").splitlines()], r
    except ValueError:
        return [], r
