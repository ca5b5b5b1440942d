# SPDX-License-Identifier: Apache-2.0
"""JavaScript as people start it: what a program is given, how it ends, what holds it; and the programs of tests/cases/javascript.

Usage: javascript.py BUILD [all]. The collected ones of ../shared/corpora only where that folder is: honest ones must run right, attacks must
not succeed; `all` of them, or some of each kind. What the judge says in words is shown by src/worker/javascript/judge/test."""
import json
import os
import pathlib
import re
import shutil
import resource
import subprocess
import sys
import tempfile

import corpus
import tapsys

BUILD, ALL = sys.argv[1], sys.argv[2:] == ["all"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT / "../shared/corpora"
PROFILES = ("strict", "standard", "open")


def run(code, profile, who, *options, env=None, **more):
    return tapsys.cordon(programs, ["run", "--json", "--lang", "javascript", "--intake", "source", "--profile", profile, *options, "-"], who, env=env, text=code, **more)


def works(who):
    for profile in PROFILES if ALL else PROFILES[:1]:
        r = run("console.log([1, 2, 3].length, { a: [1, { b: 2 }] });\nconsole.error('e');\nconst x = 20;\nx * 2 + 2\n", profile, who)
        tap.ok(r["status"] == "ok" and (r["stdout"], r["stderr"], r["value"]) == ("3 { a: [ 1, { b: 2 } ] }\n", "e\n", "42") and r["violations"] == [],
               f"{who}: {profile}: a program prints, and its last value is told", r.story())
        for last in ("const y = 5", "function a() {}", "undefined", "console.log(1)", "if (0) 1"):
            r = run(last + "\n", profile, who)
            tap.ok(r["status"] == "ok" and r["value"] is None, f"{who}: {profile}: `{last}` at the end shows no value", r.story())
        r = run("function f(n) {\n\n  if (n === 0) throw new RangeError('no');\n  f(n - 1);\n}\nf(2);\n", profile, who)
        error = r["error"] or {}
        tap.ok(r["status"] == "error" and (error.get("type"), error.get("message"), error.get("line")) == ("RangeError", "no", 3)
               and re.search(r"Uncaught RangeError: no\n +at f \(.*:3\)\n +at f \(.*:4\)", r["stderr"]), f"{who}: {profile}: an exception is told with type, text and line, and printed with its stack", r.story())
        r = run("setTimeout(() => console.log('late'), 30);\nsetTimeout(() => console.log('soon'), 1);\nlet n = 0;\nconst i = setInterval(() => { console.log('i'); if (++n === 2) clearInterval(i); }, 2);\n"
                "clearTimeout(setTimeout(() => console.log('never'), 5));\nqueueMicrotask(() => console.log('micro'));\n(async () => { await null; console.log('async'); })();\nconsole.log('now');\n", profile, who)
        lines = r["stdout"].split()
        tap.ok(lines[:3] == ["now", "micro", "async"] and sorted(lines[3:]) == ["i", "i", "late", "soon"] and lines[3] == "soon",
               f"{who}: {profile}: microtasks run before timers, and timers in their order", r.story())
        r = run("async function f() {\n  throw new TypeError('nobody');\n}\nf();\nsetTimeout(() => console.log('not reached'), 1);\n", profile, who)
        tap.ok(r["status"] == "error" and (r["error"] or {}).get("type") == "TypeError" and (r["error"] or {}).get("line") == 2 and r["stdout"] == "",
               f"{who}: {profile}: a rejection that nobody handles ends the program", r.story())
        r = run("const v = await new Promise((r) => setTimeout(() => r(6), 2));\nv * 7\n", profile, who)
        tap.ok(r["status"] == "ok" and r["value"] == "42", f"{who}: {profile}: await outside of functions waits, and its value is told", r.story())
        r = run("await new Promise(() => {});\n", profile, who)
        tap.ok(r["exit_code"] == 13 and "awaits what nothing will bring" in r["stderr"], f"{who}: {profile}: a program that awaits what nothing will bring ends with a sentence", r.story())
        r = run("FINAL({ a: 42 });\nconsole.log('not reached');\n", profile, who)
        tap.ok(r["final"] == "{ a: 42 }" and r["is_final"] and r["stdout"] == "", f"{who}: {profile}: FINAL gives the answer and ends the program", r.story())
        r = run("try { FINAL('whole'); } catch { console.log('not reached'); }\n", profile, who)
        tap.ok(r["final"] == "whole" and r["stdout"] == "", f"{who}: {profile}: FINAL is no exception that the program could catch", r.story())
        r = run("process.exitCode = 3;\nconst deep = () => deep();\ntry { deep(); } catch (e) { console.log(e instanceof RangeError); }\n", profile, who)
        tap.ok(r["stdout"] == "true\n" and r["exit_code"] == 3, f"{who}: {profile}: endless recursion is an exception, and the exit status is the program's", r.story())
        r = run("console.log(structuredClone(new Map([[1, new Date(0)]])), new TextDecoder().decode(new TextEncoder().encode('ä€😀')), atob(btoa('x')), typeof performance.now(), 'é'.normalize('NFD').length);\n", profile, who)
        tap.eq(r["stdout"], "Map(1) { 1 => 1970-01-01T00:00:00.000Z } ä€😀 x number 2\n", f"{who}: {profile}: copies, encodings and clocks are there", r.story())


def given(who):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = pathlib.Path(folder) / "own.mjs"
        file.write_text("console.log(process.argv.slice(2), process.env.COLOUR, readline(), prompt('more?'), prompt());\nexport default 1;\n")
        entered = pathlib.Path(folder) / "entered"
        entered.write_text("one\r\ntwo")
        for f in (file, entered):
            os.chmod(f, 0o644)
        r = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--env", "COLOUR=red", "--stdin", str(entered), str(file), "a", "b c"], who)
        tap.eq(r["stdout"], "more? [ 'a', 'b c' ] red one two null\n", f"{who}: a file that ends in .mjs is a module, and has its words, variables and lines", r.story())
        r = tapsys.cordon(programs, ["check", "--json", str(file)], who)
        tap.ok(r["is_safe"], f"{who}: check judges a file that ends in .mjs", r.story())
    for tag in ("js", "javascript"):
        r = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--intake", "text", "-"], who, text=f"Here it is:\n```{tag}\nconsole.log(6 * 7)\n```\n")
        tap.ok(r["stdout"] == "42\n" and (r["intake"] or {}).get("language") == "javascript", f"{who}: a block of {tag} in a model's answer runs as JavaScript", r.story())
    for profile in PROFILES if ALL else PROFILES[:1]:
        r = run("console.log(echo([1, null, { a: 'é' }], 2.5));\ntry { echo('x'.repeat(3000000)); } catch (e) { console.log(e.message); }\n", profile, who, "--tool", "echo")
        tap.ok(re.search(r"args: \[ \[ 1, null, \[Object\] \], 2.5 \]", r["stdout"]) and "longer than a call may be" in r["stdout"], f"{who}: {profile}: a tool is called by its name, and answers", r.story())


CLOSED = """
const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
const word = ['cons', 'tructor'].join('');
for (const make of [...kinds.map((f) => f[word]), ...kinds.map((f) => Object.getPrototypeOf(f)[word]), globalThis[['ev', 'al'].join('')], globalThis[['Fun', 'ction'].join('')], Reflect.get(Object, word)]) {
  try { make('return 1')(); console.log('REACHED'); } catch (e) { console.log(e.name); }
  try { Reflect.construct(make, ['return 1'])(); console.log('REACHED'); } catch (e) { console.log(e.name); }
}
console.log((() => {}) instanceof Object.getPrototypeOf(() => {})[word], typeof WebAssembly);
"""


def held(who):
    for profile in PROFILES if ALL else PROFILES[:1]:
        r = run("for (;;) {}\n", profile, who, "--timeout", "1s")
        tap.eq(r["status"], "timeout", f"{who}: {profile}: an endless loop is ended by its time", r.story())
        r = run("setInterval(() => {}, 10);\n", profile, who, "--timeout", "1s")
        tap.eq(r["status"], "timeout", f"{who}: {profile}: timers without end are ended by the time of the run", r.story())
        r = run("const a = [];\nfor (;;) a.push(new Array(100000).fill(1));\n", profile, who, "--memory", "128m", *tapsys.LONG)
        tap.eq(r["status"], "memory", f"{who}: {profile}: a heap without end is ended by its memory", r.story())
        for size in ("16m", "64m", "95m"):
            r = run("1", profile, who, "--memory", size, "--memory-by", "rlimit")
            tap.ok(r["status"] == "refused" and "does not start within a memory of" in r["reason"] and "the least is 96 MB" in r["reason"],
                   f"{who}: {profile}: {size} where addresses are counted are refused, and the least is named", r.story())
        r = run("console.log('x'.repeat(10))", profile, who, "--memory", "96m", "--memory-by", "rlimit")
        tap.eq((r["status"], r["stdout"]), ("ok", "x" * 10 + "\n"), f"{who}: {profile}: a small program runs in the least that is named", r.story())
        r = run("for (;;) console.log('x'.repeat(10000));\n", profile, who, *tapsys.LONG)
        tap.eq(r["status"], "output", f"{who}: {profile}: output without end is ended", r.story())
    # less address space than was asked for, by the caller's own doing: not the program's fault
    little = lambda size: tapsys.cordon(programs, ["run", "--json", "--lang", "javascript", "-"], who, text="const x = [" + "[1, {a: 2}], " * 2500 + "];\nconsole.log(1);\n", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20)))
    for size in (64, 120, 180):
        r = little(size)
        tap.ok(r["status"] == "refused" and "ulimit -v" in r["reason"] and r["error"]["category"] == "HOST", f"{who}: a judge that dies where the caller has {size} MB of addresses is told as the host's fault", r.story())
    for size, profile in [(98, "strict"), *((n, "standard") for n in (96, 98, 100, 104, 110, 120))]:  # the engine looks at the answer to few of its requests
        r = run("const a = [];\nfor (let i = 0; ; i++) a.push({ ['k' + i]: 1, ['j' + i]: 2 });\n", profile, who, "--memory", f"{size}m", *tapsys.LONG)
        tap.ok(r["status"] == "memory" and r["usage"]["memory_mb"] < size, f"{who}: {profile}: shapes of objects without end are ended by {size} MB of memory", r.story())
    for profile in ("strict", "standard"):
        r = run(CLOSED, profile, who)
        tap.ok(r["status"] == "ok" and "REACHED" not in r["stdout"] and set(r["stdout"].split()) <= {"SecurityError", "TypeError", "true", "undefined"}
               and {"js.closed.Function", "js.closed.eval"} <= set(r.rules()), f"{who}: {profile}: names that are put together at run time lead to no constructor of functions, and it is told", r.story())
    r = run("x;" * 24000, "standard", who, "--cpu", "100ms")  # its judge alone takes more
    tap.eq((r["status"], r["reason"], r["violations"]), ("timeout", "CPU time limit of 0.100s", []), f"{who}: a limit that is over while a program is judged is no finding about it", r.story())


