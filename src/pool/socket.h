/* SPDX-License-Identifier: Apache-2.0 */
/* Where the holder of this user is found: one folder that nobody else can enter, one socket, one
 * lock.
 *
 * Takes:   the environment: CORDON_STATE, XDG_RUNTIME_DIR, XDG_STATE_HOME, HOME.
 * Gives:   a checked folder, a connection to the holder, or the holder's own listening socket.
 * Never:   trusts a folder or a peer of another user; follows a link into the folder.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef POOL_SOCKET_H
#define POOL_SOCKET_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pool_socket {
    int dir;       /* the folder, open; -1: it is not there */
    uint32_t mark; /* of the environment whose holder is meant; 0 unless the caller sets it */
    char path[512];
};

/* The folder's name by the environment: $CORDON_STATE/run where that is set, else
 * $XDG_RUNTIME_DIR/cordon, else run/ in the state folder ($XDG_STATE_HOME/cordon,
 * ~/.local/state/cordon, for root /var/lib/cordon). MAKE: make what is missing. Without MAKE a
 * folder that is not there is no error, and dir is -1. */
ERR_MUST_USE int pool_socket_open(struct pool_socket *ret, bool make, struct err *err);
void pool_socket_done(struct pool_socket *p);

/* The holder's side. Takes the lock; the socket that a dead holder left is removed. *ret_sock is -1
 * when another holder has the lock: that is no error. */
ERR_MUST_USE int pool_socket_listen(int dir, uint32_t mark, int *ret_lock, int *ret_sock,
                                    struct err *err);
void pool_socket_listening(int lock); /* from now on a connection is answered */
void pool_socket_hide(int dir,
                      uint32_t mark); /* before the end: no new client; the lock goes last */

/* The number of the file that clients find as its socket; 0: there is none. */
uint64_t pool_socket_inode(int dir, uint32_t mark);

/* The client's side. *ret_sock is -1 when no holder is there: that is no error. The connection, and each send over
 * it, waits at most PATIENCE_MS. */
ERR_MUST_USE int pool_socket_connect(const struct pool_socket *p, uint64_t patience_ms,
                                     int *ret_sock, struct err *err);
/* Sleeps until the holder that has the lock listens, or is gone; at most FD_PATIENCE_MS. False: not in time. */
bool pool_socket_wait(const struct pool_socket *p);

/* Sleeps until no holder of this version has the lock; at most FD_PATIENCE_MS. False: not in time. */
bool pool_socket_gone(const struct pool_socket *p);

/* The pids of holders that live here, also of other versions (their sockets are not ours to speak
 * on). Returns how many, at most ROOM. */
size_t pool_socket_holders(const struct pool_socket *p, pid_t *pids, size_t cap);

#endif
