/* SPDX-License-Identifier: Apache-2.0 */
/* Many objects at once. libgit2 syncs each object and its folder, which for ten thousand files is twenty thousand waits for the
 * disk. From the BULK'th object of a commit on, they are written to a folder beside the store's own, unsynced; at the end all of it is
 * synced in one go, and only then each gets its name among the objects. So an object that has its name is whole, also
 * after the machine went down without warning: nobody would write it a second time. What a process that was killed left in the
 * folder goes before the next change.
 *
 * Waits: syncfs in sync_all; the disk; none (the kernel's own); the lock of one workspace is held */
#include "workspace/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"

#include <git2/sys/odb_backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BULK     64 /* objects that are synced one by one */
#define PRIORITY 10 /* above the store's own: what is written goes there */

static int remove_folder(const struct workspace *w, struct err *err)
{
    FD_AUTO store =
        open(git_repository_path(w->repo), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return store < 0 ? err_sys(err, "open the store")
                     : workspace_remove(store, WORKSPACE_INCOMING, err);
}

/* Landlock before Linux 5.19 lets nobody rename from one folder to another. */
static bool may_rename(const char *store)
{
    FD_AUTO dir = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    FD_AUTO file = dir < 0 ? -1
                           : openat(dir, WORKSPACE_INCOMING "/try",
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file >= 0 && renameat(dir, WORKSPACE_INCOMING "/try", dir, "objects/tmp_try") == 0 &&
           unlinkat(dir, "objects/tmp_try", 0) == 0;
}

static int begin(struct workspace *w, struct err *err)
{
    char path[WORKSPACE_NAME_MAX + 4096];
    git_odb *odb = NULL;
    git_odb_backend *backend = NULL;
    int r = remove_folder(w, err);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s" WORKSPACE_INCOMING, git_repository_path(w->repo));
    if (mkdir(path, 0700) < 0)
        return err_sys(err, "make a folder for new objects");
    if (!may_rename(git_repository_path(w->repo)))
        return remove_folder(w, err); /* then each object is synced */
    r = git_repository_odb(&odb, w->repo);
    if (r == 0)
        r = git_odb_backend_loose(&backend, path, -1, 0, 0, 0);
    if (r == 0 && (r = git_odb_add_backend(odb, backend, PRIORITY)) < 0)
        backend->free(backend);
    git_odb_free(odb);
    if (r == 0)
        r = git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
    w->bulk = r == 0;
    return r < 0 ? workspace_git_err(err, "the store takes no folder for new objects") : 0;
}

int workspace_bulk_one(struct workspace *w, struct err *err)
{
    return ++w->written == BULK ? begin(w, err) : 0;
}

static int sync_all(int store, struct err *err)
{
    return syncfs(store) < 0 ? err_sys(err, "sync new objects") : 0;
}

/* The objects of one folder, which has the first two digits of their ids as its name. */
static int name_folder(int from, int to, const char *digits, struct err *err)
{
    DIR *d = entries_take(openat(from, digits, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    FD_AUTO there = mkdirat(to, digits, 0777) < 0 && errno != EEXIST
                        ? -1
                        : openat(to, digits, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = there < 0 ? err_sys(err, "name new objects") : 0;
    if (!d)
        return err_sys(err, "look at new objects");
    for (const char *name; r == 0 && (name = entries_next(d));)
        if (renameat(dirfd(d), name, there, name) < 0)
            r = err_sys(err, "name a new object");
    closedir(d);
    return r;
}

static int name_all(int store, struct err *err)
{
    DIR *d = entries_take(
        openat(store, WORKSPACE_INCOMING, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    FD_AUTO to = openat(store, "objects", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = to < 0 ? err_sys(err, "name new objects") : 0;
    if (!d)
        return err_sys(err, "look at new objects");
    for (const char *name; r == 0 && (name = entries_next(d));)
        if (strlen(name) == 2)
            r = name_folder(dirfd(d), to, name, err);
    closedir(d);
    return r;
}

int workspace_bulk_end(struct workspace *w, struct err *err)
{
    if (!w->bulk)
        return 0;
    w->bulk = false;
    if (git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1) < 0)
        return workspace_git_err(err, "libgit2 does not sync");
    FD_AUTO store =
        open(git_repository_path(w->repo), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = store < 0 ? err_sys(err, "open the store") : sync_all(store, err);
    if (r == 0)
        r = name_all(store, err);
    if (r == 0)
        r = sync_all(store, err);
    return r < 0 ? r : remove_folder(w, err);
}
