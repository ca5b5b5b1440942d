/* SPDX-License-Identifier: Apache-2.0 */
/* What a workspace is at the moment: read from the store alone, so that it is true whoever wrote last. */
#include "workspace/inside.h"

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
