# SPDX-License-Identifier: Apache-2.0
"""The name of a test case is a sentence that stands alone: it is read in a log by somebody who has not seen the file.

So no name begins with a word that only means something after the line before it (LEANING below), neither at once nor after
a prefix that says who or what is tested ("{who}: ", "%s %s: ", "emacs: "). A name that is written whole where the case is has
at least WORDS words behind its prefix. The names are read from the sources:

- C: the format of tap_ok, tap_eq_int, tap_eq_str, tap_skip and tap_check, and what is put where it begins with %s;
- Python: what is printed as `ok N - NAME`;
- both: what is given to a function that passes one of its parameters on as a name, and what stands in the table or the
  list from which a name is taken.

A name that is put together in another way is not seen. Usage: names.py SOURCE [--list]. TAP, one case a file of tests;
--list prints all names."""
import ast
import pathlib
import re
import sys

from tap import case, done

LEANING = ("and", "nor", "but", "it", "its", "so", "then", "or", "they", "those", "these", "such")
LEANS = re.compile(rf"(?:{'|'.join(LEANING)})\b(?!-)", re.I)
HOLE = "%s"  # stands for a value, in an f-string too
PREFIX_WORDS = 2  # "root: ..." and "for root: ..." have a prefix, "the client says: it is over" is a sentence

WORDS = 3  # "a pipe" and "verify passes" are no sentences

root = pathlib.Path(sys.argv[1])


def leans(name):
    """NAME begins with a word of LEANING, at once or after prefixes."""
    while not LEANS.match(name):
        prefix, colon, name = name.partition(": ")
        if not colon or HOLE not in prefix and len(prefix.split()) > PREFIX_WORDS:
            return False
    return True


def short(name):
    """NAME is written whole and has too few words behind its prefixes."""
    while ": " in name and len(name.split(": ", 1)[0].split()) <= PREFIX_WORDS:
        name = name.split(": ", 1)[1]
    return HOLE not in name and "%" not in name and len(name.split()) < WORDS


# --- C --------------------------------------------------------------------------------------------

TOKEN = re.compile(r'(?P<skip>/\*.*?\*/|//[^\n]*|\\\n|\s+)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\w+|.', re.S)
TAP_PY = {"ok": 1, "eq": 2}
TAP_C = {"tap_ok": 1, "tap_eq_int": 2, "tap_eq_str": 2, "tap_skip": 0, "tap_check": 3}  # which argument is the name


def tokens_of(text):
    """[(token, line)] without comments."""
    found, line = [], 1
    for m in TOKEN.finditer(text):
        if not m.group("skip"):
            found.append((m.group(0), line))
        line += m.group(0).count("\n")
    return found


def split(tokens, at):
    """What stands between the brackets that open at AT, by commas: a list of tokens each; and where they close."""
    parts, depth = [[]], 0
    for i in range(at, len(tokens)):
        t = tokens[i][0]
        depth += (t in "([{") - (t in ")]}")
        if depth == 0:
            return [p for p in parts if p], i
        if t == "," and depth == 1:
            parts.append([])
        elif i > at:
            parts[-1].append(tokens[i])
    return [p for p in parts if p], len(tokens)


def literals(tokens):
    """[(text, line)]: literals side by side are one, those of a choice (a ? "b" : "c") are several."""
    found, depth, before = [], 0, ""
    for t, line in tokens:
        depth += (t in "([{") - (t in ")]}")
        if t[0] == '"' and depth == 0:
            if before[:1] == '"' or before.startswith("PRI"):
                found[-1] = (found[-1][0] + t[1:-1], found[-1][1])
            else:
                found.append((t[1:-1], line))
        before = t
    return found


def functions(tokens):
    """(name, parameters, where the body begins, where it ends) of each function."""
    i = 0
    while i < len(tokens) - 1:
        if tokens[i + 1][0] == "(" and re.match(r"[a-z_]", tokens[i][0]):
            parameters, end = split(tokens, i + 1)
            if end + 1 < len(tokens) and tokens[end + 1][0] == "{":
                _, last = split(tokens, end + 1)
                yield tokens[i][0], [p[-1][0] for p in parameters], end + 1, last
                i = last
        i += 1


