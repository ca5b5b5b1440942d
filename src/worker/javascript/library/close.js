// SPDX-License-Identifier: Apache-2.0
// Text does not become code while a program runs. The engine itself refuses that too; here it is reported, and every way to
// the constructors of functions leads to one that refuses.
(function (native, shared) {
  'use strict';
  const stop = (name, rule) => {
    const text = `${name} blocked by Cordon sandbox`;
    native.event(rule, text, 'write the code out; text is not run as code here');
    throw new shared.SecurityError(text);
  };
  const refuse = (name, rule) => {
    const f = { [name]() { stop(`${name}()`, rule); } }[name];
    return f;
  };
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const f of kinds) {
    const made = Object.getPrototypeOf(f), real = made.constructor, name = real.name;
    const closed = function () { stop(`${name}()`, 'js.closed.Function'); };
    Object.defineProperty(closed, 'name', { value: name, configurable: true });
    Object.defineProperty(closed, 'prototype', { value: made, writable: false });
    if (real !== Function) Object.setPrototypeOf(closed, shared.closedFunction);
    else shared.closedFunction = closed;
    Object.defineProperty(made, 'constructor', { value: closed, writable: false, configurable: false, enumerable: false });
  }
  shared.define('Function', shared.closedFunction);
  shared.define('eval', refuse('eval', 'js.closed.eval'));
  for (const name of ['WebAssembly', 'ShadowRealm', '$vm']) delete globalThis[name];
})
