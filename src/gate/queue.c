/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next. There is one queue for a state folder, but turns go by client: a free slot goes to the
 * client that has the fewest slots now; among equals to the one whose last turn is longest ago;
 * within a client to who came first. A client that floods the queue lengthens only its own part of it.
 *
 * Those of one state folder may have come with different policies. Whoever gives a slot to another holds to the numbers of
 * that one's policy, which are in its row: the server of a wide policy lets no more runs of a tight one begin.
 *
 * The process that gives a slot back serves the queue itself, under the lock, so nobody sleeps while a slot is
 * free. A process that was killed serves nobody: therefore those in the queue look as well, the first
 * ten times a second, those behind it less often. A look asks the kernel about every row, whose answer
 * is the slower the more of them there are: two hundred that all looked ten times a second took more time for it
 * than for their runs (`make bench BENCH=clients`). */
#include "gate/inside.h"

#include <string.h>

uint64_t gate_queue_waiting(const struct gate *g, uint32_t client)
{
    const struct gate_shared *s = g->map.at;
    uint64_t n = 0;
    for (uint32_t i = 0; i < gate_rows_high(s); i++)
        n += s->rows[i].client == client && !s->rows[i].counted &&
             gate_load(&s->rows[i].state) == GATE_ROW_WAITING;
    return n;
}

uint64_t gate_queue_look_ms(const struct gate *g, uint32_t row)
{
    enum { FIRST_MS = 100, LAST_MS = 1000 };
    const struct gate_shared *s = g->map.at;
    uint64_t ms = FIRST_MS;
    for (uint32_t i = 0; i < gate_rows_high(s) && ms < LAST_MS; i++)
        if (gate_load(&s->rows[i].state) == GATE_ROW_WAITING &&
            s->rows[i].number < s->rows[row].number)
            ms += FIRST_MS;
    return ms;
}

struct census {
    uint64_t running, waiting;
    uint16_t of_client[GATE_CLIENTS];
};

static void count(const struct gate_shared *s, struct census *c)
{
    *c = (struct census){0};
    for (uint32_t i = 0; i < gate_rows_high(s); i++) {
        uint32_t state = gate_load(&s->rows[i].state);
        c->waiting += state == GATE_ROW_WAITING;
        if (state == GATE_ROW_RUNNING) {
            c->running++;
            if (s->rows[i].client < GATE_CLIENTS)
                c->of_client[s->rows[i].client]++;
        }
    }
}

static bool before(const struct gate_shared *s, const struct census *c, const struct gate_row *a,
                   const struct gate_row *b)
{
    if (c->of_client[a->client] != c->of_client[b->client])
        return c->of_client[a->client] < c->of_client[b->client];
    if (s->clients[a->client].turn != s->clients[b->client].turn)
        return s->clients[a->client].turn < s->clients[b->client].turn;
    return a->number < b->number;
}

/* Whether its own policy lets it begin beside those that run. */
static bool may_begin(const struct gate *g, const struct census *c, const struct gate_row *r)
{
    const bool said = r->most != 0;
    const uint64_t most = said ? r->most : g->config->rates.concurrent,
                   narrow = said ? r->most_of_client : g->config->rates.concurrent_per_client;
    return c->running < most && (!narrow || c->of_client[r->client] < narrow);
}

static uint32_t choose(const struct gate *g, const struct census *c)
{
    const struct gate_shared *s = g->map.at;
    uint32_t best = GATE_ROWS;
    for (uint32_t i = 0; i < gate_rows_high(s); i++) {
        const struct gate_row *r = &s->rows[i];
        if (gate_load(&r->state) != GATE_ROW_WAITING || r->client >= GATE_CLIENTS)
            continue;
        if (!may_begin(g, c, r))
            continue;
        if (best == GATE_ROWS || before(s, c, r, &s->rows[best]))
            best = i;
    }
    return best;
}

static void give(struct gate *g, uint32_t row, uint64_t now)
{
    struct gate_shared *s = g->map.at;
    struct gate_row *r = &s->rows[row];
    s->clients[r->client].turn = ++s->numbers;
    if (!r->counted) {
        gate_window_stamp(g, r->client, now);
        r->counted = 1;
        gate_count(g, GATE_COUNTER_admitted);
    }
    gate_row_set(&g->map, row, GATE_ROW_RUNNING, now);
    if (!g->map.mine[row])
        gate_bell_ring(&r->bell);
}

void gate_queue_serve(struct gate *g, uint64_t now)
{
    struct gate_shared *s = g->map.at;
    struct census c;
    bool reaped = false;
    count(s, &c);
    while (c.waiting > 0) {
        uint32_t row = choose(g, &c);
        if (row == GATE_ROWS) { /* full, it seems: are they all alive? */
            if (reaped)
                return;
            reaped = true;
            unsigned dead = gate_rows_reap(&g->map);
            s->counters[GATE_COUNTER_lost] += dead;
            count(s, &c);
            if (dead == 0)
                return;
            continue;
        }
        if (!gate_row_alive(&g->map, row))
            gate_row_free(&g->map, row);
        else
            give(g, row, now);
        count(s, &c);
    }
}
