/* SPDX-License-Identifier: Apache-2.0 */
/* Every state is one commit further on the one line: a restore commits the old files again instead of moving the head
 * back, so nothing that was acknowledged is ever lost, and who reads the log sees what was undone. */
#include "workspace/inside.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a word names ---- */

static int head(struct workspace *w, git_commit **ret, struct err *err)
{
    git_oid id;
    if (git_reference_name_to_id(&id, w->repo, w->ref) < 0 ||
        git_commit_lookup(ret, w->repo, &id) < 0)
        return workspace_git_err(err, "the store has no head");
    return 0;
}

/* STEPS back from COMMIT, which it takes; UINT64_MAX: to the first. */
static int back(git_commit *commit, uint64_t steps, git_commit **ret, struct err *err)
{
    while (steps && git_commit_parentcount(commit)) {
        git_commit *parent = NULL;
        const int r = git_commit_parent(&parent, commit, 0);
        git_commit_free(commit);
        if (r < 0)
            return workspace_git_err(err, "the history is broken");
        commit = parent;
        steps -= steps != UINT64_MAX;
    }
    if (steps && steps != UINT64_MAX) {
        git_commit_free(commit);
        return err_set(err, ERR_USAGE,
                       "the history has fewer snapshots than that; see cordon workspace log");
    }
    *ret = commit;
    return 0;
}

static int by_name(struct workspace *w, const char *word, git_commit **ret, struct err *err)
{
    char ref[sizeof "refs/tags/" + WORKSPACE_NAME_MAX];
    git_oid id;
    const size_t len = strlen(word);
    if (workspace_snapshot_name_good(word)) {
        snprintf(ref, sizeof ref, "refs/tags/%s", word);
        if (git_reference_name_to_id(&id, w->repo, ref) == 0 &&
            git_commit_lookup(ret, w->repo, &id) == 0)
            return 0;
    } else if (len >= 4 && len <= GIT_OID_HEXSZ && word[strspn(word, "0123456789abcdef")] == 0 &&
               git_oid_fromstrp(&id, word) == 0) {
        const int r = git_commit_lookup_prefix(ret, w->repo, &id, len);
        if (r == 0)
            return 0;
        if (r == GIT_EAMBIGUOUS)
            return err_set(err, ERR_USAGE, "more than one snapshot's id begins with '%s'", word);
    }
    return err_set(err, ERR_USAGE,
                   "there is no snapshot '%.60s'; see cordon workspace log (head, head~2, genesis, "
                   "a name, or an id of at least 4 digits)",
                   word);
}

int workspace_find(struct workspace *w, const char *word, git_commit **ret, struct err *err)
{
    git_commit *from = NULL;
    uint64_t steps = 0;
    int r = 0;
    if (strcmp(word, "genesis") == 0)
        steps = UINT64_MAX;
    else if (strncmp(word, "head~", 5) == 0 &&
             (units_count(word + 5, &steps) < 0 || steps == UINT64_MAX))
        return err_set(err, ERR_USAGE, "'%.60s': a number must follow head~, such as head~2", word);
    else if (strcmp(word, "head") != 0 && strncmp(word, "head~", 5) != 0)
        return by_name(w, word, ret, err);
    r = head(w, &from, err);
    return r < 0 ? r : back(from, steps, ret, err);
}

/* ---- further states ---- */

static int advance(struct workspace *w, const git_oid *tree, bool always,
                   const struct workspace_author *author, char ret_id[WORKSPACE_ID], bool *ret_new,
                   struct err *err)
{
    git_commit *parent = NULL;
    git_oid id;
    int r = head(w, &parent, err);
    if (r < 0)
        return r;
    *ret_new = always || !git_oid_equal(git_commit_tree_id(parent), tree);
    git_oid_cpy(&id, git_commit_id(parent));
    if (*ret_new)
        r = workspace_take(w, 1, err);
    if (r == 0 && *ret_new)
        r = workspace_commit(w->repo, w->ref, tree, parent, author, &id, err);
    git_commit_free(parent);
    git_oid_tostr(ret_id, WORKSPACE_ID, &id);
    return r;
}

