# SPDX-License-Identifier: Apache-2.0
"""Long or branching functions: more than 60 lines or 20 branches is split, or stands in functions.txt with its reason.

A branch is an if, a loop, a case, &&, || or ?:. Usage: functions.py TOP. TAP on stdout."""
import pathlib
import re
import sys

from tap import case, done

LINES, BRANCHES = 60, 20
top = pathlib.Path(sys.argv[1])
table = top / "tests/lint/functions.txt"


def functions(text):
    """Name, lines and branches of each function; the house's format puts its braces at the beginning of a line."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        if lines[i] == "{":
            end = next((k for k in range(i, len(lines)) if lines[k] == "}"), len(lines))
            head = i - 1
            while head > 0 and lines[head][:1].isspace():
                head -= 1
            name = re.search(r"(\w+)\(", lines[head])
            body = re.sub(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", "", "\n".join(lines[i:end]), flags=re.S)
            yield (name.group(1) if name else lines[head]), end - i, 1 + len(re.findall(r"\b(?:if|for|while|case)\b|&&|\|\||\?", body))
            i = end
        i += 1


long_one = "int f(void)\n{\n" + "    x();\n" * 61 + "}\n"
branching = "int g(int a)\n{\n    return " + " || ".join(["a"] * 21) + ";\n}\n"
short = 'int h(void)\n{\n    return "a || b" == 0; /* if for while && */\n}\n'
case([(n, l > LINES, b > BRANCHES) for n, l, b in functions(long_one + branching + short)] ==
     [("f", True, False), ("g", False, True), ("h", False, False)], "a long and a branching function are seen, a short one is not",
     list(functions(long_one + branching + short)))

argued = {}
for line in table.read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        where, _, why = line.partition(" : ")
        argued[where.strip()] = why.strip()
        case(len(why.split()) >= 4, f"functions.txt says why for {where.strip()}", line)
seen = set()
files = sorted(p for d in ("src", "bench") for p in (top / d).rglob("*.c") if not p.name.startswith("test_"))
case(len(files) > 100, "the sources are there")
for p in files:
    rel = p.relative_to(top)
    bad = []
    for name, lines, branches in functions(p.read_text()):
        if lines > LINES or branches > BRANCHES:
            key = f"{rel} {name}"
            seen.add(key)
            if key not in argued:
                bad.append(f"{name}: {lines} lines, {branches} branches: split it, or say why in tests/lint/functions.txt")
    case(not bad, f"functions of {rel} fit a screen", *bad)
for key in sorted(set(argued) - seen):
    case(False, f"{key} is long no more: take it out of functions.txt")
done()
