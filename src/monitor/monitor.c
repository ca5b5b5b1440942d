/* SPDX-License-Identifier: Apache-2.0 */
/* One token after the other goes through every detector; the first that is certain ends it. In a verbatim loop entropy and
 * perplexity fall, so no weighted sum of them ever fires: loops are found by comparing tokens, exactly. */
#include "monitor/monitor.h"

#include "monitor/cycle.h"
#include "monitor/drift.h"
#include "monitor/loop.h"
#include "monitor/ngrams.h"
#include "monitor/signals.h"
#include "monitor/tokens.h"

#include <stdlib.h>

#define MONITOR_ENTROPY_MAX 100.0
#define ANY_NUMBER          1 /* the symbol of every number in the stream whose numbers are left out */

struct monitor {
    struct monitor_config config;
    struct monitor_verdict verdict;
    struct tokens tokens;
    struct signals signals;
    struct ngrams *ngrams;
    struct loop *exact;    /* over the tokens as they are */
    struct loop *numbered; /* over the tokens with every number as one */
    struct drift *drift;
    struct cycle_history history;
    struct cycle_judged judged[2]; /* what was last found of a loop of each kind */
    struct loop_tail tails[2];     /* the end that was there before, of each kind */
};

struct monitor *monitor_new(const struct monitor_config *config, uint64_t key)
{
    struct monitor *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->config = *config;
    m->tokens.key = key;
    m->ngrams = ngrams_new((unsigned)config->values[MONITOR_SET_ngram_size], key);
    m->exact = loop_new(key);
    m->numbered = loop_new(key);
    m->drift = drift_new(key);
    if (cycle_init(&m->history) && m->ngrams && m->exact && m->numbered && m->drift)
        return m;
    monitor_free(m);
    return NULL;
}

void monitor_free(struct monitor *m)
{
    if (!m)
        return;
    ngrams_free(m->ngrams);
    loop_free(m->exact);
    loop_free(m->numbered);
    drift_free(m->drift);
    cycle_done(&m->history);
    free(m);
}

static bool abort_for(struct monitor *m, enum monitor_reason reason, enum monitor_detector by)
{
    m->verdict.abort = true;
    m->verdict.reason = reason;
    m->verdict.detector = by;
    return true;
}

static bool abort_for_loop(struct monitor *m, struct loop_tail tail, enum monitor_detector by)
{
    m->verdict.onset = m->verdict.tokens - tail.length - tail.lag;
    m->verdict.onset_byte = cycle_at(&m->history, m->verdict.onset)->byte;
    m->verdict.period = tail.lag;
    return abort_for(m, MONITOR_HIGH_REPETITION, by);
}

static bool look_for_loops(struct monitor *m, const struct token *t)
{
    struct loop_tail exact = loop_add(m->exact, t->symbol);
    m->tails[0] = exact;
    if (cycle_is_loop(&m->history, &m->judged[0], exact, false))
        return abort_for_loop(m, exact, MONITOR_BY_LOOP);
    struct loop_tail numbered = loop_add(m->numbered, t->value >= 0 ? ANY_NUMBER : t->symbol);
    m->tails[1] = numbered;
    if (cycle_is_loop(&m->history, &m->judged[1], numbered, true))
        return abort_for_loop(m, numbered, MONITOR_BY_COUNTER);
    struct drift_found drift =
        drift_add(m->drift, t->symbol, t->letters && !t->character,
                  exact.length > numbered.length ? exact.length : numbered.length);
    if (!drift.loop)
        return false;
    return abort_for_loop(m, (struct loop_tail){drift.tokens - drift.period, drift.period},
                          MONITOR_BY_DRIFT);
}

