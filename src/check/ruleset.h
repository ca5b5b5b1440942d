/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's rules as they travel to a worker, and as a judge looks them up.
 *
 * Takes:   a profile; or the bytes of a RULES message.
 * Gives:   bytes; or a rule set with one hash lookup a name, whose strings lie in its own copy.
 * Never:   accepts a second spelling, an unknown kind or construct, or more than its ceilings.
 * Runs in: `cordon` (encode), the workers (decode).
 */
#ifndef CHECK_RULESET_H
#define CHECK_RULESET_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "policy/profile.h"

#define CHECK_RULES_MAX     4096         /* rules in a set */
#define CHECK_RULE_TEXT_MAX 1024         /* bytes of one string */
#define CHECK_RULESET_MAX   (200 * 1024) /* bytes on the wire: fits a frame with room */

struct check_ruleset;

/* Appends the wire form to OUT. ERR_LIMIT: too many rules, or a string that is too long. */
ERR_MUST_USE int check_ruleset_encode(const struct policy_profile *profile, struct buf *out,
                                      struct err *err);
/* What tells the rules of PROFILE from others; 0: it is built in, as it is. A session that was made by other rules is not called any more. */
uint64_t check_ruleset_mark(const struct policy_profile *profile);
/* Takes a copy of everything: DATA may go. ERR_FORMAT, ERR_LIMIT, ERR_MEMORY. */
ERR_MUST_USE int check_ruleset_decode(const void *data, size_t len, struct check_ruleset **ret_set,
                                      struct err *err);
/* The same from a profile of this process, whose strings must outlive the set. */
ERR_MUST_USE int check_ruleset_new(const struct policy_profile *profile,
                                   struct check_ruleset **ret_set, struct err *err);
void check_ruleset_free(struct check_ruleset *set);

/* Name, switches and all rules in the table's order, for readers that go through them. */
const struct policy_profile *check_ruleset_profile(const struct check_ruleset *set);

/* The rule of KIND that speaks of NAME: the exact one, else the longest pattern; NULL if none does. */
const struct policy_rule *check_ruleset_match(const struct check_ruleset *set,
                                              enum policy_rule_kind kind, const char *name,
                                              size_t len);
/* The refusal that holds for an attribute of this name, with attribute-allow weighed in. */
const struct policy_rule *check_ruleset_attribute(const struct check_ruleset *set, const char *name,
                                                  size_t len);
/* The refusal that holds for a key of this text. Patterns speak of names: `_` alone, `_-` and `_ x` are data. */
const struct policy_rule *check_ruleset_key(const struct check_ruleset *set, const char *text,
                                            size_t len);
/* The refusal that holds for an import of this dotted module, or NULL when it may be imported.
 * A line lists what is below its module, too, but for parts that begin with an underscore.
 * *ret_allowed: the import-allow rule that let it through, or NULL. */
const struct policy_rule *check_ruleset_import(const struct check_ruleset *set, const char *module,
                                               size_t len, const struct policy_rule **ret_allowed);
/* The refusal that holds for MODULE.MEMBER: it is never shown, or the module's members are listed and it is not
 * among them. NULL: no rule speaks of it. */
const struct policy_rule *check_ruleset_member(const struct check_ruleset *set, const char *module,
                                               size_t module_len, const char *member,
                                               size_t member_len);
const struct policy_rule *check_ruleset_construct(const struct check_ruleset *set,
                                                  enum policy_construct construct);

#endif