def column(tokens, table, field):
    """The literals in FIELD of the rows of TABLE[], whose struct stands before it; of the rows themselves without a FIELD."""
    words = [t for t, _ in tokens]
    for i in (i for i in range(1, len(words) - 1) if words[i] == table and words[i + 1] == "[" and "=" in words[i:i + 6]):
        fields = []
        if words[i - 1] == "}":
            start = max(j for j in range(i) if words[j] == "{" and words[j - 1] == "struct")
            fields = [a for a, b in zip(words[start:i], words[start + 1:i]) if b in ";,[" and re.match(r"[A-Za-z_]", a)]
        for row in split(tokens, words.index("{", i))[0]:
            if field is None:
                yield from literals(row)
            elif field in fields and row[0][0] == "{":
                values = split(row, 0)[0]
                named = [v[3:] for v in values if v[0][0] == "." and v[1][0] == field]
                for value in named or values[fields.index(field):][:1]:
                    yield from literals(value)


def names_c(text, passing):
    """[(name, line)]. PASSING, {function: which argument is the name}, gets those of this text that pass a parameter on."""
    tokens, found = tokens_of(text), []
    every = list(functions(tokens))
    for i in range(len(tokens) - 1):
        at = TAP_C.get(tokens[i][0], passing.get(tokens[i][0]))
        if at is None or tokens[i + 1][0] != "(":
            continue
        arguments = split(tokens, i + 1)[0]
        sources = arguments[at:at + 1]
        for shape, _ in literals(sources[0]) if sources else ():
            if m := re.match(r"(?:%s:? )*%s", shape):  # "%s" and "%s: %s" show their arguments
                sources += arguments[at + 1:at + 1 + m.group(0).count("%s")]
        for source in sources:
            found += literals(source)
            words = [w for w, _ in source]
            inside = next((f for f in every if f[2] < i < f[3]), None)
            if len(words) == 1 and inside and words[0] in inside[1]:
                passing.setdefault(inside[0], inside[1].index(words[0]))
            elif len(words) > 3 and words[1] == "[":
                found += column(tokens, words[0], words[-1] if words[-2] == "." else None)
    return found


def whole_c(text):
    """[(name, line)] of the cases whose name is one literal."""
    tokens = tokens_of(text)
    for i in (i for i in range(len(tokens) - 1) if tokens[i][0] in TAP_C and tokens[i + 1][0] == "("):
        source = split(tokens, i + 1)[0][TAP_C[tokens[i][0]]:][:1]
        if source and all(t[0] == '"' for t, _ in source[0]):
            yield from literals(source[0])


# --- Python ---------------------------------------------------------------------------------------

