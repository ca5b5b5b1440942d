/* The head is most of the cap, because that is what streams to the reader as it comes; the tail is
 * what a reader needs of the end (an error is there). The ring costs nothing until the head is
 * full. */
#include "output/capture.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void output_capture_init(struct output_capture *c, size_t cap)
{
    size_t tail = cap / 4 < 64 * KIB ? cap / 4 : 64 * KIB;
    *c = (struct output_capture){.head_room = cap - tail, .tail_room = tail};
    buf_init(&c->head, c->head_room);
}

void output_capture_done(struct output_capture *c)
{
    buf_done(&c->head);
    free(c->tail);
    c->tail = NULL;
}

static void ring_add(struct output_capture *c, const char *p, size_t len)
{
    if (len > c->tail_room) { /* only the end of it can stay */
        p += len - c->tail_room;
        len = c->tail_room;
    }
    while (len) {
        size_t n = c->tail_room - c->tail_at;
        if (n > len)
            n = len;
        memcpy(c->tail + c->tail_at, p, n);
        c->tail_at = (c->tail_at + n) % c->tail_room;
        c->tail_len = c->tail_len + n < c->tail_room ? c->tail_len + n : c->tail_room;
        p += n;
        len -= n;
    }
}

size_t output_capture_add(struct output_capture *c, const void *data, size_t len)
{
    size_t room = c->head_room - c->head.len, first = len < room ? len : room;
    c->total += len;
    if (c->tail_len || c->failed)
        first = 0; /* the head is closed: order matters more than a full head */
    if (first && buf_add(&c->head, data, first) < 0) {
        c->failed = true;
        first = 0;
    }
    if (first < len && c->tail_room && !c->failed) {
        if (!c->tail)
            c->tail = malloc(c->tail_room);
        if (c->tail)
            ring_add(c, (const char *)data + first, len - first);
        else
            c->failed = true;
    }
    return first;
}

bool output_capture_truncated(const struct output_capture *c)
{
    return c->total > c->head.len + c->tail_len;
}

int output_capture_rest(const struct output_capture *c, struct buf *out)
{
    size_t start = c->tail_len < c->tail_room ? 0 : c->tail_at;
    size_t first = c->tail_len < c->tail_room - start ? c->tail_len : c->tail_room - start;
    bool cut = output_capture_truncated(c);
    int r = cut ? buf_str(out, OUTPUT_MARKER) : 0;
    if (r < 0 || !c->tail_len)
        return r;
    size_t skip = 0; /* continuation bytes whose beginning was cut away */
    while (cut && skip < 3 && skip < first && (c->tail[start + skip] & 0xc0) == 0x80)
        skip++;
    r = buf_add(out, c->tail + start + skip, first - skip);
    return r < 0 ? r : buf_add(out, c->tail, c->tail_len - first);
}
