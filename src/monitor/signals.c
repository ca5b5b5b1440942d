/* SPDX-License-Identifier: Apache-2.0 */
/* The thresholds, as they are written: each signal by itself, and their sum with its weights. The window is at most 256 tokens and
 * is summed anew for each one, so that the same stream gives the same bits, whatever came before the window. */
#include "monitor/signals.h"

#include <math.h>

static const double weight_entropy = 0.35, weight_spike = 0.25, weight_repetition = 0.25,
                    weight_trend = 0.15;

static unsigned window_of(const struct signals *s, const struct monitor_config *c)
{
    unsigned n = (unsigned)c->values[MONITOR_SET_perplexity_window];
    return s->seen < n ? (unsigned)s->seen : n;
}

void signals_add(struct signals *s, const struct monitor_config *c, double entropy,
                 struct monitor_metrics *m)
{
    m->spike = s->seen && entropy > s->before ? entropy - s->before : 0;
    m->entropy = entropy;
    s->before = entropy;
    s->high = entropy > c->values[MONITOR_SET_entropy_threshold] ? s->high + 1 : 0;
    s->ring[s->seen++ % SIGNALS_WINDOW_MAX] = entropy;

    unsigned n = window_of(s, c);
    double sum = 0, sum_p = 0, sum_xp = 0, middle = (n - 1) / 2.0, spread = 0;
    for (unsigned i = 0; i < n; i++) {
        double e = s->ring[(s->seen - n + i) % SIGNALS_WINDOW_MAX], p = exp(e), x = i - middle;
        sum += e;
        sum_p += p;
        sum_xp += x * p;
        spread += x * x;
    }
    m->perplexity = exp(sum / n);
    m->trend = n == (unsigned)c->values[MONITOR_SET_perplexity_window]
                   ? sum_xp / spread * (n - 1) / (sum_p / n)
                   : 0;
}

static double normalise(double x, double threshold)
{
    return x <= 0 ? 0 : x < threshold ? x / threshold : 1;
}

void signals_combine(const struct monitor_config *c, struct monitor_metrics *m)
{
    m->failure_prob =
        weight_entropy * normalise(m->entropy, c->values[MONITOR_SET_entropy_threshold]) +
        weight_spike * normalise(m->spike, c->values[MONITOR_SET_entropy_spike_threshold]) +
        weight_repetition * normalise(m->repetition, c->values[MONITOR_SET_repetition_threshold]) +
        weight_trend * normalise(m->trend, SIGNALS_TREND_THRESHOLD);
}

enum monitor_reason signals_literal(const struct signals *s, const struct monitor_config *c,
                                    const struct monitor_metrics *m)
{
    const double *v = c->values;
    if (s->high >= (uint64_t)v[MONITOR_SET_entropy_sustained_count])
        return MONITOR_HIGH_ENTROPY;
    if (m->spike > v[MONITOR_SET_entropy_spike_threshold])
        return MONITOR_ENTROPY_SPIKE;
    if (m->repetition > v[MONITOR_SET_repetition_threshold])
        return MONITOR_HIGH_REPETITION;
    if (m->trend > SIGNALS_TREND_THRESHOLD)
        return MONITOR_RISING_PERPLEXITY;
    if (m->failure_prob > v[MONITOR_SET_combined_threshold])
        return MONITOR_COMBINED_SIGNALS;
    return MONITOR_NONE;
}
