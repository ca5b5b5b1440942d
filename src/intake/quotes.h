/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a line of a program ends inside a string of several lines, where a fence is text.
 *
 * Takes:   the lines of a program, in their order.
 * Gives:   the state after each.
 * Never:   judges: a text that is no Python gives some answer, which intake_blocks_find does not rely on.
 * Runs in: `cordon`.
 */
#ifndef INTAKE_QUOTES_H
#define INTAKE_QUOTES_H

#include <stddef.h>

/* 0: outside; '"' or '\'': inside a string that three of them end. */
char intake_quotes_after(char state, const char *line, size_t len);

#endif
