/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of JavaScript as one script: src/worker/javascript/judge/main.js says what it defines and how it is called.
 *
 * Takes:   nothing.
 * Gives:   the script, ASCII, with a NUL behind it.
 * Never:   runs: whoever evaluates it does so in a context that no program sees.
 * Runs in: cordon-javascript.
 */
#ifndef WORKER_JAVASCRIPT_JUDGE_BUNDLE_H
#define WORKER_JAVASCRIPT_JUDGE_BUNDLE_H

#include <stddef.h>

extern const char js_judge_bundle[];
extern const size_t js_judge_bundle_len;

#endif
