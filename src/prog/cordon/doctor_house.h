/* The part of `cordon doctor` that is not the jail's: whether policy, state folder, gate and audit let a run begin.
 *
 * Takes:   this user's policy and state folder, opened as a run opens them.
 * Gives:   what stands in the way, and the operator's list, each line of it looked up.
 * Never:   ticks what nobody looked at.
 * Runs in: `cordon doctor`.
 */
#ifndef PROG_CORDON_DOCTOR_HOUSE_H
#define PROG_CORDON_DOCTOR_HOUSE_H

#include "base/err.h"
#include "flow/house.h"

#include <stdbool.h>

struct doctor_house {
    struct flow_house house;
    const char *part; /* that failed: policy, or state; NULL: none did */
    struct err why;
};

void doctor_house_open(struct doctor_house *h);
void doctor_house_close(struct doctor_house *h);

/* RAN: a program ran behind every layer. CGROUP: one can be had. */
void doctor_checklist(const struct doctor_house *h, bool ran, bool cgroup);

#endif
