// SPDX-License-Identifier: Apache-2.0
// A judged tree -> the script that runs. Nothing of the text is copied but the inside of regular expressions and of templates, which have
// no other form: names, strings and numbers are written from their values, so that an escape that the judge read through is gone.
//
// What stands on line N of the text stands on line N of the script, so that a stack which a program reads has the lines of its own text, and
// nothing has to lead from one to the other. Line ends are the only blanks that are made for it, and only where the grammar takes
// one for a blank: never behind `return`, `throw`, `yield`, `async`, `break` or `continue`, nor before `=>`, `++` and `--`.

const quoted = (value) => JSON.stringify(value).replace(/[\u2028\u2029\u007f-\u009f\ufeff]|<(?=!--|\/script)/gi, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const number = (value) => (value === Infinity ? '1e999' : value < 0 || Object.is(value, -0) ? `(-${-value})` : String(value));

// How tightly a form binds: one that binds less than its place asks for is put in parentheses.
const SEQUENCE = 0, ASSIGNMENT = 1, CONDITIONAL = 2, COALESCE = 3, BITWISE = 6, UNARY = 15, UPDATE = 16, CHAIN = 17, CALL = 18, PRIMARY = 19;
const OPERATORS = {
  '??': COALESCE, '||': 4, '&&': 5, '|': BITWISE, '^': 7, '&': 8, '==': 9, '!=': 9, '===': 9, '!==': 9, '<': 10, '>': 10, '<=': 10, '>=': 10, instanceof: 10,
  in: PRIMARY, // always in parentheses: the head of a `for` ends at a bare one
  '<<': 11, '>>': 11, '>>>': 11, '+': 12, '-': 12, '*': 13, '/': 13, '%': 13, '**': 14,
};
const BINDS = {
  SequenceExpression: SEQUENCE, AssignmentExpression: ASSIGNMENT, ArrowFunctionExpression: ASSIGNMENT, YieldExpression: ASSIGNMENT, ConditionalExpression: CONDITIONAL,
  UnaryExpression: UNARY, AwaitExpression: UNARY, UpdateExpression: UPDATE, ChainExpression: CHAIN, CallExpression: CALL, NewExpression: CALL, MemberExpression: CALL,
  TaggedTemplateExpression: CALL,
};
const binds = (node) => {
  const known = BINDS[node.type];
  if (known !== undefined) return known;
  return node.type === 'BinaryExpression' || node.type === 'LogicalExpression' ? OPERATORS[node.operator] : PRIMARY;
};

// The form that the first token of an expression belongs to.
const FIRST = { SequenceExpression: 'expressions', AssignmentExpression: 'left', ConditionalExpression: 'test', BinaryExpression: 'left', LogicalExpression: 'left',
  CallExpression: 'callee', MemberExpression: 'object', TaggedTemplateExpression: 'tag', ChainExpression: 'expression' };
const first = (node) => {
  let at = node;
  for (;;) {
    const field = at.type === 'UpdateExpression' && !at.prefix ? 'argument' : FIRST[at.type];
    if (field === undefined) return at.type;
    at = field === 'expressions' ? at.expressions[0] : at[field];
  }
};
const BEGINS_STATEMENT = new Set(['ObjectExpression', 'ObjectPattern', 'FunctionExpression', 'ClassExpression']);

const hasCall = (node) => {
  for (let at = node; ; at = at.type === 'MemberExpression' ? at.object : at.tag) {
    if (at.type === 'CallExpression') return true;
    if (at.type !== 'MemberExpression' && at.type !== 'TaggedTemplateExpression') return false;
  }
};
// Whether an `else` behind a statement would be taken by an `if` inside of it.
const takesElse = (node) => {
  for (let at = node; at; at = at.type === 'IfStatement' ? at.alternate : at.body) {
    if (at.type === 'IfStatement' && !at.alternate) return true;
    if (at.type !== 'IfStatement' && !/^(?:For|While|With|Labeled)/.test(at.type)) return false;
  }
  return false;
};

let out = '', line = 1;

const lines = (node) => {
  const wanted = node.loc.start.line;
  for (; line < wanted; line++) out += '\n';
};
const raw = (text) => {
  out += text;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 10 || c === 0x2028 || c === 0x2029) line++;
  }
};

