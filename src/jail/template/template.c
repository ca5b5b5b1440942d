/* SPDX-License-Identifier: Apache-2.0 */
/* A template's life: it takes orders, sends children as descriptors, and reaps those that died. One
 * process, one thread, no byte of a guest; its only peer is the holder that started it.
 *
 * Waits: poll in jail_template_serve; orders, expected; FD_PATIENCE_MS for a child that is built, none for an order
 *          (it serves); the builder of that child is killed
 *        read in jail_template_serve; nobody: the signalfd is non-blocking; at once; comes again
 *        write in refuse; the holder: a packet that fits; at once; it is gone
 *        fd_receive in begin_order; nobody: poll said that it is there; at once; the template ends */
#include "jail/template/template_fork.h"

#include "jail/inside.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int refuse(uint64_t tag, const struct err *why, struct err *err)
{
    char storage[512];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_NOCHILD);
    wire_put_uint(&w, tag);
    wire_put_int(&w, why->code);
    wire_put_text(&w, why->layer);
    wire_put_text(&w, why->msg);
    if (wire_end(&w) < 0 || write(JAIL_FD_CHANNEL, b.data, b.len) != (ssize_t)b.len)
        return err_sys(err, "answer the holder");
    return 0;
}

/* Children that are being built, in the order of their orders, which is the order of the answers. */
enum { EXPECTED = 4 };
struct queue {
    struct jail_expected expected[EXPECTED];
    size_t first, count;
};

/* The first of them is locked, or dead. */
static int finish_child(const struct jail_fork *n, struct queue *q, struct err *err)
{
    struct jail_expected *e = &q->expected[q->first];
    struct jail_child child = JAIL_CHILD_NONE;
    struct err why = ERR_INIT;
    uint64_t tag = e->child.tag;
    q->first = (q->first + 1) % EXPECTED;
    q->count--;
    if (jail_fork_finish(n, e, &child, &why) < 0)
        return refuse(tag, &why, err) < 0 ? err->code : 1;
    int r = jail_child_send(JAIL_FD_CHANNEL, &child, err);
    jail_child_close(&child);
    return r < 0 ? r : 1;
}

/* 1: an order was served; 0: the holder is gone. */
static int begin_order(struct jail_fork *n, struct queue *q, struct err *err)
{
    char frame[1024], filter[sizeof q->expected[0].child.filter];
    struct fd_packet p = {.data = frame, .len = sizeof frame};
    struct jail_child_spec order = {0};
    struct wire_reader r;
    struct err why = ERR_INIT;
    int got = fd_receive(JAIL_FD_CHANNEL, &p);
    if (got <= 0)
        return got < 0 ? err_sys(err, "read an order") : 0;
    if (wire_open(&r, frame, p.len, err) < 0)
        return ERR_FORMAT;
    if (r.type != WIRE_ORDER)
        return err_set(err, ERR_FORMAT, "%s is not an order", wire_name(r.type));
    order.tag = wire_get_uint(&r);
    wire_get_text(&r, filter, sizeof filter);
    order.filter = filter;
    order.session = wire_get_uint(&r) != 0;
    uint64_t limits[JAIL_LIMIT_COUNT];
    if (wire_get_uints(&r, limits, JAIL_LIMIT_COUNT) != JAIL_LIMIT_COUNT)
        return err_set(err, ERR_FORMAT, "an order without its limits");
    memcpy(&order.limits, limits, sizeof limits);
    struct jail_expected *e = &q->expected[(q->first + q->count) % EXPECTED];
    if (jail_fork_begin(n, &order, e, &why) < 0) {
        int r2 = 1;
        while (r2 > 0 && q->count) /* orders before this one are answered first */
            r2 = finish_child(n, q, err);
        return r2 < 0 || refuse(order.tag, &why, err) < 0 ? err->code : 1;
    }
    q->count++;
    return 1;
}

int jail_template_serve(const struct jail_template_hooks *hooks, struct err *err)
{
    struct jail_fork *fork = NULL;
    static struct queue queue;
    enum { IDLE_MS = 2 };
    bool idle = false;
    sigset_t all, child;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &all, NULL);
    jail_apply_signals(); /* children then have them as every guest has */
    FD_AUTO signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int r = signals < 0 ? err_sys(err, "signalfd") : jail_fork_open(&fork, err);
    if (r == 0 && fork)
        fork->hooks = hooks;
    for (bool more = r == 0; more;) {
        struct signalfd_siginfo info;
        struct pollfd p[3] = {
            {.fd = queue.count < EXPECTED ? JAIL_FD_CHANNEL : -1, .events = POLLIN},
            {.fd = queue.count ? queue.expected[queue.first].ready : -1, .events = POLLIN},
            {.fd = signals, .events = POLLIN}};
        int ready = poll(p, 3, queue.count ? FD_PATIENCE_MS : idle ? -1 : IDLE_MS);
        if (ready < 0 && errno != EINTR)
            return err_sys(err, "poll");
        idle = ready == 0 && !queue.count;
        if (idle) { /* no order waits and the last child was sent: the time to prepare the next one */
            jail_fork_prepare(fork);
            continue;
        }
        if (ready == 0) { /* it hangs: its end is an answer, too */
            jail_fork_kill(fork, &queue.expected[queue.first]);
            p[1].revents = POLLIN;
        }
        if (p[2].revents && read(signals, &info, sizeof info) >= 0)
            jail_fork_reap(fork);
        r = 1;
        if (p[1].revents)
            r = finish_child(fork, &queue, err);
        else if (p[0].revents)
            r = begin_order(fork, &queue, err);
        more = r > 0;
    }
    return r < 0 ? r : 0;
}
