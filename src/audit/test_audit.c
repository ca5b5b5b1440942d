/* SPDX-License-Identifier: Apache-2.0 */
/* The whole room on a folder of its own, under a clock that the test turns: runs, events, days, crashes of
 * writers, retention, what a script finds in a record. */
#include "audit/inside.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/tap.h"

#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct folder folder;

static json_t *record(uint64_t seq)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    json_t *found = NULL;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return NULL;
    while (!found && audit_walk_next(w, &s, &err) == 1)
        if (s.seq == seq && !s.wrong)
            found = json_loadb(s.text, s.len, JSON_REJECT_DUPLICATES, NULL);
    audit_walk_free(w);
    return found;
}

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "(none)";
}

static bool good(struct audit_verdict *v)
{
    struct err err = ERR_INIT;
    int r = audit_verify(folder.path, NULL, v, &err);
    if (r < 0)
        printf("# verify: %s\n", err.msg);
    else if (!v->good)
        printf("# record %llu %s:%llu: %s\n", (unsigned long long)v->bad_seq, v->bad_file,
               (unsigned long long)v->bad_line, v->why);
    return r == 0 && v->good;
}

/* ---- what a record holds ---- */

static void members(void)
{
    static const char *const must[] = {
        /* the schema of the eight layers */
        "timestamp", "execution_id", "client_id", "code_hash", "code_size", "validation_result",
        "execution_time_ms", "exit_code", "memory_used_mb", "output_size", "error_type",
        "security_violations",
        /* the same values under the keys of the tool record (docs/audit.md) */
        "ts", "tool", "args", "duration", "success", "workerId",
        /* ours */
        "steps", "seq", "prev", "hash", "mac", "kind", "status", "layer", "reason", "signal",
        "begin_seq", "session", "language", "profile", "role", "violations_total", "writer"};
    struct audit *a = folder_open(&folder, NULL);
    struct audit_ticket t;
    struct err err = ERR_INIT;
    static const char *const argv[] = {"curl", "--token", "hunter2", "-H",
                                       "Authorization: Bearer abcdefgh1234"};
    static const char *const violations[] = {"connect 8.8.8.8:53", "open /etc/shadow \033[2J"};
    const struct audit_arg args[] = {
        {.name = "path", .text = "/tools/MyTool.js"},
        {.name = "password", .text = "hunter2"},
        {.name = "timeout", .kind = AUDIT_ARG_NUMBER, .number = -5},
        {.name = "argv", .kind = AUDIT_ARG_LIST, .list = argv, .count = 5}};
    const struct audit_facts f = {.execution_id = "run-1",
                                  .client_id = "uid:1000",
                                  .tool = "run",
                                  .worker_id = "w7",
                                  .language = "python",
                                  .profile = "strict",
                                  .role = "analyze",
                                  .code = "print(1)",
                                  .code_len = 8,
                                  .args = args,
                                  .nargs = 4};
    tap_ok(a && audit_begin_run(a, &f, &t, &err) == 0, "a run begins: %s", err.msg);
    const struct audit_outcome o = {.status = "error",
                                    .layer = "network",
                                    .reason = "bad \xff text",
                                    .error_type = "SecurityError",
                                    .validation = AUDIT_PASSED,
                                    .wall_us = 45999,
                                    .has_exit_code = true,
                                    .exit_code = 3,
                                    .memory_bytes = 5 << 20,
                                    .output_bytes = 99,
                                    .violations = violations,
                                    .nviolations = 2,
                                    .steps =
                                        (const struct audit_span[]){{"admit", 12}, {"run", 34}},
                                    .nsteps = 2};
    const struct audit_facts e = {.outcome = &o};
    tap_ok(audit_end_run(a, &t, &e, &err) == 0, "the end of a run is written: %s", err.msg);
    tap_eq_int(audit_end_run(a, &t, &e, &err), ERR_STATE, "the end of a run is written only once");
    tap_ok(audit_event(a, AUDIT_BREAKER, &(struct audit_facts){.tool = "search"}, &err) == 0,
           "an event is written: %s", err.msg);
    tap_eq_int(audit_event(a, AUDIT_END, &f, &err), ERR_USAGE, "an end is no event");
    audit_close(a);

    for (uint64_t seq = 1; seq <= 3; seq++) {
        json_t *j = record(seq);
        size_t missing = 0;
        for (size_t i = 0; i < sizeof must / sizeof *must; i++)
            if (!json_object_get(j, must[i])) {
                printf("# no %s\n", must[i]);
                missing++;
            }
        tap_ok(j && missing == 0 && json_object_size(j) == sizeof must / sizeof *must,
               "record %llu has every member", (unsigned long long)seq);
        json_decref(j);
    }
    json_t *b = record(1), *end = record(2);
    tap_eq_str(text(b, "kind"), "begin", "the first record is the run's begin");
    tap_eq_str(text(b, "code_hash"),
               "d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99",
               "a begin record has the SHA-256 of the code");
    tap_ok(json_is_null(json_object_get(b, "exit_code")) &&
               json_is_null(json_object_get(b, "success")),
           "a begin knows no outcome");
    const json_t *arg = json_object_get(b, "args");
    tap_eq_str(text(arg, "path"), "/tools/MyTool.js", "a begin record keeps a plain argument");
    tap_eq_str(text(arg, "password"), "[redacted]", "a begin record redacts the argument password");
    tap_eq_str(json_string_value(json_array_get(json_object_get(arg, "argv"), 2)), "[redacted]",
               "a begin record redacts the word after --token");
    tap_eq_str(json_string_value(json_array_get(json_object_get(arg, "argv"), 4)),
               "Authorization: Bearer [redacted]",
               "a begin record redacts the token of an Authorization header");
    tap_eq_str(text(end, "kind"), "end", "the second record is the run's end");
    tap_eq_int(json_integer_value(json_object_get(end, "begin_seq")), 1,
               "an end record names the number of its begin");
    tap_eq_str(text(end, "execution_id"), "run-1", "what the begin said stands in the end too");
    tap_eq_str(text(end, "workerId"), "w7", "an end record names its worker");
    tap_eq_str(text(end, "role"), "analyze", "the end of a run has the role of its begin");
    tap_eq_str(text(end, "validation_result"), "passed", "an end record has validation_result");
    tap_eq_int(json_integer_value(json_object_get(end, "execution_time_ms")), 45,
               "an end record has execution_time_ms");
    tap_eq_int(json_integer_value(json_object_get(end, "duration")), 45,
               "an end record has duration");
    tap_eq_int(json_integer_value(json_object_get(end, "memory_used_mb")), 5,
               "an end record has memory_used_mb");
    tap_eq_int(json_integer_value(json_object_get(end, "output_size")), 99,
               "an end record has output_size");
    tap_eq_int(json_integer_value(json_object_get(end, "exit_code")), 3,
               "an end record has exit_code");
    tap_ok(json_is_false(json_object_get(end, "success")), "an end record has success");
    tap_eq_int((long long)json_array_size(json_object_get(end, "security_violations")), 2,
               "an end record has its violations");
    tap_eq_int(json_integer_value(json_object_get(json_object_get(end, "steps"), "run")), 34,
               "an end record has a step and its time");
    tap_eq_str(text(end, "prev"), text(b, "hash"),
               "the end record's prev is the hash of the begin record");
    json_decref(b);
    json_decref(end);
    struct audit_verdict v = {0};
    tap_ok(good(&v) && v.records == 3 && v.open_runs == 0, "the log verifies to its last record");
    struct stat st;
    char path[400];
    snprintf(path, sizeof path, "%s/audit/2026-11-15.jsonl", folder.path);
    tap_ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600, "the day's file has mode 0600");
    snprintf(path, sizeof path, "%s/seal/key", folder.path);
    tap_ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600,
           "the file of the key has mode 0600");
}

