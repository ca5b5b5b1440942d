// SPDX-License-Identifier: Apache-2.0
// Every type of node that a judged tree may have, with the fields that hold its children. A type that is not here is refused: a
// parser that learns a new form of the language cannot carry it past rules that do not know it.

export const CHILDREN = {
  Program: ['body'],
  ExpressionStatement: ['expression'], BlockStatement: ['body'], EmptyStatement: [], DebuggerStatement: [],
  WithStatement: ['object', 'body'], ReturnStatement: ['argument'], LabeledStatement: ['label', 'body'], BreakStatement: ['label'],
  ContinueStatement: ['label'], IfStatement: ['test', 'consequent', 'alternate'], SwitchStatement: ['discriminant', 'cases'],
  SwitchCase: ['test', 'consequent'], ThrowStatement: ['argument'], TryStatement: ['block', 'handler', 'finalizer'],
  CatchClause: ['param', 'body'], WhileStatement: ['test', 'body'], DoWhileStatement: ['body', 'test'],
  ForStatement: ['init', 'test', 'update', 'body'], ForInStatement: ['left', 'right', 'body'], ForOfStatement: ['left', 'right', 'body'],
  FunctionDeclaration: ['id', 'params', 'body'], VariableDeclaration: ['declarations'], VariableDeclarator: ['id', 'init'],
  ThisExpression: [], Super: [], Identifier: [], PrivateIdentifier: [], Literal: [], TemplateElement: [],
  ArrayExpression: ['elements'], ObjectExpression: ['properties'], Property: ['key', 'value'], FunctionExpression: ['id', 'params', 'body'],
  ArrowFunctionExpression: ['params', 'body'], UnaryExpression: ['argument'], UpdateExpression: ['argument'],
  BinaryExpression: ['left', 'right'], AssignmentExpression: ['left', 'right'], LogicalExpression: ['left', 'right'],
  MemberExpression: ['object', 'property'], ConditionalExpression: ['test', 'consequent', 'alternate'],
  CallExpression: ['callee', 'arguments'], NewExpression: ['callee', 'arguments'], SequenceExpression: ['expressions'],
  SpreadElement: ['argument'], YieldExpression: ['argument'], AwaitExpression: ['argument'], ChainExpression: ['expression'],
  ImportExpression: ['source', 'options'], MetaProperty: ['meta', 'property'], TemplateLiteral: ['quasis', 'expressions'],
  TaggedTemplateExpression: ['tag', 'quasi'], ObjectPattern: ['properties'], ArrayPattern: ['elements'], RestElement: ['argument'],
  AssignmentPattern: ['left', 'right'], ClassDeclaration: ['id', 'superClass', 'body'], ClassExpression: ['id', 'superClass', 'body'],
  ClassBody: ['body'], MethodDefinition: ['key', 'value'], PropertyDefinition: ['key', 'value'], StaticBlock: ['body'],
  ImportDeclaration: ['specifiers', 'source', 'attributes'], ImportSpecifier: ['imported', 'local'], ImportDefaultSpecifier: ['local'],
  ImportNamespaceSpecifier: ['local'], ImportAttribute: ['key', 'value'], ExportNamedDeclaration: ['declaration', 'specifiers', 'source', 'attributes'],
  ExportSpecifier: ['local', 'exported'], ExportDefaultDeclaration: ['declaration'], ExportAllDeclaration: ['exported', 'source', 'attributes'],
};

// Calls enter(node, parent, field) for every node, parents before children, with a stack of our own: the depth of a tree is
// not the depth of our calls. A field of a known node that is neither a node nor listed is not looked at, nor written by write.js.
export const walk = (root, enter) => {
  // three stacks, not one of rows: taking a row apart costs an interpreter more than the visit
  const nodes = [root], parents = [null], places = [''];
  while (nodes.length > 0) {
    const node = nodes.pop(), parent = parents.pop(), place = places.pop();
    enter(node, parent, place);
    const fields = CHILDREN[node.type];
    if (fields === undefined || !Object.hasOwn(CHILDREN, node.type)) continue;
    for (let i = fields.length - 1; i >= 0; i--) {
      const field = fields[i], child = node[field];
      if (!child) continue;
      if (!Array.isArray(child)) {
        nodes.push(child);
        parents.push(node);
        places.push(field);
        continue;
      }
      for (let k = child.length - 1; k >= 0; k--) {
        if (!child[k]) continue;
        nodes.push(child[k]);
        parents.push(node);
        places.push(field);
      }
    }
  }
};

