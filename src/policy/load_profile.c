/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of an operator: made of a base by taking rules out, putting rules in and turning switches. The rules
 * are held to what src/policy/tables.py asks of the built-in ones, with one ease: id, reason and
 * hint may be left out, because an operator who allows a module knows why. */
#include "policy/load.h"

#include "base/limits.h"
#include "base/near.h"
#include "base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct draft {
    struct policy_profile p;
    struct policy_profile_origin from;
    struct policy_rule *rules; /* room for all of the base and all that are added */
    struct policy_origin *origins;
    size_t count, cap;
};

static const struct policy_key remove_key = {"remove", POLICY_TYPE_WORDS, 0,
                                             0,        POLICY_RULES_MAX,  ""};

static bool module_kind(enum policy_rule_kind k)
{
    return k == POLICY_IMPORT_ALLOW || k == POLICY_MODULE_DENY || k == POLICY_FACADE ||
           k == POLICY_PRELOAD;
}

static bool member_kind(enum policy_rule_kind k)
{
    return k == POLICY_MEMBER_ALLOW || k == POLICY_MEMBER_DENY;
}

static bool refuses(enum policy_rule_kind k)
{
    const char *word = policy_rule_kind_name(k);
    size_t len = strlen(word);
    return (len > 4 && strcmp(word + len - 4, "deny") == 0) || k == POLICY_METHOD_DENY ||
           k == POLICY_BUILTIN_REMOVE;
}

/* Words joined by dots; how many, or 0 when it is something else. */
static size_t dotted_words(const char *s)
{
    size_t words = 1;
    for (const char *c = s; *c; c++) {
        if (*c == '.' && (c == s || !c[1] || c[1] == '.'))
            return 0;
        words += *c == '.';
        if (*c != '.' && *c != '_' && !isalnum((unsigned char)*c) && (unsigned char)*c < 0x80)
            return 0;
    }
    return *s ? words : 0;
}

