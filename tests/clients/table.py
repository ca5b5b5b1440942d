# SPDX-License-Identifier: Apache-2.0
"""bindings/methods.json against the server's own tools/list and schemas, and each client library against the table: none lags.

Usage: table.py BUILD SOURCE. What the libraries have is read from the libraries: signatures and fields, header and types."""
import ast
import dataclasses
import inspect
import json
import pathlib
import re
import subprocess
import sys
import typing

BUILD, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests/system"), str(BUILD / "bindings/python")]
import mcptest  # noqa: E402
import tapsys  # noqa: E402

import cordon  # noqa: E402
import cordon.aio  # noqa: E402

tap = tapsys.Tap()
table = json.loads((SOURCE / "bindings/methods.json").read_text())
ALWAYS = {"text", "is_error", "raw"}  # of every result, besides the fields
TYPES = {**vars(cordon._results), **vars(cordon._protocol)}  # a module names them without importing them
JSON_OF = {"str": "string", "int": "integer", "bool": "boolean", "Any": "any", "dict": "object", "list": "array"}


def differ(got, want):
    """What a library has and the table has not, and the other way round; empty: nothing."""
    extra, missing = sorted(set(got) - set(want)), sorted(set(want) - set(got))
    return [f"only in the library: {x}" for x in extra] + [f"missing: {x}" for x in missing]


def parameters(of):
    return [*of["arguments"], *of["own"]]


# --- the table and the server ---------------------------------------------------------------------

def server():
    """All that a server can have: the tool for approvals is there by policy."""
    programs = tapsys.Programs(BUILD)
    policy = programs.dir / "approvals.yaml"
    policy.write_text("approval: {tool: true}\n")
    with mcptest.Server(programs, "--policy", str(policy), legacy=None) as s:
        return {t["name"]: t for t in s.ask("tools/list")["result"]["tools"]}


def is_of(schema, kind):
    types = schema.get("type")
    types = set(types if isinstance(types, list) else [types]) - {"null"} if types else set()
    for part in schema.get("anyOf", ()):
        types |= {"object"} if "$ref" in part else {part["type"]} - {"null"}
    return not types or types == {kind} or "enum" in schema or kind == "any"


def against_server():
    listed = server()
    tap.eq(differ(listed, table["tools"]), [], "the table has the tools of tools/list, and no other")
    for name, tool in listed.items():
        want = table["tools"].get(name, {"arguments": {}, "result": None})
        schema = tool["inputSchema"]
        got = {k: {"type": v["type"], **({"required": True} if k in schema["required"] else {}), **({"enum": v["enum"]} if "enum" in v else {})}
               for k, v in schema["properties"].items()}
        if "language" in got:  # a build may lack workers
            words = want["arguments"].get("language", {}).get("enum", [])
            got["language"]["enum"] = words if got["language"]["enum"] == [w for w in words if w in got["language"]["enum"]] else got["language"]["enum"]
        tap.eq(got, want["arguments"], f"{name}: arguments, types and words are those of the table")
        if want.get("model_only"):
            continue
        fields = table["results"].get(want["result"], {})
        wrong = [k for k, v in tool["outputSchema"]["properties"].items() if k not in fields or not is_of(v, fields[k])]
        tap.eq(wrong, [], f"{name}: every field of its output schema is in the table, with its type")
    for file, result, more in (("result", "Result", {"job_id", "elapsed_ms"}), ("check", "Report", set())):
        schema = json.loads((SOURCE / f"schemas/{file}.schema.json").read_text())
        properties = (schema if "properties" in schema else schema["oneOf"][0])["properties"]
        fields = {k: v for k, v in table["results"][result].items() if k not in more}
        tap.eq(differ(properties, fields) + [k for k in fields if k in properties and not is_of(properties[k], fields[k])], [],
               f"{result} has the fields of schemas/{file}.schema.json")
    used = {}
    for method in [*table["client"].values(), *table["session"].values()]:
        of = used.setdefault(method["tool"], {"arguments": set(), "actions": set()})
        of["arguments"] |= {*method["arguments"], *method.get("inside", ())}
        of["actions"].add(method.get("action"))
    for name, tool in table["tools"].items():
        if tool.get("model_only"):
            continue
        left = set(tool["arguments"]) - used.get(name, {"arguments": set()})["arguments"] - {"action", "session_id"}
        tap.eq(left, set(), f"{name}: every argument belongs to a method")
        words = set(tool["arguments"].get("action", {}).get("enum", ())) - used.get(name, {"actions": set()})["actions"]
        tap.eq(words, set(), f"{name}: every action belongs to a method")


