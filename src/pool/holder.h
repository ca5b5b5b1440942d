/* SPDX-License-Identifier: Apache-2.0 */
/* The holder: keeps templates, warm children and sessions, and lends them to the clients of one user.
 *
 * Takes:   a folder (socket.h), the programs it starts; requests of clients of the same user.
 * Gives:   children by descriptor; an end of its own when nobody needs it.
 * Never:   reads a byte of a guest; lends a child twice; waits for a client; leaves a child behind.
 * Runs in: cordon-holder, one thread.
 */
#ifndef POOL_HOLDER_H
#define POOL_HOLDER_H

#include "base/err.h"
#include "pool/environment.h"

struct pool_holder_start {
    int dir;   /* the folder of the socket and the lock */
    int ready; /* a byte is written there when a client can connect: R, or L when another holder is
                  there; -1: nobody wants to know */
    const char *nest, *python; /* paths of cordon-nest and cordon-python */
    const struct pool_worker {
        const struct language *language;
        const char *path;
    } * workers; /* of other languages, where they are installed */
    size_t worker_count;
    const char *version;
    const struct pool_environment *environment; /* NULL: Debian's packages */
};

/* Returns when the holder is done: 0 also when there is another one. */
ERR_MUST_USE int pool_holder_run(const struct pool_holder_start *start, struct err *err);

/* narrow.c: what it can give up before its loop. The words of what was: for `cordon pool status`. */
ERR_MUST_USE int pool_holder_narrow(char *said, size_t size, struct err *err);

#endif
