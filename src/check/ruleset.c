/* SPDX-License-Identifier: Apache-2.0 */
/* The look-up side of a rule set. A judge asks once for every identifier of a program, so exact names
 * live in one open-addressed table whose rows answer for all kinds at once; patterns are few and are
 * tried one by one, after their first byte. */
#include "check/ruleset.h"

#include "base/hash.h"
#include "check/ruleset_inside.h"

#include <stdlib.h>
#include <string.h>

/* A profile that says `listed` and has no line for what is not listed still refuses it. */
static const struct policy_rule unlisted = {
    POLICY_CONSTRUCT_DENY, "unlisted-import", "py.form.unlisted-import",
    "only listed modules may be imported", "use a module that the profile lists"};

static struct check_slot *slot_for(const struct check_ruleset *set, const char *name, size_t len)
{
    uint32_t h = hash_bytes(HASH_START, name, len), i = h & set->slot_mask;
    for (; set->slots[i].name; i = (i + 1) & set->slot_mask)
        if (set->slots[i].hash == h && set->slots[i].len == len &&
            memcmp(set->slots[i].name, name, len) == 0)
            break;
    return &set->slots[i];
}

check_row check_ruleset_row(const struct check_ruleset *set, const char *name, size_t len)
{
    return slot_for(set, name, len)->row;
}

/* Hangs RULE on the row of NAME, unless something is in that column already. */
static bool link_to(struct check_ruleset *set, const char *name, size_t len, unsigned column,
                    const struct policy_rule *rule)
{
    struct check_slot *s = slot_for(set, name, len);
    if (check_at(set, s->row, column))
        return false;
    if (!s->name)
        *s = (struct check_slot){name, (uint32_t)len, hash_bytes(HASH_START, name, len), 0};
    set->links[set->link_count++] =
        (struct check_link){(uint16_t)(rule - set->profile.rules), s->row, (uint16_t)column};
    s->row = (check_row)set->link_count;
    return true;
}

static int add_exact(struct check_ruleset *set, const struct policy_rule *rule, struct err *err)
{
    if (!link_to(set, rule->name, strlen(rule->name), rule->kind, rule))
        return err_set(err, ERR_FORMAT, "%s %s is ruled twice", policy_rule_kind_name(rule->kind),
                       rule->name);
    if (rule->kind != POLICY_MEMBER_ALLOW && rule->kind != POLICY_MEMBER_DENY)
        return 0;
    const char *dot = strrchr(rule->name, '.');
    if (!dot || dot == rule->name || !dot[1])
        return err_set(err, ERR_FORMAT, "'%.60s' is not MODULE.MEMBER", rule->name);
    (void)link_to(set, rule->name, (size_t)(dot - rule->name), CHECK_ROW_MEMBERS, rule);
    if (rule->kind == POLICY_MEMBER_ALLOW)
        (void)link_to(set, rule->name, (size_t)(dot - rule->name), CHECK_ROW_RESTRICTED, rule);
    return 0;
}

static bool is_dotted(enum policy_rule_kind kind)
{
    return kind == POLICY_IMPORT_ALLOW || kind == POLICY_MODULE_DENY ||
           kind == POLICY_MEMBER_ALLOW || kind == POLICY_MEMBER_DENY || kind == POLICY_FACADE ||
           kind == POLICY_PRELOAD;
}

static const struct policy_rule *pattern_at(const struct check_ruleset *set, size_t i)
{
    return &set->profile.rules[set->patterns[i]];
}

static int add(struct check_ruleset *set, const struct policy_rule *rule, struct err *err)
{
    const char *star = strchr(rule->name, '*');
    if (!rule->name[0] || !rule->id[0])
        return err_set(err, ERR_FORMAT, "a rule needs a name and an id");
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
        if (pattern_at(set, i)->kind == rule->kind &&
            strcmp(pattern_at(set, i)->name, rule->name) == 0)
            return err_set(err, ERR_FORMAT, "%s %s is ruled twice",
                           policy_rule_kind_name(rule->kind), rule->name);
    set->patterns[set->pattern_count++] = (uint16_t)(rule - set->profile.rules);
    unsigned char first = (unsigned char)rule->name[0];
    if (star == rule->name)
        memset(set->pattern_first[rule->kind], 0xff, sizeof set->pattern_first[rule->kind]);
    else
        set->pattern_first[rule->kind][first / 8] |= (uint8_t)(1U << first % 8);
    return 0;
}

/* `_x`, and `__x` that is no `__x__`: an object's inside, by Python's own convention. */
static bool is_inside(const char *name, size_t len)
{
    return len > 0 && name[0] == '_' &&
           !(len > 4 && name[1] == '_' && name[len - 1] == '_' && name[len - 2] == '_');
}

