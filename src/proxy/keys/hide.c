/* SPDX-License-Identifier: Apache-2.0 */
/* Knuth, Morris and Pratt, twice: each byte is looked at once as it is, and once as a character of a string of JSON. What is held back of
 * the first is always a beginning of the key and needs no buffer; the second keeps the bytes that its characters came in. */
#include "proxy/keys/hide.h"

#include <stdlib.h>
#include <string.h>

int proxy_hidden_init(struct proxy_hidden *h, const char *key, size_t len)
{
    h->key = malloc(len + 1);
    h->back = calloc(len + 1, sizeof *h->back);
    if (!h->key || !h->back)
        return ERR_MEMORY;
    memcpy(h->key, key, len);
    h->key[len] = 0;
    h->len = len;
    for (size_t i = 1, k = 0; i < len; i++) {
        while (k && key[i] != key[k])
            k = h->back[k];
        k += key[i] == key[k];
        h->back[i + 1] = (uint16_t)k;
    }
    return 0;
}

void proxy_hidden_done(struct proxy_hidden *h)
{
    if (h->key)
        explicit_bzero(h->key, h->len);
    free(h->key);
    free(h->back);
    *h = (struct proxy_hidden){0};
}

void proxy_hiding_init(struct proxy_hiding *at)
{
    *at = (struct proxy_hiding){0};
    buf_init(&at->raw, PROXY_HIDE_HELD);
    buf_init(&at->sizes, PROXY_KEY_MAX + 1);
}

void proxy_hiding_done(struct proxy_hiding *at)
{
    if (at->raw.data)
        explicit_bzero(at->raw.data, at->raw.cap);
    buf_done(&at->raw);
    buf_done(&at->sizes);
}

/* ---- as JSON writes it ---- */

/* The first COUNT characters that are held back were no key. */
static int release(struct proxy_hiding *at, size_t count, struct buf *out)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += (unsigned char)at->sizes.data[i];
    const int r = len ? buf_add(out, at->raw.data, len) : 0;
    if (len) {
        memmove(at->raw.data, at->raw.data + len, at->raw.len - len);
        memmove(at->sizes.data, at->sizes.data + count, at->sizes.len - count);
        at->raw.len -= len;
        at->sizes.len -= count;
    }
    return r;
}

/* A character, -1 where none of a key can be meant, and the bytes that it came in. */
static int take(const struct proxy_hidden *h, struct proxy_hiding *at, int c, const char *bytes,
                size_t len, struct buf *out)
{
    const char size = (char)len;
    size_t k = at->written;
    while (k && c != h->key[k])
        k = h->back[k];
    const bool goes_on = c == h->key[k];
    int r = release(at, goes_on ? at->written - k : at->written, out);
    if (r == 0)
        r = buf_add(goes_on ? &at->raw : out, bytes, len);
    if (r == 0 && goes_on)
        r = buf_add(&at->sizes, &size, 1);
    at->written = goes_on ? k + 1 : 0;
    if (r == 0 && at->written == h->len) {
        r = buf_str(out, "[key]");
        buf_reset(&at->raw);
        buf_reset(&at->sizes);
        at->written = 0;
    }
    return r;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* What the escape in AT says: a character, -1 another one, -2 it is not whole yet, -3 it is none. */
static int meant(const struct proxy_hiding *at)
{
    int code = 0;
    if (at->escaped < 2)
        return -2;
    if (at->escape[1] != 'u')
        return strchr("/\"\\", at->escape[1]) && at->escape[1] ? at->escape[1] : -3;
    for (size_t i = 2; i < at->escaped; i++) {
        if (digit(at->escape[i]) < 0)
            return -3;
        code = code * 16 + digit(at->escape[i]);
    }
    return at->escaped < 6 ? -2 : code && code < 128 ? code : -1;
}

static int take_byte(const struct proxy_hidden *h, struct proxy_hiding *at, char byte,
                     struct buf *out)
{
    if (!at->escaped && byte != '\\')
        return take(h, at, byte, &byte, 1, out);
    at->escape[at->escaped++] = byte;
    const int c = meant(at);
    if (c == -2)
        return 0;
    const size_t len = at->escaped;
    at->escaped = 0;
    if (c != -3)
        return take(h, at, c, at->escape, len, out);
    int r = take(h, at, -1, at->escape, len - 1, out); /* what ended it may begin a key */
    return r == 0 ? take_byte(h, at, byte, out) : r;
}

static int hand_on(const struct proxy_hidden *h, struct proxy_hiding *at, const char *data,
                   size_t len, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < len; i++)
        r = take_byte(h, at, data[i], out);
    return r;
}

/* ---- as it is ---- */

int proxy_hide(const struct proxy_hidden *h, struct proxy_hiding *at, const char *data, size_t len,
               struct buf *out)
{
    int r = h->len ? 0 : buf_add(out, data, len);
    for (size_t i = 0; r == 0 && h->len && i < len; i++) {
        size_t k = at->matched;
        while (k && data[i] != h->key[k])
            k = h->back[k];
        if (data[i] == h->key[k]) { /* what was matched and is not any more goes on */
            r = hand_on(h, at, h->key, at->matched - k, out);
            at->matched = k + 1;
        } else {
            r = hand_on(h, at, h->key, at->matched, out);
            if (r == 0)
                r = hand_on(h, at, data + i, 1, out);
            at->matched = 0;
        }
        if (r == 0 && at->matched == h->len) {
            r = hand_on(h, at, "[key]", 5, out);
            at->matched = 0;
        }
    }
    return r;
}

int proxy_hide_end(const struct proxy_hidden *h, struct proxy_hiding *at, struct buf *out)
{
    int r = at->matched ? hand_on(h, at, h->key, at->matched, out) : 0;
    if (r == 0)
        r = release(at, at->written, out);
    if (r == 0 && at->escaped)
        r = buf_add(out, at->escape, at->escaped);
    at->matched = at->written = at->escaped = 0;
    return r;
}
