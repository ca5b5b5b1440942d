/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask. A page of a browser reaches loopback as well as anybody, by a name that resolves to it: so the host and the
 * origin must be names that the operator knows, byte for byte, and the token must be there. All of this is settled by the
 * head; the body of a stranger is not read. */
#include "serve/front/http_server.h"

#include <stdio.h>
#include <string.h>

static bool authorized(const struct serve_http *h, const struct http_head *q)
{
    const char *token = http_bearer(q);
    return !h->config.token[0] || (token && http_same_token(token, h->config.token));
}

static int admit_post(const struct serve_http *h, const struct http_head *q)
{
    uint64_t held = q->length;
    if (!http_is_json(q))
        return 415;
    if (!http_accepts(q, "application/json") && !http_accepts(q, "text/event-stream"))
        return 406;
    if (q->length > LIMIT_SERVE_LINE)
        return 413;
    for (size_t i = 0; i < LIMIT_HTTP_CONNECTIONS; i++) {
        const struct http_conn *c = &h->conns[i];
        const uint64_t whole = c->state == HTTP_CONN_BODY ? c->q.length : 0;
        held += whole > c->body.len ? whole : c->body.len;
    }
    return held > LIMIT_HTTP_BODIES ? 503 : 0;
}

int serve_http_admit(const struct serve_http *h, const struct http_head *q)
{
    if (!http_is_ours(q, h->config.names))
        return 403;
    if ((q->method == HTTP_GET || q->method == HTTP_DELETE) && (q->length || q->chunked))
        return 400;
    if (h->config.metrics)
        return serve_http_figures_admit(q);
    if (http_is_path(q, SERVE_HTTP_METADATA) ||
        http_is_path(q, SERVE_HTTP_METADATA SERVE_HTTP_PATH))
        return q->method == HTTP_GET ? 0 : 405;
    if (!http_is_path(q, SERVE_HTTP_PATH))
        return 404;
    if (!authorized(h, q))
        return 401;
    if (q->method == HTTP_POST)
        return admit_post(h, q);
    return q->method == HTTP_OTHER ? 405 : 0;
}

/* ---- what headers and body both say ---- */

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool serve_base64(const char *s, size_t len, char *out, size_t size, size_t *ret_len)
{
    size_t n = 0;
    if (len % 4)
        return false;
    for (size_t i = 0; i < len; i += 4) {
        const size_t pad = i + 4 < len || s[i + 3] != '=' ? 0 : s[i + 2] == '=' ? 2 : 1;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            const int d = k >= 4 - pad ? 0 : digit(s[i + k]);
            if (d < 0)
                return false;
            bits = bits << 6 | (uint32_t)d;
        }
        for (size_t k = 0; k < 3 - pad; k++) {
            if (n + 1 >= size)
                return false;
            out[n++] = (char)(bits >> (16 - 8 * k));
        }
    }
    out[n] = 0;
    *ret_len = n;
    return true;
}

/* A header's value, out of its wrapping of base64 where it has one. NULL: the wrapping is broken. */
static const char *unwrap(const char *value, char *out, size_t size)
{
    size_t n = 0;
    const size_t len = strlen(value);
    if (len < 11 || strncmp(value, "=?base64?", 9) != 0 || strcmp(value + len - 2, "?=") != 0)
        return value;
    return serve_base64(value + 9, len - 11, out, size, &n) && strlen(out) == n ? out : NULL;
}

bool serve_http_says(const struct http_head *q, const char *name, const char *body, char *why)
{
    char plain[4096];
    const char *value = http_find(q, name),
               *said = value ? unwrap(value, plain, sizeof plain) : NULL;
    if (said && strcmp(said, body) == 0)
        return true;
    snprintf(why, 300,
             value ? "Header mismatch: %s is '%.60s', and the body says '%.60s'"
                   : "Header mismatch: %s is missing%.0s; the body says '%.60s'",
             name, value ? value : "", body);
    return false;
}

bool serve_http_agrees(const struct http_head *q, const char *method, json_t *params, char *why)
{
    json_t *meta = json_object_get(params, "_meta");
    const char *version = json_string_value(json_object_get(meta, SERVE_META "protocolVersion"));
    const char *name = strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0
                           ? json_string_value(json_object_get(params, "name"))
                       : strcmp(method, "resources/read") == 0
                           ? json_string_value(json_object_get(params, "uri"))
                       : strcmp(method, "tasks/get") == 0 || strcmp(method, "tasks/update") == 0 ||
                               strcmp(method, "tasks/cancel") == 0
                           ? json_string_value(json_object_get(params, "taskId"))
                           : NULL;
    return serve_http_says(q, "mcp-protocol-version", version ? version : "", why) &&
           serve_http_says(q, "mcp-method", method, why) &&
           (!name || serve_http_says(q, "mcp-name", name, why));
}
