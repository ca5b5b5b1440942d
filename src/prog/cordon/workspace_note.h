/* SPDX-License-Identifier: Apache-2.0 */
/* A command that changes a workspace, and its record.
 *
 * Takes:   an order that is open, the policy.
 * Gives:   the exit status of the process that carried it out; one record of it in the audit.
 * Never:   returns EXIT_DONE for a change that is not on record.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_WORKSPACE_NOTE_H
#define PROG_CORDON_WORKSPACE_NOTE_H

#include "flow/context.h"
#include "workspace_order.h"

/* Its streams are ours. */
ERR_MUST_USE int workspace_note_run(const struct workspace_order *o, struct flow_context *context,
                                    struct err *err);
/* The record alone. */
ERR_MUST_USE int workspace_note(struct flow_context *context, const struct workspace_order *o,
                                int status, struct err *err);

#endif
