/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from a descriptor that others share, without waiting for whoever is at its other end.
 *
 * Takes:   a descriptor of the caller's: a pipe, a terminal, a socket, a file.
 * Gives:   how many bytes it took, or had, now.
 * Never:   changes the open file description; sleeps longer than SYS_NOWAIT_MS.
 * Runs in: `cordon`, cordond.
 */
#ifndef SYS_NOWAIT_H
#define SYS_NOWAIT_H

#include <stddef.h>
#include <sys/types.h>

/* The longest that one call can sleep, where another process came between. */
#define SYS_NOWAIT_MS 10

/* The process's SIGALRM and its interval timer (ITIMER_REAL) belong to these two. */

/* Returns how many of LEN bytes were taken, at least 1; or -1 with errno: EAGAIN when none can be taken now, else
 * why none ever will. */
ssize_t sys_write_now(int fd, const void *data, size_t len);
/* As read does: 0 at the end; -1 with EAGAIN when there is nothing now. */
ssize_t sys_read_now(int fd, void *data, size_t len);

#endif
