/* SPDX-License-Identifier: Apache-2.0 */
/* What `cordon session files` printed, as text that a model reads; and what a result has beside its text: pictures as
 * blocks of their own, files as links. A picture is a PNG that cordon-image made: no byte of a guest's file is in it. */
#include "serve/front/inside.h"

#include <string.h>

#define IMAGE     "{\"event\": \"image\", " /* src/prog/cordon/events.c */
#define LINKS_MAX 32

static void add_whole(struct serve_text *t, const json_t *text)
{
    const size_t len = json_string_length(text);
    if (!t->bad)
        t->bad = buf_add(&t->out, len ? json_string_value(text) : "", len);
    if (len && json_string_value(text)[len - 1] != '\n')
        serve_text_add(t, "\n");
}

static void tell_read(struct serve_text *t, const json_t *o)
{
    const json_t *text = json_object_get(o, "text"), *next = json_object_get(o, "next_offset");
    serve_text_add(t, "%s%s%lld bytes", serve_member_text(o, "source"),
                   *serve_member_text(o, "source") ? ": " : "", serve_member_number(o, "bytes"));
    if (json_is_integer(next))
        serve_text_add(t, "; more: offset %lld", (long long)json_integer_value(next));
    if (*serve_member_text(o, "note"))
        serve_text_add(t, "; %s, %s", serve_member_text(o, "type"), serve_member_text(o, "note"));
    serve_text_add(t, "\n");
    add_whole(t, text ? text : json_object_get(o, "data"));
}

static void tell_list(struct serve_text *t, const json_t *o)
{
    const json_t *v;
    size_t i;
    serve_text_add(t, "%s:%s\n", serve_member_text(o, "source"),
                   json_array_size(json_object_get(o, "names")) ? "" : " empty");
    json_array_foreach(json_object_get(o, "names"), i, v)
        serve_text_add(t, "- %s (%s, %lld bytes)\n", serve_member_text(v, "name"),
                       serve_member_text(v, "kind"), serve_member_number(v, "bytes"));
    if (json_is_true(json_object_get(o, "cut")))
        serve_text_add(t, "there are more\n");
}

static void tell_found(struct serve_text *t, const json_t *o)
{
    const json_t *lines = json_object_get(o, "matches"), *names = json_object_get(o, "found"), *v;
    size_t i;
    serve_text_add(t, "%zu found below %s%s\n", json_array_size(lines) + json_array_size(names),
                   serve_member_text(o, "source"),
                   json_is_true(json_object_get(o, "cut")) ? ", and there are more" : "");
    if (serve_member_number(o, "skipped"))
        serve_text_add(t, "%lld files or folders were not searched: larger than 8 MB, or shut\n",
                       serve_member_number(o, "skipped"));
    json_array_foreach(lines, i, v)
        serve_text_add(t, "%s:%lld: %s\n", serve_member_text(v, "path"),
                       serve_member_number(v, "line"), serve_member_text(v, "text"));
    json_array_foreach(names, i, v)
        serve_text_add(t, "- %s (%s, %lld bytes)\n", serve_member_text(v, "path"),
                       serve_member_text(v, "kind"), serve_member_number(v, "bytes"));
}

static void tell_log(struct serve_text *t, const json_t *o)
{
    const json_t *v;
    size_t i;
    serve_text_add(t, "snapshots of %s, the newest first:\n", serve_member_text(o, "workspace"));
    json_array_foreach(json_object_get(o, "snapshots"), i, v)
    {
        const char *message = serve_member_text(v, "message");
        serve_text_add(t, "- %.12s by %s: %.*s\n", serve_member_text(v, "id"),
                       serve_member_text(v, "author"), (int)strcspn(message, "\n"), message);
    }
}

static void tell_diff(struct serve_text *t, const json_t *o)
{
    const json_t *changes = json_object_get(o, "changes"), *v;
    size_t i;
    serve_text_add(t, "from %.12s to %.12s: %zu files differ\n", serve_member_text(changes, "from"),
                   serve_member_text(changes, "to"),
                   json_array_size(json_object_get(changes, "files")));
    json_array_foreach(json_object_get(changes, "files"), i, v) serve_text_add(
        t, "%s %s (+%lld -%lld)\n", serve_member_text(v, "status"), serve_member_text(v, "path"),
        serve_member_number(v, "added"), serve_member_number(v, "deleted"));
    add_whole(t, json_object_get(o, "patch"));
    if (json_is_true(json_object_get(o, "cut")))
        serve_text_add(t, "the patch is longer: this is its beginning\n");
}

