/* SPDX-License-Identifier: Apache-2.0 */
/* One histogram a verb, of the time from its start to its end, queue included. Its bounds are in milliseconds here and in
 * seconds in the text, as Prometheus wants them. */
#include "serve/figures.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

static const uint64_t bounds_ms[SERVE_BUCKETS] = {
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000};
static const char *const ends[] = {
#define X(name, word) word,
    SERVE_ENDS(X)
#undef X
};

void serve_figures_end(struct serve_figures *f, enum serve_verb verb, enum serve_end end,
                       uint64_t took_ns)
{
    struct serve_times *t = &f->times[verb];
    size_t i = 0;
    while (i < SERVE_BUCKETS && took_ns > bounds_ms[i] * CLOCK_NS_PER_MS)
        i++;
    t->buckets[i]++;
    t->count++;
    t->sum_ns += took_ns;
    f->ended[verb][end]++;
}

struct writing {
    struct buf *out;
    int bad;
};

static void put(struct writing *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writing *w, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (!w->bad)
        w->bad = buf_str(w->out, line);
}

static void head(struct writing *w, const char *name, const char *type, const char *text)
{
    put(w, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static void one(struct writing *w, const char *name, const char *type, const char *text, uint64_t n)
{
    head(w, name, type, text);
    put(w, "%s %llu\n", name, (unsigned long long)n);
}

/* The verb's name of the table, in small letters. */
static void name_of(enum serve_verb verb, char out[32])
{
    static const char *const names[] = {
#define X(verb, handle, body, takes, kind, text) #verb,
        SERVE_VERBS(X)
#undef X
    };
    size_t i = 0;
    for (; names[verb][i] && i < 31; i++)
        out[i] = (char)tolower((unsigned char)names[verb][i]);
    out[i] = 0;
}

static void write_times(struct writing *w, const char *verb, const struct serve_times *t)
{
    static const char *const name = "cordon_serve_duration_seconds";
    uint64_t sum = 0;
    for (size_t i = 0; i < SERVE_BUCKETS; i++) {
        sum += t->buckets[i];
        put(w, "%s_bucket{verb=\"%s\",le=\"%llu.%03llu\"} %llu\n", name, verb,
            (unsigned long long)bounds_ms[i] / 1000, (unsigned long long)bounds_ms[i] % 1000,
            (unsigned long long)sum);
    }
    put(w, "%s_bucket{verb=\"%s\",le=\"+Inf\"} %llu\n", name, verb, (unsigned long long)t->count);
    put(w, "%s_sum{verb=\"%s\"} %llu.%09llu\n", name, verb,
        (unsigned long long)(t->sum_ns / CLOCK_NS_PER_S),
        (unsigned long long)(t->sum_ns % CLOCK_NS_PER_S));
    put(w, "%s_count{verb=\"%s\"} %llu\n", name, verb, (unsigned long long)t->count);
}

static void write_verbs(struct writing *w, const struct serve_figures *f)
{
    char verb[32];
    head(w, "cordon_serve_requests_total", "counter", "Requests that were asked, by verb.");
    for (int v = 0; v < SERVE_VERB_COUNT; v++) {
        name_of((enum serve_verb)v, verb);
        put(w, "cordon_serve_requests_total{verb=\"%s\"} %llu\n", verb,
            (unsigned long long)f->asked[v]);
    }
    head(w, "cordon_serve_ended_total", "counter",
         "Runs and other work that ended, by verb and end.");
    for (int v = 0; v < SERVE_VERB_COUNT; v++) {
        name_of((enum serve_verb)v, verb);
        for (int e = 0; e < SERVE_END_COUNT && (f->times[v].count || v == SERVE_RUN); e++)
            put(w, "cordon_serve_ended_total{verb=\"%s\",end=\"%s\"} %llu\n", verb, ends[e],
                (unsigned long long)f->ended[v][e]);
    }
    head(w, "cordon_serve_duration_seconds", "histogram",
         "From the start of a run to its end, by verb.");
    for (int v = 0; v < SERVE_VERB_COUNT; v++) {
        name_of((enum serve_verb)v, verb);
        if (f->times[v].count || v == SERVE_RUN)
            write_times(w, verb, &f->times[v]);
    }
}

int serve_figures_write(const struct serve_figures *f, const struct serve_moment *m,
                        struct buf *out)
{
    struct writing w = {.out = out};
    one(&w, "cordon_serve_start_time_seconds", "gauge", "When the server began, since 1970.",
        f->begun_s);
    one(&w, "cordon_serve_draining", "gauge", "1: the server is ending and begins nothing new.",
        m->draining);
    one(&w, "cordon_serve_clients", "gauge", "Clients that are connected; those of HTTP are one.",
        m->clients);
    one(&w, "cordon_serve_clients_total", "counter", "Clients that came.", f->clients);
    one(&w, "cordon_serve_clients_refused_total", "counter",
        "Connections of others than our user, or beyond the most.", f->turned_away);
    one(&w, "cordon_serve_fronts_ended_total", "counter",
        "Fronts of HTTP that ended and were started anew.", f->fronts);
    one(&w, "cordon_serve_requests_open", "gauge", "Requests that are not answered yet.", m->asks);
    one(&w, "cordon_serve_running", "gauge", "Runs and other work under way.", m->running);
    one(&w, "cordon_serve_results_kept", "gauge", "Results of jobs that are kept for their client.",
        m->kept);
    one(&w, "cordon_serve_sessions", "gauge", "Sessions of all clients.", m->sessions);
    one(&w, "cordon_serve_refused_total", "counter", "Requests that the server itself refused.",
        f->refused);
    write_verbs(&w, f);
    return w.bad;
}
