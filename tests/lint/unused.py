# SPDX-License-Identifier: Apache-2.0
"""What only tests or benches call leaves the product: each global function of a room is called by another file of the product, or within its
own, or stands in unused.txt with its reason.

Asked of the built objects (nm): those of the rooms' libraries and of the installed programs. Usage: unused.py TOP BUILD. TAP on stdout."""
import pathlib
import re
import subprocess
import sys

from tap import case, done

top, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def symbols(listing):
    """{object: (defined functions, wanted names)} of what `nm -A` prints for objects."""
    found = {}
    for line in listing.splitlines():
        where, _, rest = line.partition(":")
        words = rest.split()
        if len(words) < 2:
            continue
        defined, wanted = found.setdefault(where, (set(), set()))
        if words[-2] == "T":
            defined.add(words[-1])
        elif words[-2] == "U":
            wanted.add(words[-1])
    return found


def idle(objects, source):
    """Functions that no other object wants, and that their own SOURCE(object) does not name twice."""
    wanted = set().union(*(w for _, w in objects.values())) if objects else set()
    return {name for where, (defined, _) in objects.items() for name in defined - wanted
            if name != "main" and len(re.findall(rf"\b{name}\b", source(where))) < 2}


PLANT = "a.o:0 T one\na.o: U two\nb.o:0 T two\nb.o:0 T three\nb.o:0 T four\n"
TEXT = {"a.o": "int one(void)\n{\n    return two();\n}\n", "b.o": "int two(void);\nint three(void);\nint four(void)\n{\n    return three();\n}\n"}
case(idle(symbols(PLANT), TEXT.get) == {"one", "four"}, "planted functions that nobody calls are found, those that are called are not", idle(symbols(PLANT), TEXT.get))

argued = {}
for line in (top / "tests/lint/unused.txt").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        name, _, why = line.partition(" : ")
        argued[name.strip()] = why
        case(len(why.split()) >= 5, f"unused.txt says why for {name.strip()}", line)
product = [p for p in build.rglob("*.o") if not re.search(r"/(?:tests|bench|bindings)/|/(?:test_|fuzz_)[^/]*\.p/|/[^/]*(?:test|sim|_gen|gen)\.p/", str(p)) and
           not re.search(r"(?:^|_)(?:test|fuzz)_|bpf_sim|testing", p.name)]
case(len(product) > 300, f"there are objects to look at ({len(product)})")
listing = subprocess.run(["nm", "-A", *map(str, product)], check=True, stdout=subprocess.PIPE, text=True).stdout


def source(where):
    """The C file of an object, without comments: meson names an object by the file's path in its folder, with _ for /."""
    p = pathlib.Path(where)
    room, name = p.parent.parent.relative_to(build), p.name[:-2]
    for c in (top / room).rglob("*.c"):
        if str(c.relative_to(top / room)).replace("/", "_") == name:
            return re.sub(r"/\*.*?\*/", "", c.read_text(), flags=re.S)
    return f"{name} " * 2  # made by the build


libraries = {where: s for where, s in symbols(listing).items() if "/lib" in where}
programs = {where: (set(), w) for where, (_, w) in symbols(listing).items() if "/lib" not in where}
public = set(re.findall(r"\bcordon_\w+", (top / "include/cordon.h").read_text()))  # libcordon's interface, for other programs
names = {re.sub(r"\W", "", n) for n in idle({**libraries, **programs}, source)} - public
case(not names - set(argued), "each function of the rooms is called by the product", *(f"{n}: take it out, or say why in tests/lint/unused.txt" for n in sorted(names - set(argued))))
for name in sorted(set(argued) - names):
    case(False, f"{name} is called, or gone: take it out of unused.txt")
done()
