/* SPDX-License-Identifier: Apache-2.0 */
/* The operators on values, exactly as CPython defines them.
 *
 * Takes:   values and a run record (scratch memory, the meter, where to put an error).
 * Gives:   values, or the exception CPython raises, in its words.
 * Never:   exceeds the limits of cordon.h: past one it raises LimitError.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_OPS_H
#define EXPR_OPS_H

#include "expr/area.h"
#include "expr/value.h"

#include <math.h>

enum expr_arith { ARITH_ADD, ARITH_SUB, ARITH_MUL, ARITH_DIV };
enum expr_cmp { CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQ, CMP_NE };
/* What becomes of a truth: it stands for itself, or joins the one before it. */
enum expr_join { JOIN_PUSH, JOIN_AND, JOIN_OR };

struct expr_run {
    struct expr_area area;    /* results that do not fit a value */
    uint64_t work;            /* word operations so far */
    uint32_t bits, text;      /* the longest integer and string computed so far */
    uint32_t steps;           /* instructions run so far */
    uint32_t highest;         /* most values on the stack so far */
    struct expr_value *stack; /* NULL before the first instruction */
    uint32_t pc, height;      /* where to go on, after a slot that was not read yet */
    struct cordon_error *err;
};

/* Meters UNITS of work; LimitError past CORDON_WORK_MAX. */
int expr_spend(struct expr_run *run, uint64_t units);
/* 0, or the status raised. */
int expr_arith(struct expr_run *run, enum expr_arith op, const struct expr_value *a,
               const struct expr_value *b, struct expr_value *ret);
int expr_negate(struct expr_run *run, const struct expr_value *a, struct expr_value *ret);
int expr_compare(struct expr_run *run, enum expr_cmp op, const struct expr_value *a,
                 const struct expr_value *b, bool *ret);

static inline bool expr_holds(enum expr_cmp op, int order)
{
    switch (op) {
    case CMP_LT:
        return order < 0;
    case CMP_LE:
        return order <= 0;
    case CMP_GT:
        return order > 0;
    case CMP_GE:
        return order >= 0;
    case CMP_EQ:
        return order == 0;
    default:
        return order != 0;
    }
}

static inline bool expr_holds_double(enum expr_cmp op, double a, double b)
{
    switch (op) {
    case CMP_LT:
        return a < b;
    case CMP_LE:
        return a <= b;
    case CMP_GT:
        return a > b;
    case CMP_GE:
        return a >= b;
    case CMP_EQ:
        return a == b;
    default:
        return a != b;
    }
}

/* The order of two numbers, neither of them NaN. */
int expr_order(const struct expr_value *a, const struct expr_value *b);

#endif
