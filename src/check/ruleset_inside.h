/* How a rule set is laid out, for the files that build one and for judges that ask very often.
 *
 * Takes:   nothing: a layout and the calls behind ruleset.h.
 * Gives:   one look-up that answers for all kinds of rules.
 * Never:   is included outside check/ and the judges.
 * Runs in: cordon, the daemon, the workers.
 */
#ifndef CHECK_RULESET_INSIDE_H
#define CHECK_RULESET_INSIDE_H

#include "check/ruleset.h"

/* Columns of a row beyond one for each kind: they say of a module that some member of it is ruled, and
 * that only some are shown; the rule is any of those. */
enum { CHECK_ROW_MEMBERS = POLICY_RULE_KIND_COUNT, CHECK_ROW_RESTRICTED, CHECK_ROW_COLUMNS };

struct check_slot {
    const char *name; /* NULL: free */
    uint32_t len, hash, row;
};

struct check_ruleset {
    struct arena arena;
    struct policy_profile profile;
    struct check_slot *slots; /* open addressing, at most half full */
    uint32_t slot_mask;
    size_t row_count, pattern_count;
    const struct policy_rule *(*rows)[CHECK_ROW_COLUMNS];
    const struct policy_rule **patterns;
    bool pattern_first[POLICY_RULE_KIND_COUNT][256]; /* some pattern begins with this byte */
    const struct policy_rule *constructs[POLICY_CONSTRUCT_COUNT];
};

/* One rule for each column, NULL where there is none; NULL when no rule has exactly this name. */
const struct policy_rule *const *check_ruleset_row(const struct check_ruleset *set,
                                                   const char *name, size_t len);
/* The longest pattern of KIND alone, for a name whose row is already known. */
const struct policy_rule *check_ruleset_pattern(const struct check_ruleset *set,
                                                enum policy_rule_kind kind, const char *name,
                                                size_t len);
/* check_ruleset_attribute for a name whose row is already known. */
const struct policy_rule *check_ruleset_attribute_row(const struct check_ruleset *set,
                                                      const struct policy_rule *const *row,
                                                      const char *name, size_t len);

struct check_ruleset *check_ruleset_alloc(void);
/* Fills everything from set->profile. */
ERR_MUST_USE int check_ruleset_index(struct check_ruleset *set, struct err *err);

#endif
