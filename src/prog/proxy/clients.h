/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the gateway, and what its front is told.
 *
 * Takes:   the policy.
 * Gives:   names, budgets and tokens of the clients; the configuration of the front as a sealed file; the names of models, for runs.
 * Never:   puts a key or an upstream's address into it.
 * Runs in: cordon-proxy, before it reads a frame.
 */
#ifndef PROG_PROXY_CLIENTS_H
#define PROG_PROXY_CLIENTS_H

#include "base/limits.h"
#include "policy/policy.h"
#include "proxy/keys/keys.h"

#define CLIENTS_MAX PROXY_CLIENTS

struct clients {
    size_t count;
    const char *names[CLIENTS_MAX];
    uint64_t budgets[CLIENTS_MAX];
    char tokens[CLIENTS_MAX][LIMIT_HTTP_TOKEN + 3];
    char told[4200]; /* where the token is that nobody named; empty: all were named */
};

ERR_MUST_USE int clients_read(const struct policy *p, struct clients *c, struct err *err);
/* A line `openai NAME` or `anthropic NAME` for each model, as sys/gateway.h has them. */
ERR_MUST_USE int clients_models(const struct policy *p, struct buf *out, struct err *err);
ERR_MUST_USE int clients_config(const struct policy *p, struct clients *c, int *ret_fd,
                                struct err *err);

#endif