int check_ruleset_index(struct check_ruleset *set, struct err *err)
{
    size_t n = set->profile.rule_count, members = 0, slots = 16;
    if (n > CHECK_RULES_MAX)
        return err_set(err, ERR_LIMIT, "%zu rules; at most %d", n, CHECK_RULES_MAX);
    for (size_t i = 0; i < n; i++) /* a member stands in its own row and in its module's */
        members += set->profile.rules[i].kind == POLICY_MEMBER_ALLOW ||
                   set->profile.rules[i].kind == POLICY_MEMBER_DENY;
    while (slots < (n + members) * 3 / 2 + 1)
        slots *= 2;
    set->slot_mask = (uint32_t)slots - 1;
    set->slots = arena_alloc(&set->arena, slots * sizeof *set->slots);
    set->links = arena_alloc(&set->arena, (n + 2 * members + 1) * sizeof *set->links);
    set->patterns = arena_alloc(&set->arena, (n + 1) * sizeof *set->patterns);
    if (!set->slots || !set->links || !set->patterns)
        return err_set(err, ERR_MEMORY, "no memory for %zu rules", n);
    for (size_t i = 0; i < n; i++) {
        int r = add(set, &set->profile.rules[i], err);
        if (r < 0)
            return r;
    }
    set->leaves_insides = set->profile.guards;
    for (size_t i = 0; i < set->pattern_count; i++)
        if (pattern_at(set, i)->kind == POLICY_ATTRIBUTE_DENY &&
            strcmp(pattern_at(set, i)->name, "_*") == 0)
            set->leaves_insides = false;
    return 0;
}

struct check_ruleset *check_ruleset_alloc(void)
{
    struct check_ruleset *set = calloc(1, sizeof *set);
    if (set)
        arena_init(&set->arena, CHECK_RULESET_MAX + CHECK_RULES_MAX * 300UL);
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
    if (!set->pattern_count || !len ||
        !(set->pattern_first[kind][(unsigned char)name[0] / 8] >> (unsigned char)name[0] % 8 & 1))
        return NULL;
    for (size_t i = 0; i < set->pattern_count; i++) {
        const struct policy_rule *r = pattern_at(set, i);
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
    const struct policy_rule *rule = check_at(set, check_ruleset_row(set, name, len), kind);
    size_t n;
    return rule ? rule : pattern(set, kind, name, len, &n);
}

const struct policy_rule *check_ruleset_attribute_row(const struct check_ruleset *set,
                                                      check_row row, const char *name, size_t len)
{
    const struct policy_rule *exact = check_at(set, row, POLICY_ATTRIBUTE_DENY);
    if (exact || check_at(set, row, POLICY_ATTRIBUTE_ALLOW))
        return exact;
    if (set->leaves_insides && is_inside(name, len))
        return NULL;
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

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x80 && c != '_' && !(c >= '0' && c <= '9') &&
            !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
            return false;
    }
    return len > 1;
}

const struct policy_rule *check_ruleset_key(const struct check_ruleset *set, const char *text,
                                            size_t len)
{
    const struct policy_rule *rule = check_ruleset_match(set, POLICY_SUBSCRIPT_DENY, text, len);
    return rule && strchr(rule->name, '*') && !is_name(text, len) ? NULL : rule;
}

/* A line for `re` lists what re offers, not re._compiler: AFTER is what follows the listed name. */
static bool is_private_below(const char *after, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++)
        if (after[i] == '.' && after[i + 1] == '_')
            return true;
    return false;
}

const struct policy_rule *check_ruleset_import(const struct check_ruleset *set, const char *module,
                                               size_t len, const struct policy_rule **ret_allowed)
{
    const size_t whole = len;
    if (ret_allowed)
        *ret_allowed = NULL;
    for (;;) { /* a.b.c, a.b, a: the longest that is ruled has the say */
        check_row row = check_ruleset_row(set, module, len);
        const struct policy_rule *denied = check_at(set, row, POLICY_MODULE_DENY);
        const struct policy_rule *listed = check_at(set, row, POLICY_IMPORT_ALLOW);
        if (denied)
            return denied;
        if (listed && set->profile.imports == POLICY_IMPORTS_LISTED &&
            is_private_below(module + len, whole - len))
            break;
        if (listed) {
            if (ret_allowed)
                *ret_allowed = listed;
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

const struct policy_rule *check_ruleset_member(const struct check_ruleset *set, const char *module,
                                               size_t module_len, const char *member,
                                               size_t member_len)
{
    char name[256];
    check_row row = check_ruleset_row(set, module, module_len);
    if (!check_at(set, row, CHECK_ROW_MEMBERS) || module_len + 1 + member_len >= sizeof name)
        return NULL;
    memcpy(name, module, module_len);
    name[module_len] = '.';
    memcpy(name + module_len + 1, member, member_len);
    check_row of = check_ruleset_row(set, name, module_len + 1 + member_len);
    const struct policy_rule *denied = check_at(set, of, POLICY_MEMBER_DENY);
    const struct policy_rule *restricted = check_at(set, row, CHECK_ROW_RESTRICTED);
    if (denied || !restricted || check_at(set, of, POLICY_MEMBER_ALLOW))
        return denied;
    const struct policy_rule *listed = check_at(set, row, POLICY_IMPORT_ALLOW);
    return listed ? listed : restricted;
}

const struct policy_rule *check_ruleset_construct(const struct check_ruleset *set,
                                                  enum policy_construct construct)
{
    return set->constructs[construct];
}
