"""The documents against the program: options, keys, commands, links, examples.

Usage: docs.py SOURCE-ROOT BUILD-ROOT CORDON. TAP on stdout. What the program prints is the truth; a
document that says more or less than it fails here."""
import ast
import doctest
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

root, build, cordon = (pathlib.Path(p).resolve() for p in sys.argv[1:4])  # meson names the program relatively
count = failures = 0
state = tempfile.TemporaryDirectory(prefix="cordon-docs-")  # rates and records of others do not count here
os.environ.update(CORDON_STATE=state.name + "/state", XDG_CONFIG_HOME=state.name)


def case(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for d in details if not good else ():
        print("#", str(d).replace("\n", "\n# "))


def run(*words, shell=False):
    r = subprocess.run(words[0] if shell else [str(w) for w in words], shell=shell, stdin=subprocess.DEVNULL, timeout=60,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", cwd=root)
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


def table_options(page):
    section = re.search(r"^## Options\n(.*?)(?=^##)", read(page), re.M | re.S)
    return set(re.findall(r"^\| `--([a-z-]+)[^|]*`? \|[^|]*\| [^|]+ \|$", section.group(1) if section else "", re.M))


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
    if c == "exec":
        same("exec: options in docs/exec.md", table_options("docs/exec.md"), options)
        defaults = re.findall(r"^ +(?:-\w, )?--([a-z-]+) .*?\((\d+[a-z]*)[;)]", text, re.M)
        case(len(defaults) > 5, "exec --help names defaults", text)
        for option, default in defaults:
            row = re.search(rf"^\| `--{option} [^|]*\| ([^|]*) \|", read("docs/exec.md"), re.M)
            case(row and default in re.findall(r"\w+", row.group(1)), f"exec: default of --{option} in docs/exec.md", default)

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
        count += 1
        print(f"ok {count} - {p.name} renders # SKIP groff is not installed")

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

# --- tables that repeat another file -----------------------------------------------------------------
rooms = {line.split(":")[0].strip() for line in read("src/ROOMS").splitlines() if ":" in line and not line.startswith("#")}
same("ARCHITECTURE.md has the rooms of src/ROOMS",
     set(re.findall(r"^\| `(\w+)` \|", re.search(r"^## Rooms\n(.*?)(?=^## )", read("ARCHITECTURE.md"), re.M | re.S).group(1), re.M)), rooms)
layers_off = read("tests/system/layers_off.py")
if layers_off:
    tables = [n.value for n in ast.parse(layers_off).body if isinstance(n, ast.Assign) and n.targets[0].id in ("EXCEPTIONS", "LACKS")]
    section = re.search(r"^## Exceptions\n(.*?)(?=^## )", read("SECURITY.md"), re.M | re.S).group(1)
    same("SECURITY.md has the exceptions of tests/system/layers_off.py",
         set(re.findall(r"^\| `(\w+)` \| `([\w-]+)`", section, re.M)), {ast.literal_eval(k) for t in tables for k in t.keys})

# --- examples with their output ------------------------------------------------------------------------
# The output is that of x86-64. Where the other architecture rightly differs, the next paragraph begins with a sentence
# that says so in this form, and is held to it:  On aarch64 it says `THIS` where x86-64 says `THAT`
DIFFERS = r"\n+On aarch64 it says `([^`]+)` where x86-64 says `([^`]+)`"
checker, matched = doctest.OutputChecker(), 0
for p in pages:
    for m in re.finditer(r"^    \$ (cordon (?:exec|eval|check|policy show) .*)\n((?:    (?!\$ ).*\n)+)", p.read_text(), re.M):
        command, wanted = m.group(1), re.sub(r"^    ", "", m.group(2), flags=re.M)
        differs = re.compile(DIFFERS).match(p.read_text(), m.end())
        if differs:
            matched += 1
            here, there = differs.groups()
            case(there in wanted, f"{p.name}: {command[:60]}: what differs on aarch64 is in the output", f"not there: {there}")
            wanted = wanted.replace(there, here) if os.uname().machine == "aarch64" else wanted
        shell = f"cordon() {{ {shlex.quote(str(cordon))} \"$@\"; }}\n{command}"
        code, text = run(shell, shell=True)
        case(checker.check_output(wanted, text, doctest.ELLIPSIS), f"{p.name}: {command[:60]}", "wanted:", wanted, "got:", text)
said = sum(len(re.findall(DIFFERS, p.read_text())) for p in pages)
case(said == matched, "every sentence about what differs on aarch64 follows an example", f"{said} sentences, {matched} examples")

print(f"1..{count}")
sys.exit(failures > 0)
