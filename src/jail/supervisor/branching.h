/* SPDX-License-Identifier: Apache-2.0 */
/* One fork of a session, as branch.c carries it out and branch_look.c sees it.
 *
 * Takes:   the session that is forked; numbers of processes.
 * Gives:   what the kernel says about them.
 * Never:   asks a guest; is included outside src/jail.
 * Runs in: the process that forks a session.
 */
#ifndef JAIL_BRANCHING_H
#define JAIL_BRANCHING_H

#include "jail/supervisor/family.h"

#include <sys/stat.h>

enum { JAIL_STREAMS = 4 }; /* 0, 1, 2 and the channel */

struct jail_branching {
    const struct jail_child *session;
    pid_t guest, branch;
    int pidfd;           /* of the branch */
    int proc;            /* /proc */
    struct stat user_ns; /* of the session */
    struct jail_family family;
    int epoll;                   /* of what wait_call waits for */
    bool cloned;                 /* the clone was let pass: there may be a branch */
    dev_t files;                 /* of the session */
    dev_t overlay, own_overlay;  /* of the session's and of the branch's /workspace; 0: no layers */
    ino_t streams[JAIL_STREAMS]; /* what the session has at 0 to 3 */
    int mount, dir;              /* the branch's file system, not attached yet, and its root */
    int layers, lower;           /* the branch's, as in struct jail_child */
    int theirs[JAIL_STREAMS], control; /* the branch's ends */
    struct err err;                    /* of a helper */
};

/* layer.c: as jail_child_layer, for a branch whose files have an upper layer already. */
ERR_MUST_USE int jail_branch_layer(struct jail_child *branch, int lower, struct err *err);

/* branch_look.c */
/* Opens /proc/PID/NAME. */
int jail_branch_open(const struct jail_branching *b, pid_t pid, const char *name, int flags);
bool jail_branch_is_new(const struct jail_branching *b, pid_t pid);
/* Whether it came forward or not; 0: there is none; -1: we cannot look. */
pid_t jail_branch_find_new(const struct jail_branching *b);
/* Whether the session can be forked as it is: ERR_STATE says why not. */
ERR_MUST_USE int jail_branch_may_fork(struct jail_branching *b, struct err *err);
/* The third hold: whether the branch has given up what it must. */
ERR_MUST_USE int jail_branch_released(const struct jail_branching *b, struct err *err);

#endif
