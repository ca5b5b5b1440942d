/* The state folder: where everything that outlives a process is kept.
 *
 * Takes:   $CORDON_STATE, else $XDG_STATE_HOME/cordon, else /var/lib/cordon for root and
 *          ~/.local/state/cordon for everybody else.
 * Gives:   its path, and a descriptor of it; made with mode 0700 where it is not there yet.
 * Never:   uses a folder that belongs to somebody else, or that others may write.
 * Runs in: the supervisor, the holder, the daemon. Not in a jail.
 */
#ifndef SYS_STATE_H
#define SYS_STATE_H

#include "base/err.h"

#include <stddef.h>

/* Looks at the environment only. ERR_USAGE: nothing says where, or the place is no absolute path. */
ERR_MUST_USE int state_dir_path(char *out, size_t size, struct err *err);

/* Opens it, making it and what is missing above it. ERR_STATE: it is not safe to use, and the
 * message says what to do. The caller closes *ret_fd. */
ERR_MUST_USE int state_dir_open(int *ret_fd, struct err *err);

/* The same for a folder inside, such as `audit`: mode 0700, never through a link. */
ERR_MUST_USE int state_dir_open_below(int state, const char *name, int *ret_fd, struct err *err);

#endif
