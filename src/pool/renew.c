/* SPDX-License-Identifier: Apache-2.0 */
/* All children of a template have its addresses and its hash seed: what one run learns of them would serve the next. So a
 * template whose children were lent is replaced, by age and by their number. Another is started beside it; the old one lends
 * until the new one has children that wait, so nobody waits for the change. Then the old one makes no more, and ends
 * with the last of its runs and sessions, since children die with their template. */
#include "pool/holding.h"

#include "base/clock.h"

#include <string.h>

#define AGAIN_NS CLOCK_NS_PER_S /* when it could not be done now */

static struct pool_warm *with_serial(struct pool_holder *h, uint64_t serial)
{
    for (size_t i = 0; serial && i < POOL_TEMPLATES_HELD; i++)
        if (h->warm[i].serial == serial)
            return &h->warm[i];
    return NULL;
}

static bool is_replaced(const struct pool_holder *h, const struct pool_warm *w)
{
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++)
        if (h->warm[i].serial && h->warm[i].replaces == w->serial)
            return true;
    return false;
}

/* A successor beside W. False: there is no place for one now. */
static bool begin(struct pool_holder *h, const struct pool_warm *w)
{
    struct pool_warm *next = NULL;
    for (size_t i = 0; i < POOL_TEMPLATES_HELD && !next; i++)
        if (!h->warm[i].serial)
            next = &h->warm[i];
    if (!next || !pool_room_template(h))
        return false;
    *next = (struct pool_warm){.serial = ++h->serial,
                               .language = w->language,
                               .packages = w->packages,
                               .rules = w->rules,
                               .limits = w->limits,
                               .stock.warm = w->stock.warm,
                               .replaces = w->serial,
                               .used_ns = h->now};
    memcpy(next->profile, w->profile, sizeof next->profile);
    return true;
}

uint64_t pool_renew_tick(struct pool_holder *h, struct pool_warm *w)
{
    if (!w->template || !w->served || w->retired || w->replaces)
        return UINT64_MAX;
    const uint64_t at = w->started_ns + h->renew_ns;
    if (w->served < h->renew_runs && at > h->now)
        return at;
    if (is_replaced(h, w))
        return UINT64_MAX;
    return h->now + (begin(h, w) ? 0 : AGAIN_NS);
}

/* Those who wait for any child of OLD get one of W, or wait for it. */
static void move_waiters(struct pool_holder *h, struct pool_warm *w, struct pool_warm *old)
{
    for (size_t i = 0; i < POOL_CLIENTS; i++) {
        struct pool_conn *conn = &h->conn[i];
        struct jail_child child = JAIL_CHILD_NONE;
        if (conn->state != POOL_CONN_WAITING || conn->from != old || conn->tag)
            continue;
        conn->from = w;
        old->stock.waiters--;
        w->stock.waiters++;
        if (pool_warm_take(h, w, &conn->want.limits, &child))
            pool_lend_child(h, conn, w, &child);
    }
}

bool pool_renew_take_over(struct pool_holder *h, struct pool_warm *w)
{
    struct pool_warm *old = with_serial(h, w->replaces);
    if (!old || old->retired)
        return false;
    pool_warm_resize(h, w, old->stock.warm);
    const bool ready = w->stock.warm == 0 || (w->stock.ready && !w->orders);
    if (!w->template || !ready)
        return true;
    w->replaces = 0;
    w->pinned = old->pinned;
    w->used_ns = old->used_ns;
    w->made += old->made;
    w->starts += old->starts;
    w->crashes += old->crashes;
    old->pinned = false;
    old->retired = true;
    pool_warm_resize(h, old, 0);
    move_waiters(h, w, old);
    return true;
}

bool pool_renew_over(const struct pool_warm *w)
{
    return w->retired && !w->lent && !w->sessions && !w->stock.waiters && !w->orders;
}
