// SPDX-License-Identifier: Apache-2.0
// A program that uses the Node library, read by the compiler of TypeScript (`make official`) and never run: what it may write, and, below each comment for the compiler, what it may not.
import { Client, Failed, Session, check, eval as evaluate, run, wait } from "../../bindings/node/index.js";

const r = await run("1", { timeout_ms: 5, on_output: (stream, text) => void [stream.length, text.length], on_progress: (ms, message) => void [ms + 1, message] });
const words: string = r.status + r.stdout, job: string | null | undefined = r.job_id;
const client = new Client({ socket: "/run/cordon/mcp" });
const session: Session = await client.session();
const fork: Session = await session.fork();
await fork.put("a", "b");
const bytes: Uint8Array = await fork.get("a");
await session.interrupt();
const safe: boolean = (await check("1")).is_safe;
const value: unknown = (await evaluate("1 + 1", { a: 1 })).value;
await wait("job-1", { cancel: true, signal: new AbortController().signal });
try {
  await client.run("1", { check: true });
} catch (e) {
  if (e instanceof Failed) console.log(e.result.text, words, job, bytes, safe, value);
}
// @ts-expect-error: a limit is a number
await client.run("1", { timeout_ms: "5" });
// @ts-expect-error: there is no such option
await client.run("1", { nonsense: 1 });
// @ts-expect-error: code is not left out
await client.run();
// @ts-expect-error: there is no such method
await client.nonsense();
// @ts-expect-error: there is no such field
console.log(r.nonsense);
