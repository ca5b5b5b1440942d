/* SPDX-License-Identifier: Apache-2.0 */
/* A pull reader for JSON that keeps numbers as text, so that integers of any size stay exact.
 *
 * Takes:   a text of known length.
 * Gives:   one token a call; strings decoded on request.
 * Never:   recurses, allocates, or lets invalid UTF-8 or a lone surrogate through.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_JSON_H
#define EXPR_JSON_H

#include "expr/area.h"
#include "expr/value.h"

enum json_kind {
    JSON_END,
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY, /* the name of a member; its value follows */
    JSON_STRING,
    JSON_INTEGER,
    JSON_FLOAT, /* also NaN, Infinity and -Infinity, as Python's json module */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

struct json {
    const char *text;
    size_t len, at;
    unsigned depth;
    uint8_t state;
    uint8_t in_object[CORDON_JSON_DEPTH / 8];
    enum cordon_status blame; /* the status that errors carry */
    struct cordon_error *err;
};

struct json_token {
    enum json_kind kind;
    bool escaped;      /* a string with backslashes */
    size_t start, end; /* in the text; of a string: between the quotes */
};

void json_init(struct json *j, const char *text, size_t len, enum cordon_status blame,
               struct cordon_error *err);
/* 0 or the status; after JSON_END nothing but white space was left. */
int json_next(struct json *j, struct json_token *ret);
/* Steps over the value whose first token is T. */
int json_skip(struct json *j, const struct json_token *t);
/* What stands between the quotes of a string, decoded into OUT, which has N bytes. Returns N, or the place of an escape that is
 * wrong. */
size_t json_decode(const char *s, size_t n, char *out, size_t *ret_len);
/* A string or key; borrowed from the text where it has no escapes. */
int json_unescape(struct json *j, const struct json_token *t, struct expr_area *area,
                  const char **ret, uint32_t *ret_len);
/* A scalar as a value; a list or object comes out as K_FOREIGN and is stepped over. */
int json_value(struct json *j, const struct json_token *t, struct expr_area *area,
               struct expr_value *ret);
/* Fails at the place of T (or at the current place if NULL). */
int json_fail(struct json *j, const struct json_token *t, const char *what);

#endif
