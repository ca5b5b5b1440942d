/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the gateway, and what its front is told.
 *
 * Takes:   the policy.
 * Gives:   names, budgets and tokens of the clients; the configuration of the front as a sealed file.
 * Never:   puts a key or an upstream's address into it.
 * Runs in: cordon-proxy, before it reads a frame.
 */
#ifndef PROG_PROXY_CLIENTS_H
#define PROG_PROXY_CLIENTS_H

#include "base/limits.h"
#include "policy/policy.h"

#define CLIENTS_MAX 64 /* as the policy's */

struct clients {
    size_t count;
    const char *names[CLIENTS_MAX];
    uint64_t budgets[CLIENTS_MAX];
    char tokens[CLIENTS_MAX][LIMIT_HTTP_TOKEN + 3];
    char told[4200]; /* where the token is that nobody named; empty: all were named */
};

ERR_MUST_USE int clients_read(const struct policy *p, struct clients *c, struct err *err);
ERR_MUST_USE int clients_config(const struct policy *p, struct clients *c, int *ret_fd,
                                struct err *err);

#endif
