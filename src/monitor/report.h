/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict in the words of `cordon monitor`: the same for the program and for those who link the library.
 *
 * Takes:   a verdict, and the thresholds it was reached with.
 * Gives:   members of an open JSON object.
 * Never:   reads a stream.
 * Runs in: the caller.
 */
#ifndef MONITOR_REPORT_H
#define MONITOR_REPORT_H

#include "monitor/monitor.h"

#include "base/jsonw.h"

/* The signals of a verdict, in the order in which they are told. */
#define MONITOR_SIGNALS(X) X(entropy) X(spike) X(repetition) X(perplexity) X(trend) X(failure_prob)

enum monitor_signal {
#define NUMBER(name) MONITOR_SIGNAL_##name,
    MONITOR_SIGNALS(NUMBER)
#undef NUMBER
        MONITOR_SIGNAL_COUNT
};

const char *monitor_signal_name(enum monitor_signal signal);
void monitor_signal_values(const struct monitor_metrics *m, double out[MONITOR_SIGNAL_COUNT]);

/* "abort" to "period": what was decided, why and where. */
void monitor_put_verdict(struct jsonw *j, const struct monitor_verdict *v);
/* "repeats": what the end repeats, or null. */
void monitor_put_repeat(struct jsonw *j, const struct monitor_repeat *r);
/* "tokens" and "metrics". */
void monitor_put_metrics(struct jsonw *j, const struct monitor_verdict *v);
/* "settings": each threshold, and whether it is the default, a tier's, a task's or an option's. */
void monitor_put_settings(struct jsonw *j, const struct monitor_config *c);

#endif
