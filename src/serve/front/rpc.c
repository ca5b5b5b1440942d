/* SPDX-License-Identifier: Apache-2.0 */
/* Two eras on one line. A message of the newest revision says in `_meta` which revision it is and what the client can do,
 * and needs nothing before it; a message without that belongs to the revision that `initialize` settled. A client's name is
 * never looked at: nothing may depend on it. JSON is parsed by jansson, after a look at its depth, since the parser
 * recurses. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define META      SERVE_META
#define CACHED_MS 3600000 /* what we list changes with a new version of Cordon only */
#define INSTRUCTIONS                                                                               \
    "Cordon runs Python in a jail without network. execute_code runs a program and returns its "   \
    "output, the value of its last expression and, where something was refused, the rule and "     \
    "what to write instead. Variables and files live on between calls only in a session: make "    \
    "one with session(action=new) and pass its session_id. check_code judges code without "        \
    "running it. read_file, write_file, list_files and search_files are for the files of a "       \
    "session, snapshot for the states of its workspace. A run that takes long is answered with a " \
    "job_id; wait_job gives its result."

/* ---- parsing ---- */

/* Brackets within each other, those in strings not counted. */
static bool too_deep(const char *text, size_t len)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else
                quoted = text[i] != '"';
            continue;
        }
        quoted = text[i] == '"';
        if (text[i] == '{' || text[i] == '[')
            depth++;
        else if ((text[i] == '}' || text[i] == ']') && depth)
            depth--;
        if (depth > LIMIT_SERVE_DEPTH)
            return true;
    }
    return false;
}

static bool blank(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r", text[i]) && text[i])
        i++;
    return i == len;
}

bool serve_rpc_id(const json_t *v, char out[LIMIT_SERVE_ID + 1])
{
    if (!json_is_string(v) && !json_is_integer(v))
        return false;
    const size_t n = json_dumpb(v, out, LIMIT_SERVE_ID, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    out[n <= LIMIT_SERVE_ID ? n : 0] = 0;
    return n > 0 && n <= LIMIT_SERVE_ID;
}

const char *serve_rpc_text(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    const char *text = json_string_value(v);
    return text && strlen(text) == json_string_length(v) ? text : NULL;
}

/* ---- methods ---- */

static void capabilities(const struct serve_front *f, struct jsonw *j, enum serve_version v)
{
    jsonw_open(j, "capabilities", '{');
    jsonw_open(j, "tools", '{');
    jsonw_close(j, '}');
    if (v >= SERVE_2026_07_28)
        serve_tasks_capability(j);
    if (f->config.conformance)
        serve_conformance_capabilities(j, v);
    else
        serve_resources_capability(j);
    if (!f->config.conformance)
        serve_logs_capability(j);
    jsonw_close(j, '}');
}

static void cached(struct jsonw *j)
{
    jsonw_int(j, "ttlMs", CACHED_MS);
    jsonw_string(j, "cacheScope", "private");
}

/* The client's revision where we speak it; else the newest one that has a handshake. */
static void initialize(struct serve_front *f, struct serve_message *m)
{
    const char *asked = serve_rpc_text(m->params, "protocolVersion");
    struct serve_writing w;
    if (!asked || m->to.batch) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          asked ? "initialize cannot be in an array of messages"
                                : "initialize needs params.protocolVersion");
        return;
    }
    const int v = serve_version_find(asked);
    struct serve_talk *talk = m->to.talk;
    talk->legacy = v >= 0 && v < SERVE_2026_07_28 ? (enum serve_version)v : SERVE_2025_11_25;
    talk->opened = true;
    const json_t *able = json_object_get(m->params, "capabilities");
    talk->elicits = json_object_get(able, "elicitation") != NULL;
    talk->samples = json_object_get(able, "sampling") != NULL;
    m->to.version = talk->legacy;
    serve_reply_begin(f, &m->to, &w);
    jsonw_string(&w.j, "protocolVersion", serve_version_name(talk->legacy));
    capabilities(f, &w.j, talk->legacy);
    serve_reply_server(f, &w.j, "serverInfo", talk->legacy);
    jsonw_string(&w.j, "instructions", INSTRUCTIONS);
    serve_reply_end(f, &m->to, &w);
}

