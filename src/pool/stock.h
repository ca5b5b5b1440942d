/* SPDX-License-Identifier: Apache-2.0 */
/* How many children are to wait, and when a template that failed is tried again: the arithmetic.
 *
 * Takes:   counts, memory, the time, which the caller tells.
 * Gives:   how many more to ask for; when to try again.
 * Never:   touches a process or the clock.
 * Runs in: cordon-holder, tests.
 */
#ifndef POOL_STOCK_H
#define POOL_STOCK_H

#include "pool/pool.h"

struct pool_stock {
    size_t warm;    /* how many are to wait */
    size_t ready;   /* how many do */
    size_t asked;   /* on their way */
    size_t waiters; /* clients that wait for one */
};

/* What the machine can spare. */
struct pool_memory {
    uint64_t total, available; /* of the machine; total 0: not known */
    uint64_t budget, used;     /* for children that wait, of all templates */
};

/* How many to ask for now, each taken to cost COST. Those that clients wait for come first and are not
 * bound by the budget: they are not kept. */
size_t pool_stock_ask(const struct pool_stock *s, const struct pool_memory *m, uint64_t cost);

/* Less than a twentieth of the machine's memory, and less than 512 MB, is left. */
bool pool_memory_short(const struct pool_memory *m);

/* Reads the two numbers out of /proc/meminfo's text. */
void pool_memory_parse(const char *meminfo, struct pool_memory *m);

/* A template that dies is started again: at once, then after 0.1 s, doubled each time to 30 s. One
 * that lived for a minute has been repaired. */
struct pool_backoff {
    unsigned fails;
    uint64_t retry_ns; /* not before; 0: at once */
};
void pool_backoff_failed(struct pool_backoff *b, uint64_t lived_ns, uint64_t now);
bool pool_backoff_broken(
    const struct pool_backoff *b); /* the template failed several times in a row */

#endif
