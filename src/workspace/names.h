/* SPDX-License-Identifier: Apache-2.0 */
/* Which names and links a workspace takes: pure rules, by the bytes alone.
 *
 * Takes:   names of workspaces and snapshots; names of files and targets of links, of any bytes.
 * Gives:   NULL, or why not, in words that follow "left out: NAME: ".
 * Never:   looks at a file system.
 * Runs in: cordon-workspace; `cordon`, for the names of workspaces.
 */
#ifndef WORKSPACE_NAMES_H
#define WORKSPACE_NAMES_H

#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKSPACE_NAME_MAX 64

/* 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, without `..`, not ending in `.` or `.lock`: also a
 * good name of a branch of git's. */
bool workspace_name_good(const char *name);
/* W, a workspace; or W@C, the clone C of it, which is not `main`. */
#define WORKSPACE_FULL_MAX (2 * WORKSPACE_NAME_MAX + 1)
bool workspace_full_name_good(const char *name);
/* C of W@C; NULL: NAME is a workspace's own. */
const char *workspace_clone_part(const char *name);
/* W of W@C. */
void workspace_base_part(const char *name, char ret[WORKSPACE_NAME_MAX + 1]);

/* The same; and neither head nor genesis, nor something that could be the id of a commit. */
bool workspace_snapshot_name_good(const char *name);

/* Names that git itself would obey in a clone or a log: .git, .gitmodules, .gitattributes, .mailmap, and for a LINK
 * .gitignore; in any capitals, and as Windows and macOS read them. */
const char *workspace_name_fault(const char *name, bool link);

/* TARGET of a link in a folder DEPTH levels below the top. Good is: `..` at the front only, at most DEPTH times, then
 * names. By the folders alone that is never outside; and no later name can be `..`, so a link that it leads through
 * begins its own way inside, too. */
const char *workspace_link_fault(const char *target, size_t len, size_t depth);

/* The bytes of the lock file that stand for the store of NAME, which clones share: who changes it, who reads it. */
int64_t workspace_lock_change(const char *name);
int64_t workspace_lock_read(const char *name);

#endif
