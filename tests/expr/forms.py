# SPDX-License-Identifier: Apache-2.0
"""Literals, white space and nesting, exhaustively, against the installed CPython: every code point as content of a string,
behind a backslash and outside a string; every string prefix; every short number; every short sequence of blanks and
line ends. forms.py BUILD [--long]. TAP on stdout.

What CPython accepts and has only nodes of the language must be accepted with the same value; all else must be refused
with a message that is valid text. The exceptions are those of docs/expr.md: comments, characters outside ASCII other
than in strings, \\N escapes, lone surrogates, (ctx)['k']."""
import ast
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

build = pathlib.Path(sys.argv[1])
long = "--long" in sys.argv
sys.path.insert(0, str(build / "bindings/python"))
import cordon  # noqa: E402

warnings.simplefilter("ignore")
schema = cordon.Schema(["k", "\u03bb"])
NODES = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
         ast.Div, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Load)
SURROGATES = range(0xd800, 0xe000)
CODE_POINTS = [c for c in range(0x110000) if c not in SURROGATES]
count = failures = 0


def tap(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for d in details if not good else ():
        print("#", ascii(d)[:400])


def in_language(tree):
    todo = [tree]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Subscript):
            if not (isinstance(n.value, ast.Name) and n.value.id == "ctx" and isinstance(n.slice, ast.Constant) and n.slice.value in ("k", "\u03bb")):
                return False
        elif isinstance(n, ast.Constant):
            if type(n.value) not in (int, float, str, bool, type(None)):
                return False
            if type(n.value) is str and not n.value.isascii() and any(ord(c) in SURROGATES for c in n.value):
                return False
        elif isinstance(n, NODES):
            todo.extend(ast.iter_child_nodes(n))
        else:
            return False
    return True


REFUSED = object()


