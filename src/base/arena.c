/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in a list, bump-allocated. In a sanitizer build each allocation is a block of its own, so
 * that ASan sees an overrun from one object into the next. */
#include "base/arena.h"

#include "base/sanitized.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if SANITIZED
#define BLOCK 0
#else
#define BLOCK 1024 /* the first; each further one twice as much: short programs touch few pages */
#endif
#define BLOCK_MAX 65536

struct arena_block {
    struct arena_block *before;
    size_t used, cap;
    alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){.max = max};
}

void arena_done(struct arena *a)
{
    for (struct arena_block *b = a->last, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    *a = (struct arena){.max = a->max};
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > a->max - a->used || size > SIZE_MAX / 2)
        return NULL;
    size_t want = (size + align - 1) / align * align;
    struct arena_block *b = a->last;
    if (!b || b->cap - b->used < want) {
        a->block = a->block == 0 ? BLOCK : a->block >= BLOCK_MAX / 2 ? BLOCK_MAX : a->block * 2;
        size_t cap =
            want > a->block ? want : a->block; /* one large object makes no later one large */
        b = calloc(1, sizeof *b + cap);
        if (!b)
            return NULL;
        b->cap = cap;
        b->before = a->last;
        a->last = b;
    }
    void *p = b->data + b->used;
    b->used += want;
    a->used += size;
    return p;
}

char *arena_memdup(struct arena *a, const void *p, size_t len)
{
    char *d = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
    if (d && len)
        memcpy(d, p, len);
    return d;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_memdup(a, s, strlen(s));
}
