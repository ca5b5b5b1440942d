// SPDX-License-Identifier: Apache-2.0
// Top-level declarations that outlive their block, and top-level `await`.
//
// In a session `let`, `const` and `class` of the top become variables of the global object, as in the consoles of browsers: the next
// block sees them and may declare them again. An assignment to a constant of the same block throws, as it would have.
// With `await` outside of functions the program becomes the body of an async function; its declarations stay outside of it.
import { CHILDREN, walk, bound, identifier, literal, assign, sequence, statement, undefinedValue, variable, arrow, call, block, returned, object, property, become, member } from './nodes.js';

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'MethodDefinition', 'PropertyDefinition', 'StaticBlock']);

// Every node that is not inside of a function of TREE: enter(node, parent, field).
const outsideFunctions = (tree, enter) => {
  const stack = [tree, null, ''];
  while (stack.length > 0) {
    const field = stack.pop(), parent = stack.pop(), node = stack.pop();
    enter(node, parent, field);
    const fields = FUNCTIONS.has(node.type) ? (node.computed ? ['key'] : []) : CHILDREN[node.type];
    for (const name of fields) {
      const child = node[name];
      if (Array.isArray(child)) {
        for (const one of child) if (one) stack.push(one, node, name);
      } else if (child) stack.push(child, node, name);
    }
  }
};

export const hasTopAwait = (tree) => {
  let found = false;
  outsideFunctions(tree, (node) => { if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await)) found = true; });
  return found;
};

// An assignment to a constant, as the engine would have answered it: the right side runs, then it throws.
const refuseConstants = (top) => {
  for (const binding of top.names.values()) {
    if (binding.kind !== 'const') continue;
    for (const use of binding.uses) {
      if (use.role !== 'write') continue;
      const at = { ...use.node };
      const thrown = call(at, arrow(at, [], block(at, [{ type: 'ThrowStatement', loc: at.loc, argument: { type: 'NewExpression', loc: at.loc, callee: identifier(at, 'TypeError'), arguments: [literal(at, 'Attempted to assign to readonly property.')] } }])), []);
      if (use.holder) use.holder.shorthand = false;
      become(use.node, member(at, thrown, 'value'));
    }
  }
};

const lifted = (node) => node.kind !== 'var' && node.type === 'VariableDeclaration';

// let a = 1, {b} = c -> var a = 1, {b} = c
export const persist = (tree, names) => {
  refuseConstants(names.top);
  tree.body = tree.body.map((node) => {
    if (lifted(node)) {
      node.kind = 'var';
      for (const one of node.declarations) if (!one.init) one.init = undefinedValue(one);
    } else if (node.type === 'ClassDeclaration') {
      return variable(node, 'var', [[identifier(node.id, node.id.name), { ...node, type: 'ClassExpression' }]]);
    }
    return node;
  });
};

const assignments = (declaration, whole) => declaration.declarations
  .filter((one) => one.init || whole)
  .map((one) => assign(one, one.id, one.init || undefinedValue(one)));

// The declarations of `var` inside of blocks, but not of functions, become assignments; their names are collected.
const liftVariables = (tree, into) => {
  const inside = [];
  outsideFunctions(tree, (node, parent, field) => { if (node.type === 'VariableDeclaration' && node.kind === 'var') inside.push([node, parent, field]); });
  for (const [node, parent, field] of inside) {
    for (const one of node.declarations) for (const id of bound(one.id)) into.add(id.name);
    if (field === 'left') { become(node, node.declarations[0].id); continue; }
    const parts = assignments(node, false);
    const whole = parts.length === 0 ? null : parts.length === 1 ? parts[0] : sequence(node, parts);
    if (field === 'init') parent.init = whole;
    else become(node, whole ? statement(node, whole) : { type: 'EmptyStatement', loc: node.loc });
  }
};

// A program with `await` outside of functions -> one async function that runs at once. -> what stays outside of it, as a tree of its own: declarations
// come before whatever line they stand on, so that they have to be another script.
export const wrapAwait = (tree, names, shows) => {
  refuseConstants(names.top);
  const variables = new Set();
  const functions = [], body = [], directives = [];
  for (const node of tree.body) {
    if (node.directive) directives.push(node);
    else if (node.type === 'FunctionDeclaration') functions.push(node);
    else if (node.type === 'ClassDeclaration') {
      variables.add(node.id.name);
      body.push(statement(node, assign(node, identifier(node.id, node.id.name), { ...node, type: 'ClassExpression' })));
    } else if (lifted(node)) {
      for (const one of node.declarations) for (const id of bound(one.id)) variables.add(id.name);
      const parts = assignments(node, true);
      body.push(statement(node, parts.length === 1 ? parts[0] : sequence(node, parts)));
    } else body.push(node);
  }
  const inner = { type: 'Program', loc: tree.loc, body };
  liftVariables(inner, variables);
  if (shows) {
    const last = inner.body[inner.body.length - 1];
    inner.body[inner.body.length - 1] = returned(last, object(last, [property(last, 'value', last.expression)]));
  }
  const at = tree.body[0] || tree;
  const run = statement(at, call(at, arrow(at, [], block(at, inner.body), true), []));
  tree.body = [...directives, run];
  const declared = variables.size > 0 ? [variable(tree, 'var', [...variables].map((name) => [identifier(tree, name)]))] : [];
  const outside = [...declared, ...functions];
  return { type: 'Program', loc: tree.loc, body: outside.length > 0 ? [...directives, ...outside] : [] };
};

export const showsValue = (tree) => {
  const last = tree.body[tree.body.length - 1];
  return !!last && last.type === 'ExpressionStatement' && !last.directive;
};

// An interrupt reaches a call of a session that computes: each loop looks at a number, which is 0 until one comes. The worker declares both names.
const LOOPS = new Set(['ForStatement', 'WhileStatement', 'DoWhileStatement', 'ForInStatement', 'ForOfStatement']);
export const giveWay = (tree) => {
  walk(tree, (node) => {
    if (!LOOPS.has(node.type)) return;
    const at = node.body;
    const flag = { type: 'MemberExpression', loc: at.loc, object: identifier(at, '$cordonFlag'), property: { type: 'Literal', loc: at.loc, value: 0 }, computed: true, optional: false };
    const look = statement(at, { type: 'LogicalExpression', loc: at.loc, operator: '&&', left: flag, right: call(at, identifier(at, '$cordonGiveWay'), []) });
    node.body = block(at, node.body.type === 'BlockStatement' ? [look, ...node.body.body] : [look, node.body]);
  });
};
