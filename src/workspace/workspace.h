/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: folders of files that outlive runs, each kept as a bare git object store in the state folder.
 *
 * Every state of a workspace is a commit on one line: the first is genesis, with no files. A commit is made whole before
 * the head names it, so a process that is killed leaves the old head or the new one. Hostile are the contents and the
 * names of files; the structure of the store is ours. A folder is read with openat2 beneath its descriptor, through no
 * link and no mount, and every kind of file has one answer:
 *
 *   regular file       kept: its bytes, and whether its owner may execute it; every other mode bit, owner, time and
 *                      attribute is dropped. A hard link is one more file with the same bytes; a hole is zeros
 *   symbolic link      kept if it cannot lead out of the workspace (workspace_link_fault), else left out
 *   FIFO, device, socket, another file system's mount, a file that may not be read: left out
 *   a file over LIMIT_WORKSPACE_FILE bytes, holes counted: left out
 *   empty folder       dropped: git has none
 *   .git and the names that git reads instructions from (workspace_name_fault): left out
 *   every other name   kept, byte for byte; `A` and `a` are two files
 *
 * What is left out is listed by name and reason. More files or bytes than the ceilings of base/limits.h: no commit.
 *
 * Takes:   names of workspaces, descriptors of folders, words that name a snapshot.
 * Gives:   commits that every git client can read; text, JSON, tar and bundles to a sink.
 * Never:   follows a link, opens a FIFO or device, changes the folder that it reads; reads a configuration of git's
 *          other than the store's own.
 * Runs in: cordon-workspace, whose current folder is the folder of the workspaces.
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include "base/err.h"
#include "workspace/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workspace;

/* Where text goes. 0, or a negative code after which nothing more comes. */
struct workspace_sink {
    int (*put)(void *ctx, const void *data, size_t len);
    void *ctx;
    /* A file that is too large to be compared line by line; NULL: nobody is told. */
    void (*large)(void *ctx, const char *path);
};

/* Once, before anything else. */
ERR_MUST_USE int workspace_init(struct err *err);

/* NAME must be good. The caller holds the lock of NAME for whatever changes it: what an earlier one left half done is
 * removed first. ERR_USAGE: there is one already; there is none. */
ERR_MUST_USE int workspace_create(const char *name, struct err *err);
ERR_MUST_USE int workspace_delete(const char *name, struct err *err);
ERR_MUST_USE int workspace_open(const char *name, bool change, struct workspace **ret,
                                struct err *err);
void workspace_close(struct workspace *w); /* takes NULL */

/* The store of W may take LIMIT bytes of the disk; 0: any. Once, before W is changed. ERR_LIMIT: it has them already. */
ERR_MUST_USE int workspace_bound(struct workspace *w, uint64_t limit, struct err *err);
uint64_t workspace_used(const struct workspace *w);
#define WORKSPACE_ANNOUNCED 80 /* percent of the limit from which on it is announced */
#define WORKSPACE_URGENT    95 /* ... once more */

/* What of a folder did not go into a commit. */
struct workspace_left {
    struct {
        char *path;
        const char *why;
    } items[LIMIT_WORKSPACE_LEFT];
    size_t count, more; /* MORE were not kept here */
    uint64_t files, bytes;
};
void workspace_left_done(struct workspace_left *left);

#define WORKSPACE_ID 41 /* 40 hexadecimal digits */
struct workspace_author {
    const char *name; /* an execution's id; NULL: cordon itself, for a person's command */
    const char *message;
};

/* A commit whose files are those of the folder FOLDER. *RET_NEW is false, and RET_ID the head's, where nothing is
 * different. */
ERR_MUST_USE int workspace_import(struct workspace *w, int folder,
                                  const struct workspace_author *author,
                                  struct workspace_left *left, char ret_id[WORKSPACE_ID],
                                  bool *ret_new, struct err *err);

/* A read-only copy of the head's files, as a folder trees/ID of the workspace that is made once for each state; those of
 * other boots of the machine than BOOT go first. With PRUNE nobody uses one: those of other states go, and without a BOOT
 * (empty: it is unknown) all that were there. */
ERR_MUST_USE int workspace_checkout(struct workspace *w, const char *boot, bool prune,
                                    char ret_id[WORKSPACE_ID], char ret_tree[WORKSPACE_ID],
                                    struct err *err);

