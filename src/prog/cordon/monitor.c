/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon monitor`: a model's output from standard input or a file, watched while it is written. The verdict is printed as soon as
 * it is reached, and reading ends there: whoever writes sees the pipe close. `cordon monitor score` does the same with recorded
 * ones, a line a file, and says how high each signal rose and where.
 *
 * Waits: read in watch; the generation; none (the writer's own pace); the caller's pipe and nothing else is held */
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "commands.h"
#include "exits.h"
#include "jail/confine.h"
#include "monitor/report.h"
#include "monitor_events.h"
#include "monitor_plot.h"
#include "options.h"
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK          65536
#define TEXT_CHUNK     4096
#define SCORE_CHUNK    64          /* some ten tokens: as near as a peak is told */
#define PLOT_CHUNK     4           /* some token: a point each */
#define TOLD_EVERY_MS  500         /* how far it has read, on a terminal */
#define LINE_MAX_BYTES (16U << 20) /* an event with the logits of a large vocabulary */

#define OUTPUT_LOST 1 /* nobody gets the verdict; main says so, as for every command */

struct monitor_options {
    const char *tier, *task, *mode, *format, *plot;
    struct option_list set;
    uint64_t expected, every, vocabulary;
    bool help;
};

struct watch {
    const struct monitor_options *o;
    const struct monitor_config *config;
    const char *name; /* of a recorded one, else NULL */
    struct {
        double value;
        uint64_t token;
    } peaks[MONITOR_SIGNAL_COUNT]; /* of a recorded one */
    bool terminal;                 /* somebody sees how far it has read */
    uint64_t size, done, told_ns;  /* bytes of the file, 0: not known; read so far */
    struct monitor_events events;
    bool lines; /* events, not text */
    struct buf line;
    uint64_t next; /* tokens at which the metrics are printed */
    struct monitor_plot plot;
};

static void put_peaks(struct jsonw *j, const struct watch *w)
{
    jsonw_open(j, "peaks", '{');
    for (int i = 0; i < MONITOR_SIGNAL_COUNT; i++) {
        jsonw_open(j, monitor_signal_name((enum monitor_signal)i), '{');
        jsonw_decimal(j, "value", w->peaks[i].value);
        jsonw_int(j, "token", (int64_t)w->peaks[i].token);
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
    if (w->name)
        jsonw_bytes(&j, "file", w->name, strlen(w->name));
    if (last) {
        const struct monitor_repeat repeat = monitor_repeats(w->events.monitor);
        monitor_put_verdict(&j, v);
        monitor_put_repeat(&j, &repeat);
    }
    monitor_put_metrics(&j, v);
    if (last && w->name)
        put_peaks(&j, w);
    if (last) {
        monitor_put_settings(&j, w->config);
        jsonw_int(&j, "unknown_lines", (int64_t)w->events.unknown);
    }
    jsonw_close(&j, '}');
    int r = j.bad || puts(out.data) < 0 || fflush(stdout) ? -1 : 0;
    buf_done(&out);
    return r;
}

static void raise_peaks(struct watch *w, const struct monitor_verdict *v)
{
    double values[MONITOR_SIGNAL_COUNT];
    monitor_signal_values(&v->metrics, values);
    for (int i = 0; i < MONITOR_SIGNAL_COUNT; i++)
        if (values[i] > w->peaks[i].value) {
            w->peaks[i].value = values[i];
            w->peaks[i].token = v->tokens;
        }
}

/* How far it has read, where somebody looks on: at most twice a second, on one line that the verdict replaces. */
static void tell_progress(struct watch *w, bool over)
{
    const uint64_t now = clock_now_ns();
    if (!w->terminal || (!over && now - w->told_ns < TOLD_EVERY_MS * CLOCK_NS_PER_MS))
        return;
    w->told_ns = now;
    if (over)
        (void)fputs("\r\033[K", stderr);
    else if (w->size)
        fprintf(stderr, "\rread %llu of %llu MB", (unsigned long long)(w->done / MIB),
                (unsigned long long)(w->size / MIB));
    else
        fprintf(stderr, "\rread %llu MB", (unsigned long long)(w->done / MIB));
}

static int progress(struct watch *w)
{
    const struct monitor_verdict *v = monitor_verdict(w->events.monitor);
    uint64_t tokens = v->tokens;
    raise_peaks(w, v);
    monitor_plot_point(&w->plot, v);
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
            return err_set(err, ERR_LIMIT,
                           "line %llu is longer than 16 MB, the most that an event may have; is it "
                           "--format text?",
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

static int take_text(struct watch *w, const char *p, size_t len)
{
    const size_t most = w->plot.points ? PLOT_CHUNK : w->name ? SCORE_CHUNK : len;
    for (size_t n; len && !monitor_verdict(w->events.monitor)->abort; p += n, len -= n) {
        n = len < most ? len : most;
        monitor_text(w->events.monitor, p, n);
        if (progress(w) < 0)
            return OUTPUT_LOST;
    }
    return 0;
}

static int watch(struct watch *w, int fd, struct err *err)
{
    static char chunk[CHUNK];
    int r = 0;
    while (r == 0 && !monitor_verdict(w->events.monitor)->abort) {
        ssize_t n = read(fd, chunk, w->lines ? sizeof chunk : TEXT_CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read");
        if (n == 0)
            break;
        w->done += (uint64_t)n;
        tell_progress(w, false);
        r = w->lines ? take_lines(w, chunk, (size_t)n, err) : take_text(w, chunk, (size_t)n);
    }
    if (r == 0 && w->lines && w->line.len)
        r = take_lines(w, "\n", 1, err);
    monitor_end(w->events.monitor);
    raise_peaks(w, monitor_verdict(w->events.monitor));
    monitor_plot_point(&w->plot, monitor_verdict(w->events.monitor));
    tell_progress(w, true);
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

static int open_input(const char *path, struct err *err)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? err_sys(err, "%.200s", path) : fd;
}

/* One generation, from FD. */
static int judge(struct watch *w, int fd, uint64_t key, bool *ret_abort, struct err *err)
{
    struct stat st;
    w->size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    w->next = w->o->every;
    w->events = (struct monitor_events){.monitor = monitor_new(w->config, key),
                                        .vocabulary = w->o->vocabulary};
    buf_init(&w->line, LINE_MAX_BYTES);
    int r = w->events.monitor ? watch(w, fd, err) : err_set(err, ERR_LIMIT, "no memory");
    if (r == 0 && w->events.unknown)
        fprintf(stderr,
                "cordon monitor: %s%s%llu lines are no event, line %llu first; --format text takes "
                "plain text\n",
                w->name ? w->name : "", w->name ? ": " : "", (unsigned long long)w->events.unknown,
                (unsigned long long)w->events.first_unknown);
    *ret_abort |= r == 0 && monitor_verdict(w->events.monitor)->abort;
    if (r == 0 && print_line(w, true) < 0)
        r = OUTPUT_LOST;
    if (r == 0)
        r = monitor_plot_end(&w->plot, monitor_verdict(w->events.monitor), err);
    monitor_free(w->events.monitor);
    buf_done(&w->line);
    return r;
}

/* PATHS are all opened before anything is read: what is read was written by a model, or by whoever spoke to it, and no file can
 * be opened afterwards. */
static int run(const struct monitor_options *o, const struct monitor_config *c, bool lines,
               const char *const *paths, size_t count, bool score, struct err *err)
{
    uint64_t key = 0;
    bool abort = false, terminal = isatty(STDERR_FILENO);
    struct monitor_plot plot = {0};
    int fds[OPTION_LIST_MAX], r = 0;
    size_t opened = 0;
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return err_sys(err, "random bytes");
    for (; opened < count && r >= 0; opened += r >= 0)
        r = fds[opened] = open_input(paths[opened], err);
    if (r >= 0 && o->plot)
        r = monitor_plot_start(&plot, o->plot, err);
    if (r >= 0)
        r = jail_confine(-1, -1, "reader", err);
    for (size_t i = 0; i < count && r == 0; i++) {
        struct watch w = {.o = o, .config = c, .lines = lines, .terminal = terminal, .plot = plot};
        w.name = score ? paths[i] : NULL;
        r = judge(&w, fds[i], key, &abort, err);
    }
    while (opened)
        if (fds[--opened] != STDIN_FILENO)
            close(fds[opened]);
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
        {"plot", OPTION_STRING, &o.plot, "FILE",
         "draws the signals, onset and verdict: FILE.png, FILE.svg, - the terminal"},
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
            "usage: cordon monitor [OPTIONS] [FILE|-]\n"
            "       cordon monitor score [OPTIONS] FILE...\n\n"
            "Watches a model's output while it is written and says when it has gone bad. The last\n"
            "line is the verdict, printed as soon as it is reached. In the default mode a loop\n"
            "aborts, exact, with a number that counts, or drifting; in the literal mode the\n"
            "thresholds of entropy, repetition and perplexity do. score judges recorded ones, a "
            "line\n"
            "of JSON each, and says how high each signal rose and at which token.\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_MONITOR);
        return EXIT_DONE;
    }
    const bool score = words.count && strcmp(words.items[0], "score") == 0;
    static const char *const standard_input[] = {"-"};
    const char *const *paths = words.count ? words.items + score : standard_input;
    const size_t count = words.count ? words.count - score : 1;
    if (r == 0 && !count)
        r = err_set(&err, ERR_USAGE, "score: a FILE is missing; - is standard input");
    else if (r == 0 && !score && count > 1)
        r = err_set(&err, ERR_USAGE, "'%.40s' is one word too many; see --help", words.items[1]);
    else if (r == 0 && o.plot && count > 1)
        r = err_set(&err, ERR_USAGE, "--plot draws one FILE, and there are %zu", count);
    if (r == 0)
        r = read_options(&o, &c, &lines, &err);
    if (r == 0)
        r = run(&o, &c, lines, paths, count, score, &err);
    if (r < 0) {
        result_complain("cordon monitor", err.msg);
        return EXIT_USAGE;
    }
    return r;
}
