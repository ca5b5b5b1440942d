/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in tables against the required lists, word for word: a rule that gets lost is a test that
 * fails. */
#include "base/tap.h"
#include "policy/profile.h"

static const struct policy_rule *rule(const struct policy_profile *p, const char *kind,
                                      const char *name)
{
    for (size_t i = 0; i < p->rule_count; i++)
        if ((int)p->rules[i].kind == policy_rule_kind_find(kind) &&
            strcmp(p->rules[i].name, name) == 0)
            return &p->rules[i];
    return NULL;
}

static size_t count(const struct policy_profile *p, const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < p->rule_count; i++)
        n += (int)p->rules[i].kind == policy_rule_kind_find(kind);
    return n;
}

static void all(const struct policy_profile *p, const char *kind, const char *const *names,
                size_t want)
{
    size_t n = 0;
    for (; names[n]; n++)
        tap_ok(rule(p, kind, names[n]) != NULL, "%s: %s %s", p->name, kind, names[n]);
    tap_eq_int(n, want, "%s: all %zu required rules of %s", p->name, want, kind);
}

static const char *const modules[] = {
    "os",       "sys",   "subprocess",      "socket",    "shutil",  "pathlib",
    "tempfile", "code",  "multiprocessing", "threading", "ctypes",  "pickle",
    "codeop",   "runpy", "importlib",       "builtins",  "pkgutil", NULL};
static const char *const calls[] = {"__import__", "eval",    "exec",    "compile", "open",
                                    "getattr",    "setattr", "delattr", "hasattr", "globals",
                                    "locals",     "vars",    "dir",     "input",   "breakpoint",
                                    "memoryview", NULL};
static const char *const attributes[] = {
    "__class__",   "__bases__",     "__subclasses__", "__mro__",      "__dict__",
    "__globals__", "__locals__",    "__code__",       "__builtins__", "__closure__",
    "__func__",    "__self__",      "__module__",     "__qualname__", "__annotations__",
    "__reduce__",  "__reduce_ex__", "__getstate__",   "__setstate__", NULL};
static const char *const imports[] = {"json",
                                      "math",
                                      "datetime",
                                      "itertools",
                                      "functools",
                                      "collections",
                                      "re",
                                      "typing",
                                      "enum",
                                      "dataclasses",
                                      "statistics",
                                      "random",
                                      "string",
                                      "textwrap",
                                      "code_api.search",
                                      "code_api.reranking",
                                      "code_api.filtering",
                                      NULL};
static const char *const patterns[] = {"metaclass", "descriptor", "file", "raw_input", NULL};
static const char *const names[] = {"__loader__", "__spec__", "__cached__", NULL};
static const char *const methods[] = {"__get__", "__set__", "__delete__", NULL};
static const char *const forms[] = {"metaclass",       "unlisted-import", "star-import",
                                    "relative-import", "format-field",    "string-annotation",
                                    "encoding-cookie", "bare-cr",         NULL};

static void required(void)
{
    const struct policy_profile *locked = policy_profile_find("locked");
    tap_ok(locked->guards && !locked->threads && locked->imports == POLICY_IMPORTS_LISTED,
           "locked: guards on, no threads, listed imports only");
    tap_eq_int(locked->source_max, 50000, "locked: a source has at most 50 KB");
    all(locked, "module-deny", modules, 17);
    all(locked, "call-deny", calls, 16);
    all(locked, "attribute-deny", attributes, 19);
    all(locked, "import-allow", imports, 17);
    all(locked, "call-word-deny", patterns, 4);
    all(locked, "name-deny", names, 3);
    all(locked, "descriptor-method", methods, 3);
    all(locked, "construct-deny", forms, 8);
    tap_ok(rule(locked, "call-deny", "type") != NULL, "locked: the pattern `type`");
    for (size_t i = 0; calls[i]; i++)
        tap_ok(rule(locked, "builtin-remove", calls[i]) != NULL,
               "locked: %s is not there at run time either", calls[i]);
    tap_eq_int(count(locked, "module-deny"), 17,
               "locked: 17 modules are forbidden by name, no more");
    tap_eq_int(count(locked, "import-allow"), 37,
               "locked: the 17 imports of the list, and 20 that stand in its table with a reason");
}

static void others(void)
{
    const struct policy_profile *strict = policy_profile_find("strict");
    tap_ok(strict == policy_profiles()[0], "strict is the default");
    tap_ok(strict->guards && !strict->threads && strict->compute_only &&
               strict->imports == POLICY_IMPORTS_LISTED,
           "strict: guards on, no threads, compute only, listed imports only");
    tap_eq_int(strict->source_max, 50000, "strict: a source has at most 50 KB");
    const struct policy_profile *standard = policy_profile_find("standard");
    const struct policy_profile *open = policy_profile_find("open");
    tap_ok(!standard->guards && standard->imports == POLICY_IMPORTS_ANY,
           "standard: any module may be imported");
    tap_eq_int(count(standard, "module-deny"), 0, "standard: the kernel contains modules");
    tap_eq_int(count(standard, "call-deny"), 0, "standard: open, input and type work");
    tap_ok(rule(standard, "attribute-deny", "__subclasses__") != NULL,
           "standard: introspection is not refused");
    tap_ok(!rule(standard, "attribute-deny", "__class__"), "standard: __class__ is not refused");
    tap_eq_int(count(open, "event-deny") + count(open, "event-report"), open->rule_count,
               "open: nothing but events");
    tap_ok(policy_profile_find("loose") == NULL, "there is no other profile");
}

static void every_line(void)
{
    for (const struct policy_profile *const *p = policy_profiles(); *p; p++) {
        size_t silent = 0;
        for (size_t i = 0; i < (*p)->rule_count; i++)
            silent += !(*p)->rules[i].id[0] || !(*p)->rules[i].reason[0];
        tap_eq_int(silent, 0, "%s: every rule has an id and a reason", (*p)->name);
        tap_ok(rule(*p, "event-deny", "sys.addaudithook") != NULL, "%s: one audit hook",
               (*p)->name);
    }
    for (int k = 0; k < POLICY_RULE_KIND_COUNT; k++)
        tap_eq_int(policy_rule_kind_find(policy_rule_kind_name((enum policy_rule_kind)k)), k,
                   "kind %d has a word", k);
    tap_eq_int(policy_rule_kind_find("call-denied"), -1, "an unknown kind has no word");
    tap_eq_int(policy_construct_find(""), -1, "an unknown construct has no word");
    tap_eq_str(policy_rule_kind_name(POLICY_RULE_KIND_COUNT), "unknown",
               "a kind out of range has no word");
}

int main(void)
{
    required();
    others();
    every_line();
    return tap_done();
}
