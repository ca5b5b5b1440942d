/* SPDX-License-Identifier: Apache-2.0 */
/* An order for cordon-workspace: what it needs is opened here, with the caller's rights, and it gets nothing else.
 *
 * Takes:   a verb and the name of a workspace.
 * Gives:   open descriptors and the lock of that workspace; a process that carries the order out, or what it printed.
 * Never:   reads a file of a guest's.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_WORKSPACE_ORDER_H
#define PROG_CORDON_WORKSPACE_ORDER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "policy/policy.h"

#include <stdint.h>

enum workspace_hold {
    HOLD_NONE,
    HOLD_READ,
    HOLD_CHANGE,
    HOLD_ALONE, /* both, and no other reader */
};

/* What becomes the program: three descriptors and its words. */
struct workspace_order {
    int home, other, lock;
    const char *form, *verb, *name, *words[3];
    uint64_t lock_ms;            /* how long to wait for who has the lock */
    const struct policy *policy; /* what the store and the disk are bounded by; NULL: by nothing */
    int stop;         /* readable: nobody waits any longer (jail_options_stop_fd); -1: none */
    uint64_t most_ms; /* for workspace_order_run; then it is killed */
    bool looks;       /* changes nothing, so it ends with whoever waits for it */
    bool cut;         /* what is longer than its OUT holds is cut there, and no error */
};
#define WORKSPACE_ORDER_INIT                                                                       \
    {                                                                                              \
        .home = -1, .other = -1, .lock = -1, .stop = -1, .lock_ms = LIMIT_LOCK_MS,                 \
        .most_ms = LIMIT_WORKSPACE_RUN_MS, .form = "", .words = {                                  \
            "",                                                                                    \
            "",                                                                                    \
            ""                                                                                     \
        }                                                                                          \
    }

/* Opens the folder of the workspaces and takes the lock. NAME empty: none is meant. ERR_USAGE: not a good name. ERR_STATE: the
 * lock is held, by a process that the message names. */
ERR_MUST_USE int workspace_order_open(struct workspace_order *ret, const char *verb,
                                      const char *name, enum workspace_hold hold, struct err *err);
/* More of the same workspace's lock, or less of it. */
ERR_MUST_USE int workspace_order_hold(const struct workspace_order *o, enum workspace_hold hold,
                                      struct err *err);
void workspace_order_release(const struct workspace_order *o); /* the lock to change it */
void workspace_order_release_reader(const struct workspace_order *o);
/* The commit that is the head, without a process: the ref is a file of ours. ERR_USAGE: there is no such workspace or clone. */
ERR_MUST_USE int workspace_order_head(const struct workspace_order *o, char ret[41],
                                      struct err *err);
void workspace_order_done(struct workspace_order *o);

/* Becomes cordon-workspace; returns only with an error. */
ERR_MUST_USE int workspace_order_become(const struct workspace_order *o, struct err *err);
/* The same in a process of its own, which is waited for. OUT (with its ceiling) gets what it printed; its one line of
 * complaint becomes the error: ERR_USAGE or ERR_STATE. */
ERR_MUST_USE int workspace_order_run(const struct workspace_order *o, struct buf *out,
                                     struct err *err);

#endif
