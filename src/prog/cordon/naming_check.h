/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's rules for names (naming), for files that a command puts into a workspace or a session.
 *
 * Takes:   the policy; text and path of one file, or a file or folder of the host that is copied.
 * Gives:   that all of them keep the rules; else the first that does not, as an error or, where the policy only warns, as a sentence.
 * Never:   follows a link, or opens what is no regular file.
 * Runs in: `cordon`, before anything is copied.
 */
#ifndef PROG_CORDON_NAMING_CHECK_H
#define PROG_CORDON_NAMING_CHECK_H

#include "base/err.h"
#include "policy/policy.h"

#include <stddef.h>

/* PATH: below /workspace, with a slash at its beginning. WARNING: of NAMING_WARNING bytes, empty where there is none. */
enum { NAMING_WARNING = 480 };
ERR_MUST_USE int naming_check_text(const struct policy *policy, const char *path, const char *text,
                                   size_t len, char warning[NAMING_WARNING], struct err *err);
/* The same for SOURCE, a regular file or a folder, that becomes PATH; empty: what the folder holds goes into /workspace itself. */
ERR_MUST_USE int naming_check_copy(const struct policy *policy, int source, const char *path,
                                   char warning[NAMING_WARNING], struct err *err);

#endif
