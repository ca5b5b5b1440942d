/* SPDX-License-Identifier: Apache-2.0 */
/* The front of the gateway: HTTP of clients and answers of models on one side, frames for the process with the keys on the other.
 *
 * Takes:   bytes of clients, frames of cordon-proxy (with bytes of upstreams in them), the time.
 * Gives:   bytes for clients: what a model wrote, as far as it is known to be no part of a loop; frames.
 * Never:   knows a key; believes a client or an upstream anything; hands on a tool call that is not whole.
 * Runs in: cordon-proxy-front, contained; fuzz targets.
 */
#ifndef PROXY_FRONT_FRONT_H
#define PROXY_FRONT_FRONT_H

#include "gate/escalate.h"
#include "http/server.h"
#include "monitor/monitor.h"
#include "proxy/front/sse.h"
#include "proxy/table.h"
#include "wire/queue.h"

#include <jansson.h>

/* ---- configuration ---- */

struct proxy_model {
    const char *name, *upstream; /* what clients call it, what the upstream calls it */
};
struct proxy_upstream {
    const char *name;
    bool anthropic;
    enum gate_tier tier;
    struct proxy_model *models;
    size_t nmodels;
};
struct proxy_front_client {
    const char *name, *token;
};
struct proxy_front_config {
    struct proxy_upstream *upstreams;
    size_t nupstreams;
    struct proxy_front_client *clients;
    size_t nclients;
    uint64_t holdback, retries;
    bool prompts;
    json_t *text; /* what all of it lies in */
};
/* config.c: as cordon-proxy wrote it. */
ERR_MUST_USE int proxy_front_config_read(const char *text, size_t len, struct proxy_front_config *c,
                                         struct err *err);
void proxy_front_config_done(struct proxy_front_config *c);
/* What UPSTREAM calls the model that clients call NAME; NULL: it does not have it. */
const char *proxy_model_find(const struct proxy_upstream *u, const char *name);

/* ---- one call ---- */

struct proxy_call;
struct proxy_front;

/* A part of an answer that waits: an event, with the text in it that the monitor has seen. */
struct proxy_piece {
    struct proxy_piece *next;
    json_t *event;
    json_t *holder;      /* the object that has the text; NULL: there is none */
    const char *key;     /* of the text in it */
    uint64_t start, len; /* of the text, in all text of this attempt */
    size_t size;
    bool tool; /* of a tool call that is not whole yet */
};

/* What differs between the protocols. */
struct proxy_shape {
    const char *path;
    enum proxy_path to;
    bool anthropic, named; /* named: its events have names */
    /* Whether the request can be taken; WHY (of 300 bytes) says why not. */
    bool (*check)(const struct proxy_call *c, char *why);
    /* The body of an attempt. PREFIX: text that the client has of an attempt before; empty: none. NULL: no memory. */
    json_t *(*body)(const struct proxy_call *c, const char *model, const struct buf *prefix);
    /* An event of the upstream; owned by the caller. */
    void (*event)(struct proxy_call *c, json_t *event);
    /* Whether EVENT goes to the client, changed or not, when its turn has come. */
    bool (*pass)(struct proxy_call *c, json_t *event);
    /* Before another attempt goes on with what the client has; NULL: nothing is to be done. */
    void (*leave)(struct proxy_call *c);
    /* The last events of an answer that was cut and is not continued. */
    void (*cut)(struct proxy_call *c);
    void (*assemble)(struct proxy_call *c, json_t *event);
    /* Whether an attempt can go on with what another one began. */
    bool continues;
};
extern const struct proxy_shape proxy_shape_chat, proxy_shape_messages, proxy_shape_responses;

/* ASKING (cordon-proxy whether it may be made) -> RUNNING (an attempt) -> RUNNING (the next one) -> OVER */
enum proxy_phase { PROXY_ASKING, PROXY_RUNNING, PROXY_OVER_PHASE };

struct proxy_call {
    struct proxy_front *front;
    struct http_conn *conn;
    const struct proxy_shape *shape;
    enum proxy_phase phase;
    uint64_t number, stream; /* stream: of the attempt; 0: none is open */
    unsigned client;
    json_t *request;
    const char *model;
    bool streams, wants_usage, begun; /* begun: the client has the head of its stream */
    char headers[2][300];             /* of the client's, for the upstream */

    /* the attempt */
    size_t upstream;
    enum gate_tier tier;
    uint64_t attempt, attempts; /* of this tier; of all */
    uint64_t status;            /* of the upstream's answer; 0: not known */
    struct proxy_sse sse;
    struct buf error;
    struct monitor *monitor;
    struct proxy_piece *first, **last;
    size_t held;
    uint64_t fed, released; /* bytes of text: seen by the monitor, handed on */
    bool ended, final;      /* the upstream said that the answer is whole; and nothing follows it */
    bool failed;            /* the attempt is over: what still comes of it is dropped */
    bool failing;           /* proxy_call_fail was called: CATEGORY, WHY and HTTP tell the rest */
    enum gate_error_category category;
    int http;
    char why[300];
    uint64_t usage_in, usage_out; /* tokens that the upstream counted; 0: it did not say */

