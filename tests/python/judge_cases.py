# SPDX-License-Identifier: Apache-2.0
"""The judge of Python against its cases, its own tables, a plain tree walk and the corpora.

Usage: judge_cases.py TOOL ROOT. TOOL judges and runs nothing. A case is header lines, a line of three dashes, and
the payload:

    profile: strict locked             judged under each: strict, locked, standard, open
    expect:  refused | passes
    escapes: yes                     the payload has Python's backslash escapes for bytes
    twin:    NAME.case               refused ones only: an honest program of the same kind, which passes
    finding: RULE LINE:COLUMN TEXT   all of them, in order

Besides them: the programs of tests/cases/python/attacks and .../benign, and those of ../shared/corpora where that is."""
import ast
import builtins
import collections
import json
import pathlib
import pkgutil
import re
import subprocess
import sys

import yaml

TOOL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
CASES = ROOT / "tests/cases/python/judge"
sys.path.insert(0, str(ROOT / "tests/system"))
import corpus  # noqa: E402
sys.path.insert(0, str(ROOT / "tests/lint"))
from tap import case as ok, done  # noqa: E402


class Judge:
    def __init__(self):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, profile, source):
        source = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
        self.process.stdin.write(b"%s %d\n" % (profile.encode(), len(source)) + source)
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


judge = Judge()


def told(report):
    """Every place of every finding, in the order of the source."""
    each = [(p, v) for v in report["violations"] for p in v["places"]]
    return sorted(each, key=lambda x: (x[0]["line"] or 0, x[0]["column"] or 0, x[1]["rule"], x[1]["operand"]))


# ---- cases ----

def read(path):
    head, dashes, payload = path.read_text().partition("\n---\n")
    case = {"finding": [], "payload": payload.encode()}
    for line in head.splitlines():
        if not line.startswith("#"):
            key, colon, value = line.partition(": ")
            if not colon or key not in ("profile", "expect", "escapes", "twin", "finding"):
                raise ValueError(f"{path}: not a header line: {line!r}")
            if key == "finding":
                case[key].append(value)
            else:
                case[key] = value
    if not dashes or case.get("expect") not in ("refused", "passes") or "profile" not in case:
        raise ValueError(f"{path}: no profile, no expect or no ---")
    if case.get("escapes") == "yes":
        case["payload"] = case["payload"].decode("unicode_escape").encode("latin-1")
    return case


cases = {p.name: read(p) for p in sorted(CASES.glob("*.case"))}
ok(len(cases) > 150, f"there are cases: {len(cases)}")
kinds = collections.Counter()
for name, c, profile in ((n, c, p) for n, c in cases.items() for p in c["profile"].split()):
    report = judge(profile, c["payload"])
    found = [f"{v['rule']} {p['line']}:{p['column']} {v['operand']}" for p, v in told(report)]
    ok(found == c["finding"] and report["is_safe"] == (c["expect"] == "passes"), f"case {name}, {profile}", "found:", *found)
    kinds.update(v["rule"].split(".")[1] if "." in v["rule"] else v["rule"] for v in report["violations"])
    if c["expect"] == "refused":
        twin = cases.get(c.get("twin"))
        ok(twin and twin["expect"] == "passes" and profile in twin["profile"], f"case {name}, {profile}, has an honest twin", c.get("twin"))
        ok(all(v["hint"] or v["rule"] == "syntax" for v in report["violations"]), f"case {name}, {profile}, says what to write instead")
ok(set(kinds) >= {"call", "name", "attr", "key", "method", "module", "import", "member", "form", "syntax", "nul", "encoding"},
   "the cases have every kind of finding", kinds)

# ---- every line of the tables, each by a program of its own ----