/* Hostile facts never keep a record from being written. */
static void large(void)
{
    struct audit *a = folder_open(&folder, NULL);
    struct err err = ERR_INIT;
    struct audit_verdict v = {0};
    char *big = malloc(3000000);
    const char *list[300];
    memset(big, 1, 3000000);
    big[2999999] = 0;
    for (size_t i = 0; i < 300; i++)
        list[i] = big;
    const struct audit_arg args[] = {
        {.name = "a", .text = big},
        {.name = "b", .kind = AUDIT_ARG_LIST, .list = list, .count = 300}};
    const struct audit_outcome o = {
        .status = big, .reason = big, .error_type = big, .violations = list, .nviolations = 300};
    const struct audit_facts f = {.execution_id = big,
                                  .client_id = big,
                                  .tool = big,
                                  .args = args,
                                  .nargs = 2,
                                  .outcome = &o};
    tap_ok(audit_event(a, AUDIT_TOOL, &f, &err) == 0, "facts of 900 megabytes are a record: %s",
           err.msg);
    json_t *j = record(audit_last_seq(a));
    tap_ok(j && json_integer_value(json_object_get(j, "violations_total")) == 300,
           "a record of huge facts counts all violations");
    json_decref(j);
    tap_ok(good(&v), "a log with a record of huge facts verifies");
    free(big);
    audit_close(a);
}

