/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's own allocator, as worker/frame/holes.c has it for the C library's. */
#include "holes.h"

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    SMALLEST = 16,  /* the steps of the allocator */
    SMALL = 512,    /* the longest block that the interpreter takes from pools */
    MOST = 4 << 20, /* bytes of holes for one length; what is left then stays a hole */
    HEAD = 64,      /* a pool begins with its own words; then block follows block */
    PAGE = 4096,
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

void py_holes_fill(void)
{
    for (size_t size = SMALLEST; size <= SMALL; size += SMALLEST)
        fill_pools(size);
}
