// SPDX-License-Identifier: Apache-2.0
// The bundled judge in a context that has nothing but the language, under Node; TAP. Usage: test_judge.mjs BUNDLE PARTS
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import util from 'node:util';
import vm from 'node:vm';
import { pathToFileURL } from 'node:url';
import { rules, broken, own, forNode, always, alwaysMissing, deep } from './rules.mjs';
import { written, lines } from './written.mjs';
import { modules, missing } from './modules.mjs';
import { sessions, sessionFiles } from './sessions.mjs';
import { types, typeFiles } from './types.mjs';

const [bundle, parts] = process.argv.slice(2);
const { parse } = await import(pathToFileURL(path.join(parts, 'acorn/dist/acorn.mjs')));
const bare = vm.createContext(Object.create(null));
vm.runInContext(fs.readFileSync(bundle, 'utf8'), bare);
const judge = vm.runInContext('CordonJudge', bare);
const ours = (answer) => JSON.parse(JSON.stringify(answer)); // of this context
const link = (entry, files, options = {}) => ours(judge.link(entry, files, JSON.stringify(options)));
const judged = (source, options = {}) => ours(judge.judge(source, JSON.stringify(options)));
const refused = (answer) => answer.scripts.length === 0;
const script = (answer) => answer.scripts.map((one) => one.text).join('\n');
// As the worker evaluates the scripts of an answer (src/worker/javascript/program.c).
const runs = (answer, evaluate = (text, filename) => vm.runInThisContext(text, { filename })) => {
  const modules = [];
  let value;
  for (const { kind, path: filename, text } of answer.scripts) {
    value = evaluate(text, filename);
    if (kind === 'module') modules.push(value);
    else if (kind === 'link') value = value(modules);
  }
  return value;
};

let count = 0, failed = 0;
const ok = (good, name, why) => {
  count++;
  if (!good) failed++;
  console.log(`${good ? 'ok' : 'not ok'} ${count} - ${name.slice(0, 300).replace(/[#\n\r\u2028\u2029\0]/g, ' ')}`);
  if (!good && why !== undefined) console.log(`# ${String(why).replace(/\n/g, '\n# ')}`);
};
const same = (got, wanted, name) => ok(util.isDeepStrictEqual(got, wanted), name, `got    ${util.inspect(got)}\nwanted ${util.inspect(wanted)}`);

