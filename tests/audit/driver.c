/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the log of $CORDON_STATE as the product does, for tests of what reads it.
 *
 *   make N      N runs of three clients: good, blocked, with violations and texts that would act on a terminal
 *   times       six runs of two clients, the last of each slow: of one it is ok, of the other the time limit ended it
 *   follow      one run every 50 ms until killed
 *   orphan      begins a run and dies
 *   fill        begins a run, then runs until the disk is full; the first must still end
 *   drop UID    as root: begins a run, becomes UID, ends it
 *   late UID    the same, but meanwhile another writer has begun the next day's file: the end must wait */
#include "audit/audit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct audit *log_;
static struct err err = ERR_INIT;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, err.msg);
    return 1;
}

static int run(const char *id, const char *client, const struct audit_outcome *o)
{
    struct audit_ticket t;
    const struct audit_facts f = {.execution_id = id,
                                  .client_id = client,
                                  .tool = "run",
                                  .language = "python",
                                  .code = id,
                                  .code_len = strlen(id),
                                  .outcome = o};
    if (o->validation == AUDIT_BLOCKED)
        return audit_event(log_, AUDIT_REFUSAL, &f, &err);
    int r = audit_begin_run(log_, &f, &t, &err);
    return r < 0 ? r : audit_end_run(log_, &t, &f, &err);
}

static int make(long n)
{
    static const char *const clients[] = {"uid:1000", "uid:1001", "token:\033[31mred"};
    static const char *const hostile[] = {"open /etc/shadow", "\033]0;title\a",
                                          "connect\r\n8.8.8.8", "\xff\xfe", "five"};
    for (long i = 0; i < n; i++) {
        char id[40];
        snprintf(id, sizeof id, "run-%ld", i);
        const struct audit_outcome good = {
            .status = "ok", .validation = AUDIT_PASSED, .wall_us = 20000, .has_exit_code = true};
        const struct audit_outcome bad = {.status = "blocked",
                                          .layer = "input",
                                          .validation = AUDIT_BLOCKED,
                                          .error_type = "ValidationError",
                                          .reason = "eval \033[2J is not allowed",
                                          .violations = hostile,
                                          .nviolations = 1};
        const struct audit_outcome wild = {.status = "error",
                                           .validation = AUDIT_PASSED,
                                           .wall_us = 900000,
                                           .has_exit_code = true,
                                           .exit_code = 1,
                                           .violations = hostile,
                                           .nviolations = 5};
        if (run(id, clients[i % 3], i % 10 == 9 ? &wild : i % 3 == 1 ? &bad : &good) < 0)
            return fail("make");
    }
    return 0;
}

static int times(void)
{
    struct audit_outcome o = {.status = "ok", .validation = AUDIT_PASSED, .has_exit_code = true};
    for (int i = 0; i < 12; i++) {
        char id[40];
        const bool slow = i >= 10;
        snprintf(id, sizeof id, "%s-%d", slow ? "slow" : "quick", i);
        o.wall_us = slow ? 900000 : 20000;
        o.status = i == 11 ? "timeout" : "ok";
        if (run(id, i % 2 ? "uid:6" : "uid:5", &o) < 0)
            return fail("times");
    }
    return 0;
}

static int follow(void)
{
    for (long i = 0;; i++) {
        char id[40];
        snprintf(id, sizeof id, "follow-%ld", i);
        const struct audit_outcome good = {.status = "ok"};
        if (run(id, "uid:7", &good) < 0)
            return fail("follow");
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

static int begin(const char *id, struct audit_ticket *t)
{
    const struct audit_facts f = {.execution_id = id, .client_id = "uid:1", .tool = "run"};
    return audit_begin_run(log_, &f, t, &err);
}

static int fill(void)
{
    struct audit_ticket first, t;
    static char text[1024];
    memset(text, 'x', sizeof text - 1);
    const char *list[40];
    for (size_t i = 0; i < 40; i++)
        list[i] = text;
    const struct audit_arg args[] = {
        {.name = "list", .kind = AUDIT_ARG_LIST, .list = list, .count = 40}};
    const struct audit_outcome o = {.status = "ok"};
    const struct audit_facts big = {.execution_id = "big",
                                    .client_id = "uid:1",
                                    .tool = "run",
                                    .args = args,
                                    .nargs = 1,
                                    .outcome = &o};
    if (begin("first", &first) < 0)
        return fail("the first begin");
    long runs = 0;
    while (audit_begin_run(log_, &big, &t, &err) == 0) {
        if (audit_end_run(log_, &t, &big, &err) < 0)
            return fail("an end while there is room");
        runs++;
    }
    while (err.sys_errno == ENOSPC &&
           begin("small", &t) == 0) { /* what is left is enough for smaller ones */
        if (audit_end_run(log_, &t, &(struct audit_facts){.outcome = &o}, &err) < 0)
            return fail("an end while there is room");
        err.sys_errno = ENOSPC;
    }
    if (err.sys_errno != ENOSPC)
        return fail("a full disk");
    printf("full after %ld runs: %s\n", runs, err.msg);
    if (audit_end_run(log_, &first, &(struct audit_facts){.outcome = &o}, &err) < 0)
        return fail("the end of what ran already");
    if (begin("another", &t) == 0)
        return fail("a run began on a full disk");
    return 0;
}

static int drop(long uid)
{
    struct audit_ticket t;
    const struct audit_outcome o = {.status = "ok", .wall_us = 5000};
    if (begin("dropped", &t) < 0)
        return fail("begin as root");
    if (setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) < 0 ||
        setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
        return fail("setresuid");
    if (audit_end_run(log_, &t, &(struct audit_facts){.outcome = &o}, &err) < 0)
        return fail("end as another");
    return 0;
}

static uint64_t tomorrow(void *ctx)
{
    (void)ctx;
    return ((uint64_t)time(NULL) + 86400) * 1000;
}

static int late(long uid)
{
    struct audit_ticket t;
    struct audit_config c;
    struct audit *other;
    const struct audit_outcome o = {.status = "timeout", .wall_us = 5000};
    audit_config_init(&c);
    c.now_ms = tomorrow;
    if (begin("late", &t) < 0)
        return fail("begin as root");
    if (audit_open(&c, &other, &err) < 0 ||
        audit_event(other, AUDIT_RESUME, &(struct audit_facts){0}, &err) < 0)
        return fail("the other writer");
    audit_close(other);
    if (setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) < 0 ||
        setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
        return fail("setresuid");
    return audit_end_run(log_, &t, &(struct audit_facts){.outcome = &o}, &err) < 0
               ? 0
               : fail("it could be written at once");
}

int main(int argc, char **argv)
{
    struct audit_config c;
    struct audit_ticket t;
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    int r = 2;
    audit_config_init(&c);
    c.sync = AUDIT_SYNC_OFF;
    if (audit_open(&c, &log_, &err) < 0)
        return fail("open");
    if (strcmp(what, "make") == 0)
        r = make(n);
    else if (strcmp(what, "times") == 0)
        r = times();
    else if (strcmp(what, "follow") == 0)
        r = follow();
    else if (strcmp(what, "orphan") == 0)
        r = begin("orphan", &t) < 0 ? fail("begin") : raise(SIGKILL);
    else if (strcmp(what, "fill") == 0)
        r = fill();
    else if (strcmp(what, "drop") == 0)
        r = drop(n);
    else if (strcmp(what, "late") == 0)
        r = late(n);
    audit_close(log_);
    return r;
}
