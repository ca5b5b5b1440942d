/* SPDX-License-Identifier: Apache-2.0 */
/* How files that programs save are to be called: rules of the policy, and whether a file keeps them.
 *
 * Takes:   rules of a path, a pattern and a sentence; the path of a file below /workspace and its text.
 * Gives:   the first rule that the file breaks.
 * Never:   parses the text as a language: what it exports is looked for line by line.
 * Runs in: the supervisor, cordon-tool.
 */
#ifndef BASE_NAMING_H
#define BASE_NAMING_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define NAMING_MAX 32 /* rules */
#define NAMING_BYTES                                                                               \
    (64 * 1024) /* of all of them, packed: a text of a policy has at most 512 bytes */

struct naming_rule {
    const char *path;    /* of the files that it is for, as a glob: a star stops at a slash */
    const char *pattern; /* for the last name of the path: a POSIX extended expression */
    const char *message; /* for whoever saved the file */
    bool exports;        /* the text defines, or exports, the name without its ending */
};

/* NULL, or why PATTERN is none. The text lives until the next call. */
const char *naming_pattern_problem(const char *pattern);

/* PATH begins with a slash, at the root of the workspace. NULL: the file keeps all rules. */
const struct naming_rule *naming_broken(const struct naming_rule *rules, size_t count,
                                        const char *path, const char *text, size_t len);

/* As bytes, for another process of ours, and back: *RET_COUNT rules in RULES, which point into DATA. */
ERR_MUST_USE int naming_pack(const struct naming_rule *rules, size_t count, struct buf *out);
ERR_MUST_USE int naming_unpack(const char *data, size_t len, struct naming_rule rules[NAMING_MAX],
                               size_t *ret_count);

#endif
