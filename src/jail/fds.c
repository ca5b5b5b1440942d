/* A descriptor from outside is a hole in every other layer, so nothing is inherited but three streams.
 * All our descriptors are close-on-exec already; close_range is the second lock on the same door. */
#include "jail/inside.h"

#include "sys/fd.h"

#include <linux/close_range.h>
#include <unistd.h>

int jail_fds_stdio(const int fds[3], struct err *err)
{
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0) /* clears close-on-exec on the copy */
            return err_sys(err, "dup2 to %d", i);
    return 0;
}

int jail_fds_close_from(unsigned first, struct err *err)
{
    if (close_range(first, ~0U, 0) < 0)
        return err_sys(err, "close_range from %u", first);
    return 0;
}