/* ---- days, clocks ---- */

static bool exists(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/audit/%s", folder.path, name);
    return access(path, F_OK) == 0;
}

static int event(struct audit *a)
{
    struct err err = ERR_INIT;
    int r = audit_event(a, AUDIT_TOOL, &(struct audit_facts){.tool = "t"}, &err);
    if (r < 0)
        printf("# %s\n", err.msg);
    return r;
}

static void clocks(void)
{
    struct audit *a = folder_open(&folder, NULL), *b;
    struct audit_verdict v = {0};
    uint64_t start = folder.now;
    tap_ok(event(a) == 0, "a record of today is written");
    folder.now += FOLDER_DAY;
    tap_ok(event(a) == 0 && exists("2026-11-16.jsonl"), "tomorrow has a file of its own");
    b = folder_open(&folder, NULL);
    tap_ok(event(b) == 0 && event(a) == 0,
           "a second writer and the first one write on the same day");
    folder.now = start;
    tap_ok(event(a) == 0 && good(&v), "the clock goes back: the chain does not");
    folder.now = start - 5 * FOLDER_DAY;
    tap_ok(
        event(b) == 0 && event(a) == 0 && exists("2026-11-10.jsonl") && good(&v),
        "back to a day that has no file: it gets one, and the order is still that of the records");
    folder.now = start + 70ULL * 365 * FOLDER_DAY;
    tap_ok(event(a) == 0 && good(&v),
           "the clock goes far into the future: the chain still verifies");
    folder.now = start + 2 * FOLDER_DAY;
    tap_ok(event(b) == 0 && event(a) == 0 && exists("2026-11-17.jsonl") && good(&v),
           "the clock comes back from the far future: the chain still verifies");
    tap_eq_int((long long)v.files, 5, "the log of five days has five files");
    audit_close(a);
    audit_close(b);
}

/* ---- two writers ---- */

static void two_writers(void)
{
    enum { WRITERS = 4, EACH = 500 };
    struct audit_verdict v = {0};
    struct err err = ERR_INIT;
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0,
           "the log verifies before four writers write at once");
    uint64_t before = v.last_seq;
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            struct audit *a = folder_open(&folder, NULL);
            struct audit_ticket t;
            bool fine = a != NULL;
            for (int n = 0; n < EACH && fine; n++) {
                const struct audit_facts f = {.execution_id = "x", .client_id = "c", .tool = "run"};
                const struct audit_outcome o = {.status = "ok"};
                fine = audit_begin_run(a, &f, &t, &err) == 0 &&
                       audit_end_run(a, &t, &(struct audit_facts){.outcome = &o}, &err) == 0;
            }
            audit_close(a);
            _exit(!fine);
        }
    int bad = 0, status = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    tap_eq_int(bad, 0, "four processes write at once");
    tap_ok(good(&v) && v.open_runs == 0, "the log verifies to its last record");
    tap_eq_int((long long)(v.last_seq - before), 2 * WRITERS * EACH,
               "every record of four writers is there");
}

/* ---- runs without an end ---- */

/* REAPED: false: it stays a zombie. */
static pid_t begin_in_child(const char *id, bool end_first, bool reaped)
{
    siginfo_t info;
    pid_t child = fork();
    if (child == 0) {
        struct err err = ERR_INIT;
        struct audit *a = folder_open(&folder, NULL);
        struct audit_ticket t, u;
        const struct audit_facts f = {.execution_id = id,
                                      .client_id = "c \"quoted\"",
                                      .tool = "run",
                                      .code = "x",
                                      .code_len = 1};
        const struct audit_outcome o = {.status = "ok"};
        bool fine =
            a && audit_begin_run(a, &f, &t, &err) == 0 && audit_begin_run(a, &f, &u, &err) == 0 &&
            (!end_first || audit_end_run(a, &u, &(struct audit_facts){.outcome = &o}, &err) == 0);
        _exit(!fine);
    }
    tap_ok(waitid(P_PID, (id_t)child, &info, reaped ? WEXITED : WEXITED | WNOWAIT) == 0 &&
               info.si_code == CLD_EXITED && info.si_status == 0,
           "a writer dies with its run open");
    return child;
}