// ---- rules ----
const verdict = (answer) => (answer.findings.length > 0 ? `${answer.findings[0].rule} ${answer.findings[0].line}:${answer.findings[0].column}` : answer.syntax ? 'syntax' : null);
const agrees = (answer, wanted) => {
  const got = verdict(answer);
  if (wanted === null || wanted === 'syntax') return got === wanted && (wanted === null) === (!refused(answer) || answer.needs.length > 0);
  const all = answer.findings.map((f) => (wanted.includes(' ') ? `${f.rule} ${f.line}:${f.column}` : f.rule));
  return all.includes(wanted) && refused(answer) && answer.findings.every((f) => f.name && f.detail && f.hint !== undefined);
};
for (const [source, set, wanted] of rules) {
  const answer = judged(source, { rules: set });
  ok(agrees(answer, wanted), `rules ${set}: ${source} -> ${wanted || 'runs'}`, verdict(answer));
}
for (const [source, set, wanted] of broken) {
  const answer = judged(source, { rules: set });
  ok(agrees(answer, wanted) && answer.syntax !== null, `broken text, ${set}: ${source} -> ${wanted}`, `${verdict(answer)} ${util.inspect(answer.syntax)}`);
}
for (const [source, deny, wanted] of own) {
  const answer = judged(source, { rules: 'none', deny });
  ok(agrees(answer, wanted), `a profile's own rule: ${source} -> ${wanted || 'runs'}`, verdict(answer));
}
for (const [source, wanted] of forNode) {
  const answer = judged(source, { rules: 'standard', deny: [{ kind: 'module-allow', name: 'node', id: 'js.import.node' }] });
  const got = answer.findings.length > 0 ? answer.findings[0].rule : answer.syntax ? 'syntax' : null;
  ok(got === wanted && script(answer) === (wanted ? '' : '0;') && answer.needs.length === 0, `for Node: ${source} -> ${wanted || 'passes'}`, got);
}
for (const set of ['none', 'standard', 'strict']) {
  const linked = (files) => link(`/workspace/${Object.keys(files)[0]}`, Object.fromEntries(Object.entries(files).map(([file, text]) => [`/workspace/${file}`, text])), { rules: set });
  for (const [rule, files] of always) ok(agrees(linked(files), rule), `every set of rules has ${rule}: ${set}`, verdict(linked(files)));
  for (const [rule, files] of alwaysMissing) ok(refused(linked(files)) && linked(files).missing[0].rule === rule, `every set of rules has ${rule}: ${set}`, util.inspect(linked(files)));
}
for (const [name, make] of Object.entries(deep)) {
  const good = judged(make(100));
  ok(!refused(good), `${name}, nested 100 deep, are judged`, verdict(good));
  const bad = judged(make(4000));
  ok(bad.findings.some((f) => f.rule === 'js.limit.depth') && refused(bad), `${name}, nested 4000 deep, are refused by name`, verdict(bad));
}
{
  // time: steps of the parser are bounded for each byte, so eight times the text takes about eight times the work, where a square would take 64 times; the room between is for a busy machine
  const grow = (make) => { const t = (n) => { const began = process.cpuUsage(); judged(make(n)); const used = process.cpuUsage(began); return used.user + used.system; }; t(500); return Math.min(t(4000), t(4000), t(4000)) / Math.min(t(500), t(500), t(500)); };
  for (const [name, make] of Object.entries({ statements: (n) => 'a=1;'.repeat(n), functions: (n) => 'function f(){return a}\n'.repeat(n), 'functions with directives': (n) => 'function f(){"a";"b";return a}\n'.repeat(n) })) {
    const ratio = grow(make);
    ok(ratio < 32, `eight times the ${name} cost the judge about eight times the CPU, not sixty-four times`, ratio);
  }
}

// ---- what is written is what was judged ----
const shape = (text) => JSON.stringify(parse(text, { ecmaVersion: 2025, allowAwaitOutsideFunction: false }), (key, value) =>
  (key === 'start' || key === 'end' || key === 'raw' && typeof value === 'string' || key === 'directive' ? undefined : typeof value === 'bigint' ? `${value}n` : value instanceof RegExp ? undefined : value === Infinity ? 'Infinity' : value));
const rawTemplates = (text) => JSON.stringify(parse(text, { ecmaVersion: 2025 }), (key, value) => (value && value.type === 'TemplateElement' ? value.value : undefined === value ? undefined : typeof value === 'bigint' ? 0 : value)) && true;
for (const text of written) {
  const answer = judged(text, { rules: 'none' });
  if (refused(answer)) { ok(false, `written: ${text}`, util.inspect(answer.syntax || answer.findings)); continue; }
  ok(rawTemplates(script(answer)) && shape(script(answer)) === shape(text), `the script has the tree of: ${text}`, script(answer));
}
same(/eval|\\u/.test(script(judged('var \\u0065v\\u0061lx = "\\u0041"', { rules: 'none' })).replace('evalx', '')), false, 'no escape of the text is in the script');
same(script(judged('1 // eval("x")\n/* eval */', { rules: 'strict' })), '1; ', 'no comment of the text is in the script');
for (const [source, shows] of [['"use strict"; function f() { return this } f()', true], ["'use\\x20strict'; (function () { return this })()", true]])
  same(vm.runInNewContext(script(judged(source))) === undefined, vm.runInNewContext(source) === undefined, `a directive is one only where the text said so: ${source}`);

