// SPDX-License-Identifier: Apache-2.0
// A client of `cordon serve`: docs/agents.md. An idle client does not keep the process alive; a server that was started ends with it.
import { spawn } from "node:child_process";
import { createConnection } from "node:net";

const META = "io.modelcontextprotocol/";
const REVISION = "2026-07-28";
const MESSAGE_MAX = 4 << 20; // bytes of one message; the server reads no longer one
const REPLY_MAX = 64 << 20; // bytes of a line of the server that we read
const PATIENCE = 120_000; // milliseconds without an answer, after which the server counts as gone

/** Every field of a result, and what it is where the server did not send it. */
const FIELDS = {
  Result: {
    id: null, status: "refused", layer: null, reason: null, intake: null, notes: [], violations: [], violations_total: 0, stdout: "",
    stderr: "", stdout_bytes: 0, stderr_bytes: 0, truncated: false, value: null, is_final: false, final: null, error: null, exit_code: null,
    signal: null, usage: {}, layers: {}, files: [], files_truncated: false, snapshot: null, session: null, job_id: null, elapsed_ms: null,
  },
  Report: { status: "refused", layer: null, is_safe: false, risk_level: null, blocked_operations: [], message: "", violations: [] },
  Evaluation: { value: null, type: null, error: null },
  FileInfo: { status: "refused", reason: null, source: null, bytes: 0, data: null, next_offset: null },
  FileList: { status: "refused", reason: null, source: null, names: [], cut: false },
  FileMatches: { status: "refused", reason: null, source: null, matches: [], found: [], cut: false },
  SnapshotInfo: { status: "refused", reason: null, workspace: null, id: null, snapshots: [], changes: null, patch: null, cut: false },
  SessionInfo: { action: "", session_id: null, expires_in_s: null, sessions: [] },
};

/** Whatever this library throws, but for wrong arguments and what a callback throws. */
export class CordonError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** The server cannot be started or reached, has ended, or does not answer. */
export class ServerGone extends CordonError {}

