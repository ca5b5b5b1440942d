/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a word at the prompt may become: a list without doubles, of bounded length.
 *
 * Takes:   how they begin; every name that the language finds.
 * Gives:   NAMES.
 * Never:   calls the language.
 * Runs in: a worker, in the jail.
 */
#ifndef WORKER_FRAME_NAMES_H
#define WORKER_FRAME_NAMES_H

#include <stddef.h>

#define WORKER_NAMES_MAX 500 /* that are sent; prog/cordon/prompt.h has the same */

struct worker_names {
    const char *part; /* what they begin with; the caller's */
    size_t len, count;
    char text[WORKER_NAMES_MAX][64];
};

void worker_names_begin(struct worker_names *f, const char *part);
/* Private names are offered to whoever began to type one. */
void worker_names_add(struct worker_names *f, const char *name, size_t len);
int worker_names_send(const struct worker_names *f); /* 0, or -1: nobody listens */

#endif
