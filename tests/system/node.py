# SPDX-License-Identifier: Apache-2.0
"""Programs that Node runs in the jail, and that our judge has read: `cordon run --lang node`.

Usage: node.py BUILD."""
import pathlib
import sys
import tempfile

import tapsys

tap, programs = tapsys.Tap(), tapsys.Programs(sys.argv[1])

USES = """const fs = require('fs'), path = require('path'), crypto = require('node:crypto'), assert = require('assert'), { EventEmitter } = require('events');
fs.mkdirSync('d', { recursive: true });
fs.writeFileSync(path.join('d', 'a.txt'), 'text');
assert.strictEqual(fs.readFileSync('/workspace/d/a.txt', 'utf8'), 'text');
const e = new EventEmitter();
e.on('x', (v) => console.log(v, crypto.createHash('sha256').update('a').digest('hex').slice(0, 6), Buffer.from('hi').toString('hex')));
e.emit('x', process.argv.slice(2).join());
setTimeout(() => console.log('late'), 1);
if (require.main === module) console.log(__filename);
return;
"""


def run(code, who, *options, profile="standard", **more):
    return tapsys.cordon(programs, ["run", "--json", "--lang", "node", "--profile", profile, "-c", code, *options], who, **more)


def works(who):
    r = run(USES, who, "one", "two")
    tap.ok(r["status"] == "ok" and r["stdout"] == "one,two ca978112 6869\n/workspace/main.js\nlate\n".replace("ca978112", "ca9781") and r["violations"] == [],
           f"{who}: a program uses Node's own modules, its words, timers and files of /workspace", r.story())
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        at.chmod(0o755)
        (at / "lib.mjs").write_text("export const x = await Promise.resolve(7);\n")
        (at / "p.mjs").write_text("import { x } from './lib.mjs';\nimport fs from 'node:fs';\nconsole.log(x, typeof fs.statSync, import.meta.url);\n")
        r = tapsys.cordon(programs, ["run", "--json", "--lang", "node", "--profile", "standard", "--in", str(at / "lib.mjs"), str(at / "p.mjs")], who)
        tap.eq((r["status"], r["stdout"]), ("ok", "7 function file:///workspace/p.mjs\n"), f"{who}: a module is one by its ending, and imports what --in gave", r.story())
    r = run("process.stdin.on('data', (d) => console.log('got', d.toString().trim()))", who, "--stdin", "-", text="line\n")
    tap.eq((r["status"], r["stdout"]), ("ok", "got line\n"), f"{who}: the program has its own input", r.story())
    r = run("console.log(1); process.exit(3)", who)
    tap.ok(r["status"] == "error" and r["exit_code"] == 3, f"{who}: the exit status of a program that Node runs is told", r.story())


def held(who):
    for code, rule in (("eval('1')", "js.name.eval"), ("new Function('1')", "js.name.Function"), ("({}).__proto__", "js.attr.__proto__"),
                       ("this.constructor.constructor('return process')()", "js.attr.constructor"), ("require('fs'); eval('1' +", "js.name.eval")):
        r = run("console.log('ran');\n" + code, who)
        tap.ok(r["status"] == "blocked" and r.rules() == [rule] and (r["error"] or {}).get("type") == "SecurityError" and not r["stdout"],
               f"{who}: Node is not started for what the judge refuses: {code}", r.story())
    r = run("console.log('ran'); let x = ;", who)
    tap.ok(r["status"] == "blocked" and not r["stdout"], f"{who}: Node is not started for a text that is no program", r.story())
    r = run("console.log(eval('6 * 7'))", who, profile="open")
    tap.eq((r["status"], r["stdout"]), ("ok", "42\n"), f"{who}: open judges nothing", r.story())
    r = run("""const said = [];
try { require('child_process').execSync('id'); said.push('process'); } catch (e) { said.push(e.code); }
try { require('fs').readFileSync('/etc/shadow'); said.push('file'); } catch (e) { said.push(e.code); }
try { require('fs').writeFileSync('/usr/x', ''); said.push('write'); } catch (e) { said.push(e.code); }
require('net').connect(80, '192.0.2.1').on('error', (e) => { said.push(e.code); console.log(said.join()); });
""", who)
    tap.ok(r["stdout"].startswith("EPERM,ENOENT,") and r["stdout"].strip().split(",")[2] in ("EROFS", "EACCES", "EPERM") and r["stdout"].strip().endswith("EPERM"),
           f"{who}: no other process, no file of the host, no write outside, no network", r.story())


def usage(who):
    for options, said in ((["--profile", "strict"], "--profile standard and open let it"), (["--profile", "standard", "--tool", "ReadFile"], "calls no tools"),
                          (["--profile", "standard", "--intake", "text"], "takes a program"), (["--profile", "standard", "--ro", "/usr/share/doc:/workspace"], "copied into /workspace")):
        r = tapsys.cordon(programs, ["run", "--lang", "node", *options, "-c", "1"], who)
        tap.ok(r.code == 125 and said in r.err, f"{who}: --lang node {' '.join(options)} is refused by name", r.story())


if not pathlib.Path("/usr/bin/node").exists():
    tap.skip("programs that Node runs", "no /usr/bin/node")
else:
    for who in tapsys.users():
        works(who)
    for part in (held, usage):
        part(tapsys.users()[-1])
tap.done()
