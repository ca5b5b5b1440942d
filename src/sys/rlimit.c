/* SPDX-License-Identifier: Apache-2.0 */
/* A process without rights may not set a hard limit above the one that it has (EPERM), and a user's own `ulimit` may be lower than
 * what we ask for: then that one stays. */
#include "sys/rlimit.h"

#include <errno.h>

int sys_rlimit_lower(int id, rlim_t soft, rlim_t hard)
{
    struct rlimit now, want = {soft, hard};
    if (setrlimit((__rlimit_resource_t)id, &want) == 0)
        return 0;
    if (errno != EPERM || getrlimit((__rlimit_resource_t)id, &now) < 0)
        return -1;
    if (want.rlim_max > now.rlim_max)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    return setrlimit((__rlimit_resource_t)id, &want);
}
