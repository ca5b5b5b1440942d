/* SPDX-License-Identifier: Apache-2.0 */
/* Whether something may be written at all: the disk is other people's, too, and one that is full stops the audit as well. */
#include "order.h"

#include "base/limits.h"
#include "sys/space.h"

#include <errno.h>
#include <string.h>

static int disk_has_room(const struct order *o, struct err *err)
{
    struct disk_space space;
    int r = disk_space_look(ORDER_HOME_FD, o->free, o->free_percent, &space, err);
    if (r < 0 || !space.short_of)
        return r;
    return err_set(
        err, ERR_LIMIT,
        "the disk of the state folder has %llu MB free, and %llu MB are kept free "
        "(workspaces.free and workspaces.free_percent of the policy): nothing is written",
        (unsigned long long)(space.free / MIB), (unsigned long long)(space.kept / MIB));
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

/* Bytes or inodes: by now what was half done is gone again, so both numbers are told, and neither is guessed at. */
int order_explain(const char *why, struct buf *line)
{
    struct disk_space space;
    struct err unknown = ERR_INIT;
    if (!strstr(why, strerror(ENOSPC)) ||
        disk_space_look(ORDER_HOME_FD, 0, 0, &space, &unknown) < 0)
        return 0;
    return buf_printf(line,
                      "; the disk of the state folder has %llu MB and %llu inodes free: remove "
                      "files there, or delete workspaces",
                      (unsigned long long)(space.free / MIB), (unsigned long long)space.inodes);
}
