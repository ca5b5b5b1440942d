# SPDX-License-Identifier: Apache-2.0
"""One generated Ruby method: validated step by step, called with arguments, and saved only if every layer let it pass.

Usage: ruby_method.py BUILD. What each step refuses by itself is tested where the step is; here it is their order, and what becomes of a
method that fails one."""
import os
import pathlib
import sys
import tarfile
import tempfile

import tapsys

BUILD = sys.argv[1]


def call(text, name, args, who, *options, profile="strict"):
    words = ["run", "--json", "--lang", "ruby", "--profile", profile, "--method", name, *(["--args", args] if args is not None else []), *options, "-"]
    return tapsys.cordon(programs, words, who, text=text)


def called(who):
    for profile in ("strict", "standard", "open"):
        for text, args, value in (("def add(a, b)\n  a + b\nend\n", "[2, 3]", "5"),
                                  ("def add(a, b: 1)\n  [a, b]\nend\n", '[{"x": null}]', '[{"x"=>nil}, 1]'),
                                  ("def add(a:, b: 'ü')\n  a + b\nend\n", '{"a": "x"}', '"xü"'),
                                  ("def add(*all)\n  all.sum\nend\n", None, "0"),
                                  ("def add\n  nil\nend\n", "[]", "nil"),
                                  ("LIMIT = 3\ndef add\n  helper * LIMIT\nend\n\ndef helper\n  2\nend\n", "[]", "6")):
            r = call(text, "add", args, who, profile=profile)
            tap.ok(r["status"] == "ok" and r["value"] == value, f"{who}: {profile}: {text.splitlines()[0]!r} is called with {args} and gives {value}", r.story())
    r = call("def where\n  [self.class, singleton_class.ancestors[1].name]\nend\n", "where", None, who)
    tap.eq(r["value"], "[Object, nil]", f"{who}: the method comes from a module without a name, and its object is nobody else's", r.story())
    r = call("def fail_at(n)\n  raise ArgumentError, 'no' if n == 0\n  fail_at(n - 1)\nend\n", "fail_at", "[1]", who)
    error = r["error"] or {}
    tap.ok(r["status"] == "error" and (error.get("type"), error.get("message"), error.get("line")) == ("ArgumentError", "no", 2)
           and r["stderr"].count("in `fail_at'") == 2, f"{who}: what a method raises is told with type, text and line, and its frames", r.story())
    for text in ("def self.add\n  1\nend\n", "def other\n  1\nend\n"):
        r = call(text, "add", None, who)
        tap.ok(r["status"] == "blocked" and r.rules() == ["structure"] and "does not define the method add" in (r["reason"] or ""),
               f"{who}: {text.splitlines()[0]} is not the method that was asked for", r.story())


# Each text fails at one step, and would fail at every later one, too: the first failure is what is told.
ORDER = (("", "ValidationError", "intake"),
         ("<think>def hack; system('ls'); (end</think>\n", "ValidationError", "intake"),
         ("```ruby\n\n```\n", "ValidationError", "intake"),
         ("```ruby\nsystem('ls') (\n```\n", "ValidationError", "structure"),
         ("def hack\n  system('ls') (\n", "ValidationError", "structure"),
         ("undefined; system('ls'); ended (", "ValidationError", "structure"),
         ("```ruby\ndef hack\n  system('ls') (\nend\n```\n", "SecurityError", "rb.call.process"),
         ("def hack\n  1 + (\nend\n", "ValidationError", "syntax"))


def order(who):
    for profile in ("strict", "standard"):
        for text, kind, rule in ORDER:
            r = call(text, "hack", None, who, profile=profile)
            tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == kind and r.rules() == [rule] and all(v["hint"] for v in r["violations"]),
                   f"{who}: {profile}: {text!r} ends at {rule}, as {kind}", r.story())
    r = call("<think>\nsystem('ls')\n</think>\nHere it is:\n```ruby\ndef hack\n  6 * 7\nend\n```\nDone, system!\n", "hack", None, who)
    tap.ok(r["status"] == "ok" and r["value"] == "42", f"{who}: what passes every step is run, and what was around it is judged by nobody", r.story())


