/* SPDX-License-Identifier: Apache-2.0 */
/* Strict UTF-8: what is not shortest form, is a surrogate or lies past U+10FFFF is not UTF-8.
 *
 * Takes:   bytes.
 * Gives:   code points, lengths, the place of the first bad byte.
 * Never:   reads past the end it is told.
 * Runs in: every process.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert((char)-1 < 0, "meson.build asks for a signed char on every architecture");

/* Decodes one code point at S (LEN > 0). Returns its length 1..4 and sets *ret_cp;
 * 0 when the bytes are wrong; -1 when they are a correct beginning that stops at LEN. */
int utf8_decode(const unsigned char *s, size_t len, uint32_t *ret_cp);

/* Writes CP to OUT (4 bytes of room), returns its length; 0 if CP is no scalar value. For the linker it has a name of its
 * own: jansson has a function of this one. */
int utf8_encode(uint32_t cp, char *out) __asm__("base_utf8_encode");

/* How many code points the LEN bytes of correct UTF-8 at S are. */
size_t utf8_count(const void *s, size_t len);

/* The number of bytes at the front that are whole, correct UTF-8; LEN if all of it is. */
size_t utf8_valid_prefix(const void *s, size_t len);

/* Whether a reader does not see CP, takes it for a space, or sees others moved by it. Control characters are not asked about. */
bool utf8_unseen(uint32_t cp);

#endif
