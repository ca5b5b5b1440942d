/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and files of the host that one session sees (--ro, --rw), on their way from its client to the holder and back.
 *
 * Takes:   binds of a specification.
 * Gives:   the list in sealed memory, and from that the binds again, each with the device and inode that its client checked.
 * Never:   takes a place that the interpreter of a template reads from, or one that a session's own files cover.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef POOL_SHARES_H
#define POOL_SHARES_H

#include "jail/spec.h"

#define POOL_SHARES (LIMIT_BINDS - 4) /* as many as a run may have, beside binds of our own */

struct pool_shares {
    int fd;     /* the list */
    char *text; /* its words, which the binds point to */
    size_t count;
    struct jail_bind binds[POOL_SHARES];
};

/* The binds of SPEC that are shown, not copied; each is opened once. *RET is NULL where there is none. ERR_USAGE: one
 * cannot be shared with a session. */
ERR_MUST_USE int pool_shares_new(const struct jail_spec *spec, struct pool_shares **ret,
                                 struct err *err);
/* The same from the list FD, which stays the caller's. ERR_FORMAT: it is none. */
ERR_MUST_USE int pool_shares_read(int fd, struct pool_shares **ret, struct err *err);
void pool_shares_free(struct pool_shares *s);

#endif
