# SPDX-License-Identifier: Apache-2.0
"""The oracle: what the installed CPython answers, compared with what the engine answered.

diff.py DRIVER [--count N] [--seed S] [--contexts K] [--size D]

Reads the driver's stream; never imports our module. A condition the engine accepted is compiled and
evaluated by CPython over the same JSON contexts, declared keys that are missing being None; value, type,
exception class and message must agree. One it refused must be a SyntaxError for CPython or hold a node
outside the language. TAP on stdout."""
import argparse
import ast
import json
import operator
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
ap = argparse.ArgumentParser()
ap.add_argument("driver")
ap.add_argument("--count", type=int, default=100_000)
ap.add_argument("--seed", type=int, default=1)
ap.add_argument("--contexts", type=int, default=2)
ap.add_argument("--size", type=int, default=3)
opt = ap.parse_args()

KEYS = ["a", "b", "c", "d", "e", "\u03bb key", "f", "g", "i", "j", "m", "r", "u", "s", "t", "p", "q"]
NODES = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub,
         ast.Mult, ast.Div, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Load)


def in_language(tree):
    """Whether every node is one the language has."""
    todo = [tree]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Subscript):
            ok = (isinstance(n.value, ast.Name) and n.value.id == "ctx" and isinstance(n.slice, ast.Constant)
                  and type(n.slice.value) is str and n.slice.value in KEYS)
            if not ok:
                return False
        elif isinstance(n, ast.Constant):
            if type(n.value) not in (int, float, str, bool, type(None)):
                return False
        elif isinstance(n, NODES):
            todo.extend(ast.iter_child_nodes(n))
        else:
            return False
    return True


def answer(code, ctx):
    try:
        v = eval(code, {"__builtins__": {}, "ctx": ctx})
    except Exception as e:  # noqa: BLE001: every class counts
        return f"E:{type(e).__name__}:{e}"
    t = type(v)
    if t is bool:
        return "b:True" if v else "b:False"
    if t is int:
        return "i:" + hex(v)
    if t is float:
        return "f:" + repr(v)
    if t is str:
        return "s:" + v
    return "N" if v is None else "?"


class Limit(Exception):
    pass


OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
       ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
       ast.Eq: operator.eq, ast.NotEq: operator.ne}


def bounded(n, ctx):
    """CPython's own operators, applied in its order, stopped where a value passes the engine's limits: for the
    few programs where CPython would build gigabytes."""
    if isinstance(n, ast.Expression):
        return bounded(n.body, ctx)
    if isinstance(n, ast.Constant):
        return n.value
    if isinstance(n, ast.Subscript):
        return ctx[n.slice.value]
    if isinstance(n, ast.UnaryOp):
        v = bounded(n.operand, ctx)
        return not v if isinstance(n.op, ast.Not) else -v
    if isinstance(n, ast.BoolOp):
        for x in n.values:
            v = bounded(x, ctx)
            if bool(v) == isinstance(n.op, ast.Or):
                break
        return v
    if isinstance(n, ast.Compare):
        left = bounded(n.left, ctx)
        for op, x in zip(n.ops, n.comparators):
            right = bounded(x, ctx)
            v = OPS[type(op)](left, right)
            if not v:
                break
            left = right
        return v
    a, b = bounded(n.left, ctx), bounded(n.right, ctx)
    if isinstance(n.op, ast.Mult):
        for s, k in ((a, b), (b, a)):
            if type(s) is str and type(k) in (int, bool) and 1 << 20 < k * len(s.encode()) and k * len(s) < 1 << 63:
                raise Limit
    v = OPS[type(n.op)](a, b)
    if (type(v) is str and len(v.encode()) > 1 << 20) or (type(v) is int and v.bit_length() > 262144):
        raise Limit
    return v


mismatches = []
stats = dict(programs=0, answers=0, refused=0, limits=0, errors=0)
pool = []


def report(*what):
    mismatches.append(what)
    if len(mismatches) <= 20:
        print("# MISMATCH", *[repr(w)[:400] for w in what])


def record(fields):
    global pool
    if fields[0] == "P":
        pool = [{**dict.fromkeys(KEYS), **json.loads(t)} for t in fields[1:]]
        return
    if fields[0] == "!":
        report(*fields[1:])
        return
    stats["programs"] += 1
    src = fields[1]
    tree = code = None
    try:
        if fields[2] == "U" or stats["programs"] % 16 == 0:
            tree = ast.parse(src.lstrip(" \t"), mode="eval")
        code = compile(src.lstrip(" \t"), "", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    if fields[2] == "U":
        stats["refused"] += 1
        if code is not None and in_language(tree):
            report("refused", src, fields[3])
        return
    if code is None or (tree is not None and not in_language(tree)):
        report("accepted", src)
        return
    for i in range(2, len(fields), 2):
        stats["answers"] += 1
        ctx = pool[int(fields[i])]
        got = fields[i + 1]
        stats["errors"] += got.startswith("E:")
        if got.startswith("E:LimitError"):
            stats["limits"] += 1
            try:
                want = bounded(ast.parse(src.lstrip(" \t"), mode="eval"), ctx)
            except Limit:
                continue
            except Exception as e:  # noqa: BLE001
                want = e
        else:
            want = answer(code, ctx)
            if got == want:
                continue
        report("answer", src, "got", got, "want", want, {k: v for k, v in ctx.items() if f"'{k}'" in src})


p = subprocess.Popen([opt.driver, str(opt.seed), str(opt.count), str(opt.contexts), str(opt.size)],
                     stdout=subprocess.PIPE)
rest = b""
while True:
    chunk = p.stdout.read(1 << 20)
    if not chunk:
        break
    whole, sep, rest = (rest + chunk).rpartition(b"\x1e")
    if sep:
        for r in whole.decode().split("\x1e"):
            record(r.split("\x1f"))
p.wait()
cases = [
    (p.returncode == 0 and not rest, "the driver ran to its end"),
    (stats["programs"] == opt.count, f"all {opt.count} programs were compared"),
    (not mismatches, f"no mismatch with CPython in {stats['answers']} answers"),
    (stats["refused"] > opt.count // 200, f"refusals were compared too ({stats['refused']})"),
    (stats["errors"] > opt.count // 50, f"exceptions were compared too ({stats['errors']})"),
    (stats["limits"] <= opt.count // 100, f"few answers were beyond our limits ({stats['limits']})"),
]
for n, (good, name) in enumerate(cases, 1):
    print(f"{'ok' if good else 'not ok'} {n} - {name}")
print(f"#= differential: {stats['programs']} programs, {stats['answers']} answers, {stats['errors']} exceptions, "
      f"{stats['refused']} refused, {len(mismatches)} mismatches (seed {opt.seed})")
print(f"1..{len(cases)}")
sys.exit(not all(g for g, _ in cases))
