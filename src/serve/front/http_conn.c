/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection. One request at a time: what a client sends ahead waits in the socket. Every state that a
 * stranger can keep us in has a deadline, and one that has none of the client's work is dropped for a new one where
 * there is no room. */
#include "serve/front/http_server.h"

#include <stdlib.h>
#include <string.h>

struct serve_http *serve_http_new(struct serve_front *f, const struct serve_http_config *config)
{
    struct serve_http *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->front = f;
    h->config = *config;
    return h;
}

static void forget(struct serve_http_conn *c)
{
    buf_done(&c->in);
    buf_done(&c->head);
    buf_done(&c->body);
    buf_done(&c->out);
    *c = (struct serve_http_conn){.state = SERVE_HTTP_UNUSED};
}

void serve_http_free(struct serve_http *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++)
        serve_http_exchange_free(&h->exchanges[i]);
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++)
        forget(&h->conns[i]);
    free(h);
}

struct serve_http_conn *serve_http_accept(struct serve_http *h)
{
    struct serve_http_conn *c = NULL;
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++)
        if (h->conns[i].state == SERVE_HTTP_UNUSED)
            c = &h->conns[i];
    if (!c)
        return NULL;
    buf_init(&c->in, LIMIT_HTTP_HEAD + 64 * KIB);
    buf_init(&c->head, LIMIT_HTTP_HEAD + 1);
    buf_init(&c->body, LIMIT_SERVE_LINE);
    buf_init(&c->out, LIMIT_SERVE_OUT);
    c->state = SERVE_HTTP_HEAD;
    c->deadline_ms = h->now_ms + LIMIT_HTTP_HEAD_MS;
    return c;
}

/* A request of a session goes on without its connection; any other ends with it, and its run, too. */
void serve_http_left(struct serve_http *h, struct serve_http_conn *c)
{
    struct serve_http_exchange *x = c->exchange;
    if (x && x->session && x != x->session->listening) {
        x->conn = NULL;
    } else if (x) {
        serve_calls_drop(h->front, &x->talk, &x->sink);
        serve_http_exchange_free(x);
    }
    forget(c);
}

/* ---- steps ---- */

static void take_from_in(struct serve_http_conn *c, size_t len)
{
    memmove(c->in.data, c->in.data + len, c->in.len - len);
    c->in.len -= len;
}

static void begin(struct serve_http *h, struct serve_http_conn *c)
{
    if (c->state != SERVE_HTTP_READY || !serve_http_begin(h, c))
        return;
    buf_done(&c->body);
    buf_init(&c->body, LIMIT_SERVE_LINE);
    c->deadline_ms = h->now_ms + LIMIT_HTTP_STALL_MS;
}

static void ready(struct serve_http *h, struct serve_http_conn *c)
{
    c->state = SERVE_HTTP_READY;
    c->turn = ++h->turns;
    c->deadline_ms = h->now_ms + h->front->config.answer_ms;
    begin(h, c);
}

/* A head that is whole: what it asks for is judged before a byte of its body is read. */
static void take_head(struct serve_http *h, struct serve_http_conn *c, size_t len)
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
        status = serve_http_admit(h, &c->q);
    if (status) {
        serve_http_refuse(c, status, NULL);
        return;
    }
    if (!c->q.length && !c->q.chunked) {
        ready(h, c);
        return;
    }
    if (c->q.expects && c->in.len == 0 && buf_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n") < 0)
        c->broken = true;
    http_body_init(&c->decoder, &c->q);
    c->state = SERVE_HTTP_BODY;
    c->deadline_ms = h->now_ms + LIMIT_HTTP_BODY_MS;
}

static void step_head(struct serve_http *h, struct serve_http_conn *c)
{
    const bool fresh = c->scanned == 0;
    const int n = http_scan(c->in.data, c->in.len, &c->scanned);
    if (n > 0) {
        take_head(h, c, (size_t)n);
    } else if (n < 0) {
        c->q = (struct http_head){.close = true};
        serve_http_refuse(c, -n, NULL);
    } else if (fresh && h->now_ms + LIMIT_HTTP_HEAD_MS < c->deadline_ms) {
        c->deadline_ms = h->now_ms + LIMIT_HTTP_HEAD_MS; /* it was idle until now */
    }
}

static void step_body(struct serve_http *h, struct serve_http_conn *c)
{
    size_t used = 0;
    const int n = http_body_take(&c->decoder, c->in.data, c->in.len, &used, &c->body);
    take_from_in(c, used);
    if (n == 1)
        ready(h, c);
    else if (n)
        serve_http_refuse(c, n, NULL);
}

