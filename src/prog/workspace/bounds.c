/* SPDX-License-Identifier: Apache-2.0 */
/* Whether something may be written at all: the disk is other people's, too, and one that is full stops the audit as well. */
#include "order.h"

#include "base/units.h"

#include <sys/statfs.h>

static int disk_has_room(const struct order *o, struct err *err)
{
    struct statfs fs;
    if (!o->free && !o->free_percent)
        return 0;
    if (fstatfs(ORDER_HOME_FD, &fs) < 0)
        return err_sys(err, "the room on the disk of the state folder");
    const uint64_t all = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    const uint64_t left = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    const uint64_t part = all / 100 * o->free_percent;
    const uint64_t least = part > o->free ? part : o->free;
    if (left >= least)
        return 0;
    return err_set(
        err, ERR_LIMIT,
        "the disk of the state folder has %llu MB free, and %llu MB are kept free "
        "(workspaces.free and workspaces.free_percent of the policy): nothing is written",
        (unsigned long long)(left / MIB), (unsigned long long)(least / MIB));
}

int order_bound(const struct order *o, struct workspace *w, struct err *err)
{
    int r = disk_has_room(o, err);
    return r == 0 && w ? workspace_bound(w, o->store, err) : r;
}

unsigned order_percent(const struct order *o, const struct workspace *w)
{
    return o->store ? (unsigned)(workspace_used(w) * 100 / o->store) : 0;
}
