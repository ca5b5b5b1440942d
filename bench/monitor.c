/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor costs: nanoseconds a token of each detector, on prose, on code, on a loop that is always edited once more; a plain
 * scan of 1,024 periods beside the automaton, which knows all; and the entropy of a vocabulary beside plain C with libm and beside
 * reading the logits alone. All in one run, a round of each after the other, the best of ROUNDS counts: other programs of the machine slow
 * all of them.
 *
 * Usage: monitor_bench [TOKENS [SEED]] */
#include "monitor/monitor.h"
#include "monitor/cycle.h"
#include "monitor/drift.h"
#include "monitor/entropy.h"
#include "monitor/loop.h"
#include "monitor/ngrams.h"
#include "monitor/signals.h"
#include "monitor/tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS        9
#define LOGITS        131072
#define TOP           20
#define PERIODS       1024
#define FASTER_WANTED 3.0 /* than libm */

struct stream {
    const char *name;
    char *text;
    size_t len;
    struct token *tokens;
    size_t count;
};

static uint64_t state;
static volatile double kept; /* what is computed is used */

static uint64_t below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- streams ---- */

/* A word of a language in which some are far more common than others. */
static int word(char *out, uint64_t number)
{
    static const char *const parts[] = {"ta", "re", "mo", "shi", "lan", "ver", "ko", "und"};
    int n = 0;
    for (number = 1 + number * number / 4000; number; number /= 8)
        n += sprintf(out + n, "%s", parts[number % 8]);
    return n;
}

static int piece(char *out, unsigned kind, uint64_t i)
{
    int n = 0;
    out[n++] = ' ';
    if (kind == 0) /* prose */
        n += word(out + n, below(4000));
    else if (kind == 1) { /* code */
        n += word(out + n, below(200));
        n += sprintf(out + n, "(%u, x);\n   ", (unsigned)below(100));
    } else /* a cycle of 25 words, every seventh of which is another one: never let be a loop for good */
        n += word(out + n, i % 7 ? i % 25 : below(4000));
    if (kind == 0 && below(9) == 0)
        out[n++] = below(3) ? ',' : '.';
    return n;
}

static struct stream stream(const char *name, unsigned kind, size_t count)
{
    struct stream s = {
        .name = name, .text = malloc(count * 64), .tokens = malloc(count * sizeof *s.tokens)};
    struct tokens t = {.key = 7};
    if (!s.text || !s.tokens)
        exit(2);
    for (uint64_t i = 0; s.count < count; i++) {
        int n = piece(s.text + s.len, kind, i);
        for (int k = 0; k < n && s.count < count; k++)
            s.count += tokens_add(&t, (unsigned char)s.text[s.len + (size_t)k], &s.tokens[s.count]);
        s.len += (size_t)n;
    }
    return s;
}

/* ---- detectors: each takes the whole stream once ---- */

static void cut(const struct stream *s)
{
    struct tokens t = {.key = 7};
    struct token out;
    uint64_t sum = 0;
    for (size_t i = 0; i < s->len; i++)
        if (tokens_add(&t, (unsigned char)s->text[i], &out))
            sum += out.symbol;
    kept = (double)sum;
}

static void loops(const struct stream *s)
{
    struct loop *l = loop_new(7);
    uint64_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += loop_add(l, s->tokens[i].symbol).length;
    kept = (double)sum;
    loop_free(l);
}

/* The same by definition, for periods up to PERIODS: how long the end has been matching at each distance. */
static void scan(const struct stream *s)
{
    static uint32_t run[PERIODS + 1];
    memset(run, 0, sizeof run);
    uint32_t most = 0;
    for (size_t i = 0; i < s->count; i++)
        for (size_t p = 1; p <= PERIODS && p <= i; p++) {
            run[p] = s->tokens[i].symbol == s->tokens[i - p].symbol ? run[p] + 1 : 0;
            most = run[p] > most ? run[p] : most;
        }
    kept = most;
}

static void counters(const struct stream *s)
{
    struct cycle_history h;
    struct cycle_judged judged = {0};
    struct loop *l = loop_new(7);
    if (!cycle_init(&h))
        exit(2);
    for (size_t i = 0; i < s->count; i++) {
        cycle_remember(&h, &s->tokens[i]);
        struct loop_tail tail = loop_add(l, s->tokens[i].value >= 0 ? 1 : s->tokens[i].symbol);
        kept = cycle_is_loop(&h, &judged, tail, true);
    }
    cycle_done(&h);
    loop_free(l);
}

static void drifts(const struct stream *s)
{
    struct drift *d = drift_new(7);
    uint64_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += drift_add(d, s->tokens[i].symbol, s->tokens[i].letters, 0).loop;
    kept = (double)sum;
    drift_free(d);
}

static void repetition(const struct stream *s)
{
    struct ngrams *g = ngrams_new(3, 7);
    for (size_t i = 0; i < s->count; i++)
        kept = ngrams_add(g, s->tokens[i].symbol);
    ngrams_free(g);
}

static void perplexity(const struct stream *s)
{
    struct signals signals = {0};
    struct monitor_config c;
    struct monitor_metrics m = {0};
    monitor_config_init(&c);
    for (size_t i = 0; i < s->count; i++) {
        signals_add(&signals, &c, (double)(s->tokens[i].symbol % 64) / 16, &m);
        signals_combine(&c, &m);
    }
    kept = m.failure_prob;
}

