// SPDX-License-Identifier: Apache-2.0
// A text and what it imports -> one answer: each text parsed and judged, the graph resolved, and scripts written of the judged trees.
// JavaScriptCore has no hook for modules in its C interface, so they are linked by a script of ours (run_modules.js), one script
// for each file: that is what gives each its own name and lines in a stack.
import { parse, hasTypes, DEPTH, TooDeep, TooLong } from './parse.js';
import { analyse } from './scope.js';
import { check, constant } from './check.js';
import { checkText } from './text.js';
import { finding, holds, isForNode } from './rules.js';
import { write } from './write.js';
import { persist, wrapAwait, hasTopAwait, showsValue, giveWay } from './session.js';
import { erase, dropUnusedImports } from './typescript.js';
import { resolvePath, candidates, tableOf, resolveExport, exportsOf, WORKSPACE } from './modules.js';
import { moduleBody, replaceUses, replaceImportCalls } from './rewrite.js';
import { runModules } from './run_modules.js';
import { walk, tooDeep, call, identifier, literal, member, statement, array } from './nodes.js';

const FILES = 500;

const languageOf = (path, options, isEntry) => (/\.[mc]?ts$/.test(path) ? 'typescript' : isEntry ? options.language || 'javascript' : 'javascript');

// One text -> {tree, goal, names, findings, syntax}
const read = (text, path, options, mode, language) => {
  // a keyword is never spelled with an escape: a text without the word has no such form
  const out = { path, tree: null, goal: mode === 'module' ? 'module' : 'script', names: null, findings: [], syntax: null, language, mayImport: text.includes('import'), mayAwait: text.includes('await') };
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    out.findings.push(finding('js.limit.text', 'NUL', { line: text.slice(0, nul).split('\n').length, column: 0 }, path));
    return out;
  }
  if (language === 'typescript' && !hasTypes) {
    out.findings.push(finding('ts.parser', path, { line: 1, column: 0 }, path));
    return out;
  }
  try {
    Object.assign(out, parse(text, language, mode, isForNode(options)));
  } catch (error) {
    if (error instanceof SyntaxError && error.loc && !/^Not enough stack space/.test(error.message)) {
      out.syntax = { message: error.message.replace(/ \(\d+:\d+\)$/, ''), line: error.loc.line, column: error.loc.column + 1, path };
      out.findings = checkText(text, options, path);
    } else if (error instanceof TooLong) {
      out.findings.push(finding('js.limit.steps', 'parser', { line: 1, column: 0 }, path));
    } else if (error instanceof TooDeep || error instanceof RangeError || error instanceof SyntaxError) {
      out.findings.push(finding('js.limit.depth', 'nesting', { line: 1, column: 0 }, path));
    } else throw error;
    return out;
  }
  const deep = tooDeep(out.tree, DEPTH, language === 'typescript');
  if (deep) {
    out.findings.push(finding('js.limit.depth', String(DEPTH), deep.loc.start, path));
    return out;
  }
  if (language === 'typescript') erase(out.tree, out.findings, path);
  out.names = analyse(out.tree);
  out.findings.push(...check(out.tree, out.names, options, path));
  if (language === 'typescript' && out.goal === 'module') dropUnusedImports(out.tree, out.names);
  if (out.goal === 'module')
    for (const use of out.names.free)
      if (use.node.name === 'arguments' && !use.inFunction) out.findings.push(finding('js.form.arguments', 'arguments', use.node.loc.start, path));
  return out;
};

// What a text asks for: {specifier, path: that it means or null, node, dynamic}
const requestsOf = (unit, options) => {
  const requests = [];
  if (isForNode(options)) return requests;
  const ask = (specifier, node, dynamic) => {
    const path = resolvePath(specifier, unit.path);
    const denied = (options.deny || []).find((rule) => rule.kind === 'module-deny' && rule.name === specifier);
    if (denied) unit.findings.push({ ...finding('js.module.specifier', specifier, node.loc.start, unit.path), rule: denied.id });
    else if (path === null && !(dynamic && !holds('js.call.require', options.rules || 'strict')))
      unit.findings.push(finding('js.module.specifier', specifier, node.loc.start, unit.path));
    requests.push({ specifier, path, node, dynamic });
  };
  if (unit.goal === 'module')
    for (const node of unit.tree.body)
      if (node.source && /^(?:Import|Export)/.test(node.type)) {
        for (const attribute of node.attributes || [])
          if ((attribute.key.name || attribute.key.value) !== 'type' || attribute.value.value !== 'json')
            unit.findings.push(finding('js.module.attributes', attribute.key.name || String(attribute.key.value), node.loc.start, unit.path));
        ask(node.source.value, node, false);
      }
  if (unit.mayImport) walk(unit.tree, (node) => {
    if (node.type !== 'ImportExpression') return;
    const specifier = constant(node.source);
    if (specifier !== null) ask(specifier, node, true);
  });
  return requests;
};