def page():
    """The table of docs/agents.md."""
    rows = re.search(r"<!-- methods -->\n.*?\n.*?\n(.*?)\n\n", (SOURCE / "docs/agents.md").read_text(), re.S).group(1).splitlines()
    told = {}
    for row in rows:
        name, arguments, _ = (c.strip() for c in row.strip("|").split("|"))
        told["session" if name.startswith("session: ") else "client", re.search(r"`(\w+)`$", name).group(1)] = re.findall(r"`(\w+)`", arguments)
    real = {(place, name): parameters(of) for place in ("client", "session") for name, of in table[place].items()}
    tap.eq(told, real, "docs/agents.md has every method with its arguments")


def alone():
    """What each library needs besides its language: nothing. That of C is looked at by expr-symbols."""
    needs = {"Python": [n for p in (SOURCE / "bindings/python").rglob("*.py") for n in ast.walk(ast.parse(p.read_text())) if isinstance(n, (ast.Import, ast.ImportFrom))]}
    names = {m.split(".")[0] for n in needs["Python"] for m in ([a.name for a in n.names] if isinstance(n, ast.Import) else [n.module] if not n.level else [])}
    tap.eq(sorted(names - sys.stdlib_module_names), [], "Python: the library imports the standard library and itself")
    sources = "".join(p.read_text() for p in (SOURCE / "bindings/node").glob("*.js"))
    names = set(re.findall(r"""^(?:import|export)\b[^;]*?from ["']([^"']+)["']|^import ["']([^"']+)["']|\b(?:import|require)\(["']([^"']+)["']\)""", sources, re.M))
    tap.eq(sorted(n for found in names for n in found if n and not n.startswith(("node:", "./"))), [], "Node: the library imports what Node has, and itself")
    package = json.loads((BUILD / "bindings/node/package.json").read_text())
    tap.eq([k for k in package if k.lower().endswith("dependencies")], [], "Node: the package has no dependencies")
    names = set(re.findall(r"^\s*require(?:_relative)? [\"']([^\"']+)[\"']", "".join(p.read_text() for p in (SOURCE / "bindings/ruby").glob("*.rb")), re.M))
    tap.ok(names and names <= {"json", "socket", "tempfile", "timeout", "base64", "open3"}, "Ruby: the library requires what Ruby brings along", names)


# --- Python ---------------------------------------------------------------------------------------

def json_kind(hint):
    args = [a for a in typing.get_args(hint) if a is not type(None)]
    if typing.get_origin(hint) is typing.Union:
        return json_kind(args[0])
    origin = typing.get_origin(hint) or hint
    return JSON_OF.get(getattr(origin, "__name__", str(origin).rsplit(".", 1)[-1]), str(hint))


def python():
    places = {"cordon.Client": ("client", cordon.Client, table["client"]), "cordon.Session": ("session", cordon.Session, table["session"]),
              "cordon.aio.Client": ("client", cordon.aio.Client, table["client"]), "cordon.aio.Session": ("session", cordon.aio.Session, table["session"]),
              "cordon": ("client", cordon, {k: v for k, v in table["client"].items() if k in ("run", "wait", "check", "eval")})}
    for name, (_, place, methods) in places.items():
        for method, of in methods.items():
            f = getattr(place, method, None)
            got = [p for p in inspect.signature(f).parameters if p != "self"] if f else []
            tap.eq(differ(got, parameters(of)) if f else ["missing"], [], f"Python: {name}.{method} has the arguments of the table")
            hints = typing.get_type_hints(f, localns=TYPES) if f else {}
            arguments = table["tools"][of["tool"]]["arguments"]
            wrong = [a for a in of["arguments"] if json_kind(hints.get(a)) not in (arguments[a]["type"], "any")]
            tap.eq(wrong + ([] if "return" in hints else ["return"]), [], f"Python: {name}.{method} has the types of the table")
            if "aio" in name:
                tap.ok(inspect.iscoroutinefunction(f), f"Python: {name}.{method} is awaited")
    for result, fields in table["results"].items():
        kind = getattr(cordon, result, None)
        hints = typing.get_type_hints(kind) if kind else {}
        got = {f.name: json_kind(hints[f.name]) for f in dataclasses.fields(kind) if f.name not in ALWAYS} if kind else {}
        tap.eq(differ(got, set(fields) - ALWAYS) + [k for k in got if k in fields and got[k] != fields[k]], [], f"Python: {result} has the fields and types of the table")


# --- C --------------------------------------------------------------------------------------------

