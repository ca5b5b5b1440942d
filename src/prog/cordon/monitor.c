/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon monitor`: a model's output from standard input or a file, watched while it is written. The verdict is printed as soon as
 * it is reached, and reading ends there: whoever writes sees the pipe close.
 *
 * Waits: read in watch; the generation; none (the writer's own pace); the caller's pipe and nothing else is held */
#include "base/jsonw.h"
#include "commands.h"
#include "exits.h"
#include "jail/confine.h"
#include "monitor_events.h"
#include "options.h"
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CHUNK          65536
#define LINE_MAX_BYTES (16U << 20) /* an event with the logits of a large vocabulary */

#define OUTPUT_LOST 1 /* nobody gets the verdict; main says so, as for every command */

struct monitor_options {
    const char *tier, *task, *mode, *format;
    struct option_list set;
    uint64_t expected, every, vocabulary;
    bool help;
};

struct watch {
    const struct monitor_options *o;
    const struct monitor_config *config;
    struct monitor_events events;
    bool lines; /* events, not text */
    struct buf line;
    uint64_t next; /* tokens at which the metrics are printed */
};

static void put_metrics(struct jsonw *j, const struct monitor_metrics *m)
{
    jsonw_open(j, "metrics", '{');
    jsonw_decimal(j, "entropy", m->entropy);
    jsonw_decimal(j, "spike", m->spike);
    jsonw_decimal(j, "repetition", m->repetition);
    jsonw_decimal(j, "perplexity", m->perplexity);
    jsonw_decimal(j, "trend", m->trend);
    jsonw_decimal(j, "failure_prob", m->failure_prob);
    jsonw_close(j, '}');
}

static void put_settings(struct jsonw *j, const struct monitor_config *c)
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

/* One line: the metrics so far, or with LAST the verdict. */
static int print_line(const struct watch *w, bool last)
{
    const struct monitor_verdict *v = monitor_verdict(w->events.monitor);
    struct buf out;
    buf_init(&out, 16384);
    struct jsonw j = {.out = &out};
    jsonw_open(&j, NULL, '{');
    if (last) {
        jsonw_bool(&j, "abort", v->abort);
        jsonw_string(&j, "reason", monitor_reason_name(v->reason));
        jsonw_string(&j, "detector", v->abort ? monitor_detector_name(v->detector) : NULL);
        if (v->period) {
            jsonw_int(&j, "onset", (int64_t)v->onset);
            jsonw_int(&j, "onset_byte", (int64_t)v->onset_byte);
            jsonw_int(&j, "period", (int64_t)v->period);
        } else {
            jsonw_null(&j, "onset");
            jsonw_null(&j, "onset_byte");
            jsonw_null(&j, "period");
        }
    }
    jsonw_int(&j, "tokens", (int64_t)v->tokens);
    put_metrics(&j, &v->metrics);
    if (last) {
        put_settings(&j, w->config);
        jsonw_int(&j, "unknown_lines", (int64_t)w->events.unknown);
    }
    jsonw_close(&j, '}');
    int r = j.bad || puts(out.data) < 0 || fflush(stdout) ? -1 : 0;
    buf_done(&out);
    return r;
}

static int progress(struct watch *w)
{
    uint64_t tokens = monitor_verdict(w->events.monitor)->tokens;
    if (!w->o->every || tokens < w->next)
        return 0;
    w->next = tokens - tokens % w->o->every + w->o->every;
    return print_line(w, false);
}

/* Whole lines of LEN bytes more; what is left over waits for the rest. */
static int take_lines(struct watch *w, const char *p, size_t len, struct err *err)
{
    while (len && !monitor_verdict(w->events.monitor)->abort) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len;
        if (buf_add(&w->line, p, n) < 0)
            return err_set(err, ERR_LIMIT, "line %llu is longer than 16 MB: no event is",
                           (unsigned long long)w->events.lines + 1);
        if (end) {
            monitor_events_line(&w->events, w->line.data, w->line.len);
            w->line.len = 0;
            if (progress(w) < 0)
                return OUTPUT_LOST;
        }
        n += end != NULL;
        p += n;
        len -= n;
    }
    return 0;
}

static int watch(struct watch *w, int fd, struct err *err)
{
    static char chunk[CHUNK];
    int r = 0;
    while (r == 0 && !monitor_verdict(w->events.monitor)->abort) {
        ssize_t n = read(fd, chunk, w->lines ? sizeof chunk : 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read");
        if (n == 0)
            break;
        if (w->lines) {
            r = take_lines(w, chunk, (size_t)n, err);
        } else {
            monitor_text(w->events.monitor, chunk, (size_t)n);
            r = progress(w) < 0 ? OUTPUT_LOST : 0;
        }
    }
    if (r == 0 && w->lines && w->line.len)
        r = take_lines(w, "\n", 1, err);
    monitor_end(w->events.monitor);
    return r;
}

static int read_options(const struct monitor_options *o, struct monitor_config *c, bool *ret_lines,
                        struct err *err)
{
    monitor_config_init(c);
    c->expected = o->expected;
    if (strcmp(o->format, "text") != 0 && strcmp(o->format, "events") != 0)
        return err_set(err, ERR_USAGE, "--format: '%.40s' is none of: text, events", o->format);
    *ret_lines = strcmp(o->format, "events") == 0;
    int r = monitor_config_tier(c, o->tier, err);
    if (r == 0)
        r = monitor_config_task(c, o->task, err);
    if (r == 0)
        r = monitor_config_mode(c, o->mode, err);
    for (size_t i = 0; r == 0 && i < o->set.count; i++)
        r = monitor_config_set(c, o->set.items[i], err);
    return r;
}

static int run(const struct monitor_options *o, const struct monitor_config *c, bool lines,
               const char *path, struct err *err)
{
    uint64_t key = 0;
    bool file = strcmp(path, "-") != 0;
    int fd = file ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
    if (fd < 0)
        return err_sys(err, "%.200s", path);
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return err_sys(err, "random bytes");
    struct watch w = {.o = o, .config = c, .lines = lines, .next = o->every};
    w.events = (struct monitor_events){.monitor = monitor_new(c, key), .vocabulary = o->vocabulary};
    buf_init(&w.line, LINE_MAX_BYTES);
    int r = w.events.monitor ? 0 : err_set(err, ERR_LIMIT, "no memory");
    /* what is read now was written by a model, or by whoever spoke to it */
    if (r == 0)
        r = jail_confine(-1, -1, "reader", err);
    if (r == 0)
        r = watch(&w, fd, err);
    if (r == 0 && w.events.unknown)
        fprintf(stderr,
                "cordon monitor: %llu lines are no event, line %llu first; --format text takes "
                "plain text\n",
                (unsigned long long)w.events.unknown, (unsigned long long)w.events.first_unknown);
    bool abort = r == 0 && monitor_verdict(w.events.monitor)->abort;
    if (r == 0 && print_line(&w, true) < 0)
        r = OUTPUT_LOST;
    monitor_free(w.events.monitor);
    buf_done(&w.line);
    if (file)
        close(fd);
    return r < 0 ? r : r || abort ? EXIT_FAILED : EXIT_DONE;
}

int cmd_monitor(int argc, char **argv)
{
    struct monitor_options o = {.format = "text", .vocabulary = 131072};
    const struct option_row rows[] = {
        {"format", OPTION_STRING, &o.format, "NAME",
         "text, or events: JSON lines or server-sent events (text)"},
        {"tier", OPTION_STRING, &o.tier, "TIER",
         "thresholds of worker, coder, architect or ingest"},
        {"task", OPTION_STRING, &o.task, "TASK",
         "thresholds of reasoning, code or general; above the tier's"},
        {"mode", OPTION_STRING, &o.mode, "NAME",
         "default: loops and length abort; literal: the thresholds do"},
        {"set", OPTION_LIST, &o.set, "NAME=N",
         "one threshold, above tier and task; may be repeated"},
        {"expected", OPTION_COUNT, &o.expected, "N",
         "tokens expected: twice as many abort (runaway_length)"},
        {"every", OPTION_COUNT, &o.every, "N", "a line of metrics every N tokens"},
        {"vocabulary", OPTION_COUNT, &o.vocabulary, "N",
         "of the model, for entropy from top log-probabilities (131072)"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
    };
    struct option_list words = {0};
    struct monitor_config c;
    bool lines = false;
    struct err err = ERR_INIT;
    int r = options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &err);
    if (r == 0 && o.help) {
        puts(
            "usage: cordon monitor [OPTIONS] [FILE|-]\n\n"
            "Watches a model's output while it is written and says when it has gone bad. The last\n"
            "line is the verdict, printed as soon as it is reached. In the default mode a loop\n"
            "aborts, exact, with a number that counts, or drifting; in the literal mode the\n"
            "thresholds of entropy, repetition and perplexity do.\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_MONITOR);
        return EXIT_DONE;
    }
    if (r == 0 && words.count > 1)
        r = err_set(&err, ERR_USAGE, "'%.40s' is one word too many; see --help", words.items[1]);
    if (r == 0)
        r = read_options(&o, &c, &lines, &err);
    if (r == 0)
        r = run(&o, &c, lines, words.count ? words.items[0] : "-", &err);
    if (r < 0) {
        result_complain("cordon monitor", err.msg);
        return EXIT_USAGE;
    }
    return r;
}
