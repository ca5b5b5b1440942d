/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of the one clone() that the supervisor lets a restricted guest make: the fork of a session.
 *
 * Takes:   nothing.
 * Gives:   its flags, as both sides know them.
 * Never:   is included outside src/jail.
 * Runs in: the guest's process; the supervisor that lets it pass.
 */
#ifndef JAIL_BRANCH_H
#define JAIL_BRANCH_H

#include <sched.h>
#include <signal.h>

/* A user namespace, because only with one comes the mount namespace in which other files can be laid over
 * the session's; the init above the session as parent, because a branch outlives the session. */
#define JAIL_BRANCH_FLAGS                                                                          \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID |      \
     SIGCHLD)

#endif
