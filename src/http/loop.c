/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors: a listening socket, connections, and the process behind the owner. Its packets come first: one may end a stream. The
 * end of a client is seen at once, also while it waits for its answer, so that what it asked for can end.
 *
 * Waits: poll in turn; clients and the process behind; the next moment at which something is due; looks again
 *        poll in flush; clients, once the process behind is gone; the link's flush_ms; the rest is dropped
 *        accept4 in accept_some; nobody: the socket is non-blocking; at once; comes again after poll
 *        read in read_conn; nobody: the socket is non-blocking; at once; comes again after poll */
#include "http/server.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENER, LINK, CONNS };
#define ACCEPTED 64 /* in one turn */

struct loop {
    struct http_server *server;
    const struct http_link *link;
    int listener;
    uint64_t accept_ms; /* no client is accepted before: there was no room for the last */
    bool over;          /* the process behind is gone */
    int *fds;           /* of each connection */
    size_t *of;         /* which connection an entry of p behind CONNS is of */
    struct pollfd *p;
};

static void close_conn(struct loop *l, size_t i)
{
    http_conn_left(l->server, &l->server->conns[i]);
    close(l->fds[i]);
    l->fds[i] = -1;
}

static bool has_room(const struct http_server *s)
{
    for (size_t i = 0; i < s->top; i++)
        if (s->conns[i].state == HTTP_CONN_UNUSED)
            return true;
    return s->top < s->count;
}

/* Where there is no room, the connection that has been idle for the longest makes room; none that works. */
static bool make_room(struct loop *l)
{
    const struct http_server *s = l->server;
    size_t found = s->count;
    if (has_room(s))
        return true;
    for (size_t i = 0; i < s->count; i++) {
        const struct http_conn *c = &s->conns[i];
        if ((c->state == HTTP_CONN_HEAD || c->state == HTTP_CONN_LINGER) &&
            (found == s->count || c->deadline_ms < s->conns[found].deadline_ms))
            found = i;
    }
    if (found == s->count)
        return false;
    close_conn(l, found);
    return true;
}

static void accept_some(struct loop *l)
{
    for (int i = 0; i < ACCEPTED; i++) {
        if (i > 0 && !has_room(l->server))
            return; /* nobody makes room for a client that may not be there */
        const bool room = make_room(l);
        const int fd = room ? accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0 && (!room || errno != EAGAIN)) /* poll would tell of the client at once */
            l->accept_ms = l->server->now_ms + LIMIT_ACCEPT_MS;
        if (fd < 0)
            return;
        const struct http_conn *c = http_conn_accept(l->server);
        l->fds[c - l->server->conns] = fd;
    }
}

