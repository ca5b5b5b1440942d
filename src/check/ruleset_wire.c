/* SPDX-License-Identifier: Apache-2.0 */
/* A rule set on the wire is one flat CBOR array: a version, the switches, then five items a rule. The
 * worker that decodes it sits in a jail and has not seen a guest yet, but whoever holds the other end
 * of the channel is not assumed to be well: everything is checked before anything is used.
 *
 * The decoder takes one copy and leaves the strings in it: behind each of them is the head of the next
 * item, which is read by then and gives its place to the NUL. */
#include "check/ruleset.h"

#include "base/hash.h"
#include "check/ruleset_inside.h"
#include "wire/cbor.h"

#include <string.h>

#define VERSION        3
#define SOURCE_MAX_MAX (64ULL << 20)

enum { HEAD_ITEMS = 9, RULE_ITEMS = 5 };

static int put_text(struct buf *out, const char *s, struct err *err)
{
    size_t len = strlen(s);
    if (len > CHECK_RULE_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "a rule's text has %zu bytes; at most %d", len,
                       CHECK_RULE_TEXT_MAX);
    return wire_cbor_put_text(out, s, len);
}

static int put_rule(struct buf *out, const struct policy_rule *rule, struct err *err)
{
    int r = wire_cbor_put_uint(out, rule->kind);
    const char *const texts[] = {rule->name, rule->id, rule->reason, rule->hint};
    for (size_t i = 0; r == 0 && i < sizeof texts / sizeof *texts; i++)
        r = put_text(out, texts[i], err);
    return r;
}

static int put_head(struct buf *out, const struct policy_profile *p, struct err *err)
{
    const uint64_t numbers[] = {p->imports,      p->guards, p->threads,
                                p->compute_only, p->files,  p->source_max};
    int r =
        wire_cbor_put_head(out, WIRE_KIND_ARRAY, HEAD_ITEMS + RULE_ITEMS * (uint64_t)p->rule_count);
    if (r == 0)
        r = wire_cbor_put_uint(out, VERSION);
    if (r == 0)
        r = put_text(out, p->name, err);
    if (r == 0)
        r = put_text(out, p->summary, err);
    for (size_t i = 0; r == 0 && i < sizeof numbers / sizeof *numbers; i++)
        r = wire_cbor_put_uint(out, numbers[i]);
    return r;
}

int check_ruleset_encode(const struct policy_profile *profile, struct buf *out, struct err *err)
{
    if (profile->rule_count > CHECK_RULES_MAX)
        return err_set(err, ERR_LIMIT, "%zu rules; at most %d", profile->rule_count,
                       CHECK_RULES_MAX);
    size_t before = out->len;
    int r = put_head(out, profile, err);
    for (size_t i = 0; r == 0 && i < profile->rule_count; i++)
        r = put_rule(out, &profile->rules[i], err);
    if (r == 0 && out->len - before > CHECK_RULESET_MAX)
        r = ERR_LIMIT;
    if (r < 0 && err && !err->code)
        err_set(err, r, "the rules of %.40s do not fit %d bytes", profile->name, CHECK_RULESET_MAX);
    return r;
}

uint64_t check_ruleset_mark(const struct policy_profile *profile)
{
    struct buf b;
    uint64_t mark = 0;
    if (policy_profile_find(profile->name) == profile)
        return 0;
    buf_init(&b, CHECK_RULESET_MAX + 1);
    if (check_ruleset_encode(profile, &b, NULL) == 0 &&
        buf_add(&b, profile->packages ? "p" : "-", 1) == 0) /* which does not travel with them */
        mark = (uint64_t)hash_bytes(HASH_START, b.data, b.len) << 32 |
               hash_bytes(~HASH_START, b.data, b.len);
    buf_done(&b);
    return mark ? mark : UINT64_MAX;
}

