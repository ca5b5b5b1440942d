/* SPDX-License-Identifier: Apache-2.0 */
/* Doubling growth, clipped to the ceiling; one byte beyond `len` is always kept for the NUL. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = 0;
}

void buf_drop(struct buf *b, size_t *done)
{
    if (*done <= b->len / 2)
        return;
    b->len -= *done;
    memmove(b->data, b->data + *done, b->len);
    b->data[b->len] = 0;
    *done = 0;
}

static int reserve(struct buf *b, size_t more)
{
    if (more > b->max - b->len)
        return ERR_LIMIT;
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap * 2 : 256;
    if (cap < need)
        cap = need;
    if (cap > b->max + 1)
        cap = b->max + 1;
    char *p = realloc(b->data, cap);
    if (!p)
        return ERR_MEMORY;
    b->data = p;
    b->cap = cap;
    return 0;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
    int r = reserve(b, len);
    if (r < 0)
        return r;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
    return 0;
}

int buf_reserve(struct buf *b, size_t len, char **ret)
{
    int r = reserve(b, len);
    if (r == 0)
        *ret = b->data + b->len;
    return r;
}

void buf_added(struct buf *b, size_t len)
{
    base_assert(b->len + len < b->cap);
    b->len += len;
    b->data[b->len] = 0;
}

int buf_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int r = n < 0 ? ERR_FORMAT : reserve(b, (size_t)n);
    if (r == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return r;
}
