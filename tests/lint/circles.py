# SPDX-License-Identifier: Apache-2.0
"""Files that call each other in a circle: each circle stands in circles.txt with its reason, or is broken up.

What calls what is asked of the built libraries (nm), one a room. Usage: circles.py TOP BUILD. TAP on stdout."""
import collections
import pathlib
import subprocess
import sys

from tap import case, done

top, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def calls_of(listing):
    """{file: {file: names}} of what `nm -A` prints for one library."""
    where, wanted = {}, collections.defaultdict(set)
    for line in listing.splitlines():
        parts = line.split(":")
        if len(parts) < 3:
            continue
        words, member = parts[-1].split(), parts[-2]
        kind, name = words[-2], words[-1]
        file = member.rsplit("/", 1)[-1].removesuffix(".o")
        if kind in "TDBRVW":
            where[name] = file
        elif kind == "U":
            wanted[file].add(name)
    calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for file, names in wanted.items():
        for name in names:
            if name in where and where[name] != file:
                calls[file][where[name]].add(name)
    return calls


def circles(calls):
    """Groups of files each of which can be reached from every other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in list(calls.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == v:
                    break
            if len(group) > 1:
                found.append(tuple(sorted(group)))
    for v in list(calls):
        if v not in index:
            visit(v)
    return found


PLANT = "lib:p/a.c.o:0 T one\nlib:p/a.c.o: U two\nlib:p/b.c.o:0 T two\nlib:p/b.c.o: U one\nlib:p/c.c.o: U one\n"
case(circles(calls_of(PLANT)) == [("a.c", "b.c")], "two files that call each other are a circle, a third that only calls is not in it")
case(circles(calls_of(PLANT.replace("lib:p/b.c.o: U one\n", ""))) == [], "calls in one direction are no circle")

argued = {}
for line in (top / "tests/lint/circles.txt").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        files, _, why = line.partition(" : ")
        room, *members = files.split()
        argued[room, tuple(sorted(members))] = why
        case(len(why.split()) >= 5, f"circles.txt says why for {files.strip()}", line)
rooms = [l.split(":")[0].strip() for l in (top / "src/ROOMS").read_text().splitlines() if ":" in l and not l.startswith("#")]
seen = set()
for room in rooms:
    library = build / "src" / room / f"lib{room}.a"
    if not library.exists():
        case(room in ("worker", "prog"), f"room {room} has a library")
        continue
    calls = calls_of(subprocess.run(["nm", "-A", str(library)], check=True, stdout=subprocess.PIPE, text=True).stdout)
    bad = []
    for group in circles(calls):
        seen.add((room, group))
        if (room, group) not in argued:
            bad.append(" ".join((room, *group)) + " call each other: break the circle, or say why in tests/lint/circles.txt")
            bad += [f"  {a} -> {b}: {', '.join(sorted(calls[a][b])[:4])}" for a in group for b in calls[a] if b in group]
    case(not bad, f"circles of room {room} have their reasons", *bad)
for room, group in sorted(set(argued) - seen):
    case(False, f"the circle {room} {' '.join(group)} is gone: take it out of circles.txt")
done()
