/* SPDX-License-Identifier: Apache-2.0 */
/* A reply goes out as JSON where it is there before anything else was to be said, and as the last event of a stream where
 * not. In a session (revisions that have them) each event has a number and is kept, so that a client that lost its
 * connection gets what it missed; the newest revision has no such thing: a broken connection is a cancelled request. */
#include "serve/front/http_server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- responses ---- */

/* A connection that cannot be written to is closed. */
static void put(struct http_conn *c, const char *data, size_t len)
{
    if (!c->broken && buf_add(&c->out, data, len) < 0)
        c->broken = true;
}

static void put_text(struct http_conn *c, const char *text)
{
    put(c, text, strlen(text));
}

static void put_head(struct http_conn *c, int status, const char *fields)
{
    char line[160], date[64] = "";
    struct tm t;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &t))
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &t);
    snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\nDate: %s\r\nCache-Control: no-store\r\n", status,
             http_phrase(status), date);
    put_text(c, line);
    put_text(c, fields);
    put_text(c, c->q.close ? "Connection: close\r\n" : "");
}

void serve_http_answer(struct http_conn *c, int status, const char *fields, const char *type,
                       const char *body, size_t len)
{
    char line[160];
    put_head(c, status, fields);
    if (type)
        snprintf(line, sizeof line, "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n", type, len);
    else
        snprintf(line, sizeof line, "Content-Length: 0\r\n\r\n");
    put_text(c, line);
    put(c, body, type && !c->q.bodiless ? len : 0);
    c->work = NULL;
    c->state = HTTP_CONN_WRITING;
}

/* The document that a 401 points to; also where the host is not one of ours, so the host is not in it by force. */
static const char *scheme(const char *host)
{
    const bool loopback = strncmp(host, "localhost", 9) == 0 || strncmp(host, "127.", 4) == 0 ||
                          strncmp(host, "[::1]", 5) == 0;
    return loopback ? "http"
                    : "https"; /* from elsewhere it comes through a proxy that speaks TLS */
}

void serve_http_refuse(struct http_conn *c, int status, const char *why)
{
    char fields[400] = "", text[300];
    const char *host = http_find(&c->q, "host");
    if (status == 401 && host)
        snprintf(fields, sizeof fields,
                 "WWW-Authenticate: Bearer resource_metadata=\"%s://%.200s" SERVE_HTTP_METADATA
                 "\", scope=\"cordon\"\r\n",
                 scheme(host), host);
    if (status == 405)
        snprintf(fields, sizeof fields, "Allow: POST, GET, DELETE\r\n");
    if (status == 503)
        snprintf(fields, sizeof fields, "Retry-After: 1\r\n");
    snprintf(text, sizeof text, "%s\n", why ? why : http_phrase(status));
    serve_http_answer(c, status, fields, "text/plain", text, strlen(text));
}

void serve_http_metadata(struct http_conn *c)
{
    const char *host = http_find(&c->q, "host");
    struct buf text;
    struct jsonw j = {.out = &text};
    char url[300];
    buf_init(&text, 4 * KIB);
    snprintf(url, sizeof url, "%s://%.200s" SERVE_HTTP_PATH, scheme(host), host);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "resource", url);
    jsonw_string(&j, "resource_name", "Cordon");
    jsonw_open(&j, "bearer_methods_supported", '[');
    jsonw_string(&j, NULL, "header");
    jsonw_close(&j, ']');
    jsonw_open(&j, "scopes_supported", '[');
    jsonw_string(&j, NULL, "cordon");
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    c->broken = c->broken || j.bad;
    if (!c->broken)
        serve_http_answer(c, 200, "", "application/json", text.data, text.len);
    buf_done(&text);
}

/* ---- streams ---- */

static void put_chunk(struct serve_http_exchange *x, const char *data, size_t len)
{
    char size[24];
    if (!x->conn)
        return;
    snprintf(size, sizeof size, "%zx\r\n", len);
    put_text(x->conn, size);
    put(x->conn, data, len);
    put_text(x->conn, "\r\n");
    x->beat_ms = x->http->server.now_ms + LIMIT_HTTP_BEAT_MS;
}

/* One event, with its number where it can be asked for again. */
static void put_event(struct serve_http_exchange *x, const char *text, size_t len)
{
    struct buf event;
    int r = 0;
    buf_init(&event, LIMIT_SERVE_OUT);
    if (x->session)
        r = buf_printf(&event, "id: %llu-%llu\n", (unsigned long long)x->number,
                       (unsigned long long)x->count++);
    if (r == 0)
        r = buf_str(&event, "data: ");
    if (r == 0)
        r = buf_add(&event, text, len);
    if (r == 0)
        r = buf_str(&event, "\n\n");
    if (r == 0 && x->session)
        r = buf_add(&x->log, event.data, event.len);
    if (r == 0)
        put_chunk(x, event.data, event.len);
    else if (x->conn)
        x->conn->broken = true;
    buf_done(&event);
}

static void put_stream_head(struct serve_http_exchange *x)
{
    if (!x->conn)
        return;
    put_head(x->conn, 200,
             "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"
             "Transfer-Encoding: chunked\r\n");
    put_text(x->conn, "\r\n");
    x->beat_ms = x->http->server.now_ms + LIMIT_HTTP_BEAT_MS;
}

void serve_http_stream_begin(struct serve_http_exchange *x)
{
    if (x->streams)
        return;
    x->streams = true;
    put_stream_head(x);
    /* a number to come back with, before anything happened */
    if (x->session && x->session->talk.legacy >= SERVE_2025_11_25)
        put_event(x, "", 0);
}