PROGRAMS = {
    "call-deny": ("x = 1\n{}(x)\n", 2, 1), "call-word-deny": ("x = 1\n{}(x)\n", 2, 1), "name-deny": ("x = 1\n{}\n", 2, 1),
    "attribute-deny": ("x = 1\nx.{}\n", 2, 3), "subscript-deny": ("x = {{}}\nx['{}']\n", 2, 3),
    "descriptor-method": ("class A:\n  def {}(self): pass\n", 2, 3), "module-deny": ("x = 1\nimport {}\n", 2, 8),
    "member-deny": None, "construct-deny": None,
}
ALLOWED = {"import-allow": "import {}\n", "attribute-allow": "x = 1\nx.{}\n", "member-allow": None}
CONSTRUCTS = {
    "metaclass": "class A(metaclass=B): pass\n", "unlisted-import": "import nosuchmodule\n", "star-import": "from json import *\n",
    "relative-import": "from . import a\n", "format-field": "'{0.__builtins__}'\n", "encoding-cookie": "# coding: utf-7\n",
    "string-annotation": "x: 'f(1)' = 1\n", "private-member": "from json import _x\n", "bare-cr": "x = 1\ry = 1\n",
    "except-star": "try:\n    pass\nexcept* ValueError:\n    pass\n",
    "rebound-call": "def eval(x): return x\neval(1)\n",
}
for name in ("strict", "locked", "standard", "open"):
    rules = yaml.safe_load((ROOT / f"policies/{name}.yaml").read_text())["rules"]
    bad = []
    for r in rules:
        word = r["name"].rstrip("*") + ("zz__" if r["name"] == "__*" else "zz" if r["name"].endswith("*") else "")
        if r["kind"] == "construct-deny":
            report = judge(name, CONSTRUCTS[r["name"]])
            good = any(v["rule"] == r["id"] and v["hint"] == r["hint"] for v in report["violations"])
        elif r["kind"] == "member-deny":
            module, member = r["name"].rsplit(".", 1)
            reports = [judge(name, f"from {module} import {member}\n"), judge(name, f"import {module} as m\nm.{member}\n")]
            good = all(any(v["rule"] == r["id"] for v in x["violations"]) for x in reports)
        elif r["kind"] == "member-allow":
            module, member = r["name"].rsplit(".", 1)
            good = judge(name, f"from {module} import {member}\nimport {module}\n{module}.{member}\n")["is_safe"]
        elif r["kind"] in PROGRAMS:
            text, line, column = PROGRAMS[r["kind"]]
            report = judge(name, text.format(word))
            # a name that is both a forbidden call and a forbidden name goes by the call
            good = any(v["rule"] in (r["id"], r["id"].replace("py.name.", "py.call.")) and v["hint"] and
                       (v["line"], v["column"]) == (line, column) for v in report["violations"])
        elif r["kind"] in ALLOWED:
            good = judge(name, ALLOWED[r["kind"]].format(word))["is_safe"]
        else:
            continue
        if not good:
            bad.append(f"{r['kind']} {r['name']}")
    ok(not bad, f"{name}: every rule of the table does what it says", bad)

# ---- every hint of strict: what takes the place of what was refused is there ----

def own_hints():
    """Of rules that stand in no table: the last text of a refusal in the worker's sources, and the table of hidden members."""
    for path in sorted(p for room in ("python", "frame") for p in (ROOT / "src/worker" / room).glob("*.c")):
        if path.name.startswith(("test_", "fuzz_")):
            continue
        text = re.sub(r'"\s+"', "", path.read_text())
        for m in re.finditer(r'(?:guard_refuse_own|\brefuse)\([^;]*?"([^"]*)"\);', text):
            yield f"{path.name}: {m[1][:40]}", m[1]
        for m in re.finditer(r'\{"\w+(?:\.\w+)+",\s*"([^"]+)"\}', text):
            if path.name == "facade.c":
                yield f"{path.name}: {m[0][:40]}", m[1]
        for m in re.finditer(r'wire_put_text\(\s*&w,\s*"([^"]{30,})"\)', text):
            yield f"{path.name}: {m[1][:40]}", m[1]


strict = yaml.safe_load((ROOT / "policies/strict.yaml").read_text())["rules"]
listed = [r["name"] for r in strict if r["kind"] == "import-allow"]
hints = [(r["id"], r["hint"]) for r in strict if r["hint"]] + list(own_hints())
ok(len(hints) > 150 and sum(where.startswith("guard") for where, _ in hints) > 10, "there are hints in the table and in the sources", len(hints))
bad = [(where, hint) for where, hint in hints if re.search(r"\.\.\.|\u2026|and so on|etc\.|another profile|standard profile|--profile", hint)]
ok(not bad, "strict: no hint hides a list, or sends its reader to another profile", *bad)
bad = []
for where, hint in hints:
    for dotted in re.findall(r"(?<![\w./])([a-zA-Z_]\w*(?:\.\w+)+)", hint):
        module = max((m for m in listed if (dotted + ".").startswith(m + ".")), key=len, default=None)
        if module is None:
            if not isinstance(getattr(builtins, dotted.split(".")[0], None), type) and dotted.split(".")[0] not in ("x", "e", "cls", "self"):
                bad.append((where, f"{dotted}: there is no such module here"))
        elif not judge("strict", f"import {module}\n{dotted}\n")["is_safe"]:
            bad.append((where, f"{dotted} is refused itself"))
        elif pkgutil.resolve_name(dotted) is None:
            bad.append((where, f"{dotted} is not there"))
    for call in re.findall(r"(?<![\w.])([a-z_]+)\(", hint):
        if not judge("strict", f"{call}\n{call}(1)\n")["is_safe"]:
            bad.append((where, f"{call}() is refused itself"))
