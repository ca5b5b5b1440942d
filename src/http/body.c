/* SPDX-License-Identifier: Apache-2.0 */
/* The body, as its head framed it. A chunk's size is one to eight hexadecimal digits and nothing else; extensions and
 * trailers, which no client of ours sends, are errors, because what is not read cannot be understood twice. */
#include "http/http.h"

enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, WHOLE };

void http_body_init(struct http_body *b, const struct http_head *head)
{
    *b = (struct http_body){.chunked = head->chunked, .left = head->length};
    b->state = head->chunked ? SIZE : head->length ? DATA : WHOLE;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One byte between the data of chunks. False: it does not belong there. */
static bool step(struct http_body *b, char c)
{
    const int d = digit(c);
    switch (b->state) {
    case SIZE:
        if (d >= 0 && b->digits < 8) {
            b->left = b->left * 16 + (uint64_t)d;
            b->digits++;
            return true;
        }
        b->state = SIZE_LF;
        return c == '\r' && b->digits > 0;
    case SIZE_LF:
        b->state = b->left ? DATA : LAST_CR;
        return c == '\n';
    case DATA_CR:
        b->state = DATA_LF;
        return c == '\r';
    case DATA_LF:
        b->digits = 0;
        b->state = SIZE;
        return c == '\n';
    case LAST_CR:
        b->state = LAST_LF;
        return c == '\r';
    default:
        b->state = WHOLE;
        return c == '\n';
    }
}

int http_body_take(struct http_body *b, const char *data, size_t len, size_t *used, struct buf *out)
{
    size_t at = 0;
    int status = 0;
    while (!status && at < len && b->state != WHOLE) {
        if (b->state != DATA) {
            status = step(b, data[at++]) ? 0 : 400;
            continue;
        }
        const size_t have = len - at, n = b->left < have ? (size_t)b->left : have;
        if (b->left > out->max - out->len || buf_add(out, data + at, n) < 0) {
            status = 413;
            continue;
        }
        at += n;
        b->left -= n;
        if (b->left == 0)
            b->state = b->chunked ? DATA_CR : WHOLE;
    }
    *used = at;
    return status ? status : b->state == WHOLE;
}
