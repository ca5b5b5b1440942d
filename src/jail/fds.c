/* A descriptor from outside is a hole in every other layer, so nothing is inherited but three
 * streams and, where the plan has one, the channel. Every descriptor of ours is close-on-exec from birth; close_range is the second lock on
 * the same door, and gives the launcher a table of its own, so that what it leaves behind stays
 * with the builder. */
#include "jail/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

int jail_fds_stdio(const int fds[3], struct err *err)
{
    int copies[3]; /* a source may sit on another one's place: copies first */
    for (int i = 0; i < 3; i++)
        if ((copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
            return err_sys(err, "the guest's streams");
    for (int i = 0; i < 3; i++) {
        if (dup2(copies[i], i) < 0) /* clears close-on-exec on the copy */
            return err_sys(err, "the guest's streams");
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

int jail_fds_channel(int channel, int *const *keep, size_t count, struct err *err)
{
    enum { PLACE = 3 };
    if (channel < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (*keep[i] == PLACE && (*keep[i] = fcntl(PLACE, F_DUPFD_CLOEXEC, PLACE + 1)) < 0)
            return err_sys(err, "make place for the channel");
    /* dup2 onto itself would leave close-on-exec as it is */
    int r = channel == PLACE ? fcntl(PLACE, F_SETFD, 0) : dup2(channel, PLACE);
    return r < 0 ? err_sys(err, "the guest's channel") : 0;
}
