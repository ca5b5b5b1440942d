/* SPDX-License-Identifier: Apache-2.0 */
/* What is told while a run goes on went through the same cleaning as the result, and only text that no later byte can
 * change is told; so all pieces of a stream, put together, are its text in the result unless that was cut. A reader that
 * stalls holds the program up, as in reader.c: what it has not taken is held by the writer, up to the cap. */
#include "events.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPANSION 16        /* bytes of JSON for a byte of a stream, and for its escape */
#define BESIDE    (8 * MIB) /* bytes of events that are no output */

/* The text that was sent, of which intake may have taken a part. */
static const char *sent;
static size_t sent_len;

struct event {
    struct buf line;
    struct jsonw j;
};

static void begin(struct event *e, const char *name)
{
    buf_init(&e->line, EXPANSION * LIMIT_OUTPUT_MAX);
    e->j = (struct jsonw){.out = &e->line};
    jsonw_open(&e->j, NULL, '{');
    jsonw_string(&e->j, "event", name);
}

static void finish(struct event *e)
{
    jsonw_close(&e->j, '}');
    if (!e->j.bad && buf_str(&e->line, "\n") == 0)
        writer_take(JAIL_STDOUT, &e->line);
    buf_done(&e->line);
}

static void tell_started(void *ctx, const char *id)
{
    struct event event;
    (void)ctx;
    begin(&event, "started");
    jsonw_string(&event.j, "id", id);
    finish(&event);
}

static void tell_violation(void *ctx, const struct flow_violation *v)
{
    struct event event;
    (void)ctx;
    if (v->end == FLOW_WAS_HARMLESS)
        return;
    begin(&event, "violation");
    flow_violation_json(&event.j, "violation", v);
    finish(&event);
}

static void tell_note(void *ctx, const char *sentence)
{
    struct event event;
    (void)ctx;
    begin(&event, "progress");
    jsonw_string(&event.j, "what", "room");
    jsonw_string(&event.j, "approval", NULL);
    jsonw_string(&event.j, "message", sentence);
    jsonw_null(&event.j, "code");
    jsonw_null(&event.j, "language");
    finish(&event);
}

static void tell_breaker(const struct gate_event *g, const char *state)
{
    struct event event;
    begin(&event, "breaker");
    jsonw_string(&event.j, "state", state);
    jsonw_string(&event.j, "subject", g->subject);
    jsonw_string(&event.j, "message", g->detail);
    jsonw_int(&event.j, "seconds", (int64_t)g->seconds);
    finish(&event);
}

/* Whoever shows a person the text that it sent must show this instead, where it is another. */
static void put_code(struct jsonw *j, const struct gate_event *g)
{
    if (!g->code || !sent || (g->code_len == sent_len && memcmp(g->code, sent, sent_len) == 0))
        jsonw_null(j, "code");
    else
        jsonw_bytes(j, "code", g->code, g->code_len);
}

void events_progress(const struct gate_event *g)
{
    static const char *const states[GATE_EVENT_COUNT] = {[GATE_EVENT_BREAKER_OPEN] = "open",
                                                         [GATE_EVENT_BREAKER_HALF_OPEN] =
                                                             "half-open",
                                                         [GATE_EVENT_BREAKER_CLOSE] = "closed"};
    struct event event;
    char line[400];
    const bool approval = g->kind == GATE_EVENT_APPROVAL_ASKED;
    if (g->kind < GATE_EVENT_COUNT && states[g->kind])
        tell_breaker(g, states[g->kind]);
    if (!approval && g->kind != GATE_EVENT_WAITING)
        return;
    if (approval)
        snprintf(line, sizeof line, "waiting for approval %s: cordon approve show %s", g->subject,
                 g->subject);
    else
        snprintf(line, sizeof line, "waiting for a slot: %s",
                 g->detail ? g->detail : "all are taken");
    begin(&event, "progress");
    jsonw_string(&event.j, "what", approval ? "approval" : "queue");
    jsonw_string(&event.j, "approval", approval ? g->subject : NULL);
    jsonw_string(&event.j, "message", line);
    put_code(&event.j, g);
    jsonw_string(&event.j, "language", g->language);
    finish(&event);
}

void events_image(const char *path, const char *data, size_t len)
{
    struct event event;
    begin(&event, "image");
    jsonw_string(&event.j, "path", path);
    jsonw_string(&event.j, "type", "image/png");
    jsonw_bytes(&event.j, "data", data, len);
    writer_ceiling(EXPANSION * LIMIT_OUTPUT_MAX + BESIDE + LIMIT_IMAGES * 2 * LIMIT_IMAGE_SENT);
    finish(&event);
}

/* What has become final since the last time. */
static void show(struct events *e, enum jail_stream stream)
{
    struct buf text;
    buf_init(&text, EXPANSION * LIMIT_OUTPUT_MAX);
    if (output_clean_show(&e->shown[stream], e->escape, &text) == 0 && text.len) {
        struct event event;
        begin(&event, stream == JAIL_STDOUT ? "stdout" : "stderr");
        jsonw_bytes(&event.j, "text", text.data, text.len);
        finish(&event);
    }
    buf_done(&text);
    e->gone = e->gone || writer_gone(JAIL_STDOUT);
}

static void take_bytes(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct events *e = ctx;
    output_clean_add(&e->kept[stream], data, len);
    output_clean_add(&e->shown[stream], data, len);
    show(e, stream);
}

static enum jail_held pass_on(void *ctx, enum jail_stream stream)
{
    struct events *e = ctx;
    (void)stream;
    writer_push(JAIL_STDOUT);
    e->gone = e->gone || writer_gone(JAIL_STDOUT);
    const size_t held = writer_held(JAIL_STDOUT);
    return !held ? JAIL_HELD_NONE : held > e->cap ? JAIL_HELD_FULL : JAIL_HELD_SOME;
}

void events_init(struct events *e, struct flow_request *req, enum output_unit unit)
{
    *e = (struct events){.escape = req->escape, .cap = req->spec.limits.output};
    writer_ceiling(EXPANSION * e->cap + BESIDE);
    for (int i = 0; i < 2; i++) {
        output_clean_init(&e->shown[i], req->rules, e->cap, unit);
        output_clean_init(&e->kept[i], req->rules, e->cap, unit);
    }
    req->live = (struct jail_sink){.ctx = e,
                                   .bytes = take_bytes,
                                   .pass_on = pass_on,
                                   .onward = {STDOUT_FILENO, STDOUT_FILENO}};
    req->live_gone = &e->gone;
    req->watch = (struct flow_watch){e, tell_started, tell_violation, tell_note};
    sent = req->source;
    sent_len = req->source_len;
}

void events_done(struct events *e)
{
    sent = NULL;
    for (int i = 0; i < 2; i++) {
        output_clean_done(&e->shown[i]);
        output_clean_done(&e->kept[i]);
    }
}

void events_rest(struct events *e, struct flow_result *r)
{
    for (enum jail_stream s = JAIL_STDOUT; s <= JAIL_STDERR; s++) {
        output_clean_end(&e->shown[s]);
        show(e, s);
        output_clean_end(&e->kept[s]);
        if (output_clean_text(&e->kept[s], e->escape, &r->streams[s]) < 0 ||
            output_clean_truncated(&e->kept[s]))
            r->truncated = true;
    }
}