def c():
    """By the header: macros are the fields, parameters and members of the options are the arguments."""
    text = re.sub(r"/\*.*?\*/", " ", (SOURCE / "include/cordon.h").read_text(), flags=re.S)
    members = re.search(r"struct cordon_run_options \{(.*?)^\};", text, re.M | re.S).group(1)
    members = re.findall(r"(\w+)(?=\s*[,;]|\)\(|\[)", re.sub(r"\)\([^)]*\)", ")()", members))
    kinds = {"string": r"const char \*", "integer": r"uint64_t ", "boolean": "bool ", "object": r"const char \*"}  # a context is JSON
    for place in ("client", "session"):
        for method, of in table[place].items():
            m = re.findall(rf"int cordon_{place}_{method}(?:_in|_of)?\(([^)]*)\);", text)
            given = " ".join(m)
            have = {"check": "check", "wait": "no_wait"}
            options = [have.get(x, x) for x in of["own"] if x != "data"]
            arguments = table["tools"][of["tool"]]["arguments"]
            missing = [a for a in of["arguments"] if not re.search(kinds[arguments[a]["type"]] + a + r"\b", given) and not
                       ("cordon_run_options" in given and a in members)]
            missing += [o for o in options if "cordon_run_options" not in given or o not in members]
            missing += ["data"] if "data" in of["own"] and "const void *data" not in given else []
            tap.eq(missing if m else ["missing"], [], f"C: cordon_{place}_{method} has the arguments and types of the table")
    tap.eq(re.findall(r"struct cordon_(?:client|session|answer)\s*\{", text), [], "C: what a client, a session and an answer are made of is not shown")
    known = {a for place in ("client", "session") for of in table[place].values() for a in [*of["arguments"], *of["own"]]}
    tap.eq(sorted(set(members) - known - {"no_wait", "data", "reserved", "void", "int"}), [], "C: cordon_run_options has no member that the table has not")
    for result, fields in table["results"].items():
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", result).upper()
        got = dict(re.findall(rf'^#define CORDON_{word}_(\w+) +"(\w+)"', text, re.M))
        tap.eq(differ(got.values(), fields) + [k for k, v in got.items() if k != v.upper()], [], f"C: CORDON_{word}_ has the fields of the table")


# --- Node -----------------------------------------------------------------------------------------

def interface(text, name):
    """The members of an interface and of those that it extends: their types by name."""
    m = re.search(rf"^export interface {name}(?: extends (\w+))? \{{(.*?)^\}}", text, re.M | re.S)
    if not m:
        return {}
    own = dict(re.findall(r"^  (\w+)\??: (.+);$", m.group(2), re.M))
    return {**(interface(text, m.group(1)) if m.group(1) else {}), **own}


def node_kind(words):
    words = words.split(" | ")[0]
    return {"string": "string", "number": "integer", "boolean": "boolean", "unknown": "any"}.get(words, "array" if words.endswith("[]") else "object")


NODE = """const m = await import(process.argv[1]);
const own = Object.getOwnPropertyNames;
const text = (f) => Function.prototype.toString.call(f);
const of = (c) => Object.fromEntries(own(c.prototype).map((n) => [n, text(c.prototype[n])]));
console.log(JSON.stringify({Client: of(m.Client), Session: of(m.Session), module: Object.keys(m)}));"""


def node():
    """The types by their file, the methods by the library itself."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", (SOURCE / "bindings/node/index.d.ts").read_text(), flags=re.S)
    script = subprocess.run([tapsys.NODE, "--input-type=module", "-e", NODE, str(BUILD / "bindings/node/index.js")], capture_output=True, text=True, timeout=60)
    real = json.loads(script.stdout or "{}")
    tap.ok(real, "Node: the library is imported", script.stderr)
    kinds = {"string": "string", "integer": "number", "boolean": "boolean", "object": "object | string | null"}
    for place, name in (("client", "Client"), ("session", "Session")):
        declared = re.search(rf"^export declare class {name} \{{(.*?)^\}}", text, re.M | re.S).group(1)
        for method, of in table[place].items():
            m = re.search(rf"^  {method}\((.*?)\): Promise<", declared, re.M)
            given = dict(p.split(": ", 1) for p in m.group(1).replace("?", "").split(", ") if p) if m else {}
            options = interface(text, given.pop("options")) if "options" in given else {}
            got, arguments = {**given, **options}, table["tools"][of["tool"]]["arguments"]
            tap.eq(differ(set(got) - {"signal"}, parameters(of)) if m else ["missing"], [], f"Node: {name}.{method} has the arguments of the table")
            tap.eq([a for a in of["arguments"] if got.get(a) != kinds[arguments[a]["type"]]], [], f"Node: {name}.{method} has the types of the table")
            code = real.get(name, {}).get(method, "").split("{", 1)[-1] + real.get(name, {}).get(method, "")
            tap.eq([a for a in parameters(of) if not re.search(rf"\b{a}\b", code)], [], f"Node: {name}.{method} is there and takes them")
    tap.eq({"run", "wait", "check", "eval", "Client", "Session", "Failed", "ServerGone"} - set(real.get("module", ())), set(), "Node: the module has its functions")
    source = (SOURCE / "bindings/node/index.js").read_text()
    for result, fields in table["results"].items():
        got = {k: node_kind(v) for k, v in interface(text, result).items() if k not in ALWAYS}
        tap.eq(differ(got, set(fields) - ALWAYS) + [k for k in got if k in fields and got[k] != fields[k]], [], f"Node: {result} has the fields and types of the table")
        have = re.search(rf"^  {result}: \{{(.*?)\}},$", source, re.M | re.S)
        tap.eq(differ(re.findall(r"(\w+): ", have.group(1)) if have else [], set(fields) - ALWAYS), [], f"Node: {result} is filled with the fields of the table")


# --- Ruby -----------------------------------------------------------------------------------------

RUBY_TYPES = """require "rbs"
require "json"
loader = RBS::EnvironmentLoader.new
loader.add(path: Pathname(ARGV[0]))
builder = RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
types = lambda do |name|
  type = RBS::TypeName.new(name: name.to_sym, namespace: RBS::Namespace.parse("::Cordon"))
  builder.build_instance(type).methods.select { |_, m| m.defined_in == type }.to_h do |method, m|
    f = m.method_types.first.type
    named = (f.required_positionals + f.optional_positionals).to_h { |p| [p.name, p.type.to_s] }
    [method, {takes: named.merge(f.optional_keywords.transform_values { |p| p.type.to_s }), gives: f.return_type.to_s}]
  end
