// SPDX-License-Identifier: Apache-2.0
// The official libraries of OpenAI and Anthropic, unchanged but for address and token, at a gateway. Prints what they saw as one line of
// JSON. Usage: drive.mjs HOME ADDRESS TOKEN
import { createRequire } from "node:module";
const [home, address, token] = process.argv.slice(2);
const require = createRequire(home + "/");
const OpenAI = require("openai").default;
const Anthropic = require("@anthropic-ai/sdk").default;
const openai = new OpenAI({ baseURL: address + "/v1", apiKey: token, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: address, apiKey: token, maxRetries: 0 });
const ask = [{ role: "user", content: "Go on." }];
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: { a: { type: "number" } } } } }];
const seen = {};

async function text(stream, pick) {
  let out = "";
  for await (const event of stream) out += pick(event) ?? "";
  return out;
}
async function failure(call) {
  try {
    await call();
    return "no error";
  } catch (e) {
    return [e.constructor.name, e.status ?? null, e.message];
  }
}
const chat = (model, more = {}) => openai.chat.completions.create({ model, messages: ask, ...more });
const message = (model, more = {}) => anthropic.messages.create({ model, max_tokens: 100, messages: ask, ...more });

seen.models = (await openai.models.list()).data.map((m) => m.id);
seen.models_anthropic = (await anthropic.models.list()).data.map((m) => m.id);

seen.chat = (await chat("normal")).choices[0].message.content;
seen.chat_stream = await text(await chat("normal", { stream: true }), (e) => e.choices[0]?.delta?.content);
const helper = await openai.chat.completions.stream({ model: "tool", messages: ask, tools }).finalChatCompletion();
seen.chat_tool = helper.choices[0].message.tool_calls[0].function;
const looped = [];
for await (const e of await chat("loop", { stream: true })) if (e.choices[0]?.finish_reason) looped.push(e.choices[0].finish_reason);
seen.chat_loop = looped;
seen.chat_unknown = await failure(() => chat("none"));
seen.chat_error = await failure(async () => text(await chat("late_error", { stream: true }), () => ""));
seen.chat_key = await failure(() => new OpenAI({ baseURL: address + "/v1", apiKey: "x".repeat(40), maxRetries: 0 }).chat.completions.create({ model: "normal", messages: ask }));
const endless = await chat("endless", { stream: true });
let parts = 0;
for await (const _ of endless) if (++parts == 3) break; // closes the connection
seen.chat_cancelled = parts;

seen.response = (await openai.responses.create({ model: "respond", input: "Go on." })).output_text;
seen.response_stream = await text(await openai.responses.create({ model: "respond", input: "Go on.", stream: true }), (e) => (e.type === "response.output_text.delta" ? e.delta : ""));

seen.message = (await message("hello")).content[0].text;
seen.message_stream = await text(await message("hello", { stream: true }), (e) => e.delta?.text);
const final = await anthropic.messages.stream({ model: "use", max_tokens: 100, messages: ask }).finalMessage();
seen.message_tool = final.content.find((b) => b.type === "tool_use").input;
seen.message_loop = (await anthropic.messages.stream({ model: "message_loop", max_tokens: 100, messages: ask }).finalMessage()).stop_reason;
seen.message_unknown = await failure(() => message("none"));
const other = anthropic.messages.stream({ model: "message_endless", max_tokens: 100, messages: ask });
seen.message_cancelled = await failure(async () => {
  for await (const e of other) if (e.type === "content_block_delta") other.abort();
});
console.log(JSON.stringify(seen));
