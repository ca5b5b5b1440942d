/* SPDX-License-Identifier: Apache-2.0 */
/* What the monitor finds and what it leaves alone, on generated loops and on the text of this machine.
 *
 * Loops: 150 words of a text, then a cycle of its words: exact (1 to 2,000 tokens), with a number that grows by a constant step
 * (8 to 60), or with edits (4 to 100): each word is left out, replaced or preceded by another one with the same probability, 5 to
 * 20 % in all. No loops: every text file below the folders that are named, in segments of 8,000 bytes, and tables, logs, base64,
 * hex, rulers, refrains that are generated.
 *
 * Every verdict is to come within 48 tokens or four copies of the loop's beginning, whichever is more. The rate at which the literal
 * thresholds abort the same segments is printed: it is why they are not the default.
 *
 * Usage: test_quality [--segments N] [--loops N] [--seed N] [FOLDER...]. Without one of the detectors it fails:
 * tests/monitor/mutants.py takes each out. */
#include "monitor/monitor.h"
#include "monitor/tokens.h"

#include "base/tap.h"

#include <ctype.h>
#include <fts.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT = 8000,
    LITERAL_EVERY = 8,
    WORDS_MAX = 200000,
    FILE_MAX = 1 << 20,
    FILES_MAX = 100000
};

static uint64_t state;
static char *words[WORDS_MAX];
static size_t word_count;
static uint64_t segments, wanted, false_aborts, loops = 400;
static uint64_t literal_segments, literal_aborts;

static uint64_t below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static struct monitor *fresh_in(enum monitor_mode mode)
{
    struct monitor_config c;
    monitor_config_init(&c);
    c.mode = mode;
    return monitor_new(&c, state);
}

static struct monitor *fresh(void)
{
    return fresh_in(MONITOR_DEFAULT);
}

static void say(struct monitor *m, const char *text)
{
    monitor_text(m, text, strlen(text));
}

/* ---- what is to be left alone ---- */

static void innocent(const char *text, size_t len, const char *name)
{
    struct monitor *m = fresh();
    monitor_text(m, text, len);
    monitor_end(m);
    const struct monitor_verdict *v = monitor_verdict(m);
    segments++;
    if (v->abort && false_aborts++ < 5)
        printf("# false abort: %s, by %s, period %llu, byte %llu: %.80s\n", name,
               monitor_detector_name(v->detector), (unsigned long long)v->period,
               (unsigned long long)v->onset_byte, text + v->onset_byte);
    monitor_free(m);
    if (segments % LITERAL_EVERY)
        return;
    m = fresh_in(MONITOR_LITERAL);
    monitor_text(m, text, len);
    literal_segments++;
    literal_aborts += monitor_end(m);
    monitor_free(m);
}

static void keep_words(const char *text, size_t len)
{
    for (size_t i = 0; i + 1 < len && word_count < WORDS_MAX; i++) {
        size_t end = i + 1;
        while (end < len && end - i < 20 && isalpha((unsigned char)text[end]))
            end++;
        if (text[i] == ' ' && end > i + 1 && end < len && (text[end] == ' ' || text[end] == ','))
            words[word_count++] = strndup(text + i, end - i);
    }
}

