/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events out of bytes.
 *
 * Takes:   bytes that an upstream sent, in pieces of any size.
 * Gives:   the data of each event, the same however the bytes were cut.
 * Never:   keeps more of an event than LIMIT_PROXY_EVENT.
 * Runs in: cordon-proxy-front, contained; fuzz targets.
 */
#ifndef PROXY_FRONT_SSE_H
#define PROXY_FRONT_SSE_H

#include "base/buf.h"

#include <stdbool.h>

struct proxy_sse {
    struct buf line, data;
    bool has_data, after_cr;
};

void proxy_sse_init(struct proxy_sse *s);
void proxy_sse_done(struct proxy_sse *s);
/* Takes bytes up to the end of an event: how many, and whether data has one. ERR_LIMIT: one that is too long. */
ERR_MUST_USE int proxy_sse_take(struct proxy_sse *s, const char *data, size_t len, size_t *ret_used,
                                bool *ret_event);
/* Before the next event. */
void proxy_sse_next(struct proxy_sse *s);

#endif