/* What a run left becomes a commit. FOLDER is the upper layer of an overlay over the files of the commit BASE_ID, or, if it
 * is no LAYER, all of the files. ERR_STATE: the head has other files by now. */
ERR_MUST_USE int workspace_keep(struct workspace *w, int folder, bool layer, const char *base_id,
                                const struct workspace_author *author, struct workspace_left *left,
                                char ret_id[WORKSPACE_ID], bool *ret_new, struct err *err);

/* The clone NAME of W: a line of its own that begins with the snapshot WORD (empty: the head). NAME empty: RET_NAME is made
 * up. */
ERR_MUST_USE int workspace_clone(struct workspace *w, const char *name, const char *word,
                                 char ret_name[WORKSPACE_NAME_MAX + 1], char ret_id[WORKSPACE_ID],
                                 struct err *err);
/* Paths of the files that the clone W added or changed since it left its workspace, each given to SINK with a NUL
 * behind it. */
ERR_MUST_USE int workspace_changed(struct workspace *w, const struct workspace_sink *out,
                                   struct err *err);
/* All that the clone W changed since then, as `git diff` prints it. */
ERR_MUST_USE int workspace_changes(struct workspace *w, const struct workspace_sink *out,
                                   struct err *err);
/* The clone W was verified while its head was ID. ERR_STATE: it has moved. */
ERR_MUST_USE int workspace_verified(struct workspace *w, const char *id, struct err *err);
/* The clone's head becomes its workspace's, and the clone is no more. ERR_STATE: the workspace has moved since (a
 * conflict), or the clone was not verified as it is. */
ERR_MUST_USE int workspace_merge(struct workspace *w, char ret_id[WORKSPACE_ID], bool *ret_new,
                                 struct err *err);
ERR_MUST_USE int workspace_discard(struct workspace *w, struct err *err);

/* The file or folder NAME in DIR, which a guest may have shut, is its owner's to read; through no link. -1: errno. */
ERR_MUST_USE int workspace_open_up(int dir, const char *name);

/* A commit with the head's files; NAME, if it is not empty, can be used as a word from then on. */
ERR_MUST_USE int workspace_snapshot(struct workspace *w, const char *name,
                                    const struct workspace_author *author,
                                    char ret_id[WORKSPACE_ID], struct err *err);

/* A commit with the files of the snapshot WORD: what was committed since stays in the log. */
ERR_MUST_USE int workspace_restore(struct workspace *w, const char *word,
                                   const struct workspace_author *author, char ret_id[WORKSPACE_ID],
                                   bool *ret_new, struct err *err);

enum workspace_form { WORKSPACE_TEXT, WORKSPACE_STAT, WORKSPACE_PATCH, WORKSPACE_JSON };

/* From the newest on, at most MOST. As `git log` and, with PATCH, `git log -p` print it. */
ERR_MUST_USE int workspace_log(struct workspace *w, uint64_t most, enum workspace_form form,
                               const struct workspace_sink *out, struct err *err);
/* As `git diff` and, with STAT, `git diff --numstat` print it. */
ERR_MUST_USE int workspace_diff(struct workspace *w, const char *from, const char *to,
                                enum workspace_form form, const struct workspace_sink *out,
                                struct err *err);

/* The files of WORD as a tar archive; the whole history up to the head as a bundle of git's. */
ERR_MUST_USE int workspace_export_tar(struct workspace *w, const char *word,
                                      const struct workspace_sink *out, struct err *err);
ERR_MUST_USE int workspace_export_bundle(struct workspace *w, const struct workspace_sink *out,
                                         struct err *err);

struct workspace_facts {
    char head[WORKSPACE_ID];
    int64_t time;     /* of the head */
    uint64_t commits; /* genesis included */
    uint64_t files, bytes;
    uint64_t store; /* bytes that the object store takes on the disk */
};
/* Each clone of the workspace W, by name. */
ERR_MUST_USE int workspace_clones(struct workspace *w, int (*each)(void *ctx, const char *clone),
                                  void *ctx, struct err *err);
ERR_MUST_USE int workspace_describe(struct workspace *w, struct workspace_facts *ret,
                                    struct err *err);

#endif
