// SPDX-License-Identifier: Apache-2.0
// What a module asks for and gives: its imports and exports as data, paths, and the resolution of names over the graph, by ECMA-262.
import { bound } from './nodes.js';

export const WORKSPACE = '/workspace';

// A specifier -> the path that it means, or null: it is not of the workspace.
export const resolvePath = (specifier, from) => {
  let text = specifier;
  if (text.startsWith('file:///')) text = text.slice(7);
  if (!/^(?:\.\.?\/|\/)/.test(text) || /[\0?#]/.test(text)) return null;
  const parts = [];
  for (const part of (text.startsWith('/') ? text : from.slice(0, from.lastIndexOf('/') + 1) + text).split('/')) {
    if (part === '..') {
      if (parts.length === 0) return null;
      parts.pop();
    } else if (part !== '' && part !== '.') parts.push(part);
  }
  const path = '/' + parts.join('/');
  return path.startsWith(WORKSPACE + '/') ? path : null;
};

// The paths that a specifier may mean, in order: in TypeScript the ending may be left out, or be that of what it compiles to.
export const candidates = (path, language) => {
  if (language !== 'typescript') return [path];
  if (/\.(?:ts|mts|json)$/.test(path)) return [path];
  return path.endsWith('.js') ? [path, path.slice(0, -3) + '.ts'] : [path, path + '.ts', path + '.js'];
};

export const nameOf = (node) => (node.type === 'Literal' ? String(node.value) : node.name);

// -> {imports: local -> {source, name}, locals: exported -> local, indirect: exported -> {source, name}, stars: [source], sources: [node]}
// name null: the namespace. A default without a name is the local DEFAULT.
export const tableOf = (tree, DEFAULT) => {
  const table = { imports: new Map(), locals: new Map(), indirect: new Map(), stars: [], sources: [] };
  for (const node of tree.body) {
    if (node.type === 'ImportDeclaration') {
      table.sources.push(node);
      for (const one of node.specifiers) {
        const name = one.type === 'ImportNamespaceSpecifier' ? null : one.type === 'ImportDefaultSpecifier' ? 'default' : nameOf(one.imported);
        table.imports.set(one.local.name, { source: node.source.value, name, at: one });
      }
    } else if (node.type === 'ExportAllDeclaration') {
      table.sources.push(node);
      if (node.exported) table.indirect.set(nameOf(node.exported), { source: node.source.value, name: null, at: node });
      else table.stars.push(node.source.value);
    } else if (node.type === 'ExportDefaultDeclaration') {
      const { declaration } = node;
      const named = (declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration') && declaration.id;
      table.locals.set('default', named ? declaration.id.name : DEFAULT);
    } else if (node.type === 'ExportNamedDeclaration') {
      if (node.source) {
        table.sources.push(node);
        for (const one of node.specifiers) table.indirect.set(nameOf(one.exported), { source: node.source.value, name: nameOf(one.local), at: one });
      } else if (node.declaration) {
        const { declaration } = node;
        const ids = declaration.type === 'VariableDeclaration' ? declaration.declarations.flatMap((one) => bound(one.id)) : [declaration.id];
        for (const id of ids) table.locals.set(id.name, id.name);
      } else {
        for (const one of node.specifiers) table.locals.set(nameOf(one.exported), one.local.name);
      }
    }
  }
  // what is imported and exported again is the other module's binding
  for (const [exported, local] of table.locals) {
    const from = table.imports.get(local);
    if (!from) continue;
    table.locals.delete(exported);
    table.indirect.set(exported, from);
  }
  return table;
};

// ResolveExport: -> {index, local} (local null: its namespace), null: there is none, or 'ambiguous'.
export const resolveExport = (graph, i, name, seen = new Set()) => {
  const key = `${i} ${name}`;
  if (seen.has(key)) return null;
  seen.add(key);
  const { table, of } = graph[i];
  if (table.locals.has(name)) return { index: i, local: table.locals.get(name) };
  const indirect = table.indirect.get(name);
  if (indirect) {
    const target = of.get(indirect.source);
    if (target === undefined) return null;
    return indirect.name === null ? { index: target, local: null } : resolveExport(graph, target, indirect.name, seen);
  }
  if (name === 'default') return null;
  let found = null;
  for (const source of table.stars) {
    const target = of.get(source);
    if (target === undefined) continue;
    const one = resolveExport(graph, target, name, seen);
    if (one === 'ambiguous') return one;
    if (!one) continue;
    if (found && (found.index !== one.index || found.local !== one.local)) return 'ambiguous';
    found = one;
  }
  return found;
};

// The names of a module's namespace, sorted, with what each means: ambiguous ones are left out.
export const exportsOf = (graph, i) => {
  const names = new Set(), seen = new Set(), stack = [[i, true]];
  while (stack.length > 0) {
    const [at, first] = stack.pop();
    if (seen.has(at)) continue;
    seen.add(at);
    const { table, of } = graph[at];
    for (const name of [...table.locals.keys(), ...table.indirect.keys()]) if (first || name !== 'default') names.add(name);
    for (const source of table.stars) if (of.get(source) !== undefined) stack.push([of.get(source), false]);
  }
  const rows = [];
  for (const name of [...names].sort((a, b) => (a < b ? -1 : 1))) {
    const found = resolveExport(graph, i, name);
    if (found && found !== 'ambiguous') rows.push([name, found.index, found.local]);
  }
  return rows;
};
