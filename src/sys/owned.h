/* SPDX-License-Identifier: Apache-2.0 */
/* Who could change what our own processes are going to load? Everybody who may write the file, a folder on the way to
 * it, or what a link on the way leads to.
 *
 * Takes:   the path of a file or folder whose contents are trusted.
 * Gives:   0 if root and the caller alone can change it; else which file or folder, and what to do.
 * Never:   opens a file, or follows a link that it has not looked at.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef SYS_OWNED_H
#define SYS_OWNED_H

#include "base/err.h"

/* Every folder and link on the way to PATH, and what is there. WHAT begins each message. ERR_USAGE: somebody else
 * could change it. ERR_SYS: it cannot be looked at, or is not there (ENOENT). */
ERR_MUST_USE int owned_way(const char *what, const char *path, struct err *err);

/* The same, and every file and folder below PATH; of a link there, the way to what it leads to. */
ERR_MUST_USE int owned_tree(const char *what, const char *path, struct err *err);

#endif
