/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session as resources, for clients that follow the links of a result: cordon://SESSION/PATH, PATH below
 * /workspace. The address has the session's handle in it, which only this client has, and cordond looks whether it has it.
 * Nothing is listed: what a session has is list_files'. */
#include "serve/front/inside.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BELOW "/workspace/"

void serve_resources_capability(struct jsonw *j)
{
    jsonw_open(j, "resources", '{');
    jsonw_close(j, '}');
}

static bool plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~/", c));
}

int serve_resources_uri(struct buf *out, const char *session, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    if (strncmp(path, BELOW, sizeof BELOW - 1) != 0)
        return ERR_USAGE;
    int r = buf_printf(out, SERVE_RESOURCE_SCHEME "%s/", session);
    for (const char *s = path + sizeof BELOW - 1; *s && r == 0; s++) {
        const unsigned char c = (unsigned char)*s;
        const char coded[3] = {'%', hex[c >> 4], hex[c & 15]};
        r = plain(c) ? buf_add(out, s, 1) : buf_add(out, coded, 3);
    }
    return r;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The session and the path of URI; the path has a NUL behind it. False: it is none of ours. */
static bool take_uri(const char *uri, char session[SERVE_HANDLE + 1], struct buf *path)
{
    const size_t scheme = sizeof SERVE_RESOURCE_SCHEME - 1;
    if (strncmp(uri, SERVE_RESOURCE_SCHEME, scheme) != 0 ||
        strlen(uri) < scheme + SERVE_HANDLE + 2 || uri[scheme + SERVE_HANDLE] != '/')
        return false;
    memcpy(session, uri + scheme, SERVE_HANDLE);
    session[SERVE_HANDLE] = 0;
    if (!serve_handle_good(SERVE_HANDLE_SESSION, session))
        return false;
    for (const char *s = uri + scheme + SERVE_HANDLE + 1; *s; s++) {
        char c = *s;
        if (c == '%') {
            const int high = hex_digit(s[1]), low = high < 0 ? -1 : hex_digit(s[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            s += 2;
        }
        if (buf_add(path, &c, 1) < 0)
            return false;
    }
    return utf8_valid_prefix(path->data, path->len) == path->len && buf_add(path, "", 1) == 0;
}

static void not_found(struct serve_front *f, const struct serve_reply *to, const char *why)
{
    serve_reply_error(f, to, to->version >= SERVE_2026_07_28 ? SERVE_INVALID_PARAMS : -32002, why);
}

static void read_resource(struct serve_front *f, struct serve_message *m)
{
    struct serve_request q = {.verb = SERVE_FILE_READ};
    const char *uri = serve_rpc_text(m->params, "uri");
    struct buf body;
    buf_init(&body, SERVE_WORDS);
    if (!uri || !take_uri(uri, q.handle, &body) || buf_add(&body, "\0\0base64\0", 9) < 0) {
        not_found(f, &m->to, "Resource not found: cordon://SESSION/PATH, as results link to");
    } else {
        q.body = body.len;
        m->to.part = SERVE_RESOURCE;
        m->to.tasks = false;
        serve_calls_start(f, &m->to, "", &q, body.data, "");
    }
    buf_done(&body);
}

static void list(struct serve_front *f, struct serve_message *m, const char *key, const char *value)
{
    struct serve_writing w;
    serve_reply_begin(f, &m->to, &w);
    jsonw_raw(&w.j, key, value, strlen(value));
    if (m->modern) {
        jsonw_int(&w.j, "ttlMs", 0);
        jsonw_string(&w.j, "cacheScope", "private");
    }
    serve_reply_end(f, &m->to, &w);
}

bool serve_resources_take(struct serve_front *f, struct serve_message *m)
{
    if (f->config.conformance)
        return false;
    if (strcmp(m->method, "resources/list") == 0)
        list(f, m, "resources", "[]");
    else if (strcmp(m->method, "resources/templates/list") == 0)
        list(f, m, "resourceTemplates",
             "[{\"uriTemplate\": \"cordon://{session_id}/{+path}\", \"name\": \"file\", "
             "\"description\": \"a file below /workspace of a session\"}]");
    else if (strcmp(m->method, "resources/read") == 0)
        read_resource(f, m);
    else
        return false;
    return true;
}

/* ---- the answer ---- */

/* DATA is base64 of all of the file: as text where it is one. */
static void put_contents(struct serve_front *f, const struct serve_call *c, const json_t *o)
{
    struct serve_writing w;
    struct buf uri;
    const char *session = json_string_value(json_object_get(o, "session"));
    const char *source = json_string_value(json_object_get(o, "source"));
    const char *data = json_string_value(json_object_get(o, "data"));
    const char *type = json_string_value(json_object_get(o, "type"));
    const size_t len = data ? strlen(data) : 0;
    size_t n = 0;
    char *bytes = malloc(len + 1);
    const bool text = bytes && !type && serve_base64(data ? data : "", len, bytes, len + 1, &n) &&
                      utf8_valid_prefix(bytes, n) == n && !memchr(bytes, 0, n);
    buf_init(&uri, 64 * KIB);
    if (serve_resources_uri(&uri, session ? session : "", source ? source : "") < 0) {
        not_found(f, &c->to, "Resource not found");
        buf_done(&uri);
        free(bytes);
        return;
    }
    serve_reply_begin(f, &c->to, &w);
    jsonw_open(&w.j, "contents", '[');
    jsonw_open(&w.j, NULL, '{');
    jsonw_bytes(&w.j, "uri", uri.data, uri.len);
    jsonw_string(&w.j, "mimeType", text ? "text/plain" : type ? type : "application/octet-stream");
    if (text)
        jsonw_bytes(&w.j, "text", bytes, n);
    else
        jsonw_string(&w.j, "blob", data ? data : "");
    jsonw_close(&w.j, '}');
    jsonw_close(&w.j, ']');
    if (c->to.version >= SERVE_2026_07_28) {
        jsonw_int(&w.j, "ttlMs", 0);
        jsonw_string(&w.j, "cacheScope", "private");
    }
    serve_reply_end(f, &c->to, &w);
    buf_done(&uri);
    free(bytes);
}

void serve_resources_render(struct serve_front *f, struct serve_call *c)
{
    json_error_t where;
    char why[500];
    size_t len = 0;
    const bool done = c->answer.stand == SERVE_DONE && c->body.len;
    const char *line = done ? serve_render_last(&c->body, &len) : NULL;
    json_t *o = line ? json_loadb(line, len, 0, &where) : NULL;
    const char *status = json_string_value(json_object_get(o, "status")),
               *reason = json_string_value(json_object_get(o, "reason"));
    if (status && (strcmp(status, "refused") == 0 || strcmp(status, "denied") == 0)) {
        /* it may well be there: its session is in another call, or the gate says no */
        serve_reply_error(f, &c->to, SERVE_INTERNAL, reason ? reason : "refused");
    } else if (!status || strcmp(status, "ok") != 0) {
        snprintf(why, sizeof why, "Resource not found: %.400s", reason ? reason : "no such file");
        not_found(f, &c->to, why);
    } else if (json_is_integer(json_object_get(o, "next_offset"))) {
        serve_reply_error(f, &c->to, SERVE_INVALID_PARAMS,
                          "the file is larger than a resource may be: read_file gives its parts");
    } else {
        put_contents(f, c, o);
    }
    json_decref(o);
}
