/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `cordon approve` share.
 *
 * Takes:   approvals as the gate has them.
 * Gives:   JSON; what a client of `cordon serve` asked by its tool.
 * Never:   decides who may answer: that is the gate's.
 * Runs in: cordon, for `cordon approve`; a runner of cordond.
 */
#ifndef PROG_APPROVE_H
#define PROG_APPROVE_H

#include "base/jsonw.h"
#include "gate/approval.h"

/* One object; WHOLE: with arguments and code. */
void approve_json(struct jsonw *j, const struct gate_approval *a, bool whole);
/* By its name alone: a program that takes that name has the user's rights already. */
bool approve_started_by_cordond(void);
/* The tool `approvals`: an action, an id and a reason come by standard input, an object goes to standard output. */
ERR_MUST_USE int approve_served(const char *policy, struct arena *mem, struct err *err);

#endif
