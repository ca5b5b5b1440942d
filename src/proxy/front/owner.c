/* SPDX-License-Identifier: Apache-2.0 */
/* What src/http/server.h asks of who owns its connections: here each request is a call, and cordon-proxy sends packets of its upstreams. A
 * call has its upstream's deadlines, and a client that leaves ends it. */
#include "proxy/front/front.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LISTENER_FD 0
#define KEYS_FD     3
#define FRAMES      512 /* taken in one turn */

/* ---- clients ---- */

static int admit(void *of, struct http_conn *c)
{
    return proxy_route_admit(of, c);
}

static bool begin(void *of, struct http_conn *c)
{
    return proxy_route_begin(of, c);
}

static void refuse(void *of, struct http_conn *c, int status)
{
    const struct proxy_shape *shape = c->route;
    (void)of;
    proxy_answer_error(c, shape && shape->anthropic, status, 0, http_phrase(status));
}

static void left(void *of, struct http_conn *c)
{
    (void)of;
    if (c->work)
        proxy_call_drop(c->work);
}

static uint64_t beat(void *of, struct http_conn *c)
{
    const struct proxy_front *f = of;
    struct proxy_call *call = c->work;
    if (!call) /* over, and its end could not be put: it is closed */
        return UINT64_MAX;
    if (f->server.now_ms >= call->beat_ms) {
        if (call->begun)
            proxy_answer_raw(call, ": \n\n");
        call->beat_ms = f->server.now_ms + LIMIT_HTTP_BEAT_MS;
    }
    return call->beat_ms;
}

/* A call is 0.2 MB and more while it lasts, its monitor's, and the allocator keeps what many of them leave: it is told to give it back
 * when none is left, or a hundred have ended (`make proxy-load`). */
static void give_back(void *of)
{
    struct proxy_front *f = of;
    if (f->ended < 100 && (f->calls || !f->ended))
        return;
    malloc_trim(0);
    f->ended = 0;
}

static const struct http_owner owner = {.body_max = LIMIT_PROXY_BODY,
                                        .out_max = LIMIT_PROXY_UNREAD + 8 * LIMIT_PROXY_EVENT,
                                        .admit = admit,
                                        .begin = begin,
                                        .refuse = refuse,
                                        .left = left,
                                        .beat = beat,
                                        .tick = give_back};

struct proxy_front *proxy_front_new(const struct proxy_front_config *config)
{
    struct proxy_front *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->config = config;
    f->server =
        (struct http_server){.owner = &owner, .of = f, .conns = f->conns, .count = PROXY_CONNS};
    wire_queue_init(&f->out, 2 * LIMIT_PROXY_BACKLOG + 8 * LIMIT_PROXY_BODY);
    return f;
}

void proxy_front_free(struct proxy_front *f)
{
    if (!f)
        return;
    http_server_done(&f->server);
    wire_queue_done(&f->out);
    free(f);
}

/* ---- cordon-proxy ---- */

static struct proxy_call *call_of(struct proxy_front *f, uint64_t number, bool stream)
{
    for (size_t i = 0; number && i < f->server.top; i++) {
        struct proxy_call *c = f->conns[i].work;
        if (c && (stream ? c->stream : c->number) == number)
            return c;
    }
    return NULL;
}

int proxy_front_frame(struct proxy_front *f, const void *frame, size_t len, struct err *err)
{
    struct wire_reader r;
    size_t n;
    int bad = wire_open(&r, frame, len, err);
    if (bad < 0)
        return bad;
    const bool stream = r.type != WIRE_PROXY_MAY;
    if (stream && r.type != WIRE_PROXY_STATUS && r.type != WIRE_PROXY_BYTES &&
        r.type != WIRE_PROXY_END)
        return err_set(err, ERR_FORMAT, "cordon-proxy sent what is not of the table: %s",
                       wire_name(r.type));
    struct proxy_call *c = call_of(f, wire_get_uint(&r), stream);
    if (!c) /* its client left, or its attempt was given up */
        return 0;
    if (r.type == WIRE_PROXY_BYTES) {
        const char *data = wire_get_bytes(&r, &n);
        proxy_call_bytes(c, data, n);
    } else if (r.type == WIRE_PROXY_STATUS) {
        proxy_call_status(c, wire_get_uint(&r));
    } else if (r.type == WIRE_PROXY_END) {
        const uint64_t how = wire_get_uint(&r);
        proxy_call_end(c, how < PROXY_ENDS ? (enum proxy_end)how : PROXY_END_BROKEN);
    } else {
        char why[300];
        const uint64_t status = wire_get_uint(&r), seconds = wire_get_uint(&r);
        wire_get_text(&r, why, sizeof why);
        proxy_call_may(c, status, seconds, why);
    }
    return f->bad < 0 ? err_set(err, f->bad, "no memory") : 0;
}

static short link_events(void *of)
{
    struct proxy_front *f = of;
    return (short)(POLLIN | (wire_queue_waiting(&f->out) ? POLLOUT : 0));
}

static int link_send(void *of, bool *ret_over, struct err *err)
{
    struct proxy_front *f = of;
    *ret_over = wire_queue_send(&f->out, KEYS_FD) < 0;
    return f->bad ? err_set(err, f->bad, "no memory") : 0;
}

static int link_read(void *of, bool *ret_over, struct err *err)
{
    static char frame[LIMIT_FRAME];
    struct proxy_front *f = of;
    int r = 0;
    for (int i = 0; i < FRAMES && r == 0 && !*ret_over; i++) {
        struct iovec iov = {frame, sizeof frame};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = recvmsg(KEYS_FD, &m, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        *ret_over = n <= 0;
        if (*ret_over)
            return 0;
        r = proxy_front_frame(f, frame, (size_t)n, err);
        /* a connection that is to be closed is closed now */
        if (wire_queue_send(&f->out, KEYS_FD) < 0)
            *ret_over = true;
    }
    return r;
}

int proxy_front_run(const struct proxy_front_config *config, struct err *err)
{
    static const struct http_link keys = {
        .fd = KEYS_FD, .events = link_events, .send = link_send, .read = link_read};
    struct proxy_front *f = proxy_front_new(config);
    if (!f)
        return err_set(err, ERR_MEMORY, "no memory");
    const int r = http_server_run(&f->server, LISTENER_FD, &keys, err);
    proxy_front_free(f);
    return r;
}
