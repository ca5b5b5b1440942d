/* SPDX-License-Identifier: Apache-2.0 */
/* The front: JSON-RPC and MCP of one client on one side, the table of requests on the other. Bytes in, bytes out: whoever
 * calls it has the descriptors.
 *
 * Takes:   messages of a client, frames of cordond.
 * Gives:   messages for the client, frames for cordond, in two buffers that the caller empties.
 * Never:   makes a system call but for memory; believes a client anything; decides what may run.
 * Runs in: cordon-front, contained; fuzz targets.
 */
#ifndef SERVE_FRONT_FRONT_H
#define SERVE_FRONT_FRONT_H

#include "serve/table.h"

struct serve_front;

struct serve_front_config {
    struct serve_limits limits; /* what a client can tighten */
    uint64_t answer_ms;         /* a run that takes longer is answered with a job */
    const char *profile;        /* for descriptions; empty: the policy's */
    bool elicits;               /* questions to people may be asked at the client */
    uint64_t question_ms;       /* how long the word for such a question counts */
    bool approves;              /* there is a tool to answer what others asked */
    const char *workspaces;     /* that sessions may be in; the same */
    const char *version;        /* of Cordon */
    bool conformance;           /* the tools of the protocol's own test suite, and no others */
};

struct serve_http_config {
    const char *token; /* empty: none is asked for */
    const char *names; /* hosts beside those of loopback, with commas between them */
    bool metrics;      /* figures, and nothing else */
};

/* Once, before the process is contained: the parser reads random bytes, from a file where it must. */
void serve_front_prepare(void);
struct serve_front *serve_front_new(const struct serve_front_config *config);
void serve_front_free(struct serve_front *f);

/* One message, without the newline that ends it. An error: no memory, or a client that does not read. */
ERR_MUST_USE int serve_front_message(struct serve_front *f, const char *text, size_t len,
                                     struct err *err);
/* A message that is longer than LIMIT_SERVE_LINE: answered, never read. */
ERR_MUST_USE int serve_front_too_long(struct serve_front *f, struct err *err);
/* A packet of cordond. An error: it is not of the table. */
ERR_MUST_USE int serve_front_frame(struct serve_front *f, const void *frame, size_t len,
                                   struct err *err);

/* What is to be written to the client: whole lines. */
struct buf *serve_front_out(struct serve_front *f);
/* What is to be sent to cordond: each frame with its length before it, as a uint32_t. */
struct buf *serve_front_frames(struct serve_front *f);

/* Serves descriptors 0 and 1 with cordond at 3, until one of them ends. */
ERR_MUST_USE int serve_front_run(const struct serve_front_config *config, struct err *err);
/* Serves whoever connects to the listening socket at 0, with cordond at 3, until cordond ends. */
ERR_MUST_USE int serve_front_http(const struct serve_front_config *config,
                                  const struct serve_http_config *http, struct err *err);

#endif
