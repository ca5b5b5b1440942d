// SPDX-License-Identifier: Apache-2.0
// What a JavaScript program may not do, one table. `in` is the least set of rules that a row belongs to: `standard` rules hold in strict as
// well, `always` in every profile, because what they refuse could not be judged or run.

const CODE = 'write the code out; text is not run as code here';
const PLAIN = 'use Object.getPrototypeOf, Object.create or a class';
const NODE = 'take the profile `node` for a program that needs it, or compute it in JavaScript';

export const RULES = {
  'js.name.eval': { in: 'standard', detail: 'runs text as code', hint: CODE },
  'js.name.Function': { in: 'standard', detail: 'makes a function of text', hint: CODE },
  'js.attr.constructor': { in: 'standard', detail: 'leads from a value to the function that makes functions of text', hint: 'name the class itself' },
  'js.attr.__proto__': { in: 'standard', detail: 'changes what every object of a kind inherits', hint: PLAIN },
  'js.attr.accessor': { in: 'standard', detail: 'reaches around the properties of an object', hint: 'use Object.defineProperty' },
  'js.call.document.write': { in: 'standard', detail: 'writes markup that runs as code', hint: 'print the text with console.log' },
  'js.call.timer-text': { in: 'standard', detail: 'runs text as code later', hint: 'give the timer a function' },
  'js.call.require': { in: 'standard', detail: 'there is no module loader of Node here', hint: 'import a file of the workspace; ' + NODE },
  'js.form.with': { in: 'standard', detail: 'makes a name mean what an object says at run time', hint: 'name the object' },
  'js.form.callee': { in: 'strict', detail: 'leads from a function to the one that called it', hint: 'pass what is needed as an argument' },
  'js.form.let-name': { in: 'always', detail: '`let` as a name reads as a declaration', hint: 'use another name' },
  'js.form.arguments': { in: 'always', detail: 'there are no arguments outside of a function', hint: 'use them inside of a function' },
  'js.form.own-name': { in: 'always', detail: 'a name that the script itself has for its interrupts', hint: 'use another name' },
  'js.limit.depth': { in: 'always', detail: 'nested too deeply to be judged', hint: 'break it into functions or statements' },
  'js.limit.steps': { in: 'always', detail: 'takes too long to be judged', hint: 'write it in a simpler form' },
  'js.limit.text': { in: 'always', detail: 'a character that ends the text for one reader and not for another', hint: 'leave it out' },
  'js.node.unknown': { in: 'always', detail: 'a form of the language that the judge does not know', hint: 'write it in another form' },
  'js.module.specifier': { in: 'always', detail: 'modules come of the workspace only', hint: 'import by a relative path or by /workspace/PATH; ' + NODE },
  'js.module.missing': { in: 'always', detail: 'no such file in the workspace', hint: 'save the file first, or correct the path' },
  'js.module.export': { in: 'always', detail: 'the module does not export this name', hint: 'correct the name' },
  'js.module.count': { in: 'always', detail: 'imports more files than one program may have', hint: 'join files' },
  'js.module.attributes': { in: 'always', detail: 'an import with attributes is not known here', hint: 'import a JSON file without them, or write the data into a module' },
  'ts.parser': { in: 'always', detail: 'this build has no parser of TypeScript', hint: 'write it in JavaScript' },
  'ts.decorator': { in: 'always', detail: 'decorators are not run', hint: 'call the function yourself' },
  'ts.import-equals': { in: 'always', detail: '`import x = ...` is not run', hint: 'write `import x from` or a constant' },
  'ts.export-equals': { in: 'always', detail: '`export =` is not run', hint: 'write `export default`' },
  'ts.namespace': { in: 'always', detail: 'this form of a namespace is not run', hint: 'write a module, or an object' },
  'ts.accessor': { in: 'always', detail: '`accessor` fields are not run', hint: 'write get and set' },
};

const ORDER = ['none', 'standard', 'strict'];
export const holds = (rule, rules) => {
  const least = RULES[rule].in;
  return least === 'always' || (rules !== 'none' && ORDER.indexOf(rules) >= ORDER.indexOf(least));
};

export const finding = (rule, name, at, path, detail) => ({
  rule, name, line: at.line, column: at.column + 1, detail: detail || RULES[rule].detail, hint: RULES[rule].hint, path,
});

// Whether Node runs the text, and not the second context: a profile says so by a rule.
export const isForNode = (options) => (options.deny || []).some((rule) => rule.kind === 'module-allow' && rule.name === 'node');
