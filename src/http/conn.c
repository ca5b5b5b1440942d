/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection. One request at a time: what a client sends ahead waits in the socket. Every state that a
 * stranger can keep us in has a deadline; what is carried for a client has its owner's, and a client that leaves ends it. */
#include "http/server.h"

#include <string.h>

#define KEPT_READ (256 * KIB) /* of what a slow client has read */

void http_conn_left(struct http_server *s, struct http_conn *c)
{
    s->owner->left(s->of, c);
    buf_done(&c->in);
    buf_done(&c->head);
    buf_done(&c->body);
    buf_done(&c->out);
    *c = (struct http_conn){.state = HTTP_CONN_UNUSED};
    while (s->top && s->conns[s->top - 1].state == HTTP_CONN_UNUSED)
        s->top--;
}

void http_server_done(struct http_server *s)
{
    while (s->top)
        http_conn_left(s, &s->conns[s->top - 1]);
}

struct http_conn *http_conn_accept(struct http_server *s)
{
    struct http_conn *c = NULL;
    for (size_t i = 0; i < s->count && !c; i++)
        if (s->conns[i].state == HTTP_CONN_UNUSED)
            c = &s->conns[i];
    if (!c)
        return NULL;
    if ((size_t)(c - s->conns) >= s->top)
        s->top = (size_t)(c - s->conns) + 1;
    buf_init(&c->in, LIMIT_HTTP_HEAD + 64 * KIB);
    buf_init(&c->head, LIMIT_HTTP_HEAD + 1);
    buf_init(&c->body, s->owner->body_max);
    buf_init(&c->out, s->owner->out_max);
    c->state = HTTP_CONN_HEAD;
    c->deadline_ms = s->now_ms + LIMIT_HTTP_HEAD_MS;
    return c;
}

/* ---- steps ---- */

static void take_from_in(struct http_conn *c, size_t len)
{
    memmove(c->in.data, c->in.data + len, c->in.len - len);
    c->in.len -= len;
}

static void refuse(struct http_server *s, struct http_conn *c, int status)
{
    /* what was not read of it cannot be told from the next request */
    if (c->state == HTTP_CONN_HEAD || c->state == HTTP_CONN_BODY)
        c->q.close = c->q.close || status == 408 || c->state == HTTP_CONN_BODY || c->q.length ||
                     c->q.chunked;
    s->owner->refuse(s->of, c, status);
}

static void begin(struct http_server *s, struct http_conn *c)
{
    if (c->state != HTTP_CONN_READY || !s->owner->begin(s->of, c))
        return;
    buf_done(&c->body);
    buf_init(&c->body, s->owner->body_max);
    c->deadline_ms = s->now_ms + LIMIT_HTTP_STALL_MS;
}

static void ready(struct http_server *s, struct http_conn *c)
{
    c->state = HTTP_CONN_READY;
    c->turn = ++s->turns;
    c->deadline_ms = s->now_ms + s->ready_ms;
    begin(s, c);
}

/* A head that is whole: what it asks for is judged before a byte of its body is read. */
static void take_head(struct http_server *s, struct http_conn *c, size_t len)
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
        status = s->owner->admit(s->of, c);
    if (status) {
        refuse(s, c, status);
        return;
    }
    if (!c->q.length && !c->q.chunked) {
        ready(s, c);
        return;
    }
    if (c->q.expects && c->in.len == 0 && buf_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n") < 0)
        c->broken = true;
    http_body_init(&c->decoder, &c->q);
    c->state = HTTP_CONN_BODY;
    c->deadline_ms = s->now_ms + LIMIT_HTTP_BODY_MS;
}

static void step_head(struct http_server *s, struct http_conn *c)
{
    const bool fresh = c->scanned == 0;
    const int n = http_scan(c->in.data, c->in.len, &c->scanned);
    if (n > 0) {
        take_head(s, c, (size_t)n);
    } else if (n < 0) {
        c->q = (struct http_head){.close = true};
        refuse(s, c, -n);
    } else if (fresh && s->now_ms + LIMIT_HTTP_HEAD_MS < c->deadline_ms) {
        c->deadline_ms = s->now_ms + LIMIT_HTTP_HEAD_MS; /* it was idle until now */
    }
}

static void step_body(struct http_server *s, struct http_conn *c)
{
    size_t used = 0;
    const int n = http_body_take(&c->decoder, c->in.data, c->in.len, &used, &c->body);
    take_from_in(c, used);
    if (n == 1)
        ready(s, c);
    else if (n)
        refuse(s, c, n);
}

/* As far as what is here goes. */
static void steps(struct http_server *s, struct http_conn *c)
{
    bool moved = true;
    while (moved && !c->broken && c->in.len) {
        const enum http_conn_state was = c->state;
        const size_t before = c->in.len;
        if (was == HTTP_CONN_HEAD)
            step_head(s, c);
        else if (was == HTTP_CONN_BODY)
            step_body(s, c);
        moved = c->state != was || c->in.len != before;
    }
}

