/* The gate as the commands around it need it: open, in the right state folder, as the right user.
 *
 * Takes:   the environment, the policy.
 * Gives:   an open gate whose events are recorded, and who is asking, as the kernel knows it.
 * Never:   works in a user's folder as root: it becomes that user first.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_OFFICE_H
#define PROG_CORDON_OFFICE_H

#include "flow/house.h"
#include "gate/lineage.h"

struct office {
    struct flow_house house;
    struct gate *gate; /* the house's, or our own where the house could not be had */
    struct gate_config bare;
    struct gate_lineage self;
    char who[96];          /* uid 1000, pid 4242, terminal 136:3 */
    struct err unrecorded; /* why nothing is recorded; code 0: it is */
};

/* EMERGENCY: works also where policy or audit are broken, and then says in `unrecorded` why. */
ERR_MUST_USE int office_open(struct office *o, bool emergency, struct err *err);
/* ERR_STATE: something that happened could not be recorded. */
ERR_MUST_USE int office_close(struct office *o, struct err *err);

#endif
