/* SPDX-License-Identifier: Apache-2.0 */
/* cordond: the trusted side of `cordon serve`. It holds clients, their sessions and their jobs, and answers what the table
 * of requests has.
 *
 * Takes:   frames of the wire from one contained front for each client.
 * Gives:   runners, one a request, and what they printed, as bytes.
 * Never:   reads a byte that a client wrote; lets a client choose a word of a command line; leaves a runner behind.
 * Runs in: cordond.
 */
#ifndef SERVE_DAEMON_H
#define SERVE_DAEMON_H

#include "serve/table.h"

/* What the operator chose; empty words: the policy's. */
struct serve_config {
    const char *cordon, *front; /* paths of the two programs */
    const char *profile, *role, *policy;
    const char *names;          /* hosts that clients of HTTP may call us by, beside loopback's */
    struct serve_limits limits; /* what clients can tighten and never widen */
    uint64_t answer_ms;         /* a run that takes longer is answered with a job */
};

/* Serves the client at our standard input and output until it leaves or a signal ends us. */
ERR_MUST_USE int serve_daemon_stdio(const struct serve_config *config, struct err *err);
/* Serves whoever connects to SOCK and is our own user outside of any jail, until a signal ends us. */
ERR_MUST_USE int serve_daemon_socket(const struct serve_config *config, int sock, struct err *err);
/* Serves whoever connects to LISTENER with the token that the file TOKEN has, until a signal ends us. All of them are one
 * client; its front is started anew where it ends. */
ERR_MUST_USE int serve_daemon_http(const struct serve_config *config, int listener, int token,
                                   struct err *err);

#endif
