/* SPDX-License-Identifier: Apache-2.0 */
/* A session inside a workspace: it has the files of the head, each call that ends well is a commit, and a head that moved
 * meanwhile is what the next call sees.
 *
 * Takes:   the name of a workspace; the note that the last client of the session left; the session's process.
 * Gives:   files in its /workspace; commits by the ids of its calls; the note for the next client.
 * Never:   loses what a session has not committed: then it says why it does not follow the head.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SESSION_WORKSPACE_H
#define PROG_CORDON_SESSION_WORKSPACE_H

#include "flow/flow.h"
#include "pool/pool.h"
#include "pool/pool_client.h"
#include "sys/state.h"
#include "workspace/names.h"
#include "workspace_order.h"

struct session_workspace {
    struct workspace_order order;
    const struct flow_request *req;
    char name[WORKSPACE_FULL_MAX + 1]; /* empty: the session is in none */
    char base[41];                     /* the commit whose files it has, but for what it changed */
    char lower[41];             /* the commit whose checkout it is upon; "-": it has a copy */
    bool dirty;                 /* it has changes that no commit has */
    char behind[200];           /* why it does not have the files of the head; empty: it has */
    int control, guest, layers; /* the session's, of our own */
    char checkout[STATE_PATH_MAX + 256], folder[STATE_PATH_MAX + 256]; /* empty: none, or gone */
    bool open;
};

/* The session that CHILD is, and HOLDER has lent, gets the head of NAME. ERR_USAGE: there is none of this name. */
ERR_MUST_USE int session_workspace_new(const char *name, struct pool_client *holder,
                                       struct jail_child *child, char ret_note[POOL_NOTE + 1],
                                       struct err *err);

/* Before a call: reads NOTE; where the head has moved, and nothing would be lost, CHILD gets its files. An error: the
 * call must not run. */
ERR_MUST_USE int session_workspace_begin(struct session_workspace *w, const char *note,
                                         struct pool_client *holder, struct jail_child *child,
                                         struct err *err);
/* The request commits what its call leaves. */
void session_workspace_request(struct session_workspace *w, struct flow_request *req);
/* Somebody wrote into FILES between two calls: committed as what a call changed is. */
void session_workspace_wrote(struct session_workspace *w, int files, struct flow_result *result);
/* What the next client is told; empty where the session is in no workspace. */
void session_workspace_note(const struct session_workspace *w, char ret[POOL_NOTE + 1]);
void session_workspace_done(struct session_workspace *w);

/* For a branch of a session with NOTE: a clone that begins with the commit whose files it has. */
ERR_MUST_USE int session_workspace_fork(const char *note, char ret_note[POOL_NOTE + 1],
                                        struct err *err);
/* There is no branch: the clone goes. */
void session_workspace_unfork(const char *note);

/* The name of the workspace in NOTE; empty: none. */
void session_workspace_name(const char *note, char ret[WORKSPACE_FULL_MAX + 1]);

#endif