const jsonUnit = (path, text) => {
  let value;
  try {
    value = JSON.stringify(JSON.parse(text));
  } catch (error) {
    return { path, syntax: { message: `no JSON: ${error.message}`, line: 1, column: 1, path }, findings: [], requests: [], goal: 'module', names: null, tree: null };
  }
  return { path, json: value, syntax: null, findings: [], requests: [], goal: 'module', names: null, tree: null };
};

// Entry and files -> every text of the graph that is there, with what is wanted next.
const collect = (entry, files, options) => {
  const units = [], at = new Map(), needs = new Set(), missing = [];
  const add = (path, isEntry) => {
    if (at.has(path)) return;
    at.set(path, units.length);
    const language = languageOf(path, options, isEntry);
    const mode = isEntry ? options.mode || 'script' : 'module';
    const unit = !isEntry && path.endsWith('.json') ? jsonUnit(path, files[path]) : read(files[path], path, options, /\.m[jt]s$/.test(path) && mode === 'script' ? 'module' : mode, language);
    unit.requests = unit.tree && unit.findings.every((f) => f.rule !== 'js.node.unknown' && f.rule !== 'js.limit.depth') ? requestsOf(unit, options) : [];
    unit.of = new Map();
    units.push(unit);
  };
  add(entry, true);
  for (let i = 0; i < units.length; i++) {
    if (units.length > FILES) {
      units[0].findings.push(finding('js.module.count', String(FILES), { line: 1, column: 0 }, entry));
      break;
    }
    const unit = units[i];
    for (const request of unit.requests) {
      if (request.path === null) continue;
      const tried = candidates(request.path, unit.language);
      const found = tried.find((path) => typeof files[path] === 'string');
      const unknown = tried.find((path) => !Object.hasOwn(files, path));
      if (found !== undefined && (unknown === undefined || tried.indexOf(found) < tried.indexOf(unknown))) {
        add(found, false);
        unit.of.set(request.specifier, at.get(found));
      } else if (unknown !== undefined) needs.add(unknown);
      else missing.push({ rule: 'js.module.missing', specifier: request.specifier, path: request.path, name: null, from: unit.path, line: request.node.loc.start.line, column: request.node.loc.start.column + 1, dynamic: request.dynamic, message: `Cannot find module '${request.specifier}' imported from ${unit.path}` });
    }
  }
  return { units, needs: [...needs], missing };
};

// Names that modules take and others do not give, found before anything runs.
const unresolved = (graph) => {
  const missing = [];
  graph.forEach((unit, i) => {
    const wanted = [...unit.table.imports.values(), ...unit.table.indirect.values()];
    for (const { source, name, at } of new Set(wanted)) {
      const target = unit.of.get(source);
      if (target === undefined || name === null) continue;
      const found = resolveExport(graph, target, name);
      if (found && found !== 'ambiguous') continue;
      missing.push({
        rule: 'js.module.export', specifier: source, path: graph[target].path, name, from: unit.path, line: at.loc.start.line, column: at.loc.start.column + 1, dynamic: false,
        message: found === 'ambiguous' ? `The requested module '${source}' contains conflicting star exports for name '${name}'` : `The requested module '${source}' does not provide an export named '${name}'`,
      });
    }
  });
  return missing;
};

const EMPTY = () => ({ imports: new Map(), locals: new Map(), indirect: new Map(), stars: [], sources: [] });

// A word that no name of the program begins with; all of what we add is called by it.
const freshWord = (units) => {
  let hash = 2166136261;
  const words = new Set();
  for (const unit of units) {
    for (let i = 0; i < unit.path.length; i++) hash = Math.imul(hash ^ unit.path.charCodeAt(i), 16777619);
    if (unit.tree) walk(unit.tree, (node) => {
      if (node.type === 'Identifier') words.add(node.name);
      if (node.type === 'Identifier' || node.type === 'Literal') hash = Math.imul(hash ^ (node.start + String(node.name || node.value).length), 16777619);
    });
  }
  let word = '$cordon' + (hash >>> 0).toString(36);
  const used = (text) => [...words].some((name) => name.startsWith(text));
  while (used(word)) word += '$';
  return word;
};

