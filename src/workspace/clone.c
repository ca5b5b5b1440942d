/* SPDX-License-Identifier: Apache-2.0 */
/* A clone is one more ref of the same store: it costs one small file, whatever the workspace holds, and every command that
 * takes a workspace takes it. History is one line each, so nobody need note where a clone began: the workspace has
 * not moved exactly if its head is still in the clone's history, and then a merge moves one ref.
 *
 * A merge moves the workspace's ref first. A process that is killed then leaves a clone whose head is the workspace's:
 * merging it again only removes it. */
#include "workspace/inside.h"

#include <stdio.h>
#include <string.h>

enum { CLONES = 1000 }; /* of one workspace */

static const char *part(const struct workspace *w)
{
    return workspace_clone_part(w->name);
}

static int only_clone(const struct workspace *w, struct err *err)
{
    return part(w) ? 0
                   : err_set(err, ERR_USAGE,
                             "%s is no clone: name one as %s@CLONE; see cordon workspace list",
                             w->name, w->name);
}

static int id_of(struct workspace *w, const char *ref, git_oid *ret, struct err *err)
{
    return git_reference_name_to_id(ret, w->repo, ref) < 0
               ? workspace_git_err(err, "the store has no head")
               : 0;
}

/* ---- making ---- */

static bool taken(struct workspace *w, const char *name)
{
    char ref[WORKSPACE_REF];
    git_oid id;
    snprintf(ref, sizeof ref, WORKSPACE_REFS "%s", name);
    return git_reference_name_to_id(&id, w->repo, ref) == 0;
}

int workspace_clone(struct workspace *w, const char *name, const char *word,
                    char ret_name[WORKSPACE_NAME_MAX + 1], char ret_id[WORKSPACE_ID],
                    struct err *err)
{
    git_commit *from = NULL;
    char ref[WORKSPACE_REF], made_up[WORKSPACE_NAME_MAX + 1] = "";
    git_reference *made = NULL;
    git_oid id;
    if (!*name)
        for (int i = 1; i <= CLONES && (!*made_up || taken(w, made_up)); i++)
            snprintf(made_up, sizeof made_up, "clone-%d", i);
    name = *name ? name : made_up;
    if (taken(w, name))
        return err_set(err, ERR_USAGE, "%s has a clone '%s' already", w->folder, name);
    int r = workspace_find(w, *word ? word : "head", &from, err);
    if (r < 0)
        return r;
    git_oid_cpy(&id, git_commit_id(from));
    git_commit_free(from);
    snprintf(ref, sizeof ref, WORKSPACE_REFS "%s", name);
    if (git_reference_create(&made, w->repo, ref, &id, 0, NULL) < 0)
        r = workspace_git_err(err, "the clone cannot be made");
    git_reference_free(made);
    if (r < 0)
        return r;
    snprintf(ret_name, WORKSPACE_NAME_MAX + 1, "%s", name);
    git_oid_tostr(ret_id, WORKSPACE_ID, &id);
    return 0;
}

int workspace_clones(struct workspace *w, int (*each)(void *ctx, const char *clone), void *ctx,
                     struct err *err)
{
    git_reference_iterator *all = NULL;
    const char *name = NULL;
    int r = 0, got = 0;
    if (git_reference_iterator_glob_new(&all, w->repo, WORKSPACE_REFS "*") < 0)
        return workspace_git_err(err, "the clones cannot be listed");
    while (r == 0 && (got = git_reference_next_name(&name, all)) == 0)
        if (strcmp(name, WORKSPACE_HEAD) != 0)
            r = each(ctx, name + sizeof WORKSPACE_REFS - 1);
    git_reference_iterator_free(all);
    return got < 0 && got != GIT_ITEROVER ? workspace_git_err(err, "the clones cannot be listed")
                                          : r;
}

/* ---- what it changed ---- */

/* The commit at which the clone left the workspace; every two states have genesis in common. */
static int began(struct workspace *w, const git_oid *head, git_oid *ret, struct err *err)
{
    git_oid main;
    int r = id_of(w, WORKSPACE_HEAD, &main, err);
    return r == 0 && git_merge_base(ret, w->repo, head, &main) < 0
               ? workspace_git_err(err, "the history is broken")
               : r;
}

static int tree_of(struct workspace *w, const git_oid *id, git_tree **ret, struct err *err)
{
    git_commit *c = NULL;
    const int r = git_commit_lookup(&c, w->repo, id) < 0 || git_commit_tree(ret, c) < 0 ? -1 : 0;
    git_commit_free(c);
    return r < 0 ? workspace_git_err(err, "the history is broken") : 0;
}

/* The trees at which the clone began and at which it is. */
static int both_ends(struct workspace *w, git_tree **ret_old, git_tree **ret_new, struct err *err)
{
    git_oid head, base;
    int r = only_clone(w, err);
    if (r == 0)
        r = id_of(w, w->ref, &head, err);
    if (r == 0)
        r = began(w, &head, &base, err);
    if (r == 0)
        r = tree_of(w, &base, ret_old, err);
    if (r == 0)
        r = tree_of(w, &head, ret_new, err);
    return r;
}

