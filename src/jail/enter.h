/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of ours that was executed while its root was built.
 *
 * Takes:   its root and its specification, as a message and descriptors on descriptor 4.
 * Gives:   the same process behind every lock of a run, which it has proved.
 * Never:   returns 0 with a lock open, or reads a byte of a guest.
 * Runs in: a worker (`cordon-python --child`), before its interpreter starts.
 */
#ifndef JAIL_ENTER_H
#define JAIL_ENTER_H

#include "base/err.h"

#define JAIL_FD_ORDERS 4

/* Where there is no descriptor 4, the locks were closed before this program was executed, and there is
 * nothing to do. After an error the process must end: it may have half of its locks. */
ERR_MUST_USE int jail_enter(struct err *err);

/* Before its first word on the channel: what only the builder needed of it is taken and closed. 0, 1, 2 and 3
 * are open then. */
ERR_MUST_USE int jail_entered(struct err *err);

#endif
