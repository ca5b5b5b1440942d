/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of the caller's memory, handed out from the front: the engine has no other memory.
 *
 * Takes:   memory and sizes.
 * Gives:   aligned pieces, not zeroed.
 * Never:   grows or frees; what does not fit is NULL.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_AREA_H
#define EXPR_AREA_H

#include <stddef.h>
#include <stdint.h>

struct expr_area {
    unsigned char *base;
    size_t used, cap;
};

static inline struct expr_area expr_area_of(void *mem, size_t len)
{
    size_t skew = (size_t)(-(uintptr_t)mem & 15u);
    if (!mem || skew > len)
        return (struct expr_area){0};
    return (struct expr_area){.base = (unsigned char *)mem + skew, .cap = len - skew};
}

static inline void *expr_area_take(struct expr_area *a, size_t size)
{
    if (size > a->cap - a->used)
        return NULL;
    void *p = a->base + a->used;
    size_t want = (size + 15u) & ~(size_t)15u;
    a->used = want > a->cap - a->used ? a->cap : a->used + want;
    return p;
}

#endif
