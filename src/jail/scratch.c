/* SPDX-License-Identifier: Apache-2.0 */
/* A run without namespaces has no private file system, so its writable folder lies on the host. It
 * is made unguessable and closed to others, and removed without ever following a link or recursing:
 * the guest made what is in it, as deep as it liked. */
#include "jail/outside.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int jail_scratch_make(const struct jail_identity *id, struct jail_janitor *j, char *path,
                      size_t size, struct err *err)
{
    static const char *const inside[] = {"workspace", "tmp"};
    const char *base = getenv("TMPDIR");
    if (!base || base[0] != '/')
        base = "/tmp";
    uint64_t secret;
    if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
        return err_sys(err, "getrandom");
    if (snprintf(path, size, "%s/cordon-%016llx", base, (unsigned long long)secret) >= (int)size)
        return err_set(err, ERR_USAGE, "TMPDIR is too long a path");
    int r = jail_janitor_tell(j, -1, path, err);
    if (r < 0)
        return r;
    if (mkdir(path, 0700) < 0)
        return err_sys(err, "make a folder in %s", base);
    FD_AUTO dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    r = dir < 0 ? -1 : 0;
    for (size_t i = 0; i < 2 && r == 0; i++)
        r = mkdirat(dir, inside[i], 0700) < 0 ||
                    (id->change &&
                     fchownat(dir, inside[i], id->uid, id->gid, AT_SYMLINK_NOFOLLOW) < 0)
                ? -1
                : 0;
    if (r == 0 && id->change)
        r = fchown(dir, id->uid, id->gid);
    return r < 0 ? err_sys(err, "prepare %s", path) : 0;
}

/* A folder that its owner closed is opened again. By descriptor: whoever lives on may swap a folder for a link, and
 * chmod by name would follow it. */
static bool reopen(int dir, const char *name)
{
    struct stat st;
    char self[40];
    FD_AUTO folder = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) /* root of its namespace may look into it, and has no /proc there */
        return fstat(folder, &st) == 0 &&
               ((st.st_mode & 0700) == 0700 || fchmod(folder, 0700) == 0);
    FD_AUTO fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return (st.st_mode & 0700) == 0700 || chmod(self, 0700) == 0;
}

/* Takes everything directly under DIR away: files are unlinked, folders are moved up to TOP under a
 * fresh name, so that no path ever gets longer and no stack deeper. Returns whether TOP changed. */
static bool flatten(int top, int dir, unsigned long *serial)
{
    bool moved = false;
    DIR *d = entries_of(dir);
    if (!d)
        return false;
    for (const char *name; (name = entries_next(d));) {
        if (unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0)
            continue;
        if (dir != top) {
            char fresh[32];
            snprintf(fresh, sizeof fresh, "d%lu", (*serial)++);
            if (reopen(dir, name) && renameat(dir, name, top, fresh) == 0)
                moved = true;
        }
    }
    closedir(d);
    return moved;
}

void jail_scratch_empty(int top, uint64_t most_ms)
{
    unsigned long serial = 0;
    const uint64_t until = clock_now_ns() + most_ms * CLOCK_NS_PER_MS;
    for (bool more = top >= 0; more && clock_now_ns() < until;) {
        more = flatten(top, top, &serial); /* files and empty folders at the top */
        DIR *d = entries_of(top);
        if (!d)
            break;
        for (const char *name; (name = entries_next(d));) {
            if (!reopen(top, name))
                continue;
            FD_AUTO sub = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            if (sub >= 0)
                more = flatten(top, sub, &serial) || more;
            if (unlinkat(top, name, AT_REMOVEDIR) == 0)
                more = true;
        }
        closedir(d);
    }
}

void jail_scratch_remove(const char *path)
{
    FD_AUTO top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    jail_scratch_empty(top, LIMIT_SCRATCH_MS);
    rmdir(path);
}
