/* SPDX-License-Identifier: Apache-2.0 */
/* A state as a folder: what the runs of a workspace have as their lower layer. It is made once for each tree, under a
 * name that counts only after a rename, and never changed: many runs may have it at the same time. Everybody may read
 * it, because a run of root's reads it under another id; the state folder above it is its owner's alone.
 *
 * Waits: fd_write_all in *; the disk; none (the kernel's own); an error */
#include "workspace/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/here.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNFINISHED ".new"
#define BOOT       ".boot"

static int put_blob(git_repository *repo, int dir, const char *name, const git_oid *id,
                    unsigned mode, struct err *err)
{
    git_blob *blob = NULL;
    int r = 0;
    if (git_blob_lookup(&blob, repo, id) < 0)
        return workspace_git_err(err, "a file of the store cannot be read");
    const char *data = git_blob_rawcontent(blob);
    const size_t size = (size_t)git_blob_rawsize(blob);
    if (mode == GIT_FILEMODE_LINK) {
        char target[4096];
        snprintf(target, sizeof target, "%.*s", (int)size, data);
        r = symlinkat(target, dir, name);
    } else {
        FD_AUTO fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 || fd_write_all(fd, data, size) < 0 ||
                    fchmod(fd, mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644) < 0
                ? -1
                : 0;
    }
    git_blob_free(blob);
    return r < 0 ? err_sys(err, "check out %.100s", name) : 0;
}

static int put_tree(git_repository *repo, int dir, const git_oid *id, struct err *err);

static int put_entry(git_repository *repo, int dir, const git_tree_entry *e, struct err *err)
{
    const char *name = git_tree_entry_name(e);
    if (git_tree_entry_type(e) != GIT_OBJECT_TREE)
        return put_blob(repo, dir, name, git_tree_entry_id(e), git_tree_entry_filemode(e), err);
    FD_AUTO below = mkdirat(dir, name, 0700) < 0
                        ? -1
                        : openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return below < 0 || fchmod(below, 0755) < 0 ? err_sys(err, "check out %.100s", name)
                                                : put_tree(repo, below, git_tree_entry_id(e), err);
}

static int put_tree(git_repository *repo, int dir, const git_oid *id, struct err *err)
{
    git_tree *tree = NULL;
    int r = 0;
    if (git_tree_lookup(&tree, repo, id) < 0)
        return workspace_git_err(err, "a folder of the store cannot be read");
    const size_t count = git_tree_entrycount(tree);
    for (size_t i = 0; i < count && r == 0; i++)
        r = put_entry(repo, dir, git_tree_entry_byindex(tree, i), err);
    git_tree_free(tree);
    return r;
}

/* ---- one state from another ---- */

static bool is_tree(const git_tree_entry *e)
{
    return e && git_tree_entry_type(e) == GIT_OBJECT_TREE;
}

/* A folder with the same id has the same files all the way down. */
static bool is_same(const git_tree_entry *a, const git_tree_entry *b)
{
    return a && b && git_oid_equal(git_tree_entry_id(a), git_tree_entry_id(b)) &&
           git_tree_entry_filemode(a) == git_tree_entry_filemode(b);
}

/* What is gone goes first: a folder may have to make room for a file. */
static int take_away(int dir, const git_tree *from, const git_tree *to, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < git_tree_entrycount(from) && r == 0; i++) {
        const git_tree_entry *old = git_tree_entry_byindex(from, i);
        const char *name = git_tree_entry_name(old);
        const git_tree_entry *new = git_tree_entry_byname(to, name);
        if (is_same(old, new) || (is_tree(old) && is_tree(new)))
            continue;
        if (is_tree(old))
            r = workspace_remove(dir, name, err);
        else if (unlinkat(dir, name, 0) < 0)
            r = err_sys(err, "update the checkout at %.100s", name);
    }
    return r;
}

/* The folder DIR, which has the files of FROM, gets those of TO. libgit2's own comparison reads every folder of both;
 * this one reads those that differ, so what a run does not touch costs it nothing. */
