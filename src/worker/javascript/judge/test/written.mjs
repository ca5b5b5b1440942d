// SPDX-License-Identifier: Apache-2.0
// Texts whose regenerated script must have the tree of the text: what a generator gets wrong, and every form of the language.
export const written = [
  '1 + 2 * 3 - (4 - 5)', '(1, 2)', 'a ? b : c ? d : e', '(a ? b : c) ? d : e', '(-1) ** 2', '(a ** b) ** c', 'a ** b ** c', '-(a ** b)', '(await_) ** 2',
  'a ?? (b || c)', '(a ?? b) || c', '(a && b) ?? c', 'a || b && c', '(a || b) && c', '!(a in b)', '(a, b) in c', 'for (var i = ("a" in b); ;) ;', 'for (var x = () => { a in b }; ;) ;',
  '(a?.b).c', 'a?.b.c', '(a?.b)()', 'a?.b()', 'a?.[0]?.(1)', 'new (a?.b)()', 'delete a?.b', '(a?.b)`x`', 'new (a())()', 'new (a.b().c)()', 'new a.b()', 'new (new a)()', 'new new a()()',
  '(function () {})()', '(function () {}).call(1)', '(() => {})()', '(class {}).name', '!function () {}()', '({}).x', '({}.x = 1)', '({ a } = b)', '({ a } = b, c)', '(() => ({ a } = b))', '() => ({})', '() => ({}).x', '() => [a] = b',
  '[{ a }] = b', 'async x => await x', 'async () => {}', 'async (a, b) => a', '(a => a)(1)', '(async a => a)()', 'a => b => c', '(a => a) ? 1 : 2', 'x = a => a', '`a${b}c`', '`\\u0041\\n${`x`}`', 'tag`a${b}\\unicode`', '(a.b)`x`', 'a.b`x`', 'f()`x`', 'new f`x`',
  '5..toString()', '5.5.toFixed()', '1e21.x', '(0x10).y', '1e999', '-1e999', '0.1', '1_000', '0b11', '10n ** 2n', '0xfn', '"\\u2028\\u2029"', '"a\\0b"', '"\\ud800"', "'\"'", '"</script>"', '"<!--"', '/[/]\\/(?<a>x)\\k<a>/gimsuy', '/[[a]&&[b]]/v', '/a/ / b', 'a / /b/', 'a++ / 2', '+ +a', '- -a', '+ ++a', '- --a', 'a - -b', 'a + +b', 'a-- > b', 'a < !--b', 'typeof void 0', 'typeof (() => {})', 'void (a, b)', '!(await_ , 1)',
  'if (a) { if (b) c } else d', 'if (a) if (b) c; else d', 'if (a) ; else ;', 'if (a) for (;;) if (b) c; else d', 'do a; while (b)', 'while (a) ;', 'for (;;) ;', 'for (const a of b) ;', 'for (var a in b) ;', 'for ((async) of b) ;', 'for (a of (b, c)) ;', 'for ([a, b] of c) ;', 'for (a.b of c) ;', 'for (let i = 0, j = 1; i < j; i++, j--) ;',
  'a: for (;;) { continue a }', 'a: { break a }', 'switch (a) { case 1: b; case 2: default: c }', 'try { a } catch { b } finally { c }', 'try { a } catch ({ x, y = 1 }) { b }', 'throw a', 'debugger', ';',
  'var a, b = 1', 'let [a, , b = 2, ...c] = d', 'const { a, b: { c }, d = 1, ["e"]: f, ...g } = h', 'function f(a, { b }, [c], d = 1, ...e) {}', 'function* g() { yield; yield a; yield* b; const x = yield; (yield) + 1 }', 'async function f() { await a; for await (const b of c) ; (await a)(); (await a).b; await (a, b); await (() => {}) }', 'async function* f() { yield await a }',
  'class A extends B { constructor() { super(); super.a } static #b = 1; #c() {} get d() { return this.#c } set d(v) {} static async *e() {} [f] = 1; "g" = 2; 3 = 4; static { this.x } async h() {} *i() {} static get = 1; get; set; async; static static; #j = 1; k() { return #j in this } }', 'class A extends (a, b) {}', 'class A extends (a ? b : c) {}', 'class A extends a.b {}', 'class A extends a() {}', 'class A extends (a?.b) {}', 'class A extends (() => {}) {}', 'class A extends class {} {}', 'x = class A {}', 'class A { [function () {}] }', 'class A { ["x"]; y }',
  '({ a, b: 1, "c d": 2, 3: 4, [e]: 5, f() {}, get g() { return 1 }, set g(v) {}, async h() {}, *i() {}, async *j() {}, ...k, get: 1, async: 2, static: 3, await: 4 })', '[, ]', '[a, , b]', '[...a, ...b]', 'f(...a, b)', '[,,]',
  'var \\u0061b = 1', 'var ünï = 1', 'var 𠮷 = 1', 'a.if.else', '({ if: 1 })', 'var of = 1, get = 2, set = 3, async = 4, from = 5; async(of)', 'async (x)', 'async\nx => 1', 'let_[0] = 1',
  '"use strict"; a', "'use\\x20strict'; var public = 1", '("use strict"); var public = 1', '"a"; "b"', 'function f() { "use strict"; return this }', 'function f() { ("use strict"); return 010 }', 'function f() { "use strict"\n+ 1; with_ }', 'a &&= b', 'a ||= b', 'a ??= b', 'a **= b', 'a >>>= b', 'import_.meta_', '(a, b) => {}', '(a = 1, { b } = {}) => a', '(...a) => a', 'x = y = z', 'x = (y, z)', '(x = y) + 1', '(x ? y : z).a', '(x + y).a', '(x || y)()', '(yield_ || 1)', '(x++).a', '-x.a', '(-x).a', '(!x)()', '(typeof x)[0]', 'if (a) function f() {}', '{ function f() {} }', 'var { a = () => {} } = b', '(function f() {}.name)', '(function* () {})', '(async function () {})', '(class A extends B {})', 'a\n++b', 'a\n/b/g', 'x = function () {}\n(1)', 'let async_; async_ => 1', '0, function () {}', '[function () {}, class {}, () => {}]', 'a ? function () {} : class {}', 'a || function () {}', 'function () {}.x'.replace(/^/, '!'), '(a, b).c', '(a = b).c', '(a => a).c', '(new a).b', 'new a().b', 'new (a.b)', 'new (a())', 'new (a?.())', '(import_)', 'for (var i = 0 in {}) ;',
];