static void file(const char *path)
{
    static char text[FILE_MAX];
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    if (memchr(text, 0, len))
        return;
    keep_words(text, len);
    for (size_t i = 0; i < len && segments < wanted; i += SEGMENT)
        innocent(text + i, len - i < SEGMENT ? len - i : SEGMENT, path);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool is_text(const char *name, size_t len)
{
    static const char *const kinds[] = {".h",   ".py", ".txt", "copyright", ".html", ".json",
                                        ".csv", ".md", ".xml", ".pm",       ".c"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (len >= strlen(kinds[i]) && strcmp(name + len - strlen(kinds[i]), kinds[i]) == 0)
            return true;
    return false;
}

/* The files below PATHS in an order that SEED decides, until there are segments enough. */
static void folders(char *const *paths)
{
    static char *files[FILES_MAX];
    size_t count = 0;
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    for (FTSENT *e; tree && count < FILES_MAX && (e = fts_read(tree));)
        if (e->fts_info == FTS_F && is_text(e->fts_name, e->fts_namelen))
            files[count++] = strdup(e->fts_path);
    if (tree)
        fts_close(tree);
    for (size_t i = 0; i < count; i++) {
        size_t k = i + below(count - i);
        char *path = files[k];
        files[k] = files[i];
        if (segments < wanted)
            file(path);
        free(path);
    }
}

static const char *word(void)
{
    return words[below(word_count)];
}

/* One line of a generated text that is meant: KIND is which. */
static int line(char *out, size_t size, unsigned kind, unsigned i)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned a = (unsigned)below(1000), b = (unsigned)below(1000000);
    int n = 0;
    switch (kind) {
    case 0:
        return snprintf(
            out, size,
            "{\"id\": %u, \"name\": \"%s\", \"score\": %u.%u, \"tags\": [\"%s\", \"%s\"]},\n", i,
            word() + 1, a, b, word() + 1, word() + 1);
    case 1:
        return snprintf(out, size, "%u,%s,%u,%u.%02u,0,0,0\n", i, word() + 1, b, a, a % 100);
    case 2:
        for (; n < 76; n++)
            out[n] = base64[below(64)];
        out[n++] = '\n';
        return n;
    case 3:
        n = snprintf(out, size, "%08x ", i * 16);
        for (int k = 0; k < 16; k++)
            n += snprintf(out + n, size - (size_t)n, " %02x", i % 5 ? (unsigned)below(256) : 0U);
        return n + snprintf(out + n, size - (size_t)n, "\n");
    case 4:
        return snprintf(
            out, size,
            "2026-11-%02u %02u:%02u:%02u INFO worker-%u: handled request%s for%s in %u ms\n",
            1 + i % 28, a % 24, a % 60, b % 60, a % 4, word(), word(), b % 900);
    case 5:
        return snprintf(out, size, "%s\n%s%s%s\n",
                        i % 2 ? "------------------------------------------------------------"
                              : "==============================",
                        word(), word(), word());
    case 6: /* a refrain, and a verse that is another one */
        return i % 5 == 4
                   ? snprintf(out, size, "And so we sing it once again, and so we sing it still,\n")
                   : snprintf(out, size, "%s%s%s%s%s%s\n", word(), word(), word(), word(), word(),
                              word());
    case 7: /* asked for: the same sentence, three times */
        return i < 3 ? snprintf(out, size, "I will not talk in class again.\n")
                     : snprintf(out, size, "%s%s%s.\n", word(), word(), word());
    default:
        return snprintf(out, size, "| %s | %u | yes |%s%s |\n", word() + 1, b, word(), word());
    }
}

static void generated(void)
{
    char text[SEGMENT + 400];
    unsigned kind = (unsigned)below(9);
    size_t len = 0;
    for (unsigned i = 0; len < SEGMENT; i++)
        len += (size_t)line(text + len, sizeof text - len, kind, i);
    static const char *const names[] = {"JSON",   "CSV",     "base64",    "hex",  "log",
                                        "rulers", "refrain", "asked for", "table"};
    innocent(text, len, names[kind]);
}

/* ---- what is to be found ---- */

static bool found(const struct monitor *m)
{
    const struct monitor_verdict *v = monitor_verdict(m);
    return v->abort;
}

static uint64_t prefix(struct monitor *m)
{
    size_t from = below(word_count - 2200);
    for (size_t i = 0; i < 150; i++)
        say(m, words[from + i]);
    return monitor_verdict(m)->tokens;
}

static void exact(void)
{
    unsigned hits = 0, in_time = 0;
    for (uint64_t round = 0; round < loops; round++) {
        struct monitor *m = fresh();
        uint64_t onset = prefix(m), period = 1 + below(round % 4 ? 60 : 2000),
                 limit = 4 * period > 48 ? 4 * period : 48;
        size_t from = below(word_count - period);
        for (uint64_t i = 0; i < limit + period && !monitor_verdict(m)->abort; i++)
            say(m, words[from + i % period]);
        hits += found(m);
        /* a token is complete when the next one begins: one more may have been begun */
        in_time += monitor_verdict(m)->abort && monitor_verdict(m)->tokens <= onset + limit + 1;
        monitor_free(m);
    }
    tap_ok(hits >= 0.999 * (double)loops, "exact loops of 1 to 2,000 tokens: %u of %llu are found",
           hits, (unsigned long long)loops);
    tap_ok(in_time >= 0.999 * (double)loops,
           "exact loops: %u of %llu within 48 tokens or four copies", in_time,
           (unsigned long long)loops);
}

static void counting(void)
{
    unsigned hits = 0, in_time = 0;
    for (uint64_t round = 0; round < loops; round++) {
        struct monitor *m = fresh();
        uint64_t onset = prefix(m), period = 7 + below(53), at = below(period);
        uint64_t limit = 4 * (period + 1) > 48 ? 4 * (period + 1) : 48;
        size_t from = below(word_count - period);
        for (unsigned copy = 0; copy < 40 && !monitor_verdict(m)->abort; copy++)
            for (uint64_t i = 0; i < period; i++) {
                char number[16];
                snprintf(number, sizeof number, " %u", 5 + copy * (1 + (unsigned)round % 3));
                say(m, words[from + i]);
                if (i == at)
                    say(m, number);
            }
        hits += found(m);
        in_time += found(m) && monitor_verdict(m)->tokens <= onset + limit + 1;
        monitor_free(m);
    }
    tap_ok(hits >= 0.95 * (double)loops, "loops with a number that grows: %u of %llu are found",
           hits, (unsigned long long)loops);
    tap_ok(in_time >= 0.95 * (double)loops,
           "loops with a number that grows: %u of %llu within 48 tokens or four copies", in_time,
           (unsigned long long)loops);
}

static void drifting(void)
{
    unsigned hits = 0, in_time = 0;
    uint64_t delay = 0;
    for (uint64_t round = 0; round < loops; round++) {
        struct monitor *m = fresh();
        uint64_t onset = prefix(m), period = 4 + below(round % 2 ? 30 : 97), edits = 5 + below(16);
        uint64_t limit = 4 * period > 48 ? 4 * period : 48;
        size_t from = below(word_count - period);
        while (!monitor_verdict(m)->abort && monitor_verdict(m)->tokens < onset + 6000)
            for (uint64_t i = 0; i < period; i++) {
                uint64_t kind = below(100) < edits ? 1 + below(3) : 0;
                if (kind >= 2) /* replaced, or another one before it */
                    say(m, word());
                if (kind == 0 || kind == 3)
                    say(m, words[from + i]);
            }
        bool is = found(m);
        hits += is;
        delay += is ? monitor_verdict(m)->tokens - onset : 0;
        in_time += is && monitor_verdict(m)->tokens <= onset + limit + 1;
        monitor_free(m);
    }
    tap_ok(hits >= 0.95 * (double)loops,
           "loops of 4 to 100 words with 5 to 20 %% edits: %u of %llu are found, after %llu tokens "
           "on average",
           hits, (unsigned long long)loops, (unsigned long long)(hits ? delay / hits : 0));
    tap_ok(in_time >= 0.95 * (double)loops,
           "drifting loops: %u of %llu within 48 tokens or four copies", in_time,
           (unsigned long long)loops);
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t n = strtoull(text, &end, 10);
    if (end == text || *end) {
        fprintf(stderr, "test_quality: '%s' is no number\n", text);
        exit(2);
    }
    return n;
}

/* The folders, behind the options. */
static char **options(int argc, char **argv)
{
    static const struct option known[] = {{"segments", required_argument, NULL, 'n'},
                                          {"loops", required_argument, NULL, 'l'},
                                          {"seed", required_argument, NULL, 's'}, /* --seed */
                                          {0}};
    wanted = 8000;
    state = 1;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (o == '?')
            exit(2);
        *(o == 'n' ? &wanted : o == 'l' ? &loops : &state) = number(optarg);
    }
    state = state * 0x9e3779b97f4a7c15U + 1;
    return argv + optind;
}

int main(int argc, char **argv)
{
    static char include[] = "/usr/include", python[] = "/usr/lib/python3.11",
                packages[] = "/usr/lib/python3", doc[] = "/usr/share/doc",
                perl[] = "/usr/share/perl", licenses[] = "/usr/share/common-licenses";
    char *here[] = {include, python, packages, doc, perl, licenses, NULL};
    char **named = options(argc, argv);
    uint64_t all = wanted;
    wanted = all * 2 / 3;
    folders(*named ? named : here);
    uint64_t read = segments;
    tap_ok(word_count > 10000, "there are %zu words to make loops of", word_count);
    if (word_count <= 10000)
        return tap_done();
    while (segments < all)
        generated();
    tap_ok(!false_aborts,
           "no abort in %llu segments of this machine's text and %llu generated ones",
           (unsigned long long)read, (unsigned long long)(segments - read));
    printf("# the literal thresholds abort %llu of %llu of them: %.1f %%\n",
           (unsigned long long)literal_aborts, (unsigned long long)literal_segments,
           literal_segments ? 100.0 * (double)literal_aborts / (double)literal_segments : 0);
    exact();
    counting();
    drifting();
    return tap_done();
}
