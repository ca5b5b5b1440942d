/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `cordon doctor` that is not the jail's: whether policy, state folder, gate and audit let a run begin.
 *
 * Takes:   this user's policy and state folder, opened as a run opens them.
 * Gives:   what stands in the way, and the operator's list, each line of it looked up.
 * Never:   ticks what nobody looked at.
 * Runs in: `cordon doctor`.
 */
#ifndef PROG_CORDON_DOCTOR_CONTEXT_H
#define PROG_CORDON_DOCTOR_CONTEXT_H

#include "base/err.h"
#include "flow/context.h"

#include <stdbool.h>

struct doctor_context {
    struct flow_context context;
    const char *part; /* that failed: policy, or state; NULL: none did */
    struct err why;
};

void doctor_context_open(struct doctor_context *h);
void doctor_context_close(struct doctor_context *h);

/* RAN: a program ran behind every layer. CGROUP: one can be had. */
void doctor_checklist(const struct doctor_context *h, bool ran, bool cgroup);

#endif
