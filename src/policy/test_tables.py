# SPDX-License-Identifier: Apache-2.0
"""The generator of the tables refuses lines that say too little, say it twice, or mean nothing."""
import pathlib
import subprocess
import sys
import tempfile

tables, header = sys.argv[1:3]
count = failures = 0
HEAD = "profile: p\nsummary: s\nimports: any\nguards: false\nthreads: false\ncompute_only: false\nfiles: false\nsource_max: 10\nrules:\n"
GOOD = "  - {kind: call-deny, name: eval, id: py.call.eval, reason: r, hint: h}\n"


def run(text):
    with tempfile.TemporaryDirectory() as d:
        source, out = pathlib.Path(d, "p.yaml"), pathlib.Path(d, "out.c")
        source.write_text(text)
        p = subprocess.run(["/usr/bin/python3", tables, header, out, source], capture_output=True, text=True)
        return p.returncode, p.stderr, out.read_text() if out.exists() else ""


def case(name, text, expect):
    global count, failures
    count += 1
    code, err, out = run(text)
    good = (code == 0 and expect in out) if expect.startswith("{") else (code != 0 and expect in err)
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good:
        print(f"# exit {code}, wanted {expect!r}, stderr {err!r}")


case("a good line becomes a row", HEAD + GOOD, '{POLICY_CALL_DENY, 0, 5, 18, 20}, /* eval */')
case("equal texts stand there once", HEAD + GOOD.replace("hint: h", "hint: r"), '{POLICY_CALL_DENY, 0, 5, 18, 18}, /* eval */')
case("a quote is escaped", HEAD + GOOD.replace("hint: h", "hint: 'say \"x\" é'"), '{POLICY_CALL_DENY')
case("an unknown kind", HEAD + GOOD.replace("call-deny", "call-denied"), ":10: no such kind: call-denied")
case("an unknown construct", HEAD + GOOD.replace("call-deny, name: eval", "construct-deny, name: goto"), "no such construct: goto")
case("a rule twice", HEAD + GOOD + GOOD, ":11: call-deny eval comes twice")
case("an id twice", HEAD + GOOD + GOOD.replace("name: eval", "name: exec"), ":11: the id py.call.eval comes twice")
case("no hint on a refusal", HEAD + GOOD.replace("hint: h", "hint: ''"), "a refusal has a hint")
case("no reason", HEAD + GOOD.replace("reason: r", "reason: ''"), "name, id and reason say something")
case("a key too many", HEAD + GOOD.replace("hint: h", "hint: h, why: w"), "a rule has kind, name, id, reason and hint")
case("a key twice", HEAD + GOOD.replace("hint: h", "hint: h, hint: i"), "'hint' comes twice")
case("a value that is no string", HEAD + GOOD.replace("name: eval", "name: 3"), "a rule's values are strings")
case("a star in the middle", HEAD + GOOD.replace("name: eval", "name: 'e*l'"), "a pattern has one * and that is its end")
case("a pattern of modules", HEAD + GOOD.replace("call-deny, name: eval", "module-deny, name: 'os*'"), "module-deny takes no pattern")
case("a bad module name", HEAD + GOOD.replace("call-deny, name: eval", "module-deny, name: 'os..path'"), "no module name: os..path")
case("a member without a module", HEAD + GOOD.replace("call-deny, name: eval", "member-deny, name: path"), "no module.member: path")
case("an id without a language", HEAD + GOOD.replace("id: py.call.eval", "id: eval"), "an id is words with dots")
case("a profile without a switch", HEAD.replace("guards: false\n", "") + GOOD, "a profile has exactly")
case("a switch that is none", HEAD.replace("guards: false", "guards: 1") + GOOD, "a profile has exactly")
case("an unknown import mode", HEAD.replace("imports: any", "imports: some") + GOOD, "imports is listed or any")
case("no size", HEAD.replace("source_max: 10", "source_max: 0") + GOOD, "source_max is 1 byte to 64 MiB")
case("a text too long", HEAD + GOOD.replace("hint: h", "hint: " + "h" * 1025), "shorter than 1024 bytes")
print(f"1..{count}")
sys.exit(failures > 0)
