// SPDX-License-Identifier: Apache-2.0
// How a program went wrong, for its report and for standard error; and what a promise at its top became.
(function (native, shared) {
  'use strict';
  const then = Promise.prototype.then, call = Function.prototype.call.bind(then);

  shared.fault = (e) => {
    const out = { type: 'Error', text: '', trace: '', line: 0 };
    try {
      if (e instanceof Error) {
        out.type = `${e.name}`;
        const made = shared.nameOfType(e);
        if (out.type === 'Error' && made && /Error$/.test(made)) out.type = made;
        out.text = `${e.message}`;
        for (const line of `${e.stack ?? ''}`.split('\n')) {
          const place = shared.place(line.slice(line.lastIndexOf('@') + 1));
          if (place && place.line) { out.line = place.line; break; }
        }
        out.trace = `Uncaught ${shared.inspect(e)}`;
      } else {
        out.text = shared.inspect(e);
        out.trace = `Uncaught ${out.text}`;
      }
    } catch { out.trace = 'Uncaught exception that cannot be shown'; }
    return out;
  };

  shared.follow = (promise) => {
    const state = { settled: false, failed: false, value: undefined };
    call(promise, (value) => { state.settled = true; state.value = value; }, (e) => { state.settled = state.failed = true; state.value = e; });
    return state;
  };
  shared.show = (value) => shared.inspect(value);
  shared.names = () => Object.getOwnPropertyNames(globalThis).join('\n');
})
