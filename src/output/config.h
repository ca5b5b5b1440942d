/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the cleaning, as policy and a run's own facts make them.
 *
 * Takes:   a policy, the environment, what is internal to this run.
 * Gives:   compiled rules for its streams.
 * Never:   lets a label tell what it stands for beyond its kind.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_CONFIG_H
#define OUTPUT_CONFIG_H

#include "output/clean.h"
#include "policy/policy.h"

/* A path that the guest must not learn, and the word for it: {"/var/lib/cordon", "/STATE"}. Taken as written
 * and as the links in it resolve. */
struct output_internal {
    const char *path, *label;
};

/* The working folder and the home folder of the caller are added by this call (/CALLER and /home/USER), and
 * the folder of our own programs (/CORDON); so are output.scrub_paths (/INTERNAL). ENV: environ. GUEST_ENV: what
 * --env gives to the program, whose secrets it may print. */
ERR_MUST_USE int output_rules_for(const struct policy *p, const char *const *env,
                                  const char *const *guest_env, size_t nguest_env,
                                  const struct output_internal *internal, size_t count,
                                  struct output_rules **ret_rules, struct err *err);

/* How text in results is escaped under PROFILE (NULL: a plain program). */
enum output_escape output_escape_for(const struct policy *p, const struct policy_profile *profile);

#endif
