/* JSON written as it is built: strings of hostile bytes come out as valid JSON, always.
 *
 * Takes:   keys, numbers, strings of any bytes.
 * Gives:   one line of ASCII JSON; bytes that are not UTF-8 become U+FFFD.
 * Never:   reads JSON: readers at the edge are libraries'.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_JSON_H
#define OUTPUT_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct output_json {
    struct buf *out;
    bool comma; /* the next item needs one before it */
    int bad;    /* the first error; sticks */
};

/* KEY may be NULL inside a list. */
void output_json_open(struct output_json *j, const char *key, char bracket);
void output_json_close(struct output_json *j, char bracket);
void output_json_bytes(struct output_json *j, const char *key, const void *s, size_t len);
void output_json_string(struct output_json *j, const char *key, const char *s); /* NULL: null */
void output_json_int(struct output_json *j, const char *key, int64_t n);
void output_json_decimal(struct output_json *j, const char *key, double n);
void output_json_bool(struct output_json *j, const char *key, bool b);
void output_json_null(struct output_json *j, const char *key);

#endif
