/* SPDX-License-Identifier: Apache-2.0 */
/* Replies are written as text and not built as trees: what a runner printed is JSON of ours already, with integers of any
 * size, and goes out as it came in. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(struct serve_front *f, int r)
{
    if (r < 0 && !f->bad)
        f->bad = r;
}

const char *serve_version_name(enum serve_version v)
{
    static const char *const names[] = {
#define X(name, text) text,
        SERVE_VERSIONS(X)
#undef X
    };
    return names[v];
}

int serve_version_find(const char *name)
{
    for (int v = 0; v < SERVE_VERSION_COUNT; v++)
        if (strcmp(name, serve_version_name((enum serve_version)v)) == 0)
            return v;
    return -1;
}

/* ---- where a reply goes ---- */

struct serve_batch *serve_batch_new(struct serve_sink *sink)
{
    struct serve_batch *b = calloc(1, sizeof *b);
    if (b) {
        b->sink = sink;
        b->waiting = 1;
        buf_init(&b->text, LIMIT_SERVE_OUT);
    }
    return b;
}

void serve_batch_less(struct serve_front *f, struct serve_batch *b)
{
    if (--b->waiting)
        return;
    if (b->text.len) {
        note(f, buf_str(&b->text, "]"));
        note(f, b->sink->put(b->sink, SERVE_PUT_REPLY, b->text.data, b->text.len));
    } else { /* an array of notifications, or of requests that were cancelled */
        note(f, b->sink->put(b->sink, SERVE_PUT_NOTHING, "", 0));
    }
    buf_done(&b->text);
    free(b);
}

/* Refusals have room behind the most: there are 32 of them at most. */
static bool fits(const struct serve_batch *b, const struct buf *text)
{
    return text->len < 4 * KIB || b->text.len + text->len <= LIMIT_SERVE_ARRAY;
}

static void deliver(struct serve_front *f, const struct serve_reply *to, struct buf *text)
{
    if (to->batch && !fits(to->batch, text)) {
        serve_reply_error(f, to, SERVE_INTERNAL,
                          "the answers to this array are more than 64 MiB; send its requests one "
                          "by one");
    } else if (to->batch) {
        note(f, buf_str(&to->batch->text, to->batch->text.len ? ", " : "["));
        note(f, buf_add(&to->batch->text, text->data, text->len));
        serve_batch_less(f, to->batch);
    } else {
        note(f, to->sink->put(to->sink, SERVE_PUT_REPLY, text->data, text->len));
    }
    buf_done(text);
}

static void begin(struct serve_writing *w)
{
    buf_init(&w->text, LIMIT_SERVE_OUT);
    w->j = (struct jsonw){.out = &w->text};
    jsonw_open(&w->j, NULL, '{');
    jsonw_string(&w->j, "jsonrpc", "2.0");
}

static void end(struct serve_front *f, const struct serve_reply *to, struct serve_writing *w)
{
    jsonw_close(&w->j, '}');
    note(f, w->j.bad);
    if (w->j.bad)
        buf_done(&w->text);
    else
        deliver(f, to, &w->text);
}

/* ---- results and errors ---- */

void serve_reply_server(struct serve_front *f, struct jsonw *j, const char *key,
                        enum serve_version v)
{
    jsonw_open(j, key, '{');
    jsonw_string(j, "name", "cordon");
    if (v >= SERVE_2025_06_18)
        jsonw_string(j, "title", "Cordon");
    jsonw_string(j, "version", f->config.version);
    jsonw_close(j, '}');
}

void serve_reply_begin(struct serve_front *f, const struct serve_reply *to, struct serve_writing *w)
{
    serve_reply_begin_as(f, to, w, "complete");
}

void serve_reply_begin_as(struct serve_front *f, const struct serve_reply *to,
                          struct serve_writing *w, const char *type)
{
    begin(w);
    jsonw_raw(&w->j, "id", to->id, strlen(to->id));
    jsonw_open(&w->j, "result", '{');
    if (to->version < SERVE_2026_07_28)
        return;
    jsonw_string(&w->j, "resultType", type);
    jsonw_open(&w->j, "_meta", '{');
    serve_reply_server(f, &w->j, "io.modelcontextprotocol/serverInfo", to->version);
    jsonw_close(&w->j, '}');
}

void serve_reply_end(struct serve_front *f, const struct serve_reply *to, struct serve_writing *w)
{
    jsonw_close(&w->j, '}');
    end(f, to, w);
}

static void open_error(const struct serve_reply *to, struct serve_writing *w, int code,
                       const char *message)
{
    to->sink->code = code;
    begin(w);
    jsonw_raw(&w->j, "id", to->id, strlen(to->id));
    jsonw_open(&w->j, "error", '{');
    jsonw_int(&w->j, "code", code);
    jsonw_string(&w->j, "message", message);
}

