/* SPDX-License-Identifier: Apache-2.0 */
/* The gate as the commands around it need it: open, in the right state folder, as the right user.
 *
 * Takes:   the environment, the policy.
 * Gives:   an open gate whose events are recorded, and who is asking, as the kernel knows it.
 * Never:   works in a user's folder as root: it becomes that user first.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_ADMIN_H
#define PROG_CORDON_ADMIN_H

#include "flow/context.h"
#include "gate/lineage.h"

struct admin_event {
    struct gate_event event; /* its strings are below */
    char client[64], tool[32], run[40], subject[96], detail[320];
};

struct admin {
    struct flow_context context;
    struct gate *gate; /* the context's, or our own where nothing else may be waited for */
    struct gate_config bare;
    struct gate_lineage self;
    char who[96];               /* uid 1000, pid 4242, terminal 136:3 */
    struct admin_event *events; /* what happened and is still to be recorded */
    size_t nevents;
};

/* Where the machine's policy names the state folder, it is that one; root may still look into others. A policy that
 * cannot be read is no reason not to look after what runs: then the environment names the folder. */
void admin_pin_state(void);

/* Everything: policy (POLICY on top of it; NULL: none), audit, gate. */
ERR_MUST_USE int admin_open(struct admin *o, struct err *err);
ERR_MUST_USE int admin_open_policy(struct admin *o, const char *policy, struct err *err);
/* The gate alone, whatever state the rest is in; what happens is kept until admin_record. */
ERR_MUST_USE int admin_open_bare(struct admin *o, struct err *err);
/* Writes down what was kept. An error says that it was not. */
ERR_MUST_USE int admin_record(struct admin *o, struct err *err);
/* ERR_STATE: something that happened could not be recorded. */
ERR_MUST_USE int admin_close(struct admin *o, struct err *err);

#endif