# the pipeline's order: sanitise, empty, structure of text, patterns, syntax, run
def order(who):
    for text, kind, rule in (("", "ValidationError", None), ("```js\n\n```\n", "ValidationError", None), ("function a( { eval('x')", "SecurityError", "js.name.eval"),
                             ("function a( {", "ValidationError", "syntax")):
        r = tapsys.cordon(programs, ["run", "--json", "--lang", "javascript", "--intake", "text", "-"], who, text=text)
        tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == kind and (rule is None or rule in r.rules()), f"{who}: {text[:20]!r} ends as {kind}", r.story())
    for code in ("eval('1')", "new Function('return 1')", "({}).__proto__", "document.write('<b>')", "x = \\u0065val", "setTimeout('1', 1)", "require('fs')", "import 'node:fs'"):
        for profile in ("strict", "standard"):
            r = run(code + "\n", profile, who)
            tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == "SecurityError" and all(v["hint"] for v in r["violations"]),
                   f"{who}: {profile}: {code} is a SecurityError with a hint", r.story())


TYPED = """interface Shape { area(): number }
enum Unit { Metre = 1, Foot }
class Square implements Shape {
  constructor(private side: number) {}
  area(): number { return this.side ** 2 }
}
const shapes: Shape[] = [new Square(3)];
const first = <T,>(list: T[]): T => list[0]!;
console.log((first(shapes) as Square).area(), Unit[2], typeof first);
"""


