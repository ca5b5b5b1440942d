// SPDX-License-Identifier: Apache-2.0
const bytes = new TextEncoder().encode('hé€😀');
console.log(bytes, new TextDecoder().decode(bytes), new TextDecoder().decode(new Uint8Array([0xff, 0x61, 0xe2, 0x82])));
const shared = { d: new Date(0), r: /x/gi, m: new Map([[1, { a: 2 }]]), s: new Set([1]), e: new RangeError('r').message, n: [1, , 3] };
shared.self = shared;
console.log(structuredClone(shared));
try { structuredClone(() => 1); } catch (e) { console.log(e.name, e instanceof DOMException); }
console.log(btoa('hello world'), atob('aGVsbG8gd29ybGQ='), [..."a😀b"].length);
Promise.reject(new Error('x')).catch((e) => console.log('caught', e.message)).finally(() => console.log('finally'));
Promise.allSettled([Promise.resolve(1), Promise.reject(2)]).then((all) => console.log(all));
setTimeout(() => { console.log('first'); Promise.resolve().then(() => console.log('micro')); setTimeout((a, b) => console.log(a, b), 0, 'two', 'words'); }, 1);
(async function* () { yield 1; yield 2; })().next().then(console.log);
class Own extends Error { constructor(m) { super(m); this.name = 'Own'; this.code = 7; } }
try { throw new Own('mine'); } catch (e) { console.log(String(e), e.code, e instanceof Own, e.name); }
console.log([3, 1, 2].toSorted(), [1, 2, 3].at(-1), 'a-b-c'.replaceAll('-', '+'), 10n ** 20n);
console.log(new Intl.NumberFormat('en-US').format(1234567.891), new Date(0).toISOString(), (1234.5).toFixed(2), parseInt('12px'), Number('0x1f'));
console.log(Array.from(new Map([['a', 1]])), Object.fromEntries([['x', 1]]), JSON.stringify({ u: undefined, d: new Date(0), n: NaN }));
console.log([[2, 'b'], [1, 'a'], [3, 'c']].sort((a, b) => a[0] === b[0]), [3, 1, 2].sort((a, b) => a > b), [3, 1, 2].sort(), [10, 9, 1].sort((a, b) => a - b), new Int8Array([3, 1, 2]).sort((a, b) => b - a));
process.stdout.write('no line end');
process.stdout.write('\n');
