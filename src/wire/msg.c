/* SPDX-License-Identifier: Apache-2.0 */
/* A frame is the CBOR array [type, field...]. The shape is walked once, in wire_open, by the same
 * signature that the writer asserts: a handler never sees a frame that is not of the table. */
#include "wire/msg.h"

#include "base/hash.h"
#include "base/limits.h"

#include <string.h>

static const struct {
    const char *name, *signature;
} table[WIRE_TYPES] = {
#define WIRE_ROW(name, sig, text) [WIRE_##name] = {#name, sig},
    WIRE_MESSAGES(WIRE_ROW)
#undef WIRE_ROW
};

const char *wire_name(enum wire_type type)
{
    return type > WIRE_NONE && type < WIRE_TYPES ? table[type].name : "?";
}

uint32_t wire_fingerprint(void)
{
    uint32_t h = HASH_START;
    for (int type = WIRE_NONE + 1; type < WIRE_TYPES; type++)
        for (int part = 0; part < 2; part++) {
            const char *s = part ? table[type].signature : table[type].name;
            h = hash_bytes(h, s, strlen(s) + 1);
        }
    return h;
}

static void note(struct wire_writer *w, int r)
{
    if (r < 0 && !w->bad)
        w->bad = r;
}

static void writes(struct wire_writer *w, char letter)
{
    base_assert(*w->left == letter);
    w->left++;
}

void wire_begin(struct wire_writer *w, struct buf *out, enum wire_type type)
{
    base_assert(type > WIRE_NONE && type < WIRE_TYPES);
    *w = (struct wire_writer){.out = out, .left = table[type].signature};
    note(w, wire_cbor_put_head(out, WIRE_KIND_ARRAY, 1 + strlen(w->left)));
    note(w, wire_cbor_put_uint(out, type));
}

void wire_put_uint(struct wire_writer *w, uint64_t n)
{
    writes(w, 'u');
    note(w, wire_cbor_put_uint(w->out, n));
}

void wire_put_int(struct wire_writer *w, int64_t n)
{
    writes(w, 'i');
    note(w, wire_cbor_put_int(w->out, n));
}

void wire_put_text(struct wire_writer *w, const char *s)
{
    writes(w, 't');
    note(w, wire_cbor_put_text(w->out, s, strlen(s)));
}

void wire_put_bytes(struct wire_writer *w, const void *p, size_t len)
{
    writes(w, 'b');
    note(w, wire_cbor_put_bytes(w->out, p, len));
}

void wire_put_uints(struct wire_writer *w, const uint64_t *n, size_t count)
{
    writes(w, 'U');
    note(w, wire_cbor_put_head(w->out, WIRE_KIND_ARRAY, count));
    for (size_t i = 0; i < count; i++)
        note(w, wire_cbor_put_uint(w->out, n[i]));
}

void wire_put_strings(struct wire_writer *w, const char *const *s, size_t count)
{
    bool bytes = *w->left == 'B';
    writes(w, bytes ? 'B' : 'T');
    note(w, wire_cbor_put_head(w->out, WIRE_KIND_ARRAY, count));
    for (size_t i = 0; i < count; i++)
        note(w, bytes ? wire_cbor_put_bytes(w->out, s[i], strlen(s[i]))
                      : wire_cbor_put_text(w->out, s[i], strlen(s[i])));
}

int wire_end(struct wire_writer *w)
{
    base_assert(w->bad || *w->left == 0);
    return w->bad;
}

static void skip(struct wire_cursor *c, char letter)
{
    size_t n;
    switch (letter) {
    case 'u':
        (void)wire_cbor_get_uint(c);
        return;
    case 'i':
        (void)wire_cbor_get_int(c);
        return;
    case 't':
        (void)wire_cbor_get_text(c, &n);
        return;
    case 'b':
        (void)wire_cbor_get_bytes(c, &n);
        return;
    default:
        n = wire_cbor_get_array(c);
        while (n-- && !c->bad)
            skip(c, letter == 'U' ? 'u' : letter == 'T' ? 't' : 'b');
    }
}

int wire_open(struct wire_reader *r, const void *frame, size_t len, struct err *err)
{
    if (len > LIMIT_FRAME)
        return err_set(err, ERR_LIMIT, "a message of %zu bytes is larger than a frame", len);
    struct wire_cursor c = {.at = frame, .end = (const unsigned char *)frame + len};
    size_t fields = wire_cbor_get_array(&c);
    uint64_t type = wire_cbor_get_uint(&c);
    if (c.bad || type <= WIRE_NONE || type >= WIRE_TYPES)
        return err_set(err, ERR_FORMAT, "not a message of the table");
    const char *signature = table[type].signature;
    *r = (struct wire_reader){.at = c, .left = signature, .type = (enum wire_type)type};
    if (fields != 1 + strlen(signature))
        return err_set(err, ERR_FORMAT, "%s with %zu fields", table[type].name, fields);
    for (const char *s = signature; *s; s++)
        skip(&c, *s);
    if (c.bad || c.at != c.end)
        return err_set(err, ERR_FORMAT, "%s is malformed", table[type].name);
    return 0;
}

static void reads(struct wire_reader *r, char letter)
{
    base_assert(*r->left == letter);
    r->left++;
}

uint64_t wire_get_uint(struct wire_reader *r)
{
    reads(r, 'u');
    return wire_cbor_get_uint(&r->at);
}

int64_t wire_get_int(struct wire_reader *r)
{
    reads(r, 'i');
    return wire_cbor_get_int(&r->at);
}

void wire_get_text(struct wire_reader *r, char *out, size_t size)
{
    reads(r, 't');
    size_t n;
    const char *s = wire_cbor_get_text(&r->at, &n);
    if (n >= size)
        n = size - 1;
    memcpy(out, s, n);
    out[n] = 0;
}

const void *wire_get_bytes(struct wire_reader *r, size_t *ret_len)
{
    reads(r, 'b');
    return wire_cbor_get_bytes(&r->at, ret_len);
}

size_t wire_get_uints(struct wire_reader *r, uint64_t *out, size_t cap)
{
    reads(r, 'U');
    size_t count = wire_cbor_get_array(&r->at);
    for (size_t i = 0; i < count; i++) {
        uint64_t n = wire_cbor_get_uint(&r->at);
        if (i < cap)
            out[i] = n;
    }
    return count;
}

size_t wire_get_list(struct wire_reader *r)
{
    base_assert(*r->left == 'B' || *r->left == 'T');
    r->left++;
    return wire_cbor_get_array(&r->at);
}

const char *wire_next(struct wire_reader *r, size_t *ret_len)
{
    return r->left[-1] == 'B' ? wire_cbor_get_bytes(&r->at, ret_len)
                              : wire_cbor_get_text(&r->at, ret_len);
}
