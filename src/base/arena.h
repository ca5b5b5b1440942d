/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that lives and dies together: one arena per run.
 *
 * Takes:   sizes.
 * Gives:   zeroed, aligned memory that nobody frees piece by piece.
 * Never:   grows past the ceiling given to arena_new.
 * Runs in: every process.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    size_t used, max;
    size_t block; /* what the last block was meant to hold */
};

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);

/* NULL past the ceiling or without memory. The memory is zeroed. */
void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_memdup(struct arena *a, const void *p, size_t len); /* and a NUL behind it */

#endif
