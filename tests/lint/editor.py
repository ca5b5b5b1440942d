# SPDX-License-Identifier: Apache-2.0
"""Every text file is as .editorconfig tells an editor to save it: how it is indented, that its last line ends, that no line ends in blanks.

Usage: editor.py SOURCE. TAP, one case a property."""
import pathlib
import re
import subprocess
import sys

from tap import case, done

root = pathlib.Path(sys.argv[1])
DATA = ("tests/fuzz/", "tests/cases/", "tests/filter/bad/")  # inputs of tests, some of them broken on purpose


def expand(pattern):
    """A section's pattern as the regular expressions of its alternatives: `*` is any name, `**` any path."""
    m = re.search(r"\{([^{}]*)\}", pattern)
    if m:
        return [e for word in m.group(1).split(",") for e in expand(pattern[:m.start()] + word + pattern[m.end():])]
    words = {"**": ".*", "*": "[^/]*"}
    return ["".join(words.get(p, re.escape(p)) for p in re.split(r"(\*\*?)", pattern))]


def sections(text):
    """[(matches a path, {key: value})], in their order."""
    found = []
    for name, body in re.findall(r"^\[(.*)\]\n((?:(?!\[).*\n?)*)", text, re.M):
        whole = re.compile("|".join(f"(?:{e})" for e in expand(name)))
        matches = (lambda path, w=whole: w.fullmatch(path)) if "/" in name else (lambda path, w=whole: w.fullmatch(path.rpartition("/")[2]))
        found.append((matches, dict(re.findall(r"^(\w+) = (\w+)$", body, re.M))))
    return found


file = root / ".editorconfig"
table = sections(file.read_text()) if file.is_file() else []


def wanted(path):
    """What holds for a path: a later section wins."""
    out = {}
    for matches, keys in table:
        out.update(keys if matches(path) else {})
    return out


def faults(path, text, keys):
    if keys.get("insert_final_newline") == "true" and text and not text.endswith("\n"):
        yield "its last line does not end"
    if keys.get("trim_trailing_whitespace") == "true":
        yield from (f"line {i} ends in blanks" for i, line in enumerate(text.split("\n"), 1) if line != line.rstrip(" \t"))
    if keys.get("indent_style") == "space":
        yield from (f"line {i} is indented by a tab" for i, line in enumerate(text.split("\n"), 1) if line.startswith("\t"))
    if keys.get("end_of_line") == "lf" and "\r\n" in text:
        yield "it has lines of CR LF"


case(wanted("src/base/buf.c").get("indent_style") == "space" and wanted("Makefile").get("indent_style") == "tab" and wanted("a/meson.build").get("indent_size") == "2",
     ".editorconfig says how sources, the Makefile and builds are indented", table)
keys = {"insert_final_newline": "true", "trim_trailing_whitespace": "true", "indent_style": "space", "end_of_line": "lf"}
case([len(list(faults("x", t, keys))) for t in ("a\n", "a", "a \n", "\ta\n", "a\r\n")] == [0, 1, 1, 1, 1], "each fault of a file is seen")
listed = subprocess.run(["git", "-C", str(root), "ls-files"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
names = listed.stdout.splitlines() if listed.returncode == 0 else [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not p.relative_to(root).parts[0].startswith("build")]
bad, count = [], 0
for name in sorted(names):
    path = root / name
    if name.startswith(DATA) or not path.is_file() or path.is_symlink():
        continue
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        continue
    if "\0" in text:
        continue
    count += 1
    bad += [f"{name}: {f}" for f in faults(name, text, wanted(name))][:3]
case(count > 500 and not bad, "every text file is as .editorconfig says", count, *bad)
done()
