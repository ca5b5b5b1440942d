/* SPDX-License-Identifier: Apache-2.0 */
/* How a rule set is laid out, for the files that build one and for judges that ask very often.
 *
 * Takes:   nothing: a layout and the calls behind ruleset.h.
 * Gives:   one look-up that answers for all kinds of rules.
 * Never:   is included outside check/ and the judges.
 * Runs in: `cordon`, the workers.
 */
#ifndef CHECK_RULESET_INSIDE_H
#define CHECK_RULESET_INSIDE_H

#include "check/ruleset.h"

/* A row is all that is ruled of one name: a short chain of links, one for each kind. Beyond the kinds a
 * link may say of a module that some member of it is ruled, or that only some are shown; its rule is any
 * of those. */
enum { CHECK_ROW_MEMBERS = POLICY_RULE_KIND_COUNT, CHECK_ROW_RESTRICTED };
typedef uint16_t check_row; /* the first link, plus one; 0: nothing has exactly this name */

struct check_link {
    uint16_t rule; /* its index in the profile */
    check_row next;
    uint16_t column;
};

struct check_slot {
    const char *name; /* NULL: free */
    uint32_t len, hash;
    check_row row;
};

struct check_ruleset {
    struct arena arena;
    struct policy_profile profile;
    struct check_slot *slots; /* open addressing, at most two thirds full */
    uint32_t slot_mask;
    struct check_link *links;
    size_t link_count, pattern_count;
    uint16_t *patterns;                                     /* rules, by index */
    uint8_t pattern_first[POLICY_RULE_KIND_COUNT][256 / 8]; /* some pattern begins with this byte */
    const struct policy_rule *constructs[POLICY_CONSTRUCT_COUNT];
    bool
        leaves_insides; /* guards on and no rule `_*`: private names are for the guards to decide */
};

check_row check_ruleset_row(const struct check_ruleset *set, const char *name, size_t len);

/* The rule in one column of a row, or NULL. */
static inline const struct policy_rule *check_at(const struct check_ruleset *set, check_row row,
                                                 unsigned column)
{
    for (; row; row = set->links[row - 1].next)
        if (set->links[row - 1].column == column)
            return &set->profile.rules[set->links[row - 1].rule];
    return NULL;
}

/* The longest pattern of KIND alone, for a name whose row is already known. */
const struct policy_rule *check_ruleset_pattern(const struct check_ruleset *set,
                                                enum policy_rule_kind kind, const char *name,
                                                size_t len);
/* check_ruleset_attribute for a name whose row is already known. */
const struct policy_rule *check_ruleset_attribute_row(const struct check_ruleset *set,
                                                      check_row row, const char *name, size_t len);

struct check_ruleset *check_ruleset_alloc(void);
/* Fills everything from set->profile. */
ERR_MUST_USE int check_ruleset_index(struct check_ruleset *set, struct err *err);

#endif