ok(not bad, "strict: what a hint names is there, and is not refused itself", *bad)
bad = []
for r in strict:
    members = [m["name"].rpartition(".")[2] for m in strict if m["kind"] == "member-allow" and m["name"].rpartition(".")[0] == r["name"]]
    said = re.match(r"of (\S+) there is ([\w, ]+)", r["hint"])
    if r["kind"] == "import-allow" and members and not (said and said[1] == r["name"] and set(said[2].split(", ")) == set(members)):
        bad.append((r["id"], r["hint"], members))
    if r["name"] == "unlisted-import":
        told_of = r["hint"].partition(": ")[2].split(", ")
        if sorted(told_of) != sorted(m for m in listed if not m.startswith(("_", "code_api"))):
            bad.append((r["id"], sorted(set(told_of) ^ set(listed))))
ok(not bad, "strict: hints that list members or modules list all of them", *bad)
bad = [(r["id"], r["hint"]) for r in strict if r["kind"] in ("module-deny", "call-deny", "builtin-remove", "event-deny")
       and re.search(r"\b(files?|network|terminal)\b", r["reason"])
       and not re.search(r"input\(\)|open\(\)|in memory|sys\.argv|sys\.stderr", r["hint"]) and r["name"] != "sqlite3"]
ok(not bad, "strict: who asks for files, the network or a terminal is told how data gets in", *bad)

# ---- the table of docs/run.md: every difference between the two profiles stands there, and what it says of a module is so ----

locked = yaml.safe_load((ROOT / "policies/locked.yaml").read_text())["rules"]
table = re.search(r"### `strict` and `locked` side by side\n(.*?)\n## ", (ROOT / "docs/run.md").read_text(), re.S)[1]
SHOWN = {"_*": "self._x", "private-member": "from module import _x", "rebound-call": "a function of one's own called `eval`", "__notes__": "e.__notes__"}
of = [{(r["kind"], r["name"]) for r in rules if r["kind"] not in ("member-allow", "member-deny")} for rules in (strict, locked)]
bad = [d for d in sorted(of[0] ^ of[1]) if SHOWN.get(d[1], f"`{d[1]}") not in table]
ok(len(of[0] ^ of[1]) > 50 and not bad, "docs/run.md: every difference between strict and locked stands in the table", *bad)
bad = []
for row in table.splitlines():
    cells = row.split(" | ")
    rules = [re.findall(r"`(py\.[\w.-]+)`", c) for c in cells[1:3]]
    if len(cells) > 2 and cells[2].startswith("the same"):
        rules[1] = rules[0]
    modules = [m for m in re.findall(r"`([\w.]+)`", cells[0]) if any(("import-allow", m) in x or ("module-deny", m) in x for x in of)]
    for m in modules:
        for profile, named in zip(("locked", "strict"), rules):
            found = [v["rule"] for v in judge(profile, f"import {m}\n")["violations"]]
            if m == "sys" and profile == "strict":
                named = []  # a member of it is refused there
            if bool(found) != bool(named) or found and found[0] not in named and not (found[0] == f"py.module.{m}" and "and so on" in row):
                bad.append((profile, m, found, named))
