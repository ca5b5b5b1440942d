/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that wait until a socket takes them.
 *
 * Takes:   frames, in the order in which they are to go.
 * Gives:   each as one packet.
 * Never:   waits; holds more than the ceiling that it was made with.
 * Runs in: cordon-proxy, cordon-proxy-front.
 */
#ifndef WIRE_QUEUE_H
#define WIRE_QUEUE_H

#include "wire/msg.h"

#include <stdbool.h>

struct wire_queue {
    struct buf frames; /* each with its length before it, as a uint32_t */
    size_t sent;
};

void wire_queue_init(struct wire_queue *q, size_t max);
void wire_queue_done(struct wire_queue *q);
/* Ends W and queues its FRAME, which is freed. */
ERR_MUST_USE int wire_queue_put(struct wire_queue *q, struct wire_writer *w, struct buf *frame);
/* As many as SOCK takes now. ERR_STATE: the other side is gone. */
ERR_MUST_USE int wire_queue_send(struct wire_queue *q, int sock);
static inline size_t wire_queue_waiting(const struct wire_queue *q)
{
    return q->frames.len - q->sent;
}

#endif
