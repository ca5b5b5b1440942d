/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of batch evaluation that are worth a machine's own vector instructions.
 *
 * Takes:   64 rows at a time of one column, a constant, and the bits it is joined to.
 * Gives:   one bit a row.
 * Never:   reads past the rows it was told.
 * Runs in: where eval.h does; which set is used is decided by the processor at run time.
 */
#ifndef EXPR_KERNELS_H
#define EXPR_KERNELS_H

#include "expr/ops.h"

/* A comparison joins what is there already where it is made, so that its bits are not written and
 * read again. */
struct batch_kernels {
    const char *name;
    void (*floats)(const double *x, size_t words, enum expr_cmp op, double c, enum expr_join how,
                   uint64_t *out);
    void (*ints)(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, enum expr_join how,
                 uint64_t *out);
    /* equal to C, or the opposite */
    void (*bytes)(const uint8_t *x, size_t words, uint8_t c, bool opposite, enum expr_join how,
                  uint64_t *out);
    uint8_t (*greatest)(const uint8_t *x, size_t words);
};

/* JOIN as two masks: no branch within a loop of words. */
struct batch_merge {
    uint64_t keep, add;
};
static inline struct batch_merge batch_merge(enum expr_join how)
{
    return (struct batch_merge){.keep = how == JOIN_OR ? ~0ULL : 0,
                                .add = how == JOIN_AND ? 0 : ~0ULL};
}
/* BITS alone, WORD and BITS, or WORD or BITS. */
static inline uint64_t batch_merged(uint64_t word, uint64_t bits, struct batch_merge m)
{
    return (word & (bits | m.keep)) | (bits & m.add);
}

extern const struct batch_kernels kernels_scalar;
/* The best for this processor. */
const struct batch_kernels *kernels_best(void);
/* All that this processor can run, for tests; NULL after the last. */
const struct batch_kernels *kernels_nth(size_t n);

#endif
