/* SPDX-License-Identifier: Apache-2.0 */
/* A session's jail has its folders mounted once. What must not be shared is decided by name and inode, and may change while
 * the session lives (the policy names a new file, a folder is moved): so the guard of runs looks at them before each call, too,
 * and what it looks at must be what is mounted. A folder that is only read has nothing to guard. */
#include "session_shares.h"

#include "flow/context.h"
#include "jail/put.h"
#include "sys/fd.h"

int session_shares_plan(const struct session_context *h, struct pool_shares **ret, struct err *err)
{
    *ret = NULL;
    if (!h->jail.ro.count && !h->jail.rw.count)
        return 0;
    int r = flow_guard_shared(&h->flow, &h->spec, NULL, err);
    return r < 0 ? r : pool_shares_new(&h->spec, ret, err);
}

int session_shares_request(const struct session_context *h, struct flow_request *req,
                           struct err *err)
{
    struct pool_shares *s = h->holder.shares;
    req->spec.nbinds = 0; /* what was copied in when the session was made is not copied again */
    if (!s)
        return 0;
    for (size_t i = 0; i < s->count; i++) {
        FD_AUTO there = s->binds[i].writable ? jail_bind_open(&s->binds[i], err) : -1;
        if (s->binds[i].writable && there < 0)
            return there;
    }
    req->spec.binds = s->binds;
    req->spec.nbinds = s->count;
    return 0;
}
