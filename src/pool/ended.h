/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of sessions that no client saw: the holder leaves them in a file, the next client records them.
 *
 * Takes:   the holder's folder; the end of a session.
 * Gives:   each end to one client, and again to the next one if that could not record it.
 * Never:   loses an end because the holder goes too; waits for another process.
 * Runs in: cordon-holder (writes), `cordon` (takes).
 */
#ifndef POOL_ENDED_H
#define POOL_ENDED_H

#include "base/err.h"
#include "pool/pool.h"

struct pool_ended {
    char name[POOL_NAME + 1], role[POOL_ROLE + 1], reason[POOL_REASON + 1];
    bool ran_at_rest;  /* the reason is that it used CPU time between two calls */
    uint64_t ended_ms; /* when, since 1970; set by pool_ended_write */
};

/* DIR: the holder's folder. What cannot be written is lost: the holder has nobody to tell. */
void pool_ended_write(int dir, const struct pool_ended *e);

/* Calls RECORD for each end that is left there, oldest first, and removes them when all are recorded. An error of RECORD
 * is returned, and they stay. Without any, or where another client is at it, nothing happens. */
ERR_MUST_USE int
pool_ended_take(int dir, int (*record)(void *ctx, const struct pool_ended *e, struct err *err),
                void *ctx, struct err *err);

#endif
