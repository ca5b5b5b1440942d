/* SPDX-License-Identifier: Apache-2.0 */
/* The precompiled seccomp filters, one for each worker kind, and what they say of a denied call.
 *
 * Takes:   the name of a filter: exec, exec-procs, python (one thread), python-threads, python-compute, template; with
 *          -landlock behind it for runs without a root of their own; compute, which lies over python-compute.
 * Gives:   constant arrays to load, and name, layer and reason of the calls they deny.
 * Never:   allocates, or needs libseccomp: the build did the work.
 * Runs in: the launcher, which loads it; the supervisor, which names violations; tests.
 */
#ifndef JAIL_FILTER_H
#define JAIL_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* What the table says of a denied call. Places in the filter's text, not pointers: those would have to be
 * written at every start of a program. */
struct jail_call {
    uint16_t nr, name, layer, reason;
};

struct jail_filter {
    const char *name;
    unsigned arch; /* AUDIT_ARCH_* */
    const struct sock_filter *insns;
    unsigned short len;
    const struct jail_call *calls; /* denied ones, by number */
    unsigned n_calls;
    const char *text;
    unsigned n_over, over[4]; /* where jail_filter_bound writes */
};

/* Copies the instructions to OUT (of f->len) with BYTES where the table says `over memory`. */
void jail_filter_bound(const struct jail_filter *f, uint64_t bytes, struct sock_filter *out);

/* Ended by an entry without a name. */
extern const struct jail_filter jail_filters_x86_64[], jail_filters_aarch64[];

/* NULL if there is no filter of that name. */
const struct jail_filter *jail_filter_find(const char *name); /* this architecture's */
const struct jail_filter *jail_filter_find_arch(const char *name, unsigned audit_arch);

static inline const char *jail_call_name(const struct jail_filter *f, const struct jail_call *c)
{
    return f->text + c->name;
}

static inline const char *jail_call_layer(const struct jail_filter *f, const struct jail_call *c)
{
    return f->text + c->layer;
}

static inline const char *jail_call_reason(const struct jail_filter *f, const struct jail_call *c)
{
    return f->text + c->reason;
}

/* NULL for calls that the table allows always or does not list. */
const struct jail_call *jail_filter_call(const struct jail_filter *f, int nr);

/* Whether some call is notified: only then a listener is asked for. */
bool jail_filter_notifies(const struct jail_filter *f);

#endif
