/* SPDX-License-Identifier: Apache-2.0 */
/* A suffix automaton, built on line. Its newest state stands for the whole stream; the link of that state is the longest end
 * that occurred before, and a state remembers where its strings ended first. The end of a stream has K copies of a cycle of P
 * symbols exactly if an end of (K - 1) * P symbols occurred P symbols earlier, so one comparison a symbol finds loops of every
 * period (vLLM's scan of a list of periods costs 100 times as much: `make bench BENCH=monitor`).
 *
 * Transitions are in one hash table, keyed, since whoever writes the stream chooses the symbols. A symbol costs 56 bytes: numbers of
 * states and edges have 16 bits, and an edge does not keep its symbol, which is the last one of every string of the state it leads to. */
#include "monitor/loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* symbols there is memory for at first; twice as many whenever they are used up */
#define SMALLEST 256
#define NONE     UINT16_MAX
_Static_assert(3 * LOOP_SYMBOLS < NONE, "numbers of states and edges have 16 bits");

struct state {
    uint16_t length, link, first; /* first: where its strings ended first */
    uint16_t edges;               /* the first one; 0: none */
};

struct edge {
    uint16_t from, to, next_of_state, next_of_bucket;
};

struct loop {
    uint64_t key;
    uint32_t room; /* for so many symbols, twice as many states, three times as many edges */
    uint32_t length, state_count, edge_count, last;
    struct state *states;
    struct edge *edges; /* the first is none */
    uint16_t *buckets;  /* four times as many as symbols */
    uint64_t *symbols;
};

static void clear(struct loop *l)
{
    memset(l->buckets, 0, 4 * l->room * sizeof *l->buckets);
    l->states[0] = (struct state){.link = NONE};
    l->state_count = 1;
    l->edge_count = 0;
    l->last = 0;
    l->length = 0;
}

/* Memory for ROOM symbols. On failure everything is as it was, but for blocks that are larger than they need to be. */
static int resize(struct loop *l, uint32_t room)
{
    struct state *states = realloc(l->states, 2 * room * sizeof *states);
    l->states = states ? states : l->states;
    struct edge *edges = states ? realloc(l->edges, (3 * room + 1) * sizeof *edges) : NULL;
    l->edges = edges ? edges : l->edges;
    uint64_t *symbols = edges ? realloc(l->symbols, room * sizeof *symbols) : NULL;
    l->symbols = symbols ? symbols : l->symbols;
    uint16_t *buckets = symbols ? calloc(4 * (size_t)room, sizeof *buckets) : NULL;
    if (!buckets)
        return -1;
    free(l->buckets);
    l->buckets = buckets;
    l->room = room;
    return 0;
}

struct loop *loop_new(uint64_t key)
{
    struct loop *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->key = key;
    if (resize(l, SMALLEST) < 0) {
        loop_free(l);
        return NULL;
    }
    clear(l);
    return l;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    free(l->states);
    free(l->edges);
    free(l->symbols);
    free(l->buckets);
    free(l);
}

static uint16_t *bucket(struct loop *l, uint32_t from, uint64_t symbol)
{
    uint64_t h = (symbol ^ l->key) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 32) ^ from) * 0xd6e8feb86659fd93U;
    return &l->buckets[(h ^ (h >> 32)) & (4 * l->room - 1)];
}

static uint64_t symbol_of(const struct loop *l, const struct edge *e)
{
    return l->symbols[l->states[e->to].first];
}

static struct edge *find(struct loop *l, uint32_t from, uint64_t symbol)
{
    for (uint32_t e = *bucket(l, from, symbol); e; e = l->edges[e].next_of_bucket)
        if (l->edges[e].from == from && symbol_of(l, &l->edges[e]) == symbol)
            return &l->edges[e];
    return NULL;
}

static void add_edge(struct loop *l, uint32_t from, uint64_t symbol, uint32_t to)
{
    uint16_t *head = bucket(l, from, symbol);
    const uint32_t e = ++l->edge_count;
    l->edges[e] = (struct edge){(uint16_t)from, (uint16_t)to, l->states[from].edges, *head};
    l->states[from].edges = (uint16_t)e;
    *head = (uint16_t)e;
}

/* A state of its own for the strings of Q that are not longer than those of P with one more symbol. */
static uint32_t split(struct loop *l, uint32_t p, uint32_t q, uint64_t symbol)
{
    const uint32_t clone = l->state_count++;
    l->states[clone] = (struct state){(uint16_t)(l->states[p].length + 1), l->states[q].link,
                                      l->states[q].first, 0};
    for (uint32_t e = l->states[q].edges; e; e = l->edges[e].next_of_state)
        add_edge(l, clone, symbol_of(l, &l->edges[e]), l->edges[e].to);
    for (struct edge *e; p != NONE && (e = find(l, p, symbol)) && e->to == q; p = l->states[p].link)
        e->to = (uint16_t)clone;
    l->states[q].link = (uint16_t)clone;
    return clone;
}

static void extend(struct loop *l, uint64_t symbol)
{
    uint32_t now = l->state_count++, p = l->last;
    const struct edge *e = NULL;
    l->symbols[l->length] = symbol;
    l->states[now] = (struct state){(uint16_t)(l->states[p].length + 1), 0, (uint16_t)l->length, 0};
    for (; p != NONE && !(e = find(l, p, symbol)); p = l->states[p].link)
        add_edge(l, p, symbol, now);
    if (p != NONE) {
        const uint32_t q = e->to;
        l->states[now].link =
            (uint16_t)(l->states[p].length + 1 == l->states[q].length ? q : split(l, p, q, symbol));
    }
    l->length++;
    l->last = now;
}

/* The older half is forgotten: the automaton is built anew from the others. */
static void forget(struct loop *l)
{
    uint32_t kept = l->room / 2;
    memmove(l->symbols, l->symbols + kept, kept * sizeof *l->symbols);
    clear(l);
    for (uint32_t i = 0; i < kept; i++)
        extend(l, l->symbols[i]);
}

static void make_room(struct loop *l)
{
    if (l->length < l->room)
        return;
    if (l->room == LOOP_SYMBOLS || resize(l, 2 * l->room) < 0) {
        forget(l);
        return;
    }
    for (uint32_t e = 1; e <= l->edge_count; e++) {
        uint16_t *head = bucket(l, l->edges[e].from, symbol_of(l, &l->edges[e]));
        l->edges[e].next_of_bucket = *head;
        *head = (uint16_t)e;
    }
}

struct loop_tail loop_add(struct loop *l, uint64_t symbol)
{
    make_room(l);
    extend(l, symbol);
    const struct state *before = &l->states[l->states[l->last].link];
    if (!before->length)
        return (struct loop_tail){0, 0};
    return (struct loop_tail){before->length, l->length - 1 - before->first};
}
