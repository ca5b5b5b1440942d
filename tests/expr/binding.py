# SPDX-License-Identifier: Apache-2.0
"""The Python module, as a program uses it. binding.py BUILD. TAP on stdout."""
import logging
import math
import os
import subprocess
import sys
import threading

sys.path.insert(0, sys.argv[1] + "/bindings/python")
import cordon  # noqa: E402
from cordon import UnsafeExpressionError, compile_condition, validate_condition  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lint"))
from tap import case as tap, done  # noqa: E402


def raises(cls, f, *args):
    try:
        f(*args)
    except Exception as e:  # noqa: BLE001
        return e if type(e) is cls else None
    return None


for expr in ["ctx['avg_neighbor_recovery'] > 0.5", "ctx['resilience'] < 0.35 and ctx['income_level'] == 'low'",
             "ctx['num_neighbors'] > 4 or ctx['avg_infra_func'] > 0.8"]:
    tap(callable(compile_condition(expr)) and validate_condition(expr) == (True, None), f"valid: {expr}")
for expr in ["__import__('os').system('rm -rf /')", "ctx['unknown_key'] > 0.5", "eval('1+1')", "open('/etc/passwd').read()", "\ud800", "a\0b"]:
    ok, error = validate_condition(expr)
    tap(not ok and error and raises(UnsafeExpressionError, compile_condition, expr), f"invalid: {ascii(expr)}", ok, error)
tap(compile_condition("ctx['avg_neighbor_recovery'] > 0.5")({"avg_neighbor_recovery": 0.7}) is True, "the condition of docs/expr.md is True")
ok, error = validate_condition("ctx['unknown_key'] > 0.5")
tap(error.startswith("Disallowed context key: 'unknown_key'. Allowed keys: ['available_resources', 'avg_business_avail', "), "an unknown key is refused with the list of keys", error)
ok, error = validate_condition("len(ctx['resilience'])")
tap(error == "Disallowed AST node type: Call. Only comparisons, boolean ops, and ctx subscripts are allowed.", "a call is refused by its node type", error)
tap(validate_condition("1 in [1]")[1] == "Disallowed comparison operator: In", "a refused operator is named")
e = raises(UnsafeExpressionError, compile_condition, "1 +\\\n foo")
tap(e and (e.line, e.column) == (2, 2) and "ctx['foo']" in e.hint, "an error has line, column and hint", e)
any2 = cordon.Schema(["x", "y"])
f = compile_condition("ctx['x'] + ctx['y']", any2)
for x, y in [(1, 2), (2**63, -1), (-(2**63), 2**63 - 1), (10**100, -(10**100)), (1.5, 2), (True, True), ("a", "\u00e9\U0001f600"), (0, -0.0), (math.inf, 1),
             (2**200, 1.0)]:
    got = f({"x": x, "y": y})
    tap(got == x + y and type(got) is type(x + y), f"{x!r} + {y!r}"[:70], got)
tap(math.isnan(f({"x": math.nan, "y": 1})), "nan + 1")
for ctx, cls, text in [({}, TypeError, "unsupported operand type(s) for +: 'NoneType' and 'NoneType'"), ({"x": "a", "y": 1}, TypeError, 'can only concatenate str (not "int") to str'),
                       ({"x": 10**400, "y": 0.5}, OverflowError, "int too large to convert to float"), ({"x": [1]}, TypeError, "ctx['x'] holds a list; conditions read int, float, str, bool and None")]:
    e = raises(cls, f, ctx)
    tap(e and str(e) == text, f"{cls.__name__}: {text}", e)
tap(raises(ZeroDivisionError, compile_condition("1 / ctx['x']", ["x"]), {"x": 0}), "ZeroDivisionError")
e = raises(KeyError, compile_condition("ctx['x']", ["x"], require_keys=True), {})
tap(e and e.args == ("x",), "require_keys: KeyError with the key", e)
tap(raises(cordon.LimitError, compile_condition("'a' * ctx['x']", ["x"]), {"x": 10**9}), "LimitError")
tap(raises(ValueError, compile_condition("ctx['x']", {"keys": {"x": {"type": "int", "max": 3}}}, strict=True), {"x": 4}), "strict: a value outside its range")
tap(raises(ValueError, cordon.Schema, '{"keys": 1}'), "a bad schema is ValueError")