/* A text whose end is noted, so that it can be closed once everything is read. */
static const char *text(struct wire_cursor *c, char ***ends)
{
    size_t len;
    const char *s = wire_cbor_get_text(c, &len);
    if (len > CHECK_RULE_TEXT_MAX)
        c->bad = true;
    if (!c->bad)
        *(*ends)++ = (char *)(uintptr_t)s + len;
    return s;
}

static bool flag(struct wire_cursor *c)
{
    uint64_t n = wire_cbor_get_uint(c);
    if (n > 1)
        c->bad = true;
    return n == 1;
}

static void head(struct wire_cursor *c, struct policy_profile *p, char ***ends)
{
    if (wire_cbor_get_uint(c) != VERSION)
        c->bad = true;
    p->name = text(c, ends);
    p->summary = text(c, ends);
    uint64_t mode = wire_cbor_get_uint(c);
    if (mode >= POLICY_IMPORT_MODE_COUNT)
        c->bad = true;
    p->imports = (enum policy_import_mode)mode;
    p->guards = flag(c);
    p->threads = flag(c);
    p->compute_only = flag(c);
    p->files = flag(c);
    p->source_max = wire_cbor_get_uint(c);
    if (p->source_max < 1 || p->source_max > SOURCE_MAX_MAX)
        c->bad = true;
}

static void read_rule(struct wire_cursor *c, struct policy_rule *rule, char ***ends)
{
    uint64_t kind = wire_cbor_get_uint(c);
    if (kind >= POLICY_RULE_KIND_COUNT)
        c->bad = true;
    rule->kind = (enum policy_rule_kind)kind;
    rule->name = text(c, ends);
    rule->id = text(c, ends);
    rule->reason = text(c, ends);
    rule->hint = text(c, ends);
}

static int decode(struct check_ruleset *set, const void *data, size_t len, struct err *err)
{
    if (len > CHECK_RULESET_MAX)
        return err_set(err, ERR_LIMIT, "a rule set of %zu bytes; at most %d", len,
                       CHECK_RULESET_MAX);
    char *copy = arena_memdup(&set->arena, data, len);
    if (!copy)
        return err_set(err, ERR_MEMORY, "no memory for a rule set");
    struct wire_cursor c = {(unsigned char *)copy, (unsigned char *)copy + len, false};
    size_t items = wire_cbor_get_array(&c);
    if (c.bad || items < HEAD_ITEMS || (items - HEAD_ITEMS) % RULE_ITEMS ||
        (items - HEAD_ITEMS) / RULE_ITEMS > CHECK_RULES_MAX)
        return err_set(err, ERR_FORMAT, "a rule set with %zu items", items);
    size_t n = (items - HEAD_ITEMS) / RULE_ITEMS;
    struct policy_rule *rules = arena_alloc(&set->arena, (n + 1) * sizeof *rules);
    char **ends = arena_alloc(&set->arena, (2 + 4 * n) * sizeof *ends), **end = ends;
    if (!rules || !ends)
        return err_set(err, ERR_MEMORY, "no memory for %zu rules", n);
    head(&c, &set->profile, &end);
    for (size_t i = 0; i < n && !c.bad; i++)
        read_rule(&c, &rules[i], &end);
    if (c.bad || c.at != c.end)
        return err_set(err, ERR_FORMAT, "the rule set breaks at byte %zu of %zu",
                       (size_t)((char *)(uintptr_t)c.at - copy), len);
    while (end > ends)
        **--end = 0;
    set->profile.rules = rules;
    set->profile.rule_count = n;
    return check_ruleset_index(set, err);
}

int check_ruleset_decode(const void *data, size_t len, struct check_ruleset **ret_set,
                         struct err *err)
{
    struct check_ruleset *set = check_ruleset_alloc();
    if (!set)
        return err_set(err, ERR_MEMORY, "no memory for a rule set");
    int r = decode(set, data, len, err);
    if (r < 0) {
        check_ruleset_free(set);
        return r;
    }
    *ret_set = set;
    return 0;
}
