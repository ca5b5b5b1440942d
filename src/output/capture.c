/* SPDX-License-Identifier: Apache-2.0 */
/* The head is most of the cap, because that is what streams to the reader as it comes; the tail is
 * what a reader needs of the end (an error is there). The ring costs nothing until the head is
 * full. A cap in characters counts the bytes that begin one: its ring has room for the longest. */
#include "output/capture.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

void output_capture_init(struct output_capture *c, size_t cap)
{
    size_t tail = cap / 4 < 64 * KIB ? cap / 4 : 64 * KIB;
    *c = (struct output_capture){.head_cap = cap - tail, .tail_cap = tail, .tail_units = tail};
    buf_init(&c->head, c->head_cap);
}

void output_capture_init_characters(struct output_capture *c, size_t cap)
{
    output_capture_init(c, cap);
    c->characters = true;
    c->tail_cap = 4 * c->tail_units;
    buf_init(&c->head, 4 * c->head_cap);
}

void output_capture_done(struct output_capture *c)
{
    buf_done(&c->head);
    free(c->tail);
    c->tail = NULL;
}

static void ring_add(struct output_capture *c, const char *p, size_t len)
{
    if (len > c->tail_cap) { /* only the end of it can stay */
        p += len - c->tail_cap;
        len = c->tail_cap;
    }
    while (len) {
        size_t n = c->tail_cap - c->tail_at;
        if (n > len)
            n = len;
        memcpy(c->tail + c->tail_at, p, n);
        c->tail_at = (c->tail_at + n) % c->tail_cap;
        c->tail_len = c->tail_len + n < c->tail_cap ? c->tail_len + n : c->tail_cap;
        p += n;
        len -= n;
    }
}

static bool begins_one(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static size_t count_characters(const char *p, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += begins_one(p[i]);
    return n;
}

/* How many of the bytes still go into the head; counts them. */
static size_t head_share(struct output_capture *c, const char *p, size_t len)
{
    size_t cap = c->head_cap - c->head_units, n = 0, units = 0;
    if (!c->characters) {
        n = units = len < cap ? len : cap;
    } else if (len <= cap) { /* so many bytes are at most so many characters */
        n = len;
        units = count_characters(p, len);
    } else {
        for (; n < len && (units < cap || !begins_one(p[n])); n++)
            units += begins_one(p[n]);
    }
    c->head_units += units;
    return n;
}

size_t output_capture_add(struct output_capture *c, const void *data, size_t len)
{
    const char *p = data;
    size_t first = 0;
    if (!c->tail_len && !c->failed && !c->closed) /* order matters more than a full head */
        first = head_share(c, p, len);
    c->total += c->characters ? count_characters(p, len) : len;
    if (first && buf_add(&c->head, p, first) < 0) {
        c->failed = true;
        first = 0;
    }
    if (first == len || c->failed)
        return first;
    c->closed = true;
    if (!c->tail && c->tail_cap)
        c->tail = malloc(c->tail_cap);
    if (c->tail)
        ring_add(c, p + first, len - first);
    else
        c->failed = c->tail_cap > 0;
    return first;
}

bool output_capture_truncated(const struct output_capture *c)
{
    return c->failed || c->total > c->head_cap + c->tail_units;
}

static char ring_at(const struct output_capture *c, size_t i)
{
    size_t at = c->tail_len < c->tail_cap ? i : c->tail_at + i;
    return c->tail[at < c->tail_cap ? at : at - c->tail_cap];
}

/* The bytes of the ring that are shown are its last ones: returns where they begin. */
static size_t tail_start(const struct output_capture *c)
{
    size_t i = 0;
    if (!output_capture_truncated(c))
        return 0;
    if (c->characters) {
        size_t units = 0;
        for (i = c->tail_len; i > 0 && units < c->tail_units; i--)
            units += begins_one(ring_at(c, i - 1));
    }
    for (size_t n = 0; n < 3 && i < c->tail_len && !begins_one(ring_at(c, i)); n++)
        i++; /* bytes whose beginning was cut away */
    return i;
}

uint64_t output_capture_tail(const struct output_capture *c)
{
    uint64_t units = 0;
    size_t i = tail_start(c);
    if (!c->characters)
        return c->tail_len - i;
    for (; i < c->tail_len; i++)
        units += begins_one(ring_at(c, i));
    return units;
}

int output_capture_rest(const struct output_capture *c, struct buf *out)
{
    int r = output_capture_truncated(c) ? buf_str(out, OUTPUT_MARKER) : 0;
    if (r < 0 || !c->tail_len || !c->tail_cap)
        return r;
    size_t skip = tail_start(c), start = c->tail_len < c->tail_cap ? 0 : c->tail_at;
    size_t from = (start + skip) % c->tail_cap, len = c->tail_len - skip;
    size_t first = len < c->tail_cap - from ? len : c->tail_cap - from;
    r = buf_add(out, c->tail + from, first);
    return r < 0 ? r : buf_add(out, c->tail, len - first);
}

size_t output_capture_rest_max(const struct output_capture *c)
{
    return c->tail_cap + 2 * sizeof OUTPUT_MARKER;
}
