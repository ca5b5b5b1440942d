/* SPDX-License-Identifier: Apache-2.0 */
/* Imports leave holes: what they needed for a while lay between what stays. Both allocators hand such holes out first,
 * one here and one there, and a child that writes into one copies the page around it. So the holes are taken, for
 * good, until the allocators come to memory that lies in one piece. */
#include "holes.h"

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SMALLEST = 16,  /* the steps of both allocators */
    SMALL = 512,    /* the longest block that the interpreter takes from pools */
    MOST = 4 << 20, /* bytes of holes for one length; what is left then stays a hole */
    HEAD = 64,      /* a pool begins with its own words; then block follows block */
    PAGE = 4096,
    EXACT = 1024, /* up to here the C library keeps a list for each length */
    LONGEST = 64 * 1024,
};

/* Whether the three are the first blocks of a pool that nobody used yet. */
static bool is_fresh(const uintptr_t last[3], size_t size)
{
    return last[0] % PAGE < HEAD && last[1] == last[0] + size && last[2] == last[1] + size;
}

static void fill_pools(size_t size)
{
    uintptr_t last[3] = {0};
    for (size_t taken = 0; taken < MOST && !is_fresh(last, size); taken += size) {
        last[0] = last[1];
        last[1] = last[2];
        last[2] = (uintptr_t)PyObject_Malloc(size);
        if (!last[2])
            return;
    }
    for (int i = 3; i > 0 && is_fresh(last, size); i--)
        PyObject_Free((void *)last[i - 1]);
}

static void
    *kept; /* the blocks that fill holes, each with the address of the one before: never freed */

/* FROM, END: what lies behind all blocks of the C library's heap. */
static void fill_heap(size_t size, uintptr_t from, uintptr_t end)
{
    for (size_t taken = 0; taken < MOST; taken += size) {
        void *p = malloc(size);
        if (!p || (uintptr_t)p >= end || (uintptr_t)p < end - (64UL << 20) ||
            (uintptr_t)p >= from) {
            free(p);
            return;
        }
        *(void **)p = kept;
        kept = p;
    }
}

void py_holes_fill(void)
{
    for (size_t size = SMALLEST; size <= SMALL; size += SMALLEST)
        fill_pools(size);
    const uintptr_t end = (uintptr_t)sbrk(0);
    const size_t behind = mallinfo2().keepcost;
    if (!behind || behind >= end) /* another allocator, or none of its heap is left */
        return;
    for (size_t size = LONGEST; size >= SMALLEST;
         size -= size > EXACT ? size / 2 : (size_t)SMALLEST)
        fill_heap(size, end - behind, end);
}
