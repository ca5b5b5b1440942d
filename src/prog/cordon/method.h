/* SPDX-License-Identifier: Apache-2.0 */
/* The words of --method, --args and --save, before anything is started for them.
 *
 * Takes:   words of the command line.
 * Gives:   nothing, or ERR_USAGE that says what such a word looks like.
 * Never:   looks at the method's text.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_METHOD_H
#define PROG_CORDON_METHOD_H

#include "base/err.h"

/* NAME is a method's name, and ARGS a JSON array or object. */
ERR_MUST_USE int method_check(const char *name, const char *args, struct err *err);
/* PATH is a file's below /workspace: no part of it begins with a dot. */
ERR_MUST_USE int method_check_path(const char *path, struct err *err);

#endif
