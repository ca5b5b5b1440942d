/* SPDX-License-Identifier: Apache-2.0 */
/* A small hash for tables and fingerprints: FNV-1a.
 *
 * Takes:   bytes, and what came before them.
 * Gives:   the same number everywhere and always.
 * Never:   used where somebody could gain by a collision.
 * Runs in: everywhere.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 2166136261U

static inline uint32_t hash_bytes(uint32_t before, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        before = (before ^ p[i]) * 16777619U;
    return before;
}

#endif
