/* SPDX-License-Identifier: Apache-2.0 */
/* A session and its branches (a family) have one seccomp listener; each of them has a supervisor of its own.
 *
 * Takes:   the family's listener, its shared memory and its eventfd.
 * Gives:   to each supervisor the notified calls of its own branch, whoever of them received the call.
 * Never:   decides what the answer to a call is; is included outside src/jail.
 * Runs in: the supervisor of a call; the process that forks a session. The holder only makes it.
 */
#ifndef JAIL_FAMILY_H
#define JAIL_FAMILY_H

#include "jail/child.h"
#include "sys/listener.h"

#include <stdbool.h>
#include <sys/types.h>

struct jail_family_calls;

struct jail_family {
    int listener, wake; /* the caller's */
    struct jail_family_calls *calls;
};
#define JAIL_FAMILY_NONE                                                                           \
    {                                                                                              \
        .listener = -1, .wake = -1                                                                 \
    }

/* Makes the shared memory and the eventfd of the session CHILD. */
ERR_MUST_USE int jail_family_new(struct jail_child *child, struct err *err);

/* Maps the memory. Listener and eventfd of CHILD must stay open until jail_family_leave. */
ERR_MUST_USE int jail_family_join(struct jail_family *f, const struct jail_child *child,
                                  struct err *err);
void jail_family_leave(struct jail_family *f);

/* Whether the call of process PID is the caller's to answer. */
typedef bool jail_family_ours(void *ctx, pid_t pid);

/* One call that is OURS, if there is one; RET is it, and nobody else has it. Never sleeps for longer than a few
 * milliseconds. Call it when the listener is readable and when the eventfd was written to (watched with EPOLLET:
 * it is never read, and every write is for everybody). */
bool jail_family_receive(struct jail_family *f, jail_family_ours *ours, void *ctx,
                         union sys_notice *ret);

/* Wakes every supervisor of the family: the client of CHILD may have died between receiving a relative's call and
 * telling of it. */
void jail_family_wake(const struct jail_child *child);

#endif