# -- values that the schema does not promise
for expr, ctx, want in [("ctx['num_neighbors'] + 1 > 5", {"num_neighbors": 10**400}, True), ("ctx['income_level'] + 'abc' != 'b'", {"income_level": "x" * 180}, True),
                        ("ctx['num_neighbors'] * ctx['num_neighbors'] * 2 > 5", {"num_neighbors": -(10**9000)}, True), ("ctx['num_neighbors'] * 3 == 'ababab'", {"num_neighbors": "ab"}, True),
                        ("ctx['income_level'] * 500000", {"income_level": "\u00e9"}, "\u00e9" * 500000), ("ctx['income_level'] + ctx['income_level']", {"income_level": 2**262142}, 2**262143)]:
    try:
        got = compile_condition(expr)(ctx)
    except Exception as e:  # noqa: BLE001
        got = e
    tap(got == want, f"beyond the schema: {expr}", got)
same = compile_condition("ctx['x'] == ctx['y']", any2)
for bits in (63, 64, 65, 127, 128, 262143, 262144):
    for x in (2**bits - 1, 2 ** (bits - 1), -(2**bits) + 1):
        try:
            got = same({"x": x, "y": x})
        except Exception as e:  # noqa: BLE001
            got = e
        tap(got is True, f"an integer of {bits} bits is read", got)
tap(raises(cordon.LimitError, same, {"x": 2**262144, "y": 1}), "one of 262145 bits is LimitError")
tap(raises(cordon.LimitError, same, {"x": "a" * (2**20 + 1), "y": 1}) and same({"x": "a" * 2**20, "y": "a" * 2**20}) is True, "a string of more than 2**20 bytes is LimitError")


class Odd(int):
    def __abs__(self):
        return "no int"


tap(same({"x": Odd(2**70), "y": 2**70}) is True, "a subclass of int counts as the int it is")

# -- logging: the logger `cordon`, level DEBUG, one record a refusal
records = []


class Handler(logging.Handler):
    def emit(self, record):
        records.append(record)


handler = Handler()
logging.getLogger("cordon").addHandler(handler)
validate_condition("foo(1)")
tap(not records, "a refusal is not logged unless the logger is set to DEBUG")
logging.getLogger("cordon").setLevel(logging.DEBUG)
validate_condition("1 +\\\n foo")
validate_condition("1")
tap(len(records) == 1 and (records[0].name, records[0].levelname) == ("cordon", "DEBUG") and records[0].getMessage().startswith("refused: line 2, column 2: Disallowed AST node type: Name.")
    and repr("1 +\\\n foo") in records[0].getMessage() and records[0].pathname == __file__, "a refusal at level DEBUG is one log record, with its place and text", [r.getMessage() for r in records])
logging.getLogger("cordon").removeHandler(handler)
logging.getLogger("cordon").setLevel(logging.NOTSET)
quiet = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import cordon; cordon.compile_condition('1')({}); print('logging' in sys.modules, 'json' in sys.modules)",
                        sys.argv[1] + "/bindings/python"], capture_output=True, text=True)
tap(quiet.stdout == "False False\n", "importing and using the module imports no other", quiet)
e = raises(UnsafeExpressionError, compile_condition, "1 +\\\n '\ud800'")
tap(e and (getattr(e, "line", None), getattr(e, "column", None), getattr(e, "hint", 0)) == (2, 3, None), "a source with a lone surrogate is refused at its place", e, getattr(e, "__dict__", None))


class Lazy:
    def __getitem__(self, key):
        if key == "y":
            raise KeyError(key)
        return f({"x": 1, "y": 2})  # an evaluation inside an evaluation


tap(f.source == "ctx['x'] + ctx['y']" and compile_condition("ctx['x']", any2)(Lazy()) == 3, "a mapping, and a nested evaluation")
tap("income_level" in cordon.ALLOWED_CTX_KEYS and len(cordon.ALLOWED_CTX_KEYS) == 19 and list(cordon.ALLOWED_CTX_KEYS) == sorted(cordon.ALLOWED_CTX_KEYS), "ALLOWED_CTX_KEYS has 19 keys, sorted")
tap("ONLY these ctx keys" in any2.prompt(), "a schema gives its prompt")
bad = []


def worker(n):
    g = compile_condition("ctx['x'] * 2 == ctx['y']", any2)
    for i in range(20000):
        if g({"x": i + n, "y": 2 * (i + n)}) is not True:
            bad.append(i)


threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
tap(not bad, "four threads agree")
big = {"x": 10**200, "y": 10**200}
import resource  # noqa: E402
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(200000):
    f(big)
for _ in range(20000):
    validate_condition("foo(")
if "LD_PRELOAD" not in os.environ:  # the sanitizers keep what was released, to see whether it is used
    tap(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000, "no memory is lost in 220000 calls")
done()
