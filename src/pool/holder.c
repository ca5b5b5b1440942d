/* SPDX-License-Identifier: Apache-2.0 */
/* The holder's loop: one thread, one epoll, no call that waits but its own. Every round takes one packet of each
 * client that has one, one batch of each template, then looks at the clock: what is due is done, what is
 * missing in the stock is ordered. Nothing here reads what a guest wrote: sessions' descriptors are
 * kept and copied, not read.
 *
 * Waits: epoll_wait in loop; clients; the next thing due, 1 s at most; looks for its socket
 *        read in handle; nobody: the signalfd is non-blocking; at once; comes again
 *        write in tell; one word that fits; at once; whoever started us is gone */
#include "pool/holding.h"

#include "pool/socket.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOK_NS                                                                                    \
    CLOCK_NS_PER_S /* between two looks at the socket's name and at sessions that rest */

int pool_holder_watch(struct pool_holder *h, int fd, enum pool_event kind, size_t at,
                      struct err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | at};
    return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? err_sys(err, "epoll") : 0;
}

void pool_holder_hears(struct pool_holder *h, bool hears)
{
    struct epoll_event e = {.events = hears ? EPOLLIN : 0,
                            .data.u64 = (uint64_t)POOL_EVENT_ACCEPT << 32};
    if (epoll_ctl(h->epoll, EPOLL_CTL_MOD, h->sock, &e) == 0)
        h->deaf = !hears;
}

static void handle(struct pool_holder *h, uint64_t event)
{
    size_t at = (uint32_t)event;
    struct signalfd_siginfo info;
    struct pool_session *s;
    switch ((enum pool_event)(event >> 32)) {
    case POOL_EVENT_ACCEPT:
        pool_conn_accept(h);
        return;
    case POOL_EVENT_SIGNAL:
        h->stopping = read(h->signals, &info, sizeof info) == sizeof info;
        return;
    case POOL_EVENT_SEAT:
        if (h->conn[at].state != POOL_CONN_FREE)
            pool_conn_event(h, &h->conn[at]);
        return;
    case POOL_EVENT_TEMPLATE:
        if (h->warm[at].template)
            pool_warm_event(h, &h->warm[at]);
        return;
    case POOL_EVENT_SESSION:
        if (h->sessions.session[at].child)
            pool_session_event(h, &h->sessions.session[at]);
        return;
    case POOL_EVENT_OWNER:
        s = pool_registry_serial(&h->sessions, at);
        if (s && s->child)
            pool_session_end_to_record(h, s, "the server that made it ended");
        return;
    }
}

/* What no descriptor reports, so the holder looks by the clock: whether its folder was deleted or another holder took over
 * its socket (then no new client finds it, and it serves those that are connected to their end), and whether a session
 * that should rest uses CPU time. Returns when to look next. */
static uint64_t look_around(struct pool_holder *h)
{
    if (h->now - h->looked_ns < LOOK_NS)
        return h->looked_ns + LOOK_NS;
    h->looked_ns = h->now;
    if (h->deaf)
        pool_holder_hears(h, true);
    for (size_t i = 0; i < sizeof h->sessions.session / sizeof *h->sessions.session; i++)
        pool_session_check_rest(h, &h->sessions.session[i]);
    h->hidden = pool_socket_inode(h->start->dir, pool_environment_mark(h->start->environment)) !=
                h->socket_file;
    return h->looked_ns + LOOK_NS;
}

/* Whatever is due; returns when something will be next. */
static uint64_t tick(struct pool_holder *h)
{
    uint64_t next = UINT64_MAX;
    struct pool_session *s;
    for (size_t i = 0; i < POOL_CLIENTS; i++) {
        struct pool_conn *conn = &h->conn[i];
        if (pool_conn_due(conn) <= h->now)
            pool_conn_timeout(h, conn);
        if (pool_conn_due(conn) < next)
            next = pool_conn_due(conn);
    }
    while ((s = pool_registry_due(&h->sessions, h->now))) {
        if (s->died_ns)
            pool_session_died(h, s);
        else
            pool_session_end_to_record(h, s, "idle for %llu s (its limit; --idle sets another)",
                                       (unsigned long long)(s->idle_ns / CLOCK_NS_PER_S));
    }
    if (pool_registry_next_ns(&h->sessions) < next)
        next = pool_registry_next_ns(&h->sessions);
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++) {
        uint64_t at = pool_warm_tick(h, &h->warm[i]);
        next = at < next ? at : next;
    }
    if (look_around(h) < next)
        next = h->looked_ns + LOOK_NS;
    /* A holder that keeps nothing for anybody ends. A pool that was asked for by name is kept for
     * nobody once nobody asks. */
    bool needed = (h->sessions.alive && !h->hidden) || h->conns;
    uint64_t end = h->asked_ns + h->idle_exit_ns;
    if (!needed && (h->hidden || end <= h->now))
        h->stopping = true;
    else if (!needed && end < next)
        next = end;
    return next;
}

