/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a frame for cordond: refused, or a request of the table that is the same bytes when it is written again. The
 * first byte 0 stands for the head of a request, so that seeds stay what they are when the table of messages grows. */
#include "serve/table.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf frame, again;
    struct wire_writer w;
    struct wire_reader r;
    struct serve_request q;
    struct err err = ERR_INIT;
    buf_init(&frame, 2 * LIMIT_FRAME);
    buf_init(&again, 2 * LIMIT_FRAME);
    if (size && data[0] == 0)
        wire_begin(&w, &frame, WIRE_SERVE_ASK);
    if (size > 1 && buf_add(&frame, data + 1, size - 1) == 0 &&
        wire_open(&r, frame.data, frame.len, &err) == 0 && serve_request_read(&r, &q, &err) == 0) {
        base_assert(q.verb < SERVE_VERB_COUNT);
        base_assert(q.number && serve_handle_good(serve_verb_handle(q.verb), q.handle));
        base_assert(q.body <= serve_verb_body(q.verb));
        size_t len;
        const void *piece = wire_get_bytes(&r, &len);
        if (len == serve_piece_length(q.body)) {
            base_assert(serve_request_write(&q, piece, &again, &err) == 0);
            base_assert(again.len == frame.len && memcmp(again.data, frame.data, frame.len) == 0);
        }
    }
    buf_done(&again);
    buf_done(&frame);
    return 0;
}