int workspace_import(struct workspace *w, int folder, const struct workspace_author *author,
                     struct workspace_left *left, char ret_id[WORKSPACE_ID], bool *ret_new,
                     struct err *err)
{
    git_oid tree;
    int r = workspace_tree(w, folder, false, NULL, left, &tree, err);
    return r < 0 ? r : advance(w, &tree, false, author, ret_id, ret_new, err);
}

/* The commit whose whole id ID begins with. */
static int state(struct workspace *w, const char *id, git_commit **ret, struct err *err)
{
    git_oid oid;
    return git_oid_fromstrn(&oid, id, GIT_OID_HEXSZ) < 0 ||
                   git_commit_lookup(ret, w->repo, &oid) < 0
               ? workspace_git_err(err, "the state that the run began with")
               : 0;
}

int workspace_keep(struct workspace *w, int folder, bool layer, const char *base_id,
                   const struct workspace_author *author, struct workspace_left *left,
                   char ret_id[WORKSPACE_ID], bool *ret_new, struct err *err)
{
    git_commit *base = NULL, *lower = NULL, *now = NULL;
    git_tree *below = NULL;
    git_oid tree;
    int r = head(w, &now, err);
    if (r == 0)
        r = state(w, base_id, &base, err);
    if (r == 0 && layer)
        r = state(w, base_id[GIT_OID_HEXSZ] == ' ' ? base_id + GIT_OID_HEXSZ + 1 : base_id, &lower,
                  err);
    if (r == 0 && layer && git_commit_tree(&below, lower) < 0)
        r = workspace_git_err(err, "the state that the run began with");
    if (r == 0 && !git_oid_equal(git_commit_tree_id(base), git_commit_tree_id(now)))
        r = err_set(err, ERR_STATE,
                    "conflict: another run or command changed %s after this run began (at %.12s); "
                    "run it again",
                    w->name, base_id);
    if (r == 0)
        r = workspace_tree(w, folder, true, below, left, &tree, err);
    if (r == 0)
        r = advance(w, &tree, false, author, ret_id, ret_new, err);
    git_tree_free(below);
    git_commit_free(base);
    git_commit_free(lower);
    git_commit_free(now);
    return r;
}

int workspace_snapshot(struct workspace *w, const char *name, const struct workspace_author *author,
                       char ret_id[WORKSPACE_ID], struct err *err)
{
    char ref[sizeof "refs/tags/" + WORKSPACE_NAME_MAX];
    git_commit *now = NULL;
    git_reference *made = NULL;
    git_oid id;
    bool new = false;
    snprintf(ref, sizeof ref, "refs/tags/%s", name);
    if (*name && git_reference_name_to_id(&id, w->repo, ref) == 0)
        return err_set(err, ERR_USAGE, "there is a snapshot '%s' already", name);
    int r = head(w, &now, err);
    if (r == 0)
        r = advance(w, git_commit_tree_id(now), true, author, ret_id, &new, err);
    if (r == 0 && *name &&
        (git_oid_fromstr(&id, ret_id) < 0 ||
         git_reference_create(&made, w->repo, ref, &id, 0, NULL) < 0))
        r = workspace_git_err(err, "the snapshot was made, and has no name");
    git_reference_free(made);
    git_commit_free(now);
    return r;
}

int workspace_restore(struct workspace *w, const char *word, const struct workspace_author *author,
                      char ret_id[WORKSPACE_ID], bool *ret_new, struct err *err)
{
    git_commit *wanted = NULL;
    int r = workspace_find(w, word, &wanted, err);
    if (r < 0)
        return r;
    char message[WORKSPACE_ID + 16] = "restore ";
    git_oid_tostr(message + strlen(message), WORKSPACE_ID, git_commit_id(wanted));
    const struct workspace_author by = {author->name, author->message ? author->message : message};
    r = advance(w, git_commit_tree_id(wanted), false, &by, ret_id, ret_new, err);
    git_commit_free(wanted);
    return r;
}