def typed(who):
    """TypeScript: the same worker, told that types are to be taken out of the tree."""
    for profile in ("strict", "standard"):
        r = tapsys.cordon(programs, ["run", "--json", "--lang", "typescript", "--profile", profile, "-c", TYPED], who)
        tap.ok(r["status"] == "ok" and r["stdout"] == "9 Foot function\n", f"{who}: {profile}: a program of TypeScript runs without its types", r.story())
    r = tapsys.cordon(programs, ["run", "--json", "--lang", "javascript", "-c", TYPED], who)
    tap.ok(r["status"] == "blocked" and r.rules() == ["syntax"], f"{who}: types are a syntax error of JavaScript", r.story())
    for code, rule in (("eval('1')", "js."), ("let a: any = {}; a.__proto__", "js.")):
        r = tapsys.cordon(programs, ["run", "--json", "--lang", "typescript", "-c", code], who)
        tap.ok(r["status"] == "blocked" and r.rules()[0].startswith(rule), f"{who}: TypeScript is judged by the rules of JavaScript: {code}", r.story())
    r = tapsys.cordon(programs, ["run", "--json", "--lang", "typescript", "-c", "let a = 1;\nthrow new Error(`${a}`) as never;"], who)
    tap.ok(r["status"] == "error" and r["error"]["line"] == 2, f"{who}: an error of TypeScript has the line of the source", r.story())
    name = tapsys.cordon(programs, ["session", "new", "--lang", "typescript"], who).out.strip()
    tapsys.cordon(programs, ["session", "run", name, "-c", "let kept: number[] = [1, 2]"], who)
    r = tapsys.cordon(programs, ["session", "run", "--json", name, "-c", "(kept as number[]).length"], who)
    tap.ok(r["value"] == "2", f"{who}: a session of TypeScript keeps its variables", r.story())
    tapsys.cordon(programs, ["session", "close", name], who)


