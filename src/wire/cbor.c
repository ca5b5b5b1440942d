/* SPDX-License-Identifier: Apache-2.0 */
/* Written by hand because Debian ships libcbor only as a shared library that allocates, and this
 * code is linked into cordon-nest, which is static and must not allocate on a peer's word. The
 * tests hold it against libcbor. Shortest form is required, so a message has exactly one spelling.
 */
#include "wire/cbor.h"

#include "base/utf8.h"

#include <string.h>

int wire_cbor_put_head(struct buf *b, enum wire_kind kind, uint64_t n)
{
    unsigned char h[9];
    size_t extra = n < 24 ? 0 : n < 256 ? 1 : n < 65536 ? 2 : n <= UINT32_MAX ? 4 : 8;
    unsigned info = extra == 0   ? (unsigned)n
                    : extra == 1 ? 24
                    : extra == 2 ? 25
                    : extra == 4 ? 26
                                 : 27;
    h[0] = (unsigned char)((unsigned)kind << 5 | info);
    for (size_t i = 0; i < extra; i++)
        h[1 + i] = (unsigned char)(n >> (8 * (extra - 1 - i)));
    return buf_add(b, h, 1 + extra);
}

int wire_cbor_put_uint(struct buf *b, uint64_t n)
{
    return wire_cbor_put_head(b, WIRE_KIND_UINT, n);
}

int wire_cbor_put_int(struct buf *b, int64_t n)
{
    return n < 0 ? wire_cbor_put_head(b, WIRE_KIND_NEGATIVE, ~(uint64_t)n)
                 : wire_cbor_put_uint(b, (uint64_t)n);
}

int wire_cbor_put_text(struct buf *b, const char *s, size_t len)
{
    int r = wire_cbor_put_head(b, WIRE_KIND_TEXT, len);
    return r < 0 ? r : buf_add(b, s, len);
}

int wire_cbor_put_bytes(struct buf *b, const void *p, size_t len)
{
    int r = wire_cbor_put_head(b, WIRE_KIND_BYTES, len);
    return r < 0 ? r : buf_add(b, p, len);
}

bool wire_cbor_get_head(struct wire_cursor *c, enum wire_kind *ret_kind, uint64_t *ret_n)
{
    if (c->bad || c->at == c->end)
        goto bad;
    unsigned kind = *c->at >> 5, info = *c->at & 31;
    size_t extra = info < 24 ? 0 : info == 24 ? 1 : info == 25 ? 2 : info == 26 ? 4 : 8;
    if (kind > WIRE_KIND_ARRAY || info > 27 || (size_t)(c->end - c->at) < 1 + extra)
        goto bad;
    uint64_t n = extra ? 0 : info;
    for (size_t i = 0; i < extra; i++)
        n = n << 8 | c->at[1 + i];
    static const uint64_t least[9] = {[1] = 24, [2] = 256, [4] = 65536, [8] = 1ULL << 32};
    if (n < least[extra])
        goto bad; /* a second spelling of a smaller number */
    c->at += 1 + extra;
    *ret_kind = (enum wire_kind)kind;
    *ret_n = n;
    return true;
bad:
    c->bad = true;
    return false;
}

static uint64_t expect(struct wire_cursor *c, enum wire_kind want)
{
    enum wire_kind kind;
    uint64_t n;
    if (!wire_cbor_get_head(c, &kind, &n))
        return 0;
    if (kind != want) {
        c->bad = true;
        return 0;
    }
    return n;
}

uint64_t wire_cbor_get_uint(struct wire_cursor *c)
{
    return expect(c, WIRE_KIND_UINT);
}

int64_t wire_cbor_get_int(struct wire_cursor *c)
{
    enum wire_kind kind;
    uint64_t n;
    if (!wire_cbor_get_head(c, &kind, &n))
        return 0;
    if (kind > WIRE_KIND_NEGATIVE || n > INT64_MAX) {
        c->bad = true;
        return 0;
    }
    return kind == WIRE_KIND_NEGATIVE ? -1 - (int64_t)n : (int64_t)n;
}

static const void *run(struct wire_cursor *c, enum wire_kind kind, size_t *ret_len)
{
    uint64_t n = expect(c, kind);
    if (!c->bad && n > (uint64_t)(c->end - c->at))
        c->bad = true;
    if (c->bad) {
        *ret_len = 0;
        return "";
    }
    const void *p = c->at;
    c->at += n;
    *ret_len = (size_t)n;
    return p;
}

const void *wire_cbor_get_bytes(struct wire_cursor *c, size_t *ret_len)
{
    return run(c, WIRE_KIND_BYTES, ret_len);
}

const char *wire_cbor_get_text(struct wire_cursor *c, size_t *ret_len)
{
    const char *s = run(c, WIRE_KIND_TEXT, ret_len);
    if (utf8_valid_prefix(s, *ret_len) != *ret_len || memchr(s, 0, *ret_len)) {
        c->bad = true;
        *ret_len = 0;
        return "";
    }
    return s;
}

size_t wire_cbor_get_array(struct wire_cursor *c)
{
    uint64_t n = expect(c, WIRE_KIND_ARRAY);
    if (n > (uint64_t)(c->end - c->at)) { /* each element takes a byte at least */
        c->bad = true;
        n = 0;
    }
    return (size_t)n;
}
