# SPDX-License-Identifier: Apache-2.0
"""The documents against the program: options, keys, links, and every kind of sentence that docfacts.py knows.

Usage: docs.py SOURCE-ROOT BUILD-ROOT CORDON. TAP on stdout. What the program prints is the truth; a
document that says more or less than it fails here. Then the checks are checked: each sentence of docplants.py is planted
in a copy of its document and must be found."""
import ast
import json
import pathlib
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

sys.dont_write_bytecode = True
import docfacts  # noqa: E402
import docplants  # noqa: E402
from tap import case, done, skip

root, build, cordon = (pathlib.Path(p).resolve() for p in sys.argv[1:4])  # meson names the program relatively
program = docfacts.Program(root, build, cordon)
docfacts.Documents.printed = {docfacts.CHECKLIST: program.shell(docfacts.CHECKLIST)[1]}
documents = docfacts.Documents(root)


def run(*words):
    r = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", cwd=root)
    return r.returncode, r.stdout


def same(name, documented, real):
    case(documented == real, name, f"not documented: {sorted(real - documented)}", f"not in the program: {sorted(documented - real)}")


def read(path):
    p = root / path
    return p.read_text() if p.exists() else ""


# --- options: --help is the truth ---------------------------------------------------------------
def man_options(page):
    section = re.search(r"^\.SH OPTIONS\n(.*?)(?=^\.SH )", read(page), re.M | re.S)
    text = section.group(1).replace("\\-", "-") if section else ""
    return set(re.findall(r"^\.TP\n\.BI? --([a-z-]+)", text, re.M))


bash, zsh = read("completions/cordon.bash"), read("completions/_cordon")


def bash_options(command):
    m = re.search(rf"^    local {command}='([^']*)'", bash, re.M)
    return set(re.findall(r"--([a-z-]+)", m.group(1))) if m else set()


def zsh_options(command):
    m = re.search(rf"^{command}\)\n(.*?)^  ;;", zsh, re.M | re.S)
    return set(re.findall(r"'\*?--([a-z-]+)\[", m.group(1))) if m else set()


code, text = run(cordon, "--help")
commands = re.findall(r"^  ([a-z]+)  +\S", text, re.M)
case(code == 0 and "exec" in commands, "cordon --help lists commands", text)
m = re.search(r"^    local commands='([^']*)'", bash, re.M)
same("bash completion: commands", set(m.group(1).split()) if m else set(), set(commands))
same("zsh completion: commands", set(re.findall(r"^  '([a-z]+):", zsh, re.M)), set(commands))
for c in commands:
    page = f"man/cordon-{c}.1"
    case((root / page).exists(), f"{c}: there is a man page")
    case(f"'cordon-{c}.1'" in read("man/meson.build"), f"{c}: the man page is installed")
    case(f"cordon\\-{c}" in read("man/cordon.1"), f"{c}: is in cordon(1)")
    code, text = run(cordon, c, "--help")
    if re.search(r"^  +(?:-\w, )?--[a-z-]+ .*\n  +(?:-\w, )?--", text, re.M) and "[--" not in text:
        options = set(re.findall(r"^  +(?:-\w, )?--([a-z-]+)", text, re.M))  # a list of options
    else:
        options = set(re.findall(r"(?<![\w-])--([a-z-]+)", text))  # a synopsis
    options.add("help")
    case(code == 0 and len(options) > 1, f"{c} --help lists options", text)
    same(f"{c}: options in {page}", man_options(page), options)
    same(f"{c}: options in bash completion", bash_options(c), options)
    same(f"{c}: options in zsh completion", zsh_options(c), options)

# --- every key of the result is described --------------------------------------------------------
reference = read("docs/exec.md")
code, text = run(cordon, "exec", "--json", "--", "/bin/false")
try:
    result = json.loads(text)
except ValueError:
    result = {}
