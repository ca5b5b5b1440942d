/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file lies in its file system, whatever mounts its names go through: is it inside what a guest may write?
 *
 * Takes:   the folders and files that guests may write; descriptors of something trusted.
 * Gives:   whether one lies in the other, also where a part of a file system is mounted a second time.
 * Never:   opens or changes anything but a list of mounts.
 * Runs in: the supervisor; `cordon policy`.
 */
#ifndef SYS_WRITABLE_H
#define SYS_WRITABLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct writable_set;

/* Of WRITABLE, with all that is mounted below them. One that is not there holds nothing. */
ERR_MUST_USE int writable_set_new(const char *const *writable, size_t count,
                                  struct writable_set **ret, struct err *err);
void writable_set_free(struct writable_set *p);

/* The writable one that what FD is lies in; with TREE also one that lies in FD, or in what is mounted below it. NULL:
 * none. */
ERR_MUST_USE int writable_set_find(const struct writable_set *p, int fd, bool tree,
                                   const char **ret_writable, struct err *err);

#endif