def saved(who):
    method = "def twice(x)\n  x * 2\nend\n"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        out = pathlib.Path(folder) / "out"
        out.mkdir()
        os.chmod(out, 0o777)
        file = out / "lib/twice.rb"
        # by the judge, by a shadow, by a shadow that is rescued, by its own exception
        for profile, text in (("strict", "def twice(x)\n  system('ls')\nend\n"),
                              ("standard", "def twice(x)\n  self.class.instance_method('sys' + 'tem')\nend\n"),
                              ("open", "def twice(x)\n  raise 'no'\nend\n"),
                              ("standard", "def twice(x)\n  [:itself, ('sys' + 'tem').to_sym].map { |m| m.to_proc.call(self) }\nend\n"),
                              ("standard", "def twice(x)\n  ('sys' + 'tem').to_sym.to_proc.call(self, 'ls')\nrescue SecurityError\n  1\nend\n")):
            r = call(text, "twice", "[1]", who, "--out", str(out), "--save", "lib/twice.rb", profile=profile)
            tap.ok(not file.exists() and (r["status"] != "ok" or any("not saved" in n for n in r["notes"])),
                   f"{who}: {profile}: a method that fails is not saved: {text.splitlines()[1].strip()}", r.story())
        r = call("```ruby\n" + method + "```\n", "twice", "[4]", who, "--out", str(out), "--save", "lib/twice.rb")
        tap.ok(r["value"] == "8" and file.exists() and file.read_text() == method, f"{who}: an accepted method is the file that --save names, as it was judged", r.story())
        r = call("def twice(x)\n  File.write('lib.rb', 'system(1)')\n  x\nend\n", "twice", "[4]", who, "--out", str(out), "--save", "lib.rb", profile="open")
        tap.ok(r["status"] == "ok" and "def twice" in (out / "lib.rb").read_text(), f"{who}: what the method itself left under that name is replaced", r.story())
        r = call("def twice(x)\n  Dir.mkdir('d')\n  File.symlink('/etc', 'd/lib')\n  x\nend\n", "twice", "[4]", who, "--out", str(out), "--save", "d/lib/a.rb", profile="open")
        tap.ok(r["status"] == "error" and (r["error"] or {}).get("type") == "WorkspaceError" and "--save" in r["reason"], f"{who}: a link that the method left is not followed", r.story())
        told = "is called in CamelCase with its ending"
        r = call(method, "twice", "[4]", who, "--out", str(out), "--save", "tools/twice.rb")
        tap.ok(r["status"] == "ok" and not (out / "tools/twice.rb").exists() and told in r["notes"][0] and "not saved" in r["notes"][1],
               f"{who}: a method is not saved as a file that breaks a rule of `naming`, and its message is told", r.story())
        policy = pathlib.Path(folder) / "warn.yaml"
        policy.write_text("verification: warn\n")
        r = call(method, "twice", "[4]", who, "--out", str(out), "--save", "tools/twice.rb", "--policy", str(policy))
        tap.ok((out / "tools/twice.rb").exists() and told in r["notes"][0], f"{who}: with `verification: warn` it is saved, and the message is told", r.story())
    name = f"methods-{who}"
    made = tapsys.cordon(programs, ["workspace", "create", name], who)
    for step, path in (("an empty workspace", "methods/twice.rb"), ("a folder that is there", "methods/again.rb")):
        r = call(method, "twice", "[4]", who, "--workspace", name, "--save", path)
        kept = r["snapshot"] or {}
        tap.ok(made.code == 0 and r["status"] == "ok" and kept.get("changed"), f"{who}: --workspace: {step}: an accepted method is committed", r.story())
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        archive = pathlib.Path(folder) / "all.tar"
        r = tapsys.cordon(programs, ["workspace", "export", name, "--tar", str(archive)], who)
        with tarfile.open(archive) as tar:
            left = {m.name.removeprefix("./"): tar.extractfile(m).read().decode() for m in tar if m.isfile()}
        tap.eq(left, {"methods/again.rb": method, "methods/twice.rb": method}, f"{who}: the workspace has both methods, as they were judged", r.story())
    tapsys.cordon(programs, ["workspace", "delete", name], who)


def words(who):
    for options, said in ((["--args", "[1]"], "--args is for a method"), (["--save", "a.rb"], "--save is for a method"),
                          (["--method", "Add"], "is no name of a method"), (["--method", "a.b"], "is no name of a method"),
                          (["--method", "a", "--args", "1"], "neither a JSON array nor an object"), (["--method", "a", "--args", "[1"], "neither a JSON array nor an object"),
                          (["--method", "a", "--save", "a.rb"], "--workspace W commits it"), (["--method", "a", "--out", "/tmp/x", "--save", "../a.rb"], "no path of a file below /workspace"),
                          (["--method", "a", "--out", "/tmp/x", "--save", "/a.rb"], "no path of a file below /workspace")):
        r = tapsys.cordon(programs, ["run", "--lang", "ruby", *options, "-c", "def a\nend"], who)
        tap.ok(r.code == 125 and said in r.err, f"{who}: {' '.join(options)} is a slip that is told: {said}", r.story())
    r = tapsys.cordon(programs, ["run", "--method", "a", "-c", "def a(): pass"], who)
    tap.ok(r.code == 125 and "--method is for Ruby, and the program is Python" in r.err, f"{who}: Python has no --method, and it is told", r.story())


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
tap = tapsys.Tap()
for who in tapsys.users():
    order(who)
called(tapsys.users()[-1])
words(tapsys.users()[-1])
for who in tapsys.users():
    saved(who)
tap.done()
