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
    const char *timeout, *memory,
        *output;            /* as they were given, for when the policy is read again */
    const char *workspaces; /* that clients may name, with commas between them */
    bool all_users; /* clients of every user are let in at the unix socket, each as itself */
    bool elicits;   /* questions to people may be asked at the client */
    const char *question_ms;    /* how long the word for one counts; a number */
    bool approves;              /* clients may answer what others asked */
    const char *names;          /* hosts that clients of HTTP may call us by, beside loopback's */
    struct serve_limits limits; /* what clients can tighten and never widen */
    uint64_t answer_ms;         /* a run that takes longer is answered with a job */
    uint64_t drain_ms;          /* after SIGTERM: how long what runs may go on */
};

/* Where clients come from. */
struct serve_ways {
    bool
        stdio; /* the one client at our standard input and output, until it leaves; then nothing else */
    int sock; /* a listening unix socket, for our own user, or all, outside of any jail; -1: none */
    int http,
        token; /* a listening socket, and the file of the token: all who have it are one client; -1: none */
    int metrics; /* a listening socket at loopback, for figures alone; -1: none */
};

/* Serves all of them until a signal ends us: SIGTERM after what runs has ended, or was cancelled by `drain_ms`; SIGINT,
 * and a second SIGTERM, at once. SIGHUP reads the policy again. A front of HTTP is started anew where it ends. */
ERR_MUST_USE int serve_daemon(const struct serve_config *config, const struct serve_ways *ways,
                              struct err *err);

#endif
