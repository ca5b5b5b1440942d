/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as text: what is in force, whole, and where each value came from.
 *
 * Takes:   a policy; the part that is asked for.
 * Gives:   YAML that the reader takes again and that means the same; or JSON.
 * Never:   leaves a value out because it is the default.
 * Runs in: `cordon policy show`.
 */
#ifndef POLICY_SHOW_H
#define POLICY_SHOW_H

#include "base/buf.h"
#include "policy/policy.h"

/* PART: NULL for all, a section (limits), a key (limits.timeout), or a thing by name (roles.explore,
 * profiles.strict). ORIGIN: as a comment behind each line, or {"value", "origin"} in JSON. *ret_found is false when
 * there is no such part. ERR_MEMORY, ERR_LIMIT of OUT. */
ERR_MUST_USE int policy_show_yaml(const struct policy *p, const char *part, bool origin,
                                  struct buf *out, bool *ret_found);
ERR_MUST_USE int policy_show_json(const struct policy *p, const char *part, bool origin,
                                  struct buf *out, bool *ret_found);

/* "built-in", or "FILE:LINE". */
void policy_origin_text(const struct policy *p, struct policy_origin from, char *out, size_t size);

#endif
