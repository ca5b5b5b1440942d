/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a policy file: refused with its places, or a policy that shows, and reads back as the same. */
#include "base/limits.h"
#include "policy/load.h"
#include "policy/show.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct policy *p, bool origin, struct buf *out)
{
    bool found = false;
    buf_init(out, 16 * MIB);
    base_assert(policy_show_yaml(p, NULL, origin, out, &found) == 0 && found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct policy_problems problems;
    struct policy_box *box = policy_box_new();
    base_assert(box != NULL);
    policy_problems_init(&problems);
    base_assert(policy_box_load(box, "f.yaml", data, size, &problems) == 0);
    if (problems.errors == 0)
        policy_box_check(box, &problems);
    for (size_t i = 0; i < problems.count; i++)
        base_assert(problems.items[i].text[0] && problems.items[i].file);
    if (problems.errors == 0) {
        struct buf first, commented, second;
        struct policy_box *copy = policy_box_new();
        base_assert(copy != NULL);
        show(&box->p, false, &first);
        show(&box->p, true, &commented);
        base_assert(policy_box_load(copy, "g.yaml", commented.data, commented.len, &problems) == 0);
        base_assert(problems.errors == 0);
        show(&copy->p, false, &second);
        base_assert(strcmp(first.data, second.data) == 0);
        buf_done(&first);
        buf_done(&commented);
        buf_done(&second);
        policy_box_free(copy);
    } else {
        struct err err = ERR_INIT;
        base_assert(policy_problems_err(&problems, &err) == ERR_FORMAT && err.msg[0]);
    }
    policy_problems_done(&problems);
    policy_box_free(box);
    return 0;
}
