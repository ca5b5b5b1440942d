// SPDX-License-Identifier: Apache-2.0
// A tree of TypeScript -> the tree of the JavaScript that it means: types are taken out, and the few forms that make code of their own
// (enums, parameter properties, namespaces of constants, functions and classes) are written out. What is left of TypeScript after that is
// refused by name; ERASED below and the rules ts.* are the whole list.
import { bound, become, identifier, literal, member, item, assign, statement, variable, call, func, object, empty } from './nodes.js';
import { finding } from './rules.js';

// Fields that say something of types only.
const ERASED = ['typeAnnotation', 'returnType', 'typeParameters', 'typeArguments', 'superTypeParameters', 'superTypeArguments', 'implements', 'declare', 'abstract',
  'accessibility', 'readonly', 'override', 'definite', 'importKind', 'exportKind'];
const WRAPPERS = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression', 'TSTypeAssertion', 'TSInstantiationExpression']);
const TYPES = new Set(['TSInterfaceDeclaration', 'TSTypeAliasDeclaration', 'TSDeclareFunction', 'TSNamespaceExportDeclaration']);
const REFUSED = { TSImportEqualsDeclaration: 'ts.import-equals', TSExportAssignment: 'ts.export-equals', Decorator: 'ts.decorator' };

const isType = (node) => TYPES.has(node.type) || node.declare === true ||
  (node.type === 'ImportDeclaration' && node.importKind === 'type') ||
  (node.type === 'TSImportEqualsDeclaration' && node.importKind === 'type') ||
  ((node.type === 'ExportNamedDeclaration' || node.type === 'ExportAllDeclaration') && (node.exportKind === 'type' || (node.declaration && isType(node.declaration)))) ||
  (node.type === 'ExportDefaultDeclaration' && isType(node.declaration)) ||
  (node.type === 'TSModuleDeclaration' && !hasCode(node));

// Whether a namespace has anything that runs.
const hasCode = (node) => {
  let body = node.body;
  while (body && body.type === 'TSModuleDeclaration') body = body.body;
  return !!body && body.body.some((one) => !isType(one));
};

const isDropped = (node) => node.declare === true || node.abstract === true || node.type === 'TSIndexSignature' ||
  node.type === 'TSAbstractMethodDefinition' || node.type === 'TSAbstractPropertyDefinition' || (node.value && (node.value.type === 'TSDeclareMethod' || node.value.type === 'TSEmptyBodyFunctionExpression'));

// ---- forms that make code ----

// enum E { A, B = 2 } -> (function (E) { E[E["A"] = 0] = "A"; ... })(E || (E = {}))
const enumCode = (node) => {
  const own = identifier(node.id, node.id.name);
  const here = () => identifier(node.id, node.id.name);
  const known = new Set();
  const body = [];
  let previous = null;
  for (const one of node.members) {
    const name = one.id.type === 'Literal' ? String(one.id.value) : one.id.name;
    if (one.initializer) qualify(one.initializer, known, node.id.name);
    const value = one.initializer || (previous === null ? literal(one, 0) : { type: 'BinaryExpression', loc: one.loc, operator: '+', left: item(one, here(), literal(one, previous)), right: literal(one, 1) });
    const set = assign(one, item(one, here(), literal(one, name)), value);
    const isText = (value.type === 'Literal' && typeof value.value === 'string') || value.type === 'TemplateLiteral';
    body.push(statement(one, isText ? set : assign(one, item(one, here(), set), literal(one, name))));
    known.add(name);
    previous = name;
  }
  return closure(node, own, body);
};

// (function (N) { BODY })(N || (N = {}))
const closure = (node, id, body) => {
  const name = () => identifier(id, id.name);
  return statement(node, call(node, func(node, { params: [name()] }, body), [
    { type: 'LogicalExpression', loc: node.loc, operator: '||', left: name(), right: assign(node, name(), object(node, [])) }]));
};

