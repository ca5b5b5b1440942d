/* SPDX-License-Identifier: Apache-2.0 */
/* A table becomes a BPF program: a balanced tree over the call numbers of one architecture.
 *
 * Takes:   a table and an architecture.
 * Gives:   instructions for seccomp.
 * Never:   reads anything but the architecture, the number and the arguments a condition names.
 * Runs in: the build (filtergen).
 */
#ifndef JAIL_FILTERS_TREE_H
#define JAIL_FILTERS_TREE_H

#include "jail/filters/table.h"

#include <linux/filter.h>

#define TREE_MAX 4096 /* BPF_MAXINSNS: the kernel takes no more */

#define TREE_OVER 4 /* places where a run's own number goes */

struct tree {
    unsigned n;
    struct sock_filter insns[TREE_MAX];
    unsigned n_over, over[TREE_OVER];
};

/* AUDIT_ARCH is AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64. Exits with a message if it does not fit.
 */
void tree_compile(struct tree *out, const struct table *t, uint32_t audit_arch);

/* The number of a call, or -1 where the architecture has none. */
int tree_number(const char *name, uint32_t audit_arch);

/* The name of a number known when this was built, or NULL; a new string. */
char *tree_name(int nr, uint32_t audit_arch);

#endif
