/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon workspace verify`: whether a clone may be merged.
 *
 * Takes:   the name of a clone, the policy.
 * Gives:   the verdict on each changed source and each command of the policy, and where all are good the gate's on the
 *          patch; where that is good, too, a note in the store that the clone was verified as it is.
 * Never:   runs or judges anything outside a jail; changes the clone.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_WORKSPACE_VERIFY_H
#define PROG_CORDON_WORKSPACE_VERIFY_H

#include "base/err.h"

#include <stdbool.h>

struct workspace_verify {
    const char *profile, *policy; /* NULL: not said */
};

/* The exit status: EXIT_DONE where it was verified, EXIT_FAILED where not; everything has been printed. */
ERR_MUST_USE int workspace_verify(const char *name, const struct workspace_verify *v, bool json,
                                  struct err *err);

#endif
