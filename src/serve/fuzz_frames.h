/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of the front share: whether it asks cordond only what the table of requests has.
 *
 * Takes:   the frames that a front has written for cordond.
 * Gives:   the number of the last request in them; they are taken out.
 * Never:   lets a frame pass that cordond would refuse to read.
 * Runs in: the fuzz targets.
 */
#ifndef SERVE_FUZZ_FRAMES_H
#define SERVE_FUZZ_FRAMES_H

#include "serve/front/front.h"

#include <string.h>

static inline void fuzz_check_frames(struct buf *frames, uint64_t *last)
{
    for (size_t at = 0; at < frames->len;) {
        uint32_t len;
        struct wire_reader r;
        struct serve_request q;
        struct err err = ERR_INIT;
        memcpy(&len, frames->data + at, sizeof len);
        base_assert(wire_open(&r, frames->data + at + sizeof len, len, &err) == 0);
        if (r.type == WIRE_SERVE_ASK) {
            base_assert(serve_request_read(&r, &q, &err) == 0);
            *last = q.number;
        }
        at += sizeof len + len;
    }
    buf_reset(frames);
}

#endif
