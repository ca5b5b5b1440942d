// SPDX-License-Identifier: Apache-2.0
console.log([1,2,3,4,5,6,7,8,9,10]); console.log(Array.from({length:30},(_, i)=>i*i));
console.log(['apple','banana','cherry','date','elderberry','fig','grape','honeydew']);
console.log({a:{b:{c:{d:1}}}}, new Map([[1,{a:2}],['x',[1]]]), new Set([1,'a']));
console.log('%s is %d years and %i, %f, %j %o %O %%', 'Bob', 42.5, 42.9, 1.5, {a:1}, {b:2}, {c:3}, 'extra');
console.log(null, undefined, true, 1n, Symbol('x'), -0, NaN, 'str');
console.log([null, undefined, 'a\'b', "q\"'x", `n
l`]);
class A { constructor(){ this.x=1; this.#p=2;} #p; get y(){return 1} static s = 1 }
console.log(new A(), A, class {}, class B extends A {}, function f(){}, ()=>{}, async()=>{}, function*g(){}, Math.max);
console.log([,1,,2,,,]); console.log(new Date(0), /x/g, [new Date(0)], new Error('boom').message);
const c = {name:'c'}; c.self=c; console.log(c);
console.log(Object.create(null), Object.create({a:1}), new (class extends Map{})(), new Uint8Array([1,2,3]), new ArrayBuffer(4));
console.log({f(){}, g:()=>1, get h(){return 1}, set h(v){}, [Symbol('k')]:1, 'a-b':2, 3:4});
console.log([[1,[2,[3,[4]]]]], {a:[{b:1}]});
console.log(new Number(3), new String('abc'), new Boolean(false), [1.5,2.25,-3], ['a'.repeat(100)]);
console.log({a:'x'.repeat(30),b:'y'.repeat(31)}); console.log({a:'x'.repeat(20),b:'y'.repeat(20), c:{d:'e'.repeat(30)}});
console.table([{a:1,b:'x'},{a:2,c:true}]); console.table([1,2,3]); console.table([[1,2],[3,4]]);
console.group('G'); console.log('in\nside'); console.groupEnd(); console.log('out');
console.count(); console.count('x'); console.count();
console.log(Array(3), new Array(5).fill(0), [undefined,,null]); console.log(-0, [-0], 0);
console.log(JSON.stringify({a:[1,{b:2}]},null,2)); console.dir({a:{b:{c:{}}}},{depth:0});
console.log(new WeakMap(), Symbol.iterator, [Symbol('a')]);
console.log([true,false], [1n,2n], ['a',1,null], {u:undefined,n:null}); console.log(Object.assign(()=>{}, {a:1})); console.log(Object.assign([1,2],{x:1}));
console.log(Array.from({length:120},(_, i)=>i)); console.log('a'.repeat(10).split('')); console.log(process.argv.length>0, [..."héllo wörld and so on"]);
console.log((function(){return arguments})(1,2), new Proxy({a:1},{}), [function(){}, class Q{}], [1,2,3].entries(), (function*(){})());
console.log(Array.from({length:7},(_, i)=>({id:i,name:'n'+i}))); console.log(Array.from({length:10},(_, i)=>'item number '+i));
console.log({ users:[{name:'Ann',tags:['a','b'],addr:{city:'X',geo:{lat:1}}}], total:1 });
