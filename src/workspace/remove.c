/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what a workspace left, depth first. Folders are opened beneath the one that they were found in, through no
 * link and no mount; a link is removed, never followed.
 *
 * Waits: flock in workspace_tree_unused; nobody (LOCK_NB); at once; it is in use */
#include "workspace/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX (LIMIT_WORKSPACE_DEPTH + 8)

static int open_folder(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

static int remove_in(int dir, const char *name, unsigned depth, struct err *err)
{
    const int fd = open_folder(dir, name);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd >= 0 && depth == 0) {
        fd_close(fd);
        return err_set(err, ERR_STATE, "%.80s: folders nested too deep to remove", name);
    }
    DIR *d = entries_take(fd);
    if (!d)
        return err_sys(err, "remove %.80s", name);
    int r = 0;
    for (const char *entry; r == 0 && (entry = entries_next(d));) {
        if (unlinkat(dirfd(d), entry, 0) == 0 || errno == ENOENT)
            continue;
        r = errno == EISDIR ? remove_in(dirfd(d), entry, depth - 1, err)
                            : err_sys(err, "remove %.80s", entry);
    }
    closedir(d);
    if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = err_sys(err, "remove %.80s", name);
    return r;
}

int workspace_remove(int dir, const char *name, struct err *err)
{
    return remove_in(dir, name, DEPTH_MAX, err);
}

bool workspace_tree_unused(int trees, const char *name)
{
    FD_AUTO fd = open_folder(trees, name);
    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
}