def choices(node):
    """[(text, line, what its holes show)] that a name can be: a literal, an f-string, a choice of these, a sum."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [(node.value, node.lineno, [])]
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else HOLE for p in node.values]
        return [("".join(parts), node.lineno, [p.value for p in node.values if isinstance(p, ast.FormattedValue)])]
    if isinstance(node, ast.IfExp):
        return choices(node.body) + choices(node.orelse)
    if isinstance(node, ast.BinOp):
        return choices(node.left)
    return [(HOLE, node.lineno, [node])] if isinstance(node, ast.Name) else []


def elements(tree, name):
    """What a loop `for ..., NAME, ... in [(..., "text", ...), ...]` puts into NAME."""
    for loop in (n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension))):
        targets = loop.target.elts if isinstance(loop.target, (ast.Tuple, ast.List)) else [loop.target]
        at = next((i for i, t in enumerate(targets) if isinstance(t, ast.Name) and t.id == name), None)
        if at is None:
            continue
        table = loop.iter
        if isinstance(table, ast.Name):
            table = next((n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
                          and n.targets[0].id == table.id), table)
        if isinstance(table, ast.Call) and isinstance(table.func, ast.Attribute) and table.func.attr == "items":
            table = table.func.value
        if isinstance(table, ast.Dict):
            rows = [ast.Tuple(elts=[k, v]) for k, v in zip(table.keys, table.values)]
        else:
            rows = getattr(table, "elts", ())
        for row in rows:
            if not isinstance(loop.target, (ast.Tuple, ast.List)):
                yield row
            elif len(getattr(row, "elts", ())) == len(targets):
                yield row.elts[at]


def printed(call):
    """What `print(f"ok {n} - {name}")` shows as the name, as a node; None for another call."""
    if isinstance(call.func, ast.Name) and call.func.id == "print" and call.args:
        for node in ast.walk(call.args[0]):
            values = getattr(node, "values", ()) if isinstance(node, ast.JoinedStr) else ()
            for i, v in enumerate(values):
                if isinstance(v, ast.Constant) and " - " in str(v.value) and "ok" in ast.unparse(node).split(" - ")[0]:
                    rest = [ast.Constant(v.value.split(" - ", 1)[1]), *values[i + 1:]]
                    return ast.copy_location(ast.JoinedStr([ast.copy_location(r, node) for r in rest]), node)
    return None


def names_py(tree, passing):
    """As names_c."""
    found = []

    def visit(node, parameters, function):
        if isinstance(node, ast.FunctionDef):
            function, parameters = node.name, [a.arg for a in node.args.args if a.arg != "self"]
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            at = passing.get(called)
            name = printed(node)
            if name is None and at is not None:
                name = next((k.value for k in node.keywords if k.arg == at[1]), node.args[at[0]] if len(node.args) > at[0] else None)
            show(name, parameters, function, 0)
        for child in ast.iter_child_nodes(node):
            visit(child, parameters, function)

    def show(name, parameters, function, depth):
        for text, line, holes in choices(name) if name is not None else ():
            found.append((text, line))
            for hole in holes[:len(re.match(r"(?:%s:? ?)*", text).group(0).split())]:
                if isinstance(hole, ast.Name) and hole.id in parameters:
                    passing.setdefault(function, (parameters.index(hole.id), hole.id))
                elif isinstance(hole, ast.Name):
                    for e in elements(tree, hole.id) if depth < 3 else ():
                        show(e, parameters, function, depth + 1)
                elif isinstance(hole, ast.IfExp):
                    show(hole, parameters, function, depth + 1)

    visit(tree, [], None)
    return found


def whole_py(tree):
    """As whole_c; of `tap.ok(...)` and its kin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAP_PY and len(node.args) > TAP_PY[node.func.attr]:
            name = node.args[TAP_PY[node.func.attr]]
            if isinstance(name, (ast.Constant, ast.JoinedStr)):
                yield from ((text, line) for text, line, _ in choices(name))


# --- all of them ----------------------------------------------------------------------------------

def names_in(text, suffix, shared=()):
    """[(name, line)] of a file, and its functions that pass a name on. SHARED: such functions of the files it includes."""
    what, names = (text, names_c) if suffix in (".c", ".h") else (ast.parse(text), names_py)
    own, size = {}, -1
    while len(own) != size:  # until no function is found that calls one of those found before
        size = len(own)
        names(what, own)
    passing, size = {**dict(shared), **own}, -1
    while len(passing) != size:
        size = len(passing)
        found = names(what, passing)
    return sorted(set(found), key=lambda n: (n[1], n[0])), passing


def whole_in(text, suffix):
    return list(whole_c(text) if suffix in (".c", ".h") else whole_py(ast.parse(text)))


def included(p, text):
    """The files among FILES that P includes or imports."""
    words = re.findall(r'^#include "(?:[^"]*/)?([^"/]+)"|^(?:import|from) (\w+)', text, re.M)
    wanted = {a or b + ".py" for a, b in words}
    near = {f.name for f in files if f.name in wanted and f.parent == p.parent}
    return [f for f in files if f.name in wanted and f != p and (f.parent == p.parent or f.name not in near)]


def read(p):
    """names_in of a file, once."""
    if p not in seen:
        seen[p] = ([], {})  # two that include each other
        text = p.read_text()
        shared = {k: v for f in included(p, text) for k, v in read(f)[1].items()}
        seen[p] = names_in(text, p.suffix, shared)
    return seen[p]


# the checker itself: names that must fail and names that must pass, in every place where a name can stand
BAD = ("and the file is gone", "Nor does eternity", "%s: but not twice", "%s, again: it ends", "root: its mode is 0600", "so: a queue",
       "then the gate closes", "or it is refused", "%s: %s: and so on", "it's over", "such a run is refused", "they stay")
