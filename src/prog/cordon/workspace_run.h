/* SPDX-License-Identifier: Apache-2.0 */
/* A run inside a workspace: its files are those of the head, and what it leaves becomes a commit.
 *
 * Takes:   the name of a workspace, the request of a run.
 * Gives:   a request whose /workspace has the head's files below it; after the run a commit by its id, or why there is none.
 * Never:   commits what a run left that did not end well; lets a guest's file be read by this process.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_WORKSPACE_RUN_H
#define PROG_CORDON_WORKSPACE_RUN_H

#include "base/arena.h"
#include "flow/flow.h"
#include "jail_options.h"
#include "workspace_order.h"

struct workspace_run {
    struct workspace_order order;
    const struct flow_request *req;
    char base[41]; /* the commit that the run begins with */
    bool open, discard;
};

/* The workspace that the options name: none, and nothing is done. Before the gate is asked; the context is open. */
ERR_MUST_USE int workspace_run_begin(struct workspace_run *w, const struct jail_options *o,
                                     struct flow_request *req, struct arena *mem, struct err *err);
void workspace_run_done(struct workspace_run *w);

/* Whether the policy, or how the run ended, forbids a commit; WHY says so. */
bool workspace_run_discards(const struct flow_request *req, enum flow_status status, char *why,
                            size_t size);
/* What lies in FILES becomes a commit after BASE, or the result says why not (an error then). */
ERR_MUST_USE int workspace_run_commit(struct workspace_order *o, int files, const char *base,
                                      const char *message, struct flow_result *result);

#endif
