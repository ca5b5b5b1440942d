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

struct office_event {
    struct gate_event event; /* its strings are below */
    char client[64], tool[32], run[40], subject[96], detail[320];
};

struct office {
    struct flow_house house;
    struct gate *gate; /* the house's, or our own where nothing else may be waited for */
    struct gate_config bare;
    struct gate_lineage self;
    char who[96];                /* uid 1000, pid 4242, terminal 136:3 */
    struct office_event *events; /* what happened and is still to be recorded */
    size_t nevents;
};

/* Where the machine's policy names the state folder, it is that one; root may still look into others. A policy that
 * cannot be read is no reason not to look after what runs: then the environment names the folder. */
void office_pin_state(void);

/* Everything: policy, audit, gate. */
ERR_MUST_USE int office_open(struct office *o, struct err *err);
/* The gate alone, whatever state the rest is in; what happens is kept until office_record. */
ERR_MUST_USE int office_open_bare(struct office *o, struct err *err);
/* Writes down what was kept. An error says that it was not. */
ERR_MUST_USE int office_record(struct office *o, struct err *err);
/* ERR_STATE: something that happened could not be recorded. */
ERR_MUST_USE int office_close(struct office *o, struct err *err);

#endif
