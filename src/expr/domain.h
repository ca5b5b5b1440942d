/* SPDX-License-Identifier: Apache-2.0 */
/* What one key's value can be, and what a comparison leaves of it.
 *
 * Takes:   a declared key; comparisons with constants.
 * Gives:   sets of values, never too small: types, one interval, the enum values left.
 * Never:   claims a value impossible that the schema allows.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_DOMAIN_H
#define EXPR_DOMAIN_H

#include "expr/code.h"
#include "expr/ops.h"

struct domain {
    uint8_t types;
    bool nan; /* a float may be NaN */
    bool has_lo, has_hi, lo_open, hi_open;
    bool has_hole; /* one number it is known not to be */
    bool has_members;
    uint64_t members; /* of the key's enum, if it has at most 64 */
    struct expr_value lo, hi, hole;
};

/* What a truth can come to. */
struct verdict {
    bool can_true, can_false, can_raise;
};

struct domain domain_of(const struct expr_key *k);
/* value OP constant, over all values of D. */
struct verdict domain_compare(const struct domain *d, const struct cordon_schema *s,
                              const struct expr_key *k, enum expr_cmp op,
                              const struct expr_value *c);
/* What is left of D where `value OP c` is TRUTH and did not raise. */
void domain_refine(struct domain *d, const struct cordon_schema *s, const struct expr_key *k,
                   enum expr_cmp op, const struct expr_value *c, bool truth);
struct verdict domain_truth(const struct domain *d);
void domain_refine_truth(struct domain *d, bool truth);
static inline bool domain_empty(const struct domain *d)
{
    return d->types == 0;
}

#endif