GOOD = ("a 1 GB file beyond the quota fails with ENOSPC", "items are sorted", "an order is kept", "%s: the client ends",
        "or-expressions are refused", "the refusal of a long line says: it is too long", "Andorra: orders", "%s and %s are equal")
for name in BAD:
    case(leans(name), f"a planted bad name fails: {name!r}")
for name in GOOD:
    case(not leans(name), f"a good name passes: {name!r}")

IN_C = r'''
static void small(int n, const char *what) { tap_ok(n, "%s: %s", "root", what); }
static const struct { int n; const char *what; } rows[] = {{1, "in a table"}, {.what = "by its field", .n = 2}};
int main(void)
{
    /* tap_ok(1, "and in a comment"); */
    tap_ok(f("and an argument", 1) == 0, "a "
           "literal in two");
    tap_eq_str(got, "and what was wanted", x ? "one" : "other");
    small(1, "through a function");
    for (int i = 0; i < 2; i++)
        tap_eq_int(rows[i].n, 1, "%s", rows[i].what);
    tap_skip("what is skipped", "and the reason");
}
'''
IN_PYTHON = '''
def ok(good, name, *details):
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
def both(name):
    ok(True, f"{who}: {name}", "and a detail")
ok(f("and an argument"), "a literal", "and a detail")
ok(True, name="by its keyword")
both("through a function")
for x, what in ((1, "from a list"), (2, "last of a list")):
    ok(x, what if x else "a choice")
print(f"not ok 1 - what is printed\\n1..1")
'''
SAMPLES = (("C", ".c", IN_C, ("a ", "root", "in a table", "by its field", "one", "other", "through a function", "what is skipped")),
           ("Python", ".py", IN_PYTHON, ("a literal", "by its keyword", "through a function", "from a list", "last of a list", "a choice")))
for language, suffix, text, places in SAMPLES:
    found = [name for name, _ in names_in(text, suffix)[0]]
    case(not any(map(leans, found)), f"a test in {language} with good names passes, whatever its other texts are", found)
    for place in places:
        planted = text.replace(f'"{place}', f'"and {place}', 1)
        found = [name for name, _ in names_in(planted, suffix)[0] if leans(name)]
        case(planted != text and len(found) == 1, f"a bad name planted in {language} fails: {place!r}", found)
for suffix, text, wanted in ((".c", 'int f(void) { tap_ok(1, "a pipe"); tap_ok(1, "a pipe" " is closed"); tap_eq_int(1, 1, "%s", x); tap_eq_str(a, "b", "root: gone"); }', ["a pipe", "root: gone"]),
                             (".py", 'tap.ok(1, f"{who}: verify")\ntap.eq(1, 1, "a pipe is closed")\ntap.ok(1, name)\ntap.eq(1, 2, "two more")\n', ["%s: verify", "two more"])):
    found = [name for name, _ in whole_in(text, suffix) if short(name)]
    case(found == wanted, f"planted names of fewer than {WORDS} words are found in {suffix}, and no others", found)
planted = IN_PYTHON.replace(" - what", " - and what")
case(any(leans(name) for name, _ in names_in(planted, ".py")[0]), "a bad name planted in a Python print fails")

files = sorted(p for place in ("src", "tests", "bench", "bindings") for p in (root / place).rglob("*")
               if p.suffix == ".py" or p.suffix in (".c", ".h") and "tap_" in p.read_text())
seen, looked = {}, 0
for p in files:
    names = read(p)[0]
    looked += len(names)
    if "--list" in sys.argv:
        print("\n".join(f"# {p.relative_to(root)}:{line}: {name!r}" for name, line in names))
    if names:
        bad = [f"{p.relative_to(root)}:{line}: begins like the end of another sentence: {name}" for name, line in names if leans(name)]
        bad += [f"{p.relative_to(root)}:{line}: is no sentence: {name}" for name, line in whole_in(p.read_text(), p.suffix) if short(name)]
        case(not bad, f"names that stand alone: {p.relative_to(root)}", *bad)
case(looked > 1500, f"there are names to look at ({looked})")
done()
