/* SPDX-License-Identifier: Apache-2.0 */
/* The words stand once, here: a verdict of a library is compared with one of the program, byte for byte. */
#include "monitor/report.h"

static const char *const names[] = {
#define NAME(name) #name,
    MONITOR_SIGNALS(NAME)
#undef NAME
};

const char *monitor_signal_name(enum monitor_signal signal)
{
    return names[signal];
}

void monitor_signal_values(const struct monitor_metrics *m, double out[MONITOR_SIGNAL_COUNT])
{
#define VALUE(name) out[MONITOR_SIGNAL_##name] = m->name;
    MONITOR_SIGNALS(VALUE)
#undef VALUE
}

static void put_place(struct jsonw *j, const char *key, uint64_t n, bool is)
{
    if (is)
        jsonw_int(j, key, (int64_t)n);
    else
        jsonw_null(j, key);
}

void monitor_put_verdict(struct jsonw *j, const struct monitor_verdict *v)
{
    jsonw_bool(j, "abort", v->abort);
    jsonw_string(j, "reason", monitor_reason_name(v->reason));
    jsonw_string(j, "detector", v->abort ? monitor_detector_name(v->detector) : NULL);
    put_place(j, "onset", v->onset, v->period);
    put_place(j, "onset_byte", v->onset_byte, v->period);
    put_place(j, "period", v->period, v->period);
}

void monitor_put_repeat(struct jsonw *j, const struct monitor_repeat *r)
{
    if (!r->period) {
        jsonw_null(j, "repeats");
        return;
    }
    jsonw_open(j, "repeats", '{');
    jsonw_int(j, "onset", (int64_t)r->onset);
    jsonw_int(j, "onset_byte", (int64_t)r->onset_byte);
    jsonw_int(j, "period", (int64_t)r->period);
    jsonw_int(j, "copies", (int64_t)r->copies);
    jsonw_close(j, '}');
}

void monitor_put_metrics(struct jsonw *j, const struct monitor_verdict *v)
{
    double values[MONITOR_SIGNAL_COUNT];
    monitor_signal_values(&v->metrics, values);
    jsonw_int(j, "tokens", (int64_t)v->tokens);
    jsonw_open(j, "metrics", '{');
    for (int i = 0; i < MONITOR_SIGNAL_COUNT; i++)
        jsonw_decimal(j, names[i], values[i]);
    jsonw_close(j, '}');
}

void monitor_put_settings(struct jsonw *j, const struct monitor_config *c)
{
    jsonw_open(j, "settings", '{');
    for (int i = 0; i < MONITOR_SETTING_COUNT; i++) {
        jsonw_open(j, monitor_setting_name((enum monitor_setting)i), '{');
        jsonw_decimal(j, "value", c->values[i]);
        jsonw_string(j, "from", monitor_source_name(c->from[i]));
        jsonw_close(j, '}');
    }
    jsonw_close(j, '}');
}
