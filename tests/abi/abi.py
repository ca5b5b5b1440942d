# SPDX-License-Identifier: Apache-2.0
"""Whether libcordon still has the interface that is written down for its soname: tests/abi/libcordon.so.N.abi.

Usage: abi.py LIBRARY HEADERS        TAP: the library against its file, and the check against libraries that were changed
       abi.py LIBRARY HEADERS --write    what was added is written down; what a linked program would notice is refused

A program that was linked with a library of the same soname must go on working. So a function or type that is gone or
different needs another soname (soversion in src/client/meson.build), and with it a file of its own. The layout of what
include/cordon.h shows is the same on both architectures, hence one file."""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))
sys.dont_write_bytecode = True
from tap import case, done  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# A member that takes a place of those `reserved` at the end of a struct moves nothing that a linked program knows.
TAKES_RESERVED = """[suppress_type]
  type_kind = struct
  has_data_member_inserted_between = {offset_of(reserved), end}
"""


def run(*words):
    r = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return r.returncode, r.stdout


def soname(library):
    return re.search(r"SONAME +(\S+)", run("objdump", "-p", library)[1]).group(1)


def write(library, headers, file):
    code, text = run("abidw", "--headers-dir", headers, "--drop-private-types", "--no-corpus-path", "--no-comp-dir-path", "--short-locs",
                     "--no-elf-needed", "--out-file", file, library)
    if code:
        raise RuntimeError(f"abidw {library}: {text}")


def verdict(library, headers, folder):
    """(what must be done, why): "same", "write" (only additions), or "soname"."""
    file = folder / f"{soname(library)}.abi"
    if not file.exists():
        return "write", f"{file.name} is not there"
    code, text = compare(file, library, headers)
    if code == 0:
        return "same", text
    with tempfile.NamedTemporaryFile("w", prefix="cordon-abi-") as harmless:
        print(TAKES_RESERVED, file=harmless, flush=True)
        counts = re.findall(r"(\d+) (Removed|Changed)", compare(file, library, headers, "--suppressions", harmless.name)[1])
    longer = re.search(r"^ +type size changed", text, re.M)
    return ("soname" if longer or any(int(n) for n, _ in counts) or not counts else "write"), text


def compare(file, library, headers, *options):
    code, text = run("abidiff", *options, "--no-architecture", "--drop-private-types", "--headers-dir2", headers, file, library)
    if code & 3:
        raise RuntimeError(f"abidiff {library}: {text}")
    return code, text


SHOWN = """struct thing { int a; %s };
enum kind { ONE%s };
int cordon_use(const struct thing *t, %s n, enum kind k);
%s"""
USE = 'int cordon_use(const struct thing *t, %s n, enum kind k) { return t->a + (int)n + (int)k; }\n'
KEEP = "int cordon_keep(void);\n"
B = "long b; long reserved[4];"
# what is changed -> (struct, enum, parameter, further functions, soname), what the check must say
PLANTS = {
    "nothing changed": ((B, ", TWO", "int", KEEP, 0), "same"),
    "a struct has one member more": ((B + " long c;", ", TWO", "int", KEEP, 0), "soname"),
    "a member takes one of the reserved places": (("long b; long c; long reserved[3];", ", TWO", "int", KEEP, 0), "write"),
    "a member takes one of the reserved places before its neighbour": (("long c; long b; long reserved[3];", ", TWO", "int", KEEP, 0), "soname"),
    "a member takes a reserved place and makes the struct longer": (("long b; long c; long reserved[4];", ", TWO", "int", KEEP, 0), "soname"),
    "reserved places are gone": (("long b; long reserved[3];", ", TWO", "int", KEEP, 0), "soname"),
    "a parameter has another type": ((B, ", TWO", "long", KEEP, 0), "soname"),
    "a value of an enum is gone": ((B, "", "int", KEEP, 0), "soname"),
    "a function is gone": ((B, ", TWO", "int", "", 0), "soname"),
    "a function is new": ((B, ", TWO", "int", KEEP + "int cordon_new(void);\n", 0), "write"),
    "the soname moved and has no file yet": ((B + " long c;", ", TWO", "int", KEEP, 1), "write"),
}


def build(folder, shape):
    """A small library with a public header, of this shape."""
    member, value, parameter, more, major = shape
    (folder / "thing.h").write_text(SHOWN % (member, value, parameter, more))
    bodies = "".join(f"{line[:-1]} {{ return 0; }}\n" for line in more.splitlines())
    (folder / "thing.c").write_text('#include "thing.h"\n' + USE % parameter + bodies)
    library = folder / "libthing.so"
    code, text = run("gcc", "-g", "-shared", "-fPIC", f"-Wl,-soname,libthing.so.{major}", folder / "thing.c", "-o", library)
    if code:
        raise RuntimeError(text)
    return library


library, headers = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
what, why = verdict(library, headers, HERE)
if "--write" in sys.argv:
    if what == "soname":
        sys.exit(f"{why}\nabi: a program that was linked before would break: move soversion in src/client/meson.build, and try again")
    write(library, headers, HERE / f"{soname(library)}.abi")
    sys.exit(print(f"abi: {soname(library)}.abi is written"))
case(what == "same", f"{soname(library)} has the interface that is written down for it", why,
     "move soversion in src/client/meson.build, then: make abi" if what == "soname" else "it only grew: make abi")
with tempfile.TemporaryDirectory(prefix="cordon-abi-") as name:
    folder = pathlib.Path(name)
    write(build(folder, PLANTS["nothing changed"][0]), folder, folder / "libthing.so.0.abi")
    for change, (shape, wanted) in PLANTS.items():
        got, why = verdict(build(folder, shape), folder, folder)
        means = {"same": "nothing is to be done", "write": "it must be written down", "soname": "the soname must move"}
        case(got == wanted, f"where {change}, {means[wanted]}", f"got {got}", why)
done()
