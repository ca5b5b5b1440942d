/* SPDX-License-Identifier: Apache-2.0 */
/* The names that tables may write in place of numbers.
 *
 * Takes:   a name such as CLONE_THREAD, or names joined by `|`, or a number.
 * Gives:   its value.
 * Never:   holds a name whose value differs between x86-64 and aarch64 (O_DIRECTORY does).
 * Runs in: the build (filtergen) and tests.
 */
#ifndef JAIL_FILTERS_CONSTANTS_H
#define JAIL_FILTERS_CONSTANTS_H

#include <stdbool.h>
#include <stdint.h>

/* `A|B|0x10`; false if a part is unknown. */
bool constants_value(const char *text, uint64_t *ret_value);

/* An errno by name, or `0`: success without doing anything. -1 if unknown. */
int constants_errno(const char *name);

#endif
