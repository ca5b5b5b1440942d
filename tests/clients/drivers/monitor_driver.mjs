// SPDX-License-Identifier: Apache-2.0
// The monitor of the Node library, for tests/clients/monitors.py: monitor_driver.mjs LIBRARY, a job a line on standard input.
import { createInterface } from "node:readline";
const { LogitsProcessor, Monitor } = await import(process.argv[2]);

function judged({ options, events }) {
  const monitor = new Monitor(options);
  const told = [];
  for (const { text, token, logits, top_logprobs } of events)
    try {
      if (monitor.token({ text, id: token, logits, topLogprobs: top_logprobs })) break;
    } catch (e) {
      told.push(`${e.name}: ${e.message}`);
    }
  const verdict = monitor.end();
  monitor.close();
  return { verdict, told };
}

/** A model that always says the same seven tokens: it ends by the end-of-text token that alone is left. */
function generated({ eos, vocabulary, most, decode }) {
  const p = new LogitsProcessor(eos, { decode: decode ? (ids) => ids.map((id) => ` ${decode}`).join("") : null });
  const ids = [1, 2, 3];
  while (ids.length < most && ids.at(-1) !== eos) {
    const scores = new Float32Array(vocabulary);
    scores[5 + (ids.length % 7)] = 9;
    p.process(ids, scores);
    ids.push(scores.indexOf(scores.reduce((a, b) => Math.max(a, b))));
  }
  return { verdict: p.verdict, ids };
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  try {
    console.log(JSON.stringify(job.generate ? generated(job.generate) : judged(job)));
  } catch (e) {
    console.log(JSON.stringify({ error: `${e.name}: ${e.message}` }));
  }
}
