/* SPDX-License-Identifier: Apache-2.0 */
/* Rule sets: what is looked up, what wins over what, and which bytes are refused on the wire. */
#include "base/tap.h"
#include "check/ruleset.h"
#include "wire/cbor.h"

#define R(k, n)                                                                                    \
    {                                                                                              \
        POLICY_##k, n, "py.test." #k, "r", "h"                                                     \
    }

static const struct policy_rule some[] = {
    R(IMPORT_ALLOW, "json"),
    R(IMPORT_ALLOW, "code_api.search"),
    R(IMPORT_ALLOW, "os.path"),
    R(MODULE_DENY, "os"),
    R(MODULE_DENY, "json.tool"),
    R(CALL_DENY, "eval"),
    R(NAME_DENY, "eval"),
    R(ATTRIBUTE_DENY, "_*"),
    R(ATTRIBUTE_DENY, "__x*"),
    R(ATTRIBUTE_DENY, "__class__"),
    R(ATTRIBUTE_DENY, "mro"),
    R(ATTRIBUTE_ALLOW, "__init__"),
    R(ATTRIBUTE_ALLOW, "__class__"),
    R(ATTRIBUTE_ALLOW, "_as*"),
    R(EVENT_DENY, "*"),
    R(CONSTRUCT_DENY, "metaclass"),
};
static const struct policy_profile listed = {
    .name = "test",
    .summary = "s",
    .imports = POLICY_IMPORTS_LISTED,
    .guards = true,
    .source_max = 100,
    .rules = some,
    .rule_count = sizeof some / sizeof *some,
};

static const char *import(const struct check_ruleset *set, const char *module)
{
    const struct policy_rule *allowed,
        *r = check_ruleset_import(set, module, strlen(module), &allowed);
    return r ? r->name : allowed ? "allowed" : "passes";
}

static const char *attribute(const struct check_ruleset *set, const char *name)
{
    const struct policy_rule *r = check_ruleset_attribute(set, name, strlen(name));
    return r ? r->name : "passes";
}

static const char *match(const struct check_ruleset *set, enum policy_rule_kind kind,
                         const char *name)
{
    const struct policy_rule *r = check_ruleset_match(set, kind, name, strlen(name));
    return r ? r->name : "none";
}

static void questions(const struct check_ruleset *set)
{
    tap_eq_str(import(set, "json"), "allowed", "a listed module is allowed");
    tap_eq_str(import(set, "json.decoder"), "allowed", "a module below a listed module is allowed");
    tap_eq_str(import(set, "json.tool"), "json.tool",
               "a refused module below a listed one is refused");
    tap_eq_str(import(set, "json.tool.x"), "json.tool",
               "a module below a refused module is refused");
    tap_eq_str(import(set, "jsonx"), "unlisted-import",
               "a module whose name only begins like a listed one is refused");
    tap_eq_str(import(set, "code_api"), "unlisted-import",
               "the parent of a listed module is refused");
    tap_eq_str(import(set, "code_api.search"), "allowed", "a listed submodule is allowed");
    tap_eq_str(import(set, "code_api.other"), "unlisted-import",
               "a sibling of a listed submodule is refused");
    tap_eq_str(import(set, "os"), "os", "a refused module is refused");
    tap_eq_str(import(set, "os.path"), "allowed", "a listed module below a refused one is allowed");
    tap_eq_str(import(set, "os.other"), "os", "what lies below a refused module is refused");
    tap_eq_str(import(set, "math"), "unlisted-import",
               "an unlisted module is refused by the built-in rule");
    tap_eq_str(import(set, ""), "unlisted-import", "an import without a name is refused");
    tap_eq_str(attribute(set, "name"), "passes", "an ordinary attribute passes");
    tap_eq_str(attribute(set, "mro"), "mro", "an attribute that is refused by its name is refused");
    tap_eq_str(attribute(set, "mrow"), "passes",
               "an attribute whose name is longer than a refused one passes");
    tap_eq_str(attribute(set, "_x"), "_*", "an attribute that a pattern refuses is refused");
    tap_eq_str(attribute(set, "__xy"), "__x*",
               "the longer of two patterns decides on an attribute");
    tap_eq_str(attribute(set, "__init__"), "passes", "a permission by name wins over a pattern");
    tap_eq_str(attribute(set, "__class__"), "__class__",
               "a refusal by name wins over a permission by name");
    tap_eq_str(attribute(set, "_asdict"), "passes",
               "a longer pattern that permits wins over a shorter one that refuses");
    tap_eq_str(attribute(set, ""), "passes", "an attribute without a name passes");
    tap_eq_str(match(set, POLICY_CALL_DENY, "eval"), "eval",
               "a rule about attributes does not refuse a call");
    tap_eq_str(match(set, POLICY_NAME_DENY, "eval"), "eval", "kinds are apart: name");
    tap_eq_str(match(set, POLICY_ATTRIBUTE_DENY, "eval"), "none", "kinds are apart: attribute");
    tap_eq_str(match(set, POLICY_EVENT_DENY, "anything"), "*",
               "the pattern for everything refuses a name");
    tap_eq_str(match(set, POLICY_EVENT_REPORT, "anything"), "none",
               "the pattern for everything matches its own kind only");
    tap_ok(check_ruleset_construct(set, POLICY_CONSTRUCT_METACLASS) != NULL,
           "a construct that is refused has its rule");
    tap_ok(!check_ruleset_construct(set, POLICY_CONSTRUCT_BARE_CR),
           "a construct without a rule passes");
}

