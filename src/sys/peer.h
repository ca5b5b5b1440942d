/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a unix socket.
 *
 * Takes:   a connected socket, or the pid that the kernel noted for it.
 * Gives:   which user it is, whether it is our own, and whether it is outside of any jail.
 * Never:   believes the peer: it is the kernel's word at the time of connect.
 * Runs in: `cordon`, cordon-holder, cordond.
 */
#ifndef SYS_PEER_H
#define SYS_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* False: the kernel does not say. */
bool sys_peer_who(int sock, uid_t *ret_uid, pid_t *ret_pid);
/* *RET_PID, which may be NULL: of the peer, where it is our user. */
bool sys_peer_is_us(int sock, pid_t *ret_pid);
/* A guest has its user's number on the host, too; but not its user namespace. */
bool sys_peer_is_outside(pid_t peer);

#endif
