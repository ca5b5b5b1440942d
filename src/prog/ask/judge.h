/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is told that judges for the arena.
 *
 * Takes:   its rules (built in, or a file of the operator's), the code, and the facts that the gate gives every judge.
 * Gives:   a system message of the rules, a prompt of the code and the facts.
 * Never:   puts a word of the code or the arguments into the system message; replaces anything in them but what could act on a reader.
 * Runs in: cordon-ask, confined.
 */
#ifndef PROG_ASK_JUDGE_H
#define PROG_ASK_JUDGE_H

#include "base/buf.h"
#include "base/err.h"

/* policies/arena-reviewer.md and its like. */
extern const char judge_reviewer[], judge_sceptic[];
/* The rules called NAME; NULL: there are none of that name. */
const char *judge_rules(const char *name);

struct judge_facts {
    const char *hash, *tool, *risk, *arguments;
};
/* RULES with {hash} replaced wherever it stands. */
ERR_MUST_USE int judge_system(const char *rules, const struct judge_facts *f, struct buf *out);
ERR_MUST_USE int judge_prompt(const struct judge_facts *f, const char *code, size_t len,
                              struct buf *out);

#endif
