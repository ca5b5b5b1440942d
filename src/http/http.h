/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as bytes: the head of a request, and its body. Everything that two readers could understand differently is an
 * error: a line that ends in LF alone, two lengths, a length and chunks, a folded line, a space before a colon, a NUL.
 *
 * Takes:   bytes that anybody may have sent.
 * Gives:   a request, or the status that refuses it.
 * Never:   guesses; keeps a byte beyond LIMIT_HTTP_HEAD or the most that its caller gave.
 * Runs in: cordon-front and cordon-proxy-front, contained; fuzz targets.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "base/buf.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum http_method { HTTP_GET, HTTP_POST, HTTP_DELETE, HTTP_OTHER };

struct http_field {
    const char *name, *value; /* the name in small letters */
};

struct http_head {
    enum http_method method;
    const char *target; /* a path, with its query */
    struct http_field fields[LIMIT_HTTP_FIELDS];
    size_t count;
    bool bodiless; /* HEAD: what follows the head of the answer is taken for the next one */
    bool close;    /* the client wants no further request on this connection */
    bool chunked;  /* else the body has LENGTH bytes */
    bool expects;  /* it waits for 100 Continue */
    uint64_t length;
};

/* How long the head at DATA is, 0 where it does not end yet, or minus a status. *SCANNED is 0 at first and the caller's to
 * keep until then. */
int http_scan(const char *data, size_t len, size_t *scanned);
/* 0, or a status. HEAD's texts lie in DATA, which is written to; it ends where http_scan said. */
int http_parse(char *data, size_t len, struct http_head *head);
/* NULL: it is not there. NAME in small letters. A field of the kinds that we ask for is never there twice. */
const char *http_find(const struct http_head *head, const char *name);

struct http_body {
    int state;
    bool chunked;
    uint64_t left;
    unsigned digits;
};
void http_body_init(struct http_body *b, const struct http_head *head);
/* Adds to OUT what of DATA is body, and tells in *USED how much of DATA it took: 0, more is to come; 1, it is whole; else a
 * status: 400, or 413 where OUT is full. */
int http_body_take(struct http_body *b, const char *data, size_t len, size_t *used,
                   struct buf *out);

/* Host, and origin where there is one, are loopback's or among NAMES, which have commas between them. */
bool http_is_ours(const struct http_head *q, const char *names);
/* NULL: there is none. */
const char *http_bearer(const struct http_head *q);
bool http_same_token(const char *got, const char *token);
bool http_is_path(const struct http_head *q, const char *path);
bool http_accepts(const struct http_head *q, const char *type);
bool http_is_json(const struct http_head *q);
const char *http_phrase(int status);

#endif
