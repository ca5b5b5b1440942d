/* SPDX-License-Identifier: Apache-2.0 */
/* A resource limit that is lowered, and never raised.
 *
 * Takes:   which one, and the two values that it may have at most.
 * Gives:   those; where the process has less already, what it has.
 * Never:   fails because the caller's own limit is lower.
 * Runs in: every trusted process, before its filter.
 */
#ifndef SYS_RLIMIT_H
#define SYS_RLIMIT_H

#include <sys/resource.h>

/* 0, or -1 with errno. */
int sys_rlimit_lower(int id, rlim_t soft, rlim_t hard);

#endif