def beside_node(who):
    """The console writes what that of Node 20 writes; others differ (Debian's 18 in tables, 22 in buffers)."""
    version = subprocess.run([tapsys.NODE, "--version"], capture_output=True, text=True).stdout
    for file in sorted((ROOT / "tests/cases/javascript/beside-node").glob("*.js")):
        wanted = file.with_suffix(".out").read_text()
        if version.startswith("v20."):
            told = subprocess.run([tapsys.NODE, file], capture_output=True, text=True, env={"PATH": "/usr/bin"}).stdout
            tap.eq(told, wanted, f"{who}: {file.name} prints under {version.strip()} what is written down")
        r = run(file.read_text(), "standard", who)
        tap.eq(r["stdout"], wanted, f"{who}: {file.name} prints what it prints under Node 20", r["stderr"])


# files, the program's own first, and what is printed under Node; the check finds what is missing before anything runs
MODULES = {
    "names, defaults and namespaces are imported": {
        "main.mjs": "import d, { a as b, inc } from './lib/m.mjs';\nimport * as ns from './lib/m.mjs';\nconsole.log(d, b, Object.keys(ns));\ninc();\nconsole.log(b, ns.a);\n",
        "lib/m.mjs": "import { deep } from '../deep.mjs';\nexport let a = 1;\nexport const inc = () => { a += deep; };\nexport default 'd';\n", "deep.mjs": "export const deep = 10;\n"},
    "names are exported again": {
        "main.mjs": "import { x, all } from './again.mjs';\nconsole.log(x, all.y);\n", "again.mjs": "export * from './one.mjs';\nexport * as all from './two.mjs';\n",
        "one.mjs": "export const x = 1;\n", "two.mjs": "export const y = 2;\n"},
    "a cycle finds the functions of a module that has not run": {
        "main.mjs": "import { even } from './even.mjs';\nconsole.log(even(10), even(7));\n",
        "even.mjs": "import { odd } from './odd.mjs';\nexport function even(n) { return n === 0 || odd(n - 1); }\n",
        "odd.mjs": "import { even } from './even.mjs';\nexport function odd(n) { return n !== 0 && even(n - 1); }\n"},
    "a cycle that reads a constant too early throws": {
        "main.mjs": "import './a.mjs';\n", "a.mjs": "import { b } from './b.mjs';\nexport const a = 1;\nconsole.log('a', b);\n",
        "b.mjs": "import { a } from './a.mjs';\nexport const b = (() => { try { return a; } catch (e) { return e.name; } })();\n"},
    "modules run once, in the order of their imports": {
        "main.mjs": "import './b.mjs';\nimport './a.mjs';\nimport './b.mjs';\nconsole.log('main');\n", "a.mjs": "console.log('a');\n", "b.mjs": "import './a.mjs';\nconsole.log('b');\n"},
    "import() gives a namespace, and the same one again": {
        "main.mjs": "const name = './m.mjs';\nconst m = await import(name);\nimport('./m.mjs').then((n) => console.log(m === n, n.default, n.f(2)));\n",
        "m.mjs": "console.log('once');\nexport default 5;\nexport const f = (n) => n * 2;\n"},
    "import() of what is not there rejects": {
        "main.mjs": "const name = ['./no', 'thing.mjs'].join('');\ntry { await import(name); } catch (e) { console.log(e.code); }\nimport(name).catch(() => console.log('again'));\n", "m.mjs": "export {};\n"},
    "await outside of functions holds up who imports it": {
        "main.mjs": "import { value } from './slow.mjs';\nimport './other.mjs';\nconsole.log('main', value);\n", "other.mjs": "console.log('other');\n",
        "slow.mjs": "console.log('before');\nexport const value = await new Promise((r) => setTimeout(() => r(7), 5));\nconsole.log('behind');\n"},
    "import() in a script that is no module": {"main.js": "import('./m.mjs').then((m) => console.log(m.x, typeof this));\nvar own = 1;\n", "m.mjs": "export const x = 3;\n"},
    "a JSON file is a module": {"main.mjs": "import data from './d.json' with { type: 'json' };\nconsole.log(data.list[1]);\n", "d.json": '{"list": [1, "two"]}\n'},
    "import.meta says where a module is": {"main.mjs": "import './lib/m.mjs';\n", "lib/m.mjs": "console.log(import.meta.url.split('/').slice(-2).join('/'));\n"},
}
MISSING = (("import './no.mjs';\n", "js.module.missing"), ("export * from './no.mjs';\n", "js.module.missing"), ("import { nothing } from './m.mjs';\n", "js.module.export"),
           ("import fs from 'node:fs';\n", "js.module.specifier"), ("import x from '../../etc/passwd';\n", "js.module.specifier"), ("import 'https://example.org/x.mjs';\n", "js.module.specifier"),
           ("import './deep.mjs';\n", "js.module.missing"), ("import './bad.mjs';\n", "js.name.eval"), ("import './broken.mjs';\n", "syntax"))


