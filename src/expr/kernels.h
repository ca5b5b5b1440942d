/* The loops of batch evaluation that are worth a machine's own vector instructions.
 *
 * Takes:   64 rows at a time of one column, and a constant.
 * Gives:   one bit a row.
 * Never:   reads past the rows it was told.
 * Runs in: every process; which set is used is decided by the processor at run time.
 */
#ifndef EXPR_KERNELS_H
#define EXPR_KERNELS_H

#include "expr/ops.h"

struct batch_kernels {
    const char *name;
    void (*floats)(const double *x, size_t words, enum expr_cmp op, double c, uint64_t *out);
    void (*ints)(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, uint64_t *out);
    void (*bytes)(const uint8_t *x, size_t words, enum expr_cmp op, uint8_t c,
                  uint64_t *out); /* EQ, GE */
};

extern const struct batch_kernels kernels_scalar;
/* The best for this processor. */
const struct batch_kernels *kernels_best(void);
/* All that this processor can run, for tests; NULL after the last. */
const struct batch_kernels *kernels_nth(size_t n);

#endif
