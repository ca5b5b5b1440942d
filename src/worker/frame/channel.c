/* SPDX-License-Identifier: Apache-2.0 */
/* Plain blocking calls on a SOCK_SEQPACKET socket: a packet is a frame, so nothing has to be put
 * together again, and a frame that is too long is refused by its length alone. The supervisor sets the
 * pace before GO; after it the guest runs and only sends. */
#include "worker/frame/channel.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char in_storage[LIMIT_FRAME], out_storage[LIMIT_FRAME];
static struct buf out = {
    .data = out_storage, .cap = sizeof out_storage, .max = sizeof out_storage - 1};

static int rode_along = -1; /* a descriptor that came with the last frame */

int worker_channel_descriptor(void)
{
    int fd = rode_along;
    rode_along = -1;
    return fd;
}

bool worker_channel_waits(void)
{
    char byte;
    return recv(WORKER_CHANNEL, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

void worker_channel_warm(void)
{
    in_storage[0] = out_storage[0] = 0;
}

int worker_channel_next(struct wire_reader *r)
{
    union {
        struct cmsghdr head;
        char storage[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec to = {in_storage, sizeof in_storage};
    struct msghdr m = {.msg_iov = &to, .msg_iovlen = 1};
    ssize_t n;
    do {
        m.msg_control = control.storage;
        m.msg_controllen = sizeof control.storage;
        n = recvmsg(WORKER_CHANNEL, &m, MSG_TRUNC | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (rode_along >= 0)
        close(rode_along); /* a descriptor of an earlier frame that nobody took */
    rode_along = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
        memcpy(&rode_along, CMSG_DATA(h), sizeof rode_along);
    if ((size_t)n > sizeof in_storage)
        return -1;
    struct err err = ERR_INIT;
    return wire_open(r, in_storage, (size_t)n, &err) < 0 ? -1 : 1;
}

void worker_channel_begin(struct wire_writer *w, enum wire_type type)
{
    buf_reset(&out);
    wire_begin(w, &out, type);
}

int worker_channel_send(struct wire_writer *w)
{
    if (wire_end(w) < 0)
        return -1;
    ssize_t n;
    do
        n = send(WORKER_CHANNEL, out.data, out.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)out.len ? 0 : -1;
}

void worker_channel_say(enum wire_type type)
{
    struct wire_writer w;
    worker_channel_begin(&w, type);
    (void)!worker_channel_send(&w);
}

void worker_channel_text(struct wire_writer *w, const char *text, size_t len, size_t storage)
{
    char clean[4096];
    size_t at = 0, to = 0;
    if (storage > sizeof clean)
        storage = sizeof clean;
    while (at < len) {
        uint32_t c;
        int n = utf8_decode((const unsigned char *)text + at, len - at, &c);
        bool good = n > 0 && c != 0;
        size_t size = good ? (size_t)n : 1;
        if (to + size >= storage)
            break;
        memcpy(clean + to, good ? text + at : "?", size);
        to += size;
        at += size;
    }
    clean[to] = 0;
    wire_put_text(w, clean);
}

/* The bytes of the first MOST characters. */
static size_t characters(const char *text, size_t len, size_t most)
{
    size_t at = 0;
    for (size_t count = 0; at < len; at++) {
        count += ((unsigned char)text[at] & 0xc0) != 0x80;
        if (count > most)
            break;
    }
    return at;
}

void worker_channel_pieces(enum wire_type type, const char *text, size_t len)
{
    const size_t end = characters(text, len, LIMIT_VALUE + 1);
    size_t at = 0;
    do {
        struct wire_writer w;
        const size_t piece = end - at < LIMIT_FRAME / 4 ? end - at : LIMIT_FRAME / 4;
        worker_channel_begin(&w, type);
        wire_put_uint(&w, at == 0);
        wire_put_bytes(&w, text + at, piece);
        if (worker_channel_send(&w) < 0)
            return; /* failing is the next read's end */
        at += piece;
    } while (at < end);
}

void worker_channel_fault(const char *type, const char *text, size_t len, unsigned line)
{
    struct wire_writer w;
    worker_channel_begin(&w, WIRE_FAULT);
    worker_channel_text(&w, type, strlen(type), 80);
    worker_channel_text(&w, text, len, 1000);
    wire_put_uint(&w, line);
    (void)!worker_channel_send(&w);
}

void worker_note(const char *id)
{
    struct wire_writer w;
    worker_channel_begin(&w, WIRE_NOTE);
    worker_channel_text(&w, id, strlen(id), 48);
    (void)!worker_channel_send(&w);
}

void worker_event(void *ctx, const char *layer, const char *rule, const char *detail,
                  const char *hint, unsigned line)
{
    struct wire_writer w;
    (void)ctx;
    worker_channel_begin(&w, WIRE_EVENT);
    worker_channel_text(&w, layer, strlen(layer), 16);
    worker_channel_text(&w, rule, strlen(rule), 48);
    worker_channel_text(&w, detail, strlen(detail), 320);
    worker_channel_text(&w, hint, strlen(hint), LIMIT_HINT);
    wire_put_uint(&w, line);
    (void)!worker_channel_send(&w);
}
