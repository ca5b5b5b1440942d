/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of Streamable HTTP: exchanges and sessions over the connections of http/server.h. All connections are of one
 * client for cordond: whoever has the token.
 *
 * Takes:   bytes of connections, the time.
 * Gives:   bytes for connections; requests to the front that it belongs to.
 * Never:   reads a body of somebody without the token; makes a system call but for memory, the time and random bytes.
 * Runs in: cordon-front, contained; fuzz targets.
 */
#ifndef SERVE_FRONT_HTTP_SERVER_H
#define SERVE_FRONT_HTTP_SERVER_H

#include "http/server.h"
#include "serve/front/inside.h"
#include "serve/front/link.h"

#define SERVE_HTTP_PATH     "/mcp"
#define SERVE_HTTP_METADATA "/.well-known/oauth-protected-resource"
#define SERVE_HTTP_SESSION  32 /* letters of a session's id: 160 random bits */

struct serve_http_session {
    bool used;
    char id[SERVE_HTTP_SESSION + 1];
    struct serve_talk talk;
    struct serve_http_exchange *listening; /* the stream of a GET, also while its client is away */
    uint64_t called_ms;
};

/* A request and the way of its replies; in a session it outlives its connection, and keeps its events. */
struct serve_http_exchange {
    struct serve_sink sink; /* first: the front knows it by this */
    bool used, modern, opens;
    bool plain;         /* its answer is text, not JSON: figures */
    bool json, events;  /* what the client takes */
    bool streams, over; /* events were begun; the last reply was put */
    struct serve_http *http;
    struct http_conn *conn; /* NULL: it left */
    struct serve_http_session *session;
    struct serve_talk talk;    /* where there is no session */
    uint64_t number, count;    /* count: events so far */
    uint64_t beat_ms, over_ms; /* over: since when it rests */
    struct buf log;
};

struct serve_http {
    struct serve_front *front;
    struct serve_http_config config;
    struct serve_link link; /* to cordond; of a server that runs */
    struct http_server server;
    uint64_t numbers;
    struct http_conn conns[LIMIT_HTTP_CONNECTIONS];
    struct serve_http_exchange exchanges[LIMIT_HTTP_EXCHANGES];
    struct serve_http_session sessions[LIMIT_HTTP_SESSIONS];
};

/* http_owner.c */
struct serve_http *serve_http_new(struct serve_front *f, const struct serve_http_config *config);
void serve_http_free(struct serve_http *h);

/* http_check.c: 0, or the status that refuses the request. Nothing of its body was read. */
int serve_http_admit(const struct serve_http *h, const struct http_head *q);

/* http_figures.c: the port of --metrics. Begin as serve_http_begin. */
int serve_http_figures_admit(const struct http_head *q);
bool serve_http_figures_begin(struct serve_http *h, struct http_conn *c);

/* http_answer.c */
void serve_http_answer(struct http_conn *c, int status, const char *fields, const char *type,
                       const char *body, size_t len);
void serve_http_refuse(struct http_conn *c, int status, const char *why);
void serve_http_metadata(struct http_conn *c);
struct serve_http_exchange *serve_http_exchange_new(struct serve_http *h, struct http_conn *c);
void serve_http_exchange_free(struct serve_http_exchange *x);
/* The same for one whose reply will never come: a stream has its end, and who waits for anything else is told WHY with a 404. */
void serve_http_exchange_end(struct serve_http_exchange *x, const char *why);
/* Nothing is awaited of it: it is kept for who comes back, and makes room where there is none. */
bool serve_http_exchange_rests(const struct serve_http_exchange *x);
void serve_http_stream_begin(struct serve_http_exchange *x);
void serve_http_stream_beat(struct serve_http_exchange *x);
/* Gives the exchange to another connection, with the events after the one of that number. */
void serve_http_stream_resume(struct serve_http_exchange *x, struct http_conn *c, uint64_t after);

/* http_sessions.c */
struct serve_http_session *serve_http_session_new(struct serve_http *h,
                                                  const struct serve_talk *talk);
struct serve_http_session *serve_http_session_find(struct serve_http *h, const char *id);
void serve_http_session_end(struct serve_http *h, struct serve_http_session *s);
/* Forgets by time, and by memory. */
void serve_http_sessions_tick(struct serve_http *h);

/* http_route.c: a request that is whole. False: it waits for room, and is to be begun again. */
bool serve_http_begin(struct serve_http *h, struct http_conn *c);

#endif