ok(not bad, "docs/run.md: what the table says of each module is what the judge says", *bad)
# Rows that are about words: the first cell's beginning, and programs that write what it says.
WORDS = {
    "`input()`": ["input()"], "`type(x)`": ["type(1)"], "`type(name": ["type('A', (), {})"], "`open`": ["open('x')"],
    "`getattr`": ["getattr(1, 'real')", "hasattr(1, 'real')", "setattr(1, 'real', 1)", "delattr(1, 'real')"],
    "`self._x`": ["class A:\n    def f(self): return self._x", "class A:\n    def f(self): return self.__x"],
    "`module._x`": ["import json\njson._x", "from json import _x"],
    "`except* T:`": ["try:\n    pass\nexcept* ValueError:\n    pass"],
    "a function of one's own called `metaclass`": [f"def {w}(x): return x\n{w}(1)" for w in ("metaclass", "descriptor", "file", "raw_input")],
    "a function of one's own called `eval`": [f"def {w}(x): return x\n{w}(1)" for w in ("eval", "exec", "compile")],
    "`eval`": ["eval('1')", "exec('1')", "compile('1', 'x', 'eval')", "globals()", "locals()", "vars()", "dir()", "memoryview(b'')", "breakpoint()",
               "help()", "__import__('json')"],
    "`e.__notes__`": ["try:\n    pass\nexcept ValueError as e:\n    print(e.__notes__)"], "any other module": ["import nosuchmodule"],
}
bad, left = [], dict(WORDS)
for row in table.splitlines():
    cells = row.strip("| ").split(" | ")
    start = next((w for w in WORDS if cells[0].startswith(w)), None)
    if start is None:
        if len(cells) == 3 and not set(cells[0]) <= set("-|") and cells[0] != "what a program writes" and not any(
                ("import-allow", m) in x or ("module-deny", m) in x for m in re.findall(r"`([\w.]+)`", cells[0]) for x in of):
            bad.append((cells[0], "no program here writes that"))
        continue
    cells[2] = cells[1] if cells[2].startswith("the same") else cells[2]
    for program in left.pop(start, []):
        for profile, cell in zip(("locked", "strict"), cells[1:]):
            found = {v["rule"] for v in judge(profile, program + "\n")["violations"]}
            named = set(re.findall(r"`(py\.[\w.-]+)`", cell)) if cell.startswith("refused: ") else set()
            if named and "and so on" in cell:  # by the word that the program calls
                named = {"py.call." + re.findall(r"\w+(?=\()", program)[-1]}
            if not found <= named or bool(found) != bool(named):
                bad.append((profile, program, found, named))
ok(not bad and not left, "docs/run.md: what the table says of each word is what the judge says", *bad, left)

# ---- a plain tree walk over the required lists: what it finds, the judge finds ----

required = {
    "modules": "os sys subprocess socket shutil pathlib tempfile multiprocessing threading ctypes pickle importlib builtins code codeop runpy pkgutil",
    "calls": "__import__ eval exec compile open getattr setattr delattr hasattr globals locals vars dir input breakpoint memoryview",
    "attributes": "__class__ __bases__ __subclasses__ __mro__ __dict__ __globals__ __locals__ __code__ __builtins__ __closure__ __func__ "
                  "__self__ __module__ __qualname__ __annotations__ __reduce__ __reduce_ex__ __getstate__ __setstate__",
    "patterns": "eval exec compile __import__ type metaclass descriptor open file input raw_input __loader__ __spec__ __cached__",
}
required = {k: set(v.split()) for k, v in required.items()}
ok([len(required[k]) for k in ("modules", "calls", "attributes")] == [17, 16, 19], "the required lists: 17 modules, 16 calls, 19 attributes")


def walk_findings(tree):
    """Sentences of a plain tree walk, without the imports (the judge's list is longer)."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in required["calls"] | required["patterns"]:
            found.add(f"Blocked function: {node.func.id}")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for module in [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]:
                if module.split(".")[0] in required["modules"] and not getattr(node, "level", 0):
                    found.add(f"Blocked import: {module}")
        if isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords):
            found.add("Blocked: metaclass usage")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in ("__get__", "__set__", "__delete__"):
            found.add(f"Blocked descriptor method: {node.name}")
        if isinstance(node, ast.Attribute) and node.attr in required["attributes"]:
            found.add(f"Blocked attribute: {node.attr}")
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in required["attributes"]:
            found.add(f"Blocked key: {node.slice.value}")
    return found


def stored(tree):
    """Names that the program binds itself: a call of those may be its own function."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return names | {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def compare(what, programs):
    missed, sentences, programs_seen = [], 0, 0
    for program in programs:
        try:
            tree = ast.parse(program)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        report, own = judge("locked", program), stored(tree)
        if len(told(report)) == 100:
            continue
        programs_seen += 1
        for sentence in walk_findings(tree):
            sentences += 1
            if sentence not in report["blocked_operations"] and sentence.split(": ")[-1] not in own:
                missed.append((sentence, program[:80]))
    ok(not missed, f"{what}: every one of {sentences} findings of a plain tree walk is found, in {programs_seen} programs", *missed[:5])


