/* The values of one evaluation, one a declared key.
 *
 * Takes:   values by slot, or a JSON object.
 * Gives:   slots that say by one bit each whether they hold the kind that fast code counts on.
 * Never:   copies strings or integers: they are borrowed from the caller.
 * Runs in: every process.
 */
#ifndef EXPR_CONTEXT_H
#define EXPR_CONTEXT_H

#include "expr/schema.h"

struct cordon_ctx {
    const struct cordon_schema *schema;
    unsigned flags;
    uint64_t ready[CORDON_KEYS_MAX / 64]; /* bit per slot: holds keys[slot].kind */
    uint64_t off[CORDON_KEYS_MAX / 64];   /* bit per slot: does not follow the schema */
    struct expr_value value[];
};

void expr_ctx_set(struct cordon_ctx *c, size_t slot, struct expr_value v);

#endif
