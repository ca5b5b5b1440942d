/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that fills a disk stops everybody else who writes to it, the audit first. What it writes in its own folders is bounded by a
 * quota; a folder of the host is not, so the same space is kept free there as for commits of workspaces, and a run that
 * could take the last of it does not begin. */
#include "storage.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/space.h"

#include <fcntl.h>

int storage_check(const char *option, const char *shown, int folder, const struct policy *policy,
                  struct err *err)
{
    struct disk_space space;
    struct err why = ERR_INIT;
    if (disk_space_look(folder, policy->workspaces.free, policy->workspaces.free_percent, &space,
                        &why) < 0)
        return err_set(err, ERR_SYS, "%s %.160s: %.200s", option, shown, why.msg);
    if (!space.short_of)
        return 0;
    return err_set(
        err, ERR_LIMIT,
        "%s %.160s: its disk has %llu MB free, and %llu MB are kept free "
        "(workspaces.free and workspaces.free_percent of the policy): nothing is written",
        option, shown, (unsigned long long)(space.free / MIB),
        (unsigned long long)(space.kept / MIB));
}

int storage_check_binds(const struct jail_spec *spec, const struct policy *policy, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < spec->nbinds; i++) {
        FD_AUTO fd = spec->binds[i].writable ? open(spec->binds[i].source, O_PATH | O_CLOEXEC) : -1;
        if (fd >= 0)
            r = storage_check("--rw", spec->binds[i].source, fd, policy, err);
    }
    return r;
}
