/* SPDX-License-Identifier: Apache-2.0 */
/* The subset of CBOR (RFC 8949) that our processes speak: integers, text, bytes, arrays; definite
 * lengths, shortest form, no tags, no floats, no nesting beyond an array of scalars.
 *
 * Takes:   values, or bytes from another process.
 * Gives:   bytes, or values that lie inside the given bytes.
 * Never:   allocates, recurses, or accepts a second spelling of the same value.
 * Runs in: every process, also those whose peer may be hostile.
 */
#ifndef WIRE_CBOR_H
#define WIRE_CBOR_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_kind {
    WIRE_KIND_UINT = 0,
    WIRE_KIND_NEGATIVE = 1,
    WIRE_KIND_BYTES = 2,
    WIRE_KIND_TEXT = 3,
    WIRE_KIND_ARRAY = 4
};

ERR_MUST_USE int wire_cbor_put_head(struct buf *b, enum wire_kind kind, uint64_t n);
ERR_MUST_USE int wire_cbor_put_uint(struct buf *b, uint64_t n);
ERR_MUST_USE int wire_cbor_put_int(struct buf *b, int64_t n);
ERR_MUST_USE int wire_cbor_put_text(struct buf *b, const char *s, size_t len);
ERR_MUST_USE int wire_cbor_put_bytes(struct buf *b, const void *p, size_t len);

/* A place in bytes that are being read. The first mistake sticks: every later read fails too. */
struct wire_cursor {
    const unsigned char *at, *end;
    bool bad;
};

/* The next item's kind and number (value, -1-value, length, or count). false: bad from now on. */
bool wire_cbor_get_head(struct wire_cursor *c, enum wire_kind *ret_kind, uint64_t *ret_n);
uint64_t wire_cbor_get_uint(struct wire_cursor *c);
int64_t wire_cbor_get_int(struct wire_cursor *c);
/* Text must be strict UTF-8 without NUL. The pointer lies inside the bytes and is not terminated.
 */
const char *wire_cbor_get_text(struct wire_cursor *c, size_t *ret_len);
const void *wire_cbor_get_bytes(struct wire_cursor *c, size_t *ret_len);
size_t wire_cbor_get_array(struct wire_cursor *c);

#endif
