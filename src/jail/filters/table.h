/* SPDX-License-Identifier: Apache-2.0 */
/* A filter table as people write it, read into memory.
 *
 * Takes:   the path of a NAME.filter file.
 * Gives:   for each call the ordered rules that decide it, each with layer and reason.
 * Never:   guesses: whatever is wrong is reported as file:line and ends the build.
 * Runs in: the build (filtergen).
 */
#ifndef JAIL_FILTERS_TABLE_H
#define JAIL_FILTERS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define TABLE_CALLS 640 /* calls in one table */
#define TABLE_RULES 8   /* lines for one call */
#define TABLE_CONDS 3   /* conditions in one line */
#define TABLE_LIST  48  /* values behind `in` */

struct table_cond {
    int arg;     /* 0..5 */
    bool wide;   /* all 64 bits (pN) or the lower 32 (aN) */
    bool masked; /* `& mask`; aN only */
    bool over;   /* `pN over memory`: more than a number of each run */
    uint32_t mask;
    unsigned n;
    uint64_t values[TABLE_LIST];
};

struct table_rule {
    uint32_t action; /* SECCOMP_RET_* */
    unsigned n_conds;
    struct table_cond conds[TABLE_CONDS];
    char *layer, *reason;
    const char *file;
    int line;
};

struct table_call {
    char *name;
    unsigned n_rules;
    struct table_rule rules[TABLE_RULES];
};

struct table {
    char *name; /* file name without folder and .filter */
    unsigned n_calls;
    struct table_call calls[TABLE_CALLS];
    struct table_call foreign, unknown, unlisted; /* the three lines with a star */
};

/* Exits with a message if the table is not right. Never freed: the generator ends soon. */
struct table *table_read(const char *path);

/* file:line: message, and the end of the build. */
_Noreturn void table_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