static void read_conn(struct loop *l, size_t i)
{
    static char chunk[32768];
    struct http_conn *c = &l->server->conns[i];
    const ssize_t n = read(l->fds[i], chunk, sizeof chunk);
    if (n > 0)
        http_conn_bytes(l->server, c, chunk, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        c->broken = true;
}

static void write_conn(struct loop *l, size_t i)
{
    struct http_conn *c = &l->server->conns[i];
    while (c->written < c->out.len && !c->broken) {
        struct iovec iov = {c->out.data + c->written, c->out.len - c->written};
        const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = sendmsg(l->fds[i], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            c->broken = true;
        else
            http_conn_wrote(l->server, c, (size_t)n);
        if (!c->broken && c->state == HTTP_CONN_LINGER)
            shutdown(l->fds[i], SHUT_WR);
    }
}

static void write_all(struct loop *l)
{
    for (size_t i = 0; i < l->server->top; i++) {
        const struct http_conn *c = &l->server->conns[i];
        if (c->state == HTTP_CONN_UNUSED)
            continue;
        write_conn(l, i);
        if (c->broken)
            close_conn(l, i);
    }
}

static bool owes(const struct http_conn *c)
{
    return c->state != HTTP_CONN_UNUSED && c->written < c->out.len;
}

static size_t watch(struct loop *l)
{
    size_t n = CONNS;
    l->p[LISTENER] = (struct pollfd){.fd = l->server->now_ms < l->accept_ms ? -1 : l->listener,
                                     .events = POLLIN};
    const short behind = http_server_behind(l->server) ? POLLIN : 0;
    l->p[LINK] = (struct pollfd){.fd = l->link->fd,
                                 .events = (short)(l->link->events(l->server->of) & ~behind)};
    for (size_t i = 0; i < l->server->top; i++) {
        const struct http_conn *c = &l->server->conns[i];
        if (c->state == HTTP_CONN_UNUSED)
            continue;
        /* who has sent its last byte is still owed the answer that is being written */
        const int in = http_conn_reads(c) ? POLLIN : c->state == HTTP_CONN_WRITING ? 0 : POLLRDHUP;
        l->of[n - CONNS] = i;
        l->p[n++] =
            (struct pollfd){.fd = l->fds[i], .events = (short)(in | (owes(c) ? POLLOUT : 0))};
    }
    return n;
}

static void look(struct loop *l, size_t i, short events)
{
    struct http_conn *c = &l->server->conns[i];
    if (c->state == HTTP_CONN_UNUSED) /* it made room for another */
        return;
    if (events & POLLIN)
        read_conn(l, i);
    else if (events & (POLLRDHUP | POLLHUP | POLLERR))
        c->broken = true;
}

static void look_at_clock(struct loop *l)
{
    l->server->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
}

static int wait_ms(uint64_t now, uint64_t next)
{
    return next <= now ? 0 : next - now < 3600000 ? (int)(next - now) : 3600000;
}

static bool owes_any(const struct http_server *s)
{
    for (size_t i = 0; i < s->top; i++)
        if (owes(&s->conns[i]))
            return true;
    return false;
}

/* The process behind ended: what it had answered still goes to the clients, for a moment. */
static void flush(struct loop *l)
{
    const struct http_server *s = l->server;
    const uint64_t until = s->now_ms + l->link->flush_ms;
    while (owes_any(s) && s->now_ms < until) {
        const size_t n = watch(l);
        for (size_t i = CONNS; i < n; i++)
            l->p[i].events &= POLLOUT;
        if (poll(l->p + CONNS, (nfds_t)(n - CONNS), (int)(until - s->now_ms)) < 0 && errno != EINTR)
            return;
        write_all(l);
        look_at_clock(l);
    }
}

static int turn(struct loop *l, struct err *err)
{
    struct http_server *s = l->server;
    look_at_clock(l);
    (void)http_server_tick(s);
    write_all(l);
    uint64_t next = http_server_tick(s); /* what was written may have changed it */
    if (l->accept_ms > s->now_ms && l->accept_ms < next)
        next = l->accept_ms;
    int r = l->link->send(s->of, &l->over, err);
    if (r < 0 || l->over)
        return r;
    const size_t n = watch(l);
    if (poll(l->p, n, wait_ms(s->now_ms, next)) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    look_at_clock(l);
    if (l->p[LINK].revents & (POLLIN | POLLHUP | POLLERR))
        r = l->link->read(s->of, &l->over, err);
    for (size_t i = CONNS; r == 0 && i < n; i++)
        if (l->p[i].revents)
            look(l, l->of[i - CONNS], l->p[i].revents);
    if (r == 0 && l->p[LISTENER].revents)
        accept_some(l);
    return r;
}

int http_server_run(struct http_server *s, int listener, const struct http_link *link,
                    struct err *err)
{
    struct loop l = {.server = s,
                     .link = link,
                     .listener = listener,
                     .fds = calloc(s->count, sizeof *l.fds),
                     .of = calloc(s->count, sizeof *l.of),
                     .p = calloc(CONNS + s->count, sizeof *l.p)};
    const bool made = l.fds && l.of && l.p;
    int r = made ? 0 : err_set(err, ERR_MEMORY, "no memory");
    while (made && r == 0 && !l.over)
        r = turn(&l, err);
    if (made && r == 0)
        flush(&l);
    free(l.fds);
    free(l.of);
    free(l.p);
    return r;
}
