// SPDX-License-Identifier: Apache-2.0
// A generation watched while it is written: docs/monitor.md. The monitor of libcordon itself, compiled to WebAssembly: it runs in this
// process, at once, needs no compiler and no program where it is installed, and is the same file on every machine.
import { randomFillSync } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

const ABORT = 1, ARGUMENT = 2; // enum cordon_monitor_status
const WHY_MAX = 1200, JSON_MAX = 16384;
const ENOSYS = 52; // of WASI

let engine = null;

/** All that the module may ask of the world is random bytes; everything else is not there. */
function load() {
  const file = new URL("./monitor.wasm", import.meta.url);
  if (!existsSync(file)) throw new Error(`${file.pathname} is missing: Cordon was built without wasi-libc and lld; install them and build it again`);
  const module = new WebAssembly.Module(readFileSync(file));
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => ENOSYS;
  const given = (imports.wasi_snapshot_preview1 ??= {});
  given.random_get = (at, length) => {
    randomFillSync(new Uint8Array(engine.memory.buffer, at, length));
    return 0;
  };
  given.proc_exit = (code) => {
    throw new Error(`the monitor ended with ${code}`);
  };
  engine = new WebAssembly.Instance(module, imports).exports;
  engine._initialize();
}

/** Runs `use` with the arguments copied to the engine's memory: bytes, Float32Array, Float64Array or null. */
function lent(values, use) {
  const at = [];
  try {
    for (const value of values) {
      const address = value === null ? 0 : engine.malloc(Math.max(value.byteLength, 8));
      if (value !== null && !address) throw new RangeError("no memory");
      at.push(address);
      if (value !== null) new Uint8Array(engine.memory.buffer, address, value.byteLength).set(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    }
    return use(...at);
  } finally {
    for (const address of at) if (address) engine.free(address);
  }
}

const encoder = new TextEncoder();
const text0 = (s) => (s === null || s === undefined ? null : encoder.encode(`${s}\0`));

function readText(address, length) {
  const bytes = new Uint8Array(engine.memory.buffer, address, length);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.slice(0, end < 0 ? length : end));
}

const forgotten = new FinalizationRegistry((address) => engine.cordon_monitor_free(address));

function create({ tier, task, mode, settings = {}, expected = 0, vocabulary = 0 }) {
  const words = Object.entries(settings).map(([name, value]) => text0(`${name}=${value}`));
  return lent([text0(tier), text0(task), text0(mode), new Uint8Array(WHY_MAX), ...words], (tierAt, taskAt, modeAt, why, ...at) =>
    lent([Uint32Array.from([...at, 0])], (list) => {
      const address = engine.node_monitor_new(tierAt, taskAt, modeAt, list, expected, vocabulary, why);
      if (!address) throw new RangeError(readText(why, WHY_MAX));
      return address;
    }));
}

/** One generation. Every call says whether to abort; what is fed afterwards is ignored. */
export class Monitor {
  #address;

  constructor(options = {}) {
    if (!engine) load();
    this.#address = create(options);
    forgotten.register(this, this.#address, this);
  }

  /** A piece of text, cut anywhere: a string, or bytes. */
  text(text) {
    return this.token({ text });
  }

  /** One token: its text or its number, and what is known of the distribution it was drawn from. */
  token({ text, id, logits = null, topLogprobs = null }) {
    if ((text === undefined) === (id === undefined)) throw new TypeError("a token is given by its text or by its id");
    if (text === undefined && !(Number.isSafeInteger(id) && id >= 0)) throw new TypeError("an id is a whole number from 0");
    const bytes = text === undefined ? null : typeof text === "string" ? encoder.encode(text) : text;
    const floats = logits === null || logits instanceof Float32Array ? logits : Float32Array.from(logits);
    const doubles = topLogprobs === null ? null : Float64Array.from(topLogprobs);
    const status = lent([bytes, floats, doubles], (textAt, logitsAt, topAt) =>
      engine.node_monitor_token(this.#live(), textAt, bytes?.length ?? 0, id ?? 0, logitsAt, floats?.length ?? 0, topAt, doubles?.length ?? 0));
    if (status === ARGUMENT)
      throw new RangeError("no distribution: logits have a NaN, an infinity or are none; or log-probabilities are above 0 or sum to more than 1");
    return status === ABORT;
  }

  /** The logits that the next token will be drawn from, where the token itself comes later. */
  distribution(logits) {
    return this.token({ text: "", logits });
  }

  /** The generation is over: the last token is complete. */
  end() {
    engine.cordon_monitor_end(this.#live());
    return this.verdict;
  }

  /** What `cordon monitor` prints. */
  get verdict() {
    return lent([new Uint8Array(JSON_MAX)], (at) => JSON.parse(readText(at, engine.cordon_monitor_json(this.#live(), at, JSON_MAX))));
  }

  /** Gives its memory back at once; a monitor that nobody holds gives it back, too. */
  close() {
    if (this.#address === null) return;
    forgotten.unregister(this);
    engine.cordon_monitor_free(this.#address);
    this.#address = null;
  }

  #live() {
    if (this.#address === null) throw new TypeError("the monitor is closed");
    return this.#address;
  }
}

/** Called before each token with the tokens so far and the scores of the next, as the logits processors of transformers.js and
 *  others are: where a generation has gone bad it leaves only the end-of-text token. One object a generation. */
export class LogitsProcessor {
  #monitor;
  #seen = null;
  #eos;
  #decode;

  constructor(eosTokenId, { decode = null, ...options } = {}) {
    this.#monitor = new Monitor(options);
    this.#eos = eosTokenId;
    this.#decode = decode;
  }

  get verdict() {
    return this.#monitor.verdict;
  }

  /** ids: all tokens so far; what is there at the first call is the prompt. scores: a Float32Array, changed in place. */
  process(ids, scores) {
    this.#seen ??= ids.length;
    let abort = false;
    for (; this.#seen < ids.length; this.#seen++) {
      const id = Number(ids[this.#seen]);
      abort = this.#decode ? this.#monitor.text(this.#decode([id])) : this.#monitor.token({ id });
    }
    if (abort || this.#monitor.distribution(scores)) {
      scores.fill(-Infinity);
      scores[this.#eos] = 0;
    }
    return scores;
  }

  close() {
    this.#monitor.close();
  }
}
