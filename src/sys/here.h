/* SPDX-License-Identifier: Apache-2.0 */
/* Where this process is: which boot of the machine, which pid namespace. What is in a state file of another
 * boot, or of a namespace that cannot be seen from here, means something else.
 *
 * Takes:   /proc.
 * Gives:   the same answer for the life of the process: it is read once.
 * Never:   guesses: without /proc there is no answer.
 * Runs in: every process of ours that keeps state.
 */
#ifndef SYS_HERE_H
#define SYS_HERE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HERE_BOOT_MAX 40

/* ERR_MISSING, and what to do, when /proc is not mounted. */
ERR_MUST_USE int here_proc(struct err *err);

/* The kernel's id of this boot as it prints it, a uuid and a line end; NULL: there is no /proc. */
const char *here_boot(void);
/* The inode of our pid namespace; 0: there is no /proc. */
uint64_t here_pid_space(void);

/* The user for whom this process works: its own real one, unless cordond, which knows its client from the kernel, said
 * which. Whoever could say it falsely owns the state folder that it counts in. */
uid_t here_user(void);
void here_user_is(uid_t uid);
bool here_is_served(void); /* cordond said so: we are its runner */

/* Whether a file that the kernel shows as OWNER's is our user's. In a user namespace that lacks some users it shows all of
 * those under one number, which may be ours there: such a file is somebody else's. */
bool here_owns(uid_t owner);

#endif
