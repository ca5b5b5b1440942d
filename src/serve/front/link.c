/* SPDX-License-Identifier: Apache-2.0 */
/* The same for a client of lines and for clients of HTTP. A packet that does not fit now stays where it is until poll says
 * that there is room. */
#include "serve/front/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

void serve_link_init(struct serve_link *l, struct serve_front *front)
{
    *l = (struct serve_link){.front = front};
}

bool serve_link_full(const struct serve_link *l)
{
    return serve_front_frames(l->front)->len - l->sent > LIMIT_SERVE_HOLD;
}

short serve_link_events(const struct serve_link *l)
{
    return (short)(POLLIN | (serve_front_frames(l->front)->len ? POLLOUT : 0));
}

void serve_link_send(struct serve_link *l)
{
    struct buf *frames = serve_front_frames(l->front);
    while (l->sent < frames->len && !l->over) {
        uint32_t len;
        memcpy(&len, frames->data + l->sent, sizeof len);
        struct iovec iov = {frames->data + l->sent + sizeof len, len};
        const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (sendmsg(SERVE_LINK_FD, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            l->over = errno != EAGAIN && errno != EINTR && errno != ENOBUFS;
            break;
        }
        l->sent += sizeof len + len;
    }
    buf_drop(frames, &l->sent);
}

int serve_link_read(struct serve_link *l, struct err *err)
{
    static char frame[LIMIT_FRAME];
    struct iovec iov = {frame, sizeof frame};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    const ssize_t n = recvmsg(SERVE_LINK_FD, &m, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    l->over = l->over || n <= 0;
    return n > 0 ? serve_front_frame(l->front, frame, (size_t)n, err) : 0;
}
