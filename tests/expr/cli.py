# SPDX-License-Identifier: Apache-2.0
"""The command as people and pipelines use it, and hostile input: every refusal is a clear error, in time that grows
no faster than the input, with a stack that does not grow at all. cli.py CORDON ROOT. TAP on stdout."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import exits  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lint"))
from tap import case as tap, done  # noqa: E402

cordon, root = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args, stdin=b"", env=None, stack=None):
    def limit():
        if stack:
            resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    p = subprocess.run([cordon, *args], input=stdin, capture_output=True, timeout=120, preexec_fn=limit,
                       env={**os.environ, **(env or {})})
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


folder = tempfile.TemporaryDirectory()
def file(name, data):
    p = pathlib.Path(folder.name, name)
    p.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(p)


# -- statuses and forms
for expr, ctx, status, out in [("1 + 1", None, 0, "2\n"), ("'a' 'b'", None, 0, "'ab'\n"), ("1 / 0", None, 1, ""),
                               ("foo()", None, 3, ""), ("ctx['x'] > 1", '{"x": 2}', 0, "True\n"),
                               ("0.1 + 0.2", None, 0, "0.30000000000000004\n"), ("-0.0", None, 0, "-0.0\n"),
                               ("1e16", None, 0, "1e+16\n"), ("None", None, 0, "None\n")]:
    code, o, e = run("eval", expr, *(["--ctx", ctx] if ctx else []))
    tap(code == status and o == out and bool(e) == bool(status), f"eval {expr!r} gives {out.strip()!r}, status {status}", code, o, e)
for args in [("eval",), ("eval", "1", "2"), ("eval", "--nonsense", "1"), ("eval", "1", "--schema", "/nonexistent"),
             ("eval", "1", "--ctx", "{"), ("check", "--lang", "cobol"), ("nosuch",), ()]:
    tap(run(*args)[0] == 2, f"usage: {' '.join(args)}")
code, o, e = run("eval", "--json", "ctx['resiliense'] > 1")
err = json.loads(o)["error"]
tap(code == 3 and err["line"] == 1 and err["column"] == 5 and err["hint"] == "did you mean 'resilience'?", "a misspelt key: place and suggestion", o)
code, o, e = run("eval", "(1 +\n  foo)")
tap(code == 3 and "line 2, column 3" in e and "\n    foo)\n    ^^^\n" in e, "line, column and caret", e)
code, o, e = run("eval", "ctx['resilience'] < 0.35 and ctx['income_level'] == 'low'", "--explain", "--ctx",
                 '{"resilience": 0.2, "income_level": "high"}')
tap(code == 0 and "ctx['income_level'] = 'high'" in o and "resilience'] = " not in o, "--explain gives only the leaf that decided", o)
code, o, e = run("eval", "(ctx['resilience'] > 0.5 or ctx['is_feasible']) and ctx['income_level'] == 'low'", "--explain", "--json",
                 "--ctx", '{"resilience": 0.2, "income_level": "high", "is_feasible": false}')
why = json.loads(o)["explain"]
tap(len(why) == 1 and why[0]["reads"] == {"income_level": "high"}, "--explain gives the smallest set, not the first", o)
code, o, e = run("eval", "1 / 0 or ctx['resilience']", "--require-keys", "--json")
tap(code == 1 and json.loads(o)["error"]["type"] == "ZeroDivisionError", "a run-time error as JSON", o)

# -- streams and files
lines = b'{"resilience": 0.9}\n{"resilience": 0.1}\n\n{"resilience": "x"}\nnot json\n{"resilience": 1}\n'
code, o, e = run("eval", "ctx['resilience'] > 0.5", "--ndjson", stdin=lines)
tap(code == 1 and o == '{"resilience": 0.9}\n{"resilience": 1}\n' and "context 4" in e and "context 5" in e, "--ndjson filters and goes on after errors", code, o, e)
code, o, e = run("eval", "ctx['resilience'] > 0.5", "--ndjson", "--json", stdin=lines)
answers = [json.loads(l) for l in o.splitlines()]
tap([a["value"] for a in answers] == [True, False, None, None, True], "--ndjson --json gives one answer a line", o)
conditions = file("conditions", "# a comment\nctx['resilience'] > 0.5\n\nlen(ctx['resilience'])\nctx['nope']\n1 + 1\n")
code, o, e = run("eval", "--file", conditions, "--ctx", '{"resilience": 1}', env={"CORDON_LOG": "expr"})
tap(code == 3 and ":2: True" in o and ":6: 2" in o and "2 conditions compiled, 2 skipped" in e and e.count("cordon: expr: refused") == 2,
    "a file of conditions: bad ones are skipped, reported and logged", code, o, e)
saved = str(pathlib.Path(folder.name, "saved"))
tap(run("eval", "ctx['resilience'] * 2", "--save", saved)[0] == 0 and run("eval", "--load", saved, "--ctx", '{"resilience": 4}')[1] == "8\n",
    "a saved program gives the same answer")
data = bytearray(pathlib.Path(saved).read_bytes())
data[len(data) // 2] ^= 1
tap(run("eval", "--load", file("damaged", bytes(data)))[0] == 3, "a damaged program is not run")
code, o, e = run("eval", "--prompt", "--schema", str(root / "schemas/household.json"))
tap(code == 0 and "condition: valid Python expression using ONLY these ctx keys:" in o and "'income_level'" in o and "one of 'low', 'middle', 'high'" in o
    and "<= > >= == !=" in o, "--prompt names keys, types and operators", o)
code, o, e = run("check", "--lang", "expr", "--json", "-", stdin=b"ctx['num_neighbors'] > 5 and ctx['num_neighbors'] < 3\n"
                 b"ctx['income_level'] == 'lwo'\nctx['resilience'] >= 0 or ctx['resilience'] < 2\n")
kinds = [(f["line"], f["kind"]) for f in json.loads(o)["findings"]]
tap(code == 0 and kinds == [(1, "always-false"), (1, "contradiction"), (2, "always-false"), (2, "not-in-domain"), (3, "always-true"), (3, "unreachable")],
    "check finds contradictions, misspelt values and constants", kinds)
tap("did you mean 'low'?" in o, "check suggests the enum value")
code, o, e = run("check", "--lang", "expr", "-", stdin=b"(ctx['resilience'] > 0.5\n  and ctx['num_neighbors'] > 3)\n")
tap(code == 0 and o == "1 condition: 0 refused, 0 findings\n", "one condition may span lines", code, o)
code, o, e = run("check", "--lang", "expr", "-e", "foo(1)")
tap(code == exits.FAILED and "Disallowed AST node type: Call" in o, "check of a condition that is refused is a finding", code, o)
tap(run("eval", "ctx['n'] == 5", "--strict", "--ctx", '{"n": 5}', "--schema", file("s.json", '{"keys": {"n": {"type": "int", "max": 3}}}'))[0] == 2,
    "--strict refuses a value outside its range")

# -- hostile input: file arguments, because a command line holds 128 KiB
hostile = {
    "100000 open parentheses": "(" * 10**5,
    "100000 nested parentheses": "(" * 10**5 + "1" + ")" * 10**5,
    "100000 not": "not " * 10**5 + "1",
    "100000 minus": "-" * 10**5 + "1",
    "100000 open brackets": "[" * 10**5,
    "1 MB of spaces": " " * 2**20,
    "1 MB of one name": "a" * 2**20,
    "1 MB string": "'" + "a" * 2**20 + "'",
    "1 MB of digits": "9" * 2**20,
    "1 MB of quotes": "'" * 2**20,
    "60000 not": "not " * 15000 + "1",
    "60000 minus": "-" * 60000 + "1",
    "60000 parentheses": "(" * 30000 + "1" + ")" * 30000,
    "60000 brackets in a call": "f(" + "[" * 60000,
    "60000 attributes": "a" + ".b" * 30000,
    "60000 calls": "f" + "()" * 30000,
    "a comprehension never closed": "[x for x in (" * 4000,
    "NUL": b"True\0 and False",
    "invalid UTF-8": b"ctx['\xff'] > 0",
    "a lone surrogate in UTF-8": b"'\xed\xa0\x80'",
    "a lone surrogate as an escape": "'\\ud800'",
    "overlong UTF-8": b"'\xc0\x80'",
    "empty": "",
    "a power bomb": "9**9**9**9",
    "65000 digits": "9" * 65000,
}
for name, text in hostile.items():
    data = text if isinstance(text, bytes) else text.encode()
    path = file("hostile", b"# expect: refused\n" + data)
    # one condition a line: blanks count as no condition at all, so these go through check, which names them
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, o, e = run("check", "--lang", "expr", path, stack=256 * 1024)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    blank = name in ("1 MB of spaces", "empty")
    tap((code == exits.FAILED or (blank and code == 0)) and cpu < 5 and ("UnsafeExpressionError: " in o or blank), f"hostile: {name} ({cpu:.2f} s)", code, o[:300], e)
for name, text, want in [("a long flat sum", "1" + " + 1" * 9999, "10000\n"), ("a long flat or", "False" + " or False" * 5000 + " or 7", "7\n"),
                         ("a long chain", "0" + " < 1 <= 1" * 1 + " == 1" * 5000, "True\n"), ("199 parentheses", "(" * 199 + "5" + ")" * 199, "5\n"),
                         ("900 minus", "-" * 900 + "5", "5\n"), ("a minus first", "-1 + 3", "2\n"), ("two minus first", "--5", "5\n")]:
    code, o, e = run("eval", text, stack=256 * 1024)
    tap(code == 0 and o == want, f"long but legal: {name}", code, o, e)
for name, expr, ctx, cls in [("a repetition of 10**9", "'a' * 1000000000", "{}", "LimitError"),
                             ("a product past the limit", "ctx['a'] * ctx['a'] * ctx['a'] * ctx['a'] * ctx['a']", '{"a": %s}' % ("7" * 20000), "LimitError"),
                             ("work past the limit", " + ".join(["ctx['a'] * ctx['a']"] * 200), '{"a": %s}' % ("7" * 39000), "LimitError"),
                             ("a doubling string", "('a' * 1000000 + 'a' * 1000000)", "{}", "LimitError")]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, o, e = run("eval", expr, "--ctx-file", file("ctx", ctx), "--json", "--schema", file("any.json", '{"keys": ["a"]}'))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tap(code == 1 and json.loads(o)["error"]["type"] == cls and after.ru_utime - before.ru_utime < 5, f"bounded: {name}", code, o[:200], e)
for name, expr, ctx in [("an integer", "ctx['num_neighbors'] + 1 > 5", '{"num_neighbors": 1%s}' % ("0" * 400)), ("a string", "ctx['income_level'] + 'abc' != 'b'", '{"income_level": "%s"}' % ("x" * 180))]:
    code, o, e = run("eval", expr, "--ctx", ctx, "--json", "--explain")
    tap(code == 0 and json.loads(o)["value"] is True and json.loads(o)["explain"][0]["truth"] is True, f"{name} larger than the schema says is evaluated, and explained alike", code, o, e)
    code, o, e = run("eval", expr, "--ndjson", stdin=ctx.encode() + b"\n")
    tap(code == 0 and o == ctx + "\n", f"{name} larger than the schema says passes the filter", code, o, e)
sys.set_int_max_str_digits(0)
big = 3**40000
code, o, e = run("eval", "ctx['a'] * 3", "--json", "--ctx-file", file("big", '{"a": %d}' % big))
tap(code == 0 and json.loads(o)["value"] == big * 3, "an integer of 19085 digits is exact in and out", o[:100])
for bad in ['{"a": "\\ud800"}', '{"a": 01}', '{"a": 1,}', '{"a" 1}', '[1]', '{"a": "' + "x" * 10 + '}', "{" * 100000, '{"a": ' + "[" * 100000]:
    code, o, e = run("eval", "1", "--ctx-file", file("bad", bad), stack=256 * 1024)
    tap(code == 2, f"a bad context is an error: {bad[:24]}", code, o, e)
done()