static bool take(struct monitor *m, const struct token *t)
{
    struct monitor_verdict *v = &m->verdict;
    const struct monitor_config *c = &m->config;
    cycle_remember(&m->history, t);
    v->tokens++;
    v->metrics.repetition = ngrams_add(m->ngrams, t->symbol);
    signals_combine(c, &v->metrics);
    if (c->mode == MONITOR_DEFAULT && look_for_loops(m, t))
        return true;
    if (c->expected &&
        (double)v->tokens > (double)c->expected * c->values[MONITOR_SET_max_length_multiplier])
        return abort_for(m, MONITOR_RUNAWAY_LENGTH, MONITOR_BY_LENGTH);
    if (c->mode != MONITOR_LITERAL ||
        (double)v->tokens < c->values[MONITOR_SET_min_tokens_before_abort])
        return false;
    enum monitor_reason reason = signals_literal(&m->signals, c, &v->metrics);
    return reason != MONITOR_NONE && abort_for(m, reason, MONITOR_BY_THRESHOLD);
}

bool monitor_text(struct monitor *m, const void *text, size_t len)
{
    const unsigned char *p = text;
    struct token t;
    for (size_t i = 0; i < len && !m->verdict.abort; i++)
        if (tokens_add(&m->tokens, p[i], &t))
            take(m, &t);
    return m->verdict.abort;
}

bool monitor_end(struct monitor *m)
{
    struct token t;
    if (!m->verdict.abort && tokens_end(&m->tokens, &t))
        take(m, &t);
    return m->verdict.abort;
}

bool monitor_saw_entropy(struct monitor *m, const struct monitor_entropy *entropy)
{
    /* no vocabulary has more: its perplexity would be no number */
    if (!m->verdict.abort && entropy->low >= 0 && entropy->high <= MONITOR_ENTROPY_MAX)
        signals_add(&m->signals, &m->config, (entropy->low + entropy->high) / 2,
                    &m->verdict.metrics);
    return m->verdict.abort;
}

bool monitor_token(struct monitor *m, uint64_t id, const struct monitor_entropy *entropy)
{
    if (m->verdict.abort)
        return true;
    if (entropy)
        monitor_saw_entropy(m, entropy);
    /* two symbols are special to nobody: the numbers of tokens begin above them */
    const struct token t = {.symbol = id + 2,
                            .byte = m->verdict.tokens,
                            .value = -1,
                            .kind = TOKEN_WORD,
                            .letters = true};
    return take(m, &t);
}

const struct monitor_verdict *monitor_verdict(const struct monitor *m)
{
    return &m->verdict;
}

struct monitor_repeat monitor_repeats(const struct monitor *m)
{
    const struct loop_tail *t = &m->tails[0];
    const uint64_t region = t->length + t->lag, tokens = m->verdict.tokens;
    if (!t->lag || region < CYCLE_TOLD_TOKENS || region < CYCLE_COPIES * t->lag ||
        region > m->history.room)
        return (struct monitor_repeat){.period = 0};
    return (struct monitor_repeat){.onset = tokens - region,
                                   .onset_byte = cycle_at(&m->history, tokens - region)->byte,
                                   .period = t->lag,
                                   .copies = region / t->lag};
}

uint64_t monitor_settled(const struct monitor *m, uint64_t window)
{
    const uint64_t tokens = m->verdict.tokens;
    const uint64_t drift = drift_held(m->drift);
    uint64_t held = drift > window ? drift : window;
    for (int i = 0; i < 2; i++) {
        const struct loop_tail *t = &m->tails[i];
        if (t->length >= MONITOR_REPEATED && t->length + t->lag > held)
            held = t->length + t->lag;
    }
    return held >= tokens || held > m->history.room ? 0
                                                    : cycle_at(&m->history, tokens - held)->byte;
}

const char *monitor_reason_name(enum monitor_reason reason)
{
    static const char *const names[] = {"none",
                                        "high_entropy",
                                        "entropy_spike",
                                        "high_repetition",
                                        "rising_perplexity",
                                        "runaway_length",
                                        "combined_signals"};
    return names[reason];
}

const char *monitor_detector_name(enum monitor_detector detector)
{
    static const char *const names[] = {"none", "loop", "counter", "drift", "length", "threshold"};
    return names[detector];
}
