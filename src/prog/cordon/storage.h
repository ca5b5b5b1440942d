/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the host's disks, before a run may write to them.
 *
 * Takes:   a folder that a run may write in (--rw), or that takes what it leaves (--out); the policy.
 * Gives:   a refusal by name where its disk has less room than the policy keeps free.
 * Never:   writes; looks at a disk that nothing of the run is written to: /workspace and /tmp are memory with a quota.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_STORAGE_H
#define PROG_CORDON_STORAGE_H

#include "base/err.h"
#include "jail/spec.h"
#include "policy/policy.h"

/* OPTION is --rw or --out, SHOWN the folder as it was given. ERR_LIMIT: there is too little. */
ERR_MUST_USE int storage_check(const char *option, const char *shown, int folder,
                               const struct policy *policy, struct err *err);
/* Each folder of SPEC that the run may write in. One that cannot be opened is left to whoever binds it. */
ERR_MUST_USE int storage_check_binds(const struct jail_spec *spec, const struct policy *policy,
                                     struct err *err);

#endif
