/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, the reasons of the literal mode, entropy against libm, tokens in pieces of every size, loops of many periods. */
#include "monitor/cycle.h"
#include "monitor/entropy.h"
#include "monitor/loop.h"
#include "monitor/monitor.h"
#include "monitor/ngrams.h"
#include "monitor/signals.h"
#include "monitor/tokens.h"

#include "base/tap.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252U;

static uint64_t random_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* ---- thresholds ---- */

static void tables(void)
{
    static const struct {
        const char *tier, *task;
        double entropy, spike, repetition, tokens, ngram, window;
    } rows[] = {
        {NULL, NULL, 4.0, 2.0, 0.3, 50, 3, 20},
        {"worker", NULL, 4.5, 2.5, 0.3, 50, 3, 20},
        {"coder", NULL, 5.0, 3.0, 0.2, 100, 3, 20},
        {"architect", NULL, 6.0, 4.0, 0.4, 200, 3, 20},
        {"ingest", NULL, 5.5, 3.5, 0.3, 100, 3, 20},
        {NULL, "reasoning", 4.5, 2.0, 0.3, 30, 3, 15},
        {NULL, "code", 4.0, 2.0, 0.3, 100, 4, 20},
        {NULL, "general", 4.0, 2.0, 0.3, 50, 3, 20},
        {"architect", "code", 4.0, 4.0, 0.4, 100, 4, 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct monitor_config c;
        struct err err = ERR_INIT;
        monitor_config_init(&c);
        /* the task first: it stands above the tier all the same */
        int r = monitor_config_task(&c, rows[i].task, &err) |
                monitor_config_tier(&c, rows[i].tier, &err);
        const double *v = c.values;
        tap_ok(r == 0 && v[MONITOR_SET_entropy_threshold] == rows[i].entropy &&
                   v[MONITOR_SET_entropy_spike_threshold] == rows[i].spike &&
                   v[MONITOR_SET_repetition_threshold] == rows[i].repetition &&
                   v[MONITOR_SET_min_tokens_before_abort] == rows[i].tokens &&
                   v[MONITOR_SET_ngram_size] == rows[i].ngram &&
                   v[MONITOR_SET_perplexity_window] == rows[i].window &&
                   v[MONITOR_SET_max_length_multiplier] == 2.0 &&
                   v[MONITOR_SET_entropy_sustained_count] == 10 &&
                   v[MONITOR_SET_combined_threshold] == 0.7,
               "thresholds of tier %s, task %s", rows[i].tier ? rows[i].tier : "-",
               rows[i].task ? rows[i].task : "-");
    }
    struct monitor_config c;
    struct err err = ERR_INIT;
    monitor_config_init(&c);
    tap_ok(monitor_config_set(&c, "entropy_threshold=7", &err) == 0 &&
               monitor_config_task(&c, "code", &err) == 0 &&
               c.values[MONITOR_SET_entropy_threshold] == 7 &&
               c.from[MONITOR_SET_entropy_threshold] == MONITOR_FROM_OPTION,
           "an option stands above a task that is named after it");
    static const char *const wrong[] = {
        "entropy_threshold=", "entropy_threshold=x", "entropy_threshold=-1", "entropy=4",
        "ngram_size=9",       "ngram_size=nan",      "entropy_threshold"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        tap_ok(monitor_config_set(&c, wrong[i], &err) < 0, "the setting '%s' is refused", wrong[i]);
    tap_ok(monitor_config_tier(&c, "boss", &err) < 0 && strstr(err.msg, "architect"),
           "an unknown tier is told the known ones");
    tap_ok(monitor_config_task(&c, "art", &err) < 0 && monitor_config_mode(&c, "sharp", &err) < 0,
           "an unknown task and an unknown mode are refused");
}

/* ---- reasons ---- */

enum input { STEADY, HIGH, SPIKE, REPEATED, RISING, LONG, MIXED };

/* One stream for each reason of the literal mode: tokens that never repeat, unless that is what is tried. */
static struct monitor_verdict judged(enum input input, enum monitor_mode mode, const char *set)
{
    struct monitor_config c;
    struct err err = ERR_INIT;
    monitor_config_init(&c);
    c.mode = mode;
    c.expected = input == LONG ? 60 : 0;
    if (set && monitor_config_set(&c, set, &err) < 0)
        return (struct monitor_verdict){.abort = true};
    struct monitor *m = monitor_new(&c, 1);
    for (unsigned i = 0; i < 200 && !monitor_verdict(m)->abort; i++) {
        double e = 1.0;
        if (input == HIGH)
            e = 4.2;
        else if (input == SPIKE) /* what was high before it keeps the perplexity from rising */
            e = i < 71 ? 3.5 : i == 80 ? 3.2 : 1.0;
        else if (input == RISING)
            e = i < 100 ? 0.1 : i < 130 ? 0.1 + (i - 100) * 0.12 : 3.7;
        else if (input == MIXED)
            e = i % 2 ? 3.9 : 2.0; /* near each threshold, above none */
        uint64_t id = input == REPEATED ? i % 7 : input == MIXED && i % 32 < 10 ? i % 32 : 1000 + i;
        monitor_token(m, id, &(struct monitor_entropy){e, e});
    }
    struct monitor_verdict v = *monitor_verdict(m);
    monitor_free(m);
    return v;
}

static void reasons(void)
{
    static const struct {
        enum input input;
        enum monitor_reason reason;
        const char *without; /* the setting that puts the reason out of its input's reach */
    } rows[] = {{STEADY, MONITOR_NONE, NULL},
                {HIGH, MONITOR_HIGH_ENTROPY, "entropy_threshold=5"},
                {SPIKE, MONITOR_ENTROPY_SPIKE, "entropy_spike_threshold=3"},
                {REPEATED, MONITOR_HIGH_REPETITION, "repetition_threshold=1"},
                {RISING, MONITOR_RISING_PERPLEXITY, "perplexity_window=256"},
                {LONG, MONITOR_RUNAWAY_LENGTH, "max_length_multiplier=4"},
                {MIXED, MONITOR_COMBINED_SIGNALS, "combined_threshold=0.99"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum monitor_reason got = judged(rows[i].input, MONITOR_LITERAL, NULL).reason;
        tap_ok(got == rows[i].reason, "literal mode: the input for %s gives it (%s)",
               monitor_reason_name(rows[i].reason), monitor_reason_name(got));
        const enum monitor_reason other =
            judged(rows[i].input, MONITOR_LITERAL, rows[i].without).reason;
        tap_ok(other == MONITOR_NONE,
               "literal mode: with %s the input for %s reaches no other reason (%s)",
               rows[i].without ? rows[i].without : "the defaults",
               monitor_reason_name(rows[i].reason), monitor_reason_name(other));
        const bool certain = rows[i].input == REPEATED || rows[i].input == LONG;
        const struct monitor_verdict v = judged(rows[i].input, MONITOR_DEFAULT, NULL);
        tap_ok(v.abort == certain && (!v.abort || v.reason == rows[i].reason) &&
                   v.metrics.entropy > 0 && v.metrics.failure_prob > 0,
               "default mode: the input for %s aborts only if it is certain, and the signals are "
               "told",
               monitor_reason_name(rows[i].reason));
    }
}

/* 0.35, 0.25, 0.25 and 0.15 of min(x / threshold, 1), each signal alone and all of them. */
static void weights(void)
{
    static const struct {
        struct monitor_metrics m;
        double want;
    } rows[] = {{{.entropy = 2}, 0.175},
                {{.entropy = 9}, 0.35},
                {{.spike = 1}, 0.125},
                {{.spike = 7}, 0.25},
                {{.repetition = 0.15}, 0.125},
                {{.repetition = 0.9}, 0.25},
                {{.trend = 0.5}, 0.075},
                {{.trend = 4}, 0.15},
                {{.trend = -4}, 0},
                {{.entropy = 9, .spike = 9, .repetition = 1, .trend = 9}, 1}};
    struct monitor_config c;
    monitor_config_init(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct monitor_metrics m = rows[i].m;
        signals_combine(&c, &m);
        tap_ok(fabs(m.failure_prob - rows[i].want) < 1e-12,
               "entropy %g, spike %g, repetition %g, trend %g: failure_prob is %g", m.entropy,
               m.spike, m.repetition, m.trend, m.failure_prob);
    }
}

/* ---- entropy ---- */

static double with_libm(const float *x, size_t n)
{
    double most = -INFINITY, z = 0, zx = 0;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? (double)x[i] : most;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - most, e = exp(d);
        z += e;
        zx += isfinite(d) ? e * d : 0;
    }
    return log(z) - zx / z;
}

static void entropies(void)
{
    enum { MOST = 131072 };
    static float x[MOST];
    double worst = 0;
    for (int round = 0; round < 60; round++) {
        size_t n = round < 20   ? (size_t)round + 1
                   : round < 40 ? 100 + random_number() % 5000
                                : MOST;
        float scale = (float)(random_number() % 30);
        for (size_t i = 0; i < n; i++)
            x[i] = scale * ((float)(random_number() % 20001) / 10000.0F - 1.0F);
        if (round % 3 == 1)
            x[n / 2] = -INFINITY;
        if (n == 1)
            x[0] = 3;
        struct monitor_entropy e = {0};
        double want = with_libm(x, n), d = entropy_of_logits(x, n, &e) ? fabs(e.low - want) : 1;
        worst = d > worst ? d : worst;
    }
    tap_ok(worst < 1e-4, "entropy of logits differs from libm's by at most %.1e nats", worst);
    struct monitor_entropy e;
    x[0] = NAN;
    tap_ok(!entropy_of_logits(x, 5, &e), "logits with a NaN have no entropy");
    x[0] = INFINITY;
    tap_ok(!entropy_of_logits(x, 5, &e) && !entropy_of_logits(x, 0, &e),
           "logits with an infinity, and no logits, have no entropy");
    double half[] = {log(0.5), log(0.25)};
    tap_ok(entropy_of_top(half, 2, 1026, &e) && fabs(e.low - 1.039720771) < 1e-6 &&
               fabs(e.high - (1.039720771 + 0.25 * log(1024))) < 1e-6,
           "the two most probable of 1026 tokens give an interval");
    double impossible[] = {0.5}, twice[] = {-0.1, -0.1};
    tap_ok(!entropy_of_top(impossible, 1, 10, &e) && !entropy_of_top(twice, 2, 10, &e),
           "probabilities above one are refused");
}

/* ---- tokens and loops ---- */

static const char sample[] =
    "The monitor reads text; it cuts it as a tokenizer does: caf\xc3\xa9, 12 of 300, "
    "\xe6\xbc\xa2\xe5\xad\x97 "
    "and   runs of ------ marks.\n\n\tTabs, too. \xf0\x9f\x98\x80\xf0\x9f\x98\x80 x_1=0x1f\n";

static void pieces(void)
{
    struct token whole[200], t;
    struct tokens a = {.key = 5};
    size_t count = 0;
    for (size_t i = 0; i < sizeof sample - 1; i++)
        if (tokens_add(&a, (unsigned char)sample[i], &t))
            whole[count++] = t;
    if (tokens_end(&a, &t))
        whole[count++] = t;
    bool order = count > 40;
    for (size_t i = 1; i < count; i++)
        order &= whole[i].byte > whole[i - 1].byte;
    tap_ok(order, "a text is %zu tokens, each behind the one before", count);
    tap_ok(whole[0].byte == 0 && whole[1].byte == 3 && whole[1].letters,
           "a word begins with the space before it");
    static const char runs[] = "a ---- b";
    struct monitor_config c;
    monitor_config_init(&c);
    bool same = true;
    for (size_t cut = 1; cut < 9; cut++) {
        struct monitor *m = monitor_new(&c, 5);
        for (size_t i = 0; i < sizeof sample - 1; i += cut)
            monitor_text(m, sample + i, sizeof sample - 1 - i < cut ? sizeof sample - 1 - i : cut);
        monitor_end(m);
        same &= monitor_verdict(m)->tokens == count;
        monitor_free(m);
    }
    tap_ok(same, "pieces of 1 to 8 bytes give as many tokens");
    struct monitor *m = monitor_new(&c, 5);
    monitor_text(m, runs, sizeof runs - 1);
    monitor_end(m);
    tap_ok(monitor_verdict(m)->tokens == 4, "a run of one mark is one token: %llu",
           (unsigned long long)monitor_verdict(m)->tokens);
    monitor_free(m);
}

/* The tail by definition: the longest end that occurred before. */
static uint64_t longest(const uint64_t *s, size_t n)
{
    uint64_t best = 0;
    for (size_t end = 0; end + 1 < n; end++) {
        uint64_t k = 0;
        while (k <= end && s[end - k] == s[n - 1 - k])
            k++;
        best = k > best ? k : best;
    }
    return best;
}

static void automaton(void)
{
    bool right = true;
    for (int round = 0; round < 200; round++) {
        uint64_t s[120] = {0};
        struct loop *l = loop_new(random_number());
        unsigned letters = 1 + (unsigned)(random_number() % 4);
        for (size_t i = 0; i < 120; i++) {
            s[i] = random_number() % letters;
            struct loop_tail tail = loop_add(l, s[i]);
            right &= tail.length == longest(s, i + 1);
            right &= tail.length + tail.lag <= i + 1;
            for (uint64_t k = 0; right && k < tail.length; k++)
                right &= s[i - k] == s[i - k - tail.lag];
        }
        loop_free(l);
    }
    tap_ok(right, "200 random streams: the longest end that was there before, and where");

    struct loop *l = loop_new(9);
    for (uint64_t i = 0; i < 100000; i++)
        loop_add(l, i < 60000 ? random_number() : i % 2000);
    struct loop_tail tail = loop_add(l, 100000 % 2000);
    tap_ok(tail.lag % 2000 == 0 && tail.length >= 6000,
           "a period of 2000 is seen after 100,000 symbols, with the older ones forgotten");
    loop_free(l);
}

static void loops(void)
{
    unsigned missed = 0, late = 0, early = 0;
    for (int round = 0; round < 400; round++) {
        uint64_t period = 1 + random_number() % (round % 4 ? 60 : 2000),
                 onset = 20 + random_number() % 500;
        uint64_t limit = 4 * period > 48 ? 4 * period : 48;
        struct monitor_config c;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, random_number());
        for (uint64_t i = 0; i < onset + limit && !monitor_verdict(m)->abort; i++)
            monitor_token(m, i < onset ? 1000000 + i : 500 + (i - onset) % period, NULL);
        const struct monitor_verdict *v = monitor_verdict(m);
        missed += !v->abort;
        late += v->abort && v->tokens > onset + limit;
        early += v->abort &&
                 (v->onset != onset || v->period != period || v->detector != MONITOR_BY_LOOP);
        monitor_free(m);
    }
    tap_ok(!missed && !late,
           "400 loops of 1 to 2000 tokens are found within 48 tokens or four copies (%u missed)",
           missed);
    tap_ok(!early, "400 loops have their exact beginning and period (%u wrong)", early);
}

/* Feeds HEAD, then COPIES times PATTERN with the number of the copy for its %d. */
static const struct monitor_verdict *feed(struct monitor *m, const char *head, const char *pattern,
                                          int copies, int step)
{
    monitor_text(m, head, strlen(head));
    const char *hole = strstr(pattern, "%d");
    for (int i = 0; i < copies; i++) {
        char number[32];
        snprintf(number, sizeof number, "%d", 3 + i * step);
        monitor_text(m, pattern, hole ? (size_t)(hole - pattern) : strlen(pattern));
        if (hole) {
            monitor_text(m, number, strlen(number));
            monitor_text(m, hole + 2, strlen(hole + 2));
        }
    }
    monitor_end(m);
    return monitor_verdict(m);
}

static void texts(void)
{
    static const struct {
        const char *pattern;
        int copies, step;
        enum monitor_detector by;
        const char *name;
    } rows[] = {
        {"I will look at it again. ", 40, 0, MONITOR_BY_LOOP, "a sentence again and again"},
        {"\u6211\u4f1a\u518d\u770b\u4e00\u904d\u3002", 20, 0, MONITOR_BY_LOOP,
         "a sentence again and again, in a script without spaces"},
        {" court", 60, 0, MONITOR_BY_LOOP, "a word again and again"},
        {"Step %d is to try the same thing once more and see. ", 60, 1, MONITOR_BY_COUNTER,
         "a sentence with a number that grows"},
        {"I will look at it again. ", 3, 0, MONITOR_BY_NOTHING, "a sentence three times"},
        {"0, ", 600, 0, MONITOR_BY_NOTHING, "a table of 600 zeros"},
        {"0, ", 6000, 0, MONITOR_BY_LOOP, "zeros without an end"},
        {"NULL, ", 300, 0, MONITOR_BY_NOTHING, "an array of 300 NULLs"},
        {"</td><td>", 60, 0, MONITOR_BY_NOTHING, "a row of 60 empty cells"},
        {"</div>\n", 2000, 0, MONITOR_BY_LOOP, "closing tags without an end"},
        {"assert f('') == '1'\n", 20, 0, MONITOR_BY_LOOP, "a line of code with two names 20 times"},
        {"assert f('') == '1'\n", 11, 0, MONITOR_BY_NOTHING,
         "a line of code with two names 11 times"},
        {"    def full(self):\n        \"\"\"\n        The board is full.\n        \"\"\"\n\n", 11,
         0, MONITOR_BY_LOOP, "a block of code 11 times"},
        {"    def full(self):\n        \"\"\"\n        The board is full.\n        \"\"\"\n\n", 9,
         0, MONITOR_BY_NOTHING, "a block of code nine times"},
        {"<div>\n  <h2>A title</h2>\n  <p>Some text</p>\n</div>\n", 11, 0, MONITOR_BY_NOTHING,
         "eleven equal cards of a page"},
        {" )", 400, 0, MONITOR_BY_LOOP, "closing parentheses on one line without an end"},
        {" #", 100, 0, MONITOR_BY_NOTHING, "a ruler of 100 marks with spaces between them"},
        {"----------", 500, 0, MONITOR_BY_NOTHING, "a ruler of 5000 marks"},
        {"\xe2\x94\x80", 400, 0, MONITOR_BY_NOTHING, "a ruler of 400 box drawings"},
        {"VVVVVVVV", 200, 0, MONITOR_BY_NOTHING, "base64 of silence"},
        /* words of a grammar's table that begin alike, two of them twice */
        {"\u30b7\u30ca\u30ea\u30aa\u30c6\u30f3\u30d7\u30ec|\u30b7\u30ca\u30ea\u30aa\u30c6\u30f3|"
         "\u30b7\u30ca\u30ea\u30aa\u30d7\u30ec\u30fc|\u30b7\u30ca\u30ea\u30aa\u30a2|"
         "\u30b7\u30ca\u30ea\u30aa|"
         "\u30b7\u30ca\u30ea\u30c6\u30f3\u30d7\u30ec|\u30b7\u30ca\u30ea\u30aa\u30c6\u30ec|"
         "\u30b7\u30ca\u30ea\u30aa\u30d7",
         1, 0, MONITOR_BY_NOTHING, "a table of words that begin alike, in a script without spaces"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct monitor_config c;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, 3);
        const struct monitor_verdict *v =
            feed(m, "This is how it begins:\n", rows[i].pattern, rows[i].copies, rows[i].step);
        tap_ok(v->detector == rows[i].by && v->abort == (rows[i].by != MONITOR_BY_NOTHING),
               "%s: %s (%llu tokens)", rows[i].name, monitor_detector_name(v->detector),
               (unsigned long long)v->tokens);
        if (v->abort)
            tap_ok(v->onset_byte >= 20 && v->onset_byte <= 28 &&
                       v->reason == MONITOR_HIGH_REPETITION,
                   "%s: the loop begins where it does (byte %llu)", rows[i].name,
                   (unsigned long long)v->onset_byte);
        monitor_free(m);
    }
}

/* ---- records and drifting loops ---- */

/* A word of letters that NUMBER decides. */
static void spell(struct monitor *m, uint64_t number)
{
    char word[24] = " ";
    size_t n = 1;
    for (number += 1000; number && n < sizeof word; number /= 16)
        word[n++] = (char)('a' + number % 16);
    monitor_text(m, word, n);
}

/* Records of 24 words: FRESH: two of them, always at the same places, are other ones in each record, as the names in a list of functions are.
 * Else they are other ones at any place: that is a loop that drifts. */
static const struct monitor_verdict *records(struct monitor *m, bool fresh)
{
    uint64_t other = 100000;
    for (unsigned i = 0; i < 30 && !monitor_verdict(m)->abort; i++)
        for (unsigned k = 0; k < 24; k++) {
            const bool slot = fresh ? k == 3 || k == 15 : k == i * 7 % 24 || k == (i * 11 + 5) % 24;
            spell(m, slot ? other++ : 200 + k);
        }
    return monitor_verdict(m);
}

static void slots(void)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        struct monitor_config c;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, 3);
        const struct monitor_verdict *v = records(m, fresh);
        tap_ok(v->detector == (fresh ? MONITOR_BY_NOTHING : MONITOR_BY_DRIFT),
               fresh ? "records of 24 words with two places for what is new are no loop: %s"
                     : "24 words again and again, two of them other ones at any place, are a loop: "
                       "%s",
               monitor_detector_name(v->detector));
        monitor_free(m);
    }
}

