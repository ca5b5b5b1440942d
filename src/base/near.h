/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a list of words was probably meant.
 *
 * Takes:   a word that is not in the list, the list.
 * Gives:   the nearest word, if it is near enough to be meant.
 * Never:   suggests the opposite: `no` is never near to `on`, `--no-x` never to `--x`.
 * Runs in: every process; pure.
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* NULL: none is near: more than a third of the letters would have to change (one may always). */
const char *near_word(const char *word, const char *const *candidates, size_t n);

#endif