const expression = (node, least) => {
  if (node.loc.start.line > line) lines(node);
  const write = expressions[node.type];
  if (write === undefined) throw new TypeError(`no form for ${node.type}`);
  if (binds(node) >= least) write(node);
  else {
    out += '(';
    write(node);
    out += ')';
  }
};
const list = (nodes) => {
  for (let i = 0; i < nodes.length; i++) {
    if (i > 0) out += ', ';
    expression(nodes[i], ASSIGNMENT);
  }
};
const statements = (nodes) => {
  for (let i = 0; i < nodes.length; i++) statement(nodes[i]);
};
const block = (node) => {
  out += '{ ';
  statements(node.body);
  out += '}';
};
const statement = (node) => {
  if (node.loc.start.line > line) lines(node);
  const write = forms[node.type];
  if (write === undefined) throw new TypeError(`no form for ${node.type}`);
  write(node);
  out += ' ';
};

// `return`, `throw` and `yield` end at a line end: what goes over several lines stands in parentheses.
const argument = (node, least) => {
  out += ' ';
  if (node.loc.end === undefined || node.loc.end.line <= line) { expression(node, least); return; }
  out += '(';
  expression(node, SEQUENCE);
  out += ')';
};

const key = (node) => {
  if (!node.computed) { expressions[node.key.type](node.key); return; }
  out += '[';
  expression(node.key, ASSIGNMENT);
  out += ']';
};
const parameters = (node) => {
  out += '(';
  list(node.params);
  out += ')';
};
const functionForm = (node) => {
  out += (node.async ? 'async function' : 'function') + (node.generator ? '* ' : ' ') + (node.id ? node.id.name : '');
  parameters(node);
  out += ' ';
  block(node.body);
};
const method = (node) => {
  const { value } = node;
  if (node.static) out += 'static ';
  if (node.kind === 'get' || node.kind === 'set') out += node.kind + ' ';
  if (value.async) out += 'async ';
  if (value.generator) out += '*';
  key(node);
  parameters(value);
  out += ' ';
  block(value.body);
};
const members = {
  MethodDefinition: method,
  PropertyDefinition: (node) => {
    if (node.static) out += 'static ';
    key(node);
    if (node.value) {
      out += ' = ';
      expression(node.value, ASSIGNMENT);
    }
    out += ';';
  },
  StaticBlock: (node) => {
    out += 'static ';
    block(node);
  },
};
const classForm = (node) => {
  out += node.id ? `class ${node.id.name}` : 'class';
  if (node.superClass) {
    out += ' extends ';
    expression(node.superClass, CALL);
  }
  out += ' { ';
  for (const part of node.body.body) {
    if (part.loc.start.line > line) lines(part);
    members[part.type](part);
    out += ' ';
  }
  out += '}';
};
const braces = (node) => {
  out += '{ ';
  list(node.properties);
  out += ' }';
};
const brackets = (node) => {
  const { elements } = node;
  out += '[';
  for (let i = 0; i < elements.length; i++) {
    if (elements[i]) expression(elements[i], ASSIGNMENT);
    if (i + 1 < elements.length || !elements[i]) out += ', ';
  }
  out += ']';
};
const operation = (node) => {
  const { operator, left, right } = node;
  const own = operator === 'in' ? OPERATORS['<'] : OPERATORS[operator];
  let before = own, behind = own + 1;
  if (operator === '**') { before = UPDATE; behind = own; }
  // the grammar does not mix `??` with `||` and `&&`
  else if (operator === '??') { before = left.type === 'LogicalExpression' && left.operator === '??' ? own : BITWISE; behind = BITWISE; }
  if (operator === 'in') out += '(';
  expression(left, before);
  out += ` ${operator} `;
  expression(right, behind);
  if (operator === 'in') out += ')';
};
const rest = (node) => {
  out += '...';
  expression(node.argument, ASSIGNMENT);
};
const template = (node) => {
  out += '`';
  for (let i = 0; i < node.quasis.length; i++) {
    raw(node.quasis[i].value.raw);
    if (i === node.expressions.length) break;
    out += '${';
    expression(node.expressions[i], SEQUENCE);
    out += '}';
  }
  out += '`';
};

