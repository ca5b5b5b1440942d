/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that the machine's policy has made final: later files and options can only tighten them.
 *
 * Takes:   the policy with its list `final`, a key, two values of it.
 * Gives:   whether the key is final; whether the second value lets less happen than the first.
 * Never:   calls a change tighter that it cannot compare: such a key stays as it is.
 * Runs in: the supervisor; `cordon policy`.
 */
#ifndef POLICY_FINAL_H
#define POLICY_FINAL_H

#include "policy/policy.h"
#include "policy/schema.h"

/* NULL, or why WORD cannot stand in `final`: no key, section or list has that name. */
const char *policy_final_problem(const char *word);

/* Whether AFTER's value of KEY is BEFORE's, or a tighter one. */
bool policy_tightens(const struct policy_key *key, const struct policy *before,
                     const struct policy *after);

#endif
