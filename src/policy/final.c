/* SPDX-License-Identifier: Apache-2.0 */
/* Which way is tighter differs from key to key, so it is a table. A key that is not in it has no order (a role, a
 * virtual environment): once final, it stays as it is. */
#include "policy/final.h"

#include <string.h>

enum order {
    FIXED,
    LESS,      /* a smaller number, an earlier word, false */
    MORE,      /* a larger number, a later word, true */
    LESS_NOT0, /* a smaller number; 0 means no limit */
    SUBSET,    /* some of the words */
    SUPERSET,  /* all of the words, and others */
};

static const struct {
    const char *path; /* a key, or a section with its point at the end */
    enum order order;
} orders[] = {
    {"run.profiles", SUBSET},
    {"run.mode", LESS},   /* full before landlock */
    {"daemon.use", MORE}, /* never before preferred before required */
    {"limits.", LESS},
    {"ceilings.", LESS},
    {"sessions.", LESS},
    {"workspaces.commit", LESS}, /* never before ok before ended */
    {"workspaces.store", LESS},
    {"workspaces.free", MORE},
    {"workspaces.free_percent", MORE},
    {"workspaces.verify", SUPERSET},
    {"workspaces.verify_timeout", LESS},
    {"search.collections", SUBSET},
    {"rates.executions", LESS},
    {"rates.window", MORE},
    {"rates.concurrent", LESS},
    {"rates.concurrent_per_client", LESS_NOT0},
    {"rates.model_calls", LESS},
    {"rates.model_window", MORE},
    {"rates.model_burst", LESS},
    {"breakers.failures", LESS},
    {"breakers.cooldown", MORE},
    {"breakers.counts", SUPERSET},
    {"approval.every_n", LESS},
    {"approval.expiry", LESS},
    {"approval.approvers", MORE}, /* another user is stricter than another session */
    {"approval.iterations", LESS_NOT0},
    {"approval.elicitation", LESS},
    {"approval.tool", LESS},
    {"approval.contents", MORE},
    {"arena.enabled", MORE},
    {"arena.timeout", LESS},
    {"arena.risk", LESS}, /* low: more is judged */
    {"arena.paths", SUPERSET},
    {"output.guarded_cap", LESS},
    {"output.scrub", MORE},
    {"output.scrub_paths", SUPERSET},
    {"output.redact", MORE},
    {"output.secret_names", SUPERSET},
    {"proxy.prompts", LESS},
    {"llm.tokens", LESS},
    {"llm.timeout", LESS},
    {"llm.budget", LESS_NOT0},
    {"audit.sync", MORE},
    {"audit.alert_to", SUPERSET},
};

static enum order order_of(const char *path)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        size_t len = strlen(orders[i].path);
        bool section = orders[i].path[len - 1] == '.';
        if (section ? strncmp(orders[i].path, path, len) == 0 : strcmp(orders[i].path, path) == 0)
            return orders[i].order;
    }
    return FIXED;
}

/* Whether WORD of the list `final` covers PATH: all, a section, a key. */
static bool covers(const char *word, const char *path)
{
    size_t len = strlen(word);
    return strcmp(word, "all") == 0 ||
           (strncmp(path, word, len) == 0 && (path[len] == 0 || path[len] == '.'));
}

bool policy_is_final(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->final.count; i++)
        if (covers(p->final.items[i], path))
            return true;
    return false;
}

const char *policy_final_problem(const char *word)
{
    if (strcmp(word, "all") == 0 || strcmp(word, "arena.judges") == 0 ||
        strcmp(word, "proxy.clients") == 0)
        return NULL;
    for (size_t i = 0; i < policy_nkeys; i++)
        if (covers(word, policy_keys[i].path))
            return NULL;
    for (size_t i = 0; policy_named[i]; i++)
        if (strcmp(policy_named[i], word) == 0)
            return NULL;
    return "no key and no section has this name (approval, approval.mode, roles, all)";
}

static bool all_in(const struct policy_words *some, const struct policy_words *all)
{
    for (size_t i = 0; i < some->count; i++)
        if (!policy_words_have(all, some->items[i]))
            return false;
    return true;
}

static uint64_t number(const struct policy_key *key, const struct policy *p)
{
    const char *at = (const char *)p + key->offset;
    uint64_t wide;
    int word;
    bool yes;
    switch (key->type) {
    case POLICY_TYPE_BOOL:
        memcpy(&yes, at, sizeof yes);
        return yes;
    case POLICY_TYPE_ENUM:
        memcpy(&word, at, sizeof word);
        return (uint64_t)word;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

static bool same(const struct policy_key *key, const struct policy *a, const struct policy *b)
{
    const char *pa = (const char *)a + key->offset, *pb = (const char *)b + key->offset;
    if (key->type == POLICY_TYPE_WORDS) {
        const struct policy_words *wa = (const void *)pa, *wb = (const void *)pb;
        bool equal = wa->count == wb->count;
        for (size_t i = 0; equal && i < wa->count; i++)
            equal = strcmp(wa->items[i], wb->items[i]) == 0;
        return equal;
    }
    if (key->type == POLICY_TYPE_NAME || key->type == POLICY_TYPE_FILE)
        return strcmp(*(const char *const *)(const void *)pa,
                      *(const char *const *)(const void *)pb) == 0;
    return number(key, a) == number(key, b);
}

/* How many people are asked; the order of the words is the documents', not this one. */
static int asked(const struct policy *p)
{
    return p->approval.mode == POLICY_HITL ? 2 : p->approval.mode == POLICY_EVERY_N ? 1 : 0;
}

bool policy_tightens(const struct policy_key *key, const struct policy *before,
                     const struct policy *after)
{
    const struct policy_words *was = (const void *)((const char *)before + key->offset),
                              *is = (const void *)((const char *)after + key->offset);
    if (same(key, before, after))
        return true;
    if (strcmp(key->path, "approval.mode") == 0)
        return asked(after) > asked(before);
    switch (order_of(key->path)) {
    case LESS:
        return number(key, after) < number(key, before);
    case MORE:
        return number(key, after) > number(key, before);
    case LESS_NOT0:
        return number(key, after) != 0 &&
               (number(key, before) == 0 || number(key, after) < number(key, before));
    case SUBSET:
        return all_in(is, was);
    case SUPERSET:
        return all_in(was, is);
    case FIXED:
        break;
    }
    return false;
}
