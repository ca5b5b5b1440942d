// SPDX-License-Identifier: Apache-2.0
// A module's tree -> the body of its generator: imports gone, exports told to the linker, names of other modules read where they live.
import { walk, become, call, identifier, literal, member, item, sequence, statement, variable, arrow, object, property, block } from './nodes.js';
import { resolveExport } from './modules.js';

// Every use of an imported name becomes a read of the cell of the module that declares it: WORDc[index].local, or its namespace.
export const replaceUses = (unit, graph, word) => {
  for (const [local, { source, name }] of unit.table.imports) {
    const binding = unit.names.top.names.get(local);
    const target = unit.of.get(source);
    const found = name === null ? { index: target, local: null } : resolveExport(graph, target, name);
    for (const use of binding.uses) {
      if (use.role === 'export') continue;
      const at = { ...use.node };
      const read = found.local === null
        ? call(at, identifier(at, `${word}n`), [literal(at, found.index)])
        : member(at, item(at, identifier(at, `${word}c`), literal(at, found.index)), found.local);
      if (use.holder) {
        use.holder.shorthand = false;
        if (use.holder.key === use.node) use.holder.key = at;
      }
      // an assignment to a namespace's name throws as well: its cell is not there to be written
      const written = use.role === 'write' && found.local === null ? member(at, call(at, member(at, identifier(at, 'Object'), 'freeze'), [object(at, [])]), local) : read;
      become(use.node, use.role === 'call' ? sequence(at, [literal(at, 0), written]) : written);
    }
  }
  walk(unit.tree, (node) => {
    if (node.type === 'MetaProperty' && node.meta.name === 'import')
      become(node, item(node, identifier(node, `${word}m`), literal(node, graph.indexOf(unit))));
  });
};

// import(x) -> WORDi(path, () => x): what x throws rejects the promise. -> how many there are; with no MAKE none is changed.
export const replaceImportCalls = (tree, make) => {
  const found = [];
  walk(tree, (node) => { if (node.type === 'ImportExpression') found.push(node); });
  if (make) for (const node of found.reverse()) {
    const made = make({ ...node });
    const last = made.arguments.length - 1;
    made.arguments[last] = arrow(node, [], made.arguments[last]);
    become(node, made);
  }
  return found.length;
};

const isAnonymous = (node) => ((node.type === 'FunctionExpression' || node.type === 'ClassExpression' || node.type === 'ClassDeclaration') && !node.id) || node.type === 'ArrowFunctionExpression';

// export default ... -> a declaration of its name
const defaultStatement = (node, word) => {
  const { declaration } = node;
  if ((declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration') && declaration.id) return declaration;
  const id = identifier(node, `${word}d`);
  if (declaration.type === 'FunctionDeclaration') return { ...declaration, id };
  const value = declaration.type === 'ClassDeclaration' ? { ...declaration, type: 'ClassExpression' } : declaration;
  // a function without a name gets that of the property it is the value of
  const named = isAnonymous(declaration) ? member(node, object(node, [property(node, 'default', value)]), 'default') : value;
  return variable(node, 'const', [[id, named]]);
};

export const moduleBody = (unit, index, word) => {
  const { tree, table } = unit;
  const at = tree.body[0] || tree;
  const body = [];
  let anonymous = null;
  for (const node of tree.body) {
    if (node.type === 'ImportDeclaration' || node.type === 'ExportAllDeclaration') continue;
    if (node.type === 'ExportNamedDeclaration') {
      if (node.declaration) body.push(node.declaration);
    } else if (node.type === 'ExportDefaultDeclaration') {
      if (node.declaration.type === 'FunctionDeclaration' && !node.declaration.id) anonymous = identifier(node, `${word}d`);
      body.push(defaultStatement(node, word));
    } else body.push(node);
  }
  const getters = [...new Set(table.locals.values())].map((local) => property(at, local, arrow(at, [], identifier(at, local))));
  const tell = call(at, identifier(at, `${word}e`), [literal(at, index), object(at, getters), ...(anonymous ? [anonymous] : [])]);
  const stop = { type: 'YieldExpression', loc: at.loc, delegate: false, argument: null };
  // A directive of the text is none here: the function has strict code already, and a string before its first statement means nothing.
  return { type: 'Program', loc: tree.loc, body: [statement(at, tell), statement(at, stop), ...body] };
};