// ---- lines: those of the script are those of the text ----
{
  const placeOf = (answer) => {
    const context = vm.createContext();
    try { runs(answer, (text, filename) => vm.runInContext(text, context, { filename })); } catch (error) { return /(?:\()?(\/workspace\/[^:]*:\d+):\d+/.exec(error.stack)[1]; }
    return null;
  };
  for (const [source, line, name] of lines) same(placeOf(judged(source)), `/workspace/main.js:${line}`, `the line of an error: ${name}`);
  const answer = link('/workspace/main.mjs', { '/workspace/main.mjs': '\n\nimport { f } from "./m.mjs";\n\nf();', '/workspace/m.mjs': '\n\n\n\nexport function f() {\n\n  null.x;\n}' }, { rules: 'none' });
  same(placeOf(answer), '/workspace/m.mjs:7', 'an error in a module has its file and its line in it');
  const own = link('/workspace/main.mjs', { '/workspace/main.mjs': 'import { f } from "./m.mjs";\n\nf();\n\nnull.x', '/workspace/m.mjs': 'export function f() {}' }, { rules: 'none' });
  same(placeOf(own), '/workspace/main.mjs:5', 'an error in a module that imports has the line of its text');
  // every statement and every call argument of each text that is written stands on its line
  const linesOf = (text) => {
    const found = [];
    const visit = (node) => {
      if (!node || typeof node !== 'object') return;
      if (Array.isArray(node)) { node.forEach(visit); return; }
      if (/Statement$|Declaration$|^CallExpression$|^NewExpression$/.test(node.type || '') && node.type !== 'BlockStatement') found.push(`${node.type} ${node.loc.start.line}`);
      for (const key of Object.keys(node)) if (key !== 'loc') visit(node[key]);
    };
    visit(parse(text, { ecmaVersion: 2025, locations: true }));
    return found;
  };
  for (const text of [fs.readFileSync(new URL('./spread.js', import.meta.url), 'utf8'), fs.readFileSync(new URL('./spread.js', import.meta.url), 'utf8').replaceAll('\n', '\r\n')])
    same(linesOf(script(judged(text, { rules: 'none' }))), linesOf(text), 'every statement and every call of a text over many lines stands on its own line');
}

// ---- modules, side by side with Node ----
const settle = () => new Promise((done) => setTimeout(done, 5));
const logged = async (run) => {
  const out = [];
  globalThis.log = (...values) => out.push(values.map((value) => util.inspect(value)).join(' '));
  try { await run(); } catch (error) { out.push(`${error.name}: ${error.message}`); }
  await settle();
  return out;
};
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cordon-judge-'));
const linkAll = (files, entry, options) => {
  const given = { [entry]: files[entry] };
  for (let rounds = 0; rounds < 20; rounds++) {
    const answer = link(entry, given, options);
    if (answer.needs.length === 0) return answer;
    for (const need of answer.needs) given[need] = files[need] === undefined ? null : files[need];
  }
  throw new Error('link asks without end');
};
let number = 0;
for (const [name, files] of Object.entries(modules)) {
  const own = path.join(folder, String(number++));
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(own, file)), { recursive: true });
    fs.writeFileSync(path.join(own, file), text);
  }
  const wanted = await logged(() => import(pathToFileURL(path.join(own, 'main.mjs'))));
  const answer = linkAll(Object.fromEntries(Object.entries(files).map(([file, text]) => [`/workspace/${file}`, text])), '/workspace/main.mjs', { mode: 'module', rules: 'standard' });
  if (refused(answer)) { ok(false, `modules: ${name}`, util.inspect([answer.syntax, answer.findings, answer.missing])); continue; }
  const got = await logged(() => runs(answer));
  same(got, wanted, `modules, as Node: ${name}`);
  ok(wanted.length > 0, `modules: Node itself said something: ${name}`);
}
fs.rmSync(folder, { recursive: true });
for (const [name, files, wanted] of missing) {
  const answer = linkAll(Object.fromEntries(Object.entries(files).map(([file, text]) => [`/workspace/${file}`, text])), '/workspace/main.mjs', { mode: 'module' });
  same([answer.missing.map((one) => one.name || one.path), script(answer), answer.findings.length], [wanted, '', 0], `the check finds ${name}, before anything runs`);
  ok(answer.missing.every((one) => one.line > 0 && one.from.startsWith('/workspace/') && one.message.includes(one.specifier)), `the check says where: ${name}`);
}
{
  const json = linkAll({ '/workspace/main.mjs': 'import d from "./d.json" with { type: "json" }; log(d.a[1])', '/workspace/d.json': '{"a": [1, "\u2028"]}' }, '/workspace/main.mjs', { mode: 'module' });
  same(await logged(() => runs(json)), ["'\\u2028'"].map(() => util.inspect('\u2028')), 'a JSON file is a module with a default');
  const answer = linkAll({ '/workspace/main.js': 'import x from "./m.mjs"; log(x)', '/workspace/m.mjs': 'export default 1; eval("2")' }, '/workspace/main.js', { rules: 'standard' });
  same([answer.findings[0].rule, answer.findings[0].path, script(answer)], ['js.name.eval', '/workspace/m.mjs', ''], 'a rule holds in what is imported, and its file is named');
  same(judged('export const a = 1').goal, 'module', 'module syntax makes a script a module');
  same(judged('const a = 1').goal, 'script', 'a text without module syntax stays a script');
  const many = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`/workspace/${i}.mjs`, `import "./${i + 1}.mjs"`]));
  same(linkAll2(many)[0], 'js.module.count', 'a program of 600 files is refused by name');
}
function linkAll2(files) { return link('/workspace/0.mjs', files, { mode: 'module' }).findings.map((f) => f.rule); }

