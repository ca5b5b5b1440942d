/* Connections. A client is of the same user, but may be broken, stopped or a flood: it gets a seat of a
 * fixed number, one packet a round, and a reply that is sent without waiting. Whoever does not
 * take its reply, or says nothing, loses its seat.
 *
 * Waits: accept4 in pool_seat_accept; nobody: the socket is non-blocking; at once; comes again
 *        fd_send in pool_seat_reply; nobody: the socket is non-blocking; at once; the client is dropped
 *        fd_receive in pool_seat_event; nobody: the socket is non-blocking; at once; comes again */
#include "pool/holding.h"

#include "base/clock.h"
#include "pool/place.h"
#include "sys/fd.h"

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

static struct pool_seat *free_seat(struct pool_holder *h)
{
    struct pool_seat *oldest = NULL;
    for (size_t i = 0; i < POOL_CLIENTS; i++) {
        struct pool_seat *s = &h->seat[i];
        if (s->state == POOL_SEAT_FREE)
            return s;
        if (s->state == POOL_SEAT_NEW && (!oldest || s->since_ns < oldest->since_ns))
            oldest = s;
    }
    if (oldest) /* who has said nothing yet makes room for who comes */
        pool_seat_close(h, oldest);
    return oldest;
}

/* The look takes a descriptor, which a holder at its limit does not have: one is kept for it. */
static bool is_ours(struct pool_holder *h, int sock)
{
    pid_t peer = 0;
    fd_close(h->spare);
    bool good = pool_place_peer_is_us(sock, &peer) && pool_place_peer_is_outside(peer);
    h->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return good;
}

void pool_seat_accept(struct pool_holder *h)
{
    for (int i = 0; i < ACCEPTS; i++) {
        FD_AUTO sock = accept4(h->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct err err = ERR_INIT;
        if (sock < 0)
            return;
        if (!is_ours(h, sock)) {
            h->refused_peers++;
            continue;
        }
        struct pool_seat *seat = pool_room_client(h) ? free_seat(h) : NULL;
        if (!seat)
            continue; /* every seat has something of ours: this one is told by the end of its socket */
        *seat = (struct pool_seat){.sock = -1, .init = -1};
        if (pool_holder_watch(h, sock, POOL_EVENT_SEAT, (size_t)(seat - h->seat), &err) < 0)
            continue;
        seat->sock = fd_take(&sock);
        h->seats++;
        pool_seat_state(h, seat, POOL_SEAT_NEW);
    }
}

void pool_seat_state(struct pool_holder *h, struct pool_seat *seat, enum pool_seat_state state)
{
    if (seat->state == POOL_SEAT_WAITING && state != POOL_SEAT_WAITING && !seat->tag) {
        base_assert(seat->from->stock.waiters > 0);
        seat->from->stock.waiters--;
    }
    seat->state = state;
    seat->since_ns = h->now;
}

void pool_seat_end_lease(struct pool_holder *h, struct pool_seat *seat)
{
    /* It is dead already if the run went to its end. */
    (void)syscall(SYS_pidfd_send_signal, seat->init, SIGKILL, NULL, 0);
    fd_close(fd_take(&seat->init));
    base_assert(seat->from->lent > 0);
    seat->from->lent--;
    seat->from->refill_ns = h->now; /* the run is over: now there is time to make another */
    pool_seat_state(h, seat, POOL_SEAT_IDLE);
}

void pool_seat_close(struct pool_holder *h, struct pool_seat *seat)
{
    if (seat->state == POOL_SEAT_FREE)
        return;
    if (seat->state == POOL_SEAT_LEASE)
        pool_seat_end_lease(h, seat);
    struct pool_session *s = seat->session;
    seat->session = NULL;
    pool_seat_state(h, seat, POOL_SEAT_FREE);
    fd_close(fd_take(&seat->sock));
    h->seats--;
    if (s)
        pool_session_end_to_record(h, s, "its client went away during a call");
}

bool pool_seat_reply(struct pool_holder *h, struct pool_seat *seat, const struct pool_reply *p,
                     int fd)
{
    char frame[4096];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct err err = ERR_INIT;
    struct fd_packet out = {.data = frame, .fds = &fd, .nfds = fd >= 0};
    int r = pool_reply_write(p, &b, &err);
    base_assert(r == 0);
    out.len = b.len;
    if (fd_send(seat->sock, &out) == 0)
        return true;
    pool_seat_close(h, seat);
    return false;
}

bool pool_seat_decline(struct pool_holder *h, struct pool_seat *seat, const char *word,
                       const char *fmt, ...)
{
    struct pool_reply p = {.type = WIRE_DECLINED};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p.reason, sizeof p.reason, fmt, ap);
    va_end(ap);
    snprintf(p.state, sizeof p.state, "%s", word);
    h->declined++;
    return pool_seat_reply(h, seat, &p, -1);
}

bool pool_seat_agree(struct pool_holder *h, struct pool_seat *seat, const char *name)
{
    struct pool_reply p = {.type = WIRE_AGREED};
    snprintf(p.name, sizeof p.name, "%s", name);
    return pool_seat_reply(h, seat, &p, -1);
}

void pool_seat_event(struct pool_holder *h, struct pool_seat *seat)
{
    char frame[4096];
    int fd = -1;
    struct fd_packet in = {.data = frame, .len = sizeof frame, .fds = &fd, .nfds = 1};
    struct pool_request q;
    struct err err = ERR_INIT;
    if (seat->state == POOL_SEAT_BRANCH) {
        pool_request_branch(h, seat);
        return;
    }
    int got = fd_receive(seat->sock, &in);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        h->bad_frames += got < 0 && errno == EMSGSIZE;
        pool_seat_close(h, seat);
        return;
    }
    if (pool_request_read(frame, in.len, &q, &err) < 0 ||
        in.nfds > pool_request_descriptors(q.type)) {
        h->bad_frames++;
        pool_seat_close(h, seat);
    } else {
        pool_request_handle(h, seat, &q, fd);
    }
    fd_close(fd);
}

uint64_t pool_seat_due(const struct pool_seat *seat)
{
    return seat->state == POOL_SEAT_NEW       ? seat->since_ns + POOL_HALF_OPEN_MS * CLOCK_NS_PER_MS
           : seat->state == POOL_SEAT_WAITING ? seat->until_ns
                                              : UINT64_MAX;
}

void pool_seat_timeout(struct pool_holder *h, struct pool_seat *seat)
{
    if (seat->state == POOL_SEAT_NEW) {
        pool_seat_close(h, seat);
        return;
    }
    struct pool_warm *w = seat->from;
    pool_seat_state(h, seat, POOL_SEAT_IDLE);
    pool_seat_decline(h, seat, w->template ? POOL_WHY_EMPTY : POOL_WHY_BROKEN,
                      "no child was made in time%s%.120s", w->error[0] ? ": " : "", w->error);
}