static void ping(struct serve_front *f, struct serve_message *m)
{
    struct serve_writing w;
    serve_reply_begin(f, &m->to, &w);
    serve_reply_end(f, &m->to, &w);
}

static void discover(struct serve_front *f, struct serve_message *m)
{
    struct serve_writing w;
    serve_reply_begin(f, &m->to, &w);
    jsonw_open(&w.j, "supportedVersions", '[');
    for (int v = SERVE_VERSION_COUNT; v-- > 0;)
        jsonw_string(&w.j, NULL, serve_version_name((enum serve_version)v));
    jsonw_close(&w.j, ']');
    capabilities(f, &w.j, m->to.version);
    jsonw_string(&w.j, "instructions", INSTRUCTIONS);
    cached(&w.j);
    serve_reply_end(f, &m->to, &w);
}

static void list_tools(struct serve_front *f, struct serve_message *m)
{
    struct serve_writing w;
    const json_t *cursor = json_object_get(m->params, "cursor");
    if (cursor && !json_is_null(cursor)) { /* null is as if it were not there */
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          "the list has one page: there is no cursor");
        return;
    }
    serve_reply_begin(f, &m->to, &w);
    serve_tools_write(f, &w.j, m->to.version);
    if (m->modern)
        cached(&w.j);
    serve_reply_end(f, &m->to, &w);
}

static void call_tool(struct serve_front *f, struct serve_message *m)
{
    struct serve_value v[SERVE_ARGS] = {{0}};
    const char *name = m->params ? serve_rpc_text(m->params, "name") : NULL;
    json_t *arguments = m->params ? json_object_get(m->params, "arguments") : NULL;
    char why[300];
    size_t i = 0;
    const struct serve_tool *tool = serve_tools(f, 0);
    while (name && tool && strcmp(tool->name, name) != 0)
        tool = serve_tools(f, ++i);
    if (!name || !tool) {
        snprintf(why, sizeof why,
                 name ? "Unknown tool: %.100s"
                      : "tools/call needs params.name, a text without NUL%s",
                 name ? name : "");
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, why);
    } else if (arguments && !json_is_object(arguments)) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "params.arguments must be an object");
    } else if (!serve_tools_arguments(tool, arguments, v, why)) {
        serve_reply_bad_argument(f, &m->to, why);
    } else {
        f->params = m->params;
        tool->call(f, &m->to, m->token, v);
        f->params = NULL;
    }
}

static const struct {
    const char *name;
    void (*run)(struct serve_front *f, struct serve_message *m);
    bool legacy, modern; /* the eras that have it */
} methods[] = {
    {"initialize", initialize, true, false},    {"ping", ping, true, false},
    {"server/discover", discover, false, true}, {"tools/list", list_tools, true, true},
    {"tools/call", call_tool, true, true},
};

/* ---- one message ---- */

/* What the newest revision wants in each request. False: it was answered with an error. */
static bool check_meta(struct serve_front *f, struct serve_message *m, json_t *meta)
{
    const char *version = serve_rpc_text(meta, META "protocolVersion");
    if (!version || !json_is_object(json_object_get(meta, META "clientCapabilities"))) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          version ? "params._meta needs " META "clientCapabilities, an object"
                                  : "params._meta: " META "protocolVersion must be a string");
        return false;
    }
    char why[300];
    if (m->to.sink->head && !serve_http_agrees(m->to.sink->head, m->method, m->params, why)) {
        serve_reply_error(f, &m->to, SERVE_HEADER_MISMATCH, why);
        return false;
    }
    if (serve_version_find(version) != SERVE_2026_07_28) {
        serve_reply_bad_version(f, &m->to, version);
        return false;
    }
    return true;
}