static void loop(struct pool_holder *h)
{
    while (!h->stopping) {
        struct epoll_event events[64];
        h->now = clock_now_ns();
        uint64_t next = tick(h);
        if (h->stopping)
            return;
        uint64_t ms = next == UINT64_MAX ? 60000
                      : next <= h->now   ? 0
                                         : (next - h->now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        int n = epoll_wait(h->epoll, events, 64, ms > 60000 ? 60000 : (int)ms);
        h->now = clock_now_ns();
        for (int i = 0; i < n && !h->stopping; i++)
            handle(h, events[i].data.u64);
    }
}

static void end_all(struct pool_holder *h)
{
    struct pool_session *s;
    for (uint64_t at = 0; (s = pool_registry_after(&h->sessions, at)); at = s->serial)
        if (s->state != POOL_SESSION_OVER)
            pool_session_end_to_record(h, s, "the holder ended");
    for (size_t i = 0; i < POOL_CLIENTS; i++)
        pool_conn_close(h, &h->conn[i]);
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++)
        pool_warm_stop(h, &h->warm[i]);
    pool_registry_done(&h->sessions);
    fd_close(h->epoll);
    fd_close(h->signals);
    fd_close(h->meminfo);
    fd_close(h->spare);
    fd_close(h->dying);
    fd_close(h->sock);
}

static int prepare(struct pool_holder *h, struct err *err)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_SETMASK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys(err, "getrlimit");
    h->descriptors = files.rlim_cur;
    files.rlim_cur = files.rlim_max; /* nine for a child that waits, eleven for one that stays */
    if (setrlimit(RLIMIT_NOFILE, &files) == 0)
        h->descriptors = files.rlim_cur;
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    h->meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    h->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (h->epoll < 0 || h->signals < 0 || h->meminfo < 0 || h->spare < 0)
        return err_sys(err, "epoll, signalfd, meminfo");
    int r = pool_holder_watch(h, h->sock, POOL_EVENT_ACCEPT, 0, err);
    if (r == 0)
        r = pool_holder_watch(h, h->signals, POOL_EVENT_SIGNAL, 0, err);
    return r == 0 ? pool_holder_narrow(h->narrow, sizeof h->narrow, err) : r;
}

static void tell(int ready, const char *word)
{
    if (ready >= 0 && write(ready, word, 1) < 0)
        return; /* whoever started us is gone; somebody else may come */
}

int pool_holder_run(const struct pool_holder_start *start, struct err *err)
{
    int lock = -1;
    struct pool_holder *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(err, ERR_MEMORY, "no memory");
    h->start = start;
    h->epoll = h->signals = h->meminfo = h->sock = h->spare = h->dying = -1;
    h->now = h->started_ns = h->asked_ns = clock_now_ns();
    h->idle_exit_ns = POOL_IDLE_EXIT_MS * CLOCK_NS_PER_MS;
    h->renew_ns = POOL_RENEW_MS * CLOCK_NS_PER_MS;
    h->renew_runs = POOL_RENEW_RUNS;
    h->memory.budget = POOL_BUDGET;
    h->warm_usual = POOL_WARM_DEFAULT;
    pool_registry_init(&h->sessions);
    int r = pool_socket_listen(start->dir, pool_environment_mark(start->environment), &lock,
                               &h->sock, err);
    if (r == 0 && h->sock < 0) {
        tell(start->ready, "L");
        free(h);
        return 0;
    }
    h->socket_file = pool_socket_inode(start->dir, pool_environment_mark(start->environment));
    if (r == 0)
        r = prepare(h, err);
    if (r == 0) {
        pool_socket_listening(lock);
        tell(start->ready, "R");
        fd_close(start->ready);
        loop(h);
    }
    if (lock >= 0 && pool_socket_inode(start->dir, pool_environment_mark(start->environment)) ==
                         h->socket_file) /* not another one's */
        pool_socket_hide(start->dir, pool_environment_mark(h->start->environment));
    end_all(h);
    free(h);
    return r; /* the lock goes with the process */
}
