// SPDX-License-Identifier: Apache-2.0
// A judged tree -> the script that runs, by astring. Nothing of the text is copied but the inside of regular expressions and of templates,
// which have no other form: names, strings and numbers are written from their values, so that an escape that the judge
// read through is gone. What astring leaves to the shape of its input is written out here.
import { generate, GENERATOR, EXPRESSIONS_PRECEDENCE, NEEDS_PARENTHESES } from 'astring';

const text = (value) => JSON.stringify(value).replace(/[\u2028\u2029\u007f-\u009f\ufeff]|<(?=!--|\/script)/gi, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

const number = (value) => {
  if (value === Infinity) return '1e999';
  return String(value);
};

const writer = Object.assign({}, GENERATOR, {
  Literal(node, state) {
    if (node.regex) state.write(`/${node.regex.pattern}/${node.regex.flags}`, node);
    else if (typeof node.bigint === 'string') state.write(node.bigint + 'n', node);
    else if (typeof node.value === 'string') state.write(text(node.value), node);
    else if (typeof node.value === 'number') state.write(number(node.value), node);
    else state.write(String(node.value), node);
  },
  // A string that stands as a statement is a directive only where its text said so: an escape in it makes it none.
  ExpressionStatement(node, state) {
    const { expression } = node;
    if (expression.type === 'Literal' && typeof expression.value === 'string' && node.directive !== expression.value) {
      state.write('(');
      this.Literal(expression, state);
      state.write(');');
      return;
    }
    GENERATOR.ExpressionStatement.call(this, node, state);
  },
  ArrowFunctionExpression(node, state) {
    if (node.body.type === 'AssignmentExpression' && node.body.left.type === 'ObjectPattern') {
      const body = node.body;
      GENERATOR.ArrowFunctionExpression.call(this, { ...node, body: { type: 'SequenceExpression', expressions: [body] } }, state);
      return;
    }
    GENERATOR.ArrowFunctionExpression.call(this, node, state);
  },
  // `for (async of x)` begins an arrow function; astring's own check of the key of a field takes a computed one for a method.
  ForOfStatement(node, state) {
    const { left } = node;
    if (left.type === 'Identifier' && left.name === 'async' && !node.await) {
      GENERATOR.ForOfStatement.call(this, { ...node, left: { type: 'SequenceExpression', expressions: [left] } }, state);
      return;
    }
    GENERATOR.ForOfStatement.call(this, node, state);
  },
  PropertyDefinition(node, state) {
    if (node.static) state.write('static ');
    if (node.computed) state.write('[');
    this[node.key.type](node.key, state);
    if (node.computed) state.write(']');
    if (node.value) {
      state.write(' = ');
      this[node.value.type](node.value, state);
    }
    state.write(';');
  },
  // A number as a key or an object may look like the beginning of another one.
  MetaProperty(node, state) {
    state.write(`${node.meta.name}.${node.property.name}`, node);
  },
});

// In parentheses wherever another expression holds it: (a?.b).c is not a?.b.c.
const precedence = { ...EXPRESSIONS_PRECEDENCE, ChainExpression: NEEDS_PARENTHESES, ImportExpression: 19, MetaProperty: 20 };

// -> {text, lines}: lines[i] is the line of the source that line i + 1 of the text came of, 0 where none is known.
export const write = (tree) => {
  const lines = [];
  const sourceMap = {
    addMapping({ original, generated }) {
      if (!lines[generated.line - 1]) lines[generated.line - 1] = original.line;
    },
  };
  const out = generate(tree, { generator: writer, expressionsPrecedence: precedence, indent: '', sourceMap });
  const count = out.split('\n').length - (out.endsWith('\n') ? 1 : 0);
  let last = 0;
  for (let i = 0; i < count; i++) lines[i] = last = lines[i] || last;
  lines.length = count;
  return { text: out, lines };
};
