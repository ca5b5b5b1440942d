/* SPDX-License-Identifier: Apache-2.0 */
/* A path followed one component at a time, links by hand: who could change what it leads to?
 *
 * Takes:   a path of something trusted; the folders and files that guests may write.
 * Gives:   an open descriptor of what is there; or why it is not to be trusted.
 * Never:   follows a path by name twice: each step is taken and looked at once.
 * Runs in: the supervisor; `cordon policy`; the holder (sys/owned.h).
 */
#ifndef SYS_WALK_H
#define SYS_WALK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct walk_rules {
    const char *what;            /* begins each message: "the policy" */
    const char *const *writable; /* what a guest may write; one that is not there holds nothing */
    size_t count;
    /* The path leads to a regular file of root's or ours that nobody else can write, and it is opened for
     * reading. Otherwise to anything, opened with O_PATH. */
    bool trusted_file;
    struct writable_set *set; /* of `writable`, for many walks; NULL: made for each */
    /* Asked about each folder on the way, and about the LAST: the entry NAME of DIR. NULL: nobody is asked. */
    int (*judge)(void *ctx, int dir, const char *name, const struct stat *st, bool last,
                 struct err *err);
    void *ctx;
};

/* *ret_fd is -1, and 0 is returned, when nothing is there. ERR_USAGE: what is there is not to be trusted, or a
 * guest can write it, or a folder or link on the way to it (also when nothing is there yet: it could be put
 * there). ERR_SYS with EACCES in sys_errno: it may not even be looked for. */
ERR_MUST_USE int walk_open(const struct walk_rules *rules, const char *path, int *ret_fd,
                           struct stat *ret_st, struct err *err);

/* ERR_USAGE when a guest can write PATH or something on the way to it; with TREE also when one of the
 * writable folders lies below it. */
ERR_MUST_USE int walk_apart(const struct walk_rules *rules, const char *path, bool tree,
                            struct err *err);

#endif
