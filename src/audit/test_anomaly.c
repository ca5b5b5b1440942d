/* SPDX-License-Identifier: Apache-2.0 */
/* The anomaly rules over a window, per client, under a clock that the test turns; alerts as records, to a file, to a
 * command. */
#include "audit/inside.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/tap.h"

#include <sys/stat.h>
#include <sys/wait.h>

static struct folder folder;
static int number;

struct job {
    const char *client, *code;
    uint64_t ms;
    bool blocked;
    size_t violations;
    const char *status;
};

/* Runs it, and returns the one alert that it raised ("" for none, "several" for more). */
static const char *run(struct audit *a, const struct job *j)
{
    static char id[32], text[300];
    static const char *const violation[] = {"v", "v", "v", "v", "v", "v"};
    struct audit_ticket t;
    struct err err = ERR_INIT;
    snprintf(id, sizeof id, "run-%d", ++number);
    char code[32];
    snprintf(code, sizeof code, "code %d", number);
    const char *source = j->code ? j->code : code;
    const struct audit_outcome o = {.status = j->status    ? j->status
                                              : j->blocked ? "blocked"
                                                           : "ok",
                                    .validation = j->blocked ? AUDIT_BLOCKED : AUDIT_PASSED,
                                    .wall_us = j->ms * 1000,
                                    .has_exit_code = !j->blocked,
                                    .violations = violation,
                                    .nviolations = j->violations};
    const struct audit_facts f = {.execution_id = id,
                                  .client_id = j->client,
                                  .tool = "run",
                                  .code = source,
                                  .code_len = strlen(source),
                                  .outcome = &o};
    int r = j->blocked ? audit_event(a, AUDIT_REFUSAL, &f, &err) : audit_begin_run(a, &f, &t, &err);
    if (r == 0 && !j->blocked)
        r = audit_end_run(a, &t, &f, &err);
    size_t n;
    const char *const *alerts = audit_alerts(a, &n);
    snprintf(text, sizeof text, "%s",
             r < 0    ? err.msg
             : n == 0 ? ""
             : n == 1 ? alerts[0]
                      : "several");
    return text;
}

static void failures(struct audit *a)
{
    const struct job bad = {.client = "f", .blocked = true},
                     other = {.client = "g", .blocked = true};
    int alerts = 0;
    for (int i = 0; i < 10; i++)
        alerts += run(a, &bad)[0] != 0;
    tap_eq_int(alerts, 0, "ten validation failures of a client raise no alert");
    tap_eq_str(run(a, &other), "", "validation failures of another client are counted apart");
    tap_eq_str(run(a, &bad), "Excessive validation failures: 11",
               "the eleventh validation failure of a client raises an alert");
    tap_eq_str(run(a, &bad), "", "the twelfth validation failure does not repeat the alert");
    for (int i = 13; i <= 21; i++)
        alerts += run(a, &bad)[0] != 0;
    tap_eq_int(alerts, 0, "validation failures 13 to 21 do not repeat the alert");
    tap_eq_str(run(a, &bad), "Excessive validation failures: 22",
               "the alert about validation failures is repeated at 22, twice as many");
    folder.now += 3600001;
    tap_eq_str(run(a, &bad), "", "validation failures are forgotten after an hour");
    for (int i = 2; i <= 10; i++)
        alerts += run(a, &bad)[0] != 0;
    tap_eq_int(alerts, 0, "ten validation failures after that hour raise no alert");
    tap_eq_str(run(a, &bad), "Excessive validation failures: 11",
               "the eleventh validation failure after that hour raises an alert");
}

static void times(struct audit *a)
{
    for (int i = 0; i < 3; i++)
        tap_eq_str(run(a, &(struct job){.client = "t", .ms = 20}), "", "a run of 20 ms");
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 5000}), "",
               "fewer than five records never alert on time");
    folder.now += 3600001;
    for (int i = 0; i < 4; i++)
        tap_eq_str(run(a, &(struct job){.client = "t", .ms = 20}), "", "a run of 20 ms");
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 200}), "",
               "a run of ten times the mean raises no alert");
    folder.now += 3600001;
    for (int i = 0; i < 4; i++)
        tap_eq_str(run(a, &(struct job){.client = "t", .ms = 20}), "", "a run of 20 ms");
    char want[128];
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 201, .status = "timeout"}), "",
               "a run that its time limit ended raises no alert about its time");
    folder.now += 3600001;
    for (int i = 0; i < 4; i++)
        tap_eq_str(run(a, &(struct job){.client = "t", .ms = 20}), "", "a run of 20 ms");
    snprintf(want, sizeof want,
             "Unusually long execution: run-%d: took 0.201 s; the mean of this client is 0.020 s",
             number + 1);
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 201}), want,
               "a run of more than ten times the mean raises an alert");
    folder.now += 3600001;
    for (int i = 0; i < 4; i++)
        tap_eq_str(run(a, &(struct job){.client = "t", .ms = 0}), "", "a run of less than 1 ms");
    snprintf(want, sizeof want,
             "Unusually long execution: run-%d: took 1.9 s; the mean of this client is less than "
             "0.001 s",
             number + 1);
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 1999}), want,
               "the alert about a long run names its time and the mean in seconds");
    folder.now += 3600001;
    for (int i = 0; i < 20; i++)
        if (run(a, &(struct job){.client = "t", .ms = 1})[0])
            tap_ok(false, "a run of 1 ms");
    tap_eq_str(run(a, &(struct job){.client = "t", .ms = 99}), "",
               "a run below 100 ms raises no alert, whatever the mean");
}

