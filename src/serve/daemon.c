/* SPDX-License-Identifier: Apache-2.0 */
/* One loop, no thread: signals, fronts and runners are descriptors; life.c says how it ends. A client that leaves, however it does, takes its runs
 * and sessions with it. Each client has a front of its own, so that none reaches another through it.
 *
 * Waits: accept4 in accept_client; nobody: the socket is non-blocking; at once; comes again after poll
 *        accept4 in turn_away; as that; at once; nobody is left to be turned away
 *        ppoll in turn; the fronts, the runners, a signal; the next moment at which something is due; looks again */
#include "serve/daemon.h"

#include "base/clock.h"
#include "serve/serving.h"
#include "sys/fd.h"
#include "sys/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS, LISTENER, READER, READY, OTHERS = READY + LIMIT_SERVE_READY };
#define CLIENTS (LIMIT_SERVE_CLIENTS + SERVE_FRONTS)
#define WATCHED (OTHERS + CLIENTS * (1 + 4 * LIMIT_SERVE_JOBS))

/* What it starts builds jails, so it keeps what that needs; gone are the gain of rights by a program, being looked into,
 * and core files. A runner is four descriptors: all that there may be are more than the usual soft limit. */
static int narrow(struct err *err)
{
    const struct rlimit none = {0, 0};
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys(err, "getrlimit");
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, "no new privileges, no core");
    return 0;
}

/* ---- clients ---- */

/* One that is not started yet, in a place of its own: those of the socket are before those of the fronts of HTTP, so that neither takes
 * one of the other's. */
static struct serve_client **place(struct serve_server *s, size_t first, size_t end,
                                   struct err *err)
{
    for (size_t i = first; i < end; i++) {
        if (s->clients[i])
            continue;
        s->clients[i] = calloc(1, sizeof **s->clients);
        if (s->clients[i])
            return &s->clients[i];
        err_set(err, ERR_MEMORY, "no memory");
        return NULL;
    }
    err_set(err, ERR_LIMIT, "the socket has as many clients as it serves");
    return NULL;
}

static void drop(struct serve_client **c)
{
    serve_client_done(*c);
    free(*c);
    *c = NULL;
}

static int add(struct serve_server *s, uid_t user, int in, int out, struct err *err)
{
    struct serve_client **c = place(s, 0, LIMIT_SERVE_CLIENTS, err);
    if (!c)
        return err->code;
    const int k = serve_client_start(*c, &s->all, user, in, out, err);
    if (k < 0)
        drop(c);
    return k;
}

/* TOKEN: -1: figures alone. */
static int add_http(struct serve_server *s, int listener, int token, struct err *err)
{
    struct serve_client **c = place(s, LIMIT_SERVE_CLIENTS, CLIENTS, err);
    int k = 0;
    if (!c)
        return err->code;
    if (token < 0) { /* every front of HTTP reads one from a file */
        k = fd_sealed("", 0, &s->no_token, err);
        if (k == 0)
            k = serve_client_start_http(*c, &s->all, listener, s->no_token, true, err);
    } else {
        s->http = *c;
        k = serve_client_start_http(*c, &s->all, listener, token, false, err);
    }
    if (k < 0)
        drop(c);
    return k;
}

/* Our own user may take all places; with others, one leaves room for them. */
static bool has_place(const struct serve_server *s, uid_t user)
{
    size_t has = 0;
    for (size_t i = 0; i < CLIENTS; i++)
        has += s->clients[i] && s->clients[i]->listener < 0 && s->clients[i]->user == user;
    return !s->all.config.all_users || has < LIMIT_SERVE_CLIENTS_USER;
}

static bool is_full(const struct serve_server *s)
{
    for (size_t i = 0; i < LIMIT_SERVE_CLIENTS; i++)
        if (!s->clients[i])
            return false;
    return true;
}

/* Who left has its place until all that it had is ended, and often it is the same who comes back: a client beyond the most is left
 * waiting at the socket for a while. */
static bool accepts(const struct serve_server *s, uint64_t now_ns)
{
    return now_ns >= s->accept_ns &&
           (!s->full_ns || now_ns >= s->full_ns + LIMIT_SERVE_FULL_MS * CLOCK_NS_PER_MS ||
            !is_full(s));
}

/* Who waits at the socket when the time of the first is over; the next one has its own. They are closed together, so that one who sees that
 * and comes back at once is not among them. */
