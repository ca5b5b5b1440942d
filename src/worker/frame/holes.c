/* SPDX-License-Identifier: Apache-2.0 */
/* Imports leave holes: what they needed for a while lay between what stays. Allocators hand such holes out first,
 * one here and one there, and a child that writes into one copies the page around it. So the holes are taken, for
 * good, until the allocator comes to memory that lies in one piece. Without it (`make gains GAINS="--alone HOLES"`) a warm
 * run takes 6 % longer, and two clients that never pause 8 % (2 CPUs, aarch64). */
#include "worker/frame/holes.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SMALLEST = 16,  /* the steps of the allocator */
    MOST = 4 << 20, /* bytes of holes for one length; what is left then stays a hole */
    EXACT = 1024,   /* up to here the C library keeps a list for each length */
    LONGEST = 64 * 1024,
};

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

void worker_holes_fill(void)
{
    const uintptr_t end = (uintptr_t)sbrk(0);
    const size_t behind = mallinfo2().keepcost;
    if (!behind || behind >= end) /* another allocator, or none of its heap is left */
        return;
    for (size_t size = LONGEST; size >= SMALLEST;
         size -= size > EXACT ? size / 2 : (size_t)SMALLEST)
        fill_heap(size, end - behind, end);
}
