/* SPDX-License-Identifier: Apache-2.0 */
/* One loop, no thread: signals, fronts and runners are descriptors. A client that leaves, however it does, takes its runs
 * and sessions with it. Each client has a front of its own, so that none reaches another through it.
 *
 * Waits: accept4 in accept_client; nobody: the socket is non-blocking; at once; comes again after poll
 *        poll in turn; the fronts, the runners, a signal; the next moment at which something is due; looks again */
#include "serve/daemon.h"

#include "base/clock.h"
#include "serve/holding.h"
#include "sys/fd.h"
#include "sys/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIGNALS, LISTENER, OTHERS };
#define WATCHED (OTHERS + LIMIT_SERVE_CLIENTS * (1 + 3 * LIMIT_SERVE_JOBS))

struct daemon {
    const struct serve_config *config;
    int signals, listener; /* listener -1: the one client was there from the start */
    struct serve_client *clients[LIMIT_SERVE_CLIENTS];
    uint64_t end_ns; /* when it leaves, whatever is left; 0: it is not to end */
    bool signalled;
};

/* What it starts builds jails, so it keeps what that needs; gone are the gain of rights by a program, being looked into,
 * and core files. */
static int narrow(struct err *err)
{
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, "no new privileges, no core");
    return 0;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- clients ---- */

static int add(struct daemon *d, int in, int out, struct err *err)
{
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++) {
        if (d->clients[i])
            continue;
        struct serve_client *c = calloc(1, sizeof *c);
        if (!c)
            return err_set(err, ERR_MEMORY, "no memory");
        const int k = serve_client_start(c, d->config, in, out, err);
        if (k < 0) {
            serve_client_done(c);
            free(c);
            return k;
        }
        d->clients[i] = c;
        return 0;
    }
    return err_set(err, ERR_LIMIT, "as many clients as one socket serves");
}

static void drop(struct serve_client **c)
{
    serve_client_done(*c);
    free(*c);
    *c = NULL;
}

/* Whoever is not served is told by the end of the socket. */
static void accept_client(struct daemon *d)
{
    struct err err = ERR_INIT;
    pid_t peer = 0;
    FD_AUTO sock = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
    if (sock >= 0 && sys_peer_is_us(sock, &peer) && sys_peer_is_outside(peer))
        (void)!add(d, sock, sock, &err);
}

static void leave_all(struct daemon *d, uint64_t now_ns)
{
    if (d->end_ns)
        return;
    d->end_ns = now_ns + LIMIT_SERVE_END_MS * CLOCK_NS_PER_MS;
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (d->clients[i])
            serve_client_leave(d->clients[i], now_ns);
}

/* Everything that is due for a client. False: it is gone, and nothing of it runs. */
static bool look(struct serve_client *c, uint64_t now_ns)
{
    serve_client_read(c, now_ns);
    serve_jobs_tick(c, now_ns);
    serve_asks_tick(c, now_ns);
    serve_client_write(c);
    return !(c->gone && serve_client_idle(c));
}

/* ---- the loop ---- */

static size_t watch_client(const struct serve_client *c, struct pollfd *p)
{
    size_t n = 0;
    if (!c->gone)
        p[n++] = (struct pollfd){
            .fd = c->sock, .events = (short)(POLLIN | (serve_client_wants_write(c) ? POLLOUT : 0))};
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        const struct serve_runner *r = &c->jobs[i].runner;
        if (!c->jobs[i].used || serve_runner_over(r))
            continue;
        p[n++] = (struct pollfd){.fd = r->pidfd, .events = POLLIN};
        if (r->out >= 0)
            p[n++] = (struct pollfd){.fd = r->out, .events = POLLIN};
        if (r->err >= 0)
            p[n++] = (struct pollfd){.fd = r->err, .events = POLLIN};
    }
    return n;
}

