/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a policy as a table: type, bounds and meaning of each, and the words for its values.
 *
 * Takes:   a key's path; a value as text.
 * Gives:   the row; the value in struct policy, or why it is none; the value as text again.
 * Never:   knows more keys than keys.inc and the named sections have.
 * Runs in: the supervisor; `cordon policy`.
 */
#ifndef POLICY_SCHEMA_H
#define POLICY_SCHEMA_H

#include "base/arena.h"
#include "base/buf.h"
#include "policy/policy.h"

enum policy_type {
    POLICY_TYPE_COUNT,
    POLICY_TYPE_MILLIS,
    POLICY_TYPE_BYTES,
    POLICY_TYPE_BOOL,
    POLICY_TYPE_ENUM,
    POLICY_TYPE_NAME,
    POLICY_TYPE_FILE,
    POLICY_TYPE_WORDS,
};

#define POLICY_KEY_MAX 64 /* bytes of a path */

/* Texts in place, not by pointer: the table needs no relocation at the start of a program. */
struct policy_key {
    char path[32];
    enum policy_type type;
    uint32_t offset; /* in struct policy */
    uint64_t min, max;
    char words[56];
};

extern const struct policy_key policy_keys[];
extern const size_t policy_nkeys;

#define POLICY_WORD_MAX      512 /* bytes of one word in a list, a name, a file */
#define POLICY_ROLES_MAX     64
#define POLICY_TOOLS_MAX     256
#define POLICY_JUDGES_MAX    9
#define POLICY_UPSTREAMS_MAX 32
#define POLICY_CLIENTS_MAX   64
#define POLICY_PROFILES_MAX  32
#define POLICY_RULES_MAX     4096 /* as check/ruleset.h */
#define POLICY_TEXT_MAX      1024 /* bytes of one text of a rule */

/* The sections that hold things by name, beside those of the keys. */
extern const char
    *const policy_named[]; /* profiles, roles, tools, naming, upstreams; ended by NULL */

/* -1: there is none. */
int policy_key_find(const char *path);

/* Reads TEXT as a value of KEY (not of a list) into P. 0, or ERR_FORMAT with what would be valid. */
ERR_MUST_USE int policy_value_read(const struct policy_key *key, const char *text,
                                   struct arena *mem, struct policy *p, struct err *err);
/* One item of a list: allowed or not. */
ERR_MUST_USE int policy_word_check(const struct policy_key *key, const char *word, struct err *err);

/* The value as a policy file would have it, a list in brackets. */
ERR_MUST_USE int policy_value_write(const struct policy_key *key, const struct policy *p,
                                    struct buf *out);
/* A scalar as YAML, in quotes where it needs them. */
ERR_MUST_USE int policy_scalar_write(const char *text, struct buf *out);

void policy_millis_text(uint64_t ms, char out[32]);
void policy_bytes_text(uint64_t bytes, char out[32]);

/* The word of WORDS (separated by blanks) at INDEX into OUT; the index of a word or -1; both are for ENUM. */
bool policy_enum_word(const char *words, size_t index, char out[64]);
int policy_enum_find(const char *words, const char *word);
#define POLICY_RISKS   "low medium high critical"
#define POLICY_ANSWERS "text json"
#define POLICY_SHAPES  "openai anthropic"
#define POLICY_PROMPTS "reviewer sceptic" /* rules of model judges that are built in */

bool policy_name_good(const char *s); /* letters, digits, - _ and dots inside; 1 to 64 */

#endif
