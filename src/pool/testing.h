/* SPDX-License-Identifier: Apache-2.0 */
/* A holder in a process of its own, for its live test, and what its clients ask of it.
 *
 * Takes:   the paths of cordon-nest and of the program that stands in for the interpreter.
 * Gives:   a holder; connections, leases and numbers of it.
 * Never:   is part of the product.
 * Runs in: the test.
 */
#ifndef POOL_TESTING_H
#define POOL_TESTING_H

#include "base/tap.h"
#include "pool/holder.h"
#include "pool/pool_client.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *nest;
static char self[4096], state[64];
static pid_t holder;

static bool start_holder(void)
{
    int ready[2];
    char word = 0;
    struct pool_socket at = {.dir = -1};
    struct err err = ERR_INIT;
    if (pool_socket_open(&at, true, &err) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        return false;
    holder = fork();
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct pool_holder_start start = {
            .dir = at.dir, .ready = ready[1], .nest = nest, .python = self, .version = "test"};
        fd_close(ready[0]);
        int r = pool_holder_run(&start, &err);
        if (r < 0)
            fprintf(stderr, "# holder: %s\n", err.msg);
        _exit(r < 0);
    }
    fd_close(ready[1]);
    bool good = read(ready[0], &word, 1) == 1 && word == 'R';
    fd_close(ready[0]);
    pool_socket_done(&at);
    return good;
}

static struct pool_client client(void)
{
    struct pool_client c;
    struct err err = ERR_INIT;
    if (pool_client_open(&c, NULL, POOL_ANSWER_MS, &err) < 0 || c.sock < 0)
        tap_ok(false, "a client connects: %s", err.msg);
    return c;
}

static struct jail_limits limits(void)
{
    struct jail_spec spec;
    jail_spec_init(&spec);
    spec.limits.threads = 0; /* as the profile strict has it */
    return spec.limits;
}

static struct pool_template_numbers look(struct pool_reply *ret)
{
    struct pool_client c = client();
    struct pool_answer a = {0};
    struct err err = ERR_INIT;
    if (pool_client_look(&c, 1, &a, &err) < 0 || a.reply.type != WIRE_POOL_IS)
        a = (struct pool_answer){0};
    pool_client_close(&c);
    if (ret)
        *ret = a.reply;
    return a.reply.template;
}

static struct pool_holder_numbers look_holder(void)
{
    struct pool_client c = client();
    struct pool_answer a = {0};
    struct err err = ERR_INIT;
    if (pool_client_look(&c, 0, &a, &err) < 0)
        a = (struct pool_answer){0};
    pool_client_close(&c);
    return a.reply.holder;
}

/* Until as many wait as are to; true in time. */
static bool stock_is_full(void)
{
    for (int i = 0; i < 2000; i++) {
        struct pool_template_numbers n = look(NULL);
        if (n.warm && n.ready == n.warm && n.asked == 0)
            return true;
        usleep(5000);
    }
    return false;
}

static bool set(uint64_t warm)
{
    struct pool_client c = client();
    struct pool_answer a;
    struct err err = ERR_INIT;
    const struct pool_set_numbers n = {warm, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const struct pool_kind kind = {.profile = "strict"};
    int r = pool_client_set(&c, &kind, &n, &a, &err);
    pool_client_close(&c);
    return r == 0 && !a.declined;
}

static long ask(const struct jail_child *c, const char *word)
{
    char answer[32] = "";
    struct pollfd p = {.fd = c->channel, .events = POLLIN};
    if (send(c->channel, word, strlen(word), MSG_NOSIGNAL) < 0 || poll(&p, 1, 10000) != 1 ||
        recv(c->channel, answer, sizeof answer - 1, 0) <= 0)
        return -1;
    return strtol(answer, NULL, 10);
}

static bool dead_soon(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 10000) == 1;
}

static bool lease(struct pool_client *c, uint64_t patience, struct jail_child *ret, char *word)
{
    struct pool_answer a;
    struct err err = ERR_INIT;
    struct jail_limits l = limits();
    int r = pool_client_lease(c, "strict", false, &l, patience, ret, &a, &err);
    if (r < 0)
        printf("# %s\n", err.msg);
    if (word)
        snprintf(word, 16, "%s", r < 0 ? "error" : a.declined ? a.reply.state : "");
    return r == 0 && !a.declined;
}

static bool new_session(struct pool_client *c, const char *name, uint64_t idle_ms,
                        struct jail_child *ret, struct pool_answer *a)
{
    struct err err = ERR_INIT;
    struct pool_session_spec spec = {
        .name = name, .profile = "strict", .limits = limits(), .idle_ms = idle_ms};
    int r = pool_client_new(c, &spec, ret, a, &err);
    if (r < 0)
        printf("# %s\n", err.msg);
    return r == 0 && !a->declined;
}

static bool call(struct pool_client *c, const char *name, bool for_fork, struct jail_child *ret,
                 struct pool_answer *a)
{
    struct err err = ERR_INIT;
    return pool_client_call(c, name, for_fork, ret, a, &err) == 0 && !a->declined;
}

static bool back(struct pool_client *c, bool alive, const char *reason, const char *record,
                 struct jail_child *child)
{
    const struct pool_use_numbers use = {1, 2000, 1000, 0};
    struct pool_answer a;
    struct err err = ERR_INIT;
    jail_child_close(child);
    return pool_client_back(c, alive, reason, "", &use, record, record ? strlen(record) : 0, &a,
                            &err) == 0 &&
           !a.declined;
}

#endif
