// SPDX-License-Identifier: Apache-2.0
// A tree -> findings, by the table of rules.js and the profile's own rules.
import { walk, CHILDREN } from './nodes.js';
import { holds, finding, isForNode } from './rules.js';

const GLOBALS = new Set(['globalThis', 'window', 'self', 'global', 'frames', 'parent', 'top']);
const TIMERS = new Set(['setTimeout', 'setInterval', 'setImmediate', 'execScript']);
const ACCESSORS = new Set(['__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__']);
const OWN = new Set(['$cordonFlag', '$cordonGiveWay']);
const FOLD_LENGTH = 200;

// The text that an expression is, where it is plain: strings, their sums and templates of such. null: it is not known before the program runs.
export const constant = (node) => {
  const parts = [];
  const stack = [node];
  let length = 0;
  while (stack.length > 0) {
    const at = stack.pop();
    if (at.type === 'Literal' && (typeof at.value === 'string' || typeof at.value === 'number')) {
      parts.push(String(at.value));
      length += parts[parts.length - 1].length;
      if (length > FOLD_LENGTH) return null;
    } else if (at.type === 'BinaryExpression' && at.operator === '+') {
      stack.push(at.right, at.left);
    } else if (at.type === 'TemplateLiteral') {
      for (let i = at.quasis.length - 1; i >= 0; i--) {
        if (i < at.expressions.length) stack.push(at.expressions[i]);
        stack.push({ type: 'Literal', value: at.quasis[i].value.cooked || '' });
      }
    } else if (at.type === 'SequenceExpression') {
      stack.push(at.expressions[at.expressions.length - 1]);
    } else {
      return null;
    }
    if (stack.length + parts.length > FOLD_LENGTH) return null;
  }
  return parts.join('');
};

// The name of the member that a node reads, writes, defines or takes apart; null where it is none or not known.
const memberName = (node) => {
  if (node.type === 'MemberExpression') return node.computed ? constant(node.property) : node.property.name;
  if (node.type === 'Property' || node.type === 'MethodDefinition' || node.type === 'PropertyDefinition')
    return node.computed ? constant(node.key) : node.key.type === 'Literal' ? String(node.key.value) : node.key.name;
  return null;
};

const unwrap = (node) => {
  let at = node;
  while (at && (at.type === 'ChainExpression' || at.type === 'SequenceExpression')) at = at.type === 'ChainExpression' ? at.expression : at.expressions[at.expressions.length - 1];
  return at;
};
const isMember = (node, name) => node && node.type === 'MemberExpression' && memberName(node) === name;
const isFunction = (node) => ['FunctionExpression', 'ArrowFunctionExpression', 'ClassExpression'].includes(node.type);

// `x.constructor` is what an object was made by, which programs ask for; these are the forms that reach the maker of functions.
const reachesMaker = (node, parent, field, strict) => {
  if (strict) return true;
  const inner = unwrap(node.object);
  if (isMember(inner, 'constructor') || isFunction(inner)) return true;
  if (parent.type === 'MemberExpression' && field === 'object' && ['call', 'apply', 'bind'].includes(memberName(parent))) return true;
  return (parent.type === 'CallExpression' && field === 'callee') || (parent.type === 'TaggedTemplateExpression' && field === 'tag');
};

// The profile's own rules by kind and name; those whose name ends in * stand apart. One list serves for many programs.
let listed = null, table = null;
const tableOf = (deny) => {
  if (deny === listed) return table;
  listed = deny;
  table = new Map();
  for (const rule of deny) {
    if (!table.has(rule.kind)) table.set(rule.kind, { names: new Map(), begins: [] });
    const { names, begins } = table.get(rule.kind);
    if (rule.name.endsWith('*')) begins.push([rule.name.slice(0, -1), rule]);
    else names.set(rule.name, [...(names.get(rule.name) || []), rule]);
  }
  return table;
};
const NONE = [];

