// SPDX-License-Identifier: Apache-2.0
// Does what tests/clients/clients.py says, a JSON object a line, with the Node library. node_driver.mjs SOCKET|- LIBRARY
import { createInterface } from "node:readline";

const { Client, Session } = await import(process.argv[3]);
const client = new Client(process.argv[2] === "-" ? { options: ["--answer", "100ms", "--timeout", "10m", "--profile", "standard", "--workspaces", "stdio,socket"] } : { socket: process.argv[2] });
const held = {};
/** How the arguments of a case are given to a method. */
const CALLS = {
  put: (place, { path, data, view, text }) => place.put(path, text ?? bytes(data, view)),
  get: (place, { path }) => place.get(path),
  list: (place, { path }) => place.list(path),
  search: (place, { pattern, ...options }) => place.search(pattern, options),
  restore: (place, { snapshot }) => place.restore(snapshot),
  eval: (place, { expression, context }) => place.eval(expression, context),
  run: (place, { code, ...options }) => place.run(code, options),
  check: (place, { code, ...options }) => place.check(code, options),
  wait: (place, { job_id, ...options }) => place.wait(job_id, options),
};

/** The bytes of a text in base64, seen as an array of another kind where VIEW names one. */
function bytes(data, view) {
  const all = new Uint8Array(Buffer.from(data, "base64"));
  return view ? new globalThis[view](all.buffer) : all;
}

async function step(ask) {
  const place = ask.on ? held[ask.on] : client;
  const { on_output, on_progress, ...options } = ask.args ?? {};
  const output = [], progress = [];
  const giveUp = new AbortController();
  let interrupted;
  if (on_output)
    options.on_output = (stream, text) => {
      output.push(text);
      if (on_output === "cancel") giveUp.abort();
    };
  if (on_progress)
    options.on_progress = (ms) => {
      progress.push(ms);
      if (output.length) interrupted ??= place.interrupt();
    };
  if (on_output === "cancel") options.signal = giveUp.signal;
  try {
    let result = await (CALLS[ask.do]?.(place, options) ?? place[ask.do](options));
    await interrupted;
    if (result instanceof Uint8Array) result = { base64: Buffer.from(result).toString("base64") };
    if (result instanceof Session) {
      held[ask.as] = result;
      result = { id: result.id, expires_in_s: result.expires_in_s };
    }
    return { result: result ?? null, output, progress };
  } catch (error) {
    return { raised: error.name, message: error.message, result: error.result ?? null, output };
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await step(JSON.parse(line))));
await client.close();
