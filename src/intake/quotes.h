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

#include <stdbool.h>
#include <stddef.h>

/* 0: outside; '"' or '\'': inside a string that three of them end. *RET_WORDS becomes true where what follows the end of a string
 * shows that the quotes are words about quotes: no program goes on so. */
char intake_quotes_after(char state, const char *line, size_t len, bool *ret_words);

#endif
