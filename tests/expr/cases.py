# SPDX-License-Identifier: Apache-2.0
"""Whole cases through `cordon eval --json`: the repository's own (tests/cases/expr: *.case, *.table) and the public ones of
../shared/corpora/expr_cases.jsonl, which are read where they lie and never copied.

A .case file: `# expect:` value as JSON, `error CLASS[: message]` or `refused: message part`; optional `# ctx:`, `# schema:`
(JSON), `# args:`; then the expression. A .table file: lines of what is expected (a Python literal, `error CLASS` or `refused`), a tab,
the expression (after `!`: a Python expression that makes it), and maybe, after tabs, context and schema as JSON. cases.py CORDON ROOT. TAP on stdout."""
import ast
import json
import math
import pathlib
import subprocess
import sys
import tempfile

cordon, root = sys.argv[1], pathlib.Path(sys.argv[2])
count = failures = 0


def tap(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}".replace("\n", "\\n"))
    for d in details if not good else ():
        print("#", repr(d)[:300])


def run(expr, ctx=None, schema=None, args=()):
    cmd = [cordon, "eval", "--json", *args]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        if schema is not None:
            f.write(schema)
            f.flush()
            cmd += ["--schema", f.name]
        if ctx is not None:
            cmd += ["--ctx", ctx]
        p = subprocess.run(cmd + ["--", expr], capture_output=True, timeout=60)
    try:
        out = json.loads(p.stdout.decode())
    except ValueError:
        out = {"value": None, "type": None, "error": {"type": "?", "message": (p.stdout + p.stderr).decode(errors="replace")}}
    return p.returncode, out


def same(value, type_name, want):
    """A JSON value of ours against a Python value, type and all."""
    names = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}
    if names.get(type(want)) != type_name:
        return False
    if type(want) is float:
        return repr(float(value)) == repr(want)
    return type(value) is type(want) and value == want


NODES = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
         ast.Div, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Load, ast.Constant)


def in_language(expr):
    try:
        tree = ast.parse(expr, mode="eval")
    except (SyntaxError, ValueError):
        return False
    for n in ast.walk(tree):
        if isinstance(n, ast.Subscript):
            if not (isinstance(n.value, ast.Name) and n.value.id == "ctx" and isinstance(n.slice, ast.Constant)):
                return False
        elif isinstance(n, ast.Name):
            if n.id != "ctx":
                return False
        elif isinstance(n, ast.Constant):
            if type(n.value) not in (int, float, str, bool, type(None)):
                return False
        elif not isinstance(n, NODES):
            return False
    return True


own = sorted((root / "tests/cases/expr").rglob("*.case"))
tap(len(own) > 30, f"the repository's own cases are there ({len(own)})")
for path in own:
    head, lines = {}, path.read_text().splitlines(keepends=True)
    while lines and lines[0].startswith("# "):
        key, _, value = lines.pop(0)[2:].partition(":")
        head[key.strip()] = value.strip()
    expr = "".join(lines)
    expr = expr[:-1] if expr.endswith("\n") else expr
    if head.get("escapes"):  # the expression is written as a Python literal
        expr = ast.literal_eval(expr)
    code, out = run(expr, head.get("ctx"), head.get("schema"), head.get("args", "").split())
    expect, err = head["expect"], out["error"] or {"type": None, "message": ""}
    if expect.startswith("refused"):
        good = code == 3 and err["type"] == "UnsafeExpressionError" and expect.partition(":")[2].strip() in err["message"]
    elif expect.startswith("error"):
        cls, _, message = expect[6:].partition(":")
        good = code == 1 and err["type"] == cls.strip() and (not message or err["message"] == message.strip())
    else:
        want = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}.get(expect)
        want = ast.literal_eval(expect) if want is None else want
        good = code == 0 and out["error"] is None and same(out["value"], out["type"], want)
    tap(good, f"{path.relative_to(root)}", code, out)

def judge_row(name, expect, expr, ctx, code, out):
    """One line of a table: what it states, and whether CPython says the same where the expression is in the language."""
    err = out["error"] or {"type": None, "message": ""}
    if expect == "refused":
        tap(code == 3 and err["type"] == "UnsafeExpressionError" and err["message"], name + " is refused", code, out)
        return
    try:
        want, kind = eval(compile(expr, "", "eval"), {"__builtins__": {}, "ctx": json.loads(ctx or "{}")}), None
    except Exception as e:  # noqa: BLE001
        want, kind = None, type(e).__name__
    stated = expect.split()[1] if expect.startswith("error ") else ast.literal_eval(expect)
    if kind:
        tap(code == 1 and err["type"] == kind == stated, f"{name} is an error as in CPython", code, out, kind)
    else:
        tap(code == 0 and same(out["value"], out["type"], want) and repr(stated) == repr(want), f"{name} is what CPython says", code, out, want)


tables = sorted((root / "tests/cases/expr").rglob("*.table"))
tap(len(tables) > 5, f"the repository's own tables are there ({len(tables)})")
for path in tables:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("# "):
            expect, expr, *given = line.split("\t")
            made = eval(expr[1:]) if expr.startswith("!") else expr
            judge_row(f"{path.stem}:{number} {expr[:60]!r}", expect, made, given[0] if given else None, *run(made, *given))

public = root / "../shared/corpora/expr_cases.jsonl"
if not public.exists():
    print("# the repository's own cases alone; ../shared/corpora is not here")
else:
    for line in public.read_text().splitlines():
        case = json.loads(line)
        expr, ctx = case["expr"], case.get("ctx") or {}
        code, out = run(expr, json.dumps(ctx))
        name = f"{case['id']} {expr[:60]!r}"
        if not in_language(expr):
            tap(code == 3 and out["error"]["type"] == "UnsafeExpressionError", name + " is refused", code, out)
            continue
        try:
            want = eval(compile(expr, "", "eval"), {"__builtins__": {}, "ctx": ctx})
        except Exception as e:  # noqa: BLE001
            tap(code == 1 and out["error"]["type"] == type(e).__name__ and out["error"]["message"] == str(e), name, code, out, e)
            continue
        if case.get("error", "").startswith("resource-limit") and out["error"]:
            tap(code == 1 and out["error"]["type"] == "LimitError", name + " is bounded", code, out)
            continue
        tap(code == 0 and same(out["value"], out["type"], want), name, code, out, want)
        if "expected" in case and not isinstance(case["expected"], dict):
            stated = case["expected"]
            tap(stated == want or (isinstance(want, float) and math.isclose(stated, want)), name + " as the corpus says", stated, want)
print(f"1..{count}")
sys.exit(failures > 0)
