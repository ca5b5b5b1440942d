/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: becoming another program in one, and waiting for one, but not for ever.
 *
 * Takes:   the pid of a child of the caller, and a time; what a new child executes.
 * Gives:   its status, also in words, and whether it ended by itself: one that is stopped, or does not end in time, is killed.
 * Never:   returns before the child is gone and reaped, unless we may not kill it; touches errno where the child ends
 *          in time, so that one that shares our memory may be waited for.
 * Runs in: the supervisor, the janitor's parent, whoever forks a short-lived process.
 */
#ifndef SYS_CHILD_H
#define SYS_CHILD_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 0: it ended within MOST_MS. -1: it was killed (ETIMEDOUT), has another id than we have since we stepped down and
 * lives on (EPERM), or is no child of ours (ECHILD). *RET_STATUS, which may be NULL, is what waitpid gives; untouched
 * with EPERM and ECHILD. */
ERR_MUST_USE int sys_child_wait(pid_t pid, uint64_t most_ms, int *ret_status);

/* What waitpid gave, behind the name of a program: "was killed by signal 9", "ended with status 1". */
#define SYS_CHILD_TOLD 40
void sys_child_tell(int status, char out[SYS_CHILD_TOLD]);

#define SYS_CHILD_FDS 8 /* that sys_child_exec places, at most */
/* In a child after fork: executes ARGV with FDS[i] as descriptor i (-1: what is there stays) and no other descriptor, default
 * signals, and death with PARENT. OWN_SESSION: no terminal to type at, and its whole group can be killed at once. Whatever
 * fails: exit status 127, and nothing was executed. */
_Noreturn void sys_child_exec(const char *const *argv, const char *const *env, const int *fds,
                              int count, bool own_session, pid_t parent);

#endif