const expressions = {
  Identifier: (node) => { out += node.name; },
  PrivateIdentifier: (node) => { out += `#${node.name}`; },
  Literal: (node) => {
    const { value } = node;
    if (node.regex) out += `/${node.regex.pattern}/${node.regex.flags}`;
    else if (typeof node.bigint === 'string') out += node.bigint + 'n';
    else out += typeof value === 'string' ? quoted(value) : typeof value === 'number' ? number(value) : String(value);
  },
  ThisExpression: () => { out += 'this'; },
  Super: () => { out += 'super'; },
  MetaProperty: (node) => { out += `${node.meta.name}.${node.property.name}`; },
  TemplateLiteral: template,
  TaggedTemplateExpression: (node) => {
    expression(node.tag, CALL);
    template(node.quasi);
  },
  ArrayExpression: brackets,
  ArrayPattern: brackets,
  ObjectExpression: braces,
  ObjectPattern: braces,
  Property: (node) => {
    if (node.method || node.kind !== 'init') { method(node); return; }
    if (!node.shorthand) {
      key(node);
      out += ': ';
    }
    expression(node.value, ASSIGNMENT);
  },
  SpreadElement: rest,
  RestElement: rest,
  AssignmentPattern: (node) => {
    expression(node.left, CALL);
    out += ' = ';
    expression(node.right, ASSIGNMENT);
  },
  FunctionExpression: functionForm,
  ClassExpression: classForm,
  ArrowFunctionExpression: (node) => {
    if (node.async) out += 'async ';
    parameters(node);
    out += ' => ';
    if (node.body.type === 'BlockStatement') { block(node.body); return; }
    const isObject = /^Object/.test(first(node.body));
    if (isObject) out += '(';
    expression(node.body, ASSIGNMENT);
    if (isObject) out += ')';
  },
  SequenceExpression: (node) => list(node.expressions),
  AssignmentExpression: (node) => {
    expression(node.left, CALL);
    out += ` ${node.operator} `;
    expression(node.right, ASSIGNMENT);
  },
  ConditionalExpression: (node) => {
    expression(node.test, COALESCE);
    out += ' ? ';
    expression(node.consequent, ASSIGNMENT);
    out += ' : ';
    expression(node.alternate, ASSIGNMENT);
  },
  BinaryExpression: operation,
  LogicalExpression: operation,
  UnaryExpression: (node) => {
    out += node.operator;
    const inner = node.argument.type;
    if (node.operator.length > 1 || inner === 'UnaryExpression' || inner === 'UpdateExpression') out += ' ';
    expression(node.argument, UNARY);
  },
  AwaitExpression: (node) => {
    out += 'await ';
    expression(node.argument, UNARY);
  },
  YieldExpression: (node) => {
    out += node.delegate ? 'yield*' : 'yield';
    if (node.argument) argument(node.argument, ASSIGNMENT);
  },
  UpdateExpression: (node) => {
    if (node.prefix) out += node.operator;
    expression(node.argument, CALL);
    if (!node.prefix) out += node.operator;
  },
  ChainExpression: (node) => expression(node.expression, CALL),
  CallExpression: (node) => {
    expression(node.callee, CALL);
    out += node.optional ? '?.(' : '(';
    list(node.arguments);
    out += ')';
  },
  NewExpression: (node) => {
    out += 'new ';
    expression(node.callee, hasCall(node.callee) ? PRIMARY + 1 : CALL);
    out += '(';
    list(node.arguments);
    out += ')';
  },
  MemberExpression: (node) => {
    const { object, property } = node;
    expression(object, object.type === 'Literal' && typeof object.value === 'number' ? PRIMARY + 1 : CALL);
    if (node.computed) {
      out += node.optional ? '?.[' : '[';
      expression(property, SEQUENCE);
      out += ']';
    } else {
      out += node.optional ? '?.' : '.';
      expression(property, PRIMARY);
    }
  },
};

