/* The look-up side of a rule set. A judge asks once for every identifier of a program, so exact names
 * live in one open-addressed table whose rows answer for all kinds at once; patterns are few and are
 * tried one by one, after their first byte. */
#include "check/ruleset.h"

#include "check/ruleset_inside.h"

#include <stdlib.h>
#include <string.h>

/* A profile that says `listed` and has no line for what is not listed still refuses it. */
static const struct policy_rule unlisted = {
    POLICY_CONSTRUCT_DENY, "unlisted-import", "py.form.unlisted-import",
    "only listed modules may be imported", "use a module that the profile lists"};

static uint32_t hash(const char *s, size_t len)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619U;
    return h;
}

const struct policy_rule *const *check_ruleset_row(const struct check_ruleset *set,
                                                   const char *name, size_t len)
{
    uint32_t h = hash(name, len);
    for (uint32_t i = h & set->slot_mask; set->slots[i].name; i = (i + 1) & set->slot_mask) {
        const struct check_slot *s = &set->slots[i];
        if (s->hash == h && s->len == len && memcmp(s->name, name, len) == 0)
            return set->rows[s->row];
    }
    return NULL;
}

/* The row of NAME, made if there is none. */
static const struct policy_rule **row_for(struct check_ruleset *set, const char *name, size_t len)
{
    uint32_t h = hash(name, len), i = h & set->slot_mask;
    for (; set->slots[i].name; i = (i + 1) & set->slot_mask)
        if (set->slots[i].hash == h && set->slots[i].len == len &&
            memcmp(set->slots[i].name, name, len) == 0)
            break;
    struct check_slot *s = &set->slots[i];
    if (!s->name)
        *s = (struct check_slot){name, (uint32_t)len, h, (uint32_t)set->row_count++};
    return set->rows[s->row];
}

static int add_exact(struct check_ruleset *set, const struct policy_rule *rule, struct err *err)
{
    const struct policy_rule **row = row_for(set, rule->name, strlen(rule->name));
    if (row[rule->kind])
        return err_set(err, ERR_FORMAT, "%s %s is ruled twice", policy_rule_kind_name(rule->kind),
                       rule->name);
    row[rule->kind] = rule;
    if (rule->kind == POLICY_MEMBER_ALLOW || rule->kind == POLICY_MEMBER_DENY) {
        const char *dot = strrchr(rule->name, '.');
        if (!dot || dot == rule->name || !dot[1])
            return err_set(err, ERR_FORMAT, "no module.member: %.60s", rule->name);
        row = row_for(set, rule->name, (size_t)(dot - rule->name));
        row[CHECK_ROW_MEMBERS] = rule;
        if (rule->kind == POLICY_MEMBER_ALLOW)
            row[CHECK_ROW_RESTRICTED] = rule;
    }
    return 0;
}

static bool is_dotted(enum policy_rule_kind kind)
{
    return kind == POLICY_IMPORT_ALLOW || kind == POLICY_MODULE_DENY ||
           kind == POLICY_MEMBER_ALLOW || kind == POLICY_MEMBER_DENY || kind == POLICY_FACADE ||
           kind == POLICY_PRELOAD;
}

static int add(struct check_ruleset *set, const struct policy_rule *rule, struct err *err)
{
    const char *star = strchr(rule->name, '*');
    if (!rule->name[0] || !rule->id[0])
        return err_set(err, ERR_FORMAT, "a rule has a name and an id");
    if (rule->kind == POLICY_CONSTRUCT_DENY) {
        int construct = policy_construct_find(rule->name);
        if (construct < 0)
            return err_set(err, ERR_FORMAT, "no such construct: %.60s", rule->name);
        set->constructs[construct] = rule;
    }
    if (!star)
        return add_exact(set, rule, err);
    if (star[1] || is_dotted(rule->kind))
        return err_set(err, ERR_FORMAT, "no pattern: %s %.60s", policy_rule_kind_name(rule->kind),
                       rule->name);
    for (size_t i = 0; i < set->pattern_count; i++)
        if (set->patterns[i]->kind == rule->kind && strcmp(set->patterns[i]->name, rule->name) == 0)
            return err_set(err, ERR_FORMAT, "%s %s is ruled twice",
                           policy_rule_kind_name(rule->kind), rule->name);
    set->patterns[set->pattern_count++] = rule;
    if (star == rule->name)
        memset(set->pattern_first[rule->kind], 1, sizeof set->pattern_first[rule->kind]);
    else
        set->pattern_first[rule->kind][(unsigned char)rule->name[0]] = true;
    return 0;
}