static void doubles(struct audit *a)
{
    const struct job same = {.client = "d", .code = "print(1)"};
    tap_eq_str(run(a, &same), "", "the first run of a program raises no alert");
    tap_eq_str(run(a, &(struct job){.client = "e", .code = "print(1)"}), "",
               "the same program of another client raises no alert");
    tap_eq_str(run(a, &(struct job){.client = "d"}), "",
               "another program of the same client raises no alert");
    size_t raised = 0;
    for (int i = 2; i < 20; i++)
        raised += run(a, &same)[0] != 0;
    tap_eq_int((long long)raised, 0,
               "a program that is run again, up to 19 times, raises no alert");
    tap_eq_str(run(a, &same), "Duplicate code executions detected",
               "the 20th run of the same program raises an alert");
    tap_eq_str(run(a, &same), "", "the alert about the same program is raised once in a window");
    folder.now += 3600001;
    tap_eq_str(run(a, &same), "", "the same program an hour later raises no alert");
}

static void violations(struct audit *a)
{
    char want[64];
    tap_eq_str(run(a, &(struct job){.client = "v", .violations = 3}), "",
               "three violations in a run raise no alert");
    snprintf(want, sizeof want, "Excessive violations: 4 in run-%d", number + 1);
    tap_eq_str(run(a, &(struct job){.client = "v", .violations = 4}), want,
               "four violations in a run raise an alert at once");
}

/* More clients than there are places, more runs than a ring holds. */
static void many(struct audit *a)
{
    char client[32];
    int wrong = 0;
    for (int i = 0; i < 400; i++) {
        snprintf(client, sizeof client, "many-%d", i);
        wrong += run(a, &(struct job){.client = client, .blocked = true})[0] != 0;
    }
    tap_eq_int(wrong, 0, "four hundred clients with one failure each raise no alert");
    for (int i = 0; i < 1100; i++)
        wrong += run(a, &(struct job){.client = "busy", .ms = 30})[0] != 0;
    tap_eq_int(wrong, 0, "eleven hundred runs of one client raise no alert");
    tap_ok(run(a, &(struct job){.client = "busy", .ms = 400})[0] != 0,
           "a slow run after eleven hundred fast ones still raises an alert");
}

static bool contains(const char *path, const char *want, int tries)
{
    char data[8192];
    for (int i = 0; i < tries; i++) { /* a command takes its time */
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(data, 1, sizeof data - 1, f) : 0;
        data[n] = 0;
        if (f)
            fclose(f);
        if (strstr(data, want))
            return true;
        usleep(20000);
    }
    printf("# %s has no '%s'\n", path, want);
    return false;
}

static uint64_t count_records(const char *want)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    uint64_t n = 0;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return 0;
    while (audit_walk_next(w, &s, &err) == 1)
        n += s.kind == AUDIT_ALERT && memmem(s.text, s.len, want, strlen(want));
    audit_walk_free(w);
    return n;
}

