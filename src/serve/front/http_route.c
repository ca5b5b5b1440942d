/* SPDX-License-Identifier: Apache-2.0 */
/* One path, both eras. A POST is of the newest revision where its header or its body says so; it stands alone, and its
 * connection is its life. Any other belongs to a session, which `initialize` made: it goes on where its connection breaks,
 * and a GET with the number of the last event gets the rest. */
#include "serve/front/http_server.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* The session that the request names, which must be there. NULL: it was refused. */
static struct serve_http_session *session_of(struct serve_http *h, struct http_conn *c)
{
    const char *id = http_find(&c->q, "mcp-session-id"),
               *version = http_find(&c->q, "mcp-protocol-version");
    const int v = version ? serve_version_find(version) : SERVE_2025_03_26;
    if (v < 0 || v >= SERVE_2026_07_28) {
        serve_http_refuse(c, 400, "MCP-Protocol-Version: not a revision that has sessions");
        return NULL;
    }
    if (!id) {
        serve_http_refuse(c, 400,
                          "Mcp-Session-Id is missing: initialize first, or say the revision "
                          "2026-07-28 in MCP-Protocol-Version and in params._meta");
        return NULL;
    }
    struct serve_http_session *s = serve_http_session_find(h, id);
    if (!s)
        serve_http_refuse(c, 404, "there is no such session: initialize again");
    return s;
}

static bool says_modern(const struct http_head *q)
{
    const char *version = http_find(q, "mcp-protocol-version");
    return version && serve_version_find(version) == SERVE_2026_07_28;
}

/* ---- GET and DELETE ---- */

/* NUMBER-COUNT: a stream of this session, and the last event of it that arrived. */
static struct serve_http_exchange *find_stream(struct serve_http *h,
                                               const struct serve_http_session *s, const char *id,
                                               uint64_t *ret_after)
{
    char number[24];
    uint64_t n;
    const size_t len = strcspn(id, "-");
    if (len >= sizeof number || !id[len])
        return NULL;
    memcpy(number, id, len);
    number[len] = 0;
    if (units_count(number, &n) < 0 || units_count(id + len + 1, ret_after) < 0)
        return NULL;
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++) {
        struct serve_http_exchange *x = &h->exchanges[i];
        if (x->used && x->session == s && x->streams && x->number == n && *ret_after < x->count)
            return x;
    }
    return NULL;
}

static void listen_to(struct serve_http *h, struct http_conn *c)
{
    struct serve_http_session *s = session_of(h, c);
    const char *last = http_find(&c->q, "last-event-id");
    uint64_t after = 0;
    if (!s)
        return;
    if (!http_accepts(&c->q, "text/event-stream")) {
        serve_http_refuse(c, 406, NULL);
        return;
    }
    struct serve_http_exchange *x = last ? find_stream(h, s, last, &after) : NULL;
    if (x) {
        serve_http_stream_resume(x, c, after);
        return;
    }
    if (last || (s->listening && s->listening->conn)) {
        serve_http_refuse(c, last ? 400 : 409,
                          last ? "Last-Event-ID: this session has no such event any more"
                               : "this session has a stream already");
        return;
    }
    if (s->listening) /* its client left, and begins anew */
        serve_http_exchange_free(s->listening);
    x = serve_http_exchange_new(h, c);
    if (!x) {
        serve_http_refuse(c, 503, NULL);
        return;
    }
    x->sink.head = NULL;
    x->session = s;
    s->listening = x;
    c->state = HTTP_CONN_WAITING;
    serve_http_stream_begin(x);
}

static void end_session(struct serve_http *h, struct http_conn *c)
{
    struct serve_http_session *s = session_of(h, c);
    if (!s)
        return;
    serve_http_session_end(h, s);
    serve_http_answer(c, 200, "", NULL, "", 0);
}

/* ---- POST ---- */

static void not_json(struct serve_http *h, struct http_conn *c, const char *why)
{
    struct serve_http_exchange *x = serve_http_exchange_new(h, c);
    if (!x) {
        serve_http_refuse(c, 503, NULL);
        return;
    }
    struct serve_reply whose = {.sink = &x->sink, .talk = &x->talk};
    serve_rpc_whose(c->body.data ? c->body.data : "", c->body.len, whose.id);
    serve_reply_error(h->front, &whose, SERVE_PARSE_ERROR, why);
}

static bool body_is_modern(json_t *message)
{
    json_t *params = json_object_get(message, "params");
    return json_object_get(json_object_get(params, "_meta"), SERVE_META "protocolVersion") != NULL;
}

/* Begins MESSAGE: a reply may be there by the end of it, or nothing but that it was taken. */
static void take(struct serve_http *h, struct http_conn *c, json_t *message)
{
    const char *method = serve_rpc_text(message, "method");
    const bool modern = says_modern(&c->q) || body_is_modern(message),
               opens = !modern && method && strcmp(method, "initialize") == 0;
    struct serve_http_session *s = modern || opens ? NULL : session_of(h, c);
    if (!modern && !opens && !s)
        return;
    struct serve_http_exchange *x = serve_http_exchange_new(h, c);
    if (!x) {
        serve_http_refuse(c, 503, NULL);
        return;
    }
    const uint64_t number = x->number;
    x->modern = modern;
    x->opens = opens;
    x->session = s;
    c->state = HTTP_CONN_WAITING;
    serve_rpc_take(h->front, s ? &s->talk : &x->talk, &x->sink, message);
    if (!x->used || x->number != number || x->over)
        return;
    x->sink.head = NULL;
    if (serve_calls_count(h->front, &x->sink) == 0) {
        serve_http_answer(c, 202, "", NULL, "", 0);
        serve_http_exchange_free(x);
    } else if (s && x->events) { /* at once, so that the client has a number to come back with */
        serve_http_stream_begin(x);
    }
}

static bool post(struct serve_http *h, struct http_conn *c)
{
    char why[240];
    json_t *message = serve_rpc_parse(c->body.data ? c->body.data : "", c->body.len, why);
    const char *method = serve_rpc_text(message, "method");
    const bool calls = json_is_array(message) || (method && strcmp(method, "tools/call") == 0),
               now = !calls ||
                     (serve_calls_room(h->front, SERVE_RUN) && http_server_first(&h->server) == c);
    if (!message)
        not_json(h, c, why);
    else if (now)
        take(h, c, message);
    json_decref(message);
    return now;
}

bool serve_http_begin(struct serve_http *h, struct http_conn *c)
{
    if (h->config.metrics)
        return serve_http_figures_begin(h, c);
    if (!http_is_path(&c->q, SERVE_HTTP_PATH))
        serve_http_metadata(c);
    else if (c->q.method == HTTP_POST)
        return post(h, c);
    else if (says_modern(&c->q)) /* it has POST alone */
        serve_http_refuse(c, 405, NULL);
    else if (c->q.method == HTTP_GET)
        listen_to(h, c);
    else
        end_session(h, c);
    return true;
}