/* The era of a request, and its progress token. False: it was answered with an error. */
static bool find_era(struct serve_front *f, struct serve_message *m)
{
    json_t *meta = m->params ? json_object_get(m->params, "_meta") : NULL;
    json_t *token = meta ? json_object_get(meta, "progressToken") : NULL;
    const bool opens = strcmp(m->method, "initialize") == 0;
    m->modern = meta && json_object_get(meta, META "protocolVersion");
    m->to.version = m->modern            ? SERVE_2026_07_28
                    : m->to.talk->opened ? m->to.talk->legacy
                                         : SERVE_2025_11_25;
    if (m->modern && !check_meta(f, m, meta))
        return false;
    if (!m->modern && !m->to.talk->opened && !opens && strcmp(m->method, "ping") != 0) {
        m->to.version = SERVE_2026_07_28;
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          "params._meta needs " META "protocolVersion and " META
                          "clientCapabilities; or initialize first (2025-11-25 and older)");
        return false;
    }
    if (token && !serve_rpc_id(token, m->token)) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          "params._meta.progressToken must be a short string or an integer");
        return false;
    }
    return true;
}

static void request(struct serve_front *f, struct serve_message *m)
{
    char why[200];
    if (serve_calls_pending(f, m->to.talk, m->to.id)) {
        serve_reply_error(f, &m->to, SERVE_INVALID_REQUEST,
                          "a request with this id is not answered yet");
        return;
    }
    if (!find_era(f, m) || (f->config.conformance && serve_conformance(f, m)) ||
        !serve_logs_level(f, m) || serve_tasks_take(f, m) || serve_resources_take(f, m) ||
        serve_logs_take(f, m))
        return;
    const json_t *able =
        json_object_get(json_object_get(m->params, "_meta"), META "clientCapabilities");
    m->to.elicits = m->modern ? json_object_get(able, "elicitation") != NULL
                              : m->to.talk->elicits && m->to.version >= SERVE_2025_06_18;
    m->to.tasks = serve_tasks_known(m) && strcmp(m->method, "tools/call") == 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, m->method) == 0 &&
            (m->modern ? methods[i].modern : methods[i].legacy)) {
            methods[i].run(f, m);
            return;
        }
    snprintf(why, sizeof why, "Method not found: %.100s", m->method);
    serve_reply_error(f, &m->to, SERVE_NO_METHOD, why);
}

/* The only one that changes something here; others are of no interest. */
static void notification(struct serve_front *f, const struct serve_message *m)
{
    char id[LIMIT_SERVE_ID + 1];
    if (strcmp(m->method, "notifications/cancelled") == 0 && m->params &&
        serve_rpc_id(json_object_get(m->params, "requestId"), id))
        serve_calls_cancel(f, m->to.talk, id);
}

static void invalid(struct serve_front *f, struct serve_message *m, const char *why)
{
    if (!m->has_id)
        snprintf(m->to.id, sizeof m->to.id, "null");
    serve_reply_error(f, &m->to, SERVE_INVALID_REQUEST, why);
}

/* BATCH: the array that it came in, which has a place for its reply. */
static void one(struct serve_front *f, struct serve_talk *talk, struct serve_sink *sink, json_t *v,
                struct serve_batch *batch)
{
    struct serve_message m = {
        .to = {.talk = talk, .sink = sink, .batch = batch, .version = SERVE_2026_07_28}};
    json_t *id = json_is_object(v) ? json_object_get(v, "id") : NULL;
    const char *version = json_is_object(v) ? serve_rpc_text(v, "jsonrpc") : NULL;
    if (id)
        m.has_id = serve_rpc_id(id, m.to.id);
    m.method = json_is_object(v) ? serve_rpc_text(v, "method") : NULL;
    m.params = json_is_object(v) ? json_object_get(v, "params") : NULL;
    if (!json_is_object(v) || !version || strcmp(version, "2.0") != 0)
        invalid(f, &m, "not a message of JSON-RPC 2.0");
    else if (!m.method && (json_object_get(v, "result") || json_object_get(v, "error"))) {
        serve_asking_answer(f, talk, v);
        goto silent;
    } else if (!m.method)
        invalid(f, &m, "a method, a text without NUL, is missing");
    else if (id && !m.has_id)
        invalid(f, &m, "an id is a string of at most 250 bytes, or an integer");
    else if (m.params && !json_is_object(m.params))
        invalid(f, &m, "params must be an object");
    else if (m.has_id)
        request(f, &m);
    else {
        notification(f, &m);
        goto silent;
    }
    return;
silent:
    if (batch)
        serve_batch_less(f, batch);
}

