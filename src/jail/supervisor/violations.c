/* SPDX-License-Identifier: Apache-2.0 */
/* The list of what a run was refused. It is evidence, so no guest may crowd it out: a hundred dull refusals must not
 * hide the one that matters. Each rule has a share, and the first refusal by a rule is always kept, if need be in the
 * place of the last one of whichever rule has the most. What the worker told of itself (a guest may have taken it
 * over) has a share of its own, and never takes the place of what the kernel or the supervisor saw. */
#include "jail/outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_TOLD (LIMIT_VIOLATIONS / 2) /* by the worker; added to those that were seen */
#define PER_RULE   16

static size_t count_rule(const struct jail_outcome *out, const char *rule)
{
    size_t n = 0;
    for (size_t i = 0; i < out->violation_count; i++)
        n += strcmp(out->violations[i].rule, rule) == 0;
    return n;
}

bool jail_violation_known(const struct jail_outcome *out, const char *rule)
{
    return count_rule(out, rule) > 0;
}

/* The last entry of the rule that has the most of those that were seen; NULL when each has one. */
static struct jail_violation *least_missed(struct jail_outcome *out)
{
    struct jail_violation *last = NULL;
    size_t most = 1;
    for (size_t i = 0; i < out->violation_count; i++) {
        struct jail_violation *v = &out->violations[i];
        size_t n = v->told ? 0 : count_rule(out, v->rule);
        if (n > most || (n == most && last && strcmp(v->rule, last->rule) == 0)) {
            most = n;
            last = v;
        }
    }
    return last;
}

/* A place for one more by RULE; NULL: it is only counted. */
static struct jail_violation *place_for(struct jail_outcome *out, const char *rule, bool told)
{
    size_t of_rule = count_rule(out, rule), seen = out->violation_count - out->violations_told;
    if (!out->violations)
        out->violations = calloc(LIMIT_VIOLATIONS + LIMIT_TOLD, sizeof *out->violations);
    if (!out->violations || of_rule >= PER_RULE)
        return NULL;
    if (told ? out->violations_told < LIMIT_TOLD : seen < LIMIT_VIOLATIONS) {
        out->violations_told += told;
        return &out->violations[out->violation_count++];
    }
    return told || of_rule ? NULL : least_missed(out);
}

static void add(struct jail_outcome *out, const struct jail_violation *new)
{
    out->violations_total++;
    for (size_t i = 0; i < out->violation_count; i++) {
        struct jail_violation *v = &out->violations[i];
        if (strcmp(v->rule, new->rule) == 0 && strcmp(v->detail, new->detail) == 0 &&
            v->line == new->line && v->told == new->told) {
            v->times++;
            return;
        }
    }
    struct jail_violation *v = place_for(out, new->rule, new->told);
    if (v)
        *v = *new;
}

static struct jail_violation make(const char *layer, const char *rule, const char *detail,
                                  const char *hint)
{
    struct jail_violation v = {.times = 1};
    snprintf(v.layer, sizeof v.layer, "%s", layer);
    snprintf(v.rule, sizeof v.rule, "%s", rule);
    snprintf(v.detail, sizeof v.detail, "%s", detail);
    snprintf(v.hint, sizeof v.hint, "%s", hint);
    return v;
}

void jail_violation_add(struct jail_outcome *out, const char *layer, const char *rule,
                        const char *detail, const char *hint)
{
    struct jail_violation v = make(layer, rule, detail, hint);
    add(out, &v);
}

void jail_violation_told(struct jail_outcome *out, const char *layer, const char *rule,
                         const char *detail, const char *hint, uint64_t line)
{
    struct jail_violation v = make(layer, rule, detail, hint);
    v.line = line;
    v.told = true;
    add(out, &v);
}

void jail_violation_quota(struct jail_outcome *out, const struct jail_limits *limits, bool bytes,
                          bool inodes)
{
    char detail[96];
    if (bytes) {
        snprintf(detail, sizeof detail, "/workspace and /tmp are full (%llu bytes, ENOSPC)",
                 (unsigned long long)limits->disk);
        jail_violation_add(out, "resources", "limit.disk", detail,
                           "write less, delete what is done with, or ask for --disk N");
    }
    if (inodes) {
        snprintf(detail, sizeof detail, "no inode is left of %llu (ENOSPC)",
                 (unsigned long long)limits->inodes);
        jail_violation_add(out, "resources", "limit.inodes", detail,
                           "make fewer files, or ask for --inodes N");
    }
}

void jail_violation_processes(struct jail_outcome *out, uint64_t used, uint64_t most)
{
    char detail[80];
    for (size_t i = 0; i < out->violation_count; i++)
        if (strcmp(out->violations[i].rule, "limit.processes") == 0)
            return; /* once is enough */
    snprintf(detail, sizeof detail, "%llu of %llu processes in use at its end",
             (unsigned long long)used, (unsigned long long)most);
    jail_violation_add(out, "resources", "limit.processes", detail,
                       "start fewer at once, or ask for --processes N");
}