// In the values of an enum, the names of members before are those members.
const qualify = (node, known, name) => {
  const stack = [node];
  while (stack.length > 0) {
    const at = stack.pop();
    if (!at || typeof at.type !== 'string') continue;
    if (at.type === 'Identifier' && known.has(at.name)) become(at, item({ ...at }, identifier(at, name), literal(at, at.name)));
    else if (at.type === 'BinaryExpression' || at.type === 'LogicalExpression') stack.push(at.left, at.right);
    else if (at.type === 'UnaryExpression') stack.push(at.argument);
    else if (at.type === 'TemplateLiteral') stack.push(...at.expressions);
    else if (at.type === 'ConditionalExpression') stack.push(at.test, at.consequent, at.alternate);
  }
};

class Eraser {
  constructor(findings, path) { this.findings = findings; this.path = path; }

  refuse(rule, node, name) { this.findings.push(finding(rule, name, node.loc.start, this.path)); }

  // A list of statements, with what stands for each: none, one or some.
  statements(list, kind) {
    const declared = new Set();
    const out = [];
    for (const node of list) {
      if (isType(node)) continue;
      for (const one of this.statement(node, kind, declared)) out.push(one);
    }
    return out;
  }

  statement(node, kind, declared) {
    const exported = node.type === 'ExportNamedDeclaration' && node.declaration ? node : null;
    const inner = exported ? exported.declaration : node;
    if (inner.type === 'TSEnumDeclaration' || inner.type === 'TSModuleDeclaration') {
      const code = inner.type === 'TSEnumDeclaration' ? enumCode(this.cleanEnum(inner)) : this.namespace(inner);
      if (!code) return [];
      const isNew = !declared.has(inner.id.name);
      declared.add(inner.id.name);
      const declaration = variable(inner, kind, [[identifier(inner.id, inner.id.name)]]);
      if (exported && isNew) exported.declaration = declaration;
      return [...(isNew ? [exported || declaration] : []), code];
    }
    const cleaned = this.clean(node);
    if ((inner.type === 'ClassDeclaration' || inner.type === 'FunctionDeclaration') && inner.id) declared.add(inner.id.name);
    return cleaned ? [cleaned] : [];
  }

  cleanEnum(node) {
    for (const one of node.members) if (one.initializer) one.initializer = this.clean(one.initializer);
    return node;
  }

  namespace(node) {
    if (node.id.type !== 'Identifier' || node.global) {
      this.refuse('ts.namespace', node, String(node.id.value || node.id.name));
      return null;
    }
    const id = () => identifier(node.id, node.id.name);
    if (node.body.type === 'TSModuleDeclaration') {
      // namespace A.B {} -> A has B
      const innerId = node.body.id;
      const inner = this.namespace(node.body);
      return inner && closure(node, node.id, [variable(node, 'let', [[identifier(innerId, innerId.name), member(node, id(), innerId.name)]]), inner, statement(node, assign(node, member(node, id(), innerId.name), identifier(innerId, innerId.name)))]);
    }
    const body = [];
    for (const one of node.body.body) {
      if (isType(one)) continue;
      if (one.type !== 'ExportNamedDeclaration') {
        if (/^(?:Import|Export|TSExport|TSImport)/.test(one.type)) this.refuse('ts.namespace', one, node.id.name);
        body.push(...this.statements([one], 'let'));
        continue;
      }
      const { declaration } = one;
      if (!declaration || (declaration.type === 'VariableDeclaration' && declaration.kind !== 'const')) {
        this.refuse('ts.namespace', one, node.id.name);
        continue;
      }
      const names = declaration.type === 'VariableDeclaration' ? declaration.declarations.flatMap((d) => bound(d.id)) : [declaration.id];
      body.push(...this.statements([declaration], 'let'));
      for (const name of names) body.push(statement(one, assign(one, member(one, id(), name.name), identifier(name, name.name))));
    }
    return closure(node, node.id, body);
  }

