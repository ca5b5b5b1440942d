// SPDX-License-Identifier: Apache-2.0
// The plain-text table: what decides of a text that has no tree. A broken program runs nowhere here, but whoever repairs it is to hear of
// the danger first, and a text that one parser cannot read another one may. Escapes of letters are read first; comments and strings
// count, since without a tree nothing tells them from code.
import { holds, finding, isForNode } from './rules.js';

const TABLE = [
  ['js.name.eval', /\beval\s*(?:\?\.\s*)?[(`]/g, 'eval'],
  ['js.name.eval', /\(\s*0\s*,\s*eval\s*\)/g, 'eval'],
  ['js.name.Function', /\bFunction\s*[(`]/g, 'Function'],
  ['js.attr.constructor', /\bconstructor\s*(?:\.\s*constructor\b|\[\s*["'`]constructor)/g, 'constructor'],
  ['js.attr.constructor', /\.\s*constructor\s*\(\s*["'`]/g, 'constructor'],
  ['js.attr.__proto__', /__proto__/g, '__proto__'],
  ['js.call.document.write', /\bdocument\s*\.\s*write(?:ln)?\b/g, 'document.write'],
  ['js.call.require', /\brequire\s*\(\s*["'`](?:node:)?(?:child_process|fs|vm|net|http|https|cluster|worker_threads|module|inspector|dgram|os|process)\b/g, 'require'],
];

const read = (text) => text.replace(/\\u(?:\{0*([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))/g, (all, long, short) => {
  const code = parseInt(long || short, 16);
  return code < 128 ? String.fromCharCode(code) : all;
});

export const checkText = (text, options, path) => {
  const findings = [];
  const plain = read(text);
  for (const [rule, pattern, name] of TABLE) {
    if (!holds(rule, options.rules || 'strict') || (rule === 'js.call.require' && isForNode(options))) continue;
    pattern.lastIndex = 0;
    const found = pattern.exec(plain);
    if (!found) continue;
    const before = plain.slice(0, found.index);
    const line = before.split(/\r\n|[\n\r\u2028\u2029]/).length;
    const column = found.index - Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r'), before.lastIndexOf('\u2028'), before.lastIndexOf('\u2029')) - 1;
    findings.push(finding(rule, name, { line, column }, path));
  }
  return findings;
};
