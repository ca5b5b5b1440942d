/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on one byte of a file, waited for until a deadline and never longer.
 *
 * Takes:   a descriptor, the byte, how long to wait, and what the lock is called in a message.
 * Gives:   the lock, which the kernel takes back when its holder dies; or a refusal that names the
 *          process which holds it, says whether that one is stopped, and what to do.
 * Never:   waits without end; believes a file about who holds a lock.
 * Runs in: every trusted process.
 */
#ifndef SYS_LOCK_H
#define SYS_LOCK_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* TYPE is F_WRLCK or F_RDLCK, an open-file-description lock. 0, or -1 with errno: EAGAIN is held. */
int lock_try(int fd, short type, off_t byte);
void lock_release(int fd, off_t byte);

/* ERR_STATE when the deadline passes; time in which we were stopped ourselves is not counted. WHAT: "the audit's lock". */
ERR_MUST_USE int lock_within(int fd, short type, off_t byte, uint64_t ms, const char *what,
                             struct err *err);

/* The process that has a lock on BYTE of the file behind FD, of either kind that the kernel knows;
 * a stopped one before the others. 0: none can be seen from here. */
pid_t lock_holder(int fd, off_t byte);

/* "pid 71 (cordon, stopped): `kill -CONT 71` lets it go on, `kill -KILL 71` ends it". PID 0: says
 * that the holder cannot be seen. */
void lock_describe(pid_t pid, char *out, size_t size);

/* The state letter of /proc/PID/stat (T: stopped); 0: there is no such process. */
char lock_process_state(pid_t pid);

#endif
