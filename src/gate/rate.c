/* SPDX-License-Identifier: Apache-2.0 */
/* Rates that are exact. A client's last turns are a ring of times; the N-th turn before this one is
 * one read, so "at most N in any window" costs the same for 10 and for 1000. Turns are stamped when a
 * slot is given, not when it is asked for, and those in the queue count as used: however long the queue,
 * no window ever holds more than N. (A request that gave up its slot while a person was asked has had
 * its turn: the turn is not counted again when the request comes back.) */
#include "gate/inside.h"

#include "base/clock.h"

#include <string.h>

/* ---- clients ---- */

static bool in_use(const struct gate_shared *s, uint32_t client)
{
    for (uint32_t i = 0; i < gate_rows_high(s); i++)
        if (gate_load(&s->rows[i].state) != GATE_ROW_FREE && s->rows[i].client == client)
            return true;
    return false;
}

/* A client that asked nothing for a whole window has nothing to count, so its row may be reused. */
static uint32_t quiet_client(const struct gate *g, uint64_t now)
{
    const struct gate_shared *s = g->map.at;
    const uint64_t window = g->config->rates.window_ms * CLOCK_NS_PER_MS;
    uint64_t oldest = UINT64_MAX;
    uint32_t found = GATE_CLIENTS;
    for (uint32_t i = 0; i < GATE_CLIENTS; i++)
        if (s->clients[i].last_ns < oldest && s->clients[i].last_ns + window <= now &&
            !in_use(s, i)) {
            oldest = s->clients[i].last_ns;
            found = i;
        }
    return found;
}

int gate_client_find(struct gate *g, const char *id, uint64_t now, uint32_t *ret_client,
                     struct err *err)
{
    struct gate_shared *s = g->map.at;
    uint64_t key = gate_hash(id, strlen(id), 0);
    uint32_t slot = GATE_CLIENTS;
    for (uint32_t i = 0; i < GATE_CLIENTS; i++)
        if (s->client_keys[i] == key &&
            strncmp(s->clients[i].id, id, sizeof s->clients[i].id) == 0) {
            s->clients[i].last_ns = now;
            *ret_client = i;
            return 0;
        }
    for (uint32_t i = 0; i < GATE_CLIENTS && slot == GATE_CLIENTS; i++)
        if (s->client_keys[i] == 0)
            slot = i;
    if (slot == GATE_CLIENTS)
        slot = quiet_client(g, now);
    if (slot == GATE_CLIENTS) { /* the executions that keep a row may all be dead */
        s->counters[GATE_COUNTER_lost] += gate_rows_reap(&g->map);
        slot = quiet_client(g, now);
    }
    if (slot == GATE_CLIENTS)
        return err_set(err, ERR_LIMIT, "more than %d clients at once", GATE_CLIENTS);
    struct gate_client_row *c = &s->clients[slot];
    gate_store(&s->client_keys[slot], 0);
    memset(c, 0, offsetof(struct gate_client_row, stamps));
    strncpy(c->id, id, sizeof c->id - 1);
    c->last_ns = now;
    gate_store(&s->client_keys[slot], key);
    *ret_client = slot;
    return 0;
}

/* ---- the sliding window ---- */

uint64_t gate_window_wait(const struct gate *g, uint32_t client, uint64_t waiting, uint64_t now)
{
    const struct gate_client_row *c = &g->map.at->clients[client];
    uint64_t limit = g->config->rates.executions,
             window = g->config->rates.window_ms * CLOCK_NS_PER_MS;
    if (waiting >= limit)
        return window;
    uint64_t back = limit - waiting;
    if (c->pushed < back)
        return 0;
    uint64_t stamp = c->stamps[(c->pushed - back) % GATE_RATE_MAX];
    if (stamp > now)
        return window; /* a clock that went back helps nobody */
    return now - stamp >= window ? 0 : window - (now - stamp);
}

void gate_window_stamp(struct gate *g, uint32_t client, uint64_t now)
{
    struct gate_client_row *c = &g->map.at->clients[client];
    c->stamps[c->pushed % GATE_RATE_MAX] = now;
    gate_store(&c->pushed, c->pushed + 1);
    c->last_ns = now;
}

/* ---- tasks ---- */

/* A task that has been quiet for so long may be forgotten when its row is needed. */
#define TASK_QUIET_NS (3600 * CLOCK_NS_PER_S)

static uint64_t task_key(const char *client, const char *task)
{
    return gate_hash(task, strlen(task), gate_hash(client, strlen(client), 1));
}

struct gate_task_row *gate_task_find(struct gate *g, const char *client, const char *task,
                                     uint64_t now)
{
    struct gate_task_row *rows = g->map.at->tasks, *slot = NULL;
    uint64_t key = task_key(client, task);
    for (size_t i = 0; i < GATE_TASKS; i++) {
        if (rows[i].key == key)
            return &rows[i];
        if (rows[i].key == 0 && (!slot || slot->key))
            slot = &rows[i];
        else if (rows[i].last_ns + TASK_QUIET_NS <= now &&
                 (!slot || (slot->key && rows[i].last_ns < slot->last_ns)))
            slot = &rows[i];
    }
    if (slot) {
        gate_store(&slot->key, 0);
        slot->count = 0;
        slot->last_ns = now;
        gate_store(&slot->key, key);
    }
    return slot;
}

/* ---- token buckets ---- */

#define MICRO 1000000ULL

/* model_calls tokens flow in evenly over model_window; model_burst is what the bucket holds. */
int gate_bucket_take(struct gate *g, const char *name, uint64_t cost, uint64_t *ret_wait_ns,
                     struct err *err)
{
    uint64_t full = g->config->rates.model_burst * MICRO, now = gate_now(g);
    uint64_t ns_per_token =
        g->config->rates.model_window_ms * CLOCK_NS_PER_MS / g->config->rates.model_calls;
    struct gate_bucket_row *rows = g->map.at->buckets, *b = NULL, *oldest = &rows[0];
    if (cost > g->config->rates.model_burst) {
        *ret_wait_ns = UINT64_MAX;
        return 0;
    }
    if (strlen(name) >= sizeof rows->name)
        return err_set(err, ERR_USAGE, "the name of a bucket is too long");
    int r = gate_map_lock(&g->map, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < GATE_BUCKETS; i++) {
        if (strncmp(rows[i].name, name, sizeof rows->name) == 0)
            b = &rows[i];
        if (rows[i].last_ns < oldest->last_ns)
            oldest = &rows[i];
    }
    if (!b) { /* the one that has been quiet longest is full again, or nearly */
        b = oldest;
        memset(b->name, 0, sizeof b->name);
        b->micro = full;
        b->last_ns = now;
        memcpy(b->name, name, strlen(name));
    }
    uint64_t elapsed = now > b->last_ns ? now - b->last_ns : 0;
    unsigned __int128 flown =
        (unsigned __int128)elapsed * MICRO / (ns_per_token ? ns_per_token : 1);
    b->micro =
        flown > full - (b->micro < full ? b->micro : full) ? full : b->micro + (uint64_t)flown;
    b->last_ns = now;
    if (b->micro >= cost * MICRO) {
        b->micro -= cost * MICRO;
        *ret_wait_ns = 0;
    } else {
        *ret_wait_ns =
            (uint64_t)((unsigned __int128)(cost * MICRO - b->micro) * ns_per_token / MICRO) + 1;
    }
    gate_map_unlock(&g->map);
    return 0;
}