export const check = (tree, names, options, path) => {
  const findings = [];
  const rules = options.rules || 'strict';
  const deny = tableOf(options.deny || NONE);
  const isNode = isForNode(options);
  const say = (rule, name, node, detail) => {
    if (holds(rule, rules)) findings.push(finding(rule, name, node.loc.start, path, detail));
  };
  const own = (kind, name, node) => {
    const of = deny.get(kind);
    if (of === undefined || typeof name !== 'string') return;
    for (const rule of [...(of.names.get(name) || NONE), ...of.begins.filter(([begin]) => name.startsWith(begin)).map((row) => row[1])])
      findings.push({ rule: rule.id, name, line: node.loc.start.line, column: node.loc.start.column + 1, detail: rule.reason || 'the profile refuses it', hint: rule.hint || '', path });
  };

  // ---- names that nothing in the program declares ----
  const free = new Map(names.free.map((use) => [use.node, use]));
  const isGlobal = (node) => node && ((node.type === 'Identifier' && GLOBALS.has(node.name) && free.has(node)) || node.type === 'ThisExpression');

  const visitIdentifier = (node, parent, field) => {
    if (node.name === 'eval' && !isKey(parent, field)) say('js.name.eval', 'eval', node);
    if (node.name === 'let' && !isKey(parent, field)) say('js.form.let-name', 'let', node);
    if (OWN.has(node.name) && !isKey(parent, field)) say('js.form.own-name', node.name, node);
    if (!isKey(parent, field)) own('name-deny', node.name, node);
    if (!free.has(node)) return;
    if (field === 'callee') own('call-deny', node.name, node);
    if (node.name === 'Function' && !(parent.type === 'BinaryExpression' && parent.operator === 'instanceof' && field === 'right')
        && !(parent.type === 'MemberExpression' && field === 'object' && memberName(parent) === 'prototype' && rules !== 'strict'))
      say('js.name.Function', 'Function', node);
    if (!isNode && node.name === 'require' && parent.type === 'CallExpression' && field === 'callee') {
      const what = parent.arguments.length > 0 ? constant(parent.arguments[0]) : null;
      say('js.call.require', what === null ? 'require' : `require(${JSON.stringify(what)})`, node);
    }
  };

  const visitMember = (node, parent, field) => {
    const name = memberName(node);
    if (name === null) return;
    own('attribute-deny', name, node);
    if (node.computed) own('subscript-deny', name, node);
    if (name === '__proto__') say('js.attr.__proto__', name, node);
    if (ACCESSORS.has(name)) say('js.attr.accessor', name, node);
    if (node.type === 'Property' && name === 'constructor' && parent.type === 'ObjectPattern') say('js.attr.constructor', name, node);
    if (node.type !== 'MemberExpression') return;
    const object = unwrap(node.object);
    if (name === 'constructor' && reachesMaker(node, parent, field, rules === 'strict')) say('js.attr.constructor', name, node);
    if (name === 'eval' && (rules === 'strict' || isGlobal(object))) say('js.name.eval', name, node);
    if (name === 'Function' && isGlobal(object)) say('js.name.Function', name, node);
    if ((name === 'write' || name === 'writeln') && ((object.type === 'Identifier' && object.name === 'document' && free.has(object)) || (isMember(object, 'document') && isGlobal(unwrap(object.object)))))
      say('js.call.document.write', `document.${name}`, node);
    if ((name === 'callee' || name === 'caller') && object.type === 'Identifier' && object.name === 'arguments') say('js.form.callee', `arguments.${name}`, node);
  };

  const visitCall = (node) => {
    const callee = unwrap(node.callee);
    const name = callee.type === 'Identifier' && free.has(callee) ? callee.name : callee.type === 'MemberExpression' && isGlobal(unwrap(callee.object)) ? memberName(callee) : null;
    if (name !== null && TIMERS.has(name) && node.arguments.length > 0 && constant(node.arguments[0]) !== null) say('js.call.timer-text', name, node);
  };

  walk(tree, (node, parent, field) => {
    if (!Object.hasOwn(CHILDREN, node.type)) {
      say('js.node.unknown', String(node.type), node);
      return;
    }
    if (node.type === 'Identifier') visitIdentifier(node, parent, field);
    else if (node.type === 'WithStatement') say('js.form.with', 'with', node);
    else if (node.type === 'CallExpression') visitCall(node);
    visitMember(node, parent, field);
  });
  return findings;
};

// Whether an identifier is the plain word of a key or a label there, and names no variable.
const isKey = (parent, field) =>
  (parent.type === 'MemberExpression' && field === 'property' && !parent.computed) ||
  (['Property', 'MethodDefinition', 'PropertyDefinition'].includes(parent.type) && field === 'key' && !parent.computed) ||
  (['LabeledStatement', 'BreakStatement', 'ContinueStatement'].includes(parent.type) && field === 'label') ||
  parent.type === 'MetaProperty' || parent.type === 'ImportAttribute' ||
  (parent.type === 'ImportSpecifier' && field === 'imported') || (parent.type === 'ExportSpecifier' && (field === 'exported')) || parent.type === 'ExportAllDeclaration';
