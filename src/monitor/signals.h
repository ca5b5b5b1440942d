/* SPDX-License-Identifier: Apache-2.0 */
/* What a distribution tells: sustained entropy, its jumps, perplexity and its trend, and the weighted sum of all signals.
 *
 * Takes:   the entropy of one token after the other, in nats.
 * Gives:   the metrics of monitor.h.
 * Never:   takes more than constant time and memory a token.
 * Runs in: the caller.
 */
#ifndef MONITOR_SIGNALS_H
#define MONITOR_SIGNALS_H

#include "monitor/monitor.h"

#define SIGNALS_WINDOW_MAX 256
/* Growth of the perplexity over its window, in units of its mean, from which it counts as rising: it doubles. */
#define SIGNALS_TREND_THRESHOLD 1.0

struct signals {
    double ring[SIGNALS_WINDOW_MAX]; /* entropies */
    uint64_t seen;
    double before; /* the last entropy */
    uint64_t high; /* tokens in a row above the threshold */
};

void signals_add(struct signals *s, const struct monitor_config *c, double entropy,
                 struct monitor_metrics *m);
void signals_combine(const struct monitor_config *c, struct monitor_metrics *m);
/* What a literal threshold says of METRICS; MONITOR_NONE: nothing. */
enum monitor_reason signals_literal(const struct signals *s, const struct monitor_config *c,
                                    const struct monitor_metrics *m);

#endif
