/* A template's life: orders come in, children go out by descriptor, the dead are waited for. One
 * process, one thread, no byte of a guest; the only peer is the holder that started it. */
#include "jail/nursery.h"

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
    char room[512];
    struct buf b = {.data = room, .cap = sizeof room, .max = sizeof room - 1};
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

/* 0: the holder is gone. */
static int serve_order(struct jail_nursery *n, struct err *err)
{
    char frame[1024];
    struct fd_packet p = {.data = frame, .len = sizeof frame};
    struct jail_child_plan plan = {0};
    struct jail_child child;
    struct wire_reader r;
    struct err why = ERR_INIT;
    char filter[sizeof child.filter];
    int got = fd_receive(JAIL_FD_CHANNEL, &p);
    if (got <= 0)
        return got < 0 ? err_sys(err, "read an order") : 0;
    if (wire_open(&r, frame, p.len, err) < 0)
        return ERR_FORMAT;
    if (r.type != WIRE_ORDER)
        return err_set(err, ERR_FORMAT, "%s is not an order", wire_name(r.type));
    plan.tag = wire_get_uint(&r);
    wire_get_text(&r, filter, sizeof filter);
    plan.filter = filter;
    plan.session = wire_get_uint(&r) != 0;
    uint64_t limits[JAIL_LIMIT_COUNT];
    if (wire_get_uints(&r, limits, JAIL_LIMIT_COUNT) != JAIL_LIMIT_COUNT)
        return err_set(err, ERR_FORMAT, "an order without its limits");
    memcpy(&plan.limits, limits, sizeof limits);
    if (jail_nursery_spawn(n, &plan, &child, &why) < 0)
        return refuse(plan.tag, &why, err) < 0 ? err->code : 1;
    got = jail_child_send(JAIL_FD_CHANNEL, &child, err);
    jail_child_close(&child);
    return got < 0 ? got : 1;
}

int jail_template_serve(const struct jail_template_hooks *hooks, struct err *err)
{
    static struct jail_nursery nursery;
    sigset_t all, child;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &all, NULL);
    FD_AUTO signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int r = signals < 0 ? err_sys(err, "signalfd") : jail_nursery_init(&nursery, hooks, err);
    struct pollfd p[2] = {{.fd = JAIL_FD_CHANNEL, .events = POLLIN},
                          {.fd = signals, .events = POLLIN}};
    for (bool more = r == 0; more;) {
        struct signalfd_siginfo info;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return err_sys(err, "poll");
        if (p[1].revents && read(signals, &info, sizeof info) >= 0)
            jail_nursery_reap(&nursery);
        if (!p[0].revents)
            continue;
        r = serve_order(&nursery, err);
        more = r > 0;
    }
    return r < 0 ? r : 0;
}
