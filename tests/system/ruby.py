# SPDX-License-Identifier: Apache-2.0
"""Ruby as people start it: what a program is given, how it ends, what holds it; and the programs of tests/cases/ruby.

Usage: ruby.py BUILD. The collected ones of ../shared/corpora only where that folder is: honest ones must run right, attacks must
not succeed. What the judge and the shadows say in words is src/worker/ruby/test_ruby.c's."""
import json
import os
import pathlib
import re
import resource
import sys
import tempfile

import corpus
import tapsys

BUILD = sys.argv[1]
SHARED = pathlib.Path(__file__).resolve().parents[2] / "../shared/corpora"
PROFILES = ("strict", "standard", "open")


def run(code, profile, who, *options, env=None, text=None, **more):
    return tapsys.cordon(programs, ["run", "--json", "--lang", "ruby", "--profile", profile, *options, *([] if text is not None else ["-"])],
                         who, env=env, text=code if text is None else text, **more)


def works(who):
    for profile in PROFILES:
        r = run("puts [1, 2, 3].sum\n$stderr.puts 'e'\nprint 'a', 'b', \"\\n\"\nx = 20\nx * 2 + 2\n", profile, who)
        tap.ok(r["status"] == "ok" and (r["stdout"], r["stderr"], r["value"]) == ("6\nab\n", "e\n", "42") and r["violations"] == [],
               f"{who}: {profile}: a program prints, and its last value is told", r.story())
        for last in ("x = 5", "def a = 1", "class A; end", "nil", "puts 1", "p 1", "pp [1]", "if false then 1 end"):
            r = run(last + "\n", profile, who)
            tap.ok(r["status"] == "ok" and r["value"] is None, f"{who}: {profile}: `{last}` at the end shows no value", r.story())
        r = run("def f(n)\n  raise ArgumentError, 'no' if n == 0\n  f(n - 1)\nend\nf(2)\n", profile, who)
        error = r["error"] or {}
        tap.ok(r["status"] == "error" and (error.get("type"), error.get("message"), error.get("line")) == ("ArgumentError", "no", 2)
               and "in `f': no (ArgumentError)" in r["stderr"] and "in `<main>'" in r["stderr"] and "eval" not in r["stderr"],
               f"{who}: {profile}: an exception is told with type, text and line, and printed as ruby prints it", r.story())
        r = run("at_exit { puts 'second' }\nEND { puts 'first' }\nputs 'begin'\n", profile, who)
        tap.eq(r["stdout"], "begin\nfirst\nsecond\n", f"{who}: {profile}: exit blocks run, the last one first", r.story())
        r = run("puts Time.at(0).utc.year, rand(1), 'ÄÖ'.encode('UTF-16LE').bytesize, 10.0.to_s, [3, 1].sort.inspect, {a: 1}.to_s\n", profile, who)
        tap.eq(r["stdout"], "1970\n0\n4\n10.0\n[1, 3]\n{:a=>1}\n", f"{who}: {profile}: clocks, chance, encodings and texts are there", r.story())
        r = run("FINAL(6 * 7)\nputs 'not reached'\n", profile, who)
        tap.ok(r["final"] == "42" and r["is_final"] and r["stdout"] == "", f"{who}: {profile}: FINAL gives the answer and ends the program", r.story())
        r = run("def deep(n) = deep(n + 1)\nbegin\n  deep(0)\nrescue SystemStackError\n  puts 'deep'\nend\n", profile, who)
        tap.eq(r["stdout"], "deep\n", f"{who}: {profile}: endless recursion is an exception of Ruby's", r.story())
    for profile in ("standard", "open"):
        r = run("require 'set'\nrequire 'json'\nputs JSON.generate({'a' => Set[1].size})\nexit 3\n", profile, who)
        tap.ok((r["stdout"], r["exit_code"]) == ("{\"a\":1}\n", 3) and r["status"] == "error", f"{who}: {profile}: libraries of the list are there, and exit has its status", r.story())


