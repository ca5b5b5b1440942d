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

/* The folder that the holder's socket is in, or would be: $XDG_RUNTIME_DIR/cordon where that is set and CORDON_STATE is
 * not, else run/ in the state folder (src/sys/state.h). ERR_USAGE: there is none, or CORDON_STATE names another than the
 * machine's policy pins. */
ERR_MUST_USE int pool_socket_folder(char *out, size_t size, struct err *err);

/* MAKE: make what is missing of that folder. Without MAKE a folder that is not there is no error, and dir is -1. */
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
