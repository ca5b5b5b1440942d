/* SPDX-License-Identifier: Apache-2.0 */
/* JSON written as it is built: strings of hostile bytes come out as valid JSON, always.
 *
 * Takes:   keys, numbers, strings of any bytes.
 * Gives:   one line of ASCII JSON; bytes that are not UTF-8 become U+FFFD.
 * Never:   reads JSON: readers at the edge are libraries'.
 * Runs in: every process that writes a result or a record.
 */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct jsonw {
    struct buf *out;
    bool comma; /* the next item needs one before it */
    int bad;    /* the first error; sticks */
};

/* KEY may be NULL inside a list. */
void jsonw_open(struct jsonw *j, const char *key, char bracket);
void jsonw_close(struct jsonw *j, char bracket);
void jsonw_bytes(struct jsonw *j, const char *key, const void *s, size_t len);
void jsonw_string(struct jsonw *j, const char *key, const char *s); /* NULL: null */
void jsonw_int(struct jsonw *j, const char *key, int64_t n);
void jsonw_decimal(struct jsonw *j, const char *key, double n);
void jsonw_bool(struct jsonw *j, const char *key, bool b);
void jsonw_null(struct jsonw *j, const char *key);
/* A value that is JSON already, written by us: on one line, whole. */
void jsonw_raw(struct jsonw *j, const char *key, const char *json, size_t len);

#endif
