/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection, one request at a time. Every state that a stranger can keep us in has a deadline; a call has those of
 * its upstream, and a client that leaves ends it. */
#include "proxy/front/front.h"

#include <stdlib.h>
#include <string.h>

struct proxy_front *proxy_front_new(const struct proxy_front_config *config)
{
    struct proxy_front *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->config = config;
    wire_queue_init(&f->out, 2 * LIMIT_PROXY_BACKLOG + 8 * LIMIT_PROXY_BODY);
    return f;
}

static void forget(struct proxy_conn *c)
{
    buf_done(&c->in);
    buf_done(&c->head);
    buf_done(&c->body);
    buf_done(&c->out);
    *c = (struct proxy_conn){.state = PROXY_CONN_UNUSED};
}

void proxy_conn_left(struct proxy_front *f, struct proxy_conn *c)
{
    (void)f;
    if (c->call)
        proxy_call_drop(c->call);
    forget(c);
}

void proxy_front_free(struct proxy_front *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < PROXY_CONNS; i++)
        proxy_conn_left(f, &f->conns[i]);
    wire_queue_done(&f->out);
    free(f);
}

struct proxy_conn *proxy_conn_accept(struct proxy_front *f)
{
    struct proxy_conn *c = NULL;
    for (size_t i = 0; i < PROXY_CONNS && !c; i++)
        if (f->conns[i].state == PROXY_CONN_UNUSED)
            c = &f->conns[i];
    if (!c)
        return NULL;
    buf_init(&c->in, LIMIT_HTTP_HEAD + 64 * KIB);
    buf_init(&c->head, LIMIT_HTTP_HEAD + 1);
    buf_init(&c->body, LIMIT_PROXY_BODY);
    buf_init(&c->out, LIMIT_PROXY_UNREAD + 8 * LIMIT_PROXY_EVENT);
    c->state = PROXY_CONN_HEAD;
    c->deadline_ms = f->now_ms + LIMIT_HTTP_HEAD_MS;
    return c;
}

/* ---- steps ---- */

static void take_from_in(struct proxy_conn *c, size_t len)
{
    memmove(c->in.data, c->in.data + len, c->in.len - len);
    c->in.len -= len;
}

static void refuse(struct proxy_conn *c, int status)
{
    if (c->state == PROXY_CONN_HEAD ||
        c->state ==
            PROXY_CONN_BODY) /* what was not read of it cannot be told from the next request */
        c->q.close = c->q.close || status == 408 || c->state == PROXY_CONN_BODY || c->q.length ||
                     c->q.chunked;
    proxy_answer_error(c, c->shape && c->shape->anthropic, status, 0, http_phrase(status));
}

static void ready(struct proxy_front *f, struct proxy_conn *c)
{
    proxy_route_begin(f, c);
    buf_done(&c->body);
    buf_init(&c->body, LIMIT_PROXY_BODY);
    c->deadline_ms = f->now_ms + LIMIT_HTTP_STALL_MS;
    c->beat_ms = f->now_ms + LIMIT_HTTP_BEAT_MS;
}

