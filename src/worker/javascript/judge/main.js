// SPDX-License-Identifier: Apache-2.0
// The judge of JavaScript and TypeScript: what the bundle gives, and its contract with the worker in C.
//
// The bundle is one script. It runs in a bare JavaScriptCore context (no Node, no console, no timers) and defines one global,
// `CordonJudge`. The context is private: no program ever runs in it, so that no program can change the judge. Neither function throws:
// what cannot be judged is a finding.
//
//   CordonJudge.judge(source, optionsJson)        -> answer: one text
//   CordonJudge.link(entry, files, optionsJson)   -> answer: the text of path ENTRY and what it imports, as scripts
//   CordonJudge.warm(optionsJson)                 judges texts of its own, in a template (warm.js)
//
// link: files is {"path": "source" | null}; null says that the worker found no such file. While the answer's `needs` is not empty, the worker
// reads these paths of the workspace, adds them to files and calls again; `scripts` is empty until then. A text without
// imports needs nothing, so that link serves for every program. Options are read once where the same text comes again.
//
// options: {"language": "javascript" | "typescript",
//           "mode": "script" | "module" | "session",   script: what is module syntax makes it a module, as in Node
//           "rules": "none" | "standard" | "strict",   the built-in table of rules.js that holds; default "strict"
//           "deny": [{"kind", "name", "id", "hint"}],  the profile's own rules: name-deny, call-deny, attribute-deny, subscript-deny,
//                                                      module-deny; a name may end in *. module-allow of `node` says that Node
//                                                      runs the text: `require` and its own modules are there, `return` may stand
//                                                      outside of functions, nothing is linked, and the script is a number
//           "interrupts": bool,                        session: loops look at $cordonFlag[0] and call $cordonGiveWay(), which the worker declares
//           "path": "/workspace/main.js"}              what the text is called where it has no path (judge only)
//
// answer: {"syntax": null | {"message", "line", "column", "path"},
//          "findings": [{"rule", "name", "line", "column", "detail", "hint", "path"}],  any: the program is refused (SecurityError)
//          "scripts": [{"kind", "path", "text"}],  what runs in the second context, one after the other: made of the judged trees, never
//                               of the text, and with the lines of the text; none if refused. `module`: its value is a function, kept;
//                               `link`: its value is a function, called with the list of those; `program`: its value counts
//          "goal": "script" | "module",
//          "value": bool,       the completion value of the last script is that of a last expression: show it
//          "async": bool,       that value is a promise: run until it settles; with `value` it fulfils with {value: V},
//                               so that a promise as the last value stays one
//          "imports": [{"specifier", "line", "column", "path", "dynamic"}],
//          "needs": [path], "missing": [{"specifier", "path", "from", "line", "column"}]}
// Lines count from 1, columns from 1. A broken text that holds what the plain-text table knows has findings and `syntax`: the findings
// decide (SecurityError before SyntaxError).
//
// What the judge leaves to the second context: a computed access `x[k]` runs as it is written, without a guarded call. A call for
// each access costs an interpreter a multiple of the access, and would guard nothing that the context could not lack: before the program
// the worker replaces `eval` and `Function` by functions that throw SecurityError (Function keeps its prototype, so that `instanceof Function` works), and
// takes `constructor` off the prototypes of the four kinds of functions.
import { judgeText, linkGraph } from './link.js';
import { warm } from './warm.js';

let readText = null, readOptions = null;
const optionsOf = (text) => {
  if (text !== readText) {
    readOptions = JSON.parse(text || '{}');
    readText = text;
  }
  return readOptions;
};

globalThis.CordonJudge = Object.freeze({
  judge: (source, options) => judgeText(String(source), optionsOf(options)),
  link: (entry, files, options) => linkGraph(String(entry), files, optionsOf(options)),
  warm: (options) => warm(optionsOf(options)),
});
