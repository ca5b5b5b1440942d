/* SPDX-License-Identifier: Apache-2.0 */
/* What a runner printed, as the result of a tool: once as text that a model reads, once as the object that `--json` prints.
 * Some clients show only the one, some only the other, so both are complete. A runner prints JSON lines of our own making;
 * they are parsed here, and not in cordond, because a guest's texts are in them. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>

#define RESULT "{\"event\": \"result\", \"result\": " /* src/prog/cordon/events.c */

static const char *string(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* KEY's text under its name, where there is any. */
static void add_block(struct serve_text *t, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const size_t len = json_is_string(v) ? json_string_length(v) : 0;
    if (!len)
        return;
    const char *s = json_string_value(v);
    serve_text_add(t, "%s:\n", key);
    if (!t->bad)
        t->bad = buf_add(&t->out, s, len);
    if (s[len - 1] != '\n')
        serve_text_add(t, "\n");
}

static void add_line_number(struct serve_text *t, const json_t *o)
{
    const json_t *line = json_object_get(o, "line");
    if (json_is_integer(line) && json_integer_value(line) > 0)
        serve_text_add(t, " (line %lld)", (long long)json_integer_value(line));
}

static void add_violations(struct serve_text *t, const json_t *o)
{
    const json_t *list = json_object_get(o, "violations"), *v;
    size_t i;
    if (json_array_size(list))
        serve_text_add(t, "violations:\n");
    json_array_foreach(list, i, v)
    {
        const char *layer = string(v, "layer"), *rule = string(v, "rule"),
                   *detail = string(v, "detail"), *hint = string(v, "hint");
        serve_text_add(t, "- %s %s", layer ? layer : "?", rule ? rule : "?");
        add_line_number(t, v);
        serve_text_add(t, ": %s", detail ? detail : "");
        if (hint)
            serve_text_add(t, "; instead: %s", hint);
        serve_text_add(t, "\n");
    }
}

static void add_files(struct serve_text *t, const json_t *o)
{
    const json_t *list = json_object_get(o, "files"), *v;
    size_t i;
    if (json_array_size(list))
        serve_text_add(t, "files:\n");
    json_array_foreach(list, i, v)
    {
        const char *path = string(v, "path"), *change = string(v, "change");
        serve_text_add(t, "- %s (%lld bytes, %s)\n", path ? path : "?",
                       (long long)json_integer_value(json_object_get(v, "bytes")),
                       change ? change : "?");
    }
}

static void add_head(struct serve_text *t, const json_t *o)
{
    const json_t *code = json_object_get(o, "exit_code"), *error = json_object_get(o, "error"),
                 *usage = json_object_get(o, "usage");
    const char *status = string(o, "status"), *reason = string(o, "reason"), *type, *message;
    serve_text_add(t, "status: %s", status ? status : "?");
    if (json_is_integer(code))
        serve_text_add(t, ", exit code %lld", (long long)json_integer_value(code));
    if (usage)
        serve_text_add(t, ", %.1f ms", json_number_value(json_object_get(usage, "wall_ms")));
    serve_text_add(t, "\n");
    if (json_is_object(error)) {
        type = string(error, "type");
        message = string(error, "message");
        serve_text_add(t, "error: %s: %s", type ? type : "?", message ? message : "");
        add_line_number(t, error);
        serve_text_add(t, "\n");
        if (string(error, "hint"))
            serve_text_add(t, "instead: %s\n", string(error, "hint"));
    } else if (reason) {
        serve_text_add(t, "reason: %s\n", reason);
    }
}

static void add_result(struct serve_text *t, const json_t *o)
{
    add_head(t, o);
    add_violations(t, o);
    add_block(t, o, "stdout");
    add_block(t, o, "stderr");
    add_block(t, o, "value");
    add_block(t, o, "final");
    add_files(t, o);
    serve_render_beside(t, o);
    if (json_is_true(json_object_get(o, "truncated")))
        serve_text_add(t, "note: the output was cut; print less, or a part at a time\n");
}

/* ---- what a verb's runner printed ---- */

static void deliver_with(struct serve_front *f, struct serve_call *c, struct serve_text *t,
                         struct serve_text *blocks, const char *structured, size_t len,
                         bool is_error)
{
    if (c->note[0])
        serve_text_add(t, "note: %s\n", c->note);
    const int bad = t->bad ? t->bad : blocks->bad;
    if (bad && !f->bad)
        f->bad = bad;
    if (!bad)
        serve_reply_blocks(f, &c->to, &t->out, &blocks->out, structured, len, is_error);
    buf_done(&t->out);
    buf_done(&blocks->out);
}

static void deliver(struct serve_front *f, struct serve_call *c, struct serve_text *t,
                    const char *structured, size_t len, bool is_error)
{
    struct serve_text none = {.bad = 0};
    deliver_with(f, c, t, &none, structured, len, is_error);
}

static struct serve_text text_new(void)
{
    struct serve_text t = {.bad = 0};
    buf_init(&t.out, LIMIT_SERVE_ANSWER);
    return t;
}

static void say(struct serve_front *f, struct serve_call *c, const char *what, bool is_error)
{
    struct serve_text t = text_new();
    serve_text_add(&t, "%s\n", what);
    deliver(f, c, &t, NULL, 0, is_error);
}

const char *serve_render_last(const struct buf *body, size_t *ret_len)
{
    size_t end = body->len;
    while (end && body->data[end - 1] == '\n')
        end--;
    size_t at = end;
    while (at && body->data[at - 1] != '\n')
        at--;
    const char *line = body->data + at;
    size_t len = end - at;
    if (len > sizeof RESULT && memcmp(line, RESULT, sizeof RESULT - 1) == 0) {
        line += sizeof RESULT - 1;
        len -= sizeof RESULT; /* and the bracket at its end */
    }
    *ret_len = len;
    return line;
}

static void done(struct serve_front *f, struct serve_call *c)
{
    size_t len = 0;
    json_error_t where;
    const char *raw = c->body.len ? serve_render_last(&c->body, &len) : "";
    json_t *o = json_loadb(raw, len, JSON_ALLOW_NUL, &where);
    const char *status = json_is_object(o) ? string(o, "status") : NULL;
    char why[160];
    if (!status &&
        c->answer.stand == SERVE_CANCELLED) { /* before it began, or it had to be killed */
        say(f, c, "status: cancelled\nit was ended and gave no result", true);
    } else if (!status) { /* it was killed in the middle, or is of another version */
        snprintf(why, sizeof why,
                 "status: crashed\nthe runner ended with %llu and gave no result; try again",
                 (unsigned long long)c->answer.number);
        say(f, c, why, true);
    } else {
        struct serve_text t = text_new(), blocks = text_new();
        const json_t *safe = json_object_get(o, "is_safe");
        if (serve_render_files(&t, o) || serve_render_approvals(&t, o)) {
            /* told */
        } else if (safe) { /* a verdict: code that is refused was judged well */
            const char *message = string(o, "message");
            serve_text_add(&t, "%s\n", message ? message : status);
            add_violations(&t, o);
        } else {
            add_result(&t, o);
        }
        const bool verdict = safe && strcmp(status, "blocked") == 0;
        serve_logs_tell(f, c);
        serve_render_blocks(&blocks, c, o);
        deliver_with(f, c, &t, &blocks, raw, len, strcmp(status, "ok") != 0 && !verdict);
    }
    json_decref(o);
}

/* Output of the events that are there, both streams in the order in which they came. */
static void add_events(struct serve_text *t, struct serve_text streams[2], const struct buf *body)
{
    for (size_t at = 0; at < body->len;) {
        const char *line = body->data + at, *end = memchr(line, '\n', body->len - at);
        json_error_t where;
        if (!end)
            return;
        json_t *o = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, &where);
        const char *event = o ? string(o, "event") : NULL;
        const json_t *text = o ? json_object_get(o, "text") : NULL;
        const int stream = !event || !text                ? -1
                           : strcmp(event, "stdout") == 0 ? 0
                           : strcmp(event, "stderr") == 0 ? 1
                                                          : -1;
        if (stream >= 0 && !streams[stream].bad)
            streams[stream].bad =
                buf_add(&streams[stream].out, json_string_value(text), json_string_length(text));
        if (event && strcmp(event, "progress") == 0 && string(o, "message"))
            serve_text_add(t, "%s\n", string(o, "message"));
        json_decref(o);
        at += (size_t)(end - line) + 1;
    }
}