def python(source):
    """What CPython makes of it: a value, an exception of the evaluation, or REFUSED."""
    source = source.lstrip(" \t")  # as eval() does
    try:
        tree = ast.parse(source, mode="eval")
        code = compile(source, "", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return REFUSED
    if not in_language(tree):
        return REFUSED
    try:
        return eval(code, {"__builtins__": {}, "ctx": dict.fromkeys(("k", "\u03bb"))})
    except Exception as e:  # noqa: BLE001
        return type(e)


def ours(source):
    try:
        f = cordon.compile_condition(source, schema)
    except cordon.UnsafeExpressionError as e:
        str(e).encode(), (e.hint or "").encode()  # valid text
        return REFUSED
    try:
        return f({})
    except Exception as e:  # noqa: BLE001
        return type(e)


def same(a, b):
    return a is b or (type(a) is type(b) and (repr(a) == repr(b) if type(a) is float else a == b))


def compare(name, sources):
    wrong, n = [], 0
    for s in sources:
        n += 1
        a, b = ours(s), python(s)
        if not same(a, b):
            wrong.append((s[:80], "ours", "refused" if a is REFUSED else a, "CPython", "refused" if b is REFUSED else b))
    tap(n and not wrong, f"{name}: the same as CPython ({n} sources)", len(wrong), *wrong[:12])


def chunks(items, size):
    return (items[i:i + size] for i in range(0, len(items), size))


# -- strings
letters = "rRuUbBfFxn"
compare("every prefix of up to three letters", (
    "".join(p) + q + body + q for n in range(4) for p in itertools.product(letters, repeat=n) for q in ("'", '"', "'''")
    for body in ("", "a\\x41")))
compare("every ASCII character behind a backslash, alone and before another", (
    q + "\\" + chr(c) + tail + q for c in range(128) for tail in ("", "1", "7", "'", "\\", "\n", "41") for q in ("'", '"""') if chr(c) != "N"))
compare("every code point behind a backslash", ("'" + "".join("\\" + chr(c) for c in part) + "'" for part in chunks(CODE_POINTS[128:], 2000)))
compare("every code point as content", ("'" + "".join(map(chr, part)) + "'" for part in chunks([c for c in CODE_POINTS if c > 13 and chr(c) not in "'\\"], 2000)))
compare("every code point of the first 256 as content, each alone, in every kind of string", (
    p + q + chr(c) + q for c in range(256) for p in ("", "r", "u") for q in ("'", '"', "'''", '"""')))
compare("every pair of characters behind \\x", ("'\\x" + chr(a) + chr(b) + "'" for a in range(128) for b in range(128)))
compare("every character at every place of \\u and \\U", (
    "'\\" + kind + "0" * at + chr(c) + "0" * (n - at - 1) + "'" for kind, n in (("u", 4), ("U", 8)) for at in range(n) for c in range(0x180)))
compare("every code point as \\U", ("'" + "".join(f"\\U{c:08x}" for c in part) + "'" for part in chunks(CODE_POINTS, 2000)))
compare("surrogates and code points past the last, as escapes", [f"'\\u{c:04x}'" for c in SURROGATES[::31]] + ["'\\U00110000'", "'\\Uffffffff'", "'\\ud83d\\ude00'"])
compare("every octal escape", (f"'\\{c}{tail}'" for n in (1, 2, 3) for c in map("".join, itertools.product("01234567", repeat=n)) for tail in ("", "0", "8", "\\")))
compare("ends and line ends of strings", map("".join, itertools.product(["'", "'''", '"', "\\", "\n", "\r", "a", "\\\r\n"], repeat=6 if long else 5)))

# -- outside strings
step = 1 if long else 13
wrong = [c for c in [*range(0x80, 0x3100), *range(0x3100, 0x110000, step)] if c not in SURROGATES
         if any(ours(s) is not REFUSED for s in (chr(c), "1" + chr(c), chr(c) + "1", "ctx" + chr(c) + "['k']"))]
tap(not wrong, "no character outside ASCII is taken outside a string", len(wrong), wrong[:20])
compare("every ASCII character, every pair of them", ("".join(p) for n in (1, 2) for p in itertools.product(map(chr, range(128)), repeat=n) if "#" not in p))
compare("every ASCII character around a number and an operator", (
    s for c in map(chr, range(128)) if c != "#" for s in (f"1{c}2", f"1{c}", f"{c}1", f"1 +{c}2", f"({c}1)", f"(1{c})", f"1\n{c}", f"1{c}\n", f"\n{c}1", f"ctx[{c}'k']", f"ctx['k'{c}]")))
if long:
    compare("every three printable characters", ("".join(p) for p in itertools.product([chr(c) for c in range(32, 127) if chr(c) != "#"], repeat=3)))
blanks = [" ", "\t", "\f", "\n", "\r", "\\\n", "1", "(", ")", "+"]
compare("blanks, form feeds, line ends and continuations in every order", (
    "".join(p) for n in range(1, 8 if long else 6) for p in itertools.product(blanks if n < 6 else blanks[:7], repeat=n)))

# -- numbers
alphabet = "0179_.eE+-xXobja"
compare("every short number", (s for n in range(1, 6 if long else 5) for s in map("".join, itertools.product(alphabet, repeat=n)) if s[0] in "019.-"))
rnd = random.Random(1)
compare("longer numbers", ("".join(rnd.choice("0123456789_." if i % 3 else alphabet) for i in range(rnd.randrange(4, 24))) for _ in range(200000 if long else 20000)))
compare("numbers at the limits of digits", [
    "9" * 4299, "9" * 4300, "9" * 4301, "1_" * 4299 + "1", "1_" * 4300 + "1", "0" * 4301, "0" * 5000, "0" * 60000, "0_" * 5000 + "0", "-" + "0" * 5000,
    "0" * 5000 + "1", "0" * 5000 + ".", "0" * 5000 + "e1", "0" * 5000 + "j", "1" * 5000 + ".0", "0x" + "f" * 5000, "0x" + "0" * 65000 + "1", "0b" + "1" * 60000,
    "1" + "0" * 5000 + "e-5000", "0o" + "7" * 20000, "." + "0" * 5000 + "1", "1e" + "9" * 5000, "0e" + "9" * 5000, "1e-" + "0" * 5000 + "5"])
compare("words glued to numbers", (n + w + " 1" for n in ("1", "0", "0x1", "1.", "1e1", ".5", "1j", "0b1", "0o7", "00") for w in ("and", "or", "if", "in", "is", "not", "else", "for", "AND", "o", "e", "lambda")))

# -- nesting
nests = []
for depth in range(197, 204):
    for inner in ("1", "ctx['k']", "ctx[('k')]", "ctx[(('k'))]", "-1", "not 1", "[", "(1", "1)", "ctx["):
        nests.append("(" * depth + inner + ")" * depth)
compare("nesting of every kind of bracket around the limit", nests)

# -- messages are whole characters, whatever they quote
wide = ["\u00e9", "\u20ac", "\U0001f600", "a\u0301", "\x7f"]
texts = [w * n + "x" * pad for w in wide for n in (5, 9, 19, 20, 21, 63, 64, 65, 100, 255, 256, 1000) for pad in range(4)]
bad = []
for text in texts:
    keyed = cordon.Schema([text[:200] + str(i) for i in range(60)])
    for source in (f"1 '{text}'", f"ctx['{text}']", f"ctx[b'{text}']", f"'{text}' ctx", f"ctx['k' '{text}'] 1", f"f('{text}')", f"'{text}", f"1 is '{text}'", f"ctx[1 '{text}']"):
        for s in (schema, keyed):
            try:
                ok, message = cordon.validate_condition(source, s)
            except Exception as e:  # noqa: BLE001
                bad.append((source[:60], repr(e)[:80]))
tap(not bad, f"messages are valid text ({len(texts) * 18} refusals)", len(bad), *bad[:5])

# -- repr
with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
    parts = list(chunks(CODE_POINTS, 2000))
    for part in parts:
        f.write("'" + "".join(f"\\U{c:08x}" for c in part) + "'\n")
    f.flush()
    out = subprocess.run([str(build / "cordon"), "eval", "--file", f.name], capture_output=True, timeout=120).stdout.decode()
got = [line.partition(": ")[2] for line in out.split("\n")[:-1]]
wrong = [c for part, line in zip(parts, got) if line != repr("".join(map(chr, part))) for c in part if (chr(c) in line) != chr(c).isprintable()]
tap(len(got) == len(parts) and all(line == repr("".join(map(chr, part))) for part, line in zip(parts, got)), "repr() of every code point", len(got), len(wrong), wrong[:20])

# -- JSON: what the module json refuses is refused also in values that nobody asked for
texts = [f'{{"other": {body}}}' for c in map(chr, range(32, 127))
         for body in (f'"\\{c}"', f'["\\u00{c}0"]', f'{{"\\{c}{c}": 1}}', f'"\\u{c}"', f'{c}', f'[1{c}]', f'"a"{c}')]
with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
    f.write('{"keys": ["k"]}')
    f.flush()
    out = subprocess.run([str(build / "cordon"), "eval", "True", "--ndjson", "--json", "--schema", f.name], input="\n".join(texts).encode(), capture_output=True, timeout=120).stdout.decode()


def loads(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


answers = [json.loads(line)["error"] is None for line in out.split("\n")[:-1]]
wrong = [t for t, a in zip(texts, answers) if a != loads(t)]
tap(len(answers) == len(texts) and not wrong, f"values that are stepped over are JSON as Python has it ({len(texts)} texts)", len(answers), len(wrong), *wrong[:20])

# -- the name of what is refused is that of the outermost node
for source, node in [("(x for x in [])", "GeneratorExp"), ("(1,)[0]", "Subscript"), ("(x + 1 for x in y)", "GeneratorExp"), ("(foo).bar", "Attribute"), ("(foo)(1)", "Call"),
                     ("((foo), 1)", "Tuple"), ("(1, foo)", "Tuple"), ("(foo)", "Name"), ("(1, 2).count(1)", "Call"), ("1 + (foo, 2)[0]", "Subscript"), ("(ctx['k'] for x in y)", "GeneratorExp"),
                     ("(ctx['nope'], 1)", "Tuple"), ("((x for x in y))", "GeneratorExp"), ("(f(x))", "Call"), ("(lambda: 0)()", "Call"), ("([1])[0]", "Subscript"), ("(yield)", "Yield"),
                     ("(a if b else c, d)", "Tuple"), ("(f(x for x in y))", "Call"), ("(x, *y)", "Tuple"), ("(x", "Name"), ("()", "Tuple"), ("()[0]", "Subscript"), ("(1 ** 2)[0]", "Subscript")]:
    ok, message = cordon.validate_condition(source, schema)
    tap(not ok and message.startswith(f"Disallowed AST node type: {node}."), f"{source} is named {node}", message)
print(f"1..{count}")
sys.exit(failures > 0)
