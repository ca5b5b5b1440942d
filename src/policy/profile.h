/* SPDX-License-Identifier: Apache-2.0 */
/* A profile: the table of rules that a program is judged by, and the few switches beside it.
 *
 * Takes:   the name of a profile.
 * Gives:   plain data that lives as long as the program: built-in tables come from policies/NAME.yaml by
 *          the build, an operator's own are made of the same structs.
 * Never:   decides anything: the judge, the guards and the audit hook read these tables.
 * Runs in: `cordon`, cordon-holder, the workers.
 */
#ifndef POLICY_PROFILE_H
#define POLICY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a rule is about: enum name, word in YAML, who reads it and what `name` means.
 *
 * A `name` is exact, or ends in `*` and then stands for every name that begins so (never for
 * modules: there a rule for `a` covers `a.b` as well). An exact rule beats a pattern, a longer module
 * name beats a shorter one, and of two equal ones the refusal wins. Where guards are on and no rule is called
 * `_*`, patterns say nothing of private names (`_x`, `__x`): the guards decide them by whose object it is.
 * The number of a kind travels on the channel: append, never reorder. */
#define POLICY_RULE_KINDS(X)                                                                       \
    X(IMPORT_ALLOW, "import-allow", "judge, guards: module that may be imported")                  \
    X(MODULE_DENY, "module-deny", "judge, guards: module that may not, in either import mode")     \
    X(MEMBER_ALLOW, "member-allow",                                                                \
      "facade: module.member that is shown; then the others are not")                              \
    X(MEMBER_DENY, "member-deny", "judge, facade: module.member that is never shown")              \
    X(CALL_DENY, "call-deny", "judge: builtin that may be neither called nor referred to")         \
    X(CALL_WORD_DENY, "call-word-deny", "judge: a call of this word, also of one's own function")  \
    X(NAME_DENY, "name-deny", "judge: any use of this identifier, as any of the 14 fields")        \
    X(ATTRIBUTE_DENY, "attribute-deny", "judge, guards: attribute, also in patterns and formats")  \
    X(ATTRIBUTE_ALLOW, "attribute-allow", "judge, guards: attribute that a pattern would refuse")  \
    X(SUBSCRIPT_DENY, "subscript-deny", "judge, guards: constant string used as a key")            \
    X(METHOD_DENY, "descriptor-method", "judge: method that may not be defined or assigned")       \
    X(CONSTRUCT_DENY, "construct-deny", "judge: a form of the language, of POLICY_CONSTRUCTS")     \
    X(EVENT_DENY, "event-deny", "audit hook: event that is refused and reported")                  \
    X(EVENT_REPORT, "event-report", "audit hook: event that is reported and goes on")              \
    X(BUILTIN_REMOVE, "builtin-remove", "guards: builtin that is not there at run time")           \
    X(FACADE, "facade", "guards: module that is shown through a facade")                           \
    X(PRELOAD, "preload", "template: module that is imported before the fork")

enum policy_rule_kind {
#define POLICY_RULE_ENUM(name, word, text) POLICY_##name,
    POLICY_RULE_KINDS(POLICY_RULE_ENUM)
#undef POLICY_RULE_ENUM
        POLICY_RULE_KIND_COUNT
};

/* The forms of the language that have no name of their own: `name` of a construct-deny rule. */
#define POLICY_CONSTRUCTS(X)                                                                       \
    X(METACLASS, "metaclass")             /* class A(metaclass=M), class A(**kw) */                \
    X(UNLISTED_IMPORT, "unlisted-import") /* import mode `listed`: a module that no rule names */  \
    X(STAR_IMPORT, "star-import")         /* from m import * */                                    \
    X(RELATIVE_IMPORT, "relative-import") /* from . import m */                                    \
    X(FORMAT_FIELD, "format-field")       /* '{0.x}' with an attribute that is refused */          \
    X(STRING_ANNOTATION, "string-annotation") /* code in a string that names what is refused */    \
    X(ENCODING_COOKIE, "encoding-cookie")     /* # coding: anything but utf-8 */                   \
    X(BARE_CR, "bare-cr")               /* a carriage return that is not before a line feed */     \
    X(PRIVATE_MEMBER, "private-member") /* m._x, from m import _x: a module's inside */            \
    X(EXCEPT_STAR, "except-star")       /* try: ... except* T: ... */                              \
    X(REBOUND_CALL, "rebound-call")     /* a call of a refused name that the program bound */

enum policy_construct {
#define POLICY_CONSTRUCT_ENUM(name, word) POLICY_CONSTRUCT_##name,
    POLICY_CONSTRUCTS(POLICY_CONSTRUCT_ENUM)
#undef POLICY_CONSTRUCT_ENUM
        POLICY_CONSTRUCT_COUNT
};

/* One line of a table. All strings are strict UTF-8 and never NULL; reason and hint may be empty. */
struct policy_rule {
    enum policy_rule_kind kind;
    const char *name;   /* what it is about */
    const char *id;     /* what reports, audit and operators call it: py.call.eval */
    const char *reason; /* why it is there, one sentence */
    const char *hint;   /* what to write instead, for the author of the program */
};

enum policy_import_mode {
    POLICY_IMPORTS_LISTED, /* only import-allow modules (and what lies below them) */
    POLICY_IMPORTS_ANY,    /* everything but module-deny */
    POLICY_IMPORT_MODE_COUNT
};

struct policy_profile {
    const char *name;    /* strict, locked, standard, open, or an operator's own */
    const char *summary; /* one sentence */
    enum policy_import_mode imports;
    bool guards;         /* the tree is rewritten to guarded access, builtins are restricted */
    bool threads;        /* the guest may start threads */
    bool compute_only;   /* once its imports are loaded, the guest can only compute */
    bool files;          /* its files of /workspace and /tmp are served over the worker's channel */
    bool packages;       /* installed packages, or those of an environment, are on its path */
    uint64_t source_max; /* characters of source */
    const struct policy_rule *rules;
    size_t rule_count;
};

/* A built-in profile, or NULL. The same pointer each time. */
const struct policy_profile *policy_profile_find(const char *name);
/* The built-in profiles, ended by NULL; strict comes first and is the default. */
const struct policy_profile *const *policy_profiles(void);

/* Whether rules of the language hold: some judge of source code reads one of them, or the guards do. Without that the
 * kernel alone contains. */
bool policy_profile_judges(const struct policy_profile *p);

/* How the build writes a table down: places in one text instead of pointers, so that a program that judges
 * nothing does not pay for a thousand relocations at its start. policy_profile_find unpacks. */
struct policy_packed_rule {
    uint8_t kind;
    uint32_t name, id, reason, hint;
};
struct policy_packed_profile {
    struct policy_profile *profile; /* whole but for the contents of its rules */
    struct policy_rule *rules;      /* room for them */
    const struct policy_packed_rule *packed;
    const char *text;
};
extern const struct policy_packed_profile policy_packed_profiles[]; /* ended by NULL */

const char *policy_rule_kind_name(enum policy_rule_kind kind);
/* -1 when WORD is none. */
int policy_rule_kind_find(const char *word);
int policy_construct_find(const char *word);
const char *policy_import_mode_name(enum policy_import_mode mode); /* listed, any */

#endif