static void turn_away(struct serve_server *s)
{
    int socks[LIMIT_SERVE_CLIENTS];
    size_t n = 0;
    while (n < LIMIT_SERVE_CLIENTS &&
           (socks[n] = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        n++;
    for (size_t i = 0; i < n; i++)
        fd_close(socks[i]);
    s->all.figures.turned_away += n;
    s->full_ns = 0;
}

/* Whoever is not served is told by the end of the socket. */
static void accept_client(struct serve_server *s, uint64_t now_ns)
{
    struct err err = ERR_INIT;
    pid_t peer = 0;
    uid_t user = 0;
    if (is_full(s)) {
        if (s->full_ns)
            turn_away(s);
        else
            s->full_ns = now_ns;
        return;
    }
    s->full_ns = 0;
    FD_AUTO sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (sock < 0) { /* the client still waits, and poll would tell of it at once */
        s->accept_ns = errno == EAGAIN ? now_ns : now_ns + LIMIT_ACCEPT_MS * CLOCK_NS_PER_MS;
        return;
    }
    const bool let_in =
        sys_peer_who(sock, &user, &peer) && (user == geteuid() || s->all.config.all_users) &&
        sys_peer_is_outside(peer) && has_place(s, user) && add(s, user, sock, sock, &err) == 0;
    s->all.figures.clients += let_in;
    s->all.figures.turned_away += !let_in;
}

/* Everything that is due for a client. False: it is gone, and nothing of it runs. */
static bool look(struct serve_client *c, uint64_t now_ns)
{
    if (c->stirred)
        serve_client_read(c, now_ns);
    serve_jobs_tick(c, now_ns);
    serve_asks_tick(c, now_ns);
    serve_client_write(c);
    serve_jobs_release(c, now_ns);
    serve_client_close_sessions(c, now_ns);
    return !(c->gone && serve_client_idle(c));
}

/* ---- the loop ---- */

static size_t watch_job(const struct serve_client *c, const struct serve_job *j,
                        struct pollfd p[static 4], uint64_t now_ns)
{
    const struct serve_runner *r = &j->runner;
    size_t n = 0;
    if (!j->used || serve_runner_over(r))
        return 0;
    p[n++] = (struct pollfd){.fd = r->pidfd, .events = POLLIN};
    if (!r->done && r->order >= 0)
        p[n++] = (struct pollfd){.fd = r->order, .events = POLLIN};
    if (r->done || !serve_jobs_heard(c, j, now_ns))
        return n;
    if (r->out >= 0)
        p[n++] = (struct pollfd){.fd = r->out, .events = POLLIN};
    if (r->err >= 0)
        p[n++] = (struct pollfd){.fd = r->err, .events = POLLIN};
    return n;
}

static size_t watch_client(struct serve_client *c, struct pollfd *p, uint64_t now_ns)
{
    size_t n = 0;
    if (c->sock >= 0)
        p[n++] = (struct pollfd){
            .fd = c->sock, .events = (short)(POLLIN | (serve_client_wants_write(c) ? POLLOUT : 0))};
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        n += c->jobs[i].watched = watch_job(c, &c->jobs[i], p + n, now_ns);
    return n;
}

/* P: what poll made of the entries that watch_client wrote. */
static size_t note_stirred(struct serve_client *c, const struct pollfd *p)
{
    size_t n = 0;
    c->stirred = c->sock >= 0 && p[n++].revents;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        struct serve_job *j = &c->jobs[i];
        j->stirred = false;
        for (size_t k = 0; k < j->watched; k++)
            j->stirred = p[n++].revents || j->stirred;
    }
    return n;
}

static struct timespec wait_time(const struct serve_server *s, uint64_t now_ns)
{
    uint64_t next = serve_life_next(s);
    const uint64_t full_until = s->full_ns + LIMIT_SERVE_FULL_MS * CLOCK_NS_PER_MS;
    if (s->listener >= 0 && s->accept_ns > now_ns && s->accept_ns < next)
        next = s->accept_ns;
    if (s->listener >= 0 && s->full_ns && full_until > now_ns && full_until < next)
        next = full_until;
    const uint64_t ready = serve_ready_next(&s->all);
    next = ready < next ? ready : next;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!s->clients[i])
            continue;
        const uint64_t asks = serve_asks_next(s->clients[i]),
                       jobs = serve_jobs_next(s->clients[i], now_ns),
                       first = asks < jobs ? asks : jobs;
        next = first < next ? first : next;
    }
    const uint64_t ns = next <= now_ns ? 0 : next - now_ns, most = 3600 * CLOCK_NS_PER_S;
    return ns < most ? (struct timespec){(time_t)(ns / CLOCK_NS_PER_S), (long)(ns % CLOCK_NS_PER_S)}
                     : (struct timespec){3600, 0};
}

