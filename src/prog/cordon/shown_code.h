/* SPDX-License-Identifier: Apache-2.0 */
/* Code that a person is asked about, printed so that nothing in it stays unseen.
 *
 * Takes:   bytes of a model's program.
 * Gives:   numbered lines on standard output, as the parser counts them, and a list of characters beyond ASCII.
 * Never:   prints a character that cannot be seen, or one that acts on a terminal, as itself.
 * Runs in: `cordon approve`.
 */
#ifndef CORDON_SHOWN_CODE_H
#define CORDON_SHOWN_CODE_H

#include <stddef.h>

void shown_line(const char *before, const char *s, size_t len);
void shown_code(const char *code, size_t len);

#endif