static void lost_unreaped(void)
{
    struct audit_verdict v = {0};
    const pid_t child = begin_in_child("unreaped", true, false);
    folder.now += 11000; /* before that, whoever has its number counts as it */
    struct audit *a = folder_open(&folder, NULL);
    tap_ok(good(&v) && v.open_runs == 0, "a run whose writer died and was not reaped is closed");
    audit_close(a);
    tap_ok(waitpid(child, NULL, 0) == child, "that writer is reaped");
}

static void lost(void)
{
    struct audit_verdict v = {0};
    begin_in_child("orphan", true, true);
    tap_ok(good(&v) && v.open_runs == 1, "the run of a writer that died is open");
    uint64_t seq = v.last_seq;
    struct audit *a = folder_open(&folder, NULL);
    tap_ok(good(&v) && v.open_runs == 0 && v.last_seq == seq + 1,
           "the next start closes a run whose writer died");
    json_t *j = record(seq + 1);
    tap_eq_str(text(j, "kind"), "lost", "a run whose writer died gets a record of kind lost");
    tap_eq_str(text(j, "execution_id"), "orphan", "a lost record has the execution id of its run");
    tap_eq_str(text(j, "client_id"), "c \"quoted\"", "a lost record has the client of its run");
    tap_eq_str(text(j, "code_hash"),
               "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
               "a lost record has the code hash of its run");
    tap_ok(json_is_false(json_object_get(j, "success")),
           "a lost record says that its run was no success");
    json_decref(j);
    struct audit *b = folder_open(&folder, NULL);
    tap_ok(good(&v) && v.last_seq == seq + 1, "a run is recorded as lost only once");
    audit_close(b);

    struct audit_ticket t;
    struct err err = ERR_INIT;
    tap_ok(audit_begin_run(a, &(struct audit_facts){.execution_id = "mine"}, &t, &err) == 0,
           "a run of a living writer begins");
    b = folder_open(&folder, NULL);
    tap_ok(good(&v) && v.open_runs == 1,
           "another writer's start does not close a run whose writer lives");
    audit_close(b);
    tap_ok(audit_end_run(a, &t, &(struct audit_facts){0}, &err) == 0 && good(&v) &&
               v.open_runs == 0,
           "a run that another writer's start left open ends normally");
    audit_close(a);
}

/* A machine that was restarted: nothing in memory is left, the table of runs means nothing. */
static void restarted(void)
{
    struct audit_verdict v = {0};
    struct err err = ERR_INIT;
    begin_in_child("before-the-cut", true, true);
    tap_ok(good(&v) && v.open_runs == 1, "a run that begins before a power cut is open");
    uint64_t seq = v.last_seq;
    folder_other_boot(&folder);
    char path[400];
    snprintf(path, sizeof path, "%s/seal/runs", folder.path);
    tap_ok(truncate(path, 0) == 0, "the table of runs did not reach the disk");
    tap_ok(good(&v), "verify passes before anybody repaired");
    struct audit *a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && good(&v) && v.open_runs == 0 && v.last_seq == seq + 2,
           "after a power cut the lost record comes before the new one");
    json_t *j = record(seq + 1);
    tap_eq_str(text(j, "kind"), "lost",
               "a run that was open at a power cut gets a record of kind lost");
    tap_eq_str(text(j, "execution_id"), "before-the-cut",
               "a lost record after a power cut has the execution id of its run");
    json_decref(j);
    audit_close(a);
    (void)err;
}

/* ---- a power cut: what reached the disk of the log, and what of the head ---- */

struct disk {
    char head[AUDIT_HEAD_FILE];
    off_t log; /* its length */
};

static void file_names(char head[400], char log[400])
{
    char name[AUDIT_NAME_MAX];
    audit_day_name(audit_day_of(folder.now), name);
    snprintf(head, 400, "%s/seal/head", folder.path);
    snprintf(log, 400, "%s/audit/%.20s", folder.path, name);
}

static void look_at_disk(struct disk *d)
{
    char head[400], log[400];
    struct stat st = {0};
    file_names(head, log);
    FILE *f = fopen(head, "re");
    if (!f || fread(d->head, 1, sizeof d->head, f) != sizeof d->head || stat(log, &st) < 0)
        printf("# the state could not be read\n");
    if (f)
        fclose(f);
    d->log = st.st_size;
}

