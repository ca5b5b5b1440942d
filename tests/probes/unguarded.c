/* SPDX-License-Identifier: Apache-2.0 */
/* TEST ONLY: cordon-python without judge and guards. It is linked from the product's own objects; only the two functions that
 * make a rule set are replaced (ld --wrap), and give one that refuses nothing. All else is as in the product: the jail, the
 * tables of system calls, what is loaded ahead and when the second table closes. What a program can do in it is
 * what whoever breaks judge and guards could do.
 *
 * Takes:   the rule sets that cordon-python makes and is given.
 * Gives:   the same without guards and without rules, but for what is loaded ahead.
 * Never:   is installed.
 * Runs in: the jail, in place of cordon-python, in the test guards-lost.
 */
#include "base/limits.h"
#include "check/ruleset.h"

#include <stdlib.h>

int __real_check_ruleset_new(const struct policy_profile *profile, struct check_ruleset **ret_set,
                             struct err *err);
int __real_check_ruleset_decode(const void *bytes, size_t len, struct check_ruleset **ret_set,
                                struct err *err);
int __wrap_check_ruleset_new(const struct policy_profile *profile, struct check_ruleset **ret_set,
                             struct err *err);
int __wrap_check_ruleset_decode(const void *bytes, size_t len, struct check_ruleset **ret_set,
                                struct err *err);

/* The rules that are left are never given back: the rule set points to them. */
int __wrap_check_ruleset_new(const struct policy_profile *profile, struct check_ruleset **ret_set,
                             struct err *err)
{
    struct policy_profile bare = *profile;
    struct policy_rule *rules = calloc(profile->rule_count + 1, sizeof *rules);
    if (!rules)
        return err_set(err, ERR_MEMORY, "no memory for a rule set");
    bare.imports = POLICY_IMPORTS_ANY;
    bare.guards = false;
    bare.source_max = LIMIT_SOURCE;
    bare.rules = rules;
    bare.rule_count = 0;
    for (size_t i = 0; i < profile->rule_count; i++)
        if (profile->rules[i].kind == POLICY_PRELOAD)
            rules[bare.rule_count++] = profile->rules[i];
    return __real_check_ruleset_new(&bare, ret_set, err);
}

int __wrap_check_ruleset_decode(const void *bytes, size_t len, struct check_ruleset **ret_set,
                                struct err *err)
{
    struct check_ruleset *given; /* kept: the names of its rules are used further */
    int r = __real_check_ruleset_decode(bytes, len, &given, err);
    return r < 0 ? r : __wrap_check_ruleset_new(check_ruleset_profile(given), ret_set, err);
}
