/* SPDX-License-Identifier: Apache-2.0 */
/* A template seen by the process that started it: a run that takes orders on its channel and answers with children. It
 * reads one packet at a time, so that a flood of children does not keep the holder from its other work.
 *
 * Waits: fd_send in *; the template: a packet that fits; at once; an error */
#include "jail/child.h"
#include "jail/supervisor/family.h"
#include "jail/supervisor/running.h"

#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct jail_template {
    struct jail_run *run;
    struct jail_sink sink; /* the holder's */
    int orders;
};

static void pass_on(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    const struct jail_template *t = ctx;
    if (t->sink.bytes)
        t->sink.bytes(t->sink.ctx, stream, data, len);
}

/* Read by jail_template_step, one at a time. At the end of the socket the run's own end is near. */
static bool wake(void *ctx)
{
    const struct jail_template *t = ctx;
    char byte;
    return recv(t->orders, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

int jail_template_new(const struct jail_spec *spec, const char *nest, const struct jail_sink *sink,
                      struct jail_template **ret, struct err *err)
{
    int sv[2];
    if (spec->kind != JAIL_KIND_TEMPLATE || spec->mode != JAIL_FULL)
        return err_set(err, ERR_USAGE, "a template needs namespaces of its own");
    struct jail_template *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, ERR_MEMORY, "no memory");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0) {
        free(t);
        return err_sys(err, "socketpair");
    }
    t->orders = sv[0];
    if (sink)
        t->sink = *sink;
    struct jail_start start = {.nest = nest,
                               .memory_by = JAIL_MEMORY_RLIMIT,
                               .input = -1,
                               .channel = sv[1],
                               .channel_ours = sv[0],
                               .sink = {.ctx = t, .bytes = pass_on, .channel = wake}};
    int r = fcntl(sv[0], F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, "fcntl")
                                                  : jail_run_new(spec, &start, &t->run, err);
    fd_close(sv[1]);
    if (r < 0) {
        jail_template_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void jail_template_free(struct jail_template *t)
{
    if (!t)
        return;
    fd_close(t->orders);
    jail_run_free(t->run);
    free(t);
}

int jail_template_fd(const struct jail_template *t)
{
    return jail_run_fd(t->run);
}

pid_t jail_template_pid(const struct jail_template *t)
{
    return jail_run_guest(t->run);
}

int jail_template_rules(struct jail_template *t, const void *rules, size_t len, struct err *err)
{
    struct buf b;
    struct wire_writer w;
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&w, &b, WIRE_RULES);
    wire_put_bytes(&w, rules, len);
    int r = wire_end(&w);
    struct fd_packet p = {.data = b.data, .len = b.len};
    if (r < 0)
        r = err_set(err, r, "the rules do not fit their message");
    else if (fd_send(t->orders, &p) < 0)
        r = err_sys(err, "tell a template its rules");
    buf_done(&b);
    return r;
}

int jail_template_order(struct jail_template *t, const struct jail_child_spec *spec,
                        struct err *err)
{
    char storage[512];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    uint64_t limits[JAIL_LIMIT_COUNT];
    memcpy(limits, &spec->limits, sizeof limits);
    wire_begin(&w, &b, WIRE_ORDER);
    wire_put_uint(&w, spec->tag);
    wire_put_text(&w, spec->filter);
    wire_put_uint(&w, spec->session);
    wire_put_uints(&w, limits, JAIL_LIMIT_COUNT);
    int r = wire_end(&w);
    if (r < 0)
        return err_set(err, r, "an order does not fit its message");
    struct fd_packet p = {.data = b.data, .len = b.len};
    if (fd_send(t->orders, &p) == 0)
        return 0;
    return errno == EAGAIN ? err_set(err, ERR_LIMIT, "the template has too many orders waiting")
                           : err_sys(err, "order a child");
}

enum jail_template_event jail_template_step(struct jail_template *t, int timeout_ms,
                                            struct jail_child *ret_child, struct err *err)
{
    for (bool waited = false;; waited = true) {
        int got = jail_child_next(t->orders, ret_child, err);
        if (got == JAIL_GOT_CHILD && ret_child->session && jail_family_new(ret_child, err) < 0) {
            jail_child_kill(ret_child);
            jail_child_close(ret_child);
            got = JAIL_GOT_REFUSAL;
        }
        if (got == JAIL_GOT_CHILD)
            return JAIL_TEMPLATE_CHILD;
        if (got == JAIL_GOT_REFUSAL)
            return JAIL_TEMPLATE_REFUSED;
        if (got < 0)
            return JAIL_TEMPLATE_GONE; /* its packet is none of the table's */
        bool over = jail_run_step(t->run, waited || got == JAIL_GOT_END ? 0 : timeout_ms);
        if (over) {
            const struct jail_outcome *o = jail_run_outcome(t->run);
            err_set(err, ERR_MISSING, "the template is gone (%s %d)",
                    o->end == JAIL_END_EXIT ? "exit status" : "signal",
                    o->end == JAIL_END_EXIT ? o->exit_code : o->signal);
            return JAIL_TEMPLATE_GONE;
        }
        if (waited)
            return JAIL_TEMPLATE_NOTHING;
    }
}
