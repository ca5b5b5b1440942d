// SPDX-License-Identifier: Apache-2.0
// A text -> its tree, by acorn. Two bounds make every text end in a tree or in a clean refusal: how deep the parser may be in itself,
// and how often it may enter its own rules for each byte (the parser of TypeScript tries twice in places, which nests).
import { Parser, version } from 'acorn';
import { tsPlugin } from '@sveltejs/acorn-typescript';

// The language that JavaScriptCore runs: a form that acorn knows of a later one is a syntax error here, not in the engine.
// An acorn before 8.14 does not know all of it, and takes a version that it does not know for an error.
const [, minor] = version.split('.').map(Number);
const VERSION = minor < 14 ? 2023 : 2025;
export const hasTypes = tsPlugin !== null;
export const DEPTH = 1500;
const STEPS_OF_A_BYTE = 40, STEPS_AT_LEAST = 20000;

const SPACE = /(?:\s|\/\/.*|\/\*[^]*?\*\/)*/y, QUOTED = /'(?:\\[^]|[^'\\\r\n])*'|"(?:\\[^]|[^"\\\r\n])*"/y, NEWLINE = /\r\n?|[\n\u2028\u2029]/;

export class TooDeep extends Error {}
export class TooLong extends Error {}

const bounded = (Base) => {
  class Bounded extends Base {
    constructor(options, input, start) {
      super(options, input, start);
      this.cordonDepth = 0;
      this.cordonLeft = input.length * STEPS_OF_A_BYTE + STEPS_AT_LEAST;
    }

    // Whether a body begins with "use strict". acorn's own asks an expression that an interpreter of expressions tries at every place
    // up to the end of the text, for each function: a text of 260 KB took 29 s in JavaScriptCore. These are tried at one place.
    strictDirective(start) {
      const skip = (at) => {
        SPACE.lastIndex = at;
        return at + SPACE.exec(this.input)[0].length;
      };
      for (let at = skip(start); ;) {
        QUOTED.lastIndex = at;
        const found = QUOTED.exec(this.input);
        if (!found) return false;
        const from = at + found[0].length, end = skip(from);
        if (found[0].slice(1, -1) === 'use strict') {
          const next = this.input[end], newLine = NEWLINE.test(this.input.slice(from, end));
          return next === undefined || next === ';' || next === '}' ||
            (newLine && !/[(`.[+\-/*%<>=,?^&]/.test(next) && !(next === '!' && this.input[end + 1] === '=') && !/^(?:in|instanceof)(?![\w$\\\u0080-\uffff])/.test(this.input.slice(end, end + 11)));
        }
        at = this.input[end] === ';' ? skip(end + 1) : end;
      }
    }
  }
  for (const rule of ['parseStatement', 'parseMaybeAssign', 'parseMaybeUnary', 'parseExprAtom', 'parseExprOp', 'parseBindingAtom', 'tsParseType', 'tsParseNonArrayType']) {
    const inner = Base.prototype[rule];
    if (!inner) continue;
    Bounded.prototype[rule] = function (a, b, c, d, e, f) {
      if (++this.cordonDepth > DEPTH) throw new TooDeep(rule);
      if (--this.cordonLeft < 0) throw new TooLong(rule);
      try {
        return inner.call(this, a, b, c, d, e, f);
      } finally {
        this.cordonDepth--; // also where it throws: the parser of TypeScript tries a `<` as the begin of types first, and catches that
      }
    };
  }
  return Bounded;
};
const JavaScript = bounded(Parser);
let typescript = null;
const parserFor = (language) => {
  if (language !== 'typescript') return JavaScript;
  if (!typescript) typescript = bounded(Parser.extend(tsPlugin()));
  return typescript;
};

const once = (text, language, sourceType, topAwait, topReturn = false) =>
  parserFor(language).parse(text, { ecmaVersion: VERSION, sourceType, locations: true, allowHashBang: true, allowAwaitOutsideFunction: topAwait, allowReturnOutsideFunction: topReturn });

const isModuleError = (error) => /'import' and 'export' may appear only|Cannot use 'import\.meta' outside a module/.test(error.message);

// A block of a session that begins with a brace is an object where it can be one, as in the consoles of Node and of browsers.
const asObject = (text, language) => {
  if (!/^\s*\{/.test(text) || /;\s*$/.test(text)) return null;
  try {
    const tree = once(`(${text}\n)`, language, 'script', false);
    return tree.body.length === 1 && tree.body[0].type === 'ExpressionStatement' ? { tree, goal: 'script' } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
};

// -> {tree, goal}. A script whose text is none without module syntax, or without `await` outside of functions, is tried as what it would be
// then; what the first try said is the error where both fail.
export const parse = (text, language, mode, isNode) => {
  if (mode === 'module') return { tree: once(text, language, 'module', true), goal: 'module' };
  const object = mode === 'session' ? asObject(text, language) : null;
  if (object) return object;
  try {
    return { tree: once(text, language, 'script', false, isNode), goal: 'script' };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (isModuleError(error)) return { tree: once(text, language, 'module', true), goal: 'module' };
    if (!/\bawait\b/.test(text)) throw error;
    try {
      return { tree: once(text, language, 'script', true), goal: 'script' };
    } catch (second) {
      if (second instanceof SyntaxError && isModuleError(second)) return { tree: once(text, language, 'module', true), goal: 'module' };
      if (!(second instanceof SyntaxError)) throw second;
      throw second.pos > error.pos ? second : error;
    }
  }
};