static void refuse_table(const struct policy_rule *rules, size_t n, const char *want,
                         const char *what)
{
    struct policy_profile p = listed;
    struct check_ruleset *set = NULL;
    struct err err = ERR_INIT;
    p.rules = rules;
    p.rule_count = n;
    int r = check_ruleset_new(&p, &set, &err);
    tap_ok(r < 0 && !set && strstr(err.msg, want), "%s: %s", what, err.msg);
}

static void tables(void)
{
    const struct policy_rule twice[] = {R(CALL_DENY, "eval"), R(CALL_DENY, "eval")};
    const struct policy_rule twice_pattern[] = {R(EVENT_DENY, "a*"), R(EVENT_DENY, "a*")};
    const struct policy_rule construct[] = {R(CONSTRUCT_DENY, "goto")};
    const struct policy_rule star[] = {R(CALL_DENY, "e*l")};
    const struct policy_rule module_star[] = {R(MODULE_DENY, "os*")};
    const struct policy_rule empty[] = {R(CALL_DENY, "")};
    const struct policy_rule member[] = {R(MEMBER_DENY, "path")};
    refuse_table(twice, 2, "ruled twice", "a rule twice");
    refuse_table(twice_pattern, 2, "ruled twice", "a pattern twice");
    refuse_table(construct, 1, "no such construct", "an unknown construct");
    refuse_table(star, 1, "no pattern", "a star in the middle");
    refuse_table(module_star, 1, "no pattern", "a pattern of modules");
    refuse_table(empty, 1, "a name", "a rule without a name");
    refuse_table(member, 1, "is not MODULE.MEMBER", "a member without a module");
    refuse_table(some, CHECK_RULES_MAX + 1, "at most", "too many rules");
}

static int decode(const void *data, size_t len)
{
    struct check_ruleset *set = NULL;
    struct err err = ERR_INIT;
    int r = check_ruleset_decode(data, len, &set, &err);
    check_ruleset_free(set);
    return r < 0 ? err.code : 0;
}

static void wire(const struct policy_profile *p)
{
    struct buf b;
    struct err err = ERR_INIT;
    buf_init(&b, CHECK_RULESET_MAX);
    tap_eq_int(check_ruleset_encode(p, &b, &err), 0, "%s: a ruleset is encoded", p->name);
    struct check_ruleset *set = NULL;
    if (!tap_ok(check_ruleset_decode(b.data, b.len, &set, &err) == 0, "%s: decoded (%zu bytes) %s",
                p->name, b.len, err.msg))
        return;
    const struct policy_profile *q = check_ruleset_profile(set);
    size_t same = 0;
    for (size_t i = 0; i < p->rule_count && q->rule_count == p->rule_count; i++)
        same += p->rules[i].kind == q->rules[i].kind &&
                strcmp(p->rules[i].name, q->rules[i].name) == 0 &&
                strcmp(p->rules[i].id, q->rules[i].id) == 0 &&
                strcmp(p->rules[i].reason, q->rules[i].reason) == 0 &&
                strcmp(p->rules[i].hint, q->rules[i].hint) == 0;
    tap_eq_int(same, p->rule_count, "%s: every rule arrives", p->name);
    tap_ok(strcmp(p->name, q->name) == 0 && strcmp(p->summary, q->summary) == 0 &&
               p->imports == q->imports && p->guards == q->guards && p->threads == q->threads &&
               p->compute_only == q->compute_only && p->files == q->files &&
               p->source_max == q->source_max,
           "%s: every switch arrives", p->name);
    if (p == &listed)
        questions(set);
    check_ruleset_free(set);

    size_t accepted = 0;
    for (size_t cut = 0; cut < b.len; cut++)
        accepted += decode(b.data, cut) == 0;
    tap_eq_int(accepted, 0, "%s: cut anywhere, it is refused", p->name);
    tap_eq_int(buf_str(&b, "x"), 0, "a ruleset with one byte more is made");
    tap_eq_int(decode(b.data, b.len), ERR_FORMAT, "%s: a byte too many is refused", p->name);
    buf_done(&b);
}

