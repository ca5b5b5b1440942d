/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of include/cordon.h: the room's own functions behind types that do not change, and one call a token. */
#include "cordon.h"

#include "monitor/entropy.h"
#include "monitor/monitor.h"
#include "monitor/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VOCABULARY 131072

/* The two enums of the public header are the room's. */
_Static_assert((int)CORDON_ABORT_COMBINED_SIGNALS == (int)MONITOR_COMBINED_SIGNALS &&
                   (int)CORDON_ABORT_HIGH_REPETITION == (int)MONITOR_HIGH_REPETITION &&
                   MONITOR_REASON_COUNT == (int)CORDON_ABORT_COMBINED_SIGNALS + 1,
               "reasons");
_Static_assert((int)CORDON_DETECTOR_THRESHOLD == (int)MONITOR_BY_THRESHOLD &&
                   (int)CORDON_DETECTOR_DRIFT == (int)MONITOR_BY_DRIFT,
               "detectors");

struct cordon_monitor {
    struct monitor *monitor;
    struct monitor_config config;
    struct monitor_entropy last; /* of the last token that had a distribution */
    uint64_t vocabulary;
};

static int refuse(enum cordon_monitor_status status, const char *words, char *why)
{
    if (why)
        (void)snprintf(why, CORDON_WHY_MAX, "%s", words);
    return status;
}

static int configure(struct monitor_config *c, const struct cordon_monitor_options *o,
                     struct err *err)
{
    monitor_config_init(c);
    c->expected = o->expected;
    int r = monitor_config_tier(c, o->tier, err);
    if (r == 0)
        r = monitor_config_task(c, o->task, err);
    if (r == 0)
        r = monitor_config_mode(c, o->mode, err);
    for (size_t i = 0; r == 0 && o->settings && o->settings[i]; i++)
        r = monitor_config_set(c, o->settings[i], err);
    return r;
}

int cordon_monitor_new(const struct cordon_monitor_options *o, struct cordon_monitor **ret_monitor,
                       char *why)
{
    static const struct cordon_monitor_options none = {0};
    struct err err = ERR_INIT;
    *ret_monitor = NULL;
    o = o ? o : &none;
    uint64_t key = o->key;
    struct cordon_monitor *m = calloc(1, sizeof *m);
    if (!m)
        return refuse(CORDON_MONITOR_MEMORY, "no memory", why);
    m->vocabulary = o->vocabulary ? o->vocabulary : VOCABULARY;
    int r = CORDON_MONITOR_GO_ON;
    if (configure(&m->config, o, &err) < 0)
        r = refuse(CORDON_MONITOR_ARGUMENT, err.msg, why);
    else if (!key && getentropy(&key, sizeof key) < 0)
        r = refuse(CORDON_MONITOR_MEMORY, "the kernel has no random bytes", why);
    else if (!(m->monitor = monitor_new(&m->config, key)))
        r = refuse(CORDON_MONITOR_MEMORY, "no memory", why);
    if (r != CORDON_MONITOR_GO_ON) {
        free(m);
        return r;
    }
    *ret_monitor = m;
    return r;
}

void cordon_monitor_free(struct cordon_monitor *m)
{
    if (m)
        monitor_free(m->monitor);
    free(m);
}

static int status_of(bool abort)
{
    return abort ? CORDON_MONITOR_ABORT : CORDON_MONITOR_GO_ON;
}

int cordon_monitor_token(struct cordon_monitor *m, const struct cordon_token *t)
{
    struct monitor_entropy e;
    bool known = t->logits || t->top_logprobs;
    if (monitor_verdict(m->monitor)->abort)
        return CORDON_MONITOR_ABORT;
    if (t->logits && !entropy_of_logits(t->logits, t->logit_count, &e))
        return CORDON_MONITOR_ARGUMENT;
    if (!t->logits && t->top_logprobs &&
        !entropy_of_top(t->top_logprobs, t->top_count, m->vocabulary, &e))
        return CORDON_MONITOR_ARGUMENT;
    if (known)
        m->last = e;
    if (!t->text)
        return status_of(monitor_token(m->monitor, t->id, known ? &e : NULL));
    if (known)
        monitor_saw_entropy(m->monitor, &e);
    return cordon_monitor_text(m, t->text, t->len);
}

int cordon_monitor_text(struct cordon_monitor *m, const char *text, size_t len)
{
    return status_of(monitor_text(m->monitor, text, len));
}

int cordon_monitor_end(struct cordon_monitor *m)
{
    return status_of(monitor_end(m->monitor));
}

void cordon_monitor_verdict(const struct cordon_monitor *m, struct cordon_verdict *ret_verdict)
{
    const struct monitor_verdict *v = monitor_verdict(m->monitor);
    const struct monitor_metrics *n = &v->metrics;
    const struct monitor_repeat r = monitor_repeats(m->monitor);
    *ret_verdict = (struct cordon_verdict){.abort = v->abort,
                                           .reason = (enum cordon_abort_reason)v->reason,
                                           .detector = (enum cordon_detector)v->detector,
                                           .tokens = v->tokens,
                                           .onset = v->onset,
                                           .onset_byte = v->onset_byte,
                                           .period = v->period,
                                           .entropy = n->entropy,
                                           .entropy_low = m->last.low,
                                           .entropy_high = m->last.high,
                                           .spike = n->spike,
                                           .repetition = n->repetition,
                                           .perplexity = n->perplexity,
                                           .trend = n->trend,
                                           .failure_prob = n->failure_prob,
                                           .repeat_onset = r.onset,
                                           .repeat_onset_byte = r.onset_byte,
                                           .repeat_copies = r.copies,
                                           .repeat_period = r.period};
}

size_t cordon_monitor_json(const struct cordon_monitor *m, char *out, size_t size)
{
    struct buf text;
    buf_init(&text, 16384);
    struct jsonw j = {.out = &text};
    const struct monitor_repeat repeat = monitor_repeats(m->monitor);
    jsonw_open(&j, NULL, '{');
    monitor_put_verdict(&j, monitor_verdict(m->monitor));
    monitor_put_repeat(&j, &repeat);
    monitor_put_metrics(&j, monitor_verdict(m->monitor));
    monitor_put_settings(&j, &m->config);
    jsonw_close(&j, '}');
    size_t len = j.bad ? 0 : text.len;
    if (size)
        (void)snprintf(out, size, "%s", len ? text.data : "");
    buf_done(&text);
    return len;
}

const char *cordon_abort_reason_name(enum cordon_abort_reason reason)
{
    return (unsigned)reason < MONITOR_REASON_COUNT
               ? monitor_reason_name((enum monitor_reason)reason)
               : "unknown";
}

const char *cordon_detector_name(enum cordon_detector detector)
{
    return (unsigned)detector <= CORDON_DETECTOR_THRESHOLD
               ? monitor_detector_name((enum monitor_detector)detector)
               : "unknown";
}