/* Everything, from text to verdict; begun anew when it aborts, as a gateway would. */
static void whole(const struct stream *s)
{
    struct monitor_config c;
    monitor_config_init(&c);
    struct monitor *m = monitor_new(&c, 7);
    for (size_t i = 0; i < s->len; i += 16)
        if (monitor_text(m, s->text + i, s->len - i < 16 ? s->len - i : 16)) {
            monitor_free(m);
            m = monitor_new(&c, 7);
        }
    kept = monitor_verdict(m)->metrics.repetition;
    monitor_free(m);
}

static const struct detector {
    const char *name;
    void (*run)(const struct stream *s);
} detectors[] = {{"tokens of the text", cut},
                 {"loop: any period, exact", loops},
                 {"the same by a scan of 1,024 periods", scan},
                 {"counter: numbers that grow", counters},
                 {"drift: loops with edits", drifts},
                 {"repetition of 3-grams", repetition},
                 {"perplexity, trend, weighted sum", perplexity},
                 {"all together, text to verdict", whole}};
enum { DETECTORS = sizeof detectors / sizeof *detectors, STREAMS = 3 };

static void table(const struct stream *streams)
{
    static double best[DETECTORS][STREAMS];
    for (int round = 0; round < ROUNDS; round++)
        for (int d = 0; d < DETECTORS; d++)
            for (int k = 0; k < STREAMS; k++) {
                double t = now_ns();
                detectors[d].run(&streams[k]);
                t = (now_ns() - t) / (double)streams[k].count;
                if (!round || t < best[d][k])
                    best[d][k] = t;
            }
    printf("%-38s %10s %10s %10s\n", "nanoseconds a token", streams[0].name, streams[1].name,
           streams[2].name);
    for (int d = 0; d < DETECTORS; d++)
        printf("%-38s %10.0f %10.0f %10.0f\n", detectors[d].name, best[d][0], best[d][1],
               best[d][2]);
}

/* ---- entropy ---- */

static double with_libm(const float *x)
{
    double most = (double)x[0], z = 0, zx = 0;
    for (size_t i = 1; i < LOGITS; i++)
        most = (double)x[i] > most ? (double)x[i] : most;
    for (size_t i = 0; i < LOGITS; i++) {
        double d = (double)x[i] - most, e = exp(d);
        z += e;
        zx += e * d;
    }
    return log(z) - zx / z;
}

static double ours(const float *x)
{
    struct monitor_entropy e = {0};
    return entropy_of_logits(x, LOGITS, &e) ? e.low : NAN;
}

/* As little as can be done with every logit: the largest, in lanes that the compiler makes vectors of. */
static double reading(const float *x)
{
    float most[32];
    memcpy(most, x, sizeof most);
    for (size_t i = 32; i < LOGITS; i += 32)
        for (int k = 0; k < 32; k++)
            most[k] = x[i + (size_t)k] > most[k] ? x[i + (size_t)k] : most[k];
    float all = most[0];
    for (int k = 1; k < 32; k++)
        all = most[k] > all ? most[k] : all;
    return (double)all;
}

static double of_top(const float *x)
{
    double logprobs[TOP];
    struct monitor_entropy e = {0};
    for (int k = 0; k < TOP; k++)
        logprobs[k] = -3.1 - (double)k / 20 - (double)(x[0] > 1e9F);
    return entropy_of_top(logprobs, TOP, LOGITS, &e) ? e.high : NAN;
}

static bool entropies(void)
{
    static float x[LOGITS];
    static const struct {
        const char *name;
        double (*run)(const float *x);
        int times;
    } rows[] = {{"reading them: the largest", reading, 1},
                {"entropy, ours", ours, 1},
                {"entropy, plain C with libm", with_libm, 1},
                {"entropy of the 20 most probable", of_top, 1000}};
    double best[4] = {0}, value[4] = {0};
    for (size_t i = 0; i < LOGITS; i++)
        x[i] = (float)below(20001) / 1000.0F - 10.0F;
    for (int round = 0; round < 3 * ROUNDS; round++)
        for (int r = 0; r < 4; r++) {
            double t = now_ns();
            for (int i = 0; i < rows[r].times; i++)
                kept = value[r] = rows[r].run(x);
            t = (now_ns() - t) / rows[r].times;
            if (!round || t < best[r])
                best[r] = t;
        }
    printf("\n%-38s %10s %12s\n", "131,072 logits", "us", "x reading");
    for (int r = 0; r < 4; r++)
        printf("%-38s %10.2f %12.1f\n", rows[r].name, best[r] / 1e3, best[r] / best[0]);
    double faster = best[2] / best[1], error = fabs(value[1] - value[2]);
    bool met = faster >= FASTER_WANTED && error < 1e-4;
    printf("goal: entropy at least %.0f times as fast as with libm, error below 1e-4 nats: %s "
           "(%.1f, %.0e)\n",
           FASTER_WANTED, met ? "met" : "MISSED", faster, error);
    return met;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 0x9e3779b97f4a7c15U + 1;
    struct stream streams[STREAMS] = {stream("prose", 0, count), stream("code", 1, count),
                                      stream("edited loop", 2, count)};
    table(streams);
    bool met = entropies();
    return !met && getenv("BENCH_STRICT");
}