/* ---- memory ---- */

static size_t in_use(void)
{
    const struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

/* What a monitor holds after so many tokens; not more after many times as many. */
static void memory(void)
{
    static const struct {
        unsigned tokens, kib;
    } rows[] = {{0, 128}, {1000, 256}, {4000, 640}, {20000, 2304}, {200000, 2304}};
#ifdef __SANITIZE_ADDRESS__ /* its allocator does not count */
    return;
#endif
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct monitor_config c;
        monitor_config_init(&c);
        const size_t before = in_use();
        struct monitor *m = monitor_new(&c, 3);
        for (unsigned k = 0; k < rows[i].tokens; k++)
            spell(m, random_number() % 100000);
        const size_t kib = (in_use() - before + 1023) / 1024;
        tap_ok(kib <= rows[i].kib, "a monitor that has seen %u tokens holds at most %u KiB: %zu",
               rows[i].tokens, rows[i].kib, kib);
        monitor_free(m);
    }
}

/* ---- what can be handed on ---- */

/* A text of words that do not repeat, then a cycle of PERIOD words again and again, byte by byte: the most that was settled. */
static uint64_t most_settled(size_t period, const struct monitor_verdict **ret, struct monitor *m)
{
    char word[32];
    uint64_t most = 0;
    for (size_t i = 0; !monitor_verdict(m)->abort && i < 400 + 8 * period + 600; i++) {
        const size_t number = i < 400 ? i : 1000 + (i - 400) % period;
        char *p = word; /* letters alone: a number is compared in another way */
        *p++ = ' ';
        for (size_t n = number + 1000; n; n /= 10)
            *p++ = (char)('a' + n % 10);
        for (const char *q = word; q < p && !monitor_text(m, q, 1); q++) {
            const uint64_t now = monitor_settled(m, 96);
            most = now > most ? now : most;
        }
    }
    *ret = monitor_verdict(m);
    return most;
}