int check_ruleset_index(struct check_ruleset *set, struct err *err)
{
    size_t n = set->profile.rule_count, slots = 16;
    if (n > CHECK_RULES_MAX)
        return err_set(err, ERR_LIMIT, "%zu rules; at most %d", n, CHECK_RULES_MAX);
    while (slots < 4 * n) /* a member has a row of its own and one of its module */
        slots *= 2;
    set->slot_mask = (uint32_t)slots - 1;
    set->slots = arena_alloc(&set->arena, slots * sizeof *set->slots);
    set->rows = arena_alloc(&set->arena, (2 * n + 1) * sizeof *set->rows);
    set->patterns = arena_alloc(&set->arena, (n + 1) * sizeof(const struct policy_rule *));
    if (!set->slots || !set->rows || !set->patterns)
        return err_set(err, ERR_MEMORY, "no memory for %zu rules", n);
    for (size_t i = 0; i < n; i++) {
        int r = add(set, &set->profile.rules[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

struct check_ruleset *check_ruleset_alloc(void)
{
    struct check_ruleset *set = calloc(1, sizeof *set);
    if (set) /* rows are the largest part: a pointer for every kind */
        arena_init(&set->arena, CHECK_RULESET_MAX + CHECK_RULES_MAX * 700UL);
    return set;
}

int check_ruleset_new(const struct policy_profile *profile, struct check_ruleset **ret_set,
                      struct err *err)
{
    struct check_ruleset *set = check_ruleset_alloc();
    if (!set)
        return err_set(err, ERR_MEMORY, "no memory for a rule set");
    set->profile = *profile;
    int r = check_ruleset_index(set, err);
    if (r < 0) {
        check_ruleset_free(set);
        return r;
    }
    *ret_set = set;
    return 0;
}

void check_ruleset_free(struct check_ruleset *set)
{
    if (!set)
        return;
    arena_done(&set->arena);
    free(set);
}

const struct policy_profile *check_ruleset_profile(const struct check_ruleset *set)
{
    return &set->profile;
}

/* The longest pattern of KIND that NAME begins with. */
static const struct policy_rule *pattern(const struct check_ruleset *set,
                                         enum policy_rule_kind kind, const char *name, size_t len,
                                         size_t *ret_len)
{
    const struct policy_rule *best = NULL;
    *ret_len = 0;
    if (!set->pattern_count || !len || !set->pattern_first[kind][(unsigned char)name[0]])
        return NULL;
    for (size_t i = 0; i < set->pattern_count; i++) {
        const struct policy_rule *r = set->patterns[i];
        size_t n = r->kind == kind ? strlen(r->name) - 1 : SIZE_MAX;
        if (n <= len && (!best || n > *ret_len) && memcmp(r->name, name, n) == 0) {
            best = r;
            *ret_len = n;
        }
    }
    return best;
}

const struct policy_rule *check_ruleset_pattern(const struct check_ruleset *set,
                                                enum policy_rule_kind kind, const char *name,
                                                size_t len)
{
    size_t n;
    return pattern(set, kind, name, len, &n);
}

const struct policy_rule *check_ruleset_match(const struct check_ruleset *set,
                                              enum policy_rule_kind kind, const char *name,
                                              size_t len)
{
    const struct policy_rule *const *row = check_ruleset_row(set, name, len);
    size_t n;
    return row && row[kind] ? row[kind] : pattern(set, kind, name, len, &n);
}

const struct policy_rule *check_ruleset_attribute_row(const struct check_ruleset *set,
                                                      const struct policy_rule *const *row,
                                                      const char *name, size_t len)
{
    if (row && (row[POLICY_ATTRIBUTE_DENY] || row[POLICY_ATTRIBUTE_ALLOW]))
        return row[POLICY_ATTRIBUTE_DENY];
    size_t denied, allowed;
    const struct policy_rule *rule = pattern(set, POLICY_ATTRIBUTE_DENY, name, len, &denied);
    if (rule && pattern(set, POLICY_ATTRIBUTE_ALLOW, name, len, &allowed) && allowed > denied)
        return NULL;
    return rule;
}

const struct policy_rule *check_ruleset_attribute(const struct check_ruleset *set, const char *name,
                                                  size_t len)
{
    return check_ruleset_attribute_row(set, check_ruleset_row(set, name, len), name, len);
}

const struct policy_rule *check_ruleset_import(const struct check_ruleset *set, const char *module,
                                               size_t len, const struct policy_rule **ret_allowed)
{
    if (ret_allowed)
        *ret_allowed = NULL;
    for (;;) { /* a.b.c, a.b, a: the longest that is ruled has the say */
        const struct policy_rule *const *row = check_ruleset_row(set, module, len);
        if (row && row[POLICY_MODULE_DENY])
            return row[POLICY_MODULE_DENY];
        if (row && row[POLICY_IMPORT_ALLOW]) {
            if (ret_allowed)
                *ret_allowed = row[POLICY_IMPORT_ALLOW];
            return NULL;
        }
        while (len && module[len - 1] != '.')
            len--;
        if (!len)
            break;
        len--;
    }
    if (set->profile.imports == POLICY_IMPORTS_ANY)
        return NULL;
    const struct policy_rule *rule = set->constructs[POLICY_CONSTRUCT_UNLISTED_IMPORT];
    return rule ? rule : &unlisted;
}

const struct policy_rule *check_ruleset_construct(const struct check_ruleset *set,
                                                  enum policy_construct construct)
{
    return set->constructs[construct];
}
