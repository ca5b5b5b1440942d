/* SPDX-License-Identifier: Apache-2.0 */
/* A state as a folder: what the runs of a workspace have as their lower layer. It is made once for each tree, under a
 * name that counts only after a rename, and never changed: many runs may have it at the same time. Everybody may read
 * it, because a run of root's reads it under another id; the state folder above it is its owner's alone.
 *
 * Waits: write in write_all; the disk; none (the kernel's own); an error */
#include "workspace/inside.h"

#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNFINISHED ".new"

static int write_all(int fd, const char *p, size_t len)
{
    while (len) {
        const ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int put_blob(git_repository *repo, int dir, const git_tree_entry *e, struct err *err)
{
    const git_filemode_t mode = git_tree_entry_filemode(e);
    const char *name = git_tree_entry_name(e);
    git_blob *blob = NULL;
    int r = 0;
    if (git_blob_lookup(&blob, repo, git_tree_entry_id(e)) < 0)
        return workspace_git_err(err, "a file of the store cannot be read");
    const char *data = git_blob_rawcontent(blob);
    const size_t size = (size_t)git_blob_rawsize(blob);
    if (mode == GIT_FILEMODE_LINK) {
        char target[4096];
        snprintf(target, sizeof target, "%.*s", (int)size, data);
        r = symlinkat(target, dir, name);
    } else {
        FD_AUTO fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 || write_all(fd, data, size) < 0 ||
                    fchmod(fd, mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644) < 0
                ? -1
                : 0;
    }
    git_blob_free(blob);
    return r < 0 ? err_sys(err, "check out %.100s", name) : 0;
}

static int put_tree(git_repository *repo, int dir, const git_oid *id, struct err *err)
{
    git_tree *tree = NULL;
    int r = 0;
    if (git_tree_lookup(&tree, repo, id) < 0)
        return workspace_git_err(err, "a folder of the store cannot be read");
    const size_t count = git_tree_entrycount(tree);
    for (size_t i = 0; i < count && r == 0; i++) {
        const git_tree_entry *e = git_tree_entry_byindex(tree, i);
        const char *name = git_tree_entry_name(e);
        if (git_tree_entry_type(e) != GIT_OBJECT_TREE) {
            r = put_blob(repo, dir, e, err);
            continue;
        }
        FD_AUTO below = mkdirat(dir, name, 0700) < 0
                            ? -1
                            : openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = below < 0 || fchmod(below, 0755) < 0 ? err_sys(err, "check out %.100s", name)
                                                 : put_tree(repo, below, git_tree_entry_id(e), err);
    }
    git_tree_free(tree);
    return r;
}

static int make(struct workspace *w, int trees, const git_oid *tree, const char *name,
                struct err *err)
{
    int r = workspace_remove(trees, UNFINISHED, err);
    if (r < 0)
        return r;
    FD_AUTO dir = mkdirat(trees, UNFINISHED, 0700) < 0
                      ? -1
                      : openat(trees, UNFINISHED, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0 || fchmod(dir, 0755) < 0)
        return err_sys(err, "make a folder to check out into");
    r = put_tree(w->repo, dir, tree, err);
    if (r == 0 && renameat2(trees, UNFINISHED, trees, name, RENAME_NOREPLACE) < 0)
        r = err_sys(err, "name a checkout");
    return r;
}

static int prune_others(int trees, const char *keep, struct err *err)
{
    const int fd = openat(trees, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (!d) {
        fd_close(fd);
        return err_sys(err, "look at the checkouts");
    }
    for (struct dirent *e; r == 0 && (e = readdir(d));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, keep) != 0)
            r = workspace_remove(trees, e->d_name, err);
    closedir(d);
    return r;
}

int workspace_checkout(struct workspace *w, bool prune, char ret_id[WORKSPACE_ID],
                       char ret_tree[WORKSPACE_ID], struct err *err)
{
    char path[WORKSPACE_NAME_MAX + 16];
    git_commit *head = NULL;
    struct stat st;
    int r = workspace_find(w, "head", &head, err);
    if (r < 0)
        return r;
    git_oid_tostr(ret_id, WORKSPACE_ID, git_commit_id(head));
    git_oid_tostr(ret_tree, WORKSPACE_ID, git_commit_tree_id(head));
    snprintf(path, sizeof path, "%s/trees", w->name);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        r = err_sys(err, "make a folder for checkouts");
    FD_AUTO trees = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0 && trees < 0)
        r = err_sys(err, "open the folder of the checkouts");
    if (r == 0 && fstatat(trees, ret_tree, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = make(w, trees, git_commit_tree_id(head), ret_tree, err);
    if (r == 0 && prune)
        r = prune_others(trees, ret_tree, err);
    git_commit_free(head);
    return r;
}