const RUN = runModules.toString().split('\n').map((line) => line.trim()).filter((line) => !line.startsWith('//')).join('\n');

const plain = (value) => JSON.stringify(value).replace(/[\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16));

// One script for each module: its maker. What stands before its first line stands on that line.
const writeModule = (unit, i, word) => {
  const open = `(function (${word}e, ${word}c, ${word}n, ${word}m, ${word}i) { "use strict"; return ${unit.async ? 'async ' : ''}function* () { `;
  if (unit.json !== undefined) return `${open}let ${word}d; ${word}e(${i}, { ${word}d: () => ${word}d }); yield; ${word}d = JSON.parse(${plain(unit.json)}); }; })`;
  return write(moduleBody(unit, i, word), open, '}; })');
};

// The graph without its entry where that is a script: its modules, then the script that links them, as the end of LINKED says. -> records
const writeGraph = (scripts, graph, word, skip, linked) => {
  graph.forEach((unit, i) => { scripts.push({ kind: 'module', path: unit.path, text: i === skip ? '(function () { return function* () { yield; }; })' : writeModule(unit, i, word) }); });
  const records = graph.map((unit, i) => ({
    path: unit.path,
    async: !!unit.async,
    deps: [...new Set(unit.requests.filter((r) => !r.dynamic && unit.of.has(r.specifier)).map((r) => unit.of.get(r.specifier)))],
    exports: exportsOf(graph, i),
  }));
  scripts.push({ kind: 'link', path: '', text: `(function (makers) { ${linked(`(${RUN})(makers, ${plain(records)})`)} })` });
  return records;
};

const reachesAsync = (graph, records, root) => {
  const seen = new Set(), stack = [root];
  while (stack.length > 0) {
    const i = stack.pop();
    if (seen.has(i)) continue;
    seen.add(i);
    if (graph[i].async) return true;
    stack.push(...records[i].deps);
  }
  return false;
};

const prepareGraph = (units, word) => {
  for (const unit of units) {
    unit.table = unit.json !== undefined ? { ...EMPTY(), locals: new Map([['default', `${word}d`]]) } : unit.goal === 'module' ? tableOf(unit.tree, `${word}d`) : EMPTY();
    unit.async = unit.goal === 'module' && unit.tree !== null && unit.mayAwait && hasTopAwait(unit.tree);
  }
  return units;
};

// ---- the three kinds of scripts ----
const moduleScripts = (graph, word, answer) => {
  graph.forEach((unit, i) => {
    if (!unit.tree) return;
    replaceUses(unit, graph, word);
    if (unit.mayImport) replaceImportCalls(unit.tree, (node) => call(node, identifier(node, `${word}i`), [literal(node, unit.path), node.source]));
  });
  const records = writeGraph(answer.scripts, graph, word, -1, (made) => `return ${made}.run(0);`);
  answer.async = reachesAsync(graph, records, 0);
};

const plainScript = (graph, word, answer, session) => {
  const [unit] = graph;
  const { tree, names } = unit;
  const isModule = unit.goal === 'module';
  let before = [];
  if (word !== null) {
    for (const other of graph.slice(1)) {
      if (!other.tree) continue;
      replaceUses(other, graph, word);
      if (other.mayImport) replaceImportCalls(other.tree, (node) => call(node, identifier(node, `${word}i`), [literal(node, other.path), node.source]));
    }
    replaceImportCalls(tree, (node) => call(node, member(node, identifier(node, word), 'import'), [literal(node, unit.path), node.source]));
    const records = writeGraph(answer.scripts, graph, word, 0, (made) => `Object.defineProperty(globalThis, ${JSON.stringify(word)}, { configurable: true, value: ${made} });`);
    if (isModule) before = bindImports(unit, graph, word, records);
  }
  if (isModule)
    tree.body = tree.body.filter((node) => node.type !== 'ImportDeclaration' && node.type !== 'ExportAllDeclaration' && !(node.type === 'ExportNamedDeclaration' && !node.declaration))
      .map((node) => (node.type === 'ExportNamedDeclaration' ? node.declaration : node.type === 'ExportDefaultDeclaration' ? plainDefault(node) : node));
  answer.value = showsValue(tree);
  tree.body.unshift(...before);
  const strict = isModule ? '"use strict"; ' : '';
  if ((unit.mayAwait || before.length > 0) && hasTopAwait(tree)) {
    const outside = wrapAwait(tree, names, answer.value);
    answer.async = true;
    if (outside.body.length > 0) answer.scripts.push({ kind: 'program', path: unit.path, text: write(outside, strict) });
  } else if (session) persist(tree, names);
  answer.scripts.push({ kind: 'program', path: unit.path, text: write(tree, strict) });
};

