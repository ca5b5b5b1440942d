/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of the host that a session sees (--ro, --rw): what may be shared when it is made, and again before each call.
 *
 * Takes:   the options of `session new` and `repl`; what the holder says that a lent session sees.
 * Gives:   the list for the holder; the binds of a call's request, by which it is asked about, recorded and watched.
 * Never:   shares what a run may not share.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SESSION_SHARES_H
#define PROG_CORDON_SESSION_SHARES_H

#include "session.h"

/* *RET is the caller's, and NULL where the options name no folder. */
ERR_MUST_USE int session_shares_plan(const struct session_context *h, struct pool_shares **ret,
                                     struct err *err);
/* Of the session that is lent. An error: a folder that it may write in is not where it was, so nobody can say what it is now. */
ERR_MUST_USE int session_shares_request(const struct session_context *h, struct flow_request *req,
                                        struct err *err);

#endif