    /* the answer */
    struct buf text; /* that the client has, for another tier to go on with */
    json_t *answer;  /* for who wants no stream */
    bool block_open, tool_sent, block_is_tool, started;
    uint64_t blocks; /* that the client has seen begin */
    struct buf arguments;
    char id[128];
    struct proxy_over over;
    uint64_t begun_ms, beat_ms; /* beat: when its client is told that the stream lives */
    char asked[400];
};

/* call.c */
struct proxy_call *proxy_call_new(struct proxy_front *f, struct http_conn *conn,
                                  const struct proxy_shape *shape, unsigned client,
                                  json_t *request);
/* Whether cordon-proxy lets it be made. */
void proxy_call_ask(struct proxy_call *c);
void proxy_call_may(struct proxy_call *c, uint64_t status, uint64_t seconds, const char *why);
void proxy_call_status(struct proxy_call *c, uint64_t status);
void proxy_call_bytes(struct proxy_call *c, const char *data, size_t len);
void proxy_call_end(struct proxy_call *c, enum proxy_end how);
/* The client has gone. */
void proxy_call_drop(struct proxy_call *c);
void proxy_call_free(struct proxy_call *c);
/* The attempt has failed; WHY is for the client where nobody else can be asked. It is acted on when the event is done with. */
void proxy_call_fail(struct proxy_call *c, enum gate_error_category category, const char *why);
/* The upstream's answer is whole: what was held back goes on. */
void proxy_call_finish(struct proxy_call *c);

/* attempt.c: which upstream is asked, and next. */
bool proxy_attempt_first(struct proxy_call *c);
bool proxy_attempt_next(struct proxy_call *c, enum gate_error_category category);
void proxy_attempt_start(struct proxy_call *c);
void proxy_attempt_stop(struct proxy_call *c);

/* pieces.c: what is held back. */
/* TEXT in HOLDER under KEY goes through the monitor; HOLDER NULL: the event has none. EVENT is kept. */
void proxy_piece_add(struct proxy_call *c, json_t *event, json_t *holder, const char *key,
                     bool tool);
/* Log-probabilities beside a text. */
void proxy_piece_entropy(struct proxy_call *c, const json_t *tokens);
void proxy_pieces_release(struct proxy_call *c, uint64_t upto);
/* Pieces of tools: WHOLE: they are not held for that any more; else they are dropped. */
void proxy_pieces_tools(struct proxy_call *c, bool whole);
void proxy_pieces_drop(struct proxy_call *c);
/* What lies before the loop goes on, the rest is dropped. */
void proxy_pieces_cut(struct proxy_call *c, uint64_t at);
/* Whether TEXT is an object in JSON, or nothing at all. */
bool proxy_arguments_whole(const struct buf *text);

/* answer.c: what a client is told. */
void proxy_answer_event(struct proxy_call *c, json_t *event);
void proxy_answer_raw(struct proxy_call *c, const char *line);
void proxy_answer_done(struct proxy_call *c);
void proxy_answer_json(struct proxy_call *c, int status, json_t *body);
/* By the protocol of the path that was asked for. */
void proxy_answer_error(struct http_conn *conn, bool anthropic, int status, uint64_t seconds,
                        const char *why);
void proxy_answer_failed(struct proxy_call *c, int status, uint64_t seconds, const char *why);
/* {"reason": ..., "detector": ..., "tokens": ...} */
json_t *proxy_answer_verdict(const struct proxy_call *c);

/* ---- clients ---- */

/* A connection's `work` is its call, its `route` the shape of the path (NULL: it has none), its `client` a number of the configuration. */
#define PROXY_CONNS (LIMIT_PROXY_STREAMS + 32)
struct proxy_front {
    const struct proxy_front_config *config;
    struct wire_queue out; /* to cordon-proxy */
    struct http_server server;
    uint64_t numbers;
    size_t calls, ended; /* that are carried; that ended since memory was given back */
    int bad;             /* no memory for a frame; sticks */
    struct http_conn conns[PROXY_CONNS];
};

/* owner.c */
struct proxy_front *proxy_front_new(const struct proxy_front_config *config);
void proxy_front_free(struct proxy_front *f);
/* A frame of cordon-proxy. An error: it is not of the table. */
ERR_MUST_USE int proxy_front_frame(struct proxy_front *f, const void *frame, size_t len,
                                   struct err *err);

/* route.c */
int proxy_route_admit(struct proxy_front *f, struct http_conn *c);
bool proxy_route_begin(struct proxy_front *f, struct http_conn *c);

/* The listening socket at 0, cordon-proxy at 3, until that one ends. */
ERR_MUST_USE int proxy_front_run(const struct proxy_front_config *config, struct err *err);

#endif