// In a session nothing imports what a block exports: the declaration stays.
const plainDefault = (node) => (/Declaration$/.test(node.declaration.type) && node.declaration.id ? node.declaration : statement(node, node.declaration.type === 'FunctionDeclaration' ? { ...node.declaration, type: 'FunctionExpression' } : node.declaration.type === 'ClassDeclaration' ? { ...node.declaration, type: 'ClassExpression' } : node.declaration));

// WORD.run(module); ... WORD.bind([[name, module, local]...])
const bindImports = (unit, graph, word, records) => {
  const at = unit.tree.body[0];
  const runs = records[0].deps.map((dep) => {
    const one = call(at, member(at, identifier(at, word), 'run'), [literal(at, dep)]);
    return statement(at, reachesAsync(graph, records, dep) ? { type: 'AwaitExpression', loc: at.loc, argument: one } : one);
  });
  const rows = [];
  for (const [local, { source, name }] of unit.table.imports) {
    const target = unit.of.get(source);
    const found = name === null ? { index: target, local: null } : resolveExport(graph, target, name);
    rows.push(array(at, [literal(at, local), literal(at, found.index), found.local === null ? { type: 'Literal', value: null, loc: at.loc } : literal(at, found.local)]));
  }
  return [...runs, statement(at, call(at, member(at, identifier(at, word), 'bind'), [array(at, rows)]))];
};

// A stack that ends in our own steps ends in a refusal.
export const linkGraph = (entry, given, options) => {
  try {
    return linked(entry, given, options);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { ...blank(), findings: [finding('js.limit.depth', 'nesting', { line: 1, column: 0 }, entry)] };
  }
};

const blank = () => ({ syntax: null, findings: [], scripts: [], goal: 'script', value: false, async: false, imports: [], needs: [], missing: [] });

const linked = (entry, given, options) => {
  const path = entry.startsWith('/') ? entry : `${WORKSPACE}/${entry}`;
  const files = { ...given, [path]: given[entry] !== undefined ? given[entry] : given[path] };
  const answer = blank();
  if (typeof files[path] !== 'string') {
    answer.needs = Object.hasOwn(files, path) && files[path] === null ? [] : [path];
    if (answer.needs.length === 0) answer.missing.push({ rule: 'js.module.missing', specifier: entry, path, name: null, from: '', line: 0, column: 0, dynamic: false, message: `Cannot find module '${entry}'` });
    return answer;
  }
  const { units, needs, missing } = collect(path, files, options);
  answer.goal = units[0].goal;
  answer.needs = needs;
  answer.missing = missing;
  for (const unit of units) {
    answer.findings.push(...unit.findings);
    if (!answer.syntax) answer.syntax = unit.syntax;
    for (const request of unit.requests) answer.imports.push({ specifier: request.specifier, line: request.node.loc.start.line, column: request.node.loc.start.column + 1, path: unit.path, dynamic: request.dynamic });
  }
  if (answer.findings.length > 0 || answer.syntax || needs.length > 0 || missing.some((one) => !one.dynamic)) return answer;
  if (isForNode(options)) return { ...answer, scripts: [{ kind: 'program', path, text: '0;' }] };
  const session = options.mode === 'session', runsModules = units[0].goal === 'module' && !session;
  const links = runsModules || units.length > 1 || answer.imports.length > 0 || (units[0].mayImport && replaceImportCalls(units[0].tree, null) > 0);
  const word = links ? freshWord(units) : null;
  const graph = prepareGraph(units, word);
  answer.missing.push(...unresolved(graph));
  if (answer.missing.some((one) => !one.dynamic)) return answer;
  if (session && options.interrupts) for (const unit of graph) if (unit.tree) giveWay(unit.tree);
  if (runsModules) moduleScripts(graph, word, answer);
  else plainScript(graph, word, answer, session);
  return answer;
};

// One text by itself: what it imports is needed, and said so.
export const judgeText = (source, options) => {
  const path = options.path || `${WORKSPACE}/main.js`;
  return linkGraph(path, { [path]: source }, options);
};
