/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a rule set: refused with a reason, or a set that answers, and whose own wire form is the
 * very bytes it came from: there is one spelling. */
#include "check/ruleset.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct check_ruleset *set = NULL;
    struct err err = ERR_INIT;
    if (check_ruleset_decode(data, size, &set, &err) < 0) {
        base_assert(err.code < 0 && err.msg[0] && !set);
        return 0;
    }
    const struct policy_profile *p = check_ruleset_profile(set);
    for (size_t i = 0; i < p->rule_count; i++) {
        const struct policy_rule *r = &p->rules[i];
        size_t len = strlen(r->name);
        size_t stem = len && r->name[len - 1] == '*' ? len - 1 : len;
        if (stem)
            base_assert(check_ruleset_match(set, r->kind, r->name, stem) != NULL);
        (void)check_ruleset_attribute(set, r->name, len);
        (void)check_ruleset_import(set, r->name, len, NULL);
    }
    struct buf again;
    buf_init(&again, CHECK_RULESET_MAX + 1024);
    base_assert(check_ruleset_encode(p, &again, &err) == 0);
    base_assert(again.len == size && memcmp(again.data, data, size) == 0);
    buf_done(&again);
    check_ruleset_free(set);
    return 0;
}
