/* SPDX-License-Identifier: Apache-2.0 */
/* Shannon entropy of the distribution that a token was drawn from, in nats.
 *
 * Takes:   all logits, or the log-probabilities of the most probable tokens.
 * Gives:   the entropy; where tokens are missing, the interval it lies in.
 * Never:   gives a number for what has none: false.
 * Runs in: the caller.
 */
#ifndef MONITOR_ENTROPY_H
#define MONITOR_ENTROPY_H

#include "monitor/monitor.h"

/* Logits may be -inf (a token that cannot come), not NaN and not +inf. */
bool entropy_of_logits(const float *logits, size_t count, struct monitor_entropy *ret);
/* The COUNT most probable of VOCABULARY tokens. The missing probability lies on one token, or is spread evenly. */
bool entropy_of_top(const double *logprobs, size_t count, uint64_t vocabulary,
                    struct monitor_entropy *ret);

#endif