def given(who):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = pathlib.Path(folder) / "own.rb"
        file.write_text("puts __FILE__ == $0, ARGV.inspect, ENV['COLOUR'], $stdin.gets\n")
        os.chmod(file, 0o644)
        r = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--env", "COLOUR=red", str(file), "a", "b c"], who)
        tap.eq(r["stdout"], "true\n[\"a\", \"b c\"]\nred\n\n", f"{who}: a file that ends in .rb is Ruby, and has its words and variables", r.story())
        r = tapsys.cordon(programs, ["check", "--json", str(file)], who)
        tap.ok(r["status"] == "blocked" or r["is_safe"], f"{who}: check judges a file that ends in .rb", r.story())
    r = tapsys.cordon(programs, ["run", "--json", "--profile", "standard", "--intake", "text", "-"], who, text="Here it is:\n```ruby\nputs 6 * 7\n```\n")
    tap.ok(r["stdout"] == "42\n" and (r["intake"] or {}).get("language") == "ruby", f"{who}: a block of Ruby in a model's answer runs as Ruby", r.story())
    for profile in PROFILES:
        r = run("p echo([1, nil, {'a' => 'é'}], 2.5)\nbegin\n  echo('x' * 3_000_000)\nrescue ArgumentError => e\n  puts e.message\nend\n", profile, who, "--tool", "echo")
        tap.ok(r["stdout"].startswith('{"args"=>[[1, nil, {"a"=>"é"}], 2.5]') and "the arguments are longer than" in r["stdout"],
               f"{who}: {profile}: a tool is called by its name, and answers", r.story())


def held(who):
    for profile in PROFILES:
        r = run("loop {}\n", profile, who, "--timeout", "1s")
        tap.eq(r["status"], "timeout", f"{who}: {profile}: an endless loop is ended by its time", r.story())
        r = run("a = []\nloop { a << 'x' * 1_000_000 }\n", profile, who, "--memory", "128m", *tapsys.LONG)
        tap.eq(r["status"], "memory", f"{who}: {profile}: a heap without end is ended by its memory", r.story())
        for size in ("16m", "32m", "64m"):
            r = run("puts 'x' * 10", profile, who, "--memory", size, "--memory-by", "rlimit")
            tap.eq((r["status"], r["stdout"]), ("ok", "x" * 10 + "\n"), f"{who}: {profile}: a small program runs in {size}, also where addresses are counted", r.story())
        r = run("loop { puts 'x' * 10000 }\n", profile, who, *tapsys.LONG)
        tap.eq(r["status"], "output", f"{who}: {profile}: output without end is ended", r.story())
    for code in ("s = 'x'\nloop { s += s }\n", "a = []\nloop { begin; raise 'x'; rescue => e; a << e; end }\n", "a = []\ni = 0\nloop { a << /a#{i}(b|c)*/; i += 1 }\n"):
        for size in ("16m", "36m", "56m"):  # what finds nothing left differs: a buffer, an exception, a pattern
            r = run(code, "standard", who, "--memory", size, *tapsys.LONG)
            tap.eq((r["status"], r["layer"]), ("memory", "resources"), f"{who}: standard: {size} are too little for: {code.splitlines()[-1]}", r.story())
    r = run("e = []\nloop { x = (1..3).each; x.next; e << x }\n", "standard", who, "--memory", "64m", "--memory-by", "rlimit", *tapsys.LONG)
    tap.eq((r["status"], r["layer"]), ("memory", "resources"), f"{who}: standard: fibers without end are ended by their memory", r.story())
    # what is refused first differs by the limit, and so does what holds a lock of Ruby's just then
    objects = "a = []\nbegin\n  loop { a << Object.new }\nrescue NoMemoryError\n  a = nil\n  puts 'caught'\nend\n"
    ends = tapsys.side_by_side(lambda size: run(objects, "standard", who, "--memory", f"{size}m", "--memory-by", "rlimit", *tapsys.LONG), range(16, 64))
    wrong = [f"{size} MB: {r.story()}" for size, r in ends if r["status"] != "memory" and (r["status"], r["stdout"]) != ("ok", "caught\n")]
    tap.ok(not wrong, f"{who}: standard: objects without end: from 16 to 63 MB the program catches it, or it is told as memory", *wrong)
    # less address space than was asked for, by the caller's own doing: not the program's fault
    little = lambda size: tapsys.cordon(programs, ["run", "--json", "--lang", "ruby", "-"], who, text="x = [" + "[1, {1 => 2}], " * 2500 + "]\nputs 1\n", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20)))
    for size in (20, 30):
        r = little(size)
        tap.ok(r["status"] == "refused" and "ulimit -v" in r["reason"] and r["error"]["category"] == "HOST", f"{who}: a judge that dies where the caller has {size} MB of addresses is told as the host's fault", r.story())
    r = little(80)
    tap.eq((r["status"], r["stdout"]), ("ok", "1\n"), f"{who}: a program that has room enough in 80 MB of addresses runs", r.story())
    r = run("begin\n  system('true')\nrescue SystemCallError => e\n  puts e.class\nend\nbegin\n  Thread.new { puts 't' }.join\nrescue ThreadError\n  puts 'none'\nend\n", "open", who)
    tap.ok("t\n" in r["stdout"] and "process" in {v["layer"] for v in r["violations"]}, f"{who}: open: no process is started, and threads are", r.story())
    r = run("50.times { Thread.new { 1 }.join }\nputs 'all'\n", "open", who)
    tap.eq((r["status"], r["stdout"]), ("ok", "all\n"), f"{who}: open: threads find the descriptors that Ruby keeps for them", r.story())
    r = run("begin\n  Thread.new { 1 }\nrescue ThreadError\n  puts 'none'\nend\n", "strict", who)
    tap.eq(r["stdout"], "none\n", f"{who}: strict: no thread is started", r.story())
    # the six, past the judge: the name is put together when it runs
    r = run("m = ('instance' + '_exec').to_sym.to_proc\nbegin\n  m.call(Object.new) { self.class.instance_methods }\n  puts 'ran'\nend\n", "standard", who)
    tap.eq(r["status"], "ok", f"{who}: standard: a block that runs as another object is no attack", r.story())