def modules(who):
    """Modules of the workspace, through the whole product; beside Node where it is there."""
    node = shutil.which("node")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        top = pathlib.Path(folder)

        def put(at, files):
            for name, text in files.items():
                (at / name).parent.mkdir(parents=True, exist_ok=True)
                (at / name).write_text(text)
            for path in at.rglob("*"):
                os.chmod(path, 0o755 if path.is_dir() else 0o644)

        def started(at, main, profile):
            return tapsys.cordon(programs, ["run", "--json", "--profile", profile, "--in", str(at), str(at / main)], who)

        for number, (name, files) in enumerate(MODULES.items()):
            at, main = top / str(number), next(iter(files))
            put(at, files)
            for profile in ("strict", "standard"):
                r = started(at, main, profile)
                if node:
                    wanted = subprocess.run([node, at / main], capture_output=True, text=True, env={"PATH": "/usr/bin"}).stdout
                    tap.ok(wanted and r["status"] == "ok" and r["stdout"] == wanted, f"{who}: {profile}: modules, as under Node: {name}", wanted, r.story())
                else:
                    tap.ok(r["status"] == "ok", f"{who}: {profile}: modules: {name}", r.story())
        at = top / "missing"
        put(at, {"m.mjs": "export const x = 1;\n", "deep.mjs": "import './none.mjs';\n", "bad.mjs": "eval('1');\n", "broken.mjs": "export const = 1;\n"})
        for text, rule in MISSING:
            put(at, {"main.mjs": "console.log('ran');\n" + text})
            r = started(at, "main.mjs", "standard")
            tap.ok(r["status"] == "blocked" and rule in r.rules() and r["stdout"] == "", f"{who}: `{text.strip()}` is found before anything runs: {rule}", r.story())
        r = tapsys.cordon(programs, ["check", "--json", "--lang", "javascript", "-c", "import { x } from './gone.mjs';\nx"], who)
        tap.ok(not r["is_safe"] and "js.module.missing" in r.rules(), f"{who}: check finds an import of a file that is not there", r.story())
        name = tapsys.cordon(programs, ["session", "new", "--lang", "javascript", "--profile", "standard", "--in", str(at)], who).out.strip()

        def call(text):
            return tapsys.cordon(programs, ["session", "run", "--json", name, "-c", text], who)

        got = [call(text)["value"] for text in ("import { x } from './m.mjs'; x", "x + 1", "import * as ns from './m.mjs'; ns.x", "(await import('./m.mjs')).x")]
        tap.eq(got, ["1", "2", "1", "1"], f"{who}: each call of a session imports files of its own /workspace")
        for text, rule in (("import './no.mjs'", "js.module.missing"), ("import { nothing } from './m.mjs'", "js.module.export"), ("import './bad.mjs'", "js.name.eval"),
                           ("import './no.mjs'; eval('1')", "js.name.eval")):
            r = call(text)
            tap.ok(r["status"] == "blocked" and rule in r.rules(), f"{who}: a call of a session: `{text}` is refused: {rule}", r.story())
        tapsys.cordon(programs, ["session", "close", name], who)
        name = tapsys.cordon(programs, ["session", "new", "--lang", "javascript", "--profile", "strict", "--in", str(at)], who).out.strip()
        for number in ("first", "second"):  # also where the first one comes before the process has closed its table
            r = call("import { x } from './m.mjs'; x")
            tap.ok(r["status"] == "blocked" and r.rules() == ["js.module.missing"] and "no session opens a file" in r["violations"][0]["hint"],
                   f"{who}: strict: the {number} call of a session that imports a file is refused, and told that no session does there", r.story())
        tapsys.cordon(programs, ["session", "close", name], who)
        put(top / "fault", {"main.mjs": "import { f } from './lib.mjs';\n\nf();\n", "lib.mjs": "\n\nexport function f() {\n  throw new RangeError('here');\n}\n"})
        r = started(top / "fault", "main.mjs", "standard")
        tap.ok(r["status"] == "error" and r["error"]["line"] == 4 and re.search(r"at f \(/workspace/lib\.mjs:4\)\n.*main\.mjs:3\b", r["stderr"]),
               f"{who}: an error in a module is told with its file and line", r.story())


