/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon audit`: the log for people. Every line is checked on the way, also where only a few are shown: what
 * is not a record of ours is named on stderr and never printed among the records.
 *
 * Waits: poll in follow; a change of the folder; 1 s; looks again
 *        read in follow; nobody: inotify is non-blocking; at once; looks again */
#include "admin.h"
#include "audit_common.h"
#include "commands.h"
#include "options.h"
#include "result.h"

#include "base/jsonw.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

struct options {
    struct audit_filter filter;
    const char *since, *until, *expect;
    uint64_t lines, skip; /* skip: so many of those asked for come before what is shown */
    bool follow, json, help;
    bool headings; /* for a person at a terminal */
};

static int complain(const char *text)
{
    result_complain("cordon audit", text);
    return EXIT_USAGE;
}

/* Nobody has written yet, or something is in the way: both are told, and neither is a verdict. */
static int no_log(const struct err *err)
{
    char path[STATE_PATH_MAX], line[STATE_PATH_MAX + 64];
    struct err ignored = ERR_INIT;
    if (err->code == ERR_SYS && err->sys_errno == ENOENT &&
        state_path(path, sizeof path, &ignored) == 0)
        snprintf(line, sizeof line, "there is no log in %s", path);
    else
        snprintf(line, sizeof line, "%s", err->msg);
    result_complain("cordon audit", line);
    return EXIT_FAILED;
}

/* ---- tail, show, export ---- */

enum look { NOTHING, LINES, SHEETS, RAW };

static int one(struct options *o, const struct audit_step *s, enum look look, uint64_t *shown)
{
    json_t *j = NULL;
    if (s->wrong) {
        audit_complain_step(s);
        return EXIT_FAILED;
    }
    if (!audit_wanted(&o->filter, s, &j))
        return EXIT_DONE;
    if (o->skip || look == NOTHING) {
        o->skip -= o->skip > 0;
        json_decref(j);
        return EXIT_DONE;
    }
    if (!j && look != RAW)
        j = json_loadb(s->text, s->len, JSON_REJECT_DUPLICATES, NULL);
    if (look == RAW)
        audit_print_raw(s);
    else if (look == LINES)
        audit_print_line(s, j);
    else
        audit_print_sheet(s, j);
    json_decref(j);
    ++*shown;
    return EXIT_DONE;
}

/* Returns the worst of the single ones. */
static int all(struct options *o, struct audit_walk *w, enum look look, uint64_t *shown,
               struct err *err)
{
    struct audit_step s;
    int r = 0, status = EXIT_DONE;
    while (!ferror(stdout) && (r = audit_walk_next(w, &s, err)) == 1) {
        int got = one(o, &s, look, shown);
        status = got > status ? got : status;
    }
    return r < 0 ? r : status;
}

/* Waits until the folder changes. Where that cannot be watched it looks once a second. */
static int watch(void)
{
    char path[STATE_PATH_MAX + 16];
    struct err err = ERR_INIT;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0 && state_path(path, STATE_PATH_MAX, &err) == 0) {
        strncat(path, "/audit", sizeof path - strlen(path) - 1);
        if (inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) >= 0)
            return fd;
    }
    fd_close(fd);
    return -1;
}

static int follow(struct options *o, struct audit_walk *w, enum look look, uint64_t *shown,
                  struct err *err)
{
    FD_AUTO fd = watch();
    for (;;) {
        char events[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (fflush(stdout) != 0)
            return EXIT_FAILED;
        if (poll(&p, 1, 1000) > 0)
            while (read(fd, events, sizeof events) > 0)
                ;
        int r = audit_walk_again(w, err);
        if (r == 0)
            r = all(o, w, look, shown, err);
        if (r < 0)
            return r;
    }
}

static bool filtered(const struct audit_filter *f)
{
    return f->client || f->status || f->kind || f->id || f->until;
}

/* With a filter the last records are found by looking at ever more of the end of the log. *RET_FROM: how many records
 * from the end that is, all of them 0; *RET_FOUND: how many of those are asked for. */
static int look_back(const struct options *o, uint64_t *ret_from, uint64_t *ret_found,
                     struct err *err)
{
    for (uint64_t from = 1000;; from *= 10) {
        struct audit_walk *w;
        struct audit_step s;
        int r = audit_walk_new(NULL, &w, err);
        if (r < 0)
            return r;
        bool everything = audit_walk_last(w, from);
        *ret_found = 0;
        while ((r = audit_walk_next(w, &s, err)) == 1) {
            json_t *j = NULL;
            *ret_found += !s.wrong && audit_wanted(&o->filter, &s, &j);
            json_decref(j);
        }
        audit_walk_free(w);
        *ret_from = everything ? 0 : from;
        if (r < 0 || everything || *ret_found >= o->lines)
            return r;
    }
}

static int list(struct options *o, enum look look, bool last, uint64_t *shown)
{
    struct audit_walk *w = NULL;
    struct err err = ERR_INIT;
    uint64_t from = o->lines, found = 0;
    bool back = last && !o->since && filtered(&o->filter);
    int r = back ? look_back(o, &from, &found, &err) : 0;
    if (r == 0)
        r = audit_walk_new(NULL, &w, &err);
    if (r < 0)
        return no_log(&err);
    if (o->headings)
        audit_print_head();
    if (back)
        o->skip = found > o->lines ? found - o->lines : 0;
    if (last && !o->since && (from || !back))
        audit_walk_last(w, from);
    else if (o->since)
        audit_walk_since(w, o->filter.since);
    else if (o->filter.id)
        audit_walk_find(w, o->filter.id);
    r = all(o, w, o->lines || !last ? look : NOTHING, shown, &err);
    if (r >= 0 && o->follow)
        r = follow(o, w, look, shown, &err);
    audit_walk_free(w);
    if (r < 0) {
        result_complain("cordon audit", err.msg);
        r = EXIT_FAILED;
    }
    return r;
}

/* ---- verify ---- */

static void print_verdict(const struct audit_verdict *v)
{
    if (!v->good) {
        printf("broken at record %llu", (unsigned long long)v->bad_seq);
        if (v->bad_line)
            printf(" (%s:%llu)", v->bad_file, (unsigned long long)v->bad_line);
        else if (v->bad_file[0])
            printf(" (%s)", v->bad_file);
        printf(": %s\n", v->why);
        printf("%llu records before it are unchanged\n", (unsigned long long)v->records);
        return;
    }
    printf("OK: %llu records in %llu %s, none changed", (unsigned long long)v->records,
           (unsigned long long)v->files, v->files == 1 ? "file" : "files");
    if (v->records)
        printf(": %llu to %llu", (unsigned long long)v->first_seq, (unsigned long long)v->last_seq);
    printf("\nhead %llu:%s\n", (unsigned long long)v->last_seq, v->head);
    if (v->removed)
        printf("retention removed the records up to %llu; its anchor is signed\n",
               (unsigned long long)v->removed);
    if (v->open_runs)
        printf("%llu runs have begun and not ended\n", (unsigned long long)v->open_runs);
    if (v->ahead)
        printf("%llu records are not in the head yet: their writer was killed; the next one sees "
               "to it\n",
               (unsigned long long)v->ahead);
    if (v->torn_bytes)
        printf("the last %llu bytes are the beginning of a record: its writer was killed; the next "
               "one cuts them off\n",
               (unsigned long long)v->torn_bytes);
    if (v->unsynced)
        printf("%llu records did not reach the disk before the machine stopped; nobody was told "
               "that they had\n",
               (unsigned long long)v->unsynced);
    if (v->index_wrong)
        printf("index: %s, entry %llu: %s (%llu wrong in all). The log is whole, but `show` and "
               "`--since` may miss records of that day: remove the file, and they read the log\n",
               v->index_file, (unsigned long long)v->index_entry, v->index_why,
               (unsigned long long)v->index_wrong);
    if (v->index_missing)
        printf("index: %llu records have no entry: `show` and `--since` read the log there, which "
               "takes longer\n",
               (unsigned long long)v->index_missing);
}

static void print_verdict_json(const struct audit_verdict *v)
{
    struct buf out;
    buf_init(&out, 8192);
    struct jsonw j = {.out = &out};
    jsonw_open(&j, NULL, '{');
    jsonw_bool(&j, "ok", v->good);
    jsonw_int(&j, "records", (int64_t)v->records);
    jsonw_int(&j, "files", (int64_t)v->files);
    jsonw_int(&j, "first", (int64_t)v->first_seq);
    jsonw_int(&j, "last", (int64_t)v->last_seq);
    jsonw_string(&j, "head", v->good ? v->head : NULL);
    jsonw_int(&j, "removed", (int64_t)v->removed);
    jsonw_int(&j, "open_runs", (int64_t)v->open_runs);
    jsonw_int(&j, "ahead", (int64_t)v->ahead);
    jsonw_int(&j, "torn_bytes", (int64_t)v->torn_bytes);
    jsonw_int(&j, "unsynced", (int64_t)v->unsynced);
    jsonw_open(&j, "index", '{');
    jsonw_int(&j, "missing", (int64_t)v->index_missing);
    jsonw_int(&j, "wrong", (int64_t)v->index_wrong);
    jsonw_string(&j, "file", v->index_wrong ? v->index_file : NULL);
    jsonw_int(&j, "entry", (int64_t)v->index_entry);
    jsonw_string(&j, "reason", v->index_wrong ? v->index_why : NULL);
    jsonw_close(&j, '}');
    if (v->good) {
        jsonw_null(&j, "broken");
    } else {
        jsonw_open(&j, "broken", '{');
        jsonw_int(&j, "record", (int64_t)v->bad_seq);
        jsonw_string(&j, "file", v->bad_file);
        jsonw_int(&j, "line", (int64_t)v->bad_line);
        jsonw_string(&j, "reason", v->why);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, '}');
    if (!j.bad)
        puts(out.data);
    buf_done(&out);
}

static int read_noted(const char *text, struct audit_noted *ret)
{
    char *end;
    ret->seq = strtoull(text, &end, 10);
    if (end == text || *end != ':' || strlen(end + 1) != sizeof ret->hash - 1)
        return -1;
    memcpy(ret->hash, end + 1, sizeof ret->hash);
    return strspn(ret->hash, "0123456789abcdef") == sizeof ret->hash - 1 ? 0 : -1;
}

static int verify(const struct options *o)
{
    struct audit_verdict v;
    struct audit_noted noted;
    struct err err = ERR_INIT;
    if (o->expect && read_noted(o->expect, &noted) < 0)
        return complain("--expect takes what verify printed as head: NUMBER:HASH");
    if (audit_verify(NULL, o->expect ? &noted : NULL, &v, &err) < 0)
        return no_log(&err);
    if (o->json)
        print_verdict_json(&v);
    else
        print_verdict(&v);
    return v.good ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the command ---- */

static int show(struct options *o, const char *id)
{
    uint64_t shown = 0;
    o->filter.id = id;
    int status = list(o, o->json ? RAW : SHEETS, false, &shown);
    if (status == EXIT_DONE && shown == 0) {
        char line[160];
        snprintf(line, sizeof line, "no record has the execution id %.100s", id);
        result_complain("cordon audit", line);
        return EXIT_FAILED;
    }
    return status;
}

static uint64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const char *const verbs[] = {"tail", "show", "verify", "export", "anomalies"};
enum { VERBS = sizeof verbs / sizeof *verbs };

static bool is_verb(const char *word)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(word, verbs[i]) == 0)
            return true;
    return false;
}

static int no_verb(const char *word)
{
    struct err err = ERR_INIT;
    options_no_verb(word, verbs, VERBS, &err);
    return complain(err.msg);
}

static int dispatch(struct options *o, const struct option_list *words)
{
    const char *action = words->count ? words->items[0] : "";
    bool one_more = strcmp(action, "show") == 0;
    uint64_t shown = 0;
    if (!is_verb(action))
        return no_verb(words->count ? action : NULL);
    if (words->count > (one_more ? 2U : 1U))
        return complain("too many arguments; see --help");
    if (o->follow && strcmp(action, "tail") != 0)
        return complain("--follow is for tail");
    if (o->expect && strcmp(action, "verify") != 0)
        return complain("--expect is for verify");
    o->headings = strcmp(action, "tail") == 0 && !o->json && isatty(STDOUT_FILENO);
    if (strcmp(action, "tail") == 0)
        return list(o, o->json ? RAW : LINES, true, &shown);
    if (one_more)
        return words->count == 2 ? show(o, words->items[1])
                                 : complain("show which execution? cordon audit show ID");
    if (strcmp(action, "verify") == 0)
        return verify(o);
    if (strcmp(action, "export") == 0)
        return list(o, RAW, false, &shown);
    return audit_anomalies(&o->filter, wall_ms(), o->json);
}

int cmd_audit(int argc, char **argv)
{
    struct options o = {.lines = 10};
    struct option_list words = {0};
    struct err err = ERR_INIT;
    const struct option_row rows[] = {
        {"lines", OPTION_COUNT, &o.lines, "N", "tail: how many records (10)"},
        {"follow", OPTION_FLAG, &o.follow, NULL, "tail: go on as records are written"},
        {"since", OPTION_STRING, &o.since, "WHEN",
         "from then on: 30m, 2h, 7d (ago), 2026-11-15T10:30 (your time; with Z: UTC)"},
        {"until", OPTION_STRING, &o.until, "WHEN", "before then"},
        {"client", OPTION_STRING, &o.filter.client, "ID", "of this client alone"},
        {"status", OPTION_STRING, &o.filter.status, "WORD",
         "that ended so: ok, error, blocked, denied, ..."},
        {"kind", OPTION_STRING, &o.filter.kind, "WORD",
         "begin, end, lost, refusal, approval, breaker, stop, ..."},
        {"expect", OPTION_STRING, &o.expect, "HEAD",
         "verify: the log must hold this head, noted earlier"},
        {"json", OPTION_FLAG, &o.json, NULL, "JSON: a line a record, one object for verify"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
    };
    if (options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &err) < 0)
        return complain(err.msg);
    admin_pin_state();
    if (o.help) {
        puts("usage: cordon audit tail|show ID|verify|export|anomalies [OPTIONS]\n\n"
             "What ran, what was refused, and whether anybody changed the log.\n\n"
             "  tail       the last records, a line each\n"
             "  show ID    all that is known of one execution\n"
             "  verify     is every record there, as it was written? Exit status 1 if not\n"
             "  export     records as JSON lines\n"
             "  anomalies  what is unusual, client by client (the last hour, or --since)\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_OTHER);
        return EXIT_DONE;
    }
    if ((o.since && audit_when(o.since, wall_ms(), &o.filter.since, &err) < 0) ||
        (o.until && audit_when(o.until, wall_ms(), &o.filter.until, &err) < 0))
        return complain(err.msg);
    return dispatch(&o, &words);
}
