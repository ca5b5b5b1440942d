/* Look-ups in a policy: short lists, walked. */
#include "policy/policy.h"

#include <string.h>

const struct policy_profile *policy_find_profile(const struct policy *p, const char *name)
{
    if (!p->profiles)
        return policy_profile_find(name);
    for (const struct policy_profile *const *x = p->profiles; *x; x++)
        if (strcmp((*x)->name, name) == 0)
            return *x;
    return NULL;
}

const struct policy_role *policy_find_role(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->nroles; i++)
        if (strcmp(p->roles[i].name, name) == 0)
            return &p->roles[i];
    return NULL;
}

const struct policy_tool *policy_find_tool(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->ntools; i++)
        if (strcmp(p->tools[i].name, name) == 0)
            return &p->tools[i];
    return NULL;
}

bool policy_words_have(const struct policy_words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->items[i], word) == 0)
            return true;
    return false;
}

bool policy_role_may(const struct policy_role *role, const char *tool)
{
    return policy_words_have(&role->tools, "*") || policy_words_have(&role->tools, tool);
}

bool policy_escapes_html(const struct policy *p, const struct policy_profile *profile)
{
    if (p->output.escape == POLICY_ESCAPE_PROFILE)
        return profile && profile->guards;
    return p->output.escape == POLICY_ESCAPE_HTML;
}