// The first node that is more than MOST deep, or null. ANY: a tree of any parser, whatever its fields are called.
export const tooDeep = (root, most, any) => {
  const nodes = [root], depths = [0];
  while (nodes.length > 0) {
    const node = nodes.pop(), depth = depths.pop();
    if (depth > most) return node;
    for (const field of (any ? undefined : CHILDREN[node.type]) || Object.keys(node)) {
      const child = node[field];
      if (!child || typeof child !== 'object' || field === 'loc') continue;
      if (typeof child.type === 'string') {
        nodes.push(child);
        depths.push(depth + 1);
      } else if (Array.isArray(child)) {
        for (const one of child) {
          if (!one || typeof one !== 'object') continue;
          nodes.push(one);
          depths.push(depth + 1);
        }
      }
    }
  }
  return null;
};

// ---- nodes of our own making, at the place of AT ----
const made = (at, type, fields) => ({ type, start: at.start, end: at.end, loc: at.loc, ...fields });
export const identifier = (at, name) => made(at, 'Identifier', { name });
export const literal = (at, value) => made(at, 'Literal', { value });
export const member = (at, object, name) => made(at, 'MemberExpression', { object, property: identifier(at, name), computed: false, optional: false });
export const item = (at, object, key) => made(at, 'MemberExpression', { object, property: key, computed: true, optional: false });
export const call = (at, callee, args) => made(at, 'CallExpression', { callee, arguments: args, optional: false });
export const assign = (at, left, right) => made(at, 'AssignmentExpression', { operator: '=', left, right });
export const sequence = (at, expressions) => made(at, 'SequenceExpression', { expressions });
export const statement = (at, expression) => made(at, 'ExpressionStatement', { expression });
export const undefinedValue = (at) => made(at, 'UnaryExpression', { operator: 'void', prefix: true, argument: literal(at, 0) });
export const variable = (at, kind, pairs) => made(at, 'VariableDeclaration',
  { kind, declarations: pairs.map(([id, init]) => made(at, 'VariableDeclarator', { id, init: init || null })) });
export const block = (at, body) => made(at, 'BlockStatement', { body });
export const arrow = (at, params, body, async) => made(at, 'ArrowFunctionExpression', { params, body, async: !!async, generator: false, expression: body.type !== 'BlockStatement' });
export const func = (at, fields, body) => made(at, 'FunctionExpression', { id: null, params: [], async: false, generator: false, ...fields, body: block(at, body) });
export const property = (at, key, value) => made(at, 'Property', { key: literal(at, key), value, kind: 'init', method: false, shorthand: false, computed: true });
export const object = (at, properties) => made(at, 'ObjectExpression', { properties });
export const array = (at, elements) => made(at, 'ArrayExpression', { elements });
export const returned = (at, argument) => made(at, 'ReturnStatement', { argument });
export const empty = (at) => made(at, 'EmptyStatement', {});

// Makes NODE another one where it stands, so that whatever holds it holds the new one.
export const become = (node, other) => {
  for (const key of Object.keys(node)) delete node[key];
  Object.assign(node, other);
};

// The names that a pattern binds, as their identifier nodes.
export const bound = (pattern, into = []) => {
  const stack = [pattern];
  while (stack.length > 0) {
    const node = stack.pop();
    if (!node) continue;
    if (node.type === 'Identifier') into.push(node);
    else if (node.type === 'ObjectPattern') for (let i = node.properties.length - 1; i >= 0; i--) stack.push(node.properties[i].type === 'RestElement' ? node.properties[i] : node.properties[i].value);
    else if (node.type === 'ArrayPattern') for (let i = node.elements.length - 1; i >= 0; i--) stack.push(node.elements[i]);
    else if (node.type === 'AssignmentPattern') stack.push(node.left);
    else if (node.type === 'RestElement') stack.push(node.argument);
  }
  return into;
};
