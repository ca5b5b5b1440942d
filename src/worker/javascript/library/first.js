// SPDX-License-Identifier: Apache-2.0
// What the other parts of the library stand on: how a name becomes global, and which line of a program a line of a stack is.
(function (native, shared) {
  'use strict';
  const define = Object.defineProperty;
  shared.define = (name, value) => define(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  class SecurityError extends Error {}
  define(SecurityError.prototype, 'name', { value: 'SecurityError', writable: true, configurable: true });
  shared.SecurityError = SecurityError;
  shared.define('SecurityError', SecurityError);

  // The judge writes scripts with the lines of their files, and the worker names them so; what is ours begins with `cordon:`.
  shared.place = (place) => {
    const match = /^(?!cordon:)(.+?):(\d+)(?::\d+)?$/.exec(place);
    return match && { path: match[1], line: Number(match[2]) };
  };
})