/* As far as what is here goes. */
static void steps(struct serve_http *h, struct serve_http_conn *c)
{
    bool moved = true;
    while (moved && !c->broken && c->in.len) {
        const enum serve_http_state was = c->state;
        const size_t before = c->in.len;
        if (was == SERVE_HTTP_HEAD)
            step_head(h, c);
        else if (was == SERVE_HTTP_BODY)
            step_body(h, c);
        moved = c->state != was || c->in.len != before;
    }
}

void serve_http_bytes(struct serve_http *h, struct serve_http_conn *c, const char *data, size_t len)
{
    if (c->state == SERVE_HTTP_LINGER) /* it is not listened to any more */
        return;
    if (buf_add(&c->in, data, len) < 0)
        c->broken = true;
    else
        steps(h, c);
}

bool serve_http_reads(const struct serve_http_conn *c)
{
    return c->state == SERVE_HTTP_HEAD || c->state == SERVE_HTTP_BODY ||
           c->state == SERVE_HTTP_LINGER;
}

void serve_http_wrote(struct serve_http *h, struct serve_http_conn *c, size_t len)
{
    c->written += len;
    if (len && c->state >= SERVE_HTTP_WAITING)
        c->deadline_ms = h->now_ms + LIMIT_HTTP_STALL_MS;
    if (c->written < c->out.len)
        return;
    buf_reset(&c->out);
    c->written = 0;
    if (c->state != SERVE_HTTP_WRITING)
        return;
    c->state = c->q.close ? SERVE_HTTP_LINGER : SERVE_HTTP_HEAD;
    c->deadline_ms = h->now_ms + (c->q.close ? LIMIT_HTTP_LINGER_MS : LIMIT_HTTP_IDLE_MS);
    steps(h, c);
}

/* ---- time ---- */

static void late(struct serve_http *h, struct serve_http_conn *c)
{
    if ((c->state == SERVE_HTTP_HEAD && c->scanned) || c->state == SERVE_HTTP_BODY) {
        serve_http_refuse(c, 408, NULL);
        c->deadline_ms = h->now_ms + LIMIT_HTTP_LINGER_MS;
    } else if (c->state == SERVE_HTTP_READY) {
        serve_http_refuse(c, 503, "32 calls are not answered yet, which is the most");
        c->deadline_ms = h->now_ms + LIMIT_HTTP_STALL_MS;
    } else {
        c->broken = true;
    }
}

/* A stream that nobody has anything to say on has no deadline: it is told so often that it lives. */
static bool waits_alone(const struct serve_http_conn *c)
{
    return c->state == SERVE_HTTP_WAITING && c->out.len == c->written;
}

struct serve_http_conn *serve_http_first(struct serve_http *h)
{
    struct serve_http_conn *first = NULL;
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        struct serve_http_conn *c = &h->conns[i];
        if (c->state == SERVE_HTTP_READY && (!first || c->turn < first->turn))
            first = c;
    }
    return first;
}

/* Those that waited for room, in the order in which they came. Without room none of them is looked at: each is a message
 * that would be parsed again. */
static void begin_waiting(struct serve_http *h)
{
    struct serve_http_conn *c;
    while (serve_calls_room(h->front) && (c = serve_http_first(h))) {
        begin(h, c);
        if (c->state == SERVE_HTTP_READY)
            return;
    }
}

uint64_t serve_http_tick(struct serve_http *h)
{
    uint64_t next = UINT64_MAX;
    serve_http_sessions_tick(h);
    begin_waiting(h);
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        struct serve_http_conn *c = &h->conns[i];
        if (c->state == SERVE_HTTP_UNUSED)
            continue;
        if (waits_alone(c))
            c->deadline_ms = h->now_ms + LIMIT_HTTP_STALL_MS; /* from the first byte that is put */
        else if (h->now_ms >= c->deadline_ms)
            late(h, c);
        if (waits_alone(c) && c->exchange && h->now_ms >= c->exchange->beat_ms) {
            serve_http_stream_beat(c->exchange);
            c->exchange->beat_ms = h->now_ms + LIMIT_HTTP_BEAT_MS;
        }
        const uint64_t at =
            waits_alone(c) ? c->exchange ? c->exchange->beat_ms : UINT64_MAX : c->deadline_ms;
        next = at < next ? at : next;
    }
    return next;
}