static void running(struct serve_front *f, struct serve_call *c)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct serve_text t = text_new(), streams[2] = {text_new(), text_new()};
    struct buf object;
    struct jsonw j = {.out = &object};
    buf_init(&object, LIMIT_SERVE_ANSWER);
    serve_text_add(&t, "status: running, %llu ms so far; its result: wait_job with job_id %s\n",
                   (unsigned long long)c->answer.number, c->answer.handle);
    add_events(&t, streams, &c->body);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "status", "running");
    jsonw_string(&j, "job_id", c->answer.handle);
    jsonw_int(&j, "elapsed_ms", (int64_t)c->answer.number);
    for (int i = 0; i < 2; i++) {
        const struct buf *s = &streams[i].out;
        jsonw_bytes(&j, names[i], s->len ? s->data : "", s->len);
        if (s->len) {
            serve_text_add(&t, "%s so far:\n", names[i]);
            t.bad = t.bad ? t.bad : buf_add(&t.out, s->data, s->len);
            serve_text_add(&t, "\n");
        }
        t.bad = t.bad ? t.bad : streams[i].bad;
        buf_done(&streams[i].out);
    }
    jsonw_close(&j, '}');
    t.bad = t.bad ? t.bad : j.bad;
    deliver(f, c, &t, object.data, object.len, false);
    buf_done(&object);
}

