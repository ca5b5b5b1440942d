// SPDX-License-Identifier: Apache-2.0
// console: log, info, debug and table to standard output, error, warn, trace and assert to standard error.
(function (native, shared) {
  'use strict';
  const counts = new Map(), times = new Map();
  let indent = '';
  const write = (fd, args) => {
    const text = shared.formatted(args);
    native.write(fd, (indent ? indent + text.replaceAll('\n', `\n${indent}`) : text) + '\n');
  };
  const out = (...args) => write(1, args), err = (...args) => write(2, args);
  const duration = (ms) => ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;

  function table(data, columns) {
    if (data === null || typeof data !== 'object') return out(data);
    const rows = data instanceof Map ? [...data].map(([k, v], i) => [String(i), { Key: k, Values: v }]) :
      data instanceof Set ? [...data].map((v, i) => [String(i), v]) : Object.keys(data).map((k) => [k, data[k]]);
    const heads = [], cells = [];
    let values = false;
    for (const [, row] of rows) {
      if (row === null || typeof row !== 'object') values = true;
      else for (const k of columns ?? Object.keys(row)) if (!heads.includes(k)) heads.push(k);
    }
    const show = (v) => shared.inspect(v, { depth: 0 });
    for (const [index, row] of rows) {
      const object = row !== null && typeof row === 'object';
      cells.push([index, ...heads.map((k) => object && Object.hasOwn(row, k) ? show(row[k]) : ''), ...(values ? [object ? '' : show(row)] : [])]);
    }
    const titles = [data instanceof Map || data instanceof Set ? '(iteration index)' : '(index)', ...heads.map(String), ...(values ? ['Values'] : [])];
    const widths = titles.map((t, i) => Math.max(t.length, ...cells.map((c) => c[i].length)) + 2);
    const line = (row) => `│${row.map((text, i) => ` ${text}`.padEnd(widths[i])).join('│')}│`;
    const rule = (a, b, c) => a + widths.map((w) => '─'.repeat(w)).join(b) + c;
    out([rule('┌', '┬', '┐'), line(titles), rule('├', '┼', '┤'), ...cells.map(line), rule('└', '┴', '┘')].join('\n'));
  }

  const methods = {
    log: out, info: out, debug: out, dirxml: out, error: err, warn: err, table,
    dir: (value, options) => native.write(1, indent + shared.inspect(value, options) + '\n'),
    trace(...args) {
      err(...(args.length ? [`Trace: ${shared.formatted(args)}`] : ['Trace']), '\n' + shared.stackLines(new Error().stack).slice(1).join('\n'));
    },
    assert(good, ...args) {
      if (good) return;
      if (typeof args[0] === 'string') err(`Assertion failed: ${args[0]}`, ...args.slice(1));
      else err('Assertion failed', ...args);
    },
    count(label = 'default') {
      const n = (counts.get(`${label}`) ?? 0) + 1;
      counts.set(`${label}`, n);
      out(`${label}: ${n}`);
    },
    countReset(label = 'default') { counts.delete(`${label}`); },
    group(...args) {
      if (args.length) out(...args);
      indent += '  ';
    },
    groupEnd() { indent = indent.slice(2); },
    time(label = 'default') { times.set(`${label}`, native.now()); },
    timeLog(label = 'default', ...args) { if (times.has(`${label}`)) out(`${label}: ${duration(native.now() - times.get(`${label}`))}`, ...args); },
    timeEnd(label = 'default') {
      if (!times.has(`${label}`)) return;
      out(`${label}: ${duration(native.now() - times.get(`${label}`))}`);
      times.delete(`${label}`);
    },
    clear() {},
  };
  methods.groupCollapsed = methods.group;
  const object = {};
  for (const [name, f] of Object.entries(methods)) object[name] = { [name](...args) { return f(...args); } }[name];
  shared.define('console', object);
})
