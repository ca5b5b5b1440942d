// SPDX-License-Identifier: Apache-2.0
// What the other parts of the library stand on: how a name becomes global, and which line of the program a line of the script is.
(function (native, shared) {
  'use strict';
  const define = Object.defineProperty, maps = new Map();
  shared.define = (name, value) => define(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  class SecurityError extends Error {}
  define(SecurityError.prototype, 'name', { value: 'SecurityError', writable: true, configurable: true });
  shared.SecurityError = SecurityError;
  shared.define('SecurityError', SecurityError);

  // What the judge made of a program: `lines` and `files` of its answer, by the name that the engine has for the script.
  shared.map = (url, json) => { maps.set(url, JSON.parse(json)); };
  shared.place = (place) => {
    const match = /^(.*?):(\d+)(?::\d+)?$/.exec(place), map = match && maps.get(match[1]);
    if (!map) return null;
    const made = Number(match[2]), line = map.lines[made - 1] ?? 0;
    for (const file of map.files) if (made >= file.first && made <= file.last) return { path: file.path === map.entry ? map.path : file.path, line };
    return { path: map.path, line };
  };
})