static bool good_id(const char *s)
{
    const char *c = s;
    while (*c >= 'a' && *c <= 'z')
        c++;
    if (c == s || *c != '.')
        return false;
    for (; *c; c++)
        if (*c == '.' ? !c[1] || c[1] == '.'
                      : !isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return false;
    return true;
}

/* What is wrong with a rule's name, or NULL. */
static const char *wrong_name(enum policy_rule_kind kind, const char *name)
{
    const char *star = strchr(name, '*');
    if (star && star[1])
        return "a pattern has one *, and that is its end";
    if (star && (module_kind(kind) || member_kind(kind) || kind == POLICY_CONSTRUCT_DENY))
        return "this kind takes no pattern";
    if (module_kind(kind) && !dotted_words(name))
        return "no name of a module";
    if (member_kind(kind) && dotted_words(name) < 2)
        return "not module.member";
    if (kind == POLICY_CONSTRUCT_DENY && policy_construct_find(name) < 0)
        return "no construct: metaclass, unlisted-import, star-import, relative-import, "
               "format-field, "
               "string-annotation, encoding-cookie, bare-cr, private-member, except-star, "
               "rebound-call";
    return NULL;
}

static const char *keep(struct policy_loader *l, const char *s)
{
    const char *copy = arena_strdup(&l->box->mem, s);
    l->no_memory = l->no_memory || !copy;
    return copy ? copy : "";
}

static const char *default_id(struct policy_loader *l, enum policy_rule_kind kind, const char *name)
{
    char id[POLICY_WORD_MAX + 64];
    int n = snprintf(id, sizeof id, "py.%s.%s", policy_rule_kind_name(kind), name);
    for (char *c = id; *c; c++)
        if (*c != '.' && !isalnum((unsigned char)*c) && *c != '-')
            *c = '_';
    return n < (int)sizeof id && good_id(id) ? keep(l, id) : NULL;
}

static bool unknown_kind(struct policy_loader *l, const struct policy_node *at, const char *word)
{
    const char *kinds[POLICY_RULE_KIND_COUNT];
    char all[320] = "";
    for (int i = 0; i < POLICY_RULE_KIND_COUNT; i++) {
        kinds[i] = policy_rule_kind_name((enum policy_rule_kind)i);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", kinds[i]);
    }
    const char *near = near_word(word, kinds, POLICY_RULE_KIND_COUNT);
    policy_load_problem(l, at, "no kind of rule: '%.40s'%s%s%s; there are %s", word,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", all);
    return false;
}

static bool load_rule(struct policy_loader *l, const struct policy_node *n,
                      struct policy_rule *rule)
{
    static const char *const keys[] = {"kind", "name", "id", "reason", "hint", NULL};
    const char *texts[5] = {0};
    if (n->kind != POLICY_MAP || !n->first) {
        policy_load_problem(l, n, "a rule is a mapping: {kind: import-allow, name: numpy}");
        return false;
    }
    if (!policy_load_map(l, n, "a rule", keys))
        return false;
    for (size_t i = 0; i < 5; i++) {
        const struct policy_node *t = policy_load_get(n, keys[i]);
        if (!t)
            continue;
        texts[i] = policy_load_text(l, t, keys[i], POLICY_TEXT_MAX);
        if (!texts[i])
            return false;
    }
    if (!texts[0] || !texts[1] || !*texts[1]) {
        policy_load_problem(l, n, "a rule needs kind and name");
        return false;
    }
    int kind = policy_rule_kind_find(texts[0]);
    if (kind < 0)
        return unknown_kind(l, policy_load_get(n, "kind"), texts[0]);
    rule->kind = (enum policy_rule_kind)kind;
    const char *wrong = wrong_name(rule->kind, texts[1]);
    if (wrong) {
        policy_load_problem(l, policy_load_get(n, "name"), "'%.60s': %s", texts[1], wrong);
        return false;
    }
    rule->name = keep(l, texts[1]);
    rule->id = texts[2] ? keep(l, texts[2]) : default_id(l, rule->kind, texts[1]);
    if (!rule->id || !good_id(rule->id)) {
        policy_load_problem(l, n, "id: words with dots, the language first: py.import.numpy");
        return false;
    }
    rule->reason = texts[3] ? keep(l, texts[3]) : "the operator's policy";
    rule->hint = texts[4]              ? keep(l, texts[4])
                 : refuses(rule->kind) ? "the operator's policy refuses it"
                                       : "";
    return true;
}

static void load_rules(struct policy_loader *l, const struct policy_node *list, struct draft *d)
{
    if (list->kind != POLICY_LIST) {
        policy_load_problem(l, list,
                            "rules: a list is wanted: [{kind: import-allow, name: numpy}]");
        return;
    }
    for (const struct policy_node *n = list->first; n; n = n->next) {
        struct policy_rule rule;
        size_t at = d->count;
        bool clash = false;
        if (!load_rule(l, n, &rule))
            continue;
        for (size_t i = 0; i < d->count; i++) {
            bool same = d->rules[i].kind == rule.kind && strcmp(d->rules[i].name, rule.name) == 0;
            if (same)
                at = i; /* the later one replaces it */
            clash = clash || (!same && strcmp(d->rules[i].id, rule.id) == 0);
        }
        if (clash) {
            policy_load_problem(l, n, "id '%.80s' is another rule's; give this one its own",
                                rule.id);
            continue;
        }
        if (at == d->cap)
            return;
        d->rules[at] = rule;
        d->origins[at] = policy_load_origin(l, n);
        d->count += at == d->count;
    }
}

static void remove_rules(struct policy_loader *l, const struct policy_node *list, struct draft *d)
{
    struct policy_words ids;
    if (!policy_load_words(l, list, &remove_key, &ids))
        return;
    const struct policy_node *n = list->first;
    for (size_t i = 0; i < ids.count; i++, n = n->next) {
        size_t at = 0;
        while (at < d->count && strcmp(d->rules[at].id, ids.items[i]) != 0)
            at++;
        if (at == d->count) {
            const char **names = policy_load_alloc(l, (d->count + 1) * sizeof *names);
            for (size_t k = 0; names && k < d->count; k++)
                names[k] = d->rules[k].id;
            const char *near = names ? near_word(ids.items[i], names, d->count) : NULL;
            policy_load_problem(l, n, "remove: no rule has the id '%.80s'%s%s%s", ids.items[i],
                                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
            continue;
        }
        d->count--;
        memmove(d->rules + at, d->rules + at + 1, (d->count - at) * sizeof *d->rules);
        memmove(d->origins + at, d->origins + at + 1, (d->count - at) * sizeof *d->origins);
    }
}

/* A switch of the profile, read as any other value: by a key that lies at some field of its type. */
static bool read_switch(struct policy_loader *l, const struct policy_node *map, const char *name,
                        const struct policy_key *key, struct policy *at, struct policy_origin *from)
{
    struct err err = ERR_INIT;
    const struct policy_node *n = policy_load_get(map, name);
    const char *text = n ? policy_load_text(l, n, name, POLICY_WORD_MAX) : NULL;
    if (!text)
        return false;
    if (policy_value_read(key, text, &l->box->mem, at, &err) < 0) {
        policy_load_problem(l, n, "%s: %s", name, err.msg);
        return false;
    }
    *from = policy_load_origin(l, n->key);
    return true;
}

static void load_switches(struct policy_loader *l, const struct policy_node *n, struct draft *d)
{
    static const struct policy_key flag = {
        "", POLICY_TYPE_BOOL, offsetof(struct policy, pool.enabled), 0, 0, ""};
    static const struct policy_key imports = {
        "", POLICY_TYPE_ENUM, offsetof(struct policy, run.mode), 0, 0, "listed any"};
    static const struct policy_key size = {
        "", POLICY_TYPE_BYTES, offsetof(struct policy, limits.output), 1, LIMIT_SOURCE, ""};
    struct policy at = {0};
    const struct policy_node *summary = policy_load_get(n, "summary");
    const char *text = summary ? policy_load_text(l, summary, "summary", POLICY_TEXT_MAX) : NULL;
    if (text) {
        d->p.summary = keep(l, text);
        d->from.summary = policy_load_origin(l, summary->key);
    }
    if (read_switch(l, n, "imports", &imports, &at, &d->from.imports))
        d->p.imports = (enum policy_import_mode)at.run.mode;
    const bool usual = d->p.packages == !d->p.guards; /* nobody said otherwise so far */
    if (read_switch(l, n, "guards", &flag, &at, &d->from.guards))
        d->p.guards = at.pool.enabled;
    if (read_switch(l, n, "packages", &flag, &at, &d->from.packages))
        d->p.packages = at.pool.enabled;
    else if (usual)
        d->p.packages = !d->p.guards;
    if (read_switch(l, n, "threads", &flag, &at, &d->from.threads))
        d->p.threads = at.pool.enabled;
    if (read_switch(l, n, "compute_only", &flag, &at, &d->from.compute_only))
        d->p.compute_only = at.pool.enabled;
    if (read_switch(l, n, "files", &flag, &at, &d->from.files))
        d->p.files = at.pool.enabled;
    else if (!d->p.guards || !d->p.compute_only)
        d->p.files = false; /* such a program opens its files by itself */
    if (read_switch(l, n, "source_max", &size, &at, &d->from.source_max))
        d->p.source_max = at.limits.output;
}

/* The profile that the new one is made of; NULL: an empty one, or a problem (*ret_good). */
static const struct policy_profile *find_base(struct policy_loader *l, const struct policy_node *n,
                                              bool *ret_good)
{
    const struct policy_node *base = policy_load_get(n, "base");
    const char *word = base ? policy_load_text(l, base, "base", 64) : NULL;
    const struct policy_profile *found =
        policy_find_profile(&l->box->p, word ? word : n->key->text);
    *ret_good = true;
    if (word && strcmp(word, "none") == 0)
        return NULL;
    if (found)
        return found;
    const char *names[POLICY_PROFILES_MAX + 1];
    size_t count = 0;
    for (; l->box->profiles[count]; count++)
        names[count] = l->box->profiles[count]->name;
    const char *near = word ? near_word(word, names, count) : NULL;
    if (!base)
        policy_load_problem(l, n->key,
                            "a new profile needs base: strict, locked, standard, open or none");
    else if (word)
        policy_load_problem(l, base, "base: no profile '%.64s'%s%s%s", word,
                            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    *ret_good = false;
    return NULL;
}

/* The children of a built-in profile are locked, and have their paths, before a policy is read; a thread is a system call
 * that computation has not. */
static bool may_switch(struct policy_loader *l, const struct policy_node *n,
                       const struct policy_profile *p)
{
    const char *name = n->key->text;
    const struct policy_profile *builtin = policy_profile_find(name);
    if (builtin && builtin->compute_only != p->compute_only)
        policy_load_problem(l, n->key,
                            "compute_only of %.64s stays %s; make a profile with base: %.64s", name,
                            builtin->compute_only ? "true" : "false", name);
    else if (builtin && builtin->packages != p->packages)
        policy_load_problem(l, n->key,
                            "packages of %.64s stays %s; make a profile with base: %.64s", name,
                            builtin->packages ? "true" : "false", name);
    else if (p->files && !(p->compute_only && p->guards))
        policy_load_problem(l, n->key,
                            "files: true needs guards: true and compute_only: true; without them a "
                            "program opens its files by itself");
    else if (p->compute_only && p->threads)
        policy_load_problem(l, n->key, "a profile with threads needs compute_only: false");
    else
        return true;
    return false;
}

/* Where a profile of that name is, or would be. */
static size_t place_of(const struct policy_loader *l, const char *name)
{
    size_t index = 0;
    while (l->box->profiles[index] && strcmp(l->box->profiles[index]->name, name) != 0)
        index++;
    return index;
}

static const char *const profile_keys[] = {"base",       "summary",      "imports", "guards",
                                           "threads",    "compute_only", "files",   "packages",
                                           "source_max", "rules",        "remove",  NULL};

static void load_profile(struct policy_loader *l, const struct policy_node *n)
{
    struct policy_box *box = l->box;
    bool good;
    size_t added = 0;
    if (!policy_load_map(l, n, "a profile", profile_keys))
        return;
    const struct policy_profile *base = find_base(l, n, &good);
    const struct policy_node *rules = policy_load_get(n, "rules"),
                             *gone = policy_load_get(n, "remove");
    if (!good)
        return;
    for (const struct policy_node *r = rules ? rules->first : NULL; r; r = r->next)
        added++;
    struct draft d = {.cap = (base ? base->rule_count : 0) + added};
    if (d.cap > POLICY_RULES_MAX) {
        policy_load_problem(l, rules, "%zu rules; at most %d", d.cap, POLICY_RULES_MAX);
        return;
    }
    d.rules = policy_load_alloc(l, (d.cap + 1) * sizeof *d.rules);
    d.origins = policy_load_alloc(l, (d.cap + 1) * sizeof *d.origins);
    if (!d.rules || !d.origins)
        return;
    d.p = (struct policy_profile){
        .summary = "", .imports = POLICY_IMPORTS_LISTED, .packages = true, .source_max = 50000};
    if (base) {
        size_t from = 0;
        while (box->profiles[from] != base)
            from++;
        d.p = *base;
        d.from = box->profile_origins[from];
        d.count = base->rule_count;
        memcpy(d.rules, base->rules, d.count * sizeof *d.rules);
        if (d.from.rules)
            memcpy(d.origins, d.from.rules, d.count * sizeof *d.origins);
    }
    if (gone)
        remove_rules(l, gone, &d);
    if (rules)
        load_rules(l, rules, &d);
    load_switches(l, n, &d);
    const size_t index = place_of(l, n->key->text);
    if (index == POLICY_PROFILES_MAX) {
        policy_load_problem(l, n->key, "more than %d profiles", POLICY_PROFILES_MAX);
        return;
    }
    if (!may_switch(l, n, &d.p))
        return;
    struct policy_profile *made = policy_load_alloc(l, sizeof *made);
    if (!made)
        return;
    *made = d.p;
    made->name = keep(l, n->key->text);
    made->rules = d.rules;
    made->rule_count = d.count;
    d.from.rules = d.origins;
    box->profiles[index] = made;
    box->profile_origins[index] = d.from;
    box->nprofiles += index == box->nprofiles;
}

void policy_load_profiles(struct policy_loader *l, const struct policy_node *map)
{
    if (!policy_load_map(l, map, "profiles", NULL))
        return;
    for (const struct policy_node *n = map->first; n; n = n->next)
        if (!policy_name_good(n->key->text) || strcmp(n->key->text, "none") == 0)
            policy_load_problem(l, n->key, "'%.64s' is no name for a profile", n->key->text);
        else
            load_profile(l, n);
}