static int wait_ms(const struct daemon *d, uint64_t now_ns)
{
    uint64_t next = d->end_ns ? d->end_ns : UINT64_MAX;
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++) {
        if (!d->clients[i])
            continue;
        const uint64_t asks = serve_asks_next(d->clients[i]), jobs = serve_jobs_next(d->clients[i]),
                       first = asks < jobs ? asks : jobs;
        next = first < next ? first : next;
    }
    if (next <= now_ns)
        return 0;
    const uint64_t ms = (next - now_ns) / CLOCK_NS_PER_MS + 1;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* One look at everything. */
static int turn(struct daemon *d, struct err *err)
{
    static struct pollfd p[WATCHED];
    size_t n = OTHERS;
    p[SIGNALS] = (struct pollfd){.fd = d->end_ns ? -1 : d->signals, .events = POLLIN};
    p[LISTENER] = (struct pollfd){.fd = d->end_ns ? -1 : d->listener, .events = POLLIN};
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (d->clients[i])
            n += watch_client(d->clients[i], p + n);
    if (poll(p, n, wait_ms(d, clock_now_ns())) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    const uint64_t now = clock_now_ns();
    if (p[LISTENER].revents)
        accept_client(d);
    if (p[SIGNALS].revents) {
        d->signalled = true;
        leave_all(d, now);
    }
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (d->clients[i] && !look(d->clients[i], now))
            drop(&d->clients[i]);
    return 0;
}

static bool has_clients(const struct daemon *d)
{
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (d->clients[i])
            return true;
    return false;
}

/* Until there is nobody left to serve, and nobody to come; a client that was there from the start takes us with it. */
static int serve(struct daemon *d, struct err *err)
{
    int k = 0;
    while (k == 0 && (has_clients(d) || (d->listener >= 0 && !d->end_ns))) {
        k = turn(d, err);
        if (d->listener < 0 && d->clients[0] && d->clients[0]->gone)
            leave_all(d, clock_now_ns());
        if (d->end_ns && clock_now_ns() > d->end_ns)
            break;
    }
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (d->clients[i])
            drop(&d->clients[i]);
    return k;
}

int serve_daemon_stdio(const struct serve_config *config, struct err *err)
{
    FD_AUTO signals = open_signals();
    FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct daemon d = {.config = config, .signals = signals, .listener = -1};
    int k = signals < 0 || null < 0 ? err_sys(err, "signals, /dev/null") : narrow(err);
    if (k == 0)
        k = add(&d, STDIN_FILENO, STDOUT_FILENO, err);
    /* the client's descriptors are the front's alone from here on */
    if (k == 0 && (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0))
        k = err_sys(err, "give the client's descriptors away");
    return k < 0 ? k : serve(&d, err);
}

int serve_daemon_http(const struct serve_config *config, int listener, int token, struct err *err)
{
    FD_AUTO signals = open_signals();
    struct daemon d = {.config = config, .signals = signals, .listener = -1};
    int k = signals < 0 ? err_sys(err, "signals") : narrow(err);
    struct serve_client *c = k < 0 ? NULL : calloc(1, sizeof *c);
    if (k == 0 && !c)
        k = err_set(err, ERR_MEMORY, "no memory");
    if (k == 0)
        k = serve_client_start_http(c, config, listener, token, err);
    d.clients[0] = c;
    if (k == 0)
        k = serve(&d, err);
    else if (c)
        drop(&d.clients[0]);
    return k < 0 || d.signalled ? k : err_set(err, ERR_STATE, "the front ends again and again");
}

int serve_daemon_socket(const struct serve_config *config, int sock, struct err *err)
{
    FD_AUTO signals = open_signals();
    struct daemon d = {.config = config, .signals = signals, .listener = sock};
    int k = signals < 0 ? err_sys(err, "signals") : narrow(err);
    if (k == 0 && fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
        k = err_sys(err, "the listening socket");
    return k < 0 ? k : serve(&d, err);
}
