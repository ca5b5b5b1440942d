// SPDX-License-Identifier: Apache-2.0
// Values as people read them, in the form that Node's console prints: what the engine's own String() does not say.
(function (native, shared) {
  'use strict';
  const { getOwnPropertyDescriptor, getPrototypeOf, prototype: objects } = Object;
  const ownKeys = Reflect.ownKeys, apply = Reflect.apply, isArray = Array.isArray;
  const has = Function.prototype.call.bind(objects.hasOwnProperty), enumerable = Function.prototype.call.bind(objects.propertyIsEnumerable);
  const source = Function.prototype.call.bind(Function.prototype.toString), tagOf = Function.prototype.call.bind(objects.toString);
  const getter = (type, name) => getOwnPropertyDescriptor(type.prototype, name).get;
  const sizeOfMap = getter(Map, 'size'), sizeOfSet = getter(Set, 'size'), bytesOf = getter(ArrayBuffer, 'byteLength');
  const typedName = getter(getPrototypeOf(Int8Array), Symbol.toStringTag), typedLength = getter(getPrototypeOf(Int8Array), 'length');
  const mapEntries = Map.prototype.entries, setValues = Set.prototype.values, time = Date.prototype.getTime, iso = Date.prototype.toISOString;
  const regexpText = RegExp.prototype.toString, symbolText = Symbol.prototype.toString;
  const unboxed = [['Number', Number.prototype.valueOf], ['String', String.prototype.valueOf], ['Boolean', Boolean.prototype.valueOf],
    ['Symbol', Symbol.prototype.valueOf], ['BigInt', BigInt.prototype.valueOf]];
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const DEPTH = 2, MOST = 100, LONGEST = 10000, WIDTH = 80, COMPACT = 3, BUDGET = 1 << 22;
  const escapes = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\' };

  const works = (f, value) => { try { apply(f, value, []); return true; } catch { return false; } };
  const hex = (n, width) => n.toString(16).toUpperCase().padStart(width, '0');

  function quote(text) {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') && !text.includes('${') ? '`' : "'";
    let out = '';
    for (let i = 0; i < text.length; i++) {
      const c = text[i], code = text.charCodeAt(i);
      if (c === mark) out += '\\' + c;
      else if (has(escapes, c)) out += escapes[c];
      else if (code < 32 || (code > 126 && code < 160)) out += '\\x' + hex(code, 2);
      else if (code >= 0xd800 && code < 0xdc00 && i + 1 < text.length && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) out += c + text[++i];
      else if (code >= 0xd800 && code < 0xe000) out += '\\u' + hex(code, 4);
      else out += c;
    }
    return mark + out + mark;
  }

  const number = (n) => (Object.is(n, -0) ? '-0' : String(n));

  function primitive(ctx, value) {
    switch (typeof value) {
      case 'string': {
        const rest = value.length - LONGEST, text = rest > 0 ? value.slice(0, LONGEST) : value;
        const more = rest > 0 ? `... ${rest} more character${rest > 1 ? 's' : ''}` : '';
        if (ctx.level > 0 && text.length > 16 && text.length > WIDTH - ctx.level - 4 && text.includes('\n')) {
          return text.split(/(?<=\n)/).map(quote).join(` +\n${' '.repeat(ctx.level + 2)}`) + more;
        }
        return quote(text) + more;
      }
      case 'number': return number(value);
      case 'bigint': return `${value}n`;
      case 'symbol': return apply(symbolText, value, []);
      default: return String(value);
    }
  }

  function nameOfType(value) {
    for (let at = value, steps = 0; at !== null && steps < 100; at = getPrototypeOf(at), steps++) {
      const made = getOwnPropertyDescriptor(at, 'constructor');
      if (made && typeof made.value === 'function') {
        const name = getOwnPropertyDescriptor(made.value, 'name');
        if (name && typeof name.value === 'string' && name.value !== '') return name.value;
      }
    }
    return null;
  }

  const keyText = (key) => typeof key === 'symbol' ? `[${apply(symbolText, key, [])}]` : /^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key) ? key : quote(key);

  function property(ctx, value, key, index) {
    const d = getOwnPropertyDescriptor(value, key);
    let text;
    if (d === undefined) text = 'undefined';
    else if ('value' in d) {
      ctx.level += 2;
      text = format(ctx, d.value);
      ctx.level -= 2;
    } else text = d.get ? (d.set ? '[Getter/Setter]' : '[Getter]') : d.set ? '[Setter]' : 'undefined';
    if (index) return text;
    return `${enumerable(value, key) ? keyText(key) : `[${typeof key === 'symbol' ? apply(symbolText, key, []) : key}]`}: ${text}`;
  }

  const more = (n) => `... ${n} more item${n > 1 ? 's' : ''}`;

  function listed(ctx, value) {
    const out = [];
    let at = 0;
    for (let i = 0; i < value.length && at < MOST; i++) {
      if (has(value, String(i))) { out.push(property(ctx, value, String(i), true)); at++; continue; }
      let next = i;
      while (next < value.length && !has(value, String(next)) && next - i < 1e6) next++;
      if (next - i >= 1e6) next = value.length;
      out.push(`<${next - i} empty item${next - i > 1 ? 's' : ''}>`);
      i = next - 1;
      at++;
    }
    const rest = value.length - MOST;
    if (at >= MOST && rest > 0) out.push(more(rest));
    return out;
  }

  function typed(ctx, value) {
    const length = apply(typedLength, value, []), out = [];
    for (let i = 0; i < length && i < MOST; i++) out.push(primitive(ctx, value[i]));
    if (length > MOST) out.push(more(length - MOST));
    return out;
  }

  function pairs(ctx, iterator, each) {
    const out = [];
    let left = 0;
    ctx.level += 2;
    for (const x of iterator) out.length < MOST ? out.push(each(x)) : left++;
    ctx.level -= 2;
    if (left) out.push(more(left));
    return out;
  }

  // The engine's lines `name@file:line:column` as the ones that Node has.
  function stackLines(stack) {
    const out = [];
    for (const line of String(stack).split('\n')) {
      const at = line.lastIndexOf('@'), name = at > 0 ? line.slice(0, at) : '', place = line.slice(at + 1);
      const found = shared.place(place);
      if (!found) continue;
      const plain = name === 'global code' || name === 'eval code' ? '' : name, where = `${found.path}:${found.line}`;
      out.push(plain ? `    at ${plain} (${where})` : `    at ${where}`);
    }
    return out;
  }

  function errorText(ctx, e) {
    let name, message, stack;
    try { name = String(e.name); message = String(e.message); stack = has(e, 'stack') ? e.stack : ''; } catch { return '[an error that cannot be read]'; }
    const type = nameOfType(e) ?? name;
    if (name === 'Error' && type !== 'Error' && /Error$/.test(type)) name = type;
    const head = message ? `${name}: ${message}` : name;
    const lines = typeof stack === 'string' ? stackLines(stack) : [];
    if (lines.length === 0) return `[${head}]`;
    const text = [head, ...lines].join('\n');
    return ctx.level ? text.replaceAll('\n', `\n${' '.repeat(ctx.level)}`) : text;
  }

  function functionText(value, type) {
    const text = source(value), name = getOwnPropertyDescriptor(value, 'name'), own = name && typeof name.value === 'string' ? name.value : '';
    if (/^class\b/.test(text)) {
      const above = getPrototypeOf(value), base = typeof above === 'function' && above.name ? ` extends ${above.name}` : '';
      return `[class ${own || '(anonymous)'}${base}]`;
    }
    const kind = type === null || type === 'Function' ? 'Function' : type;
    return `[${/Function$/.test(kind) ? kind : 'Function'}${own ? `: ${own}` : ' (anonymous)'}]`;
  }

  const PREFIX = (type, fallback, size) => type === null ? `[${fallback}${size === undefined ? '' : `(${size})`}: null prototype] ` :
    type === fallback && size === undefined ? `${type} ` : `${type}${size === undefined ? '' : `(${size})`} `;

  // What stands before the braces, the braces, what stands between them before the properties, and which properties follow.
  function shape(ctx, value) {
    const type = nameOfType(value);
    let keys = ownKeys(value).filter((k) => enumerable(value, k));
    const plain = (base, braces = ['{', '}'], entries = [], list = false) => ({ base, braces, entries, keys, list });
    if (isArray(value)) {
      keys = keys.filter((k) => typeof k === 'symbol' || !/^(0|[1-9][0-9]*)$/.test(k) || Number(k) >= 4294967295);
      const before = type === 'Array' ? '' : PREFIX(type, 'Array', value.length);
      return plain('', [`${before}[`, ']'], listed(ctx, value), true);
    }
    if (works(sizeOfSet, value)) {
      return plain('', [`${PREFIX(type, 'Set', apply(sizeOfSet, value, []))}{`, '}'], pairs(ctx, apply(setValues, value, []), (x) => format(ctx, x)));
    }
    if (works(sizeOfMap, value)) {
      return plain('', [`${PREFIX(type, 'Map', apply(sizeOfMap, value, []))}{`, '}'],
        pairs(ctx, apply(mapEntries, value, []), ([k, v]) => `${format(ctx, k)} => ${format(ctx, v)}`));
    }
    const kind = apply(typedName, value, []);
    if (kind !== undefined) {
      keys = keys.filter((k) => typeof k === 'symbol' || !/^(0|[1-9][0-9]*)$/.test(k));
      return plain('', [`${PREFIX(type, kind, apply(typedLength, value, []))}[`, ']'], typed(ctx, value), true);
    }
    if (typeof value === 'function') return plain(functionText(value, type));
    if (works(regexpText, value) && tagOf(value) === '[object RegExp]') return plain(apply(regexpText, value, []));
    if (works(time, value)) return plain(Number.isNaN(apply(time, value, [])) ? 'Invalid Date' : apply(iso, value, []));
    if (value instanceof Error) {
      keys = keys.filter((k) => k !== 'stack' && k !== 'message' && k !== 'name' && k !== 'line' && k !== 'column' && k !== 'sourceURL');
      const cause = getOwnPropertyDescriptor(value, 'cause');
      if (cause && !keys.includes('cause')) keys.push('cause');
      const errors = getOwnPropertyDescriptor(value, 'errors');
      if (errors && !keys.includes('errors')) keys.push('errors');
      return plain(errorText(ctx, value));
    }
    if (works(bytesOf, value)) {
      const bytes = new Uint8Array(value), n = bytes.length;
      let text = '';
      for (let i = 0; i < n && i < 50; i++) text += (i ? ' ' : '') + bytes[i].toString(16).padStart(2, '0');
      return plain('', [`${PREFIX(type, 'ArrayBuffer')}{`, '}'], [`[Uint8Contents]: <${text}${n > 50 ? ` ... ${n - 50} more byte${n > 51 ? 's' : ''}` : ''}>`, `byteLength: ${n}`]);
    }
    const tag = tagOf(value).slice(8, -1);
    if (tag === 'Promise') {
      return plain('', [`${PREFIX(type, 'Promise')}{`, '}']); // the engine tells nobody what has become of it
    }
    if (tag === 'WeakSet' || tag === 'WeakMap') return plain('', [`${PREFIX(type, tag)}{`, '}'], ['<items unknown>']);
    for (const [name, f] of unboxed) {
      if (typeof value === 'object' && works(f, value)) {
        keys = name === 'String' ? keys.filter((k) => typeof k === 'symbol' || !/^[0-9]+$/.test(k)) : keys;
        return plain(`[${name}${type === name || type === null ? '' : ` (${type})`}: ${primitive({ level: 0 }, apply(f, value, []))}]`);
      }
    }
    if (tag === 'Generator' || / Iterator$/.test(tag)) return plain('', [`Object [${tag}] {`, '}']);
    if (tag === 'Arguments') return plain('', ['[Arguments] {', '}']);
    const shown = tag !== 'Object' && tag !== 'Function' && tag !== type ? `[${tag}] ` : '';
    return plain('', [type === null ? `[Object: null prototype] ${shown}{` : type === 'Object' && !shown ? '{' : `${type} ${shown}{`, '}']);
  }

  function group(ctx, output, extra, value) {
    let total = 0, longest = 0, i = 0;
    const rows = extra ? output.length - 1 : output.length, lengths = new Array(rows);
    for (; i < rows; i++) {
      lengths[i] = output[i].length;
      total += lengths[i] + 2;
      if (longest < lengths[i]) longest = lengths[i];
    }
    const width = longest + 2;
    if (width * 3 + ctx.level >= WIDTH || !(total / width > 5 || longest <= 6)) return output;
    const biased = Math.max(width - 3 - Math.sqrt(width - total / output.length), 1);
    const columns = Math.min(Math.round(Math.sqrt(2.5 * biased * rows) / biased), Math.floor((WIDTH - ctx.level) / width), COMPACT * 4, 15);
    if (columns <= 1) return output;
    const grouped = [], widest = [];
    for (let c = 0; c < columns; c++) {
      let most = 0;
      for (let j = c; j < rows; j += columns) if (lengths[j] > most) most = lengths[j];
      widest.push(most + 2);
    }
    const numbers = value !== undefined && output.length > 0 && Array.from({ length: rows }, (_, k) => value[k]).every((x) => typeof x === 'number' || typeof x === 'bigint');
    for (let r = 0; r < rows; r += columns) {
      const last = Math.min(r + columns, rows);
      let line = '', j = r;
      for (; j < last - 1; j++) line += numbers ? `${output[j]}, `.padStart(widest[j - r]) : `${output[j]}, `.padEnd(widest[j - r]);
      line += numbers ? output[j].padStart(widest[j - r] - 2) : output[j];
      grouped.push(line);
    }
    if (extra) grouped.push(output[rows]);
    return grouped;
  }

  function join(ctx, s, output, depth, value) {
    const entries = output.length;
    if (s.list && entries > 6) output = group(ctx, output, s.entries.length > 0 && /^\.\.\. /.test(s.entries[s.entries.length - 1]), value);
    const before = s.base ? `${s.base} ` : '';
    if (ctx.deepest - depth < COMPACT && entries === output.length) {
      const start = output.length + ctx.level + s.braces[0].length + s.base.length + 10;
      let total = output.length + start;
      const crowded = total + output.length > WIDTH;
      for (const text of output) total += text.length;
      if (!crowded && total <= WIDTH && !s.base.includes('\n')) {
        const one = output.join(', ');
        if (!one.includes('\n')) return `${before}${s.braces[0]} ${one} ${s.braces[1]}`;
      }
    }
    const indent = `\n${' '.repeat(ctx.level)}`;
    return `${before}${s.braces[0]}${indent}  ${output.join(`,${indent}  `)}${indent}${s.braces[1]}`;
  }

  function raw(ctx, value, depth) {
    const before = ctx.deepest;
    ctx.seen.push(value);
    ctx.deepest = depth;
    const s = shape(ctx, value);
    if (s.entries.length === 0 && s.keys.length === 0) {
      ctx.seen.pop();
      ctx.deepest = before;
      return s.base || `${s.braces[0]}${s.braces[1]}`;
    }
    const output = s.entries.slice();
    for (const key of s.keys) output.push(property(ctx, value, key, false));
    ctx.seen.pop();
    let base = s.base;
    if (ctx.circles.has(value)) {
      const mark = `<ref *${ctx.circles.get(value)}>`;
      if (base) base = `${mark} ${base}`;
      else s.braces[0] = `${mark} ${s.braces[0]}`;
    }
    const text = join(ctx, { ...s, base }, output, depth, value);
    ctx.budget -= text.length;
    if (ctx.budget < 0) ctx.most = -1;
    return text;
  }

  function format(ctx, value) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return primitive(ctx, value);
    if (ctx.seen.includes(value)) {
      if (!ctx.circles.has(value)) ctx.circles.set(value, ctx.circles.size + 1);
      return `[Circular *${ctx.circles.get(value)}]`;
    }
    const depth = ctx.seen.length;
    const own = value[custom];
    if (typeof own === 'function' && own !== shared.inspect) {
      const text = apply(own, value, [ctx.most - depth, { depth: ctx.most - depth }, shared.inspect]);
      return typeof text === 'string' ? text.replaceAll('\n', `\n${' '.repeat(ctx.level)}`) : format(ctx, text);
    }
    if (depth > ctx.most) {
      if (isArray(value)) return '[Array]';
      const type = nameOfType(value);
      return typeof value === 'function' ? functionText(value, type) : `[${type === null ? 'Object: null prototype' : type}]`;
    }
    return raw(ctx, value, depth);
  }

  shared.inspect = function inspect(value, options) {
    const depth = options && options.depth !== undefined ? options.depth : DEPTH;
    return format({ level: 0, seen: [], circles: new Map(), deepest: 0, most: depth === null ? Infinity : depth, budget: BUDGET }, value);
  };
  shared.stackLines = stackLines;
  shared.nameOfType = nameOfType;

  // printf of the console: %s %d %i %f %j %o %O %c %%.
  shared.formatted = function formatted(args) {
    if (args.length === 0) return '';
    const first = args[0];
    let text = '', at = 1;
    if (typeof first === 'string') {
      if (args.length === 1) return first;
      let last = 0;
      for (let i = 0; i < first.length - 1; i++) {
        if (first[i] !== '%') continue;
        const what = first[i + 1];
        let word;
        if (what === '%') word = '%';
        else if (at < args.length && 'sdifjoOc'.includes(what)) {
          const x = args[at++];
          if (what === 's') word = typeof x === 'string' ? x : typeof x === 'object' && x !== null ? (has(x, 'toString') || (x instanceof Error) ? String(x) : shared.inspect(x, { depth: 0 })) : typeof x === 'bigint' ? `${x}n` : Object.is(x, -0) ? '-0' : String(x);
          else if (what === 'd') word = typeof x === 'bigint' ? `${x}n` : typeof x === 'symbol' ? 'NaN' : number(typeof x === 'object' ? NaN : Number(x));
          else if (what === 'i') word = typeof x === 'bigint' ? `${x}n` : typeof x === 'symbol' || typeof x === 'object' ? 'NaN' : number(parseInt(x));
          else if (what === 'f') word = typeof x === 'symbol' ? 'NaN' : number(parseFloat(x));
          else if (what === 'j') { try { word = JSON.stringify(x); } catch { word = '[Circular]'; } } else if (what === 'c') word = '';
          else word = shared.inspect(x, { depth: what === 'o' ? 4 : DEPTH });
        } else continue;
        text += first.slice(last, i) + word;
        i++;
        last = i + 1;
      }
      text += first.slice(last);
    } else { text = shared.inspect(first); }
    for (; at < args.length; at++) text += ' ' + (typeof args[at] === 'string' ? args[at] : shared.inspect(args[at]));
    return text;
  };
})
