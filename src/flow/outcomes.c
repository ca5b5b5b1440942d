/* SPDX-License-Identifier: Apache-2.0 */
/* Not all that is listed was denied. Where guards are off, rules of the kind event-report let the act go on: what it may
 * reach is the kernel's to decide, and the hook only tells. And some denials are the ordinary start of a library,
 * which goes on without: they stay in the list and on record, but nobody is told as if it were an attack. */
#include "flow/steps.h"

#include <string.h>

static const struct {
    const char *rule, *detail, *who;
} harmless[] = {
    {"py.event.subprocess", "subprocess.Popen uname, (uname, -p)",
     "platform, for numpy and pandas: the name of the processor"},
    {"py.event.subprocess", "subprocess.Popen fc-list, (fc-list, --help)",
     "matplotlib: the fonts of the machine, which it also looks for by itself"},
};

static bool is_harmless(const struct flow_violation *v)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(harmless[i].rule, v->rule) == 0 && strcmp(harmless[i].detail, v->detail) == 0)
            return true;
    return false;
}

static bool only_reports(const struct policy_profile *p, const char *rule)
{
    bool reports = false;
    for (size_t i = 0; i < p->rule_count; i++)
        if (strcmp(p->rules[i].id, rule) == 0) {
            if (p->rules[i].kind != POLICY_EVENT_REPORT)
                return false;
            reports = true;
        }
    return reports;
}

const char *flow_violation_end_name(enum flow_violation_end end)
{
    static const char *const names[] = {"denied", "seen", "harmless", "undone"};
    return names[end];
}

/* The audit events of starting a program, which `run --processes` asked for. */
static bool starts_program(const char *rule)
{
    static const char *const rules[] = {"py.event.subprocess",     "py.event.os.exec",
                                        "py.event.os.fork",        "py.event.os.forkpty",
                                        "py.event.os.posix_spawn", "py.event.os.system"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i], rule) == 0)
            return true;
    return false;
}

void flow_result_ends(struct flow_result *r, const struct policy_profile *profile, bool starts)
{
    for (size_t i = 0; i < r->violation_count; i++) {
        struct flow_violation *v = &r->violations[i];
        if (is_harmless(v) || (starts && starts_program(v->rule)))
            v->end = FLOW_WAS_HARMLESS;
        else if (strcmp(v->rule, JAIL_RULE_SHARED_MODE) == 0)
            v->end = FLOW_WAS_UNDONE;
        else if (strcmp(v->rule, JAIL_RULE_SHARED_MODE_KEPT) == 0)
            v->end = FLOW_WAS_SEEN;
        else if (profile && !profile->guards && only_reports(profile, v->rule))
            v->end = FLOW_WAS_SEEN;
    }
}