static void take_head(struct proxy_front *f, struct proxy_conn *c, size_t len)
{
    buf_reset(&c->head);
    int status = buf_add(&c->head, c->in.data, len) < 0 ? 503 : 0;
    take_from_in(c, len);
    c->scanned = 0;
    c->q = (struct http_head){.close = true};
    if (!status)
        status = http_parse(c->head.data, c->head.len, &c->q);
    if (status)
        c->q = (struct http_head){.close = true}; /* nothing of it can be relied upon */
    else
        status = proxy_route_admit(f, c);
    if (status) {
        refuse(c, status);
    } else if (!c->q.length && !c->q.chunked) {
        ready(f, c);
    } else {
        if (c->q.expects && c->in.len == 0)
            proxy_conn_put(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        http_body_init(&c->decoder, &c->q);
        c->state = PROXY_CONN_BODY;
        c->deadline_ms = f->now_ms + LIMIT_HTTP_BODY_MS;
    }
}

static void step_head(struct proxy_front *f, struct proxy_conn *c)
{
    const bool fresh = c->scanned == 0;
    const int n = http_scan(c->in.data, c->in.len, &c->scanned);
    if (n > 0) {
        take_head(f, c, (size_t)n);
    } else if (n < 0) {
        c->q = (struct http_head){.close = true};
        refuse(c, -n);
    } else if (fresh && f->now_ms + LIMIT_HTTP_HEAD_MS < c->deadline_ms) {
        c->deadline_ms = f->now_ms + LIMIT_HTTP_HEAD_MS; /* it was idle until now */
    }
}

static void step_body(struct proxy_front *f, struct proxy_conn *c)
{
    size_t used = 0;
    const int n = http_body_take(&c->decoder, c->in.data, c->in.len, &used, &c->body);
    take_from_in(c, used);
    if (n == 1)
        ready(f, c);
    else if (n)
        refuse(c, n);
}

static void steps(struct proxy_front *f, struct proxy_conn *c)
{
    bool moved = true;
    while (moved && !c->broken && c->in.len) {
        const enum proxy_state was = c->state;
        const size_t before = c->in.len;
        if (was == PROXY_CONN_HEAD)
            step_head(f, c);
        else if (was == PROXY_CONN_BODY)
            step_body(f, c);
        moved = c->state != was || c->in.len != before;
    }
}

void proxy_conn_bytes(struct proxy_front *f, struct proxy_conn *c, const char *data, size_t len)
{
    if (c->state == PROXY_CONN_LINGER) /* it is not listened to any more */
        return;
    if (buf_add(&c->in, data, len) < 0)
        c->broken = true;
    else
        steps(f, c);
}

bool proxy_conn_reads(const struct proxy_conn *c)
{
    return c->state == PROXY_CONN_HEAD || c->state == PROXY_CONN_BODY ||
           c->state == PROXY_CONN_LINGER;
}

void proxy_conn_wrote(struct proxy_front *f, struct proxy_conn *c, size_t len)
{
    c->written += len;
    c->deadline_ms = f->now_ms + LIMIT_HTTP_STALL_MS;
    if (c->written < c->out.len) { /* a stream that is always behind does not keep what was read */
        if (c->written > 256 * KIB) {
            memmove(c->out.data, c->out.data + c->written, c->out.len - c->written);
            c->out.len -= c->written;
            c->written = 0;
        }
        return;
    }
    buf_reset(&c->out);
    c->written = 0;
    if (c->state != PROXY_CONN_WRITING)
        return;
    c->state = c->q.close ? PROXY_CONN_LINGER : PROXY_CONN_HEAD;
    c->deadline_ms = f->now_ms + (c->q.close ? LIMIT_HTTP_LINGER_MS : LIMIT_HTTP_IDLE_MS);
    steps(f, c);
}

/* ---- time ---- */

static void late(struct proxy_front *f, struct proxy_conn *c)
{
    if ((c->state == PROXY_CONN_HEAD && c->scanned) || c->state == PROXY_CONN_BODY) {
        refuse(c, 408);
        c->deadline_ms = f->now_ms + LIMIT_HTTP_LINGER_MS;
    } else {
        c->broken = true;
    }
}

/* A call whose client has read everything has its upstream's deadlines; a stream of it is told so often that it lives. */
static uint64_t tick_call(struct proxy_front *f, struct proxy_conn *c)
{
    c->deadline_ms = f->now_ms + LIMIT_HTTP_STALL_MS; /* from the first byte that is put */
    if (f->now_ms >= c->beat_ms) {
        if (c->call->begun)
            proxy_answer_raw(c->call, ": \n\n");
        c->beat_ms = f->now_ms + LIMIT_HTTP_BEAT_MS;
    }
    return c->beat_ms;
}

uint64_t proxy_front_tick(struct proxy_front *f)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < PROXY_CONNS; i++) {
        struct proxy_conn *c = &f->conns[i];
        if (c->state == PROXY_CONN_UNUSED)
            continue;
        uint64_t at = c->deadline_ms;
        if (c->state == PROXY_CONN_CALL && c->out.len == c->written)
            at = tick_call(f, c);
        else if (f->now_ms >= c->deadline_ms)
            late(f, c);
        next = at < next ? at : next;
    }
    return next;
}

/* ---- frames ---- */

static struct proxy_call *call_of(struct proxy_front *f, uint64_t number, bool stream)
{
    for (size_t i = 0; number && i < PROXY_CONNS; i++) {
        struct proxy_call *c = f->conns[i].call;
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
