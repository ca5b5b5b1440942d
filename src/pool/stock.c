/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from the processes, so that the decisions can be tried out under any clock and any machine. */
#include "pool/stock.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 8, BROKEN = 5 }; /* children on their way at a time; failures in a row */

bool pool_memory_short(const struct pool_memory *m)
{
    return m->total && m->available < m->total / 20 && m->available < 512 * MIB;
}

static size_t more(size_t want, size_t have)
{
    return want > have ? want - have : 0;
}

size_t pool_stock_ask(const struct pool_stock *s, const struct pool_memory *m, uint64_t cost)
{
    size_t coming = s->ready + s->asked;
    size_t urgent = more(s->waiters, coming), ahead = more(s->warm + s->waiters, coming) - urgent;
    uint64_t left = m->budget > m->used ? m->budget - m->used : 0;
    if (pool_memory_short(m))
        return 0;
    if (ahead > left / cost)
        ahead = (size_t)(left / cost);
    size_t all = urgent + ahead, cap = more(AT_ONCE, s->asked);
    return all < cap ? all : cap;
}

static uint64_t line_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) * KIB : 0;
}

void pool_memory_parse(const char *meminfo, struct pool_memory *m)
{
    m->total = line_of(meminfo, "MemTotal:");
    m->available = line_of(meminfo, "MemAvailable:");
}

void pool_backoff_failed(struct pool_backoff *b, uint64_t lived_ns, uint64_t now)
{
    if (lived_ns >= 60 * CLOCK_NS_PER_S)
        b->fails = 0;
    uint64_t wait = b->fails == 0  ? 0
                    : b->fails > 9 ? 30 * CLOCK_NS_PER_S
                                   : 50 * CLOCK_NS_PER_MS << b->fails;
    b->fails++;
    b->retry_ns = now + (wait > 30 * CLOCK_NS_PER_S ? 30 * CLOCK_NS_PER_S : wait);
}

bool pool_backoff_broken(const struct pool_backoff *b)
{
    return b->fails >= BROKEN;
}
