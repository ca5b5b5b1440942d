/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the disk a store takes, without looking at each of its objects for each commit: a file beside the store has
 * the sum of what was there when somebody looked, and of the most that was written since. Near the limit somebody
 * looks again. The file is taken away before the first object is written and put back at the end, so after a process
 * that was killed the sum is counted anew.
 *
 * Waits: write in put_used; the disk; none (the kernel's own); the file is not there, and the next one counts */
#include "workspace/inside.h"

#include "base/units.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096ULL /* the least that a file takes */

/* Files of the store lie two folders deep. */
static uint64_t disk_use(int dir, const char *name, unsigned depth)
{
    DIR *d = entries_take(openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    uint64_t sum = 0;
    if (!d)
        return 0;
    for (const char *entry; (entry = entries_next(d));) {
        struct stat st;
        if (fstatat(dirfd(d), entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* an object in the making may be gone again */
        if (S_ISDIR(st.st_mode) && depth)
            sum += disk_use(dirfd(d), entry, depth - 1);
        else if (S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    }
    closedir(d);
    return sum;
}

uint64_t workspace_disk_use(const struct workspace *w)
{
    return disk_use(AT_FDCWD, git_repository_path(w->repo), 3);
}

static void usage_path(const struct workspace *w, const char *end,
                       char out[WORKSPACE_NAME_MAX + 16])
{
    snprintf(out, WORKSPACE_NAME_MAX + 16, "%s/usage%s", w->folder, end);
}

static bool get_used(const struct workspace *w, uint64_t *ret)
{
    char path[WORKSPACE_NAME_MAX + 16], text[32] = "";
    usage_path(w, "", path);
    return fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 && units_count(text, ret) == 0;
}

static void put_used(const struct workspace *w)
{
    char path[WORKSPACE_NAME_MAX + 16], new[WORKSPACE_NAME_MAX + 16], text[32];
    usage_path(w, "", path);
    usage_path(w, ".new", new);
    const int n = snprintf(text, sizeof text, "%llu", (unsigned long long)workspace_used(w));
    FD_AUTO fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, text, (size_t)n) != n || rename(new, path) < 0)
        (void)unlink(new); /* then the next one counts */
}

int workspace_bound(struct workspace *w, uint64_t limit, struct err *err)
{
    char path[WORKSPACE_NAME_MAX + 16];
    if (!limit)
        return 0;
    if (!get_used(w, &w->used) || w->used >= limit / 100 * WORKSPACE_ANNOUNCED)
        w->used = workspace_disk_use(w);
    usage_path(w, "", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(err, "note what the store uses");
    w->limit = limit;
    return workspace_take(w, 0, err);
}

uint64_t workspace_used(const struct workspace *w)
{
    return w->used + w->fresh;
}

int workspace_take(struct workspace *w, uint64_t bytes, struct err *err)
{
    w->fresh += bytes ? (bytes / BLOCK + 1) * BLOCK : 0;
    if (!w->limit || workspace_used(w) <= w->limit)
        return 0;
    return err_set(
        err, ERR_LIMIT,
        "what is new does not fit into the store of %s, which uses %llu %% of its %llu MB "
        "(workspaces.store of the policy): nothing is committed",
        w->folder, (unsigned long long)(w->used * 100 / w->limit),
        (unsigned long long)(w->limit / MIB));
}

/* What was refused lies in the store all the same, as far as it was written. */
void workspace_unbound(const struct workspace *w)
{
    if (w->limit)
        put_used(w);
}
