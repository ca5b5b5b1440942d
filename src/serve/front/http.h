/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as bytes: the head of a request, and its body. Everything that two readers could understand differently is an
 * error: a line that ends in LF alone, two lengths, a length and chunks, a folded line, a space before a colon, a NUL.
 *
 * Takes:   bytes that anybody may have sent.
 * Gives:   a request, or the status that refuses it.
 * Never:   guesses; keeps a byte beyond LIMIT_HTTP_HEAD or the most that its caller gave.
 * Runs in: cordon-front, contained; fuzz targets.
 */
#ifndef SERVE_FRONT_HTTP_H
#define SERVE_FRONT_HTTP_H

#include "base/buf.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum serve_http_method { SERVE_HTTP_GET, SERVE_HTTP_POST, SERVE_HTTP_DELETE, SERVE_HTTP_OTHER };

struct serve_http_field {
    const char *name, *value; /* the name in small letters */
};

struct serve_http_head {
    enum serve_http_method method;
    const char *target; /* a path, with its query */
    struct serve_http_field fields[LIMIT_HTTP_FIELDS];
    size_t count;
    bool close;   /* the client wants no further request on this connection */
    bool chunked; /* else the body has LENGTH bytes */
    bool expects; /* it waits for 100 Continue */
    uint64_t length;
};

/* How long the head at DATA is, 0 where it does not end yet, or minus a status. *SCANNED is 0 at first and the caller's to
 * keep until then. */
int serve_http_scan(const char *data, size_t len, size_t *scanned);
/* 0, or a status. HEAD's texts lie in DATA, which is written to; it ends where serve_http_scan said. */
int serve_http_parse(char *data, size_t len, struct serve_http_head *head);
/* NULL: it is not there. NAME in small letters. A field of the kinds that we ask for is never there twice. */
const char *serve_http_find(const struct serve_http_head *head, const char *name);

struct serve_http_body {
    int state;
    bool chunked;
    uint64_t left;
    unsigned digits;
};
void serve_http_body_init(struct serve_http_body *b, const struct serve_http_head *head);
/* Adds to OUT what of DATA is body, and tells in *USED how much of DATA it took: 0, more is to come; 1, it is whole; else a
 * status: 400, or 413 where OUT is full. */
int serve_http_body_take(struct serve_http_body *b, const char *data, size_t len, size_t *used,
                         struct buf *out);

#endif