static void array(struct serve_front *f, struct serve_talk *talk, struct serve_sink *sink,
                  json_t *v)
{
    struct serve_message m = {.to = {.talk = talk, .sink = sink, .version = SERVE_2026_07_28}};
    const size_t count = json_array_size(v);
    const char *why = !talk->opened || talk->legacy != SERVE_2025_03_26
                          ? "arrays of messages are of revision 2025-03-26 alone"
                      : count == 0 || count > LIMIT_SERVE_BATCH ? "an array has 1 to 32 messages"
                                                                : NULL;
    struct serve_batch *batch = why ? NULL : serve_batch_new(sink);
    if (!batch) {
        invalid(f, &m, why ? why : "no memory");
        return;
    }
    batch->waiting += count;
    for (size_t i = 0; i < count; i++)
        one(f, talk, sink, json_array_get(v, i), batch);
    serve_batch_less(f, batch);
}

json_t *serve_rpc_parse(const char *text, size_t len, char *why)
{
    json_error_t where;
    if (too_deep(text, len)) {
        snprintf(why, 240, "more than 32 brackets within each other");
        return NULL;
    }
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!v)
        snprintf(why, 240, "not JSON, column %d: %.150s", where.column, where.text);
    return v;
}

void serve_rpc_take(struct serve_front *f, struct serve_talk *talk, struct serve_sink *sink,
                    json_t *message)
{
    if (json_is_array(message))
        array(f, talk, sink, message);
    else
        one(f, talk, sink, message, NULL);
}

/* ---- a client of lines ---- */

static int put_line(struct serve_sink *s, enum serve_put kind, const char *text, size_t len)
{
    struct buf *out = ((struct serve_lines *)s)->out;
    if (kind == SERVE_PUT_NOTHING)
        return 0;
    const int r = buf_add(out, text, len);
    return r < 0 ? r : buf_str(out, "\n");
}

static int ended(const struct serve_front *f, struct err *err)
{
    return f->bad ? err_set(err, f->bad, "the client does not read its answers") : 0;
}

int serve_front_too_long(struct serve_front *f, struct err *err)
{
    struct serve_message m = {
        .to = {.talk = &f->talk, .sink = &f->lines.sink, .version = SERVE_2026_07_28}};
    invalid(f, &m, "a message is longer than 4 MiB");
    return ended(f, err);
}

int serve_front_message(struct serve_front *f, const char *text, size_t len, struct err *err)
{
    struct serve_reply whose = {
        .talk = &f->talk, .sink = &f->lines.sink, .version = SERVE_2026_07_28};
    char why[240];
    if (blank(text, len))
        return 0;
    json_t *v = serve_rpc_parse(text, len, why);
    if (v) {
        serve_rpc_take(f, &f->talk, &f->lines.sink, v);
    } else {
        serve_rpc_whose(text, len, whose.id);
        serve_reply_error(f, &whose, SERVE_PARSE_ERROR, why);
    }
    json_decref(v);
    return ended(f, err);
}

/* ---- the object ---- */

void serve_front_prepare(void)
{
    json_object_seed(0);
}

struct serve_front *serve_front_new(const struct serve_front_config *config)
{
    struct serve_front *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->config = *config;
    serve_tools_prepare();
    buf_init(&f->out, LIMIT_SERVE_OUT);
    buf_init(&f->frames, LIMIT_SERVE_OUT);
    f->lines = (struct serve_lines){{.put = put_line}, &f->out};
    return f;
}

void serve_front_free(struct serve_front *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (f->calls[i].used)
            serve_calls_drop(f, f->calls[i].to.talk, f->calls[i].to.sink);
    serve_approval_forget(f);
    buf_done(&f->out);
    buf_done(&f->frames);
    free(f->made);
    free(f);
}

struct buf *serve_front_out(struct serve_front *f)
{
    return &f->out;
}

struct buf *serve_front_frames(struct serve_front *f)
{
    return &f->frames;
}
