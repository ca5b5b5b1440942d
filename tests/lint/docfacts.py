# SPDX-License-Identifier: Apache-2.0
"""What the documents say, kind by kind, against the program and its tables. docs.py runs these checks on the documents as they are, and
once more on copies with a false sentence planted in each (docplants.py).

Each check takes the documents and the program and returns a list of faults, one sentence each. A document is a text by its path, so
a planted copy needs no file. What the program answers is asked once and remembered."""
import doctest
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile


class Documents:
    """The text of every document: *.md, docs/*.md, man/*.1, and what the program prints as one. PLANTED replaces some."""
    printed = {}  # {command: its output}

    def __init__(self, root, planted=None):
        self.root = root
        paths = [p for p in sorted(root.rglob("*.md")) if not any(part.startswith(("build", ".")) for part in p.relative_to(root).parts)]
        self.texts = {str(p.relative_to(root)): p.read_text() for p in [*paths, *sorted((root / "man").glob("*.1"))]}
        self.texts.update({**self.printed, **(planted or {})})

    def __getitem__(self, path):
        return self.texts.get(path, "")

    def pages(self):
        return {path: text for path, text in self.texts.items() if path.endswith(".md")}

    def plain(self):
        """Path and text of all of them; of a man page without its escapes."""
        for path, text in self.texts.items():
            yield path, text.replace("\\-", "-").replace("\\(aq", "'") if path.endswith(".1") else text

    def section(self, path, title):
        """From a heading to the next of the same or a higher level."""
        m = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#|\Z)", self[path], re.M | re.S)
        return m.group(2) if m else ""


class Program:
    """`cordon` and the source it was built from."""

    def __init__(self, root, build, cordon):
        self.root, self.build, self.cordon = root, build, cordon
        self.folder = tempfile.TemporaryDirectory(prefix="cordon-docs-")  # rates and records of others do not count here
        os.environ.update(CORDON_STATE=self.folder.name + "/state", XDG_CONFIG_HOME=self.folder.name)

    @functools.lru_cache(maxsize=None)
    def shell(self, script, state=None):
        """(exit status, output) of a script in which `cordon` is the program."""
        script = f"cordon() {{ {shlex.quote(str(self.cordon))} \"$@\"; }}\n{script}"
        built = pathlib.Path(self.cordon).resolve().parent  # as README says: its programs and its library for Python
        environment = dict(os.environ, T=self.folder.name, PATH=f"{built}:/usr/bin:/bin", PYTHONPATH=str(built / "bindings/python"), PYTHONDONTWRITEBYTECODE="1",
                           **({"CORDON_STATE": state} if state else {}))
        r = subprocess.run(script, shell=True, stdin=subprocess.DEVNULL, timeout=60, env=environment, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", cwd=self.root)
        return r.returncode, r.stdout

    def help(self, command=""):
        return self.shell(f"cordon {command} --help")[1]

    @functools.cached_property
    def commands(self):
        return re.findall(r"^  ([a-z]+)  +\S", self.help(), re.M)

    @functools.lru_cache(maxsize=None)
    def options(self, command):
        """{option: default, or None}"""
        found = {"help": None}
        for name, rest in re.findall(r"^ +(?:-\w, )?--([a-z-]+)(.*)$", self.help(command), re.M):
            default = re.search(r"\((?:policy; )?(\d+[a-z]*|strict|full|auto|execute|worker)[;)]", rest)
            found[name] = default.group(1) if default else None
        return found

    @functools.cached_property
    def policy(self):
        return json.loads(self.shell("cordon policy show --json")[1])

    def source(self, path):
        return (self.root / path).read_text()

    def define(self, path, name):
        """The value of a constant of the source."""
        m = re.search(rf"(?:#define {name}\s+(?:\\\n\s*)?|\b{name} = )(\([^)]*\)|\w+)", self.source(path))
        words = re.sub(r"(?<=\d)U?LL", "", m.group(1)).replace("MIB", "1048576")
        if not re.fullmatch(r"[\d\s()*+x]+", words):
            raise ValueError(f"{path}: {name} is {words}")
        return eval(words)  # digits, brackets, * and + alone

    @functools.lru_cache(maxsize=None)
    def compute_calls(self, arch):
        """How many system calls can happen in a child that computes only."""
        said = subprocess.run([self.build / "src/jail/test_filter", self.root / "tests/filter"], stdout=subprocess.PIPE, text=True).stdout
        return len(re.search(rf"{arch} compute over python-compute, calls that can happen: (.*)", said)[1].split())

    def between(self, path, first, last):
        text = self.source(path)
        begin = text.index(first)
        return text[begin:text.index(last, begin)]

    # --- tables of the source ---
    @functools.cached_property
    def statuses(self):
        return re.findall(r'"(\w+)"', self.between("src/flow/result.c", "names[] = {", "}"))

    @functools.cached_property
    def exit_codes(self):
        return {name: int(n) for name, n in re.findall(r"EXIT_(\w+) = (\d+)", self.source("src/prog/cordon/exits.h"))}

    @functools.cached_property
    def exit_of_status(self):
        """Of the statuses that are not a program's own end; those have no number."""
        body = self.between("src/prog/cordon/exits.c", "int exits_status(", "\n}")
        last = re.findall(r"EXIT_(\w+);", body)[-1]
        groups = re.findall(r"((?:case FLOW_\w+:\s+)+)(?:return EXIT_(\w+);|(break);)", body)
        return {status.lower(): self.exit_codes[last if ends else code] for cases, code, ends in groups for status in re.findall(r"FLOW_(\w+)", cases)}

    @functools.cached_property
    def steps(self):
        return re.findall(r'\{"(\w+)",', self.between("src/flow/flow.c", "} steps[] = {", "};"))

    @functools.cached_property
    def categories(self):
        return re.findall(r'X\(\w+, "(\w+)"', self.between("src/gate/escalate.h", "#define GATE_ERROR_CATEGORIES", "\n\n"))

    @functools.cached_property
    def gate_rules(self):
        return re.findall(r'"(gate\.\w+)"', self.between("src/gate/gate.h", "#define GATE_RULES", "\n\n"))

    @functools.cached_property
    def record_kinds(self):
        return re.findall(r'\[AUDIT_\w+\] = "(\w+)"', self.source("src/audit/record.c"))


def lists(where, documented, real):
    """Faults of a list that must have exactly these words."""
    faults = [f"{where} lacks {sorted(set(real) - set(documented))}"] if set(real) - set(documented) else []
    return faults + ([f"{where} has {sorted(set(documented) - set(real))}, the program does not"] if set(documented) - set(real) else [])


def words(text):
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)


