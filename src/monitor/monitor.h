/* SPDX-License-Identifier: Apache-2.0 */
/* A generation watched while it is written: token by token, with bounded memory, until it is seen to be bad.
 *
 * Takes:   text in pieces of any size, or tokens with what is known of their distribution.
 * Gives:   a verdict: whether to abort, the reason, the token and byte where the loop began, the metrics.
 * Never:   depends on how the text was cut into pieces; looks at a clock; keeps the text.
 * Runs in: the caller.
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include "monitor/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum monitor_reason {
    MONITOR_NONE,
    MONITOR_HIGH_ENTROPY,
    MONITOR_ENTROPY_SPIKE,
    MONITOR_HIGH_REPETITION,
    MONITOR_RISING_PERPLEXITY,
    MONITOR_RUNAWAY_LENGTH,
    MONITOR_COMBINED_SIGNALS,
    MONITOR_REASON_COUNT
};

/* Which detector a verdict rests on. */
enum monitor_detector {
    MONITOR_BY_NOTHING,
    MONITOR_BY_LOOP,     /* the same tokens again and again */
    MONITOR_BY_COUNTER,  /* the same tokens but for numbers that grow by a constant step */
    MONITOR_BY_DRIFT,    /* nearly the same tokens; where it began and its period are estimates */
    MONITOR_BY_LENGTH,   /* more tokens than were expected */
    MONITOR_BY_THRESHOLD /* one of the literal mode's */
};

/* What is known of the distribution that a token was drawn from, in nats. */
struct monitor_entropy {
    double low, high; /* equal: exact, from all logits; an interval: from the most probable ones */
};

struct monitor_metrics {
    double entropy; /* of the last token that had one; the middle of its interval */
    double spike;   /* its jump over the token before */
    double
        repetition; /* share of n-grams of the last MONITOR_WINDOW tokens that were there before in it */
    double perplexity;   /* exp of the mean entropy of the window */
    double trend;        /* growth of the perplexity over the window, in units of its mean */
    double failure_prob; /* the weighted sum of the four */
};

struct monitor_verdict {
    bool abort;
    enum monitor_reason reason;
    enum monitor_detector detector;
    uint64_t tokens; /* seen when the verdict was reached, or so far */
    uint64_t onset,
        onset_byte;  /* where the loop's first copy begins: token and byte, both from 0 */
    uint64_t period; /* of the loop, in tokens; 0: there is none */
    struct monitor_metrics metrics;
};

/* What the end of a stream repeats, token for token. */
struct monitor_repeat {
    uint64_t onset, onset_byte; /* of its first copy */
    uint64_t period;            /* 0: nothing */
    uint64_t copies;            /* whole ones */
};

struct monitor;

/* NULL without memory. KEY keys the hash tables: an attacker who knows it can make them slow, not wrong. */
struct monitor *monitor_new(const struct monitor_config *config, uint64_t key);
void monitor_free(struct monitor *m);

/* Each returns whether to abort; what is fed afterwards is ignored. A token of a text is complete when the next one begins:
 * monitor_end takes the last one. */
bool monitor_text(struct monitor *m, const void *text, size_t len);
bool monitor_end(struct monitor *m);
/* A token by its number; ENTROPY NULL: not known. A stream is either text or tokens. */
bool monitor_token(struct monitor *m, uint64_t id, const struct monitor_entropy *entropy);
/* The entropy of the next token of a stream of text. */
bool monitor_saw_entropy(struct monitor *m, const struct monitor_entropy *entropy);

const struct monitor_verdict *monitor_verdict(const struct monitor *m);
/* From 32 tokens and four copies on, whether it is cut for it or not: a table and a loop of numbers look alike, and who asked for the
 * text knows which it is. Not in the literal mode, which compares nothing. */
struct monitor_repeat monitor_repeats(const struct monitor *m);
/* Of a text: how many of its bytes can be handed on. What is held back are the last WINDOW tokens and, while the end of the text was
 * there before (MONITOR_REPEATED tokens of it or more), everything since its first occurrence: that may be the first copy of a loop; while
 * nearly the same text was there before, the last five copies of it. */
#define MONITOR_REPEATED 8
uint64_t monitor_settled(const struct monitor *m, uint64_t window);
const char *monitor_reason_name(enum monitor_reason reason);
const char *monitor_detector_name(enum monitor_detector detector);

#endif
