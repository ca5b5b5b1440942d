/* SPDX-License-Identifier: Apache-2.0 */
/* Natural numbers of any size: the few operations that +, -, *, / and comparison need.
 *
 * Takes:   arrays of 64-bit limbs, least significant first, with their counts.
 * Gives:   exact results, and doubles rounded half to even.
 * Never:   allocates; the caller gives room for the result.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_BIG_H
#define EXPR_BIG_H

#include <stdbool.h>
#include <stdint.h>

/* All counts may include leading zero limbs; results are trimmed (zero has no limbs). */
uint32_t big_trim(const uint64_t *a, uint32_t n);
uint64_t big_bits(const uint64_t *a, uint32_t n);
int big_cmp(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb);
/* R has room for max(na, nb) + 1 limbs and may be A or B. */
uint32_t big_add(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb);
/* A >= B. R has room for na limbs. */
uint32_t big_sub(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb);
/* R has room for na + nb limbs and is neither A nor B. */
uint32_t big_mul(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb);
/* R = R * mul + add, in place; room for one limb more. */
uint32_t big_mul_add(uint64_t *r, uint32_t n, uint64_t mul, uint64_t add);
/* R = R / d in place; gives the remainder. */
uint64_t big_div_small(uint64_t *r, uint32_t *n, uint64_t d);
/* R = A << s; room for na + s / 64 + 1 limbs; R may be A only if s < 64. */
uint32_t big_shl(uint64_t *r, const uint64_t *a, uint32_t na, uint64_t s);

/* The limbs of work space that big_quotient needs. */
uint64_t big_quotient_cap(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb);
/* A / B (B > 0) as the nearest double; false when it is too large for one. */
bool big_quotient(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb, uint64_t *work,
                  double *ret);
/* The nearest double; false when too large. */
bool big_double(const uint64_t *a, uint32_t n, double *ret);
/* Compares with a finite double >= 0, exactly. */
int big_cmp_double(const uint64_t *a, uint32_t n, double d);

#endif
