/* SPDX-License-Identifier: Apache-2.0 */
/* What a judge found: every finding with its place and what to write instead, and the verdict.
 *
 * Takes:   findings, from a judge or from the channel of a worker (then it is the worker's word).
 * Gives:   them sorted by line, the verdict's words, and the JSON of `cordon check`.
 * Never:   keeps more than CHECK_FINDINGS_MAX; the rest is counted, and counts as refused.
 * Runs in: `cordon`, the workers.
 */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define CHECK_FINDINGS_MAX 100

/* Ids of findings that are no rule of a table: they hold in every profile. */
#define CHECK_RULE_SYNTAX   "syntax"
#define CHECK_RULE_SIZE     "size"
#define CHECK_RULE_ENCODING "encoding"
#define CHECK_RULE_NUL      "nul"
#define CHECK_RULE_INTAKE   "intake" /* no program, or more than one, in the text of a model */
#define CHECK_RULE_STRUCTURE                                                                       \
    "structure" /* the text is not the method that was asked for                                   \
                 */
#define CHECK_RULE_MISSING  "js.module.missing" /* a file that a program imports is not there */
#define CHECK_RULE_TAMPERED "tampered"          /* an earlier cell changed the parser's own types */

struct check_finding {
    const char *rule;  /* id: py.call.eval */
    const char *layer; /* input */
    const char
        *operand; /* what the program wrote, cut where it is long: eval, os.path, __class__ */
    const char *message; /* one of check/sentence.h: Blocked function: eval */
    const char *hint;    /* what to write instead, or empty */
    uint32_t line;       /* from 1; 0: of the whole source */
    uint32_t column;     /* from 1, in characters */
};

struct check_report {
    struct arena arena;             /* every string of the findings */
    struct check_finding *findings; /* sorted once check_report_end was called */
    size_t count;                   /* kept here */
    size_t dropped;                 /* and found beyond them */
    bool ended;
};

void check_report_init(struct check_report *report);
void check_report_done(struct check_report *report);

/* Copies FINDING's strings (each cut at a whole character). ERR_MEMORY. A finding past the ceiling
 * is counted and the call succeeds. */
ERR_MUST_USE int check_report_add(struct check_report *report, const struct check_finding *finding);

/* Sorts by line and column and drops exact repetitions. Then, and only then, the rest may be asked. */
void check_report_end(struct check_report *report);

/* The same rule about the same word is told once, with its places. 0: finding I repeats one before it; else how many
 * places it has. The first MOST of them, in order, in RET_PLACES, which may be NULL. */
struct check_place {
    uint32_t line, column;
};
size_t check_report_places(const struct check_report *report, size_t i,
                           struct check_place *ret_places, size_t most);

bool check_report_safe(const struct check_report *report);
/* safe, medium or high. medium: only words are wrong that nothing at run time depends on. */
const char *check_report_risk(const struct check_report *report);
/* `Code passed validation`, `Syntax error: ...`, or `Security violations: a, b`. */
ERR_MUST_USE int check_report_message(const struct check_report *report, struct buf *out);
/* Repetitions are told once. {"status", "layer", "is_safe", "risk_level", "blocked_operations", "message", "violations"}, one line, no line feed. */
ERR_MUST_USE int check_report_print_json(const struct check_report *report, struct buf *out);
/* For people: a line a finding, `FILE:LINE:COLUMN: message [rule]`, its other places and its hint below, then the
 * verdict. */
ERR_MUST_USE int check_report_print_text(const struct check_report *report, const char *file,
                                         struct buf *out);

#endif