int workspace_changed(struct workspace *w, const struct workspace_sink *out, struct err *err)
{
    git_tree *old = NULL, *new = NULL;
    git_diff *diff = NULL;
    int r = both_ends(w, &old, &new, err);
    if (r == 0 && git_diff_tree_to_tree(&diff, w->repo, old, new, NULL) < 0)
        r = workspace_git_err(err, "two states cannot be compared");
    const size_t count = r == 0 ? git_diff_num_deltas(diff) : 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        if (d->status != GIT_DELTA_DELETED && d->new_file.mode != GIT_FILEMODE_LINK)
            r = out->put(out->ctx, d->new_file.path, strlen(d->new_file.path) + 1);
    }
    git_diff_free(diff);
    git_tree_free(old);
    git_tree_free(new);
    return r;
}

int workspace_changes(struct workspace *w, const struct workspace_sink *out, struct err *err)
{
    git_tree *old = NULL, *new = NULL;
    int r = both_ends(w, &old, &new, err);
    if (r == 0)
        r = workspace_patch(w->repo, old, new, WORKSPACE_TEXT, out, err);
    git_tree_free(old);
    git_tree_free(new);
    return r;
}

/* ---- its end ---- */

static void verified_ref(const struct workspace *w, char ref[WORKSPACE_REF])
{
    snprintf(ref, WORKSPACE_REF, WORKSPACE_VERIFIED "%s", part(w));
}

int workspace_verified(struct workspace *w, const char *id, struct err *err)
{
    char ref[WORKSPACE_REF];
    git_reference *made = NULL;
    git_oid head, seen;
    int r = only_clone(w, err);
    if (r == 0)
        r = id_of(w, w->ref, &head, err);
    if (r == 0 && (git_oid_fromstr(&seen, id) < 0 || !git_oid_equal(&seen, &head)))
        return err_set(err, ERR_STATE, "%s changed while it was verified; verify it again",
                       w->name);
    if (r < 0)
        return r;
    verified_ref(w, ref);
    if (git_reference_create(&made, w->repo, ref, &head, 1, NULL) < 0)
        r = workspace_git_err(err, "that it was verified cannot be noted");
    git_reference_free(made);
    return r;
}

static int may_merge(struct workspace *w, const git_oid *head, const git_oid *main, struct err *err)
{
    char ref[WORKSPACE_REF], at[WORKSPACE_ID];
    git_oid base, seen;
    int r = began(w, head, &base, err);
    if (r < 0)
        return r;
    git_oid_tostr(at, sizeof at, &base);
    if (!git_oid_equal(&base, main))
        return err_set(err, ERR_STATE,
                       "conflict: %s changed after %s began (at %.12s); discard the clone, or "
                       "clone again and repeat its runs",
                       w->folder, w->name, at);
    verified_ref(w, ref);
    if (!git_oid_equal(head, main) &&
        (git_reference_name_to_id(&seen, w->repo, ref) < 0 || !git_oid_equal(&seen, head)))
        return err_set(err, ERR_STATE,
                       "%s was not verified as it is: cordon workspace verify %s first", w->name,
                       w->name);
    return 0;
}

int workspace_merge(struct workspace *w, char ret_id[WORKSPACE_ID], bool *ret_new, struct err *err)
{
    git_reference *moved = NULL;
    git_oid head, main;
    int r = only_clone(w, err);
    if (r == 0)
        r = id_of(w, w->ref, &head, err);
    if (r == 0)
        r = id_of(w, WORKSPACE_HEAD, &main, err);
    if (r == 0)
        r = may_merge(w, &head, &main, err);
    const bool new = r == 0 && !git_oid_equal(&head, &main);
    if (new &&git_reference_create_matching(&moved, w->repo, WORKSPACE_HEAD, &head, 1, &main,
                                            NULL) < 0)
        r = workspace_git_err(err, "the merge failed, and the head is where it was");
    git_reference_free(moved);
    if (r == 0)
        r = workspace_discard(w, err);
    if (r < 0)
        return r;
    git_oid_tostr(ret_id, WORKSPACE_ID, &head);
    *ret_new = new;
    return 0;
}

/* What was verified goes first: a later clone of the same name must not find it. */
int workspace_discard(struct workspace *w, struct err *err)
{
    char ref[WORKSPACE_REF];
    git_oid id;
    int r = only_clone(w, err);
    if (r < 0)
        return r;
    verified_ref(w, ref);
    if (git_reference_name_to_id(&id, w->repo, ref) == 0 && git_reference_remove(w->repo, ref) < 0)
        return workspace_git_err(err, "the clone cannot be removed");
    return git_reference_remove(w->repo, w->ref) < 0
               ? workspace_git_err(err, "the clone cannot be removed")
               : 0;
}