const variables = (node) => {
  if (node.loc.start.line > line) lines(node);
  out += node.kind + ' ';
  for (let i = 0; i < node.declarations.length; i++) {
    const one = node.declarations[i];
    if (i > 0) out += ', ';
    expression(one.id, CALL);
    if (one.init) {
      out += ' = ';
      expression(one.init, ASSIGNMENT);
    }
  }
};
const head = (word, node) => {
  out += `${word} (`;
  expression(node, SEQUENCE);
  out += ') ';
};
const jump = (word) => (node) => { out += node.label ? `${word} ${node.label.name};` : `${word};`; };
const loopOver = (word, least) => (node) => {
  const { left } = node;
  out += node.await ? 'for await (' : 'for (';
  if (left.type === 'VariableDeclaration') variables(left);
  else expression(left, left.type === 'Identifier' && left.name === 'async' ? PRIMARY + 1 : CALL); // `for (async of` begins an arrow function
  out += word;
  expression(node.right, least);
  out += ') ';
  statement(node.body);
};

const forms = {
  EmptyStatement: () => { out += ';'; },
  DebuggerStatement: () => { out += 'debugger;'; },
  BlockStatement: block,
  ExpressionStatement: (node) => {
    const at = node.expression;
    // A string that stands as a statement is a directive only where its text said so: an escape in it makes it none.
    const wrapped = at.type === 'Literal' ? typeof at.value === 'string' && node.directive !== at.value : BEGINS_STATEMENT.has(first(at));
    if (wrapped) out += '(';
    expression(at, SEQUENCE);
    out += wrapped ? ');' : ';';
  },
  VariableDeclaration: (node) => {
    variables(node);
    out += ';';
  },
  FunctionDeclaration: functionForm,
  ClassDeclaration: classForm,
  IfStatement: (node) => {
    head('if', node.test);
    if (node.alternate && takesElse(node.consequent)) {
      out += '{ ';
      statement(node.consequent);
      out += '} ';
    } else statement(node.consequent);
    if (!node.alternate) return;
    out += 'else ';
    statement(node.alternate);
  },
  ForStatement: (node) => {
    out += 'for (';
    if (node.init && node.init.type === 'VariableDeclaration') variables(node.init);
    else if (node.init) expression(node.init, SEQUENCE);
    out += '; ';
    if (node.test) expression(node.test, SEQUENCE);
    out += '; ';
    if (node.update) expression(node.update, SEQUENCE);
    out += ') ';
    statement(node.body);
  },
  ForInStatement: loopOver(' in ', SEQUENCE),
  ForOfStatement: loopOver(' of ', ASSIGNMENT),
  WhileStatement: (node) => {
    head('while', node.test);
    statement(node.body);
  },
  DoWhileStatement: (node) => {
    out += 'do ';
    statement(node.body);
    head('while', node.test);
    out += ';';
  },
  WithStatement: (node) => {
    head('with', node.object);
    statement(node.body);
  },
  SwitchStatement: (node) => {
    head('switch', node.discriminant);
    out += '{ ';
    for (const one of node.cases) {
      if (one.loc.start.line > line) lines(one);
      if (one.test) {
        out += 'case ';
        expression(one.test, SEQUENCE);
        out += ': ';
      } else out += 'default: ';
      statements(one.consequent);
    }
    out += '}';
  },
  TryStatement: (node) => {
    out += 'try ';
    block(node.block);
    if (node.handler) {
      out += ' catch ';
      if (node.handler.param) {
        out += '(';
        expression(node.handler.param, CALL);
        out += ') ';
      }
      block(node.handler.body);
    }
    if (node.finalizer) {
      out += ' finally ';
      block(node.finalizer);
    }
  },
  LabeledStatement: (node) => {
    out += `${node.label.name}: `;
    statement(node.body);
  },
  BreakStatement: jump('break'),
  ContinueStatement: jump('continue'),
  ReturnStatement: (node) => {
    out += 'return';
    if (node.argument) argument(node.argument, SEQUENCE);
    out += ';';
  },
  ThrowStatement: (node) => {
    out += 'throw';
    argument(node.argument, SEQUENCE);
    out += ';';
  },
};

// BEFORE and BEHIND are ours: one line each at most.
export const write = (tree, before = '', behind = '') => {
  out = before;
  line = 1;
  statements(tree.body);
  const text = out + behind;
  out = '';
  return text;
};