# the pipeline's order: sanitise, empty, structure of text, patterns, syntax, run
def order(who):
    for text, kind, rule in (("", "ValidationError", None), ("```ruby\n\n```\n", "ValidationError", None), ("def a; system('x')", "SecurityError", "rb.call.process"),
                             ("def a; 1", "ValidationError", "syntax")):
        r = tapsys.cordon(programs, ["run", "--json", "--lang", "ruby", "--intake", "text", "-"], who, text=text)
        tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == kind and (rule is None or rule in r.rules()),
               f"{who}: {text[:20]!r} ends as {kind}", r.story())
    for code in ("def hack\n  system('ls')\nend", "def hack\n  File.read('/etc/passwd')\nend", "def hack\n  eval('1+1')\nend", "def hack\n  require 'socket'\nend"):
        for profile in ("strict", "standard"):
            r = run(code, profile, who)
            tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == "SecurityError" and all(v["hint"] for v in r["violations"]),
                   f"{who}: {profile}: {code.splitlines()[1].strip()} is a SecurityError with a hint", r.story())


def collected(who):
    rows = {kind: [json.loads(line) for line in (SHARED / kind / "ruby.jsonl").read_text().splitlines()] for kind in ("attacks", "benign")}
    for profile, honest in (("standard", rows["benign"]), ("strict", rows["benign"][::3])):
        wrong = [(row["id"], r.story()) for row, r in tapsys.side_by_side(lambda row: run(row["code"], profile, who), honest)
                 if r["status"] != "ok" and not (profile == "strict" and r["status"] == "blocked" and r.rules() == ["rb.call.process"])]
        tap.eq(wrong, [], f"{who}: {profile}: each of {len(honest)} honest programs runs right, or strict names a plain-text rule")
    canaries = tapsys.Canaries(programs, who)
    for profile in PROFILES:
        wrong = [(row["id"], r.story()) for row, r in tapsys.side_by_side(lambda row: run(row["code"], profile, who, "--timeout", "10s", env=canaries.environment()), rows["attacks"])
                 if r["status"] not in ("ok", "error", "blocked", "timeout") or canaries.word in r.out + r.err or (profile == "strict" and "REACHED" in r["stdout"])]
        tap.eq(wrong, [], f"{who}: {profile}: each of {len(rows['attacks'])} attacks is refused or contained")
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
    canaries.close()


def document():
    root = pathlib.Path(__file__).resolve().parents[2]
    rules, page = (root / "src/worker/ruby/rules.h").read_text(), (root / "docs/ruby.md").read_text()
    ids = re.findall(r'X\("(rb\.[\w.-]+)"', rules)
    tap.eq(re.findall(r"^\| `(rb\.[\w.-]+)` \|", page, re.M), ids, "docs/ruby.md has each rule of the table, in its order")
    libraries = re.findall(r'^    X\("([^"]+)"\)', rules, re.M)
    tap.eq(re.findall(r"`([^`]+)`", page[page.index("Libraries:"):].split("\n\n")[0]), libraries, "docs/ruby.md has each library of the list, in its order")


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
tap = tapsys.Tap()
document()
for who in tapsys.users():
    works(who)
    given(who)
    held(who)
    order(who)
corpus.in_every_profile(tap, programs, "ruby", tapsys.users()[-1], run)
if (SHARED / "benign/ruby.jsonl").exists():
    collected(tapsys.users()[-1])
tap.done()
