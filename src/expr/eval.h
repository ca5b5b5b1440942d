/* SPDX-License-Identifier: Apache-2.0 */
/* Running a program.
 *
 * Takes:   a verified program, a context of the same schema, scratch memory.
 * Gives:   a value, or what CPython would raise.
 * Never:   runs an instruction twice, allocates, or exceeds its certificate.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_EVAL_H
#define EXPR_EVAL_H

#include "expr/code.h"
#include "expr/ops.h"

/* Scratch beside the results: what aligning it loses, and a run that waits for a slot. */
#define EXPR_SCRATCH_EXTRA 256

/* The exact way: any context. RUN has its area and error set; the result may lie in the area.
 * *ret_pc is the instruction that raised. After CORDON_UNREAD it goes on where it stopped when it is
 * called again with the same RUN. */
int expr_run(const struct cordon_program *p, const struct cordon_ctx *c, struct expr_run *run,
             struct expr_value *ret, uint32_t *ret_pc);
/* Reads a slot as ctx['key'] does. */
int expr_read_slot(struct expr_run *run, const struct cordon_ctx *c, size_t slot,
                   struct expr_value *ret);

/* The truth of the value, or -1 where it raises. */
int expr_test_exact(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                    size_t len);

struct expr_run expr_run_of(void *scratch, size_t len, struct cordon_error *err);

#endif
