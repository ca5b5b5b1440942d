/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a child process, but not for ever: one that is stopped, or does not end, is killed.
 *
 * Takes:   the pid of a child of the caller, and a time.
 * Gives:   its status, and whether it ended by itself.
 * Never:   returns before the child is gone and reaped, unless we may not kill it; touches errno where the child ends
 *          in time, so that one that shares our memory may be waited for.
 * Runs in: the supervisor, the janitor's parent, whoever forks a short-lived process.
 */
#ifndef SYS_CHILD_H
#define SYS_CHILD_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* 0: it ended within MOST_MS. -1: it was killed (ETIMEDOUT), has another id than we have since we stepped down and
 * lives on (EPERM), or is no child of ours (ECHILD). *RET_STATUS, which may be NULL, is what waitpid gives; untouched
 * with EPERM and ECHILD. */
ERR_MUST_USE int sys_child_wait(pid_t pid, uint64_t most_ms, int *ret_status);

#endif