/* NOW: the head as of the last append; SYNCED: as of the last fsync. */
static void cut_power(const struct disk *now, const struct disk *synced, off_t log_length)
{
    char head[400], log[400];
    file_names(head, log);
    int fd = open(head, O_WRONLY | O_CLOEXEC);
    bool fine = pwrite(fd, now->head, AUDIT_HEAD_SET, 0) == AUDIT_HEAD_SET &&
                pwrite(fd, synced->head + AUDIT_HEAD_SET, AUDIT_HEAD_SET, AUDIT_HEAD_SET) ==
                    AUDIT_HEAD_SET &&
                truncate(log, log_length) == 0;
    close(fd);
    if (!fine)
        printf("# the state could not be written\n");
    folder_other_boot(&folder);
}

static void power_cut(void)
{
    struct audit_config c;
    struct audit_verdict v = {0};
    struct disk first, second;
    folder.now += FOLDER_DAY;
    struct audit *a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && event(a) == 0, "two records are written and synced");
    uint64_t seq = audit_last_seq(a);
    look_at_disk(&first);
    tap_ok(event(a) == 0 && event(a) == 0, "two more records are written");
    look_at_disk(&second);
    audit_close(a);

    cut_power(&second, &first, first.log);
    tap_ok(
        good(&v) && v.unsynced == 2 && v.last_seq == seq,
        "the head reached the disk, the last records did not, and nobody was told that they had");
    a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && good(&v) && v.last_seq == seq + 2,
           "a writer records that unsynced records are missing, and goes on");
    json_t *j = record(seq + 1);
    tap_eq_str(text(j, "kind"), "repair", "missing records are told in a record of kind repair");
    tap_eq_int(json_integer_value(json_object_get(json_object_get(j, "args"), "records")), 2,
               "a repair record has the number of missing records");
    json_decref(j);

    seq = audit_last_seq(a);
    look_at_disk(&first);
    tap_ok(event(a) == 0 && event(a) == 0, "two more records are written");
    look_at_disk(&second);
    audit_close(a);
    cut_power(&first, &first, second.log);
    tap_ok(good(&v) && v.ahead == 2 && v.last_seq == seq + 2,
           "the records reached the disk, the head did not");
    a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && good(&v) && v.last_seq == seq + 3 && v.ahead == 0,
           "records that reached the disk before their head are not lost");

    look_at_disk(&first);
    seq = audit_last_seq(a);
    audit_close(a);
    cut_power(&first, &first, first.log + 300);
    tap_ok(good(&v) && v.torn_bytes == 300,
           "the file became longer, its new bytes did not reach the disk");
    a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && good(&v) && v.last_seq == seq + 2 && v.torn_bytes == 0,
           "bytes that did not reach the disk are cut off");
    audit_close(a);

    audit_config_init(&c);
    c.sync = AUDIT_SYNC_OFF;
    a = folder_open(&folder, &c);
    look_at_disk(&first);
    seq = audit_last_seq(a) ? audit_last_seq(a) : seq + 2;
    tap_ok(event(a) == 0 && event(a) == 0, "two records are acknowledged without fsync");
    look_at_disk(&second);
    audit_close(a);
    cut_power(&second, &first, first.log);
    tap_ok(!good(&v) && v.bad_seq == seq + 1 && strstr(v.why, "fsync off"),
           "records that were acknowledged without fsync and are lost are named by number: %s",
           v.why);
    a = folder_open(&folder, NULL);
    tap_ok(event(a) == 0 && !good(&v) && v.bad_seq == seq + 1,
           "records that were lost without fsync are still named after a writer went on");
    audit_close(a);
    tap_ok(folder_remove(&folder) && folder_make(&folder), "a new log is begun");
}

/* ---- retention ---- */

static void retention(void)
{
    struct audit_config c;
    struct audit_verdict v = {0};
    audit_config_init(&c);
    c.retention_days = 10;
    struct audit *a = folder_open(&folder, &c);
    folder.now += 30 * FOLDER_DAY;
    uint64_t start = folder.now;
    for (int day = 0; day < 40; day++) {
        folder.now = start + (uint64_t)day * FOLDER_DAY;
        if (event(a) < 0 || event(a) < 0)
            break;
    }
    tap_ok(good(&v) && v.removed > 0 && v.first_seq == v.removed + 1,
           "old days went, and verify passes: %llu removed", (unsigned long long)v.removed);
    tap_eq_int((long long)v.files, 11, "ten days and today are left");
    char path[400], away[420];
    snprintf(path, sizeof path, "%s/seal/anchor", folder.path);
    snprintf(away, sizeof away, "%s.away", path);
    tap_ok(rename(path, away) == 0 && !good(&v) && v.bad_seq == 1,
           "a log whose oldest days are gone does not verify without its anchor");
    tap_ok(rename(away, path) == 0 && good(&v),
           "a log whose oldest days are gone verifies with its anchor");
    uint64_t removed = v.removed;
    folder.now += 4000ULL * FOLDER_DAY;
    tap_ok(event(a) == 0 && good(&v) && v.removed == removed,
           "a clock that jumps ahead empties nothing");
    folder.now -= 4000ULL * FOLDER_DAY;
    tap_ok(event(a) == 0 && good(&v),
           "a clock that comes back from a jump ahead leaves the log whole");
    audit_close(a);
}