/* One look at everything. */
static int turn(struct serve_server *s, struct err *err)
{
    static struct pollfd p[WATCHED];
    size_t n = OTHERS;
    const uint64_t before = clock_now_ns();
    p[SIGNALS] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    p[LISTENER] = (struct pollfd){.fd = accepts(s, before) ? s->listener : -1, .events = POLLIN};
    p[READER] = (struct pollfd){.fd = s->reloading ? s->reader.pidfd : -1, .events = POLLIN};
    serve_ready_watch(&s->all, p + READY);
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i])
            n += watch_client(s->clients[i], p + n, before);
    const struct timespec most = wait_time(s, before);
    if (ppoll(p, n, &most, NULL) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    const uint64_t now = clock_now_ns();
    n = OTHERS;
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i])
            n += note_stirred(s->clients[i], p + n);
    if (p[LISTENER].revents)
        accept_client(s, now);
    serve_life_look(s, p[SIGNALS].revents != 0, now);
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i] && !look(s->clients[i], now)) {
            s->http = s->http == s->clients[i] ? NULL : s->http;
            drop(&s->clients[i]);
        }
    serve_ready_tick(&s->all, p + READY, now);
    return 0;
}

static bool has_clients(const struct serve_server *s)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i])
            return true;
    return false;
}

/* Until there is nobody left to serve, and nobody to come. A client that was there from the start takes us with it, and so
 * does a front of HTTP that cannot live. */
static int serve(struct serve_server *s, struct err *err)
{
    const bool web = s->http != NULL;
    bool failed = false;
    int k = 0;
    sys_notify_send(&s->manager, "READY=1");
    while (k == 0 && (has_clients(s) || s->listener >= 0)) {
        k = turn(s, err);
        const uint64_t now = clock_now_ns();
        failed = failed || (web && s->phase == SERVE_SERVING && (!s->http || s->http->gone));
        if (failed || (s->one && (!s->clients[0] || s->clients[0]->gone)))
            serve_life_leave(s, now);
        if (serve_life_over(s, now))
            break;
    }
    return k == 0 && failed ? err_set(err, ERR_STATE,
                                      "cordon-front, which speaks with the clients, ended again "
                                      "and again; see the messages before")
                            : k;
}

/* The client's descriptors are the front's alone from here on. */
static int add_stdio(struct serve_server *s, struct err *err)
{
    FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int k =
        null < 0 ? err_sys(err, "/dev/null") : add(s, getuid(), STDIN_FILENO, STDOUT_FILENO, err);
    if (k == 0 && (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0))
        k = err_sys(err, "give the client's descriptors away");
    return k;
}

int serve_daemon(const struct serve_config *config, const struct serve_ways *ways, struct err *err)
{
    struct serve_server s = {.all = {.config = *config},
                             .listener = ways->sock,
                             .one = ways->stdio,
                             .signals = -1,
                             .no_token = -1};
    s.all.clients = s.clients;
    s.all.places = CLIENTS;
    s.all.figures.begun_s = (uint64_t)time(NULL);
    int k = serve_life_begin(&s, err);
    if (k == 0)
        k = narrow(err);
    if (k == 0 && s.listener >= 0 && fcntl(s.listener, F_SETFL, O_NONBLOCK) < 0)
        k = err_sys(err, "the listening socket");
    if (k == 0 && ways->stdio)
        k = add_stdio(&s, err);
    if (k == 0 && ways->http >= 0)
        k = add_http(&s, ways->http, ways->token, err);
    if (k == 0 && ways->metrics >= 0)
        k = add_http(&s, ways->metrics, -1, err);
    if (k == 0)
        k = serve(&s, err);
    for (size_t i = 0; i < CLIENTS; i++)
        if (s.clients[i])
            drop(&s.clients[i]);
    serve_life_end(&s);
    fd_close(s.no_token);
    return k;
}