static int change(git_repository *repo, int dir, const git_oid *from, const git_oid *to,
                  struct err *err)
{
    git_tree *a = NULL, *b = NULL;
    int r = 0;
    if (git_tree_lookup(&a, repo, from) < 0 || git_tree_lookup(&b, repo, to) < 0)
        r = workspace_git_err(err, "two states cannot be compared");
    if (r == 0)
        r = take_away(dir, a, b, err);
    for (size_t i = 0; r == 0 && i < git_tree_entrycount(b); i++) {
        const git_tree_entry *new = git_tree_entry_byindex(b, i);
        const char *name = git_tree_entry_name(new);
        const git_tree_entry *old = git_tree_entry_byname(a, name);
        if (is_same(old, new))
            continue;
        if (!is_tree(old) || !is_tree(new)) {
            r = put_entry(repo, dir, new, err);
            continue;
        }
        FD_AUTO below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = below < 0 ? err_sys(err, "update the checkout at %.100s", name)
                      : change(repo, below, git_tree_entry_id(old), git_tree_entry_id(new), err);
    }
    git_tree_free(a);
    git_tree_free(b);
    return r;
}

/* The checkout OLD, which nobody uses, becomes that of TREE: it costs what differs. Killed in between, it is not
 * there, and the next one is made from nothing. */
static int update(struct workspace *w, int trees, const char *old, const git_oid *tree,
                  const char *name, struct err *err)
{
    git_oid id;
    int r = workspace_remove(trees, UNFINISHED, err);
    if (r == 0 && git_oid_fromstr(&id, old) < 0)
        r = workspace_git_err(err, "two states cannot be compared");
    if (r == 0 && renameat2(trees, old, trees, UNFINISHED, RENAME_NOREPLACE) < 0)
        r = err_sys(err, "update a checkout");
    FD_AUTO dir =
        r < 0 ? -1 : openat(trees, UNFINISHED, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0)
        r = dir < 0 ? err_sys(err, "update a checkout") : change(w->repo, dir, &id, tree, err);
    if (r == 0 && renameat2(trees, UNFINISHED, trees, name, RENAME_NOREPLACE) < 0)
        r = err_sys(err, "name a checkout");
    return r;
}

/* ---- the one of the head ---- */

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

/* RET is the last of them that is not KEEP and that nobody has; with REMOVE they all go. */
static int others(int trees, const char *keep, bool remove, char ret[WORKSPACE_ID], struct err *err)
{
    DIR *d = entries_of(trees);
    int r = 0;
    if (!d)
        return err_sys(err, "look at the checkouts");
    for (const char *name; r == 0 && (name = entries_next(d));) {
        if (name[0] == '.' || strcmp(name, keep) == 0 || !workspace_tree_unused(trees, name))
            continue;
        snprintf(ret, WORKSPACE_ID, "%.40s", name);
        if (remove)
            r = workspace_remove(trees, name, err);
    }
    closedir(d);
    return r;
}

/* A checkout is not synced: after the machine went down without warning it may be anything. Those of another boot go, and
 * whoever reads the workspace does not read them: a reader of this boot has noted the boot before. Where nobody knows the
 * boot (BOOT is empty) all of them go. */
static int forget_old_boots(int trees, const char *boot, struct err *err)
{
    char seen[HERE_BOOT_MAX] = "", unused[WORKSPACE_ID] = "";
    (void)!fd_read_file(trees, BOOT, seen, sizeof seen); /* none there: another boot's */
    if (*boot && strcmp(seen, boot) == 0)
        return 0;
    int r = others(trees, "", true, unused, err);
    if (r < 0)
        return r;
    FD_AUTO fd = openat(trees, BOOT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 || fd_write_all(fd, boot, strlen(boot)) < 0 ? err_sys(err, "note the boot") : 0;
}

int workspace_checkout(struct workspace *w, const char *boot, bool prune, char ret_id[WORKSPACE_ID],
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
    snprintf(path, sizeof path, "%s/trees", w->folder);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        r = err_sys(err, "make a folder for checkouts");
    FD_AUTO trees = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0 && trees < 0)
        r = err_sys(err, "open the folder of the checkouts");
    if (r == 0 && (prune || *boot)) /* of an unknown boot somebody may be using one */
        r = forget_old_boots(trees, boot, err);
    if (r == 0 && fstatat(trees, ret_tree, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        char old[WORKSPACE_ID] = "";
        struct err why = ERR_INIT;
        if (prune)
            r = others(trees, ret_tree, false, old, err);
        if (r == 0 &&
            (!*old || update(w, trees, old, git_commit_tree_id(head), ret_tree, &why) < 0))
            r = make(w, trees, git_commit_tree_id(head), ret_tree, err);
    }
    if (r == 0 && prune) {
        char last[WORKSPACE_ID] = "";
        r = others(trees, ret_tree, true, last, err);
    }
    git_commit_free(head);
    return r;
}
