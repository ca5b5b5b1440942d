/* SPDX-License-Identifier: Apache-2.0 */
/* One program over many rows.
 *
 * Takes:   a program, columns, a set of kernels.
 * Gives:   a bit a row for truth and one for "it raises", the same as row by row.
 * Never:   guesses: a row with a null, an overflow or a zero divisor is asked of eval.c.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_BATCH_H
#define EXPR_BATCH_H

#include "expr/code.h"
#include "expr/kernels.h"

int batch_run(const struct batch_kernels *kernels, const struct cordon_program *p,
              const struct cordon_column *columns, size_t rows, void *mem, size_t mem_len,
              uint64_t *truth, uint64_t *errors, struct cordon_error *err);

#endif