void http_conn_bytes(struct http_server *s, struct http_conn *c, const char *data, size_t len)
{
    if (c->state == HTTP_CONN_LINGER) /* it is not listened to any more */
        return;
    if (buf_add(&c->in, data, len) < 0)
        c->broken = true;
    else
        steps(s, c);
}

bool http_conn_reads(const struct http_conn *c)
{
    return c->state == HTTP_CONN_HEAD || c->state == HTTP_CONN_BODY || c->state == HTTP_CONN_LINGER;
}

void http_conn_wrote(struct http_server *s, struct http_conn *c, size_t len)
{
    c->written += len;
    if (len && c->state >= HTTP_CONN_WAITING)
        c->deadline_ms = s->now_ms + LIMIT_HTTP_STALL_MS;
    if (c->written < c->out.len) { /* a stream that is always behind does not keep what was read */
        if (c->written > KEPT_READ) {
            memmove(c->out.data, c->out.data + c->written, c->out.len - c->written);
            c->out.len -= c->written;
            c->written = 0;
        }
        return;
    }
    buf_reset(&c->out);
    c->written = 0;
    c->unread_ms = 0;
    if (c->state != HTTP_CONN_WRITING)
        return;
    c->state = c->q.close ? HTTP_CONN_LINGER : HTTP_CONN_HEAD;
    c->deadline_ms = s->now_ms + (c->q.close ? LIMIT_HTTP_LINGER_MS : LIMIT_HTTP_IDLE_MS);
    steps(s, c);
}

/* ---- time ---- */

static void late(struct http_server *s, struct http_conn *c)
{
    if ((c->state == HTTP_CONN_HEAD && c->scanned) || c->state == HTTP_CONN_BODY) {
        refuse(s, c, 408);
        c->deadline_ms = s->now_ms + LIMIT_HTTP_LINGER_MS;
    } else if (c->state == HTTP_CONN_READY) {
        refuse(s, c, 503);
        c->deadline_ms = s->now_ms + LIMIT_HTTP_STALL_MS;
    } else {
        c->broken = true;
    }
}

/* A client that has read everything and waits for more has no deadline of its own: it is told so often that its request lives. */
static bool waits_alone(const struct http_conn *c)
{
    return c->state == HTTP_CONN_WAITING && c->out.len == c->written;
}

struct http_conn *http_server_first(struct http_server *s)
{
    struct http_conn *first = NULL;
    for (size_t i = 0; i < s->top; i++) {
        struct http_conn *c = &s->conns[i];
        if (c->state == HTTP_CONN_READY && (!first || c->turn < first->turn))
            first = c;
    }
    return first;
}

/* Those that waited for room, in the order in which they came. Without room none of them is looked at: each is a message
 * that would be parsed again. */
static void begin_waiting(struct http_server *s)
{
    struct http_conn *c;
    while (s->owner->room && s->owner->room(s->of) && (c = http_server_first(s))) {
        begin(s, c);
        if (c->state == HTTP_CONN_READY)
            return;
    }
}

/* ---- what clients have not read ---- */

static size_t unread(const struct http_conn *c)
{
    return c->state == HTTP_CONN_UNUSED || c->broken ? 0 : c->out.len - c->written;
}

bool http_server_behind(const struct http_server *s)
{
    size_t n = 0;
    for (size_t i = 0; s->owner->unread_max && i < s->top; i++)
        n += unread(&s->conns[i]);
    return n > s->owner->unread_max;
}

/* Many who do not read could fill the memory within the time that one has: where they are behind, it is less, and the largest answer goes
 * first. When the next is due, in ms. */
static uint64_t drop_unread(struct http_server *s)
{
    for (size_t i = 0; i < s->top; i++)
        if (unread(&s->conns[i]) && !s->conns[i].unread_ms)
            s->conns[i].unread_ms = s->now_ms;
    while (http_server_behind(s)) {
        struct http_conn *most = NULL;
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < s->top; i++) {
            struct http_conn *c = &s->conns[i];
            const uint64_t until = c->unread_ms + LIMIT_HTTP_UNREAD_MS;
            if (unread(c) && s->now_ms < until)
                next = until < next ? until : next;
            else if (unread(c) && (!most || unread(c) > unread(most)))
                most = c;
        }
        if (!most)
            return next;
        most->broken = true;
    }
    return UINT64_MAX;
}

uint64_t http_server_tick(struct http_server *s)
{
    if (s->owner->tick)
        s->owner->tick(s->of);
    begin_waiting(s);
    uint64_t next = drop_unread(s);
    for (size_t i = 0; i < s->top; i++) {
        struct http_conn *c = &s->conns[i];
        uint64_t at = UINT64_MAX;
        if (c->state == HTTP_CONN_UNUSED)
            continue;
        if (waits_alone(c)) {
            c->deadline_ms = s->now_ms + LIMIT_HTTP_STALL_MS; /* from the first byte that is put */
            at = s->owner->beat(s->of, c);
        } else if (s->now_ms >= c->deadline_ms) {
            late(s, c);
        }
        if (!waits_alone(c))
            at = c->deadline_ms;
        next = at < next ? at : next;
    }
    return next;
}
