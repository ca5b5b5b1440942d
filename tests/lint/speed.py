# SPDX-License-Identifier: Apache-2.0
"""What is done for speed alone states its gain in its file, with the command that shows it (src/base/speed.h).

For each constant of speed.h: the file that its comment names says `make gains`, the constant's name and a figure, some source asks the
constant, and bench/gains measures it. Usage: speed.py SOURCE-ROOT. TAP on stdout."""
import pathlib
import re
import sys

from tap import case, done

root = pathlib.Path(sys.argv[1])
CONSTANT = re.compile(r"^#ifndef SPEED_(\w+) /\* ([\w/.]+): (.*) \*/\n#define SPEED_(\w+) 1\n#endif$", re.M)
FIGURE = re.compile(r"\d+(?:\.\d+)?(?: to \d+)? %|\b\d+\.\d+\b")


def faults(header, gains, read, asked):
    """READ gives the text of a file below src/, ASKED tells whether a constant is used."""
    rows = CONSTANT.findall(header)
    found = [f"{n}: speed.h says `#ifndef SPEED_{n} /* FILE: what is done */`" for n in set(re.findall(r"SPEED_(\w+) 1$", header, re.M)) - {r[0] for r in rows}]
    for name, file, _, _ in rows:
        text = re.sub(r"\s*\n(?: \*)?\s*", " ", read(file))
        stated = re.search(r"make gains", text) and re.search(rf"(?<!SPEED_)\b{name}\b", text) and FIGURE.search(text)
        found += [] if stated else [f"{name}: src/{file} does not state its gain and `make gains`"]
        found += [] if asked(name) else [f"{name}: no source asks it"]
        found += [] if f'"{name}": [' in gains else [f"{name}: bench/gains does not measure it"]
    return found


HEADER = "#ifndef SPEED_EARLY /* jail/early.c: a worker is executed first */\n#define SPEED_EARLY 1\n#endif\n"
GAINS, STATED = '{"EARLY": ["oneshot"]}', '/* `make gains GAINS="--alone\n * EARLY"`: 3 to 5 % longer without it. */'
case(not faults(HEADER, GAINS, lambda _: STATED, lambda _: True), "a trick that states its gain and its command passes")
for what, header, gains, stated, asked in (
        ("without a file", HEADER.replace("jail/early.c: ", ""), GAINS, STATED, True), ("that is not measured", HEADER, "{}", STATED, True),
        ("without a figure", HEADER, GAINS, STATED.replace("3 to 5 % longer", "longer"), True), ("without a command", HEADER, GAINS, STATED.replace("make", "see"), True),
        ("that is not named", HEADER, GAINS, STATED.replace("EARLY", "LATE"), True), ("that nobody asks", HEADER, GAINS, STATED, False)):
    case(faults(header, gains, lambda _: stated, lambda _: asked), f"a planted trick {what} is found")

code = "".join(p.read_text() for p in (root / "src").rglob("*.[ch]") if p.name != "speed.h")
header = (root / "src/base/speed.h").read_text()
found = faults(header, (root / "bench/gains").read_text(), lambda file: (root / "src" / file).read_text() if (root / "src" / file).exists() else "",
               lambda name: f"SPEED_{name}" in code)
case(CONSTANT.search(header) and not found, f"each of the {len(CONSTANT.findall(header))} tricks of src/base/speed.h states its gain and its command in its file", *found)
done()