end
puts JSON.generate(ARGV.drop(1).to_h { |name| [name, types.(name)] })"""


def ruby_kind(words):
    words = words.rstrip("?").replace("::", "")
    return {"String": "string", "Integer": "integer", "Numeric": "integer", "bool": "boolean", "untyped": "any"}.get(words, "array" if words.startswith("Array[") else "object")


def ruby_types(real):
    """The types by their file, which RBS reads; all that is public has some."""
    names = ["Client", "Session", *table["results"]]
    script = subprocess.run(["/usr/bin/ruby", "-e", RUBY_TYPES, str(SOURCE / "bindings/ruby"), *names], capture_output=True, text=True, timeout=120)
    types = json.loads(script.stdout or "{}")
    tap.ok(types, "Ruby: the types of the library are read", script.stderr)
    for place, name in (("client", "Client"), ("session", "Session")):
        had = types.get(name, {})
        tap.eq(sorted(set(real.get(place, ())) - set(had)), [], f"Ruby: each method of {name} has types")
        for method, of in table[place].items():
            got, arguments = had.get(method, {"takes": {}})["takes"], table["tools"][of["tool"]]["arguments"]
            tap.eq(differ(got, parameters(of)), [], f"Ruby: the types of {name}.{method} have the arguments of the table")
            tap.eq([a for a in of["arguments"] if ruby_kind(got.get(a, "")) != arguments[a]["type"]], [], f"Ruby: {name}.{method} has the types of the table")
    for result, fields in table["results"].items():
        got = {k: ruby_kind(v["gives"]) for k, v in types.get(result, {}).items() if k in fields and k not in ALWAYS}
        tap.eq([k for k in fields if k not in ALWAYS and got.get(k) != fields[k]], [], f"Ruby: {result} has the types of the table")


RUBY = """require "cordon"
named = ->(c) { c.public_instance_methods(false).to_h { |m| [m, c.instance_method(m).parameters.map(&:last)] } }
results = Cordon.constants.map { |n| [n, Cordon.const_get(n)] }.select { |_, c| c.is_a?(Class) && c < Struct }
puts JSON.generate({client: named.(Cordon::Client), session: named.(Cordon::Session), module: Cordon.singleton_methods,
                    results: results.to_h { |n, c| [n, c.members] }})"""


def ruby():
    script = subprocess.run(["/usr/bin/ruby", f"-I{SOURCE / 'bindings/ruby'}", "-e", RUBY], capture_output=True, text=True, timeout=60)
    real = json.loads(script.stdout or "{}")
    tap.ok(real, "Ruby: the library is required", script.stderr)
    for place in ("client", "session"):
        for method, of in table[place].items():
            got = real.get(place, {}).get(method)
            tap.eq(differ(set(got) - {"block"}, parameters(of)) if got is not None else ["missing"], [], f"Ruby: {place}.{method} has the arguments of the table")
    tap.eq({"run", "wait", "check", "eval", "session"} - set(real.get("module", ())), set(), "Ruby: the module has its functions")
    for result, fields in table["results"].items():
        tap.eq(differ(set(real.get("results", {}).get(result, ())) - ALWAYS, set(fields) - ALWAYS), [], f"Ruby: {result} has the fields of the table")
    ruby_types(real)


against_server()
page()
alone()
python()
c()
node()
ruby()
tap.done()