keys = set(result) | {f"{k}.{sub}" for k in ("error", "usage") for sub in result.get(k) or ()}
table = re.search(r"^## The JSON object\n.*?\n\|---.*?\n(.*?)\n\n", reference, re.M | re.S)
described = {k for row in re.findall(r"^\| ([^|]*) \|", table.group(1) if table else "", re.M) for k in re.findall(r"`([a-z_.]+)`", row)}
same("every key of the JSON is in docs/exec.md", described, keys - {"usage"})

# --- the pages render ------------------------------------------------------------------------------
for p in sorted((root / "man").glob("*.1")):
    if shutil.which("groff"):
        code, text = run("groff", "-man", "-ww", "-z", "-Tutf8", p)
        case(code == 0 and not text, f"{p.name} renders without a warning", text)
    else:
        skip(f"{p.name} renders", "groff is not installed")

# --- links, paths, targets -------------------------------------------------------------------------
pages = sorted(p for p in root.rglob("*.md") if not any(part.startswith(("build", ".")) for part in p.relative_to(root).parts))
case(len(pages) > 5, "there are documents to look at")


def anchors(p):
    heads = re.findall(r"^#+ (.*)$", p.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


targets = set(re.search(r"^\.PHONY:(.*)$", read("Makefile"), re.M).group(1).split())
where = str(cordon.relative_to(build))
near = str(root.parent)
private = [r"/home/(?!USER\b|NAME\b)\w+", r"/Users/\w+", r"(?<![\w.])/root/\w+", re.escape(str(root)) + r"\b",
           r"\b(docker|quay|ghcr|gcr)\.io\b", r"\bregistry\.[a-z]", r"\b(pypi|npmjs|crates)\.(org|com|io)\b", r"\bdeb\.debian\.org\b"]
if near not in ("/", "/usr", "/usr/local", "/usr/src", "/tmp", "/opt", "/srv", "/var", "/home"):
    private.append(r"(?<![\w.])" + re.escape(near) + r"/")
for p in pages + sorted((root / "man").glob("*.1")) + sorted((root / "completions").iterdir()):
    text, bad = p.read_text(), []
    for pattern in private:
        bad += [f"mentions {m.group(0)!r}" for m in re.finditer(pattern, text)]
    if p.suffix == ".md":
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (p.parent / path).resolve() if path else p
            if not target.exists():
                bad.append(f"broken link {link}")
            elif anchor and anchor not in anchors(target):
                bad.append(f"no such heading: {link}")
        bad += [f"make {t}: the Makefile has no such target" for t in re.findall(r"(?:`|^ {4}(?:sudo )?)make ([a-z-]+)", text, re.M) if t not in targets]
        bad += [f"{b}: the program is {where}" for b in re.findall(r"\bbuild/([\w./-]*\bcordon)\b", text) if b != where]
    case(not bad, f"{p.relative_to(root)}: links, targets, paths", *bad)

told = {link for link in re.findall(r"\]\((docs/[\w-]+\.md)", read("README.md"))}
same("README.md names every page of docs/", told, {str(p.relative_to(root)) for p in (root / "docs").glob("*.md")})

# --- pictures ----------------------------------------------------------------------------------------
def picture_faults(text):
    """A picture says what it shows, and each colour has its counterpart where the reader's background is dark."""
    try:
        names = {e.tag.split("}")[1] for e in ElementTree.fromstring(text).iter()}
    except ElementTree.ParseError as e:
        return [f"is no XML: {e}"]
    light, _, dark = text.partition("@media (prefers-color-scheme: dark) {")
    colours = lambda part: set(re.findall(r"^([.\w]+) \{[^}]*(?:fill|stroke): #", part, re.M))
    return [f"has no <{n}>" for n in ("title", "desc") if n not in names] + \
        [f"{c} has a colour for the light, and none for the dark" for c in sorted(colours(light) - colours(dark))]


pictures = sorted((root / "docs").glob("*.svg"))
case(pictures, "there are pictures to look at")
first = read("README.md").split("\n## ")[0]
case(re.search(r"^!\[[^\]]{20,}\]\(docs/cordon\.svg\)$", first, re.M) and (root / "docs/cordon.svg").is_file(), "README.md shows the picture of the layers on its first screen, with its words")
case(len(re.findall(r"^    \$ ", first, re.M)) == 3, "README.md has three commands and their output on its first screen", first)
for p in pictures:
    faults = picture_faults(p.read_text())
    case(not faults, f"{p.relative_to(root)}: readable on light and dark", *faults)
    head, _, tail = p.read_text().partition("@media")
    plants = {"without a description": (head + "@media" + tail).replace("desc", "g"), "with a colour for the light alone": head + "</style></svg>"}
    for what, text in plants.items():
        case(picture_faults(text), f"{p.relative_to(root)}: a picture {what} is found")
costs = set(re.findall(r"^\|.*\| (\d+\.\d+) \|$", read("README.md"), re.M))
known = set(re.findall(r"\b\d+\.\d+\b", re.search(r"^## What a start costs\n(.*?)(?=^## )", read("docs/run.md"), re.M | re.S).group(1)))
case(costs and costs <= known, "README.md: what a start costs is what docs/run.md says", f"only in README.md: {sorted(costs - known)}")

# --- tables that repeat another file -----------------------------------------------------------------
rooms = {line.split(":")[0].strip() for line in read("src/ROOMS").splitlines() if ":" in line and not line.startswith("#")}
same("ARCHITECTURE.md has the rooms of src/ROOMS",
     set(re.findall(r"^\| `(\w+)` \|", re.search(r"^## Rooms\n(.*?)(?=^## )", read("ARCHITECTURE.md"), re.M | re.S).group(1), re.M)), rooms)
graph = {m[0]: set(m[1].split()) for m in re.findall(r"^(\w+) *: *([a-z ]*?) *(?:#.*)?$", read("src/ROOMS"), re.M)}
for room, cell in re.findall(r"^\| `(\w+)` \| *([^|]*?) *\|", re.search(r"^## Rooms\n(.*?)(?=^## )", read("ARCHITECTURE.md"), re.M | re.S).group(1), re.M):
    told = graph.keys() - {room, "prog"} if cell == "all" else set(filter(None, cell.split(", ")))
    case(told == graph.get(room), f"ARCHITECTURE.md: what {room} may include is what src/ROOMS says", f"not in both: {sorted(told ^ graph.get(room, set()))}")
layers_off = read("tests/system/layers_off.py")
if layers_off:
    tables = [n.value for n in ast.parse(layers_off).body if isinstance(n, ast.Assign) and n.targets[0].id in ("EXCEPTIONS", "LACKS")]
    section = re.search(r"^## Exceptions\n(.*?)(?=^## )", read("SECURITY.md"), re.M | re.S).group(1)
    same("SECURITY.md has the exceptions of tests/system/layers_off.py",
         set(re.findall(r"^\| `(\w+)` \| `([\w-]+)`", section, re.M)), {ast.literal_eval(k) for t in tables for k in t.keys})

# --- sentences, kind by kind ---------------------------------------------------------------------------
before = {}
for kind, check in docfacts.CHECKS.items():
    before[kind] = faults = check(documents, program)
    case(not faults, f"{kind}: {check.__doc__.splitlines()[0]}", *faults)

# --- the checks themselves -------------------------------------------------------------------------------
unplanted = set(docfacts.CHECKS) - {kind for kind, *_ in docplants.PLANTS}
case(not unplanted, "every kind of sentence has a plant", unplanted)
for kind, path, there, planted in docplants.PLANTS:
    name = f"{kind}: a false sentence in {path} is found: {(planted or there).strip().splitlines()[-1][:60]}"
    text = documents[path]
    if there not in text:
        case(False, name, f"{path} does not have {there!r} any more: plant it elsewhere")
        continue
    copy = docfacts.Documents(root, {path: text.replace(there, planted) if there else text + planted})
    case(set(docfacts.CHECKS[kind](copy, program)) - set(before[kind]), name, f"the check of {kind} says nothing new about it")

done()
