/* SPDX-License-Identifier: Apache-2.0 */
/* One buffer for all: what was sent is dropped when everything was, or when it is the larger half, so that a queue that never runs empty
 * does not grow. */
#include "wire/queue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void wire_queue_init(struct wire_queue *q, size_t max)
{
    buf_init(&q->frames, max);
    q->sent = 0;
}

void wire_queue_done(struct wire_queue *q)
{
    buf_done(&q->frames);
    q->sent = 0;
}

int wire_queue_put(struct wire_queue *q, struct wire_writer *w, struct buf *frame)
{
    int r = wire_end(w);
    const uint32_t len = (uint32_t)frame->len;
    char *at = NULL;
    if (r == 0)
        r = buf_reserve(&q->frames, sizeof len + frame->len, &at);
    if (r == 0) {
        memcpy(at, &len, sizeof len);
        memcpy(at + sizeof len, frame->data, frame->len);
        buf_added(&q->frames, sizeof len + frame->len);
    }
    buf_done(frame);
    return r;
}

int wire_queue_send(struct wire_queue *q, int sock)
{
    int r = 0;
    while (r == 0 && q->sent < q->frames.len) {
        uint32_t len;
        memcpy(&len, q->frames.data + q->sent, sizeof len);
        struct iovec iov = {q->frames.data + q->sent + sizeof len, len};
        const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            q->sent += sizeof len + len;
        else if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
            break;
        else
            r = ERR_STATE;
    }
    buf_drop(&q->frames, &q->sent);
    return r;
}
