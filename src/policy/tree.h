/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as a small tree with a place for everything: what the reader and the checker walk.
 *
 * Takes:   the bytes of a policy file.
 * Gives:   mappings, lists and scalars with line and column, in one arena; what is wrong, with its place.
 * Never:   follows an alias, obeys a tag, or grows past its ceilings: there is no bomb to expand.
 * Runs in: the supervisor; `cordon policy check`.
 */
#ifndef POLICY_TREE_H
#define POLICY_TREE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_FILE_MAX     (1 << 20) /* bytes of a file */
#define POLICY_DEPTH_MAX    12
#define POLICY_NODES_MAX    60000
#define POLICY_PROBLEMS_MAX 200 /* kept; the rest is counted */

struct policy_problem {
    const char *file;
    uint32_t line, column; /* from 1; 0: of the whole file */
    bool warning;
    const char *text;
};

/* What is wrong, in the order of the files. */
struct policy_problems {
    struct arena mem;
    struct policy_problem *items;
    size_t count, errors, dropped;
};
void policy_problems_init(struct policy_problems *p);
void policy_problems_done(struct policy_problems *p);
void policy_problem_add(struct policy_problems *p, bool warning, const char *file, uint32_t line,
                        uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* By place, within each file. */
void policy_problems_sort(struct policy_problems *p);
/* The first error as `FILE:LINE:COLUMN: text`, and how many more there are. Returns ERR_FORMAT. */
int policy_problems_err(const struct policy_problems *p, struct err *err);

enum policy_node_kind { POLICY_SCALAR, POLICY_LIST, POLICY_MAP };

struct policy_node {
    enum policy_node_kind kind;
    uint32_t line, column;
    bool quoted;      /* a scalar in quotes or a block: never null, never empty by accident */
    const char *text; /* of a scalar */
    struct policy_node *key;          /* of an entry of a map */
    struct policy_node *first, *next; /* children; brothers */
};

/* NULL in *ret_root: nothing in the file. Returns 0 unless memory is short; look at PROBLEMS. */
ERR_MUST_USE int policy_tree_read(const char *file, const void *data, size_t len, struct arena *mem,
                                  struct policy_problems *problems, struct policy_node **ret_root);

#endif
