/* SPDX-License-Identifier: Apache-2.0 */
/* Typed code for the plain case: every slot holds the kind its key declares.
 *
 * Takes:   a verified program.
 * Gives:   the same answer as eval.c, or -1: then the case was not plain and eval.c must be asked.
 * Never:   decides what an error is; overflow, division by zero and the like are handed over.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 *
 * Truths are bits in a word, numbers lie on a small stack. `and` and `or` of conditions that cannot
 * raise here are computed without branches: on random contexts a mispredicted branch costs more
 * than a comparison. Only long operands are jumped over.
 */
#ifndef EXPR_FAST_H
#define EXPR_FAST_H

#include "expr/code.h"
#include "expr/ops.h"

#define FAST_STACK 16 /* numbers */
#define FAST_BITS  48 /* truths */

/* A leaf compares a slot with a constant, and pushes the truth or joins it to the one on top.
 * Its number is FAST_LEAF + 14 * enum expr_join + (float: 0..5, int: 6..11, enum string: 12, 13).
 */
enum fast_op {
    FAST_LEAF = 0,
    FAST_LEAF_INT = 6,
    FAST_LEAF_CODE = 12,
    FAST_JOIN = 14,
    FAST_BIT = 42, /* a constant truth */
    FAST_NOT,
    FAST_AND,
    FAST_OR,
    FAST_JUMP_FALSE, /* keeps the truth; `jump` is behind the FAST_AND that would join it */
    FAST_JUMP_TRUE,
    FAST_RETURN_BIT,
    FAST_LAST, /* a leaf and the return behind it in one step; numbered like the leaves */
    FAST_PLAIN_END = FAST_LAST + 42,
    /* from here on: what needs memory or a call */
    FAST_TEXT_EQ = FAST_PLAIN_END, /* slot against constant number `jump` */
    FAST_TEXT_NE,
    FAST_SLOT,
    FAST_CONST,
    FAST_SWAP,
    FAST_DOUBLE,       /* int on top to float, rounded, as CPython's arithmetic */
    FAST_DOUBLE_EXACT, /* the same, but hands over when it is not exact, as for comparison */
    FAST_ADD_F,
    FAST_SUB_F,
    FAST_MUL_F,
    FAST_DIV_F,
    FAST_ADD_I,
    FAST_SUB_I,
    FAST_MUL_I,
    FAST_DIV_I,
    FAST_NEG_F,
    FAST_NEG_I,
    FAST_CMP_F, /* + enum expr_cmp */
    FAST_CMP_I = FAST_CMP_F + 6,
    FAST_KEEP_F = FAST_CMP_I + 6, /* the same, but keeps the right operand: a link of a chain */
    FAST_KEEP_I = FAST_KEEP_F + 6,
    FAST_RETURN_F = FAST_KEEP_I + 6,
    FAST_RETURN_I,
    FAST_COUNT,
};

struct fast_insn {
    uint16_t op, slot;
    uint32_t jump; /* of a leaf: where its slot lies, in bytes */
    union {
        double f;
        int64_t i;
    };
};

static inline bool fast_ready(const struct cordon_program *p, const struct cordon_ctx *c)
{
    if (!p->fast || (c->bits.ready & p->ready) != p->ready)
        return false;
    if (__builtin_expect(p->fast_wide, 0))
        for (uint32_t w = 1; w < c->words; w++)
            if ((c->more[w - 1].ready & p->uses[w]) != p->uses[w])
                return false;
    return true;
}

struct fast_code {
    struct fast_insn *code;
    uint32_t count;
    bool plain; /* no value stack, no strings */
};
/* Typed code for slots of the KINDS given (NULL: the schema's). False if there is none. */
bool fast_make(const struct cordon_program *p, const uint8_t *kinds, struct expr_area *area,
               struct fast_code *ret);

/* Only if fast_ready. -1: ask eval.c. */
int fast_run(const struct cordon_program *p, const struct cordon_ctx *c, struct expr_value *ret);

#endif
