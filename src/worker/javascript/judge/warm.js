// SPDX-License-Identifier: Apache-2.0
// Texts that have the forms most programs have. A template judges them before its first fork: the engine compiles a function when it is first called, and its
// children share what was compiled. `make bench BENCH=javascript` shows the rest; without it the first program of a child takes about twice as long to judge.
import { linkGraph } from './link.js';

const FORMS = `'use strict';
// a comment
const NAME = /^[a-z\\d]+(?:\\.\\w*)?$/gi, text = "a\\n\\u0041", big = 10n, hex = 0xff, half = .5, none = null, yes = true;
let { a, b: [c, , d = 2], ...rest } = { a: 1, b: [1, 2, 3], "e f": 4, [text]: 5, get g() { return 1; }, set g(v) {}, async h() {}, *i() {}, ...other };
class Shape extends Object {
  #side = 1; static count = 0; name = 'x';
  constructor(side, ...more) { super(); this.#side = side; Shape.count += 1; }
  get area() { return this.#side ** 2; }
  static of(...sides) { return new Shape(...sides); }
  async *each() { yield* [this.area, await this.area]; }
  static { this.kind = typeof this; }
}
function sum(list = [], { from = 0, to } = {}) {
  let total = 0;
  for (let i = from; i < (to ?? list.length); i++) { if (list[i] % 2 === 0) continue; else total += list[i] || 0; }
  for (const [k, v] of Object.entries(list)) total -= v;
  for (const key in list) { delete list[key]; }
  outer: while (total > 10) { do { total--; } while (total & 1); if (!total) break outer; }
  switch (total) { case 1: return 'one'; case 2: { break; } default: total = -total; }
  try { if (list instanceof Array && 'x' in list) throw new RangeError(\`bad \${total} of \${list.length}\`); } catch (e) { console.error(e?.message, e.stack); } finally { total++; }
  return total > 1 ? list.map((x, i) => ({ x, i })).filter(({ x }) => x !== 1).reduce((p, q) => p + q.x, 0) : void 0;
}
const wait = async (ms) => { await new Promise((done) => setTimeout(done, ms)); return [...new Set([1, 2])]; };
const tag = String.raw\`a\${1}b\`, f = function* named() { const got = yield 1; return got; };
(async () => { for await (const x of []) log(x); })().catch((e) => {}).finally(() => {});
a = b = (1, 2); a ??= b?.[0]?.c?.(d); a ||= 1; b &&= !c; c = ~a << 2 >>> 1; [a, b] = [b, a];
if (a == null && b != 1) sum([3]); else if (a <= b) { wait(1); }
console.log(sum([1, 2, 3]), NAME.test('abc'), text.replace(/b/g, (m) => m.toUpperCase()), JSON.stringify(rest), Math.max(...[1, 2]), -1 + +a, a--, ++b);
sum([1])
`;
const MODULE = `import d, { x as y } from './m.mjs';\nimport * as ns from './m.mjs';\nexport const z = d + y;\nexport default class { }\nexport { y };\nawait import('./m.mjs');\nconsole.log(ns.x, import.meta.url);\n`;
const IMPORTED = 'export let x = 1;\nexport default function () { return x; }\n';
const TYPED = 'interface P<T> { a?: T; b(): void }\ntype Q = P<string> | null;\nenum E { A, B = 2 }\nclass K implements P<number> { constructor(private readonly n: number, public m?: string) {} b(): void {} }\nconst g = <T,>(l: T[]): T => l[0]!;\nlet q: Record<string, number> = {} as any;\n';

export const warm = (options) => {
  const entry = '/workspace/main.js', typed = options.language === 'typescript' ? TYPED : '';
  for (const [text, mode] of [[typed + FORMS, 'script'], [typed + FORMS, 'session'], [MODULE, 'module'], ['let x = ;', 'script'], ['const v = await 1; v', 'session']])
    linkGraph(entry, { [entry]: text, '/workspace/m.mjs': IMPORTED }, { ...options, mode });
};
