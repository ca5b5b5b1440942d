/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a policy: short lists, walked. */
#include "policy/policy.h"

#include <stdio.h>
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

int policy_choose_profile(const struct policy *p, const char *name,
                          const struct policy_profile **ret_profile, struct err *err)
{
    const char *word = name ? name : p->run.profile;
    const struct policy_profile *found = policy_find_profile(p, word);
    char all[160] = "";
    if (found && policy_words_have(&p->run.profiles, word)) {
        *ret_profile = found;
        return 0;
    }
    for (size_t i = 0; i < p->run.profiles.count && strlen(all) < sizeof all - 70; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.64s", i ? ", " : "",
                 p->run.profiles.items[i]);
    if (found)
        return err_set(err, ERR_USAGE,
                       "--profile: the policy does not let '%.40s' be chosen; it may be: %s", word,
                       all);
    return err_set(err, ERR_USAGE, "--profile: '%.40s' is none of: %s", word, all);
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

const char *policy_find_collection(const struct policy *p, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; len && i < p->search.collections.count; i++) {
        const char *word = p->search.collections.items[i];
        if (strncmp(word, name, len) == 0 && word[len] == '=')
            return word + len + 1;
    }
    return NULL;
}

bool policy_words_have(const struct policy_words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->items[i], word) == 0)
            return true;
    return false;
}

bool policy_escapes_html(const struct policy *p, const struct policy_profile *profile)
{
    if (p->output.escape == POLICY_ESCAPE_PROFILE)
        return profile && profile->guards;
    return p->output.escape == POLICY_ESCAPE_HTML;
}
