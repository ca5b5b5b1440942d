/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: where everything that outlives a process is kept, readable by its owner alone.
 *
 * Takes:   the environment (CORDON_STATE, XDG_STATE_HOME, HOME), names below the folder.
 * Gives:   descriptors of folders and files that were seen to be ours and closed to others.
 * Never:   follows a link in the last step, or uses what somebody else could have written.
 * Runs in: `cordon` and cordon-holder.
 */
#ifndef SYS_STATE_H
#define SYS_STATE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define STATE_PATH_MAX 4096

/* The machine's policy names the folder for this process, {uid} in it being the caller's number. FINAL: the
 * environment cannot name another; otherwise CORDON_STATE still can. */
ERR_MUST_USE int state_pin(const char *folder, bool final, struct err *err);

/* What was pinned; else $CORDON_STATE, else $XDG_STATE_HOME/cordon, else /var/lib/cordon for root, else
 * ~/.local/state/cordon. ERR_USAGE: it is pinned for good, and CORDON_STATE names another. Only the name: nothing is
 * made. */
ERR_MUST_USE int state_path(char *out, size_t size, struct err *err);

/* Opens the folder PATH, with MAKE makes it and what is above it. It must be ours, and nobody else may
 * write in it. Without MAKE a folder that is not there is ERR_SYS with ENOENT. */
ERR_MUST_USE int state_open(const char *path, bool make, int *ret_fd, struct err *err);

/* A folder (0700) or a file (0600) below DIR: ours, closed to everybody else, and not a link. FLAGS are
 * those of open(2); O_CREAT makes what is missing. A file must be regular and have one name. */
ERR_MUST_USE int state_folder(int dir, const char *name, bool make, int *ret_fd, struct err *err);
ERR_MUST_USE int state_file(int dir, const char *name, int flags, int *ret_fd, struct err *err);

/* Whether NAME in DIR (AT_FDCWD: a path) is still what FD is: for who keeps it open over a long time. */
bool state_is_same(int dir, const char *name, int fd);

#endif
