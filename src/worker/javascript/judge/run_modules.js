// SPDX-License-Identifier: Apache-2.0
// The part of a linked script that runs: the algorithm of ECMA-262 for cyclic modules, over modules that are generator functions.
//
// Each module is a generator: its first step binds its functions and hands over a getter for each exported binding, the second one
// runs its body. So a binding is live, a use before its declaration throws as it must, and a cycle finds the functions of a module that has not run.
// A module with `await` outside of functions is an async generator. Its first step ends some ticks later, so that all
// of a graph are taken before the first body runs; then each body runs at once up to its first `await`, as the standard says.
//
// runModules.toString() is what link.js writes into a script: it has no name from outside, and takes the intrinsics that it uses before
// any module runs.

export function runModules(made, records) {
  'use strict';
  const { create, defineProperty, preventExtensions, freeze, getPrototypeOf } = Object;
  const { apply, ownKeys, getOwnPropertyDescriptor } = Reflect;
  const Promised = Promise, ProxyOf = Proxy, Failure = Error, then = Promise.prototype.then, toStringTag = Symbol.toStringTag;
  const push = (list, one) => defineProperty(list, list.length, { value: one, writable: true, enumerable: true, configurable: true });
  const nextOf = getPrototypeOf(function* () {}.prototype).next || getPrototypeOf(getPrototypeOf(function* () {}.prototype)).next;
  const asyncNextOf = getPrototypeOf(async function* () {}.prototype).next || getPrototypeOf(getPrototypeOf(async function* () {}.prototype)).next;
  const when = (promise, ok, bad) => apply(then, promise, [ok, bad]);
  const count = records.length;
  const cells = [], spaces = [], metas = [], bodies = [], index = create(null), states = [];
  let order = 0;
  for (let i = 0; i < count; i++) {
    push(cells, create(null));
    push(spaces, null);
    push(bodies, null);
    const path = records[i].path, cut = path.lastIndexOf('/');
    const meta = create(null);
    meta.dirname = path.slice(0, cut) || '/';
    meta.filename = path;
    meta.url = 'file://' + path;
    push(metas, meta);
    index[path] = i;
    push(states, { i, status: 'new', failed: false, error: undefined, pending: 0, waits: false, order: 0, parents: [], root: null, low: 0, promise: null, settle: null });
  }

  const exported = (i, getters, anonymous) => {
    const names = ownKeys(getters);
    for (let k = 0; k < names.length; k++) defineProperty(cells[i], names[k], { get: getters[names[k]], enumerable: true });
    freeze(cells[i]);
    if (anonymous) defineProperty(anonymous, 'name', { value: 'default', configurable: true });
  };

  // ---- namespace objects: what a Proxy says of its target stays within what the target itself has ----
  const space = (i) => {
    if (spaces[i]) return spaces[i];
    const target = create(null), where = create(null);
    for (const row of records[i].exports) {
      where[row[0]] = row;
      defineProperty(target, row[0], { value: undefined, writable: true, enumerable: true, configurable: false });
    }
    defineProperty(target, toStringTag, { value: 'Module' });
    preventExtensions(target);
    const read = (key) => { const row = where[key]; return row[2] === null ? space(row[1]) : cells[row[1]][row[2]]; };
    const known = (key) => typeof key === 'string' && where[key] !== undefined;
    spaces[i] = new ProxyOf(target, freeze({
      __proto__: null,
      get: (t, key) => (known(key) ? read(key) : key === toStringTag ? 'Module' : undefined),
      set: () => false,
      has: (t, key) => known(key) || key === toStringTag,
      deleteProperty: (t, key) => !known(key) && key !== toStringTag,
      getOwnPropertyDescriptor: (t, key) => (known(key) ? { value: read(key), writable: true, enumerable: true, configurable: false } : getOwnPropertyDescriptor(t, key)),
      defineProperty: (t, key, wanted) => {
        if (!known(key)) return false;
        const { get, set, configurable, enumerable, writable } = wanted;
        if (get !== undefined || set !== undefined || configurable === true || enumerable === false || writable === false) return false;
        return !('value' in wanted) || Object.is(wanted.value, read(key));
      },
      setPrototypeOf: (t, proto) => proto === null,
    }));
    return spaces[i];
  };

  // ---- first step of all modules of a graph; -> promises of those that take longer ----
  const take = (root, waiting) => {
    const stack = [root];
    while (stack.length > 0) {
      const i = stack[stack.length - 1];
      stack.length--;
      if (bodies[i]) continue;
      const made = apply(makers[i], undefined, []);
      bodies[i] = made;
      if (records[i].async) push(waiting, apply(asyncNextOf, made, []));
      else apply(nextOf, made, []);
      for (const dep of records[i].deps) push(stack, dep);
    }
  };

  // ---- second step: InnerModuleEvaluation and its asynchronous half ----
  const execute = (m) => { apply(nextOf, bodies[m.i], []); };
  const executeAsync = (m) => { when(apply(asyncNextOf, bodies[m.i], []), () => fulfilled(m), (error) => rejected(m, error)); };
  const inner = (m, stack, at) => {
    if (m.status === 'async' || m.status === 'done') {
      if (m.failed) throw m.error;
      return at;
    }
    if (m.status === 'running') return at;
    m.status = 'running';
    const own = at;
    m.low = at++;
    push(stack, m);
    for (const dep of records[m.i].deps) {
      let d = states[dep];
      at = inner(d, stack, at);
      if (d.status === 'running') m.low = d.low < m.low ? d.low : m.low;
      else {
        d = d.root;
        if (d.failed) throw d.error;
      }
      if (d.waits) {
        m.pending++;
        push(d.parents, m);
      }
    }
    if (m.pending > 0 || records[m.i].async) {
      m.waits = true;
      m.order = order++;
      if (m.pending === 0) executeAsync(m);
    } else execute(m);
    if (m.low === own) {
      for (;;) {
        const top = stack[stack.length - 1];
        stack.length--;
        top.status = top.waits ? 'async' : 'done';
        top.root = m;
        if (top === m) break;
      }
    }
    return at;
  };
  const gather = (m, list) => {
    for (const parent of m.parents) {
      if (list.includes(parent) || parent.root.failed) continue;
      if (--parent.pending === 0) {
        push(list, parent);
        if (!records[parent.i].async) gather(parent, list);
      }
    }
  };
  const ended = (m) => {
    m.waits = false;
    m.status = 'done';
    if (m.settle) m.settle[0]();
  };
  const fulfilled = (m) => {
    if (m.status === 'done') return;
    ended(m);
    const list = [];
    gather(m, list);
    list.sort((a, b) => a.order - b.order);
    for (const next of list) {
      if (next.status === 'done') continue;
      if (records[next.i].async) executeAsync(next);
      else {
        try {
          execute(next);
        } catch (error) {
          rejected(next, error);
          continue;
        }
        ended(next);
      }
    }
  };
  const rejected = (m, error) => {
    if (m.status === 'done') return;
    m.failed = true;
    m.error = error;
    m.waits = false;
    m.status = 'done';
    for (const parent of m.parents) rejected(parent, error);
    if (m.settle) m.settle[1](error);
  };
  const evaluate = (i) => {
    let m = states[i];
    if (m.status === 'async' || m.status === 'done') m = m.root || m;
    if (m.promise) return m.promise;
    m.promise = new Promised((ok, bad) => { m.settle = [ok, bad]; });
    const stack = [];
    try {
      inner(m, stack, 0);
      if (!m.waits) m.settle[0]();
    } catch (error) {
      for (const one of stack) {
        one.status = 'done';
        one.failed = true;
        one.error = error;
        one.root = one;
      }
      m.settle[1](error);
    }
    return m.promise;
  };

  // -> undefined where all is done, or a promise; throws what a module threw
  const run = (i) => {
    const waiting = [];
    take(i, waiting);
    if (waiting.length > 0) {
      const all = async () => {
        for (const one of waiting) await one;
        await evaluate(i);
      };
      return all();
    }
    const promise = evaluate(i);
    const m = states[i];
    if (!m.failed) return m.waits ? promise : undefined;
    when(promise, undefined, () => {});
    throw m.error;
  };

  const resolve = (specifier, from) => {
    const isPath = specifier.startsWith('./') || specifier.startsWith('../') || specifier.startsWith('/');
    const text = specifier.startsWith('file:///') ? specifier.slice(7) : isPath ? specifier : null;
    if (text === null) return null;
    const parts = [];
    for (const part of (text.startsWith('/') ? text : from.slice(0, from.lastIndexOf('/') + 1) + text).split('/')) {
      if (part === '..') parts.length = parts.length > 0 ? parts.length - 1 : 0;
      else if (part !== '' && part !== '.') push(parts, part);
    }
    return '/' + parts.join('/');
  };
  const importing = (from, make) => new Promised((ok, bad) => {
    const specifier = `${make()}`;
    const path = resolve(specifier, from);
    let i = path === null ? undefined : index[path];
    if (i === undefined && path !== null) for (const ending of ['.ts', '.js']) if (i === undefined) i = index[path.endsWith('.js') && ending === '.ts' ? path.slice(0, -3) + '.ts' : path + ending];
    if (i === undefined) {
      const failure = new Failure(`Cannot find module '${specifier}' imported from ${from}`);
      failure.code = 'ERR_MODULE_NOT_FOUND';
      throw failure;
    }
    const waiting = [];
    take(i, waiting);
    const go = () => { when(evaluate(i), () => ok(space(i)), bad); };
    // what follows an import() runs before the module, even where nothing has to be waited for
    const all = async () => { for (const one of waiting) await one; };
    when(all(), go, bad);
  });

  const makers = [];
  for (let i = 0; i < count; i++) push(makers, apply(made[i], undefined, [exported, cells, space, metas, importing]));
  // names of modules as global names, for a session
  const bind = (rows) => {
    for (const row of rows) {
      const get = row[2] === null ? () => space(row[1]) : () => cells[row[1]][row[2]];
      defineProperty(globalThis, row[0], { get, set: undefined, enumerable: true, configurable: true });
    }
  };
  return freeze({ __proto__: null, run, import: importing, bind, space });
}