static void held_back(void)
{
    static const size_t periods[] = {1, 2, 3, 7, 20, 60, 80, 150, 700, 1900};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        struct monitor_config c;
        const struct monitor_verdict *v;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, 5);
        const uint64_t most = most_settled(periods[i], &v, m),
                       first = periods[i] <= 80 ? 0 : 5 * periods[i];
        tap_ok(v->abort && most > 0 && most <= v->onset_byte + first,
               "a loop of %zu words: before the verdict nothing of it is settled but%s (byte %llu "
               "of %llu)",
               periods[i], first ? " its first copy" : " what came before it",
               (unsigned long long)most, (unsigned long long)v->onset_byte);
        monitor_free(m);
    }
}

/* Loops with edits in a tenth of their words: what a client has of each when it is cut is its first copy at most. */
static void drift_held_back(void)
{
    static const unsigned periods[] = {6, 10, 20, 40, 60, 90, 120};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        const unsigned period = periods[i];
        struct monitor_config c;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, 5);
        for (unsigned k = 0; k < 400; k++)
            spell(m, 10000 + k * 17);
        const uint64_t begin = 400 * 5; /* each word has five bytes */
        uint64_t most = 0, words = 0;
        for (; words < 8 * period + 100 && !monitor_verdict(m)->abort; words++) {
            const bool edited = random_number() % 10 == 0;
            spell(m, edited ? 20000 + random_number() % 30000 : 4000 + words % period);
            if (!monitor_verdict(m)->abort && monitor_settled(m, 96) > most)
                most = monitor_settled(m, 96);
        }
        const struct monitor_verdict *v = monitor_verdict(m);
        const uint64_t cut = v->onset_byte > most ? v->onset_byte : most,
                       has = cut > begin ? (cut - begin) / 5 : 0;
        tap_ok(v->detector == MONITOR_BY_DRIFT && has <= period,
               "a drifting loop of %u words: of it the client has its first copy at most (%llu "
               "words, cut by %s after %llu)",
               period, (unsigned long long)has, monitor_detector_name(v->detector),
               (unsigned long long)words);
        monitor_free(m);
    }
}

/* The key says where things stand in tables, not what is found: a library, each with a key of its own, says what the program says. */
static void keys(void)
{
    uint64_t words[400], first = 0, other = 0;
    for (unsigned i = 0; i < 400; i++)
        words[i] = random_number() % 7 == 0 ? 20000 + random_number() % 30000 : 4000 + i % 30;
    for (uint64_t key = 1; key <= 500; key++) {
        struct monitor_config c;
        monitor_config_init(&c);
        struct monitor *m = monitor_new(&c, key * 0x9e3779b97f4a7c15U);
        for (unsigned i = 0; i < 400; i++)
            spell(m, words[i]);
        const uint64_t tokens = monitor_verdict(m)->tokens;
        first = first ? first : tokens;
        other += tokens != first;
        monitor_free(m);
    }
    tap_ok(first < 400 && other == 0,
           "with 500 keys a drifting loop is cut at the same token, %llu (%llu are not)",
           (unsigned long long)first, (unsigned long long)other);
}

int main(void)
{
    tables();
    reasons();
    weights();
    entropies();
    pieces();
    automaton();
    loops();
    texts();
    slots();
    memory();
    held_back();
    drift_held_back();
    keys();
    return tap_done();
}
