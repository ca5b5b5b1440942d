/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a run and what may follow what, in one table. A transition that is not in it is a fault of ours: the
 * supervisor stops at the assertion, and the init above the guest ends it. */
#include "jail/supervisor/running.h"

#define MAY(state) (1U << JAIL_RUN_##state)

static const unsigned may_follow[] = {
    [JAIL_RUN_STARTING] = MAY(RUNNING),
    [JAIL_RUN_LEASED] = MAY(RUNNING) | MAY(KILLED) | MAY(RELEASED),
    [JAIL_RUN_RUNNING] = MAY(EXITED) | MAY(KILLED) | MAY(DYING) | MAY(RELEASED),
    [JAIL_RUN_EXITED] = MAY(CLOSED),
    [JAIL_RUN_KILLED] = MAY(CLOSED),
    [JAIL_RUN_DYING] = MAY(CLOSED),
    [JAIL_RUN_RELEASED] = MAY(CLOSED),
    [JAIL_RUN_CLOSED] = 0,
};

void jail_run_enter(struct jail_run *run, enum jail_run_state next)
{
    base_assert(may_follow[run->state] & 1U << next);
    run->state = next;
}

bool jail_run_ended(const struct jail_run *run)
{
    return run->state >= JAIL_RUN_EXITED;
}