def table_under(text, head):
    """Rows, as lists of cells, of the table whose head row matches."""
    m = re.search(rf"^\|{head}.*\n\|[-|]+\n((?:\|.*\n?)+)", text, re.M)
    return [[c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]] for row in m.group(1).splitlines()] if m else []


# --- examples -----------------------------------------------------------------------------------------
# The output is that of x86-64. Where the other architecture rightly differs, the next paragraph begins with a sentence
# that says so in this form, and is held to it:  On aarch64 it says `THIS` where x86-64 says `THAT`
DIFFERS = r"\n+On aarch64 it says `([^`]+)` where x86-64 says `([^`]+)`"
# Examples whose output depends on people or on other runs; the test beside each looks at it.
NOT_RUN = {"cordon approve list": "tests/system/gate.py", "cordon stop --why": "tests/system/gate.py"}


def examples(documents, program):
    """Every `$ COMMAND` with output in a page, or in a man page, prints that output."""
    faults, checker, matched, idle = [], doctest.OutputChecker(), 0, set(NOT_RUN)
    for path, text in documents.plain():
        for command, wanted in re.findall(r"^\$ (.*\bcordon\b.*)\n((?:(?![$.]).*\n)+)", text, re.M) if path.endswith(".1") else ():
            got = program.shell(command)[1]
            if not checker.check_output(wanted, got, doctest.ELLIPSIS):
                faults.append(f"{path}: {command[:60]}\nwanted:\n{wanted}got:\n{got}")
    for path, text in documents.pages().items():
        for m in re.finditer(r"^    \$ (.*\bcordon\b.*)\n((?:    (?!\$ ).*\n)+)", text, re.M):
            command, wanted = m.group(1), re.sub(r"^    ", "", m.group(2), flags=re.M)
            elsewhere = [c for c in NOT_RUN if command.startswith(c)]
            if elsewhere:
                idle -= set(elsewhere)
                continue
            differs = re.compile(DIFFERS).match(text, m.end())
            if differs:
                matched += 1
                here, there = differs.groups()
                if there not in wanted:
                    faults.append(f"{path}: {command[:60]}: what differs on aarch64 is not in the output: {there}")
                wanted = wanted.replace(there, here) if os.uname().machine == "aarch64" else wanted
            got = program.shell(command)[1]
            if not checker.check_output(wanted, got, doctest.ELLIPSIS):
                faults.append(f"{path}: {command[:60]}\nwanted:\n{wanted}got:\n{got}")
    said = sum(len(re.findall(DIFFERS, text)) for text in documents.pages().values())
    if said != matched:
        faults.append(f"{said} sentences say what differs on aarch64, {matched} of them follow an example")
    return faults + [f"no document has the example {c!r} any more: take it out of NOT_RUN" for c in sorted(idle)]


# --- commands and options by name -----------------------------------------------------------------------
OTHERS = set(re.findall(r"--([a-z-]+)", """--security-opt --privileged --user --rm --name --install --scope --only --seed --match --count --limit --list --write --suite --arch
    --tests --verbose --template --long --token"""))  # options in documents that are another program's


