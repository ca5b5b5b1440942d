/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a folder or file of the host in a guest's /workspace.
 *
 * Takes:   what is copied, by descriptor; the guest's file system; a path in /workspace.
 * Gives:   folders, regular files and links of the source; the guest owns them and may change its copy.
 * Never:   follows a link on either side, or writes outside the guest's own file system.
 * Runs in: the builder, before there is a guest; the supervisor, for a child or a session that lives already.
 */
#ifndef JAIL_PUT_H
#define JAIL_PUT_H

#include "jail/spec.h"

#define JAIL_PUT_DEPTH 64

/* SOURCE: a folder or a regular file, O_PATH is enough. FILES: the root of the guest's file system. A file of the same
 * name is replaced, whole or not at all; a folder's contents go into the folder DEST. ERR_USAGE: it does not fit, or cannot be read. */
ERR_MUST_USE int jail_put(int source, int files, const struct jail_bind *bind, struct err *err);

/* The same of a regular file once the guest has ended: where what it changed lies, below DEST. MESSAGES name it WHAT. */
ERR_MUST_USE int jail_put_left(int source, int files, const char *dest, const char *what,
                               struct err *err);

/* binds.c: its source as O_PATH: a folder or a regular file that the caller may read, and no link on the way. ERR_STATE: it is
 * not the one that BIND says. */
ERR_MUST_USE int jail_bind_open(const struct jail_bind *bind, struct err *err);
/* What jail_bind_open gave as SOURCE, with the guest's rights: as real root a mount of its own, mapped to the owner of FILES (the guest's
 * file system) and read-only where BIND is; else SOURCE again, since the guest is the caller. O_PATH, the caller's. */
ERR_MUST_USE int jail_bind_seen(const struct jail_bind *bind, int source, int files,
                                struct err *err);
/* ERR_USAGE: something else is at its destination in every jail. */
ERR_MUST_USE int jail_bind_place(const struct jail_bind *bind, struct err *err);

#endif