// Texts that throw, and the line that their stack is to name.
export const lines = [
  ['// one\n\n\nconst a = {\n  b: 1,\n  c: [1,\n2]\n};\nfunction f() {\n\n  return a.b.c.d;\n}\n\nf();\n', 11, 'in a function below an object over several lines'],
  ['function f(x) {\n  return (\n    x\n      .a\n      .b\n  );\n}\nf({});\nf();', 5, 'in a value of return that begins on the next line'],
  ['const f = () => {\n  throw (\n    new Error(\n      "x"\n    )\n  );\n};\nf();', 3, 'in a throw whose value begins on the next line'],
  ['const t = `a\n\n${1}\n`;\nnull.x;', 5, 'below a template over several lines'],
  ['const s = "a\\\nb";\nnull.x;', 3, 'below a string that goes on in the next line'],
  ['const s = "a\u2028b";\nnull.x;', 3, 'below a line separator in a string'],
  ['/* a\n\n*/ null.x;', 3, 'behind a comment over several lines'],
  ['a:\nfor (;;) {\n  for (;;) {\n    continue\n      ;\n  }\n}'.replace('continue\n      ;', 'null.x;'), 4, 'in a loop with a label'],
  ['async function g() { }\nfunction* h() {\n  yield (\n    null.x\n  );\n}\nh().next();', 4, 'in a value of yield'],
  ['class A {\n  static x = 1;\n\n  static y = null.z;\n}', 4, 'in a field of a class'],
];
