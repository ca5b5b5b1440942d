/* SPDX-License-Identifier: Apache-2.0 */
/* Connections. A client is of the same user, but may be broken, stopped or a flood: it gets a conn of a
 * fixed number, one packet a round, and a reply that is sent without waiting. A client that does
 * not take its reply, or asks nothing, loses its conn.
 *
 * Waits: accept4 in pool_conn_accept; nobody: the socket is non-blocking; at once; comes again
 *        fd_send in pool_conn_reply; nobody: the socket is non-blocking; at once; the client is dropped
 *        fd_receive in pool_conn_event; nobody: the socket is non-blocking; at once; comes again */
#include "pool/holding.h"

#include "base/clock.h"
#include "pool/socket.h"
#include "sys/fd.h"
#include "sys/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ACCEPTS = 16 }; /* a round */

/* A request that lies there unread is read in this round or the next. */
static bool has_spoken(struct pool_conn *conn)
{
    char byte;
    conn->spoke = conn->spoke || recv(conn->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    return conn->spoke;
}

static struct pool_conn *oldest_silent(struct pool_holder *h)
{
    struct pool_conn *oldest;
    do {
        oldest = NULL;
        for (size_t i = 0; i < POOL_CLIENTS; i++) {
            struct pool_conn *s = &h->conn[i];
            if (s->state == POOL_CONN_NEW && !s->spoke &&
                (!oldest || s->since_ns < oldest->since_ns))
                oldest = s;
        }
    } while (oldest && has_spoken(oldest));
    return oldest;
}

static struct pool_conn *free_conn(struct pool_holder *h)
{
    for (size_t i = 0; i < POOL_CLIENTS; i++)
        if (h->conn[i].state == POOL_CONN_FREE)
            return &h->conn[i];
    struct pool_conn *oldest = oldest_silent(h);
    if (oldest) /* a client that has asked nothing yet gives its conn to the new one */
        pool_conn_close(h, oldest);
    return oldest;
}

/* The look takes a descriptor, which a holder at its limit does not have: one is kept for it. */
static bool is_ours(struct pool_holder *h, int sock)
{
    pid_t peer = 0;
    fd_close(h->spare);
    bool good = sys_peer_is_us(sock, &peer) && sys_peer_is_outside(peer);
    h->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return good;
}

void pool_conn_accept(struct pool_holder *h)
{
    for (int i = 0; i < ACCEPTS; i++) {
        FD_AUTO sock = accept4(h->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct err err = ERR_INIT;
        if (sock < 0) {
            if (errno != EAGAIN) /* the client still waits, and epoll would tell of it at once */
                pool_holder_hears(h, false);
            return;
        }
        if (!is_ours(h, sock)) {
            h->refused_peers++;
            continue;
        }
        struct pool_conn *conn = pool_room_client(h) ? free_conn(h) : NULL;
        if (!conn)
            continue; /* every conn has something of ours: this one is told by the end of its socket */
        *conn = (struct pool_conn){.sock = -1, .init = -1};
        if (pool_holder_watch(h, sock, POOL_EVENT_SEAT, (size_t)(conn - h->conn), &err) < 0)
            continue;
        conn->sock = fd_take(&sock);
        h->conns++;
        pool_conn_state(h, conn, POOL_CONN_NEW);
    }
}

void pool_conn_state(struct pool_holder *h, struct pool_conn *conn, enum pool_conn_state state)
{
    if (conn->state == POOL_CONN_WAITING && state != POOL_CONN_WAITING && !conn->tag) {
        base_assert(conn->from->stock.waiters > 0);
        conn->from->stock.waiters--;
    }
    conn->state = state;
    conn->spoke = false;
    conn->since_ns = h->now;
}

void pool_conn_end_lease(struct pool_holder *h, struct pool_conn *conn)
{
    /* It is dead already if the run went to its end. */
    (void)syscall(SYS_pidfd_send_signal, conn->init, SIGKILL, NULL, 0);
    fd_close(fd_take(&conn->init));
    base_assert(conn->from->lent > 0);
    conn->from->lent--;
    conn->from->refill_ns = h->now; /* the run is over: now there is time to make another */
    pool_conn_state(h, conn, POOL_CONN_IDLE);
}

void pool_conn_close(struct pool_holder *h, struct pool_conn *conn)
{
    if (conn->state == POOL_CONN_FREE)
        return;
    if (conn->state == POOL_CONN_LEASE)
        pool_conn_end_lease(h, conn);
    struct pool_session *s = conn->session;
    conn->session = NULL;
    pool_conn_state(h, conn, POOL_CONN_FREE);
    fd_close(fd_take(&conn->sock));
    h->conns--;
    if (s)
        pool_session_end_to_record(h, s, "its client went away during a call");
}

bool pool_conn_reply(struct pool_holder *h, struct pool_conn *conn, const struct pool_reply *p,
                     int fd)
{
    char frame[4096];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct err err = ERR_INIT;
    struct fd_packet out = {.data = frame, .fds = &fd, .nfds = fd >= 0};
    int r = pool_reply_write(p, &b, &err);
    base_assert(r == 0);
    out.len = b.len;
    if (fd_send(conn->sock, &out) == 0)
        return true;
    pool_conn_close(h, conn);
    return false;
}

bool pool_conn_decline(struct pool_holder *h, struct pool_conn *conn, const char *word,
                       const char *fmt, ...)
{
    struct pool_reply p = {.type = WIRE_DECLINED};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p.reason, sizeof p.reason, fmt, ap);
    va_end(ap);
    snprintf(p.state, sizeof p.state, "%s", word);
    h->declined++;
    return pool_conn_reply(h, conn, &p, -1);
}

bool pool_conn_agree(struct pool_holder *h, struct pool_conn *conn, const char *name)
{
    struct pool_reply p = {.type = WIRE_AGREED};
    snprintf(p.name, sizeof p.name, "%s", name);
    return pool_conn_reply(h, conn, &p, -1);
}

void pool_conn_event(struct pool_holder *h, struct pool_conn *conn)
{
    char frame[4096];
    int fds[POOL_REQUEST_RIDE] = {-1, -1};
    struct fd_packet in = {
        .data = frame, .len = sizeof frame, .fds = fds, .nfds = POOL_REQUEST_RIDE};
    struct pool_request q;
    struct err err = ERR_INIT;
    if (conn->state == POOL_CONN_BRANCH) {
        pool_request_branch(h, conn);
        return;
    }
    int got = fd_receive(conn->sock, &in);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        h->bad_frames += got < 0 && errno == EMSGSIZE;
        pool_conn_close(h, conn);
        return;
    }
    if (pool_request_read(frame, in.len, &q, &err) < 0 ||
        in.nfds > pool_request_descriptors(q.type)) {
        h->bad_frames++;
        pool_conn_close(h, conn);
    } else {
        pool_request_handle(h, conn, &q, fds);
    }
    for (size_t i = 0; i < POOL_REQUEST_RIDE; i++) /* what nobody took */
        fd_close(fds[i]);
}

uint64_t pool_conn_due(const struct pool_conn *conn)
{
    return conn->state == POOL_CONN_NEW       ? conn->since_ns + POOL_HALF_OPEN_MS * CLOCK_NS_PER_MS
           : conn->state == POOL_CONN_WAITING ? conn->until_ns
                                              : UINT64_MAX;
}

void pool_conn_timeout(struct pool_holder *h, struct pool_conn *conn)
{
    if (conn->state == POOL_CONN_NEW) {
        pool_conn_close(h, conn);
        return;
    }
    struct pool_warm *w = conn->from;
    const uint64_t waited = (h->now - conn->since_ns) / CLOCK_NS_PER_MS;
    pool_conn_state(h, conn, POOL_CONN_IDLE);
    pool_conn_decline(h, conn, w->template ? POOL_WHY_EMPTY : POOL_WHY_BROKEN,
                      "no child was made within %llu ms: %.120s", (unsigned long long)waited,
                      w->error[0] ? w->error : "the machine is busy; try again");
}