void serve_reply_error(struct serve_front *f, const struct serve_reply *to, int code,
                       const char *message)
{
    serve_reply_error_data(f, to, code, message, NULL);
}

void serve_reply_error_data(struct serve_front *f, const struct serve_reply *to, int code,
                            const char *message, const char *data)
{
    struct serve_writing w;
    open_error(to, &w, code, message);
    if (data)
        jsonw_raw(&w.j, "data", data, strlen(data));
    jsonw_close(&w.j, '}');
    end(f, to, &w);
}

void serve_reply_bad_version(struct serve_front *f, const struct serve_reply *to, const char *asked)
{
    struct serve_writing w;
    open_error(to, &w, SERVE_BAD_VERSION, "Unsupported protocol version");
    jsonw_open(&w.j, "data", '{');
    jsonw_open(&w.j, "supported", '[');
    for (int v = SERVE_VERSION_COUNT; v-- > 0;)
        jsonw_string(&w.j, NULL, serve_version_name((enum serve_version)v));
    jsonw_close(&w.j, ']');
    jsonw_string(&w.j, "requested", asked);
    jsonw_close(&w.j, '}');
    jsonw_close(&w.j, '}');
    end(f, to, &w);
}

void serve_reply_tool(struct serve_front *f, const struct serve_reply *to, const char *text,
                      size_t len, const char *structured, size_t structured_len, bool is_error)
{
    const struct buf whole = {.data = (char *)(uintptr_t)text, .len = len}, none = {.len = 0};
    serve_reply_blocks(f, to, &whole, &none, structured, structured_len, is_error);
}

void serve_reply_blocks(struct serve_front *f, const struct serve_reply *to, const struct buf *text,
                        const struct buf *blocks, const char *structured, size_t structured_len,
                        bool is_error)
{
    struct serve_writing w;
    const bool within = to->part == SERVE_TASK_GET;
    serve_reply_begin(f, to, &w);
    if (within) {
        serve_tasks_write(&w.j, to->task, "completed", 0);
        jsonw_open(&w.j, "result", '{');
        jsonw_string(&w.j, "resultType", "complete");
    }
    jsonw_open(&w.j, "content", '[');
    jsonw_open(&w.j, NULL, '{');
    jsonw_string(&w.j, "type", "text");
    jsonw_bytes(&w.j, "text", text->data, text->len);
    jsonw_close(&w.j, '}');
    if (blocks->len && !w.j.bad)
        w.j.bad = buf_add(&w.text, blocks->data, blocks->len);
    jsonw_close(&w.j, ']');
    if (structured && to->version >= SERVE_2025_06_18)
        jsonw_raw(&w.j, "structuredContent", structured, structured_len);
    jsonw_bool(&w.j, "isError", is_error);
    if (within)
        jsonw_close(&w.j, '}');
    serve_reply_end(f, to, &w);
}

void serve_reply_bad_argument(struct serve_front *f, const struct serve_reply *to, const char *why)
{
    if (to->version >= SERVE_2025_11_25)
        serve_reply_tool(f, to, why, strlen(why), NULL, 0, true);
    else
        serve_reply_error(f, to, SERVE_INVALID_PARAMS, why);
}

void serve_reply_note(struct serve_front *f, const struct serve_reply *to, const char *method,
                      const char *params)
{
    struct serve_writing w;
    begin(&w);
    jsonw_string(&w.j, "method", method);
    jsonw_raw(&w.j, "params", params, strlen(params));
    jsonw_close(&w.j, '}');
    note(f, w.j.bad);
    if (!w.j.bad)
        note(f, to->sink->put(to->sink, SERVE_PUT_NOTE, w.text.data, w.text.len));
    buf_done(&w.text);
}

void serve_reply_progress(struct serve_front *f, struct serve_call *c, uint64_t ms)
{
    struct serve_writing w;
    char message[64];
    if (!c->token[0] || ms <= c->progress)
        return;
    c->progress = ms;
    snprintf(message, sizeof message, "%llu s", (unsigned long long)(ms / 1000));
    begin(&w);
    jsonw_string(&w.j, "method", "notifications/progress");
    jsonw_open(&w.j, "params", '{');
    jsonw_raw(&w.j, "progressToken", c->token, strlen(c->token));
    jsonw_int(&w.j, "progress", (int64_t)ms);
    if (c->to.version >= SERVE_2025_03_26)
        jsonw_string(&w.j, "message", message);
    jsonw_close(&w.j, '}');
    jsonw_close(&w.j, '}');
    note(f, w.j.bad);
    if (!w.j.bad)
        note(f, c->to.sink->put(c->to.sink, SERVE_PUT_NOTE, w.text.data, w.text.len));
    buf_done(&w.text);
}