/* A frame with one field changed. */
static int changed(int field, uint64_t value)
{
    const uint64_t plain[] = {3, 0, 0, 1, 1, 0, 0, 0, 100, POLICY_CALL_DENY};
    struct buf b;
    buf_init(&b, 4096);
    int r = wire_cbor_put_head(&b, WIRE_KIND_ARRAY, 14);
    for (int i = 0; i < 10; i++) {
        uint64_t n = i == field ? value : plain[i];
        r |= i == 1 || i == 2 ? wire_cbor_put_text(&b, "t", 1) : wire_cbor_put_uint(&b, n);
    }
    for (int i = 0; i < 4; i++)
        r |= wire_cbor_put_text(&b, "eval", 4);
    base_assert(r == 0);
    r = decode(b.data, b.len);
    buf_done(&b);
    return r;
}

static void limits(void)
{
    tap_eq_int(changed(-1, 0), 0, "the plain frame is accepted");
    tap_eq_int(changed(0, 1), ERR_FORMAT, "a frame of another version is refused");
    tap_eq_int(changed(3, POLICY_IMPORT_MODE_COUNT), ERR_FORMAT,
               "a frame with an unknown import mode is refused");
    tap_eq_int(changed(4, 2), ERR_FORMAT,
               "a frame with a switch that is neither on nor off is refused");
    tap_eq_int(changed(8, 0), ERR_FORMAT, "a frame without a size is refused");
    tap_eq_int(changed(8, 1ULL << 40), ERR_FORMAT,
               "a frame with a size beyond the ceiling is refused");
    tap_eq_int(changed(9, POLICY_RULE_KIND_COUNT), ERR_FORMAT,
               "a frame with an unknown kind is refused");
    static char big[CHECK_RULESET_MAX + 1];
    tap_eq_int(decode(big, sizeof big), ERR_LIMIT, "more bytes than a set may have are refused");

    static char text[CHECK_RULE_TEXT_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    struct policy_profile p = listed;
    struct err err = ERR_INIT;
    struct buf b;
    buf_init(&b, CHECK_RULESET_MAX);
    p.summary = text;
    tap_eq_int(check_ruleset_encode(&p, &b, &err), ERR_LIMIT, "a text that is too long: %s",
               err.msg);
    buf_done(&b);
    buf_init(&b, 100);
    err = (struct err)ERR_INIT;
    tap_eq_int(check_ruleset_encode(&listed, &b, &err), ERR_LIMIT, "no room: %s", err.msg);
    buf_done(&b);
}

static void marks(void)
{
    const struct policy_profile *strict = policy_profile_find("strict");
    struct policy_rule more[1] = {
        {POLICY_MODULE_DENY, "json", "py.module-deny.json", "", "do without"}};
    struct policy_profile one = {.name = "one", .summary = "", .rules = more, .rule_count = 1},
                          other = one;
    tap_ok(check_ruleset_mark(strict) == 0 && check_ruleset_mark(policy_profile_find("open")) == 0,
           "a built-in profile as it is has no mark");
    tap_ok(check_ruleset_mark(&one) != 0 && check_ruleset_mark(&one) == check_ruleset_mark(&other),
           "the same rules have the same mark");
    other.compute_only = true;
    tap_ok(check_ruleset_mark(&one) != check_ruleset_mark(&other), "a switch changes the mark");
    other = one;
    other.packages = true;
    tap_ok(check_ruleset_mark(&one) != check_ruleset_mark(&other),
           "packages on the path change the mark");
    other = *strict;
    tap_ok(check_ruleset_mark(&other) != 0, "a profile of a built-in name is not the built-in one");
    const uint64_t before = check_ruleset_mark(&one);
    more[0].name = "csv";
    tap_ok(check_ruleset_mark(&one) != before, "the name of a rule changes the mark");
}

int main(void)
{
    struct check_ruleset *set = NULL;
    struct err err = ERR_INIT;
    tap_eq_int(check_ruleset_new(&listed, &set, &err), 0, "the ruleset of a profile is made");
    questions(set);
    check_ruleset_free(set);
    struct policy_profile any = listed;
    any.imports = POLICY_IMPORTS_ANY;
    tap_eq_int(check_ruleset_new(&any, &set, &err), 0, "a ruleset with any imports is made");
    tap_eq_str(import(set, "math"), "passes", "with any imports an unlisted module passes");
    tap_eq_str(import(set, "os"), "os", "with any imports a refused module is refused");
    check_ruleset_free(set);
    check_ruleset_free(NULL);
    tables();
    wire(&listed);
    for (const struct policy_profile *const *p = policy_profiles(); *p; p++)
        wire(*p);
    limits();
    marks();
    return tap_done();
}
