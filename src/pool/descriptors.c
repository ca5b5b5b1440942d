/* SPDX-License-Identifier: Apache-2.0 */
/* The holder counts what it will hold before it asks for it. A packet whose descriptors do not fit is cut by the
 * kernel, and what was in it is gone: so a child that there is no room for is never ordered, and the client that
 * wanted it is told, while every other client keeps what it has.
 *
 * The numbers are what the parts have at most, not what they have now: those on their way count too. */
#include "pool/holding.h"

enum {
    OWN = 48,      /* ours, and what starting a template needs for a moment */
    TEMPLATE = 16, /* streams, sockets, clocks of one that runs */
    CLIENT = 2,    /* a connection; the child that is lent over it */
};

static size_t used(const struct pool_holder *h)
{
    size_t n = OWN + h->conns * CLIENT + h->sessions.alive * JAIL_CHILD_RIDE;
    for (size_t i = 0; i < POOL_CLIENTS; i++)
        n += h->conn[i].state == POOL_CONN_BRANCH ? JAIL_CHILD_RIDE + 1 : 0;
    for (size_t i = 0; i < sizeof h->sessions.session / sizeof *h->sessions.session; i++) {
        const struct pool_held *held = h->sessions.session[i].child;
        n += held && held->owner >= 0;
    }
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++) {
        const struct pool_warm *w = &h->warm[i];
        n += w->template ? TEMPLATE : 0;
        n +=
            w->own.shares ? 1 + w->own.shares->count : 0; /* the list; folders whose mode is kept */
        n += (w->stock.ready + w->orders) * JAIL_CHILD_RIDE;
    }
    return n;
}

static size_t left(const struct pool_holder *h)
{
    const size_t n = used(h);
    return n < h->descriptors ? h->descriptors - n : 0;
}

size_t pool_room_children(const struct pool_holder *h)
{
    return left(h) / JAIL_CHILD_RIDE;
}

bool pool_room_template(const struct pool_holder *h)
{
    return left(h) >= TEMPLATE + JAIL_CHILD_RIDE;
}

bool pool_room_client(const struct pool_holder *h)
{
    return left(h) >= CLIENT;
}

bool pool_room_decline(struct pool_holder *h, struct pool_conn *conn)
{
    return pool_conn_decline(
        h, conn, POOL_WHY_FULL,
        "the holder may open %zu descriptors (RLIMIT_NOFILE), and another child "
        "has no room: close a session, or raise `ulimit -Hn` and start it anew",
        h->descriptors);
}
