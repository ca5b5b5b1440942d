/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate's tests share: a state folder of their own, a clock that obeys, a list of events.
 *
 * Takes:   nothing.
 * Gives:   an open gate in a fresh folder, requests of made-up clients.
 * Never:   touches the user's own state.
 * Runs in: tests only.
 */
#ifndef GATE_TESTING_H
#define GATE_TESTING_H

#include "base/clock.h"
#include "base/tap.h"
#include "gate/gate.h"
#include "sys/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused)) static char testing_dir[64];
__attribute__((unused)) static uint64_t testing_now = 1000 * CLOCK_NS_PER_S;
__attribute__((unused)) static int testing_events[GATE_EVENT_COUNT];
__attribute__((unused)) static char testing_detail[400], testing_subject[80];

__attribute__((unused)) static uint64_t testing_clock(void *ctx)
{
    (void)ctx;
    return testing_now;
}

__attribute__((unused)) static void testing_advance(double seconds)
{
    testing_now += (uint64_t)(seconds * 1e9);
}

__attribute__((unused)) static void testing_event(void *ctx, const struct gate_event *e)
{
    (void)ctx;
    testing_events[e->kind]++;
    snprintf(testing_detail, sizeof testing_detail, "%s", e->detail);
    snprintf(testing_subject, sizeof testing_subject, "%s", e->subject);
}

__attribute__((unused)) static int testing_remove_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0)
            testing_remove_dir(fd, e->d_name);
    if (d)
        closedir(d);
    return unlinkat(at, name, AT_REMOVEDIR);
}

__attribute__((unused)) static void testing_end(void)
{
    if (testing_dir[0])
        testing_remove_dir(AT_FDCWD, testing_dir);
    testing_dir[0] = 0;
}

/* A new, empty state folder; the old one goes. */
__attribute__((unused)) static int testing_state(void)
{
    int fd = -1;
    struct err err = ERR_INIT;
    testing_end();
    snprintf(testing_dir, sizeof testing_dir, "/tmp/cordon-gate-XXXXXX");
    if (!mkdtemp(testing_dir) || state_open(testing_dir, true, &fd, &err) < 0) {
        printf("Bail out! no state folder: %s\n", err.msg);
        exit(1);
    }
    memset(testing_events, 0, sizeof testing_events);
    return fd;
}

__attribute__((unused)) static struct gate_config testing_config(bool fake_clock)
{
    struct gate_config c;
    gate_config_init(&c);
    c.on_event = testing_event;
    c.now_ns = fake_clock ? testing_clock : NULL;
    return c;
}

__attribute__((unused)) static struct gate *testing_open(const struct gate_config *c, int state)
{
    struct gate *g = NULL;
    struct err err = ERR_INIT;
    if (gate_open(c, state, &g, &err) < 0) {
        printf("Bail out! gate_open: %s\n", err.msg);
        exit(1);
    }
    return g;
}

__attribute__((unused)) static struct gate_request testing_request(const char *client,
                                                                   const char *code)
{
    struct gate_request q = {.run = "run-1", .tool = "run", .code = code, .code_len = strlen(code)};
    snprintf(q.client.id, sizeof q.client.id, "%s", client);
    return q;
}

__attribute__((unused)) static struct check_report *testing_clean(void)
{
    static struct check_report report;
    static bool made;
    if (!made) {
        check_report_init(&report);
        check_report_end(&report);
        made = true;
    }
    return &report;
}

/* The whole way in. 1: *ret_plan; else what the gate said. */
__attribute__((unused)) static int testing_pass(struct gate *g, const struct gate_request *q,
                                                struct gate_plan **ret_plan, struct gate_refusal *r)
{
    struct err err = ERR_INIT;
    struct gate_ticket *t = NULL;
    memset(r, 0, sizeof *r);
    int e = gate_admit(g, q, &t, r, &err);
    if (e == 1)
        e = gate_decide(t, testing_clean(), ret_plan, r, &err);
    if (e < 0)
        printf("# error: %s\n", err.msg);
    return e;
}

/* In, and out again with STATUS. Returns what the gate said at the door. */
__attribute__((unused)) static int testing_once(struct gate *g, const struct gate_request *q,
                                                const char *status, const char *type,
                                                const char *message, struct gate_refusal *r)
{
    struct gate_plan *plan = NULL;
    int e = testing_pass(g, q, &plan, r);
    if (e == 1)
        gate_release(plan, &(struct gate_outcome){status, type, message});
    return e;
}

#endif
