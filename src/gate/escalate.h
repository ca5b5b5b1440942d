/* SPDX-License-Identifier: Apache-2.0 */
/* What to do after a failure: try again, ask a stronger model, skip, or stop.
 *
 * Takes:   the category of the error, the tier that failed, how often it has tried.
 * Gives:   the next step, the tier that takes it, and why in one sentence.
 * Never:   keeps state: the caller counts its attempts.
 * Runs in: the supervisor, `cordon escalate`.
 */
#ifndef GATE_ESCALATE_H
#define GATE_ESCALATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* category, word, rule, why. */
#define GATE_ERROR_CATEGORIES(X)                                                                   \
    X(CODE, "CODE", RETRY_THEN_ESCALATE, "the program failed; a second try may mend it")           \
    X(LOGIC, "LOGIC", RETRY_THEN_ESCALATE,                                                         \
      "the program ran and was wrong; a second try may mend it")                                   \
    X(FORMAT, "FORMAT", RETRY_ONLY, "a stronger model does not format better")                     \
    X(SCHEMA, "SCHEMA", RETRY_ONLY, "a stronger model does not fit a schema better")               \
    X(TIMEOUT, "TIMEOUT", SKIP_IF_OPTIONAL,                                                        \
      "the time ran out; an optional step is not worth more")                                      \
    X(EARLY_ABORT, "EARLY_ABORT", ESCALATE_AT_ONCE,                                                \
      "this model cannot do it: another try gives the same degenerate output")                     \
    X(HOST, "HOST", RETRY_ONLY,                                                                    \
      "the machine or another process failed, not the program: a stronger model does not mend "    \
      "that")                                                                                      \
    X(REFUSAL, "REFUSAL", NEVER,                                                                   \
      "the check or the gate refused it: the same again is refused again; do what the hint says")

enum gate_error_category {
#define X(name, word, rule, why) GATE_ERROR_##name,
    GATE_ERROR_CATEGORIES(X)
#undef X
        GATE_ERROR_COUNT
};

/* tier, word, the tier above (itself: the top). */
#define GATE_TIERS(X)                                                                              \
    X(WORKER, "worker", CODER)                                                                     \
    X(CODER, "coder", ARCHITECT)                                                                   \
    X(ARCHITECT, "architect", ARCHITECT)                                                           \
    X(INGEST, "ingest", ARCHITECT)

enum gate_tier {
#define X(name, word, above) GATE_TIER_##name,
    GATE_TIERS(X)
#undef X
        GATE_TIER_COUNT
};

enum gate_step { GATE_STEP_RETRY, GATE_STEP_ESCALATE, GATE_STEP_SKIP, GATE_STEP_STOP };

struct gate_failure_report {
    enum gate_error_category category;
    enum gate_tier tier;
    uint64_t attempt; /* how many times this tier has tried, from 1 */
    uint64_t retries; /* escalation.retries; GATE_RETRIES by default */
    bool optional;    /* the step may be left out */
};
#define GATE_RETRIES 2

struct gate_advice {
    enum gate_step step;
    enum gate_tier next; /* who takes it; the tier itself on retry, skip and stop */
    uint64_t retries_left;
    char reason[240];
};
void gate_escalate(const struct gate_failure_report *failure, struct gate_advice *ret_advice);

const char *gate_error_category_name(enum gate_error_category c); /* CODE */
const char *gate_tier_name(enum gate_tier t);
const char *gate_step_name(enum gate_step s); /* retry, escalate, skip, stop */
/* -1 when WORD is none; categories in either case. */
int gate_error_category_find(const char *word);
int gate_tier_find(const char *word);

/* The category of a result: one table of statuses and error types. TYPE may be NULL. */
enum gate_error_category gate_error_category_of(const char *status, const char *type);

#endif
