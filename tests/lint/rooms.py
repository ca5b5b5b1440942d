# SPDX-License-Identifier: Apache-2.0
"""The house rules that a machine can check: include direction, header contracts, banned calls.

Reads src/ROOMS. TAP on stdout; one case a rule and file, so a failure names its place."""
import pathlib
import re
import sys

from tap import case, done

root = pathlib.Path(sys.argv[1])
src = root / "src"


may = {}
for line in (src / "ROOMS").read_text().splitlines():
    line = line.split("#")[0].strip()
    if line:
        room, _, allowed = line.partition(":")
        may[room.strip()] = set(allowed.split()) | {room.strip()}

present = {p.name for p in src.iterdir() if p.is_dir()}
case(present <= set(may), "every folder of src/ is a room of src/ROOMS", f"unknown: {present - set(may)}")
order = list(may)
case(all(order.index(a) <= order.index(r) for r in may for a in may[r] if a in may),
     "src/ROOMS lets no room include a later one")

BANNED = {
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|system|popen|alloca)\s*\(": "banned function",
    r"\bopen(?:at)?\s*\((?=[^;]*\bO_)(?![^;]*O_CLOEXEC)": "open without O_CLOEXEC",
    r"\bsocket(?:pair)?\s*\((?=[^;]*\bSOCK_)(?![^;]*SOCK_CLOEXEC)": "socket without SOCK_CLOEXEC",
    r"\bpipe\s*\(": "pipe without O_CLOEXEC (use pipe2)",
    r"\bfopen\s*\([^;]*\"[rwa]b?\+?\"": "fopen without 'e'",
}
CONTRACT = ("Takes:", "Gives:", "Never:", "Runs in:")


def without_comments_and_strings(text):
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0)) if m.group(0)[0] == "/" else '""' if "fopen" not in m.string[max(0, m.start() - 80):m.start()] else m.group(0)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h"))
case(len(files) > 5, "there are files to look at")
for p in files:
    rel = p.relative_to(root)
    room = p.relative_to(src).parts[0]
    text = p.read_text()
    bad = []
    for i, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if m and "/" in m.group(1):
            target = m.group(1).split("/")[0]
            if target in may and target not in may.get(room, ()):
                bad.append(f"{rel}:{i}: {room} may not include {target} (src/ROOMS)")
    code = without_comments_and_strings(text)
    if not p.name.startswith(("test_", "probe_")):
        for pattern, why in BANNED.items():
            for m in re.finditer(pattern, code):
                bad.append(f"{rel}:{code[:m.start()].count(chr(10)) + 1}: {why}: {m.group(0)[:40]!r}")
    if p.suffix == ".h" and not all(f"\n * {c}" in text.split("#ifndef")[0] for c in CONTRACT):
        bad.append(f"{rel}: the header does not open with {', '.join(CONTRACT)}")
    if p.suffix == ".c" and not re.match(r"(?:/\* SPDX[^\n]*\n)?/\*(?! SPDX)", text):
        bad.append(f"{rel}: the file does not open with why it is done this way")
    lines = text.count("\n")
    if lines > 700:
        bad.append(f"{rel}: {lines} lines; split it by what it does (look again above 600)")
    case(not bad, f"house rules: {rel}", *bad)

done()
