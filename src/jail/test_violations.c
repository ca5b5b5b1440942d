/* SPDX-License-Identifier: Apache-2.0 */
/* The list of refusals as evidence: what is kept when a guest makes more of them than there are places. */
#include "base/tap.h"
#include "jail/outside.h"

#include <stdlib.h>

static size_t kept(const struct jail_outcome *o, const char *rule)
{
    size_t n = 0;
    for (size_t i = 0; i < o->violation_count; i++)
        n += strcmp(o->violations[i].rule, rule) == 0;
    return n;
}

static void many(struct jail_outcome *o, const char *rule, int count, bool told)
{
    char detail[32];
    for (int i = 0; i < count; i++) {
        snprintf(detail, sizeof detail, "number %d", i);
        if (told)
            jail_violation_told(o, "input", rule, detail, "", 0);
        else
            jail_violation_add(o, "syscalls", rule, detail, "");
    }
}

static void done(struct jail_outcome *o)
{
    free(o->violations);
    *o = (struct jail_outcome){0};
}

int main(void)
{
    struct jail_outcome o = {0};
    char rule[32];
    many(&o, "seccomp.mount", 5000, false);
    jail_violation_add(&o, "syscalls", "seccomp.bpf", "PROG_LOAD", "");
    tap_ok(kept(&o, "seccomp.bpf") == 1 && kept(&o, "seccomp.mount") >= 1,
           "5,000 refused mounts do not hide one refused bpf");
    tap_eq_int(o.violations_total, 5001, "every refusal is counted");
    done(&o);

    for (int i = 0; i < LIMIT_VIOLATIONS; i++) {
        snprintf(rule, sizeof rule, "seccomp.dull%d", i % 20);
        many(&o, rule, 20, false);
    }
    for (int i = 0; i < 130; i++) { /* more rules than there are places left */
        snprintf(rule, sizeof rule, "seccomp.rare%d", i);
        jail_violation_add(&o, "syscalls", rule, "once", "");
    }
    int rare = 0, dull = 0;
    for (int i = 0; i < 130; i++) {
        snprintf(rule, sizeof rule, "seccomp.rare%d", i);
        rare += kept(&o, rule) == 1;
    }
    for (int i = 0; i < 20; i++) {
        snprintf(rule, sizeof rule, "seccomp.dull%d", i);
        dull += kept(&o, rule) >= 1;
    }
    tap_eq_int(rare, 130, "the first refusal by each of 130 rules is kept when the list was full");
    tap_eq_int(dull, 20, "making place for new rules leaves one of each rule that was there");
    done(&o);

    for (int i = 0; i < 1000; i++) {
        snprintf(rule, sizeof rule, "py.invented%d", i);
        many(&o, rule, 1, true);
    }
    for (int i = 0; i < LIMIT_VIOLATIONS; i++) {
        snprintf(rule, sizeof rule, "seccomp.seen%d", i);
        many(&o, rule, 1, false);
    }
    tap_eq_int(o.violation_count - o.violations_told, LIMIT_VIOLATIONS,
               "1,000 rules that a worker invents take no place of what the supervisor saw");
    done(&o);

    many(&o, "seccomp.same", 1, false);
    many(&o, "seccomp.same", 1, false);
    tap_ok(o.violation_count == 1 && o.violations[0].times == 2,
           "the same refusal twice is one entry that says so");
    many(&o, "seccomp.same", 1, true);
    tap_ok(o.violation_count == 2 && o.violations[0].times == 2 && o.violations[1].told,
           "what the worker tells does not count for what was seen");
    done(&o);
    return tap_done();
}
