/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors: a listening socket, clients, and packets to and from cordon-proxy. Packets come first: one may end a stream.
 *
 * Waits: poll in turn; clients and cordon-proxy; the next moment at which something is due; looks again
 *        accept4 in accept_some; nobody: the socket is non-blocking; at once; comes again after poll
 *        read in read_conn; nobody: the socket is non-blocking; at once; comes again after poll */
#include "proxy/front/front.h"

#include "base/clock.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENER, KEYS, CONNS };
#define LISTENER_FD 0
#define KEYS_FD     3
#define FRAMES      512 /* taken in one turn */

struct loop {
    struct proxy_front *front;
    int fds[PROXY_CONNS];
    struct pollfd p[CONNS + PROXY_CONNS];
    size_t of[PROXY_CONNS];
    bool over;
};

static void close_conn(struct loop *l, size_t i)
{
    proxy_conn_left(l->front, &l->front->conns[i]);
    close(l->fds[i]);
    l->fds[i] = -1;
}

/* Where there is no room, the connection that has been idle for the longest makes room; none that works. */
static bool make_room(struct loop *l)
{
    size_t found = PROXY_CONNS;
    for (size_t i = 0; i < PROXY_CONNS; i++) {
        const struct proxy_conn *c = &l->front->conns[i];
        if (c->state == PROXY_CONN_UNUSED)
            return true;
        if ((c->state == PROXY_CONN_HEAD || c->state == PROXY_CONN_LINGER) &&
            (found == PROXY_CONNS || c->deadline_ms < l->front->conns[found].deadline_ms))
            found = i;
    }
    if (found == PROXY_CONNS)
        return false;
    close_conn(l, found);
    return true;
}

static void accept_some(struct loop *l)
{
    for (int i = 0; i < 64 && make_room(l); i++) {
        const int fd = accept4(LISTENER_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        const struct proxy_conn *c = proxy_conn_accept(l->front);
        l->fds[c - l->front->conns] = fd;
    }
}

static void read_conn(struct loop *l, size_t i)
{
    static char chunk[32768];
    struct proxy_conn *c = &l->front->conns[i];
    const ssize_t n = read(l->fds[i], chunk, sizeof chunk);
    if (n > 0)
        proxy_conn_bytes(l->front, c, chunk, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        c->broken = true;
}

static void write_conn(struct loop *l, size_t i)
{
    struct proxy_conn *c = &l->front->conns[i];
    while (c->written < c->out.len && !c->broken) {
        struct iovec iov = {c->out.data + c->written, c->out.len - c->written};
        const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = sendmsg(l->fds[i], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            c->broken = true;
        else
            proxy_conn_wrote(l->front, c, (size_t)n);
        if (!c->broken && c->state == PROXY_CONN_LINGER)
            shutdown(l->fds[i], SHUT_WR);
    }
}

static void write_all(struct loop *l)
{
    for (size_t i = 0; i < PROXY_CONNS; i++) {
        const struct proxy_conn *c = &l->front->conns[i];
        if (c->state == PROXY_CONN_UNUSED)
            continue;
        write_conn(l, i);
        if (c->broken)
            close_conn(l, i);
    }
}

static size_t watch(struct loop *l)
{
    size_t n = CONNS;
    l->p[LISTENER] = (struct pollfd){.fd = LISTENER_FD, .events = POLLIN};
    l->p[KEYS] = (struct pollfd){
        .fd = KEYS_FD,
        .events = (short)(POLLIN | (wire_queue_waiting(&l->front->out) ? POLLOUT : 0))};
    for (size_t i = 0; i < PROXY_CONNS; i++) {
        const struct proxy_conn *c = &l->front->conns[i];
        if (c->state == PROXY_CONN_UNUSED)
            continue;
        l->of[n - CONNS] = i;
        l->p[n++] = (struct pollfd){.fd = l->fds[i],
                                    .events = (short)((proxy_conn_reads(c) ? POLLIN : POLLRDHUP) |
                                                      (c->written < c->out.len ? POLLOUT : 0))};
    }
    return n;
}

static void look(struct loop *l, size_t i, short events)
{
    struct proxy_conn *c = &l->front->conns[i];
    if (c->state == PROXY_CONN_UNUSED) /* it made room for another */
        return;
    if (events & POLLIN)
        read_conn(l, i);
    else if (events & (POLLRDHUP | POLLHUP | POLLERR))
        c->broken = true;
}

static int take_frames(struct loop *l, struct err *err)
{
    static char frame[LIMIT_FRAME];
    int r = 0;
    for (int i = 0; i < FRAMES && r == 0 && !l->over; i++) {
        struct iovec iov = {frame, sizeof frame};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = recvmsg(KEYS_FD, &m, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        l->over = n <= 0;
        if (l->over)
            return 0;
        r = proxy_front_frame(l->front, frame, (size_t)n, err);
        if (wire_queue_send(&l->front->out, KEYS_FD) <
            0) /* a connection that is to be closed is closed now */
            l->over = true;
    }
    return r;
}

static int wait_ms(uint64_t now, uint64_t next)
{
    return next <= now ? 0 : next - now < 3600000 ? (int)(next - now) : 3600000;
}

/* A call is a megabyte while it lasts, its monitor's, and the allocator keeps what many of them leave: it is told to give it back when
 * none is left, or a hundred have ended (`make proxy-load`). */
static void give_back(struct proxy_front *f)
{
    if (f->ended < 100 && (f->calls || !f->ended))
        return;
    malloc_trim(0);
    f->ended = 0;
}

static int turn(struct loop *l, struct err *err)
{
    struct proxy_front *f = l->front;
    give_back(f);
    f->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
    (void)proxy_front_tick(f);
    write_all(l);
    const uint64_t next = proxy_front_tick(f); /* what was written may have changed it */
    if (wire_queue_send(&f->out, KEYS_FD) < 0) {
        l->over = true;
        return 0;
    }
    const size_t n = watch(l);
    if (poll(l->p, n, wait_ms(f->now_ms, next)) < 0 && errno != EINTR)
        return err_sys(err, "poll");
    f->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
    int r = l->p[KEYS].revents & (POLLIN | POLLHUP | POLLERR) ? take_frames(l, err) : 0;
    for (size_t i = CONNS; r == 0 && i < n; i++)
        if (l->p[i].revents)
            look(l, l->of[i - CONNS], l->p[i].revents);
    if (r == 0 && l->p[LISTENER].revents)
        accept_some(l);
    return r == 0 && f->bad ? err_set(err, f->bad, "no memory") : r;
}

int proxy_front_run(const struct proxy_front_config *config, struct err *err)
{
    static struct loop l;
    l.front = proxy_front_new(config);
    if (!l.front)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = 0;
    while (r == 0 && !l.over)
        r = turn(&l, err);
    proxy_front_free(l.front);
    return r;
}