static void tell_done(struct serve_text *t, const json_t *o)
{
    if (*serve_member_text(o, "id"))
        serve_text_add(t, "%s: done; the head of %s is %s\n", serve_member_text(o, "action"),
                       serve_member_text(o, "workspace"), serve_member_text(o, "id"));
    else
        serve_text_add(t, "written: %s, %lld bytes\n", serve_member_text(o, "source"),
                       serve_member_number(o, "bytes"));
    if (*serve_member_text(o, "warning"))
        serve_text_add(t, "note: %s\n", serve_member_text(o, "warning"));
}

bool serve_render_files(struct serve_text *t, const json_t *o)
{
    static const struct {
        const char *action;
        void (*tell)(struct serve_text *t, const json_t *o);
    } rows[] = {{"read", tell_read}, {"write", tell_done},    {"list", tell_list},
                {"log", tell_log},   {"snapshot", tell_done}, {"search", tell_found},
                {"diff", tell_diff}, {"restore", tell_done}};
    if (json_object_get(o, "stdout") || json_object_get(o, "is_safe") ||
        !json_object_get(o, "session"))
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(serve_member_text(o, "action"), rows[i].action) == 0) {
            rows[i].tell(t, o);
            return true;
        }
    serve_text_add(t, "status: %s\n", serve_member_text(o, "status"));
    if (*serve_member_text(o, "rule"))
        serve_text_add(t, "rule: %s\n", serve_member_text(o, "rule"));
    serve_text_add(t, "reason: %s\n", serve_member_text(o, "reason"));
    if (*serve_member_text(o, "hint"))
        serve_text_add(t, "instead: %s\n", serve_member_text(o, "hint"));
    return true;
}

/* ---- blocks ---- */

static void open_block(struct jsonw *j, const char *type)
{
    j->comma = true; /* behind the text, or another block */
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "type", type);
}

static void add_pictures(struct jsonw *j, const struct buf *body)
{
    const size_t mark = sizeof IMAGE - 1;
    for (size_t at = 0; at < body->len;) {
        const char *line = body->data + at, *end = memchr(line, '\n', body->len - at);
        const size_t len = end ? (size_t)(end - line) : body->len - at;
        json_error_t where;
        json_t *o =
            len > mark && memcmp(line, IMAGE, mark) == 0 ? json_loadb(line, len, 0, &where) : NULL;
        if (o && *serve_member_text(o, "data")) {
            open_block(j, "image");
            jsonw_string(j, "data", serve_member_text(o, "data"));
            jsonw_string(j, "mimeType", "image/png");
            jsonw_close(j, '}');
        }
        json_decref(o);
        at += len + 1;
    }
}

/* What cordon-image makes a block of. */
static bool is_shown(const char *type)
{
    return strcmp(type, "image/png") == 0 || strcmp(type, "image/jpeg") == 0 ||
           strcmp(type, "image/gif") == 0 || strcmp(type, "image/webp") == 0;
}

/* Of a session alone: what another run left is gone with it. */
static void add_links(struct jsonw *j, const json_t *o)
{
    const json_t *v;
    size_t i, count = 0;
    const char *session = serve_member_text(o, "session");
    if (!*session || !serve_handle_good(SERVE_HANDLE_SESSION, session))
        return;
    json_array_foreach(json_object_get(o, "files"), i, v)
    {
        struct buf uri;
        const char *path = serve_member_text(v, "path");
        if (count == LINKS_MAX || strcmp(serve_member_text(v, "change"), "removed") == 0 ||
            is_shown(serve_member_text(v, "type")))
            continue;
        buf_init(&uri, 64 * KIB);
        if (serve_resources_uri(&uri, session, path) == 0) {
            count++;
            open_block(j, "resource_link");
            jsonw_bytes(j, "uri", uri.data, uri.len);
            jsonw_string(j, "name", path);
            jsonw_int(j, "size", serve_member_number(v, "bytes"));
            jsonw_close(j, '}');
        }
        buf_done(&uri);
    }
}

void serve_render_blocks(struct serve_text *blocks, const struct serve_call *c, const json_t *o)
{
    struct jsonw j = {.out = &blocks->out};
    add_pictures(&j, &c->body);
    if (c->to.version >= SERVE_2025_06_18)
        add_links(&j, o);
    blocks->bad = blocks->bad ? blocks->bad : j.bad;
}
