/* SPDX-License-Identifier: Apache-2.0 */
/* Where the gateway to models of this state folder is: a file that `cordon proxy` writes there, and keeps locked for as long as it lives.
 *
 * Takes:   the state folder; the gateway's listening socket, and its models by the names of clients.
 * Gives:   the same to whoever asks a model on behalf of a run, and a connection; how such a question ends.
 * Never:   believes a file that nobody holds the lock of: its port may be anybody's by now, and a token would be sent there.
 * Runs in: cordon-proxy, which writes it; the broker, cordon-ask and `cordon doctor`, which read it.
 */
#ifndef SYS_GATEWAY_H
#define SYS_GATEWAY_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

/* The clients of the gateway that runs are: guest code's llm(), and judges. Each has a token of its own in the state folder. */
#define GATEWAY_LLM         "llm"
#define GATEWAY_ARENA       "arena"
#define GATEWAY_LLM_TOKEN   "proxy-llm-token"
#define GATEWAY_ARENA_TOKEN "proxy-arena-token"

/* What to do where there is none. */
#define GATEWAY_FIX                                                                                \
    "a person names a model as `upstreams` of a policy and starts `cordon proxy --http 8383` "     \
    "with it (docs/proxy.md)"

/* How cordon-ask ends, which asks one question there: its exit status. */
enum gateway_end {
    GATEWAY_ANSWERED = 0,
    GATEWAY_FAILED = 1, /* no gateway, no upstream, no answer that can be read */
    GATEWAY_USAGE = 2,
    GATEWAY_ABORTED = 3,  /* the monitor cut the generation, and no tier is left to ask */
    GATEWAY_LATE = 4,     /* an upstream said nothing for too long */
    GATEWAY_REFUSED = 64, /* the question is not taken: no such model, a budget that is spent */
};

/* MODELS: a line `openai NAME` or `anthropic NAME` for each, in the order in which they are preferred. 0: *RET_FD keeps the lock until
 * it is closed. 1: another gateway of this state folder has it. */
ERR_MUST_USE int gateway_announce(int state, int listener, const struct buf *models, int *ret_fd,
                                  struct err *err);

struct gateway {
    char address[48];
    unsigned port;
    struct buf models; /* the lines */
};
/* ERR_STATE: none lives, and ERR says what to do. */
ERR_MUST_USE int gateway_find(int state, struct gateway *ret, struct err *err);
void gateway_done(struct gateway *g);

/* The model WANTED, or the first one where that is empty, and its protocol. False: the gateway does not have it. */
bool gateway_model(const struct gateway *g, const char *wanted, char *ret_name, size_t size,
                   bool *ret_anthropic);

ERR_MUST_USE int gateway_connect(const struct gateway *g, int *ret_fd, struct err *err);

#endif
