/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of HTTP/1.1: connections, their states and deadlines, and one loop that reads and writes them. What a request means is
 * its owner's: cordon-front's and cordon-proxy-front's.
 *
 * Takes:   bytes of connections, the time; the owner's answers, as bytes in `out`.
 * Gives:   to the owner, requests that are whole; to clients, what it put.
 * Never:   reads a body that the owner did not admit by its head; keeps a connection in a state that a stranger chose beyond its deadline.
 * Runs in: cordon-front and cordon-proxy-front, contained; fuzz targets (without the loop: conn.c knows no descriptor).
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/err.h"
#include "http/http.h"

/* A connection:
 *   HEAD (a request comes in) -> BODY -> READY (whole, not begun) -> WAITING (for its answer) -> WRITING -> HEAD
 * A refused one goes to WRITING from anywhere, and from there to LINGER where the connection is to end: then the client
 * is let read the answer before the connection is closed. */
enum http_conn_state {
    HTTP_CONN_UNUSED,
    HTTP_CONN_HEAD,
    HTTP_CONN_BODY,
    HTTP_CONN_READY,
    HTTP_CONN_WAITING,
    HTTP_CONN_WRITING,
    HTTP_CONN_LINGER
};

struct http_conn {
    enum http_conn_state state;
    bool broken; /* to be closed at once */
    struct buf in, head, body, out;
    size_t scanned, written; /* of the head; of out */
    struct http_head q;
    struct http_body decoder;
    uint64_t deadline_ms; /* of the state, or of the client's reading */
    uint64_t unread_ms; /* since when there is something that it has not read; 0: it has read all */
    uint64_t turn;      /* while READY: who came before whom */
    /* the owner's */
    void *work;        /* what is carried for the client, while WAITING */
    const void *route; /* what the path leads to */
    unsigned client;   /* who asks */
};

/* Whose requests they are; OF is its own object. */
struct http_owner {
    size_t body_max, out_max; /* of one connection */
    size_t unread_max;        /* that all clients together have not read; 0: not bounded */
    /* 0, or the status that refuses the request. Nothing of its body was read. */
    int (*admit)(void *of, struct http_conn *c);
    /* A request that is whole; it leaves READY. False: it waits for room, and is to be begun again. */
    bool (*begin)(void *of, struct http_conn *c);
    /* Puts an answer with STATUS, and leaves the connection WRITING. */
    void (*refuse)(void *of, struct http_conn *c, int status);
    /* The client is not there any more: what was carried for it ends. */
    void (*left)(void *of, struct http_conn *c);
    /* A client that WAITING has read everything: it may be told that its request lives; when that is due again, in ms. */
    uint64_t (*beat)(void *of, struct http_conn *c);
    /* In each turn, before connections are looked at; NULL: nothing is to be done. */
    void (*tick)(void *of);
    /* Whether one that is READY can be begun; NULL: begin takes all. */
    bool (*room)(void *of);
};

struct http_server {
    const struct http_owner *owner;
    void *of;
    struct http_conn *conns;
    size_t count;
    /* all behind it are unused: a turn does not look at a thousand places for three clients */
    size_t top;
    uint64_t ready_ms; /* the longest that a request is READY */
    uint64_t now_ms, turns;
};

/* conn.c */
/* NULL: there is no room. */
struct http_conn *http_conn_accept(struct http_server *s);
void http_conn_bytes(struct http_server *s, struct http_conn *c, const char *data, size_t len);
/* So many bytes of c->out more were written. */
void http_conn_wrote(struct http_server *s, struct http_conn *c, size_t len);
/* The client ended its side, or is not there any more. */
void http_conn_left(struct http_server *s, struct http_conn *c);
bool http_conn_reads(const struct http_conn *c);
/* What is due by time, and requests that waited for room; when it is to be called again, in ms. */
uint64_t http_server_tick(struct http_server *s);
/* Who has been READY for the longest; NULL: nobody is. */
struct http_conn *http_server_first(struct http_server *s);
/* Whether clients have more to read than there may be: then nothing is taken that may be for them, and large answers that were not read
 * for long go. */
bool http_server_behind(const struct http_server *s);
/* Every connection leaves. */
void http_server_done(struct http_server *s);

/* The process behind the owner, and its packets. */
struct http_link {
    int fd;
    short (*events)(void *of); /* for poll */
    /* What is to be sent. An error ends the loop; *RET_OVER: the process is gone. */
    int (*send)(void *of, bool *ret_over, struct err *err);
    int (*read)(void *of, bool *ret_over, struct err *err);
    uint64_t flush_ms; /* once it is gone, clients get what was put for so long */
};

/* loop.c: the listening socket at LISTENER, until the process behind ends. */
ERR_MUST_USE int http_server_run(struct http_server *s, int listener, const struct http_link *link,
                                 struct err *err);

#endif