def commands(documents, program):
    """Every `cordon COMMAND --option` in code, and every option in backquotes, exists."""
    faults = []
    every = {o for c in program.commands for o in program.options(c)} | {"version"}
    for path, text in documents.plain():
        code = [line for line in text.splitlines() if line.startswith("    ") or path.endswith(".1")]
        code += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) if path.endswith(".md") else []
        for line in code:
            for m in re.finditer(r"(?<![\w./\\-])cordon ([a-z]+)\b(?![.:'(])([^|;&#`]*)", line):
                command, rest = m.group(1), m.group(2).split(" -- ")[0]
                if path.endswith(".1") and not re.match(r"^(\$ )?cordon ", line):
                    continue
                if command not in program.commands:
                    faults.append(f"{path}: `cordon {command}`: there is no such command")
                    continue
                for option in re.findall(r"(?<![\w-])--([a-z][a-z-]*)", rest):
                    if option not in program.options(command):
                        faults.append(f"{path}: cordon {command} has no option --{option}")
        if path.endswith(".md"):
            for option in re.findall(r"`--([a-z][a-z-]*)[^`\n]*`", text):
                if option not in every | OTHERS:
                    faults.append(f"{path}: `--{option}`: no command has it")
    return faults


# --- option tables --------------------------------------------------------------------------------------
def option_tables(documents, program):
    """A table of options follows a mark, <!-- options: COMMAND --> or <!-- options: COMMAND, beside OTHER -->, and has the options and defaults of
    --help: all of them, or all that the table of OTHER does not have."""
    faults, seen = [], {}
    for path, text in documents.pages().items():
        for m in re.finditer(r"^\| option[^|]*\| default \|.*\n\|[-|]+\n((?:\|.*\n?)+)", text, re.M):
            mark = re.search(r"<!-- options: ([a-z]+)(?:, beside ([a-z]+))? -->\s*\Z", text[:m.start()])
            if not mark or mark.group(1) not in program.commands:
                faults.append(f"{path}: a table of options without <!-- options: COMMAND --> before it")
                continue
            command, beside = mark.groups()
            real = program.options(command)
            rows = {}
            for row in m.group(1).splitlines():
                cells = [c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]]
                name = re.match(r"`--([a-z-]+)", cells[0])
                if not name or len(cells) != 3 or not cells[2]:
                    faults.append(f"{path}: a row of the options of {command} lacks its option or its meaning: {row}")
                    continue
                rows[name.group(1)] = cells[1]
            seen[command] = set(rows)
            missing = set(real) - set(rows) - {"help"} - (set(program.options(beside)) if beside else set())
            faults += [f"{path}: the table of {command} lacks --{o}" for o in sorted(missing)]
            faults += [f"{path}: {command} has no option --{o}" for o in sorted(set(rows) - set(real))]
            for option in set(rows) & set(real):
                if real[option] and real[option] not in re.findall(r"\w+", rows[option]):
                    faults.append(f"{path}: the default of {command} --{option} is {real[option]}, the table says {rows[option] or 'none'}")
    letters = lambda command: set(re.findall(r"^ +(-\w), (--[a-z-]+)", program.help(command), re.M))
    told = set(re.findall(r"`(-\w)` for `(--[a-z-]+)`", documents["docs/exec.md"]))
    faults += [f"docs/exec.md does not say that {a} is a letter for {b}" for a, b in sorted(letters("exec") - told)]
    faults += [f"docs/exec.md: exec has no letter {a} for {b}" for a, b in sorted(told - letters("exec"))]
    faults += [f"no document has a table of the options of {c}" for c in ("exec", "run", "stop", "escalate") if c not in seen]
    most = {r[0]: r[-1] for r in table_under(documents["docs/exec.md"], " option \\| least ")}
    for option, key, unit in (("timeout", "timeout", "{} days"), ("memory", "memory", "{} TiB"), ("descriptors", "descriptors", "{:,}"), ("disk", "disk", "{} TiB"),
                              ("inodes", "inodes", "{:,}"), ("processes", "processes", "{:,}"), ("output", "output", "{} GiB")):
        value = program.policy["ceilings"][key]
        if isinstance(value, str):
            n, letter = int(value[:-1]), value[-1]
            value = {"h": n // 24, "g": n if "GiB" in unit else n // 1024}[letter]
        row = [v for k, v in most.items() if f"--{option}" in k and "-by" not in k]
        if row != [unit.format(value)]:
            faults.append(f"docs/exec.md: the most of --{option} is {unit.format(value)}, the table says {row}")
    return faults


# --- exit codes -----------------------------------------------------------------------------------------
NO_STATE = "/proc/none"  # a state folder that cannot be made
BLOCKED, RAISES, LOOPS = "'eval(1)'", "'1/0'", "'while True: pass'"
ALONE = 'mkdir -p "$T/alone" && cp %s "$T/alone/cordon" && "$T/alone/cordon" '  # without the programs that build a jail
ABORTED = "timeout --preserve-status -s INT 1 %s "
TRIALS = {  # command: {exit status: a script that ends with it}
    "exec": {0: "cordon exec -- /bin/true", 124: "cordon exec --timeout 100ms -- sleep 60", 125: "cordon exec --no-such -- x", 130: ABORTED + "exec -- sleep 60"},
    "run": {0: "echo 1 | cordon run", 124: f"echo {LOOPS} | cordon run --timeout 300ms", 125: f"echo {BLOCKED} | cordon run",
            130: ABORTED + f"run -c {LOOPS}"},
    "check": {0: "echo 1 | cordon check", 1: f"echo {BLOCKED} | cordon check", 2: "cordon check --no-such", 130: "sleep 2 | " + ABORTED + "check"},
    "eval": {0: "cordon eval 1", 1: "cordon eval 1/0", 2: "cordon eval", 3: "cordon eval 'f()'"},
    "policy": {0: "cordon policy show", 1: "cordon policy check README.md", 2: "cordon policy"},
    "approve": {0: "cordon approve list", 1: f"export CORDON_STATE={NO_STATE}; cordon approve list", 2: "cordon approve yes ap-0"},
    "stop": {0: "cordon stop --list", 1: f"export CORDON_STATE={NO_STATE}; cordon stop", 2: "cordon stop --no-such"},
    "resume": {0: "cordon resume", 1: f"export CORDON_STATE={NO_STATE}; cordon resume", 2: "cordon resume --no-such"},
    "escalate": {0: "cordon escalate --category CODE --attempt 1", 2: "cordon escalate"},
    "audit": {0: "cordon exec -- /bin/true; cordon audit verify", 1: "cordon audit show no-such", 2: "cordon audit"},
    "doctor": {0: "cordon doctor", 2: "cordon doctor --no-such", 1: f"export CORDON_STATE={NO_STATE}; cordon doctor"},
    "pool": {0: "cordon pool stop", 1: "cordon pool status", 2: "cordon pool"},
    "session": {0: "cordon session list", 125: "echo 1 | cordon session run no-such"},
    "repl": {0: "cordon repl", 125: "cordon repl --no-such"},
}
OWN = {  # command: a script in which the program's own status is 7
    "exec": "cordon exec -- sh -c 'exit 7'", "run": "cordon run --profile standard -c 'import sys; sys.exit(7)'",
    "session": "cordon session new own; echo 'import sys; sys.exit(7)' | cordon session run own", "repl": "echo 'exit(7)' | cordon repl"}
FURTHER = (  # a program's own status, and the other reasons for which nothing runs
    *((7, script) for script in OWN.values()), (1, f"cordon run -c {RAISES}"), (1, f"echo {RAISES} | cordon repl"),
    (137, "cordon exec -- sh -c 'kill -9 $$'"), (141, "{ cordon exec -- yes; echo $? >\"$T/status\"; } | head -1; exit $(cat \"$T/status\")"),
    (125, "cordon exec --role explore -- /bin/true"), (125, f"export CORDON_STATE={NO_STATE}; cordon exec -- /bin/true"),
    (125, f"export CORDON_STATE={NO_STATE}; echo 1 | cordon run"), (125, "cordon session"), (2, "echo 1 | " + ALONE + "check"), (2, "cordon rnu"),
    (1, f"export CORDON_STATE={NO_STATE}; cordon pool start"))
ELSEWHERE = {  # codes that need a holder or a second process: the test that sees them
    (command, code): "tests/system/pool.py" for command in ("session", "repl") for code in (1, 75, 124, 130)}


def exit_codes(documents, program):
    """The codes of man pages, --help and docs/exec.md are those that the program ends with."""
    faults = []
    for command, trials in TRIALS.items():
        real = set()
        for code, script in trials.items():
            got, text = program.shell(script.replace("%s", shlex.quote(str(program.cordon))))
            real.add(got)
            if got != code:
                faults.append(f"cordon {command} ends with {got}, not {code}: {script}\n{text[-300:]}")
        real |= {c for (name, c) in ELSEWHERE if name == command}
        section = re.search(r"^\.SH EXIT STATUS\n(.*?)(?=^\.SH )", documents[f"man/cordon-{command}.1"], re.M | re.S)
        if command != "repl":  # its page says "that of the last block"
            faults += lists(f"man/cordon-{command}.1, EXIT STATUS,", set(map(int, re.findall(r"^\.B (\d+)$", section.group(1) if section else "", re.M))), real)
        said = re.search(r"^Exit status:\n((?:  \S.*\n)+)", program.help(command), re.M)
        if not said:
            faults.append(f"cordon {command} --help has no table of exit statuses")
        else:
            faults += lists(f"cordon {command} --help, exit status,", set(map(int, re.findall(r"^  (\d+) ", said.group(1), re.M))), real)
        own = "the program's own" in (said.group(1) if said else "")
        if own != (command in OWN):
            faults.append(f"cordon {command} --help, exit status: {'a program has' if command in OWN else 'no program has'} a status of its own here")
        if section and ("program's own" in section.group(1)) != (command in OWN):
            faults.append(f"man/cordon-{command}.1, EXIT STATUS: {'a program has' if command in OWN else 'no program has'} a status of its own here")
    for code, script in FURTHER:
        got, text = program.shell(script.replace("%s", shlex.quote(str(program.cordon))))
        if got != code:
            faults.append(f"the exit status is {got}, not {code}: {script}\n{text[-300:]}")
    section = re.search(r"^\.SH EXIT STATUS\n(.*?)(?=^\.SH )", documents["man/cordon.1"], re.M | re.S)
    faults += lists("man/cordon.1, EXIT STATUS,", set(map(int, re.findall(r"^\.B (\d+)$", section.group(1) if section else "", re.M))), set(program.exit_codes.values()) | {130})
    rows = table_under(documents["docs/exec.md"], " status \\| meaning ")
    faults += lists("docs/exec.md, Exit status,", {int(r[0]) for r in rows if r[0].isdigit()}, set(TRIALS["exec"]))
    for row in rows:
        for status in words(row[2]):
            number = program.exit_of_status.get(status)
            if number is not None and str(number) != row[0] or number is None and row[0] in map(str, program.exit_codes.values()):
                faults.append(f"docs/exec.md, Exit status: {status} is exit status {number}, the table says {row[0]}")
    faults += lists("docs/exec.md, Exit status, third column,", {w for r in rows for w in words(r[2])}, program.statuses)
    for path, text in documents.plain():
        for code in re.findall(r"\bexit status (\d+)\b|\bexits? (?:with )?(\d+)\b", re.sub(r"\s+", " ", text), re.I):
            number = int(code[0] or code[1])
            if number not in {*program.exit_codes.values(), *(code for code, _ in FURTHER), 130, 143}:
                faults.append(f"{path}: exit status {number}: no command ends with it")
        for code in re.findall(r"never returns? (?:it|(\d))\b", text):
            faults.append(f"{path}: `never returns`: say which codes a command has, not which it has not")
    return faults


# --- status words ---------------------------------------------------------------------------------------
def status_words(documents, program):
    """Lists of statuses, categories, rules, steps and kinds of records have the words of the source."""
    page, gate, audit = documents["docs/exec.md"], documents["docs/gate.md"], documents["docs/audit.md"]
    row = lambda text, key: (re.search(rf"^\| `{key}` \|(.*)$", text, re.M) or [None, ""])[1]
    faults = lists("docs/exec.md, `status`,", words(row(page, "status")), set(program.statuses) - {"blocked"})
    faults += lists("docs/exec.md, what happened,", [w for r in table_under(page, " `status` \\| what happened ") for w in words(r[0])], set(program.statuses) - {"blocked"})
    told = {w for r in table_under(documents["docs/run.md"], " `status` \\| `error.type`") for w in words(r[0])}
    faults += [f"docs/run.md: there is no status {w}" for w in sorted(told - set(program.statuses))]
    faults += lists("docs/gate.md, Escalation,", [w for r in table_under(gate, " category \\| rule ") for w in words(r[0])], program.categories)
    faults += lists("docs/gate.md, rules,", [w for r in table_under(gate, " rule \\| means ") for w in words(r[0])], program.gate_rules)
    faults += lists("docs/audit.md, `kind`,", words(row(audit, "kind")), program.record_kinds)
    faults += lists("docs/audit.md, `steps`,", re.findall(r"`(\w+)`", row(audit, "steps")), program.steps)
    flow = re.search(r"^    request (.*) result$", documents["ARCHITECTURE.md"], re.M)
    order = [w.strip() for w in re.split(r"-+>|--", flow.group(1)) if w.strip()] if flow else []
    if order != program.steps:
        faults.append(f"ARCHITECTURE.md: the steps of a run are {' '.join(program.steps)}, the picture has {' '.join(order)}")
    for path, text in documents.plain():
        for word in re.findall(r"`status`? (?:is |of )?`(\w+)`|\bstatus `(\w+)`", text):
            name = word[0] or word[1]
            if name not in program.statuses and path != "docs/audit.md":
                faults.append(f"{path}: there is no status {name}")
        for rule in re.findall(r"`(gate\.[a-z]+)`", text):
            if rule not in program.gate_rules and rule != "gate.live":
                faults.append(f"{path}: the gate has no rule {rule}")
    return faults


# --- counts ---------------------------------------------------------------------------------------------
NUMBERS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
NUMBER = rf"\d[\d,]*|{'|'.join(NUMBERS)}"
COUNTED = r"probes?|attacks|system calls|recipes|profiles|rooms|exceptions|layers|locks|commands|subcommands|keys|worker types|steps|languages|" \
          r"categories|statuses|exit codes|rules|kinds|processes|variables|questions|refusals|executions|failures|clients|sessions|children|threads|" \
          r"violations|days|policies|fuzz targets|suites"


def seconds(text):
    n, unit = re.fullmatch(r"([\d.]+)(ms|s|m|h)", text).groups()
    return float(n) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def facts(documents, program):
    """(page, pattern with a group for each number, the numbers). Each pattern must be found, and say these numbers."""
    p = program.policy
    headings = lambda path, pattern: len(re.findall(pattern, documents[path], re.M))
    mega = lambda text: int(text[:-1])
    kept = program.define("src/base/limits.h", "LIMIT_VIOLATIONS")
    return [
        ("README.md", r"(\w+) recipes, tests", [headings("CONTRIBUTING.md", r"^## Recipe \d")]),
        ("README.md", r"environment \| (\w+) fixed variables", [len(re.findall(r"\w+=", documents.section("docs/exec.md", "Environment").split("\n\n")[1]))]),
        ("README.md", r"with up to (\d+) more threads", [p["limits"]["threads"]]),
        ("README.md", r"(\d+) MB and ([\d,]+) files", [mega(p["limits"]["disk"]), p["limits"]["inodes"]]),
        ("README.md", r"memory \| (\d+) MB", [mega(p["limits"]["memory"])]),
        ("README.md", r"time \| (\d+) s by the clock, (\d+) s of CPU", [seconds(p["limits"]["timeout"]), seconds(p["limits"]["cpu"])]),
        ("README.md", r"open files \| (\d+)", [p["limits"]["descriptors"]]),
        ("README.md", r"output \| (\d+) MB a stream, then head and tail; (\w+) times that", [mega(p["limits"]["output"]), p["limits"]["flood_factor"]]),
        ("CONTRIBUTING.md", r"(?i)at most (\w+) exceptions", [int(re.search(r"len\(EXCEPTIONS\) <= (\d+)", program.source("tests/system/layers_off.py"))[1])]),
        ("SECURITY.md", r"(\d+) executions a minute and client, (\d+) at once for each state folder, so for each user", [p["rates"]["executions"], p["rates"]["concurrent"]]),
        ("docs/gate.md", r"At most (\d+) executions of one client in any (\d+) seconds", [p["rates"]["executions"], seconds(p["rates"]["window"])]),
        ("docs/gate.md", r"At most (\d+) executions at once of one state folder", [p["rates"]["concurrent"]]),
        ("docs/gate.md", r"(\d+) a minute, (\d+) at once, each client", [p["rates"]["model_calls"], p["rates"]["model_burst"]]),
        ("docs/gate.md", r"first (\w+) refusals of a client", [program.define("src/gate/refusals.c", "TOLD_ONE_BY_ONE")]),
        ("docs/gate.md", r"(\w+) failures in a row open a breaker", [p["breakers"]["failures"]]),
        ("docs/gate.md", r"for (\d+) seconds requests are answered at once", [seconds(p["breakers"]["cooldown"])]),
        ("docs/gate.md", r"for one use, and for (\d+) minutes", [seconds(p["approval"]["expiry"]) / 60]),
        ("docs/gate.md", r"may have (\d+) executions", [p["approval"]["iterations"]]),
        ("docs/gate.md", r"It has (\d+) seconds", [seconds(p["arena"]["timeout"])]),
        ("docs/gate.md", r"may write ([\d,]+) bytes", [program.define("src/gate/verdict.h", "GATE_VERDICT_MAX")]),
        ("docs/policy.md", r"at most (\d), replaced whole", [program.define("src/gate/config.h", "GATE_JUDGES_MAX")]),
        ("docs/audit.md", r"After (\d+) days", [p["audit"]["retention_days"]]),
        ("docs/audit.md", r"more than (\d+) executions refused by validation", [p["audit"]["failures"]]),
        ("docs/audit.md", r"longer than (\d+) times the mean.*fewer than (\d+) records, never below (\d+) ms",
         [p["audit"]["slow_factor"], p["audit"]["slow_records"], seconds(p["audit"]["slow_floor"]) * 1000]),
        ("docs/audit.md", r"more than (\d+) violations in one execution", [p["audit"]["violations"]]),
        ("docs/deployment.md", r"kept for (\d+) days at least", [p["audit"]["retention_days"]]),
        (CHECKLIST, r"kept for (\d+) days at least", [p["audit"]["retention_days"]]),
        ("docs/exec.md", r"the first (\d+) by each rule are kept, (\d+) in all, and up to (\d+) more that\s+a worker reports of itself; all are counted. After ([\d,]+)",
         [program.define("src/jail/supervisor/violations.c", "PER_RULE"), kept, kept / 2, 10 * kept]),
        ("docs/audit.md", r"at most (\d+) lines; how many", [kept]),
        ("docs/audit.md", r"the last (\d+) executions of each of the (\d+) most recent clients", [program.define("src/audit/anomaly.c", n) for n in ("ENTRIES", "CLIENTS")]),
        ("docs/expr.md", r"shipped example with (\d+) keys", [len(json.loads(program.source("schemas/household.json"))["keys"])]),
        ("docs/expr.md", r"the shipped (\d+) keys if None", [len(json.loads(program.source("schemas/household.json"))["keys"])]),
        ("docs/incident-response.md", r"^(\w+) steps, in this order", [headings("docs/incident-response.md", r"^## \d\. ")]),
        ("docs/run.md", r"\((\d+) calls on aarch64, (\d+) on x86-64\)", [program.compute_calls(a) for a in ("aarch64", "x86_64")]),
        ("docs/run.md", r"at most (\d+) threads", [p["limits"]["threads"]]),
        ("docs/session.md", r"^(\w+) commands over one process", [len(re.findall(r"^    cordon \w+", documents["docs/session.md"].split("\n\n")[1], re.M))]),
        ("docs/session.md", r"wall time of a call \| (\d+) s ", [seconds(p["sessions"]["timeout"])]),
        ("docs/session.md", r"each stream \| ([\d,]+) characters", [p["sessions"]["output"]]),
        ("docs/session.md", r"all calls together \| (\d+) ", [p["sessions"]["tool_calls"]]),
        ("docs/session.md", r"memory \| (\d+) MB", [mega(p["limits"]["memory"])]),
        ("docs/session.md", r"bytes in files \| (\d+) MB", [mega(p["limits"]["disk"])]),
        ("docs/session.md", r"time without a call \| (\d+) min", [seconds(p["sessions"]["idle"]) / 60]),
        ("docs/session.md", r"sessions that live, a user \| (\d+) ", [program.define("src/pool/pool.h", "POOL_SESSIONS")]),
        ("docs/session.md", r"(\w+) children wait for each profile", [p["pool"]["warm"]]),
        ("docs/session.md", r"may cost (\d+) MB together", [mega(p["pool"]["memory"])]),
        ("docs/session.md", r"holder ends after (\d+) minutes", [seconds(p["pool"]["idle"]) / 60]),
        ("man/cordon-audit.1", r"more than (\d+) violations in one execution", [p["audit"]["violations"]]),
        ("man/cordon-session.1", r"(\d+) calls a session", [p["sessions"]["tool_calls"]]),
    ]


NO_COUNT = {  # phrases with a number that count nothing that could change
    "README.md": ["Two commands"], "docs/audit.md": ["two keys, for compatibility"],
    "docs/exec.md": ["7 days"], "docs/gate.md": ["30 processes", "two kinds of breaker", "100 unanswered questions", "2 executions ended", "30 days", "1, processes of"],
    "docs/policy.md": ["50 steps", "one probe"], "docs/run.md": ["200 clients", "ten clients"], "docs/testing.md": ["two probes"]}


def value(text):
    return NUMBERS.index(text.lower()) + 1 if text.lower() in NUMBERS else int(text.replace(",", ""))


def counts(documents, program):
    """Numbers before a thing that is counted: each is a fact of the table above, or a phrase that counts nothing."""
    faults, covered = [], {}
    for path, pattern, real in facts(documents, program):
        m = re.search(pattern, documents[path], re.M)
        if not m:
            faults.append(f"{path}: no sentence like {pattern!r}: say it again, or take it out of the table of facts")
            continue
        covered.setdefault(path, []).append(m.span())
        try:
            told = [value(g) for g in m.groups()]
        except ValueError:
            told = list(m.groups())
        if told != [int(r) for r in real]:
            faults.append(f"{path}: {m.group(0)!r}: it is {', '.join(str(int(r)) for r in real)}")
    for path, text in documents.texts.items():
        if path.startswith("tests/"):
            continue
        idle = set(NO_COUNT.get(path, []))
        for phrase in sorted(idle):
            for m in re.finditer(re.escape(phrase), text):
                covered.setdefault(path, []).append(m.span())
                idle.discard(phrase)
        faults += [f"{path}: nobody says {phrase!r} any more: take it out of NO_COUNT" for phrase in sorted(idle)]
        for m in re.finditer(rf"(?i)\b(?:{NUMBER})(?: (?:further|fixed|more|named|built-in|shipped|distinct|unanswered))? (?:{COUNTED})\b", text):
            if not any(a < m.end() and m.start() < b for a, b in covered.get(path, [])):
                line = text[:m.start()].count("\n") + 1
                faults.append(f"{path}:{line}: {m.group(0)!r} is a count that nothing checks: add it to the facts of tests/lint/docfacts.py, or to NO_COUNT")
    return faults


# --- not built ------------------------------------------------------------------------------------------
UNBUILT = re.compile(r"(?i)\bnot\s+(?:yet\s+)?(?:built|implemented|supported)\b|\bunimplemented\b|\bplanned\b|\byet\b|\bso\s+far\b|\bno daemon\b|\[-\]")
CHECKLIST = "cordon doctor --checklist"


def absent(program):
    """(page, pattern of the sentence, whether the thing is still absent)"""
    has = lambda *names: any((program.root / n).exists() for n in names)
    listed = set(program.commands)
    return [
        ("docs/deployment.md", r"macOS \| not built", "system() != 'linux'" in program.source("meson.build") or "host_machine.system()" in program.source("meson.build")),
        ("docs/deployment.md", r"Windows \| not built", "host_machine.system()" in program.source("meson.build")),
        ("docs/policy.md", r"the form of this file; there is one so far", program.policy["version"] == 1),
    ]


def not_built(documents, program):
    """What a document calls not built is listed above, and absent."""
    faults, covered = [], {}
    for path, pattern, still in absent(program):
        m = re.search(pattern, documents[path])
        if not m:
            faults.append(f"{path}: no sentence like {pattern!r}: take it out of `absent` in tests/lint/docfacts.py")
            continue
        covered.setdefault(path, []).append(m.span())
        if not still:
            faults.append(f"{path}: {m.group(0)[:80]!r}, and it is there")
    for path, text in documents.texts.items():
        for m in UNBUILT.finditer(text):
            if not any(a < m.end() and m.start() < b for a, b in covered.get(path, [])):
                line = text[:m.start()].count("\n") + 1
                sentence = re.search(r"[^.|\n]*\Z", text[:m.end()])[0].strip()
                faults.append(f"{path}:{line}: {sentence[-90:]!r}: is it still absent? Say so without `yet`, or add it to `absent` in tests/lint/docfacts.py")
    return faults


# --- lists of everything --------------------------------------------------------------------------------
def whole_lists(documents, program):
    """man/cordon.1 has each letter, each page and each installed program; the change log's first line has each command."""
    page = documents["man/cordon.1"].replace("\\-", "-")
    part = lambda title: (re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", page, re.M | re.S) or [None, ""])[1]
    letters = {pair for command in program.commands for pair in re.findall(r"^  -(\w), --([a-z-]+)", program.help(command), re.M)}
    faults = lists("man/cordon.1, letters,", {f"-{a} {b}" for a, b in re.findall(r"^\.B -(\w)\nis\n\.BR? --([a-z-]+)", page, re.M)}, {f"-{a} {b}" for a, b in letters})
    faults += lists("man/cordon.1, SEE ALSO,", set(re.findall(r"^\.BR cordon-([a-z]+) \(1\)", part("SEE ALSO"), re.M)), set(program.commands))
    installed = set(re.findall(r"'(cordon-[a-z]+)'", program.source("meson.build")))
    faults += lists("man/cordon.1, FILES,", set(re.findall(r"^\.I (cordon-[a-z]+)$", part("FILES"), re.M)), installed)
    first = re.search(r"^- `cordon .*$", documents["CHANGELOG.md"], re.M)
    named = re.findall(r"`(?:cordon )?([a-z]+)`", first[0] if first else "")
    return faults + lists("CHANGELOG.md, the first line,", set(named), set(program.commands))


# --- what trusted code opens or executes by name ----------------------------------------------------------
IN_A_JAIL = {"workspaces.verify"}  # commands of a policy that run in a jail; `arena.judges` is no plain key


def never_written(documents, program):
    """SECURITY.md, src/flow/guarded.c, the programs that are installed and the policy's paths and commands: one list."""
    section = documents.section("SECURITY.md", "What a guest may never write")
    source = program.source("src/flow/guarded.c")
    kept = program.between("src/flow/guarded.c", "} rows[] = {", "};")
    faults = lists("SECURITY.md, what a guest may never write,", {w for w in words(section) if w.startswith("/")}, set(re.findall(r'"(/[^"]+)"', kept)))
    installed = set(re.findall(r"executable\('(cordon(?:(?:-[a-z]+)+|d)?)'", program.source("meson.build")))
    named = set(re.findall(r'"(cordon[a-z-]*)"', program.between("src/flow/guarded.c", "names[] = {", "};")))
    faults += lists("src/flow/guarded.c, the programs,", named, installed)
    keys = re.findall(r'^KEY\((FILE|WORDS), "([a-z_.]+)", ([a-z_.]+),.*"([^"]*)"\)', program.source("src/policy/keys.inc"), re.M)
    for kind, key, member, meaning in keys:
        if (kind == "FILE" or re.search("command|folders", meaning)) and key not in IN_A_JAIL and f"p->{member}" not in source and member != "state.folder":
            faults.append(f"src/flow/guarded.c does not keep guests from what {key} names")
        if f"p->{member}" in source and f"`{key}`" not in section:
            faults.append(f"SECURITY.md, what a guest may never write, lacks {key}")
    tables = set(re.findall(r"&p->(?:\w+\.)?(\w+)\[i\]\.command", source))  # commands of tables, which have no key of their own
    told = set(re.findall(r"`(?:\w+\.)?(\w+)(?:\[\]|\.NAME)\.command`", section))
    faults += lists("SECURITY.md, what a guest may never write, commands of tables,", told, tables)
    if len(re.findall(r"struct policy_words command;", program.source("src/policy/policy.h"))) != len(tables):
        faults.append("src/flow/guarded.c does not keep guests from the commands of each table of src/policy/policy.h")
    return faults


CHECKS = {"examples": examples, "commands": commands, "option tables": option_tables, "exit codes": exit_codes, "status words": status_words,
          "counts": counts, "not built": not_built, "whole lists": whole_lists, "never written": never_written}