/* ---- sessions ---- */

/* The holder has no such session any more: that is what who closes it wants, and how often it is said does not matter. */
static bool was_over(const struct serve_call *c)
{
    return c->verb == SERVE_SESSION_CLOSE && c->answer.number == SERVE_STATUS_NEVER_RAN;
}

static void of_session(struct serve_front *f, struct serve_call *c)
{
    static const char *const actions[SERVE_VERB_COUNT] = {[SERVE_SESSION_NEW] = "new",
                                                          [SERVE_SESSION_FORK] = "fork",
                                                          [SERVE_SESSION_CLOSE] = "close",
                                                          [SERVE_SESSION_LIST] = "list",
                                                          [SERVE_SESSION_INTERRUPT] = "interrupt"};
    const bool made = c->verb == SERVE_SESSION_NEW || c->verb == SERVE_SESSION_FORK;
    struct serve_text t = text_new();
    struct buf object;
    struct jsonw j = {.out = &object};
    buf_init(&object, 64 * KIB);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "action", actions[c->verb]);
    if (c->verb == SERVE_SESSION_LIST) {
        jsonw_raw(&j, "sessions", c->body.data, c->body.len);
        serve_text_add(&t, "sessions: %.*s\n", (int)c->body.len, c->body.data);
    } else if (made) {
        jsonw_string(&j, "session_id", c->answer.handle);
        jsonw_int(&j, "expires_in_s", LIMIT_SERVE_IDLE_MS / 1000);
        serve_text_add(&t, "session_id: %s\nit ends after %llu minutes without a call\n",
                       c->answer.handle, LIMIT_SERVE_IDLE_MS / 60000);
    } else if (was_over(c)) {
        serve_text_add(&t, "close: done, it was over already\n");
    } else {
        serve_text_add(&t, "%s: done\n", actions[c->verb]);
    }
    jsonw_close(&j, '}');
    t.bad = t.bad ? t.bad : j.bad;
    deliver(f, c, &t, object.data, object.len, false);
    buf_done(&object);
}

static bool about_sessions(enum serve_verb v)
{
    return v == SERVE_SESSION_NEW || v == SERVE_SESSION_FORK || v == SERVE_SESSION_CLOSE ||
           v == SERVE_SESSION_LIST || v == SERVE_SESSION_INTERRUPT;
}

void serve_render(struct serve_front *f, struct serve_call *c)
{
    char why[500];
    if (c->to.part == SERVE_SILENT)
        return;
    if (c->to.part == SERVE_RESOURCE) {
        serve_resources_render(f, c);
        return;
    }
    if (serve_figures_render(f, c) || serve_tasks_render(f, c))
        return;
    switch (c->answer.stand) {
    case SERVE_DONE:
    case SERVE_CANCELLED:
        if (about_sessions(c->verb) && (c->answer.number == 0 || was_over(c)) &&
            (c->verb != SERVE_SESSION_LIST || c->body.len))
            of_session(f, c);
        else
            done(f, c);
        break;
    case SERVE_RUNNING:
        running(f, c);
        break;
    case SERVE_REFUSED:
        snprintf(why, sizeof why, "%.*s", (int)(c->body.len < 400 ? c->body.len : 400),
                 c->body.len ? c->body.data : "refused");
        say(f, c, why, true);
        break;
    case SERVE_GOING:
    case SERVE_STANDS:
        break;
    }
}
