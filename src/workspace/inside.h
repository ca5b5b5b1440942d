/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the open store, and errors of libgit2 in the house's form.
 *
 * Takes:   objects of libgit2.
 * Gives:   the same, or an error that carries libgit2's sentence.
 * Never:   is included outside src/workspace.
 * Runs in: cordon-workspace.
 */
#ifndef WORKSPACE_INSIDE_H
#define WORKSPACE_INSIDE_H

#include "workspace/workspace.h"

#include <git2.h>

#define WORKSPACE_REFS "refs/heads/"
#define WORKSPACE_HEAD WORKSPACE_REFS "main"
/* What a clone had as its head when it was verified. */
#define WORKSPACE_VERIFIED "refs/cordon/verified/"
#define WORKSPACE_REF      (sizeof WORKSPACE_VERIFIED + WORKSPACE_NAME_MAX)

struct workspace {
    git_repository *repo;
    char name[WORKSPACE_FULL_MAX + 1];   /* as the caller wrote it: W, or W@C */
    char folder[WORKSPACE_NAME_MAX + 1]; /* W */
    char ref[WORKSPACE_REF];             /* whose commit is its head */
    uint64_t limit;                      /* of its store, in bytes; 0: none */
    uint64_t used, fresh;                /* before we began, and by us at most */
    size_t written;                      /* objects */
    bool bulk;                           /* the next ones lie beside the store's own */
};

/* ERR_STATE, or ERR_MEMORY; libgit2's own words behind WHAT. */
int workspace_git_err(struct err *err, const char *what);

/* What a word names: head, head~N, genesis, a snapshot's name, the beginning of an id (four digits and more). */
ERR_MUST_USE int workspace_find(struct workspace *w, const char *word, git_commit **ret,
                                struct err *err);

/* The object is on the disk before REF names it. PARENT NULL: genesis. */
ERR_MUST_USE int workspace_commit(git_repository *repo, const char *ref, const git_oid *tree,
                                  const git_commit *parent, const struct workspace_author *author,
                                  git_oid *ret, struct err *err);

/* One more formatted piece; at most 4096 bytes of it. */
ERR_MUST_USE int workspace_printf(const struct workspace_sink *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* quota.c: room in the store for an object of so many BYTES. ERR_LIMIT: there is none. */
ERR_MUST_USE int workspace_take(struct workspace *w, uint64_t bytes, struct err *err);
void workspace_unbound(const struct workspace *w);
/* What the store takes on the disk, counted. */
uint64_t workspace_disk_use(const struct workspace *w);

/* bulk.c: before each object that is written; after the last one, when nothing but the commit is left to write. */
#define WORKSPACE_INCOMING "incoming" /* in the store */
ERR_MUST_USE int workspace_bulk_one(struct workspace *w, struct err *err);
ERR_MUST_USE int workspace_bulk_end(struct workspace *w, struct err *err);

/* folder.c: the tree of what is in FOLDER, its objects written. With BASE the folder is the upper layer of an overlay that
 * had BASE below. What a GUEST made is opened up where it was shut, and may have no more bytes than its file system. */
ERR_MUST_USE int workspace_tree(struct workspace *w, int folder, bool guest, const git_tree *base,
                                struct workspace_left *left, git_oid *ret, struct err *err);

/* patch.c: what `git diff` prints between two trees; OLD NULL: the empty one. */
ERR_MUST_USE int workspace_patch(git_repository *repo, git_tree *old, git_tree *new,
                                 enum workspace_form form, const struct workspace_sink *out,
                                 struct err *err);

/* remove.c: a folder with all that is in it, through no link and no mount. One that is not there is fine. */
ERR_MUST_USE int workspace_remove(int dir, const char *name, struct err *err);
/* Whether the checkout NAME may be changed or removed: a session that is upon it holds it for as long as it lives, and takes it
 * under the lock for readers. */
bool workspace_tree_unused(int trees, const char *name);

#endif
