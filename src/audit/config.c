/* SPDX-License-Identifier: Apache-2.0 */
/* Two structs for one thing: the policy is the operator's file, with every value as it is written there; the
 * configuration is what this room works with, and a test fills it without a policy. */
#include "audit/audit.h"

#include "base/limits.h"
#include "policy/policy.h"

#include <string.h>

void audit_config_init(struct audit_config *c)
{
    *c = (struct audit_config){
        .sync = AUDIT_SYNC_ON,
        .lock_ms = LIMIT_LOCK_MS,
        .retention_days = 90,
        .window_ms = 3600000,
        .max_failures = 10,
        .long_factor = 10,
        .long_min_records = 5,
        .long_floor_ms = 100,
        .duplicates = 20,
        .max_violations = 3,
    };
}

static unsigned narrow(uint64_t n)
{
    return n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

static bool has(const struct policy_words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->items[i], word) == 0)
            return true;
    return false;
}

void audit_config_apply(struct audit_config *c, const struct policy *p)
{
    c->sync = p->audit.sync == POLICY_SYNC_OFF     ? AUDIT_SYNC_OFF
              : p->audit.sync == POLICY_SYNC_BEGIN ? AUDIT_SYNC_BEGIN
                                                   : AUDIT_SYNC_ON;
    c->retention_days = narrow(p->audit.retention_days);
    c->code = p->audit.code;
    c->window_ms = p->audit.window_ms;
    c->max_failures = narrow(p->audit.failures);
    c->long_factor = narrow(p->audit.slow_factor);
    c->long_min_records = narrow(p->audit.slow_records);
    c->long_floor_ms = p->audit.slow_floor_ms;
    c->duplicates = narrow(p->audit.duplicates);
    c->max_violations = narrow(p->audit.violations);
    c->alert_stderr = has(&p->audit.alert_to, "stderr");
    c->alert_syslog = has(&p->audit.alert_to, "syslog");
    c->alert_file = p->audit.alert_file && p->audit.alert_file[0] ? p->audit.alert_file : NULL;
    c->alert_command = p->audit.alert_command.items;
    c->nalert_command = p->audit.alert_command.count;
}