compare("cases", [c["payload"].decode("utf-8", "replace") for c in cases.values()])
library = [p.read_text(errors="replace") for p in sorted(pathlib.Path(ast.__file__).parent.glob("*.py")) if p.stat().st_size < 50000]
compare("standard library", library)

# ---- programs of our own, and the collected ones ----

def pass_rate(what, rows, least):
    """How many of ROWS, honest programs, the judge lets pass in each profile, and that each refusal is by name."""
    plain = [r for r in rows if not r.get("needs") and not r.get("strict")]  # some with files, which locked has not
    for profile, rows, least in (("strict", plain, least), ("locked", plain, 83), ("standard", rows, 100), ("open", rows, 100)):
        refused, by_rule = {}, collections.Counter()
        for r in rows:
            report = judge(profile, r["code"])
            if not report["is_safe"]:
                refused[r["id"]] = report
                by_rule.update({v["rule"] for v in report["violations"]})
        rate = 100 * (len(rows) - len(refused)) / len(rows)
        ok(rate >= least, f"{what}, {profile}: {len(rows) - len(refused)} of {len(rows)} pass, {rate:.1f} %", by_rule)
        ok(all(v["rule"] and v["hint"] and v["line"] for x in refused.values() for v in x["violations"]), f"{what}, {profile}: every refusal names rule, line and hint")
        for rule, n in by_rule.most_common():
            print(f"#   {n:3} refused by {rule}")
        for name in refused:
            print(f"#   {name}: {refused[name]['message'][:100]}")


def refusals(what, language, allowed, others):
    passed = [r["id"] for r in language if judge("locked", r["code"])["is_safe"]]
    ok(not passed, f"{what}: locked refuses every one of {len(language)} language attacks", passed)
    refused = [r["id"] for r in allowed if not judge("standard", r["code"])["is_safe"]]
    ok(not refused, f"{what}: standard refuses none of {len(allowed)} programs that are to be allowed", refused)
    passed = [r["id"] for r in others if judge("locked", r["code"])["is_safe"]]
    ok(len(passed) <= len(others) // 10, f"{what}: locked refuses {len(others) - len(passed)} of {len(others)} attacks; the others are for later layers", passed)
    for name in passed:
        print(f"#   not the check's to refuse: {name}")


own_attacks, attacks = corpus.attacks()
own_honest, benign = corpus.honest()
pass_rate("own honest programs", own_honest, 100)
for r in own_honest:
    if r.get("strict") and "guard" not in r["strict"]:  # a guard refuses while it runs
        rules = [v["rule"] for v in judge("strict", r["code"])["violations"]]
        ok(any(re.match(r["strict"], rule) for rule in rules), f"strict refuses {r['id']} by {r['strict']}", rules)
LANGUAGE = ("object-graph", "frames", "indirect-attribute", "no-call-syntax", "parser-differential", "dynamic-code", "template-injection")
missing = [i for i in corpus.ONLY_COMPUTES if attacks and judge("locked", {r["id"]: r for r in attacks}[i]["code"])["is_safe"]]
ok(not missing, "locked refuses what strict runs as harmless", missing)
refusals("own attacks", [r for r in own_attacks if r["family"] in LANGUAGE], [r for r in own_attacks if r["expect"] == "allow"],
         [r for r in own_attacks if r["expect"] in ("contain", "policy-import") or (r["expect"] == "block-or-contain" and r["family"] not in LANGUAGE)])
compare("own programs", [r["code"] for r in own_honest + own_attacks])
if benign:
    pass_rate("benign programs", benign, 97)
    compare("benign programs", [r["code"] for r in benign])
if attacks:
    refusals("attacks", [r for r in attacks if r["id"].startswith("own-py/")], [r for r in attacks if r["expects"] == "allow"],
             [r for r in attacks if r["expects"] in ("contain", "block-or-contain", "policy-import")])
    compare("attacks", [r["code"] for r in attacks])

judge.process.stdin.close()
ok(judge.process.wait(60) == 0, "the judge ended well after all of them")
done()
