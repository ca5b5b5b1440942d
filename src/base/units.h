/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and durations as people write them: 512m, 1.5s, 200ms.
 *
 * Takes:   a word of the command line or of a policy.
 * Gives:   bytes or milliseconds; sizes as people read them.
 * Never:   guesses: trailing text, overflow and negative numbers are ERR_FORMAT.
 * Runs in: every process.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include "base/err.h"

#include <stdint.h>

ERR_MUST_USE int units_count(const char *s, uint64_t *ret_n); /* 64 */
ERR_MUST_USE int units_bytes(const char *s,
                             uint64_t *ret_n); /* 100, 64k, 512m, 1g (powers of 1024) */
ERR_MUST_USE int units_millis(const char *s,
                              uint64_t *ret_n); /* 30 (seconds), 1.5s, 200ms, 2m, 1h */

/* The other way round, for messages: 74.5 GB, 512 MB, 17 bytes; 168 h, 90 s, 1 ms. */
#define UNITS_TEXT 24
void units_bytes_text(uint64_t bytes, char out[UNITS_TEXT]);
void units_millis_text(uint64_t ms, char out[UNITS_TEXT]);

#endif
