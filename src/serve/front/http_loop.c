/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of HTTP: a listening socket, connections, and packets to and from cordond. The end of a client is seen at
 * once, also while it waits for its answer: in the newest revision that cancels what it asked for.
 *
 * Waits: poll in serve_front_http; clients and cordond; the next moment at which something is due; looks again
 *        poll in flush; clients, once cordond is gone; LIMIT_SERVE_FLUSH_MS; the rest is dropped
 *        accept4 in accept_some; nobody: the socket is non-blocking; at once; comes again after poll
 *        read in read_conn; nobody: the socket is non-blocking; at once; comes again after poll */
#include "serve/front/http_server.h"
#include "serve/front/link.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENER, CORDOND, CONNS };
#define LISTENER_FD 0

struct loop {
    struct serve_http *http;
    struct serve_link link;
    int fds[LIMIT_HTTP_CONNECTIONS];
    struct pollfd p[CONNS + LIMIT_HTTP_CONNECTIONS];
    int of[LIMIT_HTTP_CONNECTIONS]; /* which connection an entry of p is of */
};

static void close_conn(struct loop *l, size_t i)
{
    serve_http_left(l->http, &l->http->conns[i]);
    close(l->fds[i]);
    l->fds[i] = -1;
}

/* Where there is no room, the connection that has been idle for the longest makes room; none that works. */
static bool make_room(struct loop *l)
{
    size_t found = LIMIT_HTTP_CONNECTIONS;
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        const struct serve_http_conn *c = &l->http->conns[i];
        if (c->state == SERVE_HTTP_UNUSED)
            return true;
        if ((c->state == SERVE_HTTP_HEAD || c->state == SERVE_HTTP_LINGER) &&
            (found == LIMIT_HTTP_CONNECTIONS || c->deadline_ms < l->http->conns[found].deadline_ms))
            found = i;
    }
    if (found == LIMIT_HTTP_CONNECTIONS)
        return false;
    close_conn(l, found);
    return true;
}

static void accept_some(struct loop *l)
{
    for (int i = 0; i < 16 && make_room(l); i++) {
        const int fd = accept4(LISTENER_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        const struct serve_http_conn *c = serve_http_accept(l->http);
        l->fds[c - l->http->conns] = fd;
    }
}

static void read_conn(struct loop *l, size_t i)
{
    static char chunk[32768];
    struct serve_http_conn *c = &l->http->conns[i];
    const ssize_t n = read(l->fds[i], chunk, sizeof chunk);
    if (n > 0)
        serve_http_bytes(l->http, c, chunk, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        c->broken = true;
}

static void write_conn(struct loop *l, size_t i)
{
    struct serve_http_conn *c = &l->http->conns[i];
    while (c->written < c->out.len && !c->broken) {
        struct iovec iov = {c->out.data + c->written, c->out.len - c->written};
        const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = sendmsg(l->fds[i], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            c->broken = true;
        else
            serve_http_wrote(l->http, c, (size_t)n);
        if (!c->broken && c->state == SERVE_HTTP_LINGER)
            shutdown(l->fds[i], SHUT_WR);
    }
}

static void write_all(struct loop *l)
{
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        if (l->http->conns[i].state != SERVE_HTTP_UNUSED)
            write_conn(l, i);
        if (l->http->conns[i].broken)
            close_conn(l, i);
    }
}

static size_t watch(struct loop *l)
{
    size_t n = CONNS;
    l->p[LISTENER] = (struct pollfd){.fd = LISTENER_FD, .events = POLLIN};
    l->p[CORDOND] = (struct pollfd){.fd = SERVE_LINK_FD, .events = serve_link_events(&l->link)};
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        const struct serve_http_conn *c = &l->http->conns[i];
        if (c->state == SERVE_HTTP_UNUSED)
            continue;
        const int in = serve_http_reads(c)              ? POLLIN
                       : c->state == SERVE_HTTP_WRITING ? 0
                                                        : POLLRDHUP,
                  out = c->written < c->out.len ? POLLOUT : 0;
        l->of[n - CONNS] = (int)i;
        l->p[n++] = (struct pollfd){.fd = l->fds[i], .events = (short)(in | out)};
    }
    return n;
}

static void look(struct loop *l, size_t i, short events)
{
    struct serve_http_conn *c = &l->http->conns[i];
    if (c->state == SERVE_HTTP_UNUSED) /* it made room for another */
        return;
    if (events & POLLIN)
        read_conn(l, i);
    else if (events & (POLLRDHUP | POLLHUP | POLLERR))
        c->broken = true;
}

static int wait_ms(uint64_t now, uint64_t next)
{
    return next <= now ? 0 : next - now < 3600000 ? (int)(next - now) : 3600000;
}

static bool owes(const struct loop *l)
{
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        const struct serve_http_conn *c = &l->http->conns[i];
        if (c->state != SERVE_HTTP_UNUSED && c->written < c->out.len)
            return true;
    }
    return false;
}

/* cordond ended: what it had answered still goes to the clients, for a moment. */
static void flush(struct loop *l)
{
    const uint64_t until = l->http->now_ms + LIMIT_SERVE_FLUSH_MS;
    while (owes(l) && l->http->now_ms < until) {
        const size_t n = watch(l);
        for (size_t i = CONNS; i < n; i++)
            l->p[i].events &= POLLOUT;
        if (poll(l->p + CONNS, (nfds_t)(n - CONNS), (int)(until - l->http->now_ms)) < 0 &&
            errno != EINTR)
            return;
        write_all(l);
        l->http->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
    }
}

int serve_front_http(const struct serve_front_config *config, const struct serve_http_config *http,
                     struct err *err)
{
    static struct loop l;
    struct serve_front *f = serve_front_new(config);
    l.http = f ? serve_http_new(f, http) : NULL;
    if (!l.http) {
        serve_front_free(f);
        return err_set(err, ERR_MEMORY, "no memory");
    }
    serve_link_init(&l.link, f);
    int r = 0;
    while (r == 0 && !l.link.over) {
        l.http->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
        (void)serve_http_tick(l.http);
        write_all(&l);
        const uint64_t next = serve_http_tick(l.http); /* what was written may have changed it */
        serve_link_send(&l.link);
        const size_t n = watch(&l);
        if (poll(l.p, n, wait_ms(l.http->now_ms, next)) < 0 && errno != EINTR)
            r = err_sys(err, "poll");
        l.http->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
        if (r == 0 && l.p[CORDOND].revents & (POLLIN | POLLHUP | POLLERR))
            r = serve_link_read(&l.link, err);
        for (size_t i = CONNS; r == 0 && i < n; i++)
            if (l.p[i].revents)
                look(&l, (size_t)l.of[i - CONNS], l.p[i].revents);
        if (r == 0 && l.p[LISTENER].revents)
            accept_some(&l);
        if (r == 0 && f->bad)
            r = err_set(err, f->bad, "no memory");
    }
    if (r == 0)
        flush(&l);
    serve_http_free(l.http);
    serve_front_free(f);
    return r;
}