STACK = """// a comment

const inner = (x) => {

  return (
    x.y.z
  );
};
function outer() { try { inner({}); } catch (e) { return e.stack; } }
console.log(outer());
"""


def stacks(who):
    for profile in ("strict", "open"):
        r = run(STACK, profile, who)
        found = re.findall(r"^(\w*)(?: code)?@[^:\n]+:(\d+)", r["stdout"], re.M)
        tap.eq(found[:3], [("inner", "6"), ("outer", "9"), ("global", "10")], f"{who}: {profile}: the stack that a program reads has the lines of its text", r.story())
    name = tapsys.cordon(programs, ["session", "new", "--lang", "javascript"], who).out.strip()
    seen = "Object.getOwnPropertyNames(globalThis).filter((n) => n.startsWith('$')).length + Reflect.ownKeys(globalThis).filter((n) => /cordon/i.test(String(n))).length"
    for block, value in (("for (let i = 0; i < 3; i++) ;\n" + seen, "0"), ("await 0;\n" + seen, "0")):
        r = tapsys.cordon(programs, ["session", "run", "--json", name, "-c", block], who)
        tap.eq(r["value"], value, f"{who}: a program of a session sees nothing of what interrupts it", r.story())
    r = tapsys.cordon(programs, ["session", "run", "--json", name, "-c", "typeof $cordonFlag"], who)
    tap.ok(r["status"] == "blocked" and r.rules() == ["js.form.own-name"], f"{who}: a program that names what interrupts it is refused", r.story())
    tapsys.cordon(programs, ["session", "close", name], who)


