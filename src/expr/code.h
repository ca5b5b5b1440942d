/* SPDX-License-Identifier: Apache-2.0 */
/* The program: flat instructions for a stack of values, with jumps that only go forward.
 *
 * Takes:   nothing: plain data.
 * Gives:   the one form that parser, verifier, evaluator, explainer and analyser agree on.
 * Never:   has an instruction run twice in one evaluation.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 *
 * `a and b and c` is  a AND L; b AND L; c; L:  where AND keeps the value and jumps if it is false,
 * and drops it otherwise. `a < b < c` is  a b CHAIN_LT L; c LT; L:  where CHAIN drops a and keeps b
 * if a < b holds, and otherwise leaves False in their place and jumps. So every jump ends where its
 * operand's region ends, regions nest, and at each target the stack has the same height by both
 * ways.
 */
#ifndef EXPR_CODE_H
#define EXPR_CODE_H

#include "expr/context.h"

enum expr_op {
    OP_CONST, /* arg: index of the constant */
    OP_SLOT,  /* slot */
    OP_ADD,   /* in the order of enum expr_arith */
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_NEG,
    OP_NOT,
    OP_LT, /* in the order of enum expr_cmp */
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_CHAIN_LT, /* in the order of enum expr_cmp; arg: target */
    OP_CHAIN_LE,
    OP_CHAIN_GT,
    OP_CHAIN_GE,
    OP_CHAIN_EQ,
    OP_CHAIN_NE,
    OP_AND, /* arg: target */
    OP_OR,  /* arg: target */
    OP_RETURN,
    OP_COUNT,
};

struct expr_insn {
    uint8_t op, zero;
    uint16_t slot;
    uint32_t arg;
};

struct expr_span {
    uint32_t start, end; /* bytes of the source */
};

struct fast_insn;

struct cordon_program {
    const struct cordon_schema *schema;
    const char *source;
    struct expr_insn *code;
    struct expr_span *span; /* of the expression whose value the instruction makes */
    struct expr_value *konst;
    uint32_t source_len, count, konst_count;
    /* typed code for contexts whose slots have their declared kinds: fast.h */
    struct fast_insn *fast;
    uint64_t ready;                      /* those of the first 64 slots it reads */
    const struct fast_insn *plain;       /* fast, if it is neither wide nor needs a value stack */
    bool fast_wide;                      /* it reads others too */
    bool fast_plain;                     /* no value stack */
    uint64_t uses[CORDON_KEYS_MAX / 64]; /* bit per slot */
    bool reads_twice;                    /* the same slot in two places */
    uint64_t scratch; /* bytes of results of any run, also over contexts off their schema */
    struct cordon_certificate certificate;
};

static inline void expr_use(struct cordon_program *p, uint32_t slot)
{
    uint64_t bit = 1ULL << (slot % 64);
    p->reads_twice = p->reads_twice || p->uses[slot / 64] & bit;
    p->uses[slot / 64] |= bit;
}

/* Reads SOURCE (which must outlive P) into P's code; area gives all memory. parse.c */
int expr_parse(struct cordon_program *p, struct expr_area *area, struct cordon_error *err);

/* Checks every rule above, and fills the certificate. ERR says which rule is broken. verify.c */
int expr_verify(struct cordon_program *p, struct expr_area *area, struct cordon_error *err);

/* Makes fast code where the types allow it; area too small or types too loose: none is made. */
void expr_quicken(struct cordon_program *p, struct expr_area *area);

#endif
