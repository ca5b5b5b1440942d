// SPDX-License-Identifier: Apache-2.0
// What programs expect beside the language itself: text encodings, copies of values, a clock, input, the end of the program.
(function (native, shared) {
  'use strict';
  const types = new Map([['Error', Error], ['EvalError', EvalError], ['RangeError', RangeError], ['ReferenceError', ReferenceError],
    ['SyntaxError', SyntaxError], ['TypeError', TypeError], ['URIError', URIError]]);

  class DOMException extends Error {
    #name;
    constructor(message = '', name = 'Error') { super(message); this.#name = `${name}`; }
    get name() { return this.#name; }
    get code() { return this.#name === 'DataCloneError' ? 25 : this.#name === 'InvalidCharacterError' ? 5 : this.#name === 'AbortError' ? 20 : 0; }
  }
  shared.define('DOMException', DOMException);

  // The engine takes `false` of a comparison for "before", for the sake of old pages; the standard, and Node, for 0.
  const apply = Reflect.apply;
  for (const [owner, name] of [[Array.prototype, 'sort'], [Array.prototype, 'toSorted'], [Object.getPrototypeOf(Int8Array.prototype), 'sort'], [Object.getPrototypeOf(Int8Array.prototype), 'toSorted']]) {
    const real = owner[name];
    const value = { [name](compare) { return apply(real, this, typeof compare === 'function' ? [(a, b) => +compare(a, b)] : [compare]); } }[name];
    Object.defineProperty(owner, name, { value, writable: true, configurable: true, enumerable: false });
  }

  // ---- text ----
  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') {
      text = `${text}`;
      const out = new Uint8Array(text.length * 3);
      return out.slice(0, this.encodeInto(text, out).written);
    }
    encodeInto(text, to) {
      let read = 0, written = 0;
      for (const c of `${text}`) {
        let code = c.codePointAt(0);
        if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
        const n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (written + n > to.length) break;
        if (n === 1) to[written] = code;
        else {
          for (let i = n - 1; i > 0; i--) to[written + i] = 0x80 | ((code >> (6 * (n - 1 - i))) & 0x3f);
          to[written] = [0, 0, 0xc0, 0xe0, 0xf0][n] | (code >> (6 * (n - 1)));
        }
        written += n;
        read += c.length;
      }
      return { read, written };
    }
  }
  shared.define('TextEncoder', TextEncoder);

  const bytesOf = (data) => data === undefined ? new Uint8Array(0) : data instanceof ArrayBuffer ? new Uint8Array(data) :
    ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : (() => { throw new TypeError('The "input" argument must be an ArrayBuffer or a view of one'); })();

  function decodeUtf8(bytes, fatal) {
    let out = '', i = 0;
    const bad = (n) => {
      if (fatal) throw new TypeError('The encoded data was not valid for encoding utf-8');
      out += '\ufffd';
      i += n;
    };
    while (i < bytes.length) {
      const a = bytes[i], n = a < 0x80 ? 1 : a >= 0xc2 && a < 0xe0 ? 2 : a >= 0xe0 && a < 0xf0 ? 3 : a >= 0xf0 && a < 0xf5 ? 4 : 0;
      if (n === 1) { out += String.fromCharCode(a); i++; continue; }
      if (n === 0) { bad(1); continue; }
      let code = a & (0xff >> (n + 1)), k = 1;
      for (; k < n; k++) {
        const b = bytes[i + k], low = k === 1 ? (a === 0xe0 ? 0xa0 : a === 0xf0 ? 0x90 : 0x80) : 0x80, high = k === 1 ? (a === 0xed ? 0x9f : a === 0xf4 ? 0x8f : 0xbf) : 0xbf;
        if (b === undefined || b < low || b > high) break;
        code = (code << 6) | (b & 0x3f);
      }
      if (k < n) bad(k);
      else { out += String.fromCodePoint(code); i += n; }
    }
    return out;
  }

  class TextDecoder {
    #fatal; #bom; #encoding;
    constructor(label = 'utf-8', options = {}) {
      const name = `${label}`.trim().toLowerCase();
      this.#encoding = name === 'utf8' || name === 'utf-8' || name === 'unicode-1-1-utf-8' ? 'utf-8' : name === 'latin1' || name === 'ascii' || name === 'iso-8859-1' || name === 'windows-1252' ? 'windows-1252' :
        name === 'utf-16' || name === 'utf-16le' ? 'utf-16le' : (() => { throw new RangeError(`The "${label}" encoding is not supported`); })();
      this.#fatal = Boolean(options.fatal);
      this.#bom = Boolean(options.ignoreBOM);
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#bom; }
    decode(data) {
      const bytes = bytesOf(data);
      let text = '';
      if (this.#encoding === 'utf-8') text = decodeUtf8(bytes, this.#fatal);
      else if (this.#encoding === 'windows-1252') for (const b of bytes) text += String.fromCharCode(b);
      else for (let i = 0; i + 1 < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | (bytes[i + 1] << 8));
      return !this.#bom && text[0] === '\ufeff' ? text.slice(1) : text;
    }
  }
  shared.define('TextDecoder', TextDecoder);

  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  shared.define('btoa', function btoa(text) {
    text = `${text}`;
    let out = '';
    for (let i = 0; i < text.length; i += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => text.charCodeAt(i + k));
      if (a > 255 || b > 255 || c > 255) throw new DOMException('Invalid character', 'InvalidCharacterError');
      out += letters[a >> 2] + letters[((a & 3) << 4) | (b >> 4)] + (i + 1 < text.length ? letters[((b & 15) << 2) | (c >> 6)] : '=') + (i + 2 < text.length ? letters[c & 63] : '=');
    }
    return out;
  });
  shared.define('atob', function atob(text) {
    text = `${text}`.replace(/[\t\n\f\r ]/g, '');
    if (text.length % 4 === 0) text = text.replace(/==?$/, '');
    if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw new DOMException('The string to be decoded is not correctly encoded.', 'InvalidCharacterError');
    let out = '', bits = 0, held = 0;
    for (const c of text) {
      held = (held << 6) | letters.indexOf(c);
      bits += 6;
      if (bits >= 8) { bits -= 8; out += String.fromCharCode((held >> bits) & 255); held &= (1 << bits) - 1; }
    }
    return out;
  });

  // ---- copies ----
  const refuse = (value) => { throw new DOMException(`${typeof value === 'function' ? value : typeof value === 'symbol' ? String(value) : '#<Object>'} could not be cloned.`, 'DataCloneError'); };
  function copy(value, seen) {
    if (typeof value === 'function' || typeof value === 'symbol') refuse(value);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (x) => { seen.set(value, x); return x; };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return keep(Object(value.valueOf()));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (value instanceof DataView) return keep(new DataView(copy(value.buffer, seen), value.byteOffset, value.byteLength));
    if (ArrayBuffer.isView(value)) return keep(new value.constructor(copy(value.buffer, seen), value.byteOffset, value.length));
    if (value instanceof Map) { const to = keep(new Map()); for (const [k, v] of [...value]) to.set(copy(k, seen), copy(v, seen)); return to; }
    if (value instanceof Set) { const to = keep(new Set()); for (const v of [...value]) to.add(copy(v, seen)); return to; }
    if (value instanceof Error) {
      const type = types.get(value.name) ?? Error, to = keep(Object.create(type.prototype));
      for (const k of ['stack', 'message', 'cause']) if (Object.hasOwn(value, k)) Object.defineProperty(to, k, { value: copy(value[k], seen), writable: true, configurable: true });
      return to;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) refuse(value);
    const to = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const k of Object.keys(value)) to[k] = copy(value[k], seen);
    return to;
  }
  shared.define('structuredClone', function structuredClone(value) {
    if (arguments.length === 0) throw new TypeError('The "value" argument must be specified');
    return copy(value, new Map());
  });

  // ---- microtasks, clock, chance ----
  const resolved = Promise.resolve(), then = Promise.prototype.then;
  const later = (f) => { then.call(resolved, () => { try { f(); } catch (e) { native.fail(e); } }); };
  shared.define('queueMicrotask', function queueMicrotask(callback) {
    if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function');
    later(callback);
  });
  const begun = native.now();
  shared.define('performance', { now: () => native.now() - begun, timeOrigin: Date.now(), mark() {}, measure() {}, toJSON() { return {}; } });
  Object.defineProperty(Math, 'random', { value: function random() { return native.random(); }, writable: true, configurable: true });
  const random = (n) => Math.floor(native.random() * n);
  shared.define('crypto', {
    randomUUID() {
      const bytes = Array.from({ length: 16 }, () => random(256));
      bytes[6] = (bytes[6] & 15) | 64;
      bytes[8] = (bytes[8] & 63) | 128;
      return bytes.map((b, i) => ([4, 6, 8, 10].includes(i) ? '-' : '') + b.toString(16).padStart(2, '0')).join('');
    },
    getRandomValues(view) {
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = random(256);
      return view;
    },
  });
  // One thread: nobody could wake it, so it waits for its time.
  Object.defineProperty(Atomics, 'wait', {
    value: function wait(view, index, value, timeout = Infinity) {
      if (Atomics.load(view, index) !== value) return 'not-equal';
      native.sleep(Math.max(0, Number.isNaN(Number(timeout)) ? Infinity : Number(timeout)));
      return 'timed-out';
    }, writable: true, configurable: true });

  // ---- input, the end ----
  shared.define('readline', function readline() { return native.readline() ?? null; });
  shared.define('prompt', function prompt(question = '', fallback = null) {
    if (`${question}`) native.write(1, `${question} `);
    return native.readline() ?? fallback;
  });
  shared.define('FINAL', function FINAL(value) { native.final(typeof value === 'string' ? value : shared.inspect(value, { depth: null })); });
  const started = native.now();
  const stream = (fd) => ({ write(text) { native.write(fd, typeof text === 'string' ? text : ArrayBuffer.isView(text) ? decodeUtf8(bytesOf(text)) : `${text}`); return true; }, isTTY: false, fd });
  const hrtime = (before) => {
    const now = native.now(), s = Math.floor(now / 1000), ns = Math.floor((now % 1000) * 1e6);
    return before === undefined ? [s, ns] : ns < before[1] ? [s - before[0] - 1, ns - before[1] + 1e9] : [s - before[0], ns - before[1]];
  };
  hrtime.bigint = () => BigInt(Math.floor(native.now() * 1e6));
  shared.process = {
    argv: [], env: {}, platform: 'linux', exitCode: undefined, pid: 2, version: '', versions: {}, stdout: stream(1), stderr: stream(2),
    exit(code) { native.exit(Number(code ?? shared.process.exitCode ?? 0) & 255); },
    nextTick(f, ...args) { later(() => f(...args)); },
    cwd: () => '/workspace', uptime: () => (native.now() - started) / 1000, hrtime, on() { return shared.process; }, once() { return shared.process; }, off() { return shared.process; },
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), emitWarning() {},
  };
  shared.define('process', shared.process);
  shared.define('global', globalThis);

  // ---- tools ----
  shared.tool = (name) => shared.define(name, { [name](...args) {
    const answer = native.call(name, JSON.stringify({ args, kwargs: null }));
    const value = JSON.parse(answer.json);
    if (!answer.good) throw Object.assign(new Error(String(value.message)), { category: value.category });
    return value;
  } }[name]);
})
