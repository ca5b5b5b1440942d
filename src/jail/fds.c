/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor from outside is a hole in every other layer, so nothing is inherited but three
 * streams and, where the specification has one, the channel. Every descriptor of ours is close-on-exec from its creation; close_range is the second lock for
 * the same, and gives the launcher a table of its own, so that what it leaves behind stays
 * with the builder. */
#include "jail/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

int jail_fds_place(int first, const int *fds, size_t count, int *const *keep, size_t keeps,
                   struct err *err)
{
    int copies[JAIL_FDS_PLACES], end = first + (int)count;
    base_assert(count <= JAIL_FDS_PLACES);
    for (size_t i = 0; i < keeps; i++)
        if (*keep[i] >= first && *keep[i] < end &&
            (*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, end)) < 0)
            return err_sys(err, "make place for descriptors");
    for (size_t i = 0; i < count; i++) /* a source may sit on another one's place: copies first */
        if ((copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, end)) < 0)
            return err_sys(err, "make place for descriptors");
    for (size_t i = 0; i < count; i++) {
        if (dup2(copies[i], first + (int)i) < 0) /* clears close-on-exec */
            return err_sys(err, "put descriptors in their place");
        close(copies[i]);
    }
    return 0;
}

int jail_fds_leave_behind(const struct jail_spec *spec, struct err *err)
{
    unsigned first = jail_off(spec, fds) ? ~0U : 3; /* a test trusts close-on-exec alone */
    if (close_range(first, ~0U, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) < 0)
        return err_sys(err, "close_range");
    return 0;
}