/** The server does not know what it was asked, as JSON-RPC tells it; with code 0 its reply has no result. */
export class ProtocolError extends CordonError {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** With `check`: the result, which is not ok. */
export class Failed extends CordonError {
  constructor(result) {
    super(`${result.status ?? "refused"}: ${result.reason ?? result.text.trim()}`);
    this.result = result;
  }
}

/** What was refused before there was a result has only words. */
function wordsAlone(kind, text) {
  const words = text.trim();
  if (kind === "Report") return { message: words };
  if (kind === "Evaluation") return { error: { type: "refused", message: words } };
  if (["FileInfo", "FileList", "FileMatches", "SnapshotInfo"].includes(kind)) return { reason: words };
  const status = /^status: (.*)\n([^]*)$/.exec(text);
  return kind === "Result" ? (status ? { status: status[1], reason: status[2].trim() } : { reason: words }) : {};
}

/** The fields that are worked on here: nothing but a text may be in them. */
const TEXTS = ["stdout", "stderr", "job_id", "session_id", "data"];
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => value === undefined || value === null || typeof value === "string";

/** The result of a reply, which may be anything. */
function resultOf({ result, error }) {
  if (error !== undefined && error !== null) throw new ProtocolError(String(error.message ?? "an error without words"), Number.isInteger(error.code) ? error.code : 0);
  if (!isObject(result)) throw new ProtocolError("the server's reply has no result", 0);
  const { content = [], structuredContent: fields = {} } = result;
  if (!Array.isArray(content) || !content.every((block) => isObject(block) && isText(block.text)) || !isObject(fields ?? {}) || !TEXTS.every((name) => isText(fields?.[name])))
    throw new ProtocolError("the server's result has not the form of one", 0);
  return result;
}

function answer(kind, result) {
  const text = (result.content ?? []).map((block) => block.text ?? "").join("");
  const content = result.structuredContent ?? wordsAlone(kind, text);
  return { ...structuredClone(FIELDS[kind]), ...content, text, is_error: Boolean(result.isError) };
}

/** The bytes of a file. Buffer.from would cut the numbers of other arrays to bytes, and take half a surrogate pair for another character. */
function bytesOf(data) {
  if (typeof data === "string") {
    if (/\p{Surrogate}/u.test(data)) throw new TypeError("data has a lone surrogate");
    return Buffer.from(data);
  }
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return Buffer.from(data);
  throw new TypeError("data is neither a string nor bytes (a Uint8Array, another view of an ArrayBuffer, or one itself)");
}

/** JSON.stringify writes null for these, which would be another value, or none of a limit. */
function finite(name, value) {
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${name} is ${value}, and JSON has no number for that`);
  return value;
}

export class Client {
  #options;
  #stream = null; // { in, out, child }
  #rest = [];
  #length = 0; // bytes of #rest
  #number = 0;
  #calls = new Map();
  #gone = null;
  #words = "";
  #ended;

  /** To the socket of a server that runs, or to one that is started, with options of `cordon serve`. */
  constructor({ socket = null, program = "cordon", options = [], patience = PATIENCE } = {}) {
    this.#options = { socket, program, options, patience };
  }

  /** Whether calls can be made: not closed, and not lost. */
  usable() {
    return this.#gone === null;
  }

  // --- the connection ---

  #open() {
    if (this.#stream || this.#gone) return;
    const { socket, program, options } = this.#options;
    if (socket === "") return this.#end("the path of the socket is empty"); // net would take it for a host
    if (socket !== null) {
      const s = createConnection({ path: String(socket) }); // a text of digits would be a port
      this.#stream = { in: s, out: s, child: null };
      this.#ended = new Promise((done) => s.once("close", done));
      s.on("error", (e) => this.#end(`${socket}: ${e.message}; start it: cordon serve --socket ${socket}`));
      s.on("close", () => this.#end("the server ended"));
    } else {
      const own = options.some((o) => o.startsWith("--answer")) ? [] : ["--answer", "1s"];
      // a session of its own: Control-C is for our program
      const child = spawn(program, ["serve", "--stdio", ...own, ...options], { stdio: "pipe", detached: true });
      child.on("error", (e) => this.#end(`${program}: ${e.message}; is Cordon installed?`));
      if (!child.stderr) return this.#end(`${program}: cannot be started; are there descriptors left?`); // it has no streams then
      this.#stream = { in: child.stdout, out: child.stdin, child };
      this.#ended = new Promise((done) => child.once("close", done).once("error", done));
      child.stderr.on("data", (data) => (this.#words = (this.#words + data).slice(-1000)));
      child.on("close", () => this.#end("the server ended"));
      child.stdin.on("error", () => {}); // its end tells why
    }
    this.#stream.in.on("data", (data) => this.#take(data));
    this.#hold(false);
  }

  /** Whether the connection keeps the process alive: only while something is waited for. */
  #hold(yes) {
    const { in: source, out, child } = this.#stream;
    for (const part of [source, out, child, child?.stderr]) part?.[yes ? "ref" : "unref"]?.();
  }

  #end(why) {
    this.#gone ??= this.#words.trim() ? `${why}: ${this.#words.trim()}` : why;
    for (const call of this.#calls.values()) call.fail(new ServerGone(this.#gone));
  }

  /** Ends the connection, and with it this client's runs and sessions. */
  async close() {
    this.#gone ??= "the client is closed";
    if (!this.#stream) return;
    this.#hold(true);
    this.#stream.out.end();
    if (!this.#stream.child) this.#stream.in.destroy();
    const late = setTimeout(() => this.#stream.child?.kill("SIGKILL"), 15_000); // cordond takes at most 10 s to leave
    await this.#ended;
    clearTimeout(late);
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }

  // --- messages ---

  /** What the server says may be anything; nobody could catch what is thrown here. */
  #take(data) {
    if (this.#gone) return;
    try {
      let at;
      while ((at = data.indexOf(10)) >= 0) {
        const line = Buffer.concat([...this.#rest, data.subarray(0, at)]);
        this.#rest = [];
        this.#length = 0;
        data = data.subarray(at + 1);
        this.#dispatch(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line)));
      }
      if (data.length) this.#rest.push(data);
      this.#length += data.length;
      if (this.#length > REPLY_MAX) throw new RangeError("it is longer than 64 MiB");
    } catch (error) {
      this.#rest = [];
      this.#end(`what the server said is no message (${error.message})`);
    }
  }

  #dispatch(message) {
    if (!isObject(message)) throw new TypeError("it is no object");
    if (message.method !== undefined) {
      const { progressToken, progress, message: words } = (message.method === "notifications/progress" && message.params) || {};
      if (typeof progress === "number" && isText(words)) this.#calls.get(progressToken)?.progress({ progress, message: words });
    } else if (message.id === null) {
      this.#end(`the server: ${message.error?.message}`); // it could not read what we wrote
    } else {
      this.#calls.get(message.id)?.reply(message);
    }
  }

  #line(message) {
    const data = Buffer.from(JSON.stringify(message) + "\n");
    if (data.length > MESSAGE_MAX) throw new RangeError(`a message has at most 4 MiB, and this one has ${data.length} bytes`);
    return data;
  }

  #request(number, tool, args, progress) {
    const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined && value !== null));
    for (const [name, value] of Object.entries(given)) {
      if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new TypeError(`${name} has a lone surrogate`);
      finite(name, value);
    }
    const _meta = { [META + "protocolVersion"]: REVISION, [META + "clientCapabilities"]: {} };
    if (progress) _meta.progressToken = number;
    return this.#line({ jsonrpc: "2.0", id: number, method: "tools/call", params: { name: tool, arguments: given, _meta } });
  }

  /** One request and its reply; one that is given up is cancelled. */
  async #ask(tool, args, { on_progress, signal }) {
    signal?.throwIfAborted(); // what the caller said comes before what became of the server
    this.#open();
    if (this.#gone) throw new ServerGone(this.#gone);
    const number = ++this.#number;
    const data = this.#request(number, tool, args, Boolean(on_progress));
    let late, abort;
    this.#hold(true);
    try {
      return await new Promise((reply, fail) => {
        const stop = (error) => {
          this.#stream.out.write(this.#line({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: number } }));
          fail(error);
        };
        const wait = () => {
          clearTimeout(late);
          late = setTimeout(() => stop(new ServerGone(`no answer for ${this.#options.patience} ms`)), this.#options.patience);
        };
        const progress = ({ progress, message }) => {
          wait();
          try {
            on_progress?.(progress, message ?? "");
          } catch (error) {
            stop(error);
          }
        };
        abort = () => stop(signal.reason);
        signal?.addEventListener("abort", abort);
        this.#calls.set(number, { reply, fail, progress });
        wait();
        this.#stream.out.write(data);
      });
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
      this.#calls.delete(number);
      if (this.#calls.size === 0) this.#hold(false);
    }
  }

  /** One method: what takes long is answered with a job, which is waited for, and its output is told as it grows. */
  async #do(kind, tool, args, own = {}) {
    const { wait = true, check = false, on_output, on_progress, signal } = own;
    const told = { stdout: "", stderr: "" };
    let job = null;
    try {
      for (;;) {
        const result = resultOf(await this.#ask(tool, args, { on_progress, signal }));
        const content = result.structuredContent ?? {};
        job = content.status === "running" ? content.job_id : null;
        for (const stream of on_output ? ["stdout", "stderr"] : []) {
          const text = content[stream] ?? "";
          if (text.length <= told[stream].length || !text.startsWith(told[stream])) continue; // cut or redacted since: the result has it
          const more = text.slice(told[stream].length);
          told[stream] = text;
          on_output(stream, more);
        }
        if (job && wait) {
          [tool, args] = ["wait_job", { job_id: job }];
          continue;
        }
        const value = answer(kind, result);
        if (check && value.is_error) throw new Failed(value);
        return value;
      }
    } catch (error) {
      if (job && !(error instanceof ServerGone) && !(error instanceof ProtocolError)) this.#stream.out.write(this.#request(++this.#number, "wait_job", { job_id: job, cancel: true }));
      throw error;
    }
  }

  // --- methods ---

  async run(code, { language, session_id, timeout_ms, memory_mb, max_output_chars, wait, check, on_output, on_progress, signal } = {}) {
    const args = { code, language, session_id, timeout_ms, memory_mb, max_output_chars };
    return this.#do("Result", "execute_code", args, { wait, check, on_output, on_progress, signal });
  }

  async wait(job_id, { cancel, check, on_output, on_progress, signal } = {}) {
    return this.#do("Result", "wait_job", { job_id, cancel: cancel || undefined }, { check, on_output, on_progress, signal });
  }

  async check(code, { language } = {}) {
    return this.#do("Report", "check_code", { code, language });
  }

  async eval(expression, context) {
    const text = context === undefined || context === null || typeof context === "string" ? context : JSON.stringify(context, finite);
    return this.#do("Evaluation", "eval_expression", { expression, context: text });
  }

  async session({ workspace, language } = {}) {
    return new Session(this, await this._session("new", undefined, workspace, language));
  }

  async sessions() {
    return (await this._session("list")).sessions;
  }

  /** What cannot be done has no result that could be given, so it throws. For Session. */
  async _session(action, session_id, workspace, language) {
    return this.#do("SessionInfo", "session", { action, session_id, workspace, language }, { check: true });
  }

  /** Likewise. */
  async _file(tool, args) {
    return this.#do("FileInfo", tool, { ...args, encoding: "base64" }, { check: true });
  }

  /** A refusal is a result here. */
  async _files(kind, tool, args) {
    return this.#do(kind, tool, args);
  }
}

/** Made by `await client.session()`: an interpreter whose variables and files live on between calls. */
export class Session {
  constructor(client, info) {
    if (!info.session_id) throw new ProtocolError("the server's reply has no session", 0);
    this.client = client;
    this.id = info.session_id;
    this.expires_in_s = info.expires_in_s;
  }

  async run(code, { language, timeout_ms, max_output_chars, wait, check, on_output, on_progress, signal } = {}) {
    return this.client.run(code, { language, session_id: this.id, timeout_ms, max_output_chars, wait, check, on_output, on_progress, signal });
  }

  /** Writes a file below /workspace, whole. What is refused throws Failed. */
  async put(path, data) {
    return this.client._file("write_file", { session_id: this.id, path, text: bytesOf(data).toString("base64") });
  }

  /** The bytes of a file below /workspace. What is refused throws Failed. */
  async get(path) {
    const parts = [];
    for (let offset; offset !== null; ) {
      const part = await this.client._file("read_file", { session_id: this.id, path, offset });
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(part.data ?? "")) throw new ProtocolError("the server's part of a file is no base64", 0);
      if (part.next_offset !== null && !(part.next_offset > (offset ?? 0))) throw new ProtocolError("the server's part of a file does not lead on", 0); // it would never end
      parts.push(Buffer.from(part.data ?? "", "base64"));
      offset = part.next_offset;
    }
    return Buffer.concat(parts);
  }

  /** What is in a folder below /workspace. A refusal is a result, too. */
  async list(path) {
    return this.client._files("FileList", "list_files", { session_id: this.id, path });
  }

  /** Lines that match a regular expression; with what: "names" files whose name matches a pattern of the shell. */
  async search(pattern, { path, what, ignore_case } = {}) {
    return this.client._files("FileMatches", "search_files", { session_id: this.id, pattern, path, what, ignore_case: ignore_case || undefined });
  }

  /** Names the present state of the session's workspace. */
  async snapshot({ name, message } = {}) {
    return this.client._files("SnapshotInfo", "snapshot", { session_id: this.id, action: "create", name, message });
  }

  /** The states of the session's workspace, the newest first. */
  async snapshots() {
    return this.client._files("SnapshotInfo", "snapshot", { session_id: this.id, action: "list" });
  }

  /** What differs between two states: head~1 and head unless given. */
  async diff({ snapshot, to } = {}) {
    return this.client._files("SnapshotInfo", "snapshot", { session_id: this.id, action: "diff", snapshot, to });
  }

  /** Makes the files those of an earlier state. */
  async restore(snapshot) {
    return this.client._files("SnapshotInfo", "snapshot", { session_id: this.id, action: "restore", snapshot });
  }

  async fork() {
    return new Session(this.client, await this.client._session("fork", this.id));
  }

  async interrupt() {
    await this.client._session("interrupt", this.id);
  }

  async close() {
    await this.client._session("close", this.id);
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

let shared = null;

/** The connection of this process: to the socket that CORDON_SOCKET names, else to a server that is started; a new one where it was lost. */
export function defaultClient() {
  if (!shared?.usable()) shared = new Client({ socket: process.env.CORDON_SOCKET ?? null });
  return shared;
}

export const run = (code, options) => defaultClient().run(code, options);
export const wait = (job_id, options) => defaultClient().wait(job_id, options);
export const check = (code, options) => defaultClient().check(code, options);
const evaluate = (expression, context) => defaultClient().eval(expression, context);
export { evaluate as eval };
