/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, both ways, without the C library's locale.
 *
 * Takes:   digits that a lexer has found well-formed; values.
 * Gives:   exact integers, correctly rounded doubles, the shortest text that reads back the same.
 * Never:   allocates or asks for the locale; underscores in the text are skipped.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_NUMBER_H
#define EXPR_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_REPR_MAX 32

/* Room, in limbs, for an integer of LEN digits in a base up to 16. */
static inline size_t number_limbs(size_t len)
{
    return len / 16 + 2;
}
/* The limbs of LEN digits in BASE (2, 8, 10, 16); LIMB has number_limbs(len). */
uint32_t number_integer(const char *s, size_t len, unsigned base, uint64_t *limb);

/* digits [. digits] [e [+-] digits], unsigned; inf when too large, as CPython's literals. */
double number_double(const char *s, size_t len);

/* repr() of a float, NUL-terminated; returns the length. */
size_t number_repr(double d, char out[NUMBER_REPR_MAX]);

/* The decimal digits of LIMB, which is destroyed; OUT has 20 * n + 1 bytes. Returns the length. */
size_t number_decimal(uint64_t *limb, uint32_t n, char *out);

#endif
