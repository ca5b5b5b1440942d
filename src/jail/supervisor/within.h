/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is in a session's namespaces for a moment, to do there what only their root may.
 *
 * Takes:   a session's descriptors; what to do.
 * Gives:   its result. The process shares our memory and descriptors, and we sleep until it has ended.
 * Never:   runs a guest's byte; is included outside src/jail.
 * Runs in: the process that forks a session, or that lays the layers of its /workspace.
 */
#ifndef JAIL_WITHIN_H
#define JAIL_WITHIN_H

#include "base/err.h"
#include "jail/child.h"

/* HOW(ctx) in a process of its own; 0 of it is success. It writes why not into TOLD. At most FD_PATIENCE_MS. */
ERR_MUST_USE int jail_within_run(int (*how)(void *ctx), void *ctx, struct err *told,
                                 struct err *err);

/* For HOW to call. 0, or -1 with errno. */
/* As root of the host: becomes whoever owns the template's user namespace, and is nobody else. Else nothing. */
int jail_within_owner(const struct jail_child *session);
/* Then root of the user namespace that the session's init is in, which is the session's own id outside; in the mount
 * namespace of a session that is no branch. */
int jail_within_session(const struct jail_child *session);
/* The same for a branch, too: in the user and the mount namespace that its files are mounted in. */
int jail_within_mounts(const struct jail_child *session);

#endif
