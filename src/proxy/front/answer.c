/* SPDX-License-Identifier: Apache-2.0 */
/* A stream begins with the first event that a client may have, so that until then a failure is a status and not an event. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DUMP (JSON_COMPACT | JSON_REAL_PRECISION(17))

static void put(struct http_conn *c, const void *data, size_t len)
{
    if (c->out.len - c->written > LIMIT_PROXY_UNREAD || buf_add(&c->out, data, len) < 0)
        c->broken = true;
}

static void put_text(struct http_conn *c, const char *s)
{
    put(c, s, strlen(s));
}

/* ---- heads ---- */

static void put_head(struct http_conn *c, int status, const char *fields)
{
    char line[128];
    snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\n", status,
             http_phrase(status));
    put_text(c, line);
    put_text(c, fields);
    put_text(c, c->q.close ? "Connection: close\r\n" : "");
}

static void put_body(struct http_conn *c, int status, const char *fields, const char *body)
{
    char length[64];
    snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", strlen(body));
    put_head(c, status, fields);
    put_text(c, "Content-Type: application/json\r\n");
    put_text(c, length);
    put_text(c, c->q.bodiless ? "" : body);
    c->state = HTTP_CONN_WRITING;
}

/* ---- errors ---- */

static const char *type_of(int status, bool anthropic)
{
    switch (status) {
    case 400:
    case 413:
    case 415:
        return "invalid_request_error";
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    default:
        return anthropic ? "api_error" : "server_error";
    }
}

static json_t *error_of(bool anthropic, int status, const char *why)
{
    const char *type = type_of(status, anthropic);
    return anthropic ? json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type", type,
                                 "message", why)
                     : json_pack("{s:{s:s, s:s, s:n, s:n}}", "error", "message", why, "type", type,
                                 "param", "code");
}

void proxy_answer_error(struct http_conn *conn, bool anthropic, int status, uint64_t seconds,
                        const char *why)
{
    char fields[64] = "";
    json_t *o = error_of(anthropic, status, why);
    char *text = o ? json_dumps(o, DUMP) : NULL;
    if (seconds)
        snprintf(fields, sizeof fields, "Retry-After: %llu\r\n", (unsigned long long)seconds);
    if (text)
        put_body(conn, status, fields, text);
    else
        conn->broken = true;
    free(text);
    json_decref(o);
}

void proxy_answer_failed(struct proxy_call *c, int status, uint64_t seconds, const char *why)
{
    if (!c->begun) {
        proxy_answer_error(c->conn, c->shape->anthropic, status, seconds, why);
        return;
    }
    json_t *o = error_of(c->shape->anthropic, status, why);
    if (c->shape->named && !c->shape->anthropic) { /* responses: an event of its own form */
        json_decref(o);
        o = json_pack("{s:s, s:s, s:s, s:n, s:i}", "type", "error", "code", "server_error",
                      "message", why, "param", "sequence_number", 0);
    }
    if (o)
        proxy_answer_event(c, o);
    json_decref(o);
    put_text(c->conn, "0\r\n\r\n");
    c->conn->state = HTTP_CONN_WRITING;
}

/* ---- streams ---- */

static void begin(struct proxy_call *c)
{
    if (c->begun)
        return;
    c->begun = true;
    put_head(c->conn, 200,
             "Content-Type: text/event-stream; charset=utf-8\r\nX-Accel-Buffering: no\r\n"
             "Transfer-Encoding: chunked\r\n");
    put_text(c->conn, "\r\n");
}

void proxy_answer_raw(struct proxy_call *c, const char *line)
{
    char size[24];
    begin(c);
    snprintf(size, sizeof size, "%zx\r\n", strlen(line));
    put_text(c->conn, size);
    put_text(c->conn, line);
    put_text(c->conn, "\r\n");
    c->beat_ms = c->front->server.now_ms + LIMIT_HTTP_BEAT_MS;
}

void proxy_answer_event(struct proxy_call *c, json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "type"));
    char *text = json_dumps(event, DUMP);
    struct buf line;
    buf_init(&line, 2 * LIMIT_PROXY_EVENT);
    int r = text ? 0 : ERR_MEMORY;
    if (r == 0 && c->shape->named && name)
        r = buf_printf(&line, "event: %s\n", name);
    if (r == 0)
        r = buf_printf(&line, "data: %s\n\n", text);
    if (r == 0)
        proxy_answer_raw(c, line.data);
    else
        c->conn->broken = true;
    free(text);
    buf_done(&line);
}

void proxy_answer_done(struct proxy_call *c)
{
    begin(c);
    put_text(c->conn, "0\r\n\r\n");
    c->conn->state = HTTP_CONN_WRITING;
}

void proxy_answer_json(struct proxy_call *c, int status, json_t *body)
{
    char *text = body ? json_dumps(body, DUMP) : NULL;
    if (text)
        put_body(c->conn, status, "", text);
    else
        c->conn->broken = true;
    free(text);
}

json_t *proxy_answer_verdict(const struct proxy_call *c)
{
    const struct monitor_verdict *v = monitor_verdict(c->monitor);
    return json_pack("{s:s, s:s, s:I, s:I}", "reason", monitor_reason_name(v->reason), "detector",
                     monitor_detector_name(v->detector), "tokens", (json_int_t)v->tokens, "period",
                     (json_int_t)v->period);
}
