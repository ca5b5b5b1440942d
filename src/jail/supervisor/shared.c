/* SPDX-License-Identifier: Apache-2.0 */
/* What is shared with --rw stays the caller's: the guest may write in the folder, but its mode is not the guest's to
 * change. The kernel has no lock for that: the guest is the owner of the folder (or it could not write there as the
 * caller does), the owner may always chmod, Landlock has no right for it, and a seccomp listener that lets a call go
 * on cannot know which file the name will lead to. So the supervisor keeps a descriptor of each, and when the last
 * process of the guest is dead it looks at the mode, puts it back and reports it. The descriptor is opened through
 * the guest's own mount: as root that mount is mapped to the guest's id, which is what the supervisor is by then.
 * Nobody can say which process changed the mode; a change during the run is undone in any case. Times of the folder are not kept:
 * every file that the guest makes changes them. */
#include "jail/supervisor/running.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define MODE_BITS 07777

/* FDS: what jail_binds_open gave. */
int jail_shared_open(struct jail_shared *shared, const struct jail_spec *spec, const int *fds,
                     struct err *err)
{
    if (spec->mode != JAIL_FULL) /* where the family of chmod is refused */
        return 0;
    for (size_t i = 0; i < spec->nbinds; i++) {
        char self[32];
        struct stat st;
        if (!spec->binds[i].writable)
            continue;
        snprintf(self, sizeof self, "/proc/self/fd/%d", fds[i]);
        FD_AUTO fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
            return err_sys(err, "--rw %.100s: open it to keep its mode", spec->binds[i].source);
        shared->mode[shared->count] = st.st_mode & MODE_BITS;
        shared->source[shared->count] = spec->binds[i].source;
        shared->fd[shared->count++] = fd_take(&fd);
    }
    return 0;
}

void jail_shared_restore(struct jail_shared *shared, struct jail_outcome *out)
{
    while (shared->count > 0) {
        const size_t i = --shared->count;
        const mode_t was = shared->mode[i];
        struct stat st;
        char detail[320];
        if (fstat(shared->fd[i], &st) == 0 && (st.st_mode & MODE_BITS) != was) {
            const bool undone = fchmod(shared->fd[i], was) == 0;
            snprintf(detail, sizeof detail, "the mode of %.200s was changed from %04o to %04o%s",
                     shared->source[i], (unsigned)was, (unsigned)(st.st_mode & MODE_BITS),
                     undone ? "" : ", and could not be put back");
            jail_violation_add(out, "filesystem",
                               undone ? JAIL_RULE_SHARED_MODE : JAIL_RULE_SHARED_MODE_KEPT, detail,
                               "change modes of what is in the folder, not of the folder");
        }
        fd_close(shared->fd[i]);
    }
}
