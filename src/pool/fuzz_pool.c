/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request and as a reply: refused, or the same bytes when written again. The first byte says
 * which message's head stands before the rest, so that seeds stay what they are when the table grows;
 * past the list the rest is the whole frame. */
#include "pool/proto.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum wire_type types[] = {
    WIRE_LEASE,          WIRE_SESSION_NEW,    WIRE_SESSION_CALL,
    WIRE_SESSION_BRANCH, WIRE_BACK,           WIRE_SESSION_NEXT,
    WIRE_SESSION_EXPORT, WIRE_SESSION_CLOSE,  WIRE_SESSION_INTERRUPT,
    WIRE_POOL_SET,       WIRE_POOL_NEXT,      WIRE_POOL_STOP,
    WIRE_LENT,           WIRE_DECLINED,       WIRE_AGREED,
    WIRE_SESSION_IS,     WIRE_SESSION_LOG,    WIRE_POOL_IS,
    WIRE_POOL_END,       WIRE_SESSION_LAYERS, WIRE_SESSION_OWNER,
    WIRE_SESSION_BEGUN};

static void same(const struct buf *b, const struct buf *frame)
{
    base_assert(b->len == frame->len && memcmp(b->data, frame->data, b->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pool_request q;
    struct pool_reply p;
    struct err err = ERR_INIT;
    struct buf frame, b;
    struct wire_writer w;
    buf_init(&frame, 2 * LIMIT_FRAME);
    buf_init(&b, 2 * LIMIT_FRAME);
    if (size && data[0] < sizeof types / sizeof *types)
        wire_begin(&w, &frame, types[data[0]]);
    if (size > 1 && buf_add(&frame, data + 1, size - 1) == 0) {
        if (pool_request_read(frame.data, frame.len, &q, &err) == 0) {
            base_assert(!q.name[0] || pool_name_good(q.name));
            base_assert(pool_request_write(&q, &b, &err) == 0);
            same(&b, &frame);
        } else {
            base_assert(err.code != 0); /* a refusal says why */
        }
        buf_reset(&b);
        if (pool_reply_read(frame.data, frame.len, &p, &err) == 0) {
            base_assert(pool_reply_write(&p, &b, &err) == 0);
            same(&b, &frame);
        }
    }
    buf_done(&b);
    buf_done(&frame);
    return 0;
}
