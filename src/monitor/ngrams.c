/* SPDX-License-Identifier: Apache-2.0 */
/* Each n-gram of the window is counted in a hash table that compares whole n-grams; the one that leaves the window is taken out
 * again. Both are constant time. */
#include "monitor/ngrams.h"

#include <stdbool.h>
#include <stdlib.h>

#define RING    512 /* symbols kept: the window and the n-gram before it; a power of two */
#define BUCKETS 1024

struct gram {
    uint64_t at; /* where it stands now, by its first symbol */
    uint32_t count;
    int32_t next; /* in the bucket; -1: none */
};

struct ngrams {
    uint64_t key, total; /* symbols so far */
    unsigned size;
    uint32_t distinct, grams;
    int32_t buckets[BUCKETS], unused;
    struct gram pool[MONITOR_WINDOW + 1];
    uint64_t ring[RING];
};

struct ngrams *ngrams_new(unsigned size, uint64_t key)
{
    struct ngrams *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->size = size;
    g->key = key;
    for (int i = 0; i < BUCKETS; i++)
        g->buckets[i] = -1;
    for (int32_t i = 0; i <= MONITOR_WINDOW; i++)
        g->pool[i].next = i < MONITOR_WINDOW ? i + 1 : -1;
    return g;
}

void ngrams_free(struct ngrams *g)
{
    free(g);
}

static bool same(const struct ngrams *g, uint64_t a, uint64_t b)
{
    for (unsigned i = 0; i < g->size; i++)
        if (g->ring[(a + i) % RING] != g->ring[(b + i) % RING])
            return false;
    return true;
}

/* The link that leads to the n-gram that begins at AT, or to the end of its bucket. */
static int32_t *find(struct ngrams *g, uint64_t at)
{
    uint64_t h = g->key;
    for (unsigned i = 0; i < g->size; i++)
        h = (h ^ g->ring[(at + i) % RING]) * 0x9e3779b97f4a7c15U, h ^= h >> 29;
    int32_t *link = &g->buckets[h % BUCKETS];
    while (*link >= 0 && !same(g, g->pool[*link].at, at))
        link = &g->pool[*link].next;
    return link;
}

static void enter(struct ngrams *g, uint64_t at)
{
    int32_t *link = find(g, at);
    if (*link < 0) {
        int32_t i = g->unused;
        g->unused = g->pool[i].next;
        g->pool[i] = (struct gram){at, 0, -1};
        *link = i;
        g->distinct++;
    }
    g->pool[*link].at = at; /* the newest one stays longest in the ring */
    g->pool[*link].count++;
    g->grams++;
}

static void leave(struct ngrams *g, uint64_t at)
{
    int32_t *link = find(g, at), i = *link;
    g->grams--;
    if (--g->pool[i].count)
        return;
    *link = g->pool[i].next;
    g->pool[i].next = g->unused;
    g->unused = i;
    g->distinct--;
}

double ngrams_add(struct ngrams *g, uint64_t symbol)
{
    g->ring[g->total++ % RING] = symbol;
    if (g->total < g->size)
        return 0;
    if (g->total > MONITOR_WINDOW)
        leave(g, g->total - MONITOR_WINDOW - 1);
    enter(g, g->total - g->size);
    return (double)(g->grams - g->distinct) / g->grams;
}
