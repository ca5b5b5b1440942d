/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon stop` and `cordon resume`: everything ends now, and nothing begins until a person says so. */
#include "admin.h"
#include "base/jsonw.h"
#include "commands.h"
#include "options.h"
#include "output/visible.h"
#include "result.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RUNS 256

struct stop_options {
    const char *why;
    uint64_t patience_ms;
    bool list, json, help;
};

static void put_when(struct jsonw *j, const char *key, uint64_t seconds)
{
    if (seconds)
        jsonw_int(j, key, (int64_t)seconds);
    else
        jsonw_null(j, key);
}

static int print_json(struct gate *g, const struct gate_running *runs, size_t shown, size_t count)
{
    struct gate_stop_info info;
    struct buf out;
    buf_init(&out, 1 << 20);
    struct jsonw j = {.out = &out};
    gate_stop_read(g, &info);
    jsonw_open(&j, NULL, '{');
    jsonw_bool(&j, "stopped", info.stopped);
    put_when(&j, "since", info.since);
    jsonw_string(&j, "by", info.stopped ? info.who : NULL);
    jsonw_string(&j, "why", info.stopped && info.why[0] ? info.why : NULL);
    jsonw_int(&j, "count", (int64_t)count);
    jsonw_open(&j, "runs", '[');
    for (size_t i = 0; i < shown; i++) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "id", runs[i].run);
        jsonw_string(&j, "tool", runs[i].tool);
        jsonw_string(&j, "client", runs[i].client);
        jsonw_int(&j, "supervisor", runs[i].supervisor);
        jsonw_int(&j, "ms", (int64_t)runs[i].ms);
        jsonw_string(&j, "end", runs[i].end[0] ? runs[i].end : NULL);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    int r = j.bad || puts(out.data) < 0 ? EXIT_FAILED : EXIT_DONE;
    buf_done(&out);
    return r;
}

/* What is in the gate's file a user may have written: nothing in it acts on the reader's terminal. */
static void put_visible(const char *line)
{
    struct output_visible v = {.one_line = true};
    struct buf text;
    buf_init(&text, 8 * strlen(line) + 64);
    if (output_visible_add(&v, line, strlen(line), &text) == 0 &&
        output_visible_end(&v, &text) == 0)
        puts(text.data ? text.data : "");
    buf_done(&text);
}

static void print_runs(const struct gate_running *runs, size_t shown)
{
    for (size_t i = 0; i < shown; i++) {
        char line[256];
        snprintf(line, sizeof line, "  %-22.39s %-8.31s %-12.63s %6llu.%llu s  %s", runs[i].run,
                 runs[i].tool, runs[i].client, (unsigned long long)runs[i].ms / 1000,
                 (unsigned long long)runs[i].ms % 1000 / 100,
                 runs[i].end[0] ? runs[i].end : "running");
        put_visible(line);
    }
}

static void print_flag(struct gate *g)
{
    struct gate_stop_info info;
    char when[40] = "?", line[400];
    gate_stop_read(g, &info);
    time_t since = (time_t)info.since;
    struct tm tm;
    if (!info.stopped) {
        puts("not stopped");
        return;
    }
    if (gmtime_r(&since, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(line, sizeof line, "stopped since %s by %s%s%s", when, info.who,
             info.why[0] ? ": " : "", info.why);
    put_visible(line);
}

static int list(struct admin *admin, const struct stop_options *o)
{
    static struct gate_running runs[RUNS];
    size_t count = gate_running(admin->gate, runs, RUNS), shown = count < RUNS ? count : RUNS;
    if (o->json)
        return print_json(admin->gate, runs, shown, count);
    print_flag(admin->gate);
    printf("%zu running\n", count);
    print_runs(runs, shown);
    return EXIT_DONE;
}

static int stop(struct admin *admin, const struct stop_options *o, struct err *err)
{
    static struct gate_running runs[RUNS];
    size_t count = 0;
    int r = gate_stop(admin->gate, admin->who, o->why, o->patience_ms, runs, RUNS, &count, err);
    size_t shown = count < RUNS ? count : RUNS;
    bool left = false;
    for (size_t i = 0; i < shown; i++)
        left = left || strcmp(runs[i].end, "still running") == 0;
    int said = EXIT_DONE;
    if (o->json) {
        said = print_json(admin->gate, runs, shown, count);
    } else {
        struct gate_stop_info info;
        gate_stop_read(admin->gate, &info);
        printf("%s; %zu execution%s ended. New ones are %s.\n",
               info.stopped ? "stopped" : "stopped what runs", count, count == 1 ? "" : "s",
               info.stopped ? "refused until `cordon resume`" : "not refused");
        print_runs(runs, shown);
    }
    return r < 0 ? r : left ? EXIT_FAILED : said;
}

static int resume_runs(const struct admin *admin, const struct stop_options *o, struct err *err)
{
    struct gate_stop_info before = {0};
    gate_stop_read(admin->gate, &before);
    int r = gate_resume(admin->gate, admin->who, o->why, err);
    if (r == 0 && o->json)
        return print_json(admin->gate, NULL, 0, 0);
    if (r == 0)
        puts(before.stopped ? "resumed: runs may begin again" : "nothing was stopped");
    return r;
}

static int run(const char *who, bool resume, int argc, char **argv)
{
    struct stop_options o = {.why = "", .patience_ms = 5000};
    const struct option_row all[] = {
        {"why", OPTION_STRING, &o.why, "TEXT", "the reason, for the refusals and the record"},
        {"json", OPTION_FLAG, &o.json, NULL, "one JSON object"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
        {"patience", OPTION_MILLIS, &o.patience_ms, "TIME",
         "a supervisor that does not end its run is killed after (5s)"},
        {"list", OPTION_FLAG, &o.list, NULL, "stop nothing: tell what runs, and whether stopped"},
    };
    const size_t count = sizeof all / sizeof *all - (resume ? 2 : 0);
    struct err err = ERR_INIT;
    struct admin admin = {0};
    int next = 0, r = options_parse(argc, argv, all, count, &next, &err);
    if (r == 0 && next < argc)
        r = err_set(&err, ERR_USAGE, "unexpected argument '%.40s'; see --help", argv[next]);
    if (r < 0) {
        result_complain(who, err.msg);
        return EXIT_USAGE;
    }
    if (o.help) {
        puts(resume ? "usage: cordon resume [OPTIONS]\n\n"
                      "Lets executions begin again after `cordon stop`.\n"
                    : "usage: cordon stop [OPTIONS]\n\n"
                      "Ends every running execution at once and refuses new ones until `cordon "
                      "resume`.\n");
        options_print(all, count);
        exits_print(EXITS_OTHER);
        return EXIT_DONE;
    }
    r = resume ? admin_open(&admin, &err) : admin_open_bare(&admin, &err);
    if (r == 0 && resume) {
        r = resume_runs(&admin, &o, &err);
    } else if (r == 0) {
        r = o.list ? list(&admin, &o) : stop(&admin, &o, &err);
    }
    if (r < 0)
        result_complain(who, err.msg);
    fflush(stdout); /* what follows may have to wait for the audit's lock */
    err = (struct err)ERR_INIT;
    if ((admin.nevents && admin_record(&admin, &err) < 0) || admin_close(&admin, &err) < 0) {
        result_complain(who, err.msg);
        r = EXIT_FAILED;
    }
    return r < 0 ? EXIT_FAILED : r;
}

int cmd_stop(int argc, char **argv)
{
    return run("cordon stop", false, argc, argv);
}

int cmd_resume(int argc, char **argv)
{
    return run("cordon resume", true, argc, argv);
}
