/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what repeats at the end of a stream is a loop that never ends, or a table, a list, a ruler.
 *
 * Takes:   the tokens so far, and how much of the end repeats at which distance.
 * Gives:   yes after 48 tokens and four copies of what reads like prose; data must repeat for longer.
 * Never:   looks at a cycle twice, unless it is another one.
 * Runs in: the caller.
 */
#ifndef MONITOR_CYCLE_H
#define MONITOR_CYCLE_H

#include "monitor/loop.h"
#include "monitor/tokens.h"

#include <stdbool.h>

#define CYCLE_COPIES      4
#define CYCLE_TOLD_TOKENS 32 /* of what is told, though nothing is cut for it */
#define CYCLE_NUMBERED                                                                             \
    8 /* times as many tokens where numbers differ and it is no prose: tables count, too */
#define CYCLE_TOKENS      48  /* of a loop, its copies together */
#define CYCLE_CODE_TOKENS 160 /* the same where marks outnumber words: markup, code */
#define CYCLE_CODE_COPIES 12  /* of such a cycle with three words or more, or of lines of code */
#define CYCLE_BLOCK_COPIES                                                                         \
    10 /* of one with three words or more on three lines or more that is no markup */
#define CYCLE_BLOCK_LINES 3
#define CYCLE_LINE_COPIES 64 /* with fewer words */
#define CYCLE_ONE_LINE_TOKENS                                                                      \
    384 /* the same as CYCLE_CODE_TOKENS with fewer words, or marks alone, and no end of a line */
#define CYCLE_DATA_TOKENS 4096 /* the same where there are no words, or one of a list */
#define CYCLE_ROW_TOKENS  512  /* the same of rows with different numbers ... */
#define CYCLE_ROW_LEAST   5    /* ... of so many tokens, ... */
#define CYCLE_ROW_COPIES  64   /* ... so many times */

struct cycle_token {
    uint64_t byte : 56;
    /* a word; a name, which may have digits and _; a mark, one of a list's or of a tag's; the end of a line */
    uint64_t letters : 1, name : 1, mark : 1, list : 1, tag : 1, line : 1;
    int64_t value; /* of a number; -1: it is none */
};

struct cycle_history {
    uint64_t count;
    uint64_t room; /* of the ring: as much as was needed, at most what the automaton remembers */
    struct cycle_token *ring;
};

struct cycle_judged {
    uint64_t lag, onset;
    uint64_t needed; /* tokens from which it is a loop */
};

/* False: no memory. */
bool cycle_init(struct cycle_history *h);
void cycle_done(struct cycle_history *h);
void cycle_remember(struct cycle_history *h, const struct token *t);
/* A token by its number in the stream; it must be among the last `room`. */
const struct cycle_token *cycle_at(const struct cycle_history *h, uint64_t n);
/* NUMBERED: numbers were left out of the comparison, so each must be the same in all copies or grow by one step. */
bool cycle_is_loop(const struct cycle_history *h, struct cycle_judged *judged,
                   struct loop_tail tail, bool numbered);

#endif
