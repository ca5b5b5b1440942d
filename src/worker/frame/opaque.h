/* SPDX-License-Identifier: Apache-2.0 */
/* Two ciphers of an address, for what a language tells its programs of their objects.
 *
 * Takes:   random keys, once, before the interpreter starts.
 * Gives:   numbers that say nothing of where anything is, and are the same for the same address.
 * Never:   keeps its keys where an object of the language could show them.
 * Runs in: a worker, in the jail; inline, since a hash is taken for every object in a table.
 */
#ifndef WORKER_FRAME_OPAQUE_H
#define WORKER_FRAME_OPAQUE_H

#include "base/err.h"

#include <stdint.h>

enum { WORKER_OPAQUE_ROUNDS = 27 };
extern struct worker_opaque_keys {
    uint64_t hash[2];
    uint32_t id[WORKER_OPAQUE_ROUNDS];
} worker_opaque_keys;

ERR_MUST_USE int worker_opaque_start(struct err *err); /* draws the keys */

static inline uint64_t worker_opaque_left(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline void worker_opaque_mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = worker_opaque_left(v[1], 13) ^ v[0];
    v[3] = worker_opaque_left(v[3], 16) ^ v[2];
    v[0] = worker_opaque_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = worker_opaque_left(v[1], 17) ^ v[2];
    v[3] = worker_opaque_left(v[3], 21) ^ v[0];
    v[2] = worker_opaque_left(v[2], 32);
}

/* No two processes have the same one for an address: for tables that are ordered by hashes. */
static inline uint64_t worker_opaque_hash(const void *p)
{
    uint64_t words[2] = {(uint64_t)(uintptr_t)p, 8ULL << 56}; /* eight bytes, then their number */
    uint64_t v[4] = {worker_opaque_keys.hash[0] ^ 0x736f6d6570736575ULL,
                     worker_opaque_keys.hash[1] ^ 0x646f72616e646f6dULL,
                     worker_opaque_keys.hash[0] ^ 0x6c7967656e657261ULL,
                     worker_opaque_keys.hash[1] ^ 0x7465646279746573ULL};
    for (int i = 0; i < 2; i++) {
        v[3] ^= words[i];
        worker_opaque_mix(v);
        v[0] ^= words[i];
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        worker_opaque_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Another number for each address: for what is shown. */
static inline uint64_t worker_opaque_number(const void *p)
{
    uint32_t x = (uint32_t)((uint64_t)(uintptr_t)p >> 32), y = (uint32_t)(uintptr_t)p;
    for (int i = 0; i < WORKER_OPAQUE_ROUNDS; i++) {
        x = ((x >> 8 | x << 24) + y) ^ worker_opaque_keys.id[i];
        y = (y << 3 | y >> 29) ^ x;
    }
    return (uint64_t)x << 32 | y;
}

#endif
