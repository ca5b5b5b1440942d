/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a text holds markup that a browser would run, so that whoever renders it knows.
 *
 * Takes:   text that is cleaned and not escaped.
 * Gives:   how many such tags there are, and the first in words.
 * Never:   changes the text; takes more than linear time; repeats a guest's byte that is no plain letter.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_MARKUP_H
#define OUTPUT_MARKUP_H

#include <stddef.h>

#define OUTPUT_MARKUP_WORDS 64

/* WHAT: of the first one: `<script>`, `<img onerror>`, `<a href=javascript:>`. */
size_t output_markup(const char *text, size_t len, char what[OUTPUT_MARKUP_WORDS]);

#endif