static void delivery(void)
{
    char file[400], script[400], seen[400], text[900];
    struct stat st;
    snprintf(file, sizeof file, "%s/alerts", folder.path);
    snprintf(script, sizeof script, "%s/tell", folder.path);
    snprintf(seen, sizeof seen, "%s/seen", folder.path);
    snprintf(text, sizeof text,
             "#!/bin/sh\n{ cat; echo \"$1\"; env; ls -l /proc/self/fd; } >'%s'\n", seen);
    FILE *f = fopen(script, "we");
    fputs(text, f);
    fclose(f);
    chmod(script, 0700);
    const char *const command[] = {script, "argument; touch /tmp/no"};
    struct audit_config c;
    audit_config_init(&c);
    c.alert_file = file;
    c.alert_command = command;
    c.nalert_command = 2;
    struct audit *a = folder_open(&folder, &c);
    tap_ok(run(a, &(struct job){.client = "de\"l", .violations = 5})[0] != 0,
           "five violations in a run raise an alert");
    tap_ok(contains(file, "\"alert\": \"Excessive violations: 5 in run-", 500),
           "an alert is a line in the alert file");
    tap_ok(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600,
           "only its owner can read the alert file");
    tap_ok(contains(seen, "\"client_id\": \"de\\\"l\"", 500),
           "an alert is the input of the alert command");
    tap_ok(contains(seen, "argument; touch /tmp/no", 500),
           "the alert command gets its arguments without a shell");
    tap_ok(contains(seen, "PATH=", 500) && !contains(seen, "HOME=", 1),
           "the alert command gets PATH and nothing else of our environment");
    tap_ok(count_records("Excessive violations: 5 in run-") == 1,
           "an alert is one record of the log");
    audit_close(a);

    const char *const nothing[] = {"/nonexistent/command"};
    c.alert_command = nothing;
    c.nalert_command = 1;
    c.alert_file = "/nonexistent/file";
    a = folder_open(&folder, &c);
    tap_ok(run(a, &(struct job){.client = "x", .violations = 5})[0] != 0,
           "an alert is raised though its command and its file cannot be used");
    tap_eq_int((long long)count_records("/nonexistent/command"), 1,
               "an alert command that does not exist is a record");
    tap_eq_int((long long)count_records("/nonexistent/file"), 1,
               "an alert file that cannot be opened is a record");
    audit_close(a);
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0, "no process of the alert command is left");
}

static void alert_of(struct audit *a, unsigned violations)
{
    tap_ok(run(a, &(struct job){.client = "swap", .violations = violations})[0] != 0,
           "a run with %u violations raises an alert", violations);
}

/* The alert file while somebody moves what leads to it. */
static void swapped_file(void)
{
    char log[400], kept[400], elsewhere[400], file[440], path[440];
    snprintf(log, sizeof log, "%s/log", folder.path);
    snprintf(kept, sizeof kept, "%s/kept", folder.path);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder.path);
    snprintf(file, sizeof file, "%s/alerts", log);
    struct audit_config c;
    audit_config_init(&c);
    c.alert_file = file;
    tap_ok(mkdir(log, 0700) == 0 && mkdir(elsewhere, 0700) == 0, "two folders are made");
    struct audit *a = folder_open(&folder, &c);
    tap_ok(rename(log, kept) == 0 && symlink(elsewhere, log) == 0,
           "the folder of the alert file becomes a link while the audit is open");
    alert_of(a, 4);
    snprintf(path, sizeof path, "%s/alerts", elsewhere);
    tap_ok(access(path, F_OK) < 0, "no alert is written where a planted link leads");
    snprintf(path, sizeof path, "%s/alerts", kept);
    tap_ok(contains(path, "violations: 4", 1), "the alert is written into the folder of before");
    tap_eq_int((long long)count_records("was replaced during the run"), 1,
               "a replaced folder of the alert file is a record");
    snprintf(path, sizeof path, "%s/alerts.1", log);
    tap_ok(unlink(log) == 0 && rename(kept, log) == 0 && rename(file, path) == 0,
           "the folder is put back, and the alert file is rotated");
    alert_of(a, 5);
    tap_ok(contains(file, "violations: 5", 1) && !contains(path, "violations: 5", 1),
           "an alert after a rotation is written to a new file");
    tap_ok(unlink(file) == 0 && link(path, file) == 0,
           "the alert file becomes a second name of another file");
    alert_of(a, 6);
    tap_ok(!contains(path, "violations: 6", 1), "no alert is written through a hard link");
    tap_eq_int((long long)count_records("hard link"), 1, "a refused hard link is a record");
    audit_close(a);
    tap_ok(unlink(file) == 0 && unlink(path) == 0 && rmdir(log) == 0 && rmdir(elsewhere) == 0,
           "the folders are removed");
}

int main(void)
{
    if (!tap_ok(folder_make(&folder), "a folder for the log is made"))
        return tap_done();
    struct audit_config c;
    audit_config_init(&c);
    c.sync = AUDIT_SYNC_OFF;
    struct audit *a = folder_open(&folder, &c);
    failures(a);
    times(a);
    doubles(a);
    violations(a);
    many(a);
    audit_close(a);
    delivery();
    swapped_file();
    struct audit_verdict v;
    struct err err = ERR_INIT;
    tap_ok(audit_verify(folder.path, NULL, &v, &err) == 0 && v.good,
           "the log verifies after every alert");
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