def collected(who):
    rows = {kind: [json.loads(line) for line in (SHARED / kind / "javascript.jsonl").read_text().split("\n") if line] for kind in ("attacks", "benign")}
    honest, attacks = (rows["benign"], rows["attacks"]) if ALL else (rows["benign"][::40], rows["attacks"][::7])
    for profile in ("standard", "strict"):
        wrong = [(row["id"], r.story()) for row, r in tapsys.side_by_side(lambda row: run(row["code"], profile, who), honest) if r["status"] != "ok"]
        tap.eq(wrong, [], f"{who}: {profile}: each of {len(honest)} honest programs runs right")
    canaries = tapsys.Canaries(programs, who)
    for profile in PROFILES if ALL else PROFILES[1:2]:
        wrong = [(row["id"], r.story()) for row, r in tapsys.side_by_side(lambda row: run(row["code"], profile, who, "--timeout", "10s", env=canaries.environment()), attacks)
                 if r["status"] not in ("ok", "error", "blocked", "timeout") or canaries.word in r.out + r.err]
        tap.eq(wrong, [], f"{who}: {profile}: each of {len(attacks)} attacks is refused or contained")
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
    canaries.close()


def document():
    rules, page = (ROOT / "src/worker/javascript/judge/rules.js").read_text(), (ROOT / "docs/javascript.md").read_text()
    ids = re.findall(r"^  '((?:js|ts)\.[\w.-]+)':", rules, re.M)
    tap.eq(re.findall(r"^\| `((?:js|ts)\.[\w.-]+)` \|", page, re.M), ids, "docs/javascript.md has each rule of the table, in its order")


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
tap = tapsys.Tap()
document()
for who in tapsys.users()[-1:]:
    works(who)
    given(who)
    held(who)
    order(who)
    beside_node(who)
    typed(who)
    modules(who)
    stacks(who)
    corpus.in_every_profile(tap, programs, "javascript", who, run)
    if (SHARED / "benign/javascript.jsonl").exists():
        collected(who)
tap.done()