// ---- sessions ----
for (const [name, blocks] of sessions) {
  const context = vm.createContext({ $cordonFlag: [0], $cordonGiveWay() {} }); // as the worker defines them
  const shown = [];
  for (const [source] of blocks) {
    const answer = linkAll({ '/workspace/main.js': source, ...sessionFiles }, '/workspace/main.js', { mode: 'session', rules: 'standard' });
    if (refused(answer)) { shown.push(util.inspect([answer.syntax, answer.findings, answer.missing])); continue; }
    try {
      let value = runs(answer, (text) => vm.runInContext(text, context));
      if (answer.async) { value = await value; if (answer.value) value = value.value; }
      shown.push(!answer.value ? undefined : value && typeof value.then === 'function' ? 'promise' : typeof value === 'object' ? 'object' : value);
    } catch (error) { shown.push(error.name); }
  }
  same(shown, blocks.map(([, wanted]) => wanted), `session: ${name}`);
}

// ---- TypeScript ----
for (const [source, wanted, isRefused] of types) {
  const answer = linkAll({ '/workspace/main.ts': source, ...typeFiles }, '/workspace/main.ts', { language: 'typescript', rules: 'standard' });
  if (isRefused) { ok(agrees(answer, wanted), `TypeScript: ${source} -> ${wanted}`, `${verdict(answer)} ${script(answer)}`); continue; }
  if (refused(answer)) { ok(false, `TypeScript: ${source}`, util.inspect([answer.syntax, answer.findings, answer.missing])); continue; }
  const out = [];
  let error = '';
  const context = vm.createContext({ log: (...values) => out.push(values.map(String).join(' ')) });
  try { runs(answer, (text) => vm.runInContext(text, context)); } catch (e) { error = e.stack; }
  same(out.join('\n'), wanted, `TypeScript: ${source}`);
  if (error) console.log(`# ${error.replace(/\n/g, '\n# ')}`);
}
console.log(`1..${count}`);
process.exitCode = failed === 0 ? 0 : 1;
