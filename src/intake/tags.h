/* SPDX-License-Identifier: Apache-2.0 */
/* The words that models write after a fence, and the languages they mean.
 *
 * Takes:   a word, or the first line of a program.
 * Gives:   a language's name, which is static.
 * Never:   guesses from the code itself.
 * Runs in: `cordon`.
 */
#ifndef INTAKE_TAGS_H
#define INTAKE_TAGS_H

#include <stddef.h>

/* NULL: no program's language (a shell's commands, data, output, prose). */
const char *intake_tag_language(const char *tag);

/* By `#!`; NULL: there is none, or it names another. */
const char *intake_shebang_language(const char *code, size_t len);

#endif
