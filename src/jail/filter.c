/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up filters. The foreign architecture is looked up in filter_arch.c, so that programs
 * which only load filters do not carry the other one's arrays. */
#include "jail/filter.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE jail_filters_x86_64
#elif defined(__aarch64__)
#define NATIVE jail_filters_aarch64
#else
#error "no filters for this architecture"
#endif

const struct jail_filter *jail_filter_find(const char *name)
{
    for (const struct jail_filter *f = NATIVE; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const struct jail_call *jail_filter_call(const struct jail_filter *f, int nr)
{
    unsigned low = 0, high = f->n_calls;
    while (low < high) {
        unsigned mid = low + (high - low) / 2;
        if (f->calls[mid].nr == nr)
            return &f->calls[mid];
        if (f->calls[mid].nr < nr)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* upper half > H: over; upper half < H: not; else the lower half decides (filters/tree.c, over). */
void jail_filter_bound(const struct jail_filter *f, uint64_t bytes, struct sock_filter *out)
{
    const uint64_t first = bytes + 1; /* the first size that is refused */
    memcpy(out, f->insns, f->len * sizeof *out);
    for (unsigned i = 0; i < f->n_over; i++) {
        struct sock_filter *at = &out[f->over[i]];
        at[0].k = (uint32_t)(first >> 32) + 1;
        at[1].k = (uint32_t)(first >> 32);
        at[3].k = (uint32_t)first;
    }
}

bool jail_filter_notifies(const struct jail_filter *f)
{
    for (unsigned i = 0; i < f->len; i++)
        if (f->insns[i].code == (BPF_RET | BPF_K) && f->insns[i].k == SECCOMP_RET_USER_NOTIF)
            return true;
    return false;
}
