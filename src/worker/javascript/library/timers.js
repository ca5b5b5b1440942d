// SPDX-License-Identifier: Apache-2.0
// Timers in the order of their times, and of their making where these are equal. Waiting itself is the worker's, between two of them.
(function (native, shared) {
  'use strict';
  const heap = [], living = new Map(), apply = Reflect.apply;
  let last = 0;
  const before = (a, b) => a.due < b.due || (a.due === b.due && a.order < b.order);
  let order = 0;

  function push(timer) {
    let i = heap.length;
    heap[i] = timer;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (!before(timer, heap[up])) break;
      heap[i] = heap[up];
      i = up;
    }
    heap[i] = timer;
  }

  function pop() {
    const top = heap[0], moved = heap.pop();
    if (heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let next = 2 * i + 1;
      if (next >= heap.length) break;
      if (next + 1 < heap.length && before(heap[next + 1], heap[next])) next++;
      if (!before(heap[next], moved)) break;
      heap[i] = heap[next];
      i = next;
    }
    heap[i] = moved;
    return top;
  }

  // Node gives objects; so programs may call unref() and the like on what they get.
  class Timeout {
    #id;
    constructor(id) { this.#id = id; }
    ref() { return this; }
    unref() { return this; }
    hasRef() { return true; }
    refresh() { return this; }
    close() { living.delete(this.#id); return this; }
    [Symbol.toPrimitive]() { return this.#id; }
    static of(value) { return #id in value ? value.#id : undefined; }
  }
  Object.defineProperty(Timeout, 'of', { enumerable: false });
  const idOf = Timeout.of;
  delete Timeout.of;

  function add(callback, delay, args, repeats) {
    if (typeof callback !== 'function') throw new TypeError(`The "callback" argument must be of type function. Received ${shared.inspect(callback)}`);
    delay = Number(delay);
    if (!(delay >= 1 && delay <= 2147483647)) delay = 1;
    const timer = { id: ++last, callback, args, delay: Math.trunc(delay), repeats, due: native.now() + Math.trunc(delay), order: order++ };
    living.set(timer.id, timer);
    push(timer);
    return new Timeout(timer.id);
  }

  function clear(what) {
    const id = typeof what === 'object' && what !== null ? idOf(what) : Number(what);
    if (id !== undefined) living.delete(id);
  }

  const immediates = [];
  shared.define('setTimeout', function setTimeout(callback, delay, ...args) { return add(callback, delay, args, false); });
  shared.define('setInterval', function setInterval(callback, delay, ...args) { return add(callback, delay, args, true); });
  shared.define('setImmediate', function setImmediate(callback, ...args) {
    if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function');
    const timer = { id: ++last, callback, args };
    living.set(timer.id, timer);
    immediates.push(timer);
    return new Timeout(timer.id);
  });
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) shared.define(name, { [name](what) { clear(what); } }[name]);

  // How many milliseconds until the next one; negative: there is none.
  shared.wait = () => {
    while (immediates.length > 0 && !living.has(immediates[0].id)) immediates.shift();
    while (heap.length > 0 && !living.has(heap[0].id)) pop();
    if (immediates.length > 0) return 0;
    return heap.length > 0 ? Math.max(0, heap[0].due - native.now()) : -1;
  };

  // Runs the next one, if its time has come. What it throws is the program's.
  shared.fire = () => {
    const now = native.now();
    let timer;
    if (heap.length > 0 && heap[0].due <= now) timer = pop();
    else if (immediates.length > 0) timer = immediates.shift();
    if (timer === undefined || !living.has(timer.id)) return;
    if (timer.repeats) {
      timer.due = now + timer.delay;
      timer.order = order++;
      push(timer);
    } else living.delete(timer.id);
    apply(timer.callback, undefined, timer.args);
  };
  shared.dropTimers = () => { heap.length = 0; immediates.length = 0; living.clear(); };
})
