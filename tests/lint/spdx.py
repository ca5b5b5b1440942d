# SPDX-License-Identifier: Apache-2.0
"""Every source file says in its first line under which licence it is; a line that something else must stand in
(#!, #compdef) comes before it.

Usage: spdx.py SOURCE [--write]. TAP, one case a kind of file; --write puts the line where it is missing."""
import hashlib
import pathlib
import re
import subprocess
import sys

from tap import case, done

LICENCE = "SPDX-License-Identifier: Apache-2.0"
C, HASH = f"/* {LICENCE} */", f"# {LICENCE}"
KINDS = {".c": C, ".h": C, ".inc": None, ".py": HASH, ".filter": HASH, ".bash": HASH, ".fish": HASH, ".ini": HASH, ".sh": HASH,
         "meson.build": HASH, "meson_options.txt": HASH, "Makefile": HASH, "_cordon": HASH}
DATA = ("tests/filter/bad/", "tests/cases/", "tests/fuzz/")  # read by tests, some of them line by line

root = pathlib.Path(sys.argv[1])


def line_of(path, text):
    """The line that the file needs; None where it is no source. Both kinds of .inc are told apart by how they begin."""
    kind = KINDS.get(path.name, KINDS.get(path.suffix, HASH if text.startswith("#!") else None))
    return (C if text.startswith("/*") else HASH) if path.suffix == ".inc" else kind


def place(text):
    """Where the line stands: behind what must be the first one."""
    m = re.match(r"#(?:!|compdef)[^\n]*\n", text)
    return m.end() if m else 0


def sources():
    """What git knows of, or every file where there is no git: a release is a folder without one."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=60)
    names = listed.stdout.splitlines() if listed.returncode == 0 else \
        [str(p.relative_to(root)) for p in root.rglob("*") if not p.relative_to(root).parts[0].startswith("build")]
    for name in sorted(names):
        path = root / name
        if name.startswith(DATA) or not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if line := line_of(path, text):
            yield name, path, text, line


def has(text, line):
    return text[place(text):].startswith(line + "\n")


APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # of the text, as Debian has it in /usr/share/common-licenses
text = root / "LICENSE"
case(text.is_file() and hashlib.sha256(text.read_bytes()).hexdigest() == APACHE, "LICENSE is the Apache License 2.0, word for word")
case(not has("int x;\n", C) and has(C + "\n", C) and has("#!/bin/sh\n" + HASH + "\n", HASH) and not has("int x;\n" + C + "\n", C),
     "a line that is missing or stands further down is seen")
missing, count = {}, 0
for name, path, text, line in sources():
    count += 1
    missing.setdefault(path.suffix or path.name, [])
    if not has(text, line):
        if "--write" in sys.argv:
            path.write_text(text[:place(text)] + line + "\n" + text[place(text):])
        else:
            missing[path.suffix or path.name].append(f"{name}: the first line is not {line}")
case(count > 500, "there are sources to look at", count)
for kind, faults in sorted(missing.items()):
    case(not faults, f"every {kind} file names its licence in the first line", *faults)
done()
