/* SPDX-License-Identifier: Apache-2.0 */
/* The reference loops, which any compiler can vectorise: for machines without a set of their own, for
 * what SSE2 has no instruction for, and to hold the other sets against. */
#include "expr/kernels.h"

#define LOOP(compare)                                                                              \
    for (size_t w = 0; w < words; w++, x += 64) {                                                  \
        uint64_t m = 0;                                                                            \
        for (unsigned r = 0; r < 64; r++)                                                          \
            m |= (uint64_t)(x[r] compare c) << r;                                                  \
        out[w] = batch_merged(out[w], m, merge);                                                   \
    }                                                                                              \
    break;
#define LOOPS                                                                                      \
    struct batch_merge merge = batch_merge(how);                                                   \
    switch (op) {                                                                                  \
    case CMP_LT:                                                                                   \
        LOOP(<)                                                                                    \
    case CMP_LE:                                                                                   \
        LOOP(<=)                                                                                   \
    case CMP_GT:                                                                                   \
        LOOP(>)                                                                                    \
    case CMP_GE:                                                                                   \
        LOOP(>=)                                                                                   \
    case CMP_EQ:                                                                                   \
        LOOP(==)                                                                                   \
    case CMP_NE:                                                                                   \
        LOOP(!=)                                                                                   \
    }

static void floats(const double *x, size_t words, enum expr_cmp op, double c, enum expr_join how,
                   uint64_t *out)
{
    LOOPS
}

static void ints(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, enum expr_join how,
                 uint64_t *out)
{
    LOOPS
}

static void bytes(const uint8_t *x, size_t words, uint8_t c, bool opposite, enum expr_join how,
                  uint64_t *out)
{
    enum expr_cmp op = opposite ? CMP_NE : CMP_EQ;
    LOOPS
}

static uint8_t greatest(const uint8_t *x, size_t words)
{
    uint8_t most = 0;
    for (size_t r = 0; r < words * 64; r++)
        most = x[r] > most ? x[r] : most;
    return most;
}

const struct batch_kernels kernels_scalar = {"scalar", floats, ints, bytes, greatest};
