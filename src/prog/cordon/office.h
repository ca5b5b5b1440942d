/* The gate as the commands around it need it: open, in the right state folder, as the right user.
 *
 * Takes:   the environment, the policy.
 * Gives:   an open gate whose events are recorded, and who is asking, as the kernel knows it.
 * Never:   works in a user's folder as root: it becomes that user first.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_OFFICE_H
#define PROG_CORDON_OFFICE_H

#include "gate/gate.h"
#include "gate/lineage.h"

struct office {
    struct gate *gate;
    struct gate_config config;
    struct gate_lineage self;
    char who[96]; /* uid 1000, pid 4242, terminal 136:3 */
    char approvals[4096];
};

ERR_MUST_USE int office_open(struct office *o, struct err *err);
void office_close(struct office *o);

#endif
