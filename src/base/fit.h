/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that were cut end behind a whole word.
 *
 * Takes:   what snprintf wrote and gave.
 * Gives:   the same, or less of it and three dots.
 * Never:   leaves half a word, or half a character.
 * Runs in: every process.
 */
#ifndef BASE_FIT_H
#define BASE_FIT_H

#include <stddef.h>

/* TEXT has SIZE bytes; WANTED is what snprintf gave. */
void fit_words(char *text, size_t size, int wanted);

#endif
