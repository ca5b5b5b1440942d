/* SPDX-License-Identifier: Apache-2.0 */
/* The tables themselves are made by the build of policies/: here are only the words for their numbers
 * and the look-up by name, which unpacks a table at its first use. */
#include "policy/profile.h"

#include <string.h>

static const char *const kind_words[] = {
#define WORD(name, word, text) [POLICY_##name] = word,
    POLICY_RULE_KINDS(WORD)
#undef WORD
};

static const char *const construct_words[] = {
#define WORD(name, word) [POLICY_CONSTRUCT_##name] = word,
    POLICY_CONSTRUCTS(WORD)
#undef WORD
};

static const char *const mode_words[] = {
    [POLICY_IMPORTS_LISTED] = "listed",
    [POLICY_IMPORTS_ANY] = "any",
};

static int find(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return (int)i;
    return -1;
}

static const char *name(const char *const *words, size_t count, size_t i)
{
    return i < count ? words[i] : "unknown";
}

const char *policy_rule_kind_name(enum policy_rule_kind kind)
{
    return name(kind_words, POLICY_RULE_KIND_COUNT, kind);
}

int policy_rule_kind_find(const char *word)
{
    return find(kind_words, POLICY_RULE_KIND_COUNT, word);
}

int policy_construct_find(const char *word)
{
    return find(construct_words, POLICY_CONSTRUCT_COUNT, word);
}

const char *policy_import_mode_name(enum policy_import_mode mode)
{
    return name(mode_words, POLICY_IMPORT_MODE_COUNT, mode);
}

bool policy_profile_judges(const struct policy_profile *p)
{
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind != POLICY_EVENT_DENY && p->rules[i].kind != POLICY_EVENT_REPORT &&
            p->rules[i].kind != POLICY_PRELOAD)
            return true;
    return p->guards;
}

static const struct policy_profile *unpack(const struct policy_packed_profile *p)
{
    if (p->profile->rules)
        return p->profile;
    for (size_t i = 0; i < p->profile->rule_count; i++) {
        const struct policy_packed_rule *r = &p->packed[i];
        p->rules[i] = (struct policy_rule){(enum policy_rule_kind)r->kind, p->text + r->name,
                                           p->text + r->id, p->text + r->reason, p->text + r->hint};
    }
    p->profile->rules = p->rules;
    return p->profile;
}

const struct policy_profile *policy_profile_find(const char *word)
{
    for (const struct policy_packed_profile *p = policy_packed_profiles; p->profile; p++)
        if (strcmp(p->profile->name, word) == 0)
            return unpack(p);
    return NULL;
}

const struct policy_profile *const *policy_profiles(void)
{
    static const struct policy_profile *all[8];
    for (size_t i = 0; policy_packed_profiles[i].profile && i < 7; i++)
        all[i] = unpack(&policy_packed_profiles[i]);
    return all;
}
