/* SPDX-License-Identifier: Apache-2.0 */
/* The values of one evaluation, one a declared key.
 *
 * Takes:   values by slot, or a JSON object.
 * Gives:   slots that say by one bit each whether they hold the kind that fast code counts on.
 * Never:   copies strings or integers: they are borrowed from the caller.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_CONTEXT_H
#define EXPR_CONTEXT_H

#include "expr/schema.h"

struct expr_bits {
    uint64_t ready; /* bit per slot: holds keys[slot].kind */
    uint64_t off;   /* bit per slot: does not follow the schema */
};

struct cordon_ctx {
    const struct cordon_schema *schema;
    unsigned flags;
    uint32_t words;         /* 64 slots each */
    struct expr_bits bits;  /* of the first 64 slots: small contexts stay small, and so in cache */
    struct expr_bits *more; /* of the others, behind the values */
    struct expr_value value[];
};

static inline struct expr_bits *expr_ctx_bits(struct cordon_ctx *c, size_t word)
{
    return word ? &c->more[word - 1] : &c->bits;
}

void expr_ctx_set(struct cordon_ctx *c, size_t slot, struct expr_value v);

#endif
