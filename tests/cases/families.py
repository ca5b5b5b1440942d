"""The families of attacks and honest programs, and that each has cases: the table of tests/cases/README.md.

Usage: families.py ROOT [--write]. The table's last column is counted here. Where ../shared/corpora is, every group and
kind of its records, and every number of its lists, must be in the column `covers` of some family."""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/system"))
import corpus  # noqa: E402
sys.path.insert(0, str(ROOT / "tests/lint"))
from tap import case as ok, done  # noqa: E402

README = ROOT / "tests/cases/README.md"
SHARED = ROOT / "../shared/corpora"


def cases_in(place):
    """How many cases a place of the table has: a file of programs, a table of expressions, a folder of .case files, probes."""
    path = ROOT / place
    if path.suffix == ".cases":
        return len(corpus.parse(path))
    if path.suffix == ".table":
        return sum(1 for line in path.read_text().splitlines() if line and not line.startswith("# "))
    if place == "tests/probes":
        return sum(len(re.findall(r'^    \{"[\w-]+",', p.read_text(), re.M)) for p in path.glob("*.c"))
    return len(list(path.rglob("*.case")))


def rows():
    """place -> (line, family, covers, stated count)"""
    found = {}
    for line in README.read_text().splitlines():
        m = re.fullmatch(r"\| ([^|]+) \| `([^`|]+)` \| ([^|]*) \| *(\d+) \|", line)
        if m:
            found[m[2]] = (line, m[1].strip(), m[3].strip(), int(m[4]))
    return found


def places():
    """Everything below tests/cases that holds cases."""
    cases = ROOT / "tests/cases"
    found = {str(p.relative_to(ROOT)) for p in cases.rglob("*") if p.suffix in (".cases", ".table")}
    return found | {str(p.parent.relative_to(ROOT)) for p in cases.rglob("*.case")}


def wanted():
    """What the collection has: groups and kinds by name, items of its numbered lists."""
    words = collections.Counter()
    for path in sorted(SHARED.glob("attacks/*.jsonl")):
        language = "" if path.stem == "python" else f"{path.stem}: "
        for line in path.read_text().split("\n")[:-1]:  # a text in it may hold U+2028
            r = json.loads(line)
            kind = r.get("group") or r.get("why") or r["source"].split()[0].split("/")[-1]
            words[language + re.sub(r" \(.*\)", "", kind)] += 1
    for path in SHARED.glob("benign/*.jsonl"):
        words[f"honest {path.stem}"] += 1
    text = (SHARED / "README.md").read_text()
    for title, mark, elsewhere in (("Expression language", "expression", (5, 35)), ("Operating-system level", "system", (48,))):
        part = text[text.index(title):].split("\n## ")[0]
        for n in re.findall(r"(?:^- |· )(\d+)\. ", part, re.M):
            if int(n) not in elsewhere:  # README.md says where
                words[f"{mark} {n}"] += 1
    return words


def write(table):
    text = README.read_text()
    for place, (line, *_) in table.items():
        text = text.replace(line, re.sub(r"\d+ \|$", f"{cases_in(place)} |", line))
    README.write_text(text)


table = rows()
if "--write" in sys.argv:
    write(table)
    sys.exit()
ok(len(table) > 50, f"the table has {len(table)} families")
for place, (_, family, _, stated) in table.items():
    n = cases_in(place) if (ROOT / place).exists() else 0
    ok(n >= stated > 0, f"the family {family} has its {stated} cases in {place}, or more", f"found {n}; families.py ROOT --write")
missing = sorted(p for p in places() if p not in table and not any(p.startswith(t + "/") for t in table))
ok(not missing, "every folder and file of cases is in the table", *missing)
covered = {w.strip() for _, _, covers, _ in table.values() for w in covers.split(";") if w.strip()}
for span in [c for c in covered if re.fullmatch(r"(expression|system) \d+ to \d+", c)]:
    kind, first, _, last = span.split()
    covered |= {f"{kind} {n}" for n in range(int(first), int(last) + 1)}
if SHARED.exists():
    lacking = sorted(w for w in wanted() if w not in covered)
    ok(not lacking, f"each of the {len(wanted())} groups, kinds and items of the collection has a family here", *lacking)
done()