  // constructor(private a) {} -> this.a = a, after the call of super where there is one
  parameterProperties(method) {
    const names = [];
    method.params = method.params.map((param) => {
      if (param.type !== 'TSParameterProperty') return param;
      names.push(...bound(param.parameter));
      return param.parameter;
    });
    if (names.length === 0) return;
    const sets = names.map((id) => statement(id, assign(id, member(id, { type: 'ThisExpression', loc: id.loc }, id.name), identifier(id, id.name))));
    const { body } = method.body;
    const after = body.findIndex((one) => one.type === 'ExpressionStatement' && one.expression.type === 'CallExpression' && one.expression.callee.type === 'Super');
    const directives = body.findIndex((one) => !one.directive);
    body.splice(after >= 0 ? after + 1 : directives < 0 ? body.length : directives, 0, ...sets);
  }

  // NODE without types; null: nothing is left of it.
  clean(node) {
    if (!node || typeof node.type !== 'string') return node;
    while (WRAPPERS.has(node.type)) node = node.expression;
    if (REFUSED[node.type]) {
      this.refuse(REFUSED[node.type], node, node.id ? node.id.name : node.type === 'Decorator' ? '@' : 'export =');
      return empty(node);
    }
    if (node.decorators && node.decorators.length > 0) this.refuse('ts.decorator', node.decorators[0], '@' + (node.decorators[0].expression.name || '...'));
    if (node.accessor) this.refuse('ts.accessor', node, 'accessor');
    delete node.decorators;
    if (isType(node)) return empty(node);
    for (const field of ERASED) delete node[field];
    if (node.type !== 'MemberExpression' && node.type !== 'CallExpression') delete node.optional;
    if (node.type === 'ClassBody') node.body = node.body.filter((one) => !isDropped(one));
    if (node.type === 'ImportDeclaration' || node.type === 'ExportNamedDeclaration') return this.cleanPort(node);
    if (node.params) {
      if (node.params.length > 0 && node.params[0].type === 'Identifier' && node.params[0].name === 'this') node.params.shift();
      if (node.params.some((param) => param.type === 'TSParameterProperty')) this.parameterProperties(node);
    }
    for (const field of Object.keys(node)) {
      const child = node[field];
      if (field === 'loc' || field === 'value' && node.type === 'Literal' || field === 'regex' || !child || typeof child !== 'object') continue;
      if (Array.isArray(child)) {
        const isBody = field === 'body' && (node.type === 'BlockStatement' || node.type === 'Program' || node.type === 'StaticBlock');
        if (isBody || field === 'consequent') node[field] = this.statements(child, node.type === 'Program' ? 'var' : 'let');
        else node[field] = child.map((one) => this.clean(one));
      } else if (typeof child.type === 'string') node[field] = this.clean(child);
    }
    return node;
  }

  cleanPort(node) {
    if (node.declaration) node.declaration = this.clean(node.declaration);
    const before = node.specifiers.length;
    node.specifiers = node.specifiers.filter((one) => one.importKind !== 'type' && one.exportKind !== 'type');
    if (before > 0 && node.specifiers.length === 0) return null;
    for (const one of node.specifiers) for (const field of ERASED) delete one[field];
    return node;
  }
}

export const erase = (tree, findings, path) => new Eraser(findings, path).clean(tree);

// An import that only types used is none, and neither is the export of a type.
export const dropUnusedImports = (tree, names) => {
  const used = (one) => names.top.names.get(one.local.name).uses.length > 0;
  tree.body = tree.body.filter((node) => {
    if (node.type === 'ImportDeclaration' && node.specifiers.length > 0) {
      node.specifiers = node.specifiers.filter(used);
      return node.specifiers.length > 0;
    }
    if (node.type === 'ExportNamedDeclaration' && !node.declaration && !node.source && node.specifiers.length > 0) {
      node.specifiers = node.specifiers.filter((one) => names.top.names.has(one.local.name));
      return node.specifiers.length > 0;
    }
    return true;
  });
};
