/* SPDX-License-Identifier: Apache-2.0 */
/* What a workspace is at the moment: read from the store alone, so that it is true whoever wrote last. */
#include "workspace/inside.h"

#include "sys/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int count_entry(const char *root, const git_tree_entry *e, void *counts)
{
    struct workspace_facts *f = ((void **)counts)[0];
    git_odb *odb = ((void **)counts)[1];
    size_t len = 0;
    git_object_t type;
    (void)root;
    if (git_tree_entry_type(e) != GIT_OBJECT_BLOB)
        return 0;
    f->files++;
    if (git_odb_read_header(&len, &type, odb, git_tree_entry_id(e)) < 0)
        return -1;
    f->bytes += len;
    return 0;
}

/* Files of the store lie two folders deep. */
static uint64_t disk_use(int dir, const char *name, unsigned depth)
{
    const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    uint64_t sum = 0;
    if (!d) {
        fd_close(fd);
        return 0;
    }
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* an object in the making may be gone again */
        if (S_ISDIR(st.st_mode) && depth)
            sum += disk_use(dirfd(d), e->d_name, depth - 1);
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

static int count_commits(struct workspace *w, const git_oid *head, uint64_t *ret)
{
    git_revwalk *walk = NULL;
    git_oid id;
    int r = git_revwalk_new(&walk, w->repo);
    if (r == 0)
        r = git_revwalk_push(walk, head);
    while (r == 0 && (r = git_revwalk_next(&id, walk)) == 0)
        ++*ret;
    git_revwalk_free(walk);
    return r == GIT_ITEROVER ? 0 : r;
}

int workspace_describe(struct workspace *w, struct workspace_facts *ret, struct err *err)
{
    struct workspace_facts f = {0};
    git_commit *c = NULL;
    git_tree *tree = NULL;
    git_odb *odb = NULL;
    int r = workspace_find(w, "head", &c, err);
    if (r < 0)
        return r;
    git_oid_tostr(f.head, sizeof f.head, git_commit_id(c));
    f.time = git_commit_time(c);
    if (git_commit_tree(&tree, c) < 0 || git_repository_odb(&odb, w->repo) < 0 ||
        git_tree_walk(tree, GIT_TREEWALK_PRE, count_entry, (void *[]){&f, odb}) < 0 ||
        count_commits(w, git_commit_id(c), &f.commits) < 0)
        r = workspace_git_err(err, "the store cannot be read");
    f.store = workspace_disk_use(w);
    git_odb_free(odb);
    git_tree_free(tree);
    git_commit_free(c);
    if (r == 0)
        *ret = f;
    return r;
}
