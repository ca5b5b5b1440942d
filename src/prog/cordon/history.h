/* SPDX-License-Identifier: Apache-2.0 */
/* What a person typed at the prompt, kept in a file for the next time.
 *
 * Takes:   blocks of text; the state folder, open.
 * Gives:   the blocks again, oldest first.
 * Never:   makes a file that others can read; follows a link; reads or writes a file of somebody else.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_HISTORY_H
#define PROG_CORDON_HISTORY_H

#include "base/err.h"

#include <stddef.h>

#define HISTORY_BLOCKS 1000         /* that are remembered */
#define HISTORY_BYTES  (512 * 1024) /* of the file; a longer one is cut to its newer half */

/* Calls BLOCK for each; a file that is not there has none. */
ERR_MUST_USE int history_load(int dir, void (*block)(void *ctx, const char *text, size_t len),
                              void *ctx, struct err *err);
/* Adds one at the end, at once: a killed prompt has kept it. Two prompts may share the file. */
ERR_MUST_USE int history_add(int dir, const char *text, size_t len, struct err *err);

#endif