/* A run that begins before midnight and ends after it, when others have turned the page and it has no rights any more. */
static void over_midnight(void)
{
    struct audit *a = folder_open(&folder, NULL), *b = folder_open(&folder, NULL);
    struct audit_verdict before = {0}, v = {0};
    struct audit_ticket t;
    struct err err = ERR_INIT;
    char name[AUDIT_NAME_MAX];
    folder.now += FOLDER_DAY - folder.now % FOLDER_DAY - 1000;
    audit_day_name(audit_day_of(folder.now + 2000), name);
    tap_ok(event(b) == 0 && good(&before) && !exists(name), "a record before midnight is written");
    tap_ok(audit_begin_run(a, &(struct audit_facts){.execution_id = "late", .most_ms = 5000}, &t,
                           &err) == 0 &&
               exists(name) && good(&v) && v.open_runs == before.open_runs + 1,
           "a run that may end after midnight has the file of that day: %s", err.msg);
    folder.now += 2000;
    tap_ok(event(b) == 0 && good(&v), "another process turns the page at midnight");
    folder_rights(&folder, false);
    int r = audit_end_run(a, &t, &(struct audit_facts){0}, &err);
    folder_rights(&folder, true);
    tap_ok(r == 0 && good(&v) && v.open_runs == before.open_runs && v.records == before.records + 3,
           "a process that gave up its rights writes the end of its run after midnight: %s",
           err.msg);
    audit_close(a);
    audit_close(b);
}

/* The file of a day that was made ahead, and on which nothing happened. */
static void unused_day(void)
{
    struct audit *a = folder_open(&folder, NULL);
    struct audit_verdict v = {0};
    struct audit_ticket t;
    struct err err = ERR_INIT;
    char name[AUDIT_NAME_MAX];
    const struct audit_facts f = {.execution_id = "long", .most_ms = FOLDER_DAY};
    audit_day_name(audit_day_of(folder.now + FOLDER_DAY), name);
    tap_ok(audit_begin_run(a, &f, &t, &err) == 0 && exists(name) &&
               audit_end_run(a, &t, &(struct audit_facts){0}, &err) == 0,
           "a run that may take a day makes the file of tomorrow: %s", err.msg);
    folder.now += 2 * FOLDER_DAY;
    tap_ok(audit_begin_run(a, &f, &t, &err) == 0 &&
               audit_end_run(a, &t, &(struct audit_facts){0}, &err) == 0 && !exists(name) &&
               good(&v),
           "the file of a day without a record goes on the next one: %s", err.msg);
    audit_close(a);
}

static void refusals_of_the_place(void)
{
    struct audit_config c;
    struct audit *a = NULL;
    struct err err = ERR_INIT;
    char path[400], away[420];
    audit_config_init(&c);
    c.state = folder.path;
    snprintf(path, sizeof path, "%s/seal/key", folder.path);
    snprintf(away, sizeof away, "%s.away", path);
    tap_ok(rename(path, away) == 0 && audit_open(&c, &a, &err) == ERR_STATE,
           "a log without its key is not begun anew: %s", err.msg);
    tap_ok(rename(away, path) == 0 && chmod(path, 0644) == 0 &&
               audit_open(&c, &a, &err) == ERR_STATE,
           "a key that others can read is refused: %s", err.msg);
    tap_ok(chmod(path, 0600) == 0 && audit_open(&c, &a, &err) == 0,
           "a log whose key has its mode again opens");
    audit_close(a);
}

int main(void)
{
    if (!tap_ok(folder_make(&folder), "a folder for the log is made"))
        return tap_done();
    members();
    large();
    clocks();
    two_writers();
    lost();
    lost_unreaped();
    restarted();
    power_cut();
    retention();
    tap_ok(folder_remove(&folder) && folder_make(&folder), "a new log is begun");
    over_midnight();
    unused_day();
    refusals_of_the_place();
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