void serve_http_stream_beat(struct serve_http_exchange *x)
{
    if (!x->events || !x->conn)
        return;
    serve_http_stream_begin(x);
    put_chunk(x, ": \n\n", 4);
}

static void finish_stream(struct serve_http_exchange *x)
{
    if (!x->conn)
        return;
    put_text(x->conn, "0\r\n\r\n");
    x->conn->work = NULL;
    x->conn->state = HTTP_CONN_WRITING;
    x->conn = NULL;
}

void serve_http_stream_resume(struct serve_http_exchange *x, struct http_conn *c, uint64_t after)
{
    char id[64];
    const int n = snprintf(id, sizeof id, "id: %llu-%llu\n", (unsigned long long)x->number,
                           (unsigned long long)after + 1);
    if (x->conn) { /* the old one is dead, only nobody has noticed */
        x->conn->broken = true;
        x->conn->work = NULL;
    }
    x->conn = c;
    c->work = x;
    c->state = HTTP_CONN_WAITING;
    put_stream_head(x);
    const char *rest = x->log.len ? memmem(x->log.data, x->log.len, id, (size_t)n) : NULL;
    if (rest)
        put_chunk(x, rest, (size_t)(x->log.data + x->log.len - rest));
    if (x->over)
        finish_stream(x);
}

/* ---- exchanges ---- */

/* The newest revision tells by the status, too, what kind of mistake it was. */
static int status_of(const struct serve_http_exchange *x)
{
    switch (x->sink.code) {
    case 0:
        return 200;
    case SERVE_PARSE_ERROR:
    case SERVE_INVALID_REQUEST:
        return 400;
    case SERVE_NO_METHOD:
        return x->modern ? 404 : 200;
    default:
        return x->modern ? 400 : 200;
    }
}

static void put_json(struct serve_http_exchange *x, const char *text, size_t len)
{
    char fields[100] = "";
    struct http_conn *c = x->conn;
    if (x->opens && x->talk.opened && !x->sink.code) {
        const struct serve_http_session *s = serve_http_session_new(x->http, &x->talk);
        if (!s) {
            serve_http_refuse(
                c, 503,
                "this server has as many sessions as it can; end one (DELETE), or try again later");
            return;
        }
        snprintf(fields, sizeof fields, "Mcp-Session-Id: %s\r\n", s->id);
    }
    serve_http_answer(c, status_of(x), fields, "application/json", text, len);
}

/* Of a reply that is over: kept where somebody may come back for it. */
static void finish(struct serve_http_exchange *x)
{
    x->over = true;
    x->over_ms = x->http->server.now_ms;
    if (x->streams)
        finish_stream(x);
    if (!x->session || !x->streams)
        serve_http_exchange_free(x);
}

static int sink_put(struct serve_sink *s, enum serve_put kind, const char *text, size_t len)
{
    struct serve_http_exchange *x = (struct serve_http_exchange *)s;
    if (x->plain && x->conn)
        serve_http_answer(x->conn, s->code ? 503 : 200, "",
                          "text/plain; version=0.0.4; charset=utf-8", text, len);
    if (x->plain) {
        finish(x);
        return 0;
    }
    if (kind == SERVE_PUT_NOTE && !x->events)
        return 0;
    if (kind == SERVE_PUT_NOTE || (kind == SERVE_PUT_REPLY && !x->json))
        serve_http_stream_begin(x);
    if (x->streams && kind != SERVE_PUT_NOTHING)
        put_event(x, text, len);
    else if (!x->streams && x->conn && kind == SERVE_PUT_REPLY)
        put_json(x, text, len);
    else if (!x->streams && x->conn)
        serve_http_answer(x->conn, 202, "", NULL, "", 0);
    if (kind != SERVE_PUT_NOTE)
        finish(x);
    return 0;
}

bool serve_http_exchange_rests(const struct serve_http_exchange *x)
{
    return x->over || (x->session && x->session->listening == x && !x->conn);
}

/* An unused one; else that which has rested for the longest. */
struct serve_http_exchange *serve_http_exchange_new(struct serve_http *h, struct http_conn *c)
{
    struct serve_http_exchange *x = NULL;
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES && !(x && !x->used); i++) {
        struct serve_http_exchange *e = &h->exchanges[i];
        if (!e->used || (serve_http_exchange_rests(e) && (!x || e->over_ms < x->over_ms)))
            x = e;
    }
    if (!x)
        return NULL;
    serve_http_exchange_free(x);
    *x = (struct serve_http_exchange){.used = true,
                                      .sink = {.put = sink_put, .head = &c->q},
                                      .http = h,
                                      .conn = c,
                                      .number = ++h->numbers,
                                      .json = http_accepts(&c->q, "application/json"),
                                      .events = http_accepts(&c->q, "text/event-stream"),
                                      .beat_ms = h->server.now_ms + LIMIT_HTTP_BEAT_MS};
    buf_init(&x->log, LIMIT_SERVE_OUT);
    c->work = x;
    return x;
}

void serve_http_exchange_free(struct serve_http_exchange *x)
{
    if (!x->used)
        return;
    if (x->session && x->session->listening == x)
        x->session->listening = NULL;
    if (x->conn && x->conn->work == x)
        x->conn->work = NULL;
    buf_done(&x->log);
    x->used = false;
}

void serve_http_exchange_end(struct serve_http_exchange *x, const char *why)
{
    if (x->conn && x->streams)
        finish_stream(x);
    else if (x->conn)
        serve_http_refuse(x->conn, 404, why);
    serve_http_exchange_free(x);
}
