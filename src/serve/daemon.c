/* SPDX-License-Identifier: Apache-2.0 */
/* One loop, no thread: signals, fronts and runners are descriptors. A client that leaves, however it does, takes its runs
 * and sessions with it.
 *
 * Waits: poll in turn; the front, the runners, a signal; the next moment at which something is due; looks again */
#include "serve/daemon.h"

#include "base/clock.h"
#include "serve/holding.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS, FRONT, FRONT_END, RUNNERS };
#define WATCHED (RUNNERS + 3 * LIMIT_SERVE_JOBS)

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

static size_t watch(const struct serve_client *c, int signals, struct pollfd *p)
{
    size_t n = RUNNERS;
    p[SIGNALS] = (struct pollfd){.fd = c->gone ? -1 : signals, .events = POLLIN};
    p[FRONT] = (struct pollfd){
        .fd = c->sock, .events = (short)(POLLIN | (serve_client_wants_write(c) ? POLLOUT : 0))};
    p[FRONT_END] = (struct pollfd){.fd = c->gone ? -1 : c->front_fd, .events = POLLIN};
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

static int wait_ms(const struct serve_client *c, uint64_t end_ns, uint64_t now_ns)
{
    uint64_t next = serve_asks_next(c), jobs = serve_jobs_next(c);
    next = jobs < next ? jobs : next;
    next = end_ns && end_ns < next ? end_ns : next;
    if (next <= now_ns)
        return 0;
    const uint64_t ms = (next - now_ns) / CLOCK_NS_PER_MS + 1;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* One look at everything. */
static int turn(struct serve_client *c, int signals, uint64_t end_ns, struct err *err)
{
    struct pollfd p[WATCHED];
    const size_t n = watch(c, signals, p);
    if (poll(p, n, wait_ms(c, end_ns, clock_now_ns())) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    const uint64_t now = clock_now_ns();
    if (p[FRONT].revents)
        serve_client_read(c, now);
    if (p[SIGNALS].revents || p[FRONT_END].revents)
        serve_client_leave(c, now);
    serve_jobs_tick(c, now);
    serve_asks_tick(c, now);
    serve_client_write(c);
    return 0;
}

static int serve(struct serve_client *c, int signals, struct err *err)
{
    uint64_t end_ns = 0;
    int k = 0;
    while (k == 0 && !(c->gone && serve_client_idle(c)) && !(end_ns && clock_now_ns() > end_ns)) {
        k = turn(c, signals, end_ns, err);
        if (c->gone && !end_ns)
            end_ns = clock_now_ns() + LIMIT_SERVE_END_MS * CLOCK_NS_PER_MS;
    }
    return k;
}

int serve_daemon_stdio(const struct serve_config *config, struct err *err)
{
    struct serve_client *c = calloc(1, sizeof *c);
    FD_AUTO signals = open_signals();
    FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (!c)
        return err_set(err, ERR_MEMORY, "no memory");
    int k = signals < 0 || null < 0 ? err_sys(err, "signals, /dev/null") : narrow(err);
    if (k == 0) {
        k = serve_client_start(c, config, STDIN_FILENO, STDOUT_FILENO, err);
        /* the client's descriptors are the front's alone from here on */
        if (k == 0 && (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0))
            k = err_sys(err, "give the client's descriptors away");
        if (k == 0)
            k = serve(c, signals, err);
        serve_client_done(c);
    }
    free(c);
    return k;
}
