/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a pidfd is of.
 *
 * Takes:   a pidfd.
 * Gives:   the number of its process in our own pid namespace.
 * Never:   a number of another process: it is the kernel's word about this descriptor.
 * Runs in: the supervisor, cordon-holder.
 */
#ifndef SYS_PIDFD_H
#define SYS_PIDFD_H

#include <sys/types.h>

pid_t sys_pidfd_pid(int pidfd); /* 0: it is dead and reaped, or no pidfd */

#endif
