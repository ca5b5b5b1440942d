/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one call. Its attempts are made one after the other; what of an attempt has gone to the client stays there, so a second
 * attempt is either made before the client has anything, or goes on with the text that the client has. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- begin ---- */

void proxy_call_ask(struct proxy_call *c)
{
    struct proxy_front *f = c->front;
    struct buf frame;
    struct wire_writer w;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_PROXY_ASK);
    wire_put_uint(&w, c->number);
    wire_put_uint(&w, c->client);
    wire_put_text(&w, c->model);
    if (f->bad == 0)
        f->bad = wire_queue_put(&f->out, &w, &frame);
}

static void keep_header(struct proxy_call *c, size_t i, const char *name)
{
    const char *value = http_find(&c->conn->q, name);
    if (value && strlen(value) < 250)
        snprintf(c->headers[i], sizeof c->headers[i], "%s: %s", name, value);
}

struct proxy_call *proxy_call_new(struct proxy_front *f, struct http_conn *conn,
                                  const struct proxy_shape *shape, unsigned client, json_t *request)
{
    struct proxy_call *c = calloc(1, sizeof *c);
    const json_t *options = json_object_get(request, "stream_options");
    if (!c)
        return NULL;
    *c = (struct proxy_call){
        .front = f,
        .conn = conn,
        .shape = shape,
        .client = client,
        .number = ++f->numbers,
        .request = json_incref(request),
        .model = json_string_value(json_object_get(request, "model")),
        .streams = json_is_true(json_object_get(request, "stream")),
        .wants_usage = json_is_true(json_object_get(options, "include_usage")),
        .begun_ms = f->server.now_ms,
        .beat_ms = f->server.now_ms + LIMIT_HTTP_BEAT_MS,
    };
    c->last = &c->first;
    buf_init(&c->error, LIMIT_PROXY_ERROR);
    buf_init(&c->text, LIMIT_PROXY_TEXT);
    buf_init(&c->arguments, LIMIT_PROXY_HELD);
    proxy_sse_init(&c->sse);
    if (shape->anthropic) {
        keep_header(c, 0, "anthropic-version");
        keep_header(c, 1, "anthropic-beta");
        if (!c->headers[0][0])
            snprintf(c->headers[0], sizeof c->headers[0], "anthropic-version: 2023-06-01");
    }
    conn->work = c;
    conn->state = HTTP_CONN_WAITING;
    f->calls++;
    return c;
}

void proxy_call_free(struct proxy_call *c)
{
    if (!c)
        return;
    proxy_pieces_drop(c);
    monitor_free(c->monitor);
    proxy_sse_done(&c->sse);
    buf_done(&c->error);
    buf_done(&c->text);
    buf_done(&c->arguments);
    json_decref(c->request);
    json_decref(c->answer);
    c->front->calls--;
    c->front->ended++;
    free(c);
}

/* ---- the end ---- */

static void send_over(struct proxy_call *c, const char *status, const char *why)
{
    struct proxy_front *f = c->front;
    struct proxy_over *o = &c->over;
    const uint64_t numbers[PROXY_OVER_NUMBERS] = {o->tokens_in, o->tokens_out,
                                                  c->attempts,  o->tokens_cut,
                                                  o->onset,     f->server.now_ms - c->begun_ms};
    char *prompt = f->config->prompts ? json_dumps(c->request, JSON_COMPACT) : NULL;
    const size_t len = prompt ? strlen(prompt) : 0;
    struct buf frame;
    struct wire_writer w;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_PROXY_OVER);
    wire_put_uint(&w, c->number);
    wire_put_text(&w, status);
    wire_put_text(&w, why);
    wire_put_text(&w, c->asked);
    wire_put_uints(&w, numbers, PROXY_OVER_NUMBERS);
    wire_put_bytes(&w, prompt ? prompt : "", len < LIMIT_PROXY_PROMPT ? len : LIMIT_PROXY_PROMPT);
    if (f->bad == 0)
        f->bad = wire_queue_put(&f->out, &w, &frame);
    free(prompt);
}

/* The client has its answer, or is gone. */
static void end(struct proxy_call *c, const char *status, const char *why)
{
    proxy_attempt_stop(c);
    if (c->phase == PROXY_RUNNING)
        send_over(c, status, why);
    c->phase = PROXY_OVER_PHASE;
    c->conn->work = NULL;
    proxy_call_free(c);
}

/* What the attempt took: as the upstream counted it, or as far as we can tell. */
static void count(struct proxy_call *c, uint64_t *out)
{
    char *text = c->usage_in ? NULL : json_dumps(c->request, JSON_COMPACT);
    c->over.tokens_in += c->usage_in ? c->usage_in : text ? strlen(text) / 4 : 0;
    free(text);
    *out += c->usage_out ? c->usage_out : monitor_verdict(c->monitor)->tokens;
}

void proxy_call_drop(struct proxy_call *c)
{
    if (c->phase == PROXY_RUNNING && c->monitor) /* its prompt was sent, and is paid for */
        count(c, &c->over.tokens_cut);
    end(c, "cancelled", "the client left");
}

static void answer_whole(struct proxy_call *c)
{
    json_t *o = c->streams ? NULL : c->answer;
    if (c->streams)
        proxy_answer_done(c);
    else if (o)
        proxy_answer_json(c, 200, o);
    else
        proxy_answer_failed(c, 502, 0, "the upstream's answer has no beginning");
}

/* ---- failures ---- */

void proxy_call_fail(struct proxy_call *c, enum gate_error_category category, const char *why)
{
    if (c->failing)
        return;
    c->failing = c->failed = true;
    c->category = category;
    c->http = category == GATE_ERROR_TIMEOUT ? 504 : 502;
    snprintf(c->why, sizeof c->why, "%s", why);
}

/* Nobody is asked again once the client has a part of an answer that no other attempt can go on with. */
static void act_on_failure(struct proxy_call *c)
{
    proxy_attempt_stop(c);
    proxy_pieces_drop(c);
    if (!c->begun && proxy_attempt_next(c, c->category)) {
        count(c, &c->over.tokens_cut);
        buf_reset(&c->text);
        proxy_attempt_start(c);
        return;
    }
    count(c, &c->over.tokens_out);
    proxy_answer_failed(c, c->http, 0, c->why);
    end(c, "error", c->why);
}

/* The monitor's verdict: the connection is closed before anything else. */
static void act_on_verdict(struct proxy_call *c)
{
    const struct monitor_verdict v = *monitor_verdict(c->monitor);
    const uint64_t at = v.period && v.onset_byte > c->released ? v.onset_byte : c->released;
    const bool fresh = !c->begun;
    char why[120];
    proxy_attempt_stop(c);
    count(c, &c->over.tokens_cut);
    c->over.onset = v.onset;
    snprintf(why, sizeof why, "early_abort: %s by %s after %llu tokens",
             monitor_reason_name(v.reason), monitor_detector_name(v.detector),
             (unsigned long long)v.tokens);
    const bool next = (fresh || (c->shape->continues && !c->tool_sent)) &&
                      proxy_attempt_next(c, GATE_ERROR_EARLY_ABORT);
    if (next && fresh)
        proxy_pieces_drop(c);
    else
        proxy_pieces_cut(c, at);
    if (next && c->shape->leave)
        c->shape->leave(c);
    if (next) {
        proxy_attempt_start(c);
        return;
    }
    c->shape->cut(c);
    answer_whole(c);
    end(c, "early_abort", why);
}

/* ---- what the upstream says ---- */

/* After each event: what it means for the client. False: this attempt is over. */
static bool settle(struct proxy_call *c)
{
    if (c->failing) {
        act_on_failure(c);
        return false;
    }
    if (monitor_verdict(c->monitor)->abort) {
        act_on_verdict(c);
        return false;
    }
    const uint64_t settled =
        c->streams ? monitor_settled(c->monitor, c->front->config->holdback) : 0;
    if (settled) /* before there is text to hand on, the client gets nothing: then another tier can begin anew */
        proxy_pieces_release(c, settled);
    return true;
}

void proxy_call_finish(struct proxy_call *c)
{
    if (!c->failed)
        monitor_end(c->monitor);
    c->ended = true;
}

/* The connection to the upstream is not closed: it may carry another call. */
static void whole(struct proxy_call *c)
{
    c->stream = 0;
    proxy_pieces_release(c, UINT64_MAX);
    count(c, &c->over.tokens_out);
    if (c->streams && !c->shape->named)
        proxy_answer_raw(c, "data: [DONE]\n\n");
    answer_whole(c);
    end(c, "ok", "");
}

/* False: this attempt is over. */
static bool take_event(struct proxy_call *c)
{
    if (c->sse.data.len == 6 && memcmp(c->sse.data.data, "[DONE]", 6) == 0) {
        c->final = c->ended;
        return !c->final || (whole(c), false);
    }
    json_t *o = json_loadb(c->sse.data.len ? c->sse.data.data : "", c->sse.data.len,
                           JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(o))
        c->shape->event(c, o);
    else
        proxy_call_fail(c, GATE_ERROR_FORMAT, "the upstream sent an event that is no JSON object");
    json_decref(o);
    if (!settle(c))
        return false;
    return !c->final || (whole(c), false);
}

void proxy_call_may(struct proxy_call *c, uint64_t status, uint64_t seconds, const char *why)
{
    if (c->phase != PROXY_ASKING)
        return;
    if (status) {
        proxy_answer_failed(c, (int)status, seconds, why);
        end(c, "refused", why);
        return;
    }
    c->phase = PROXY_RUNNING;
    proxy_attempt_start(c);
}

void proxy_call_status(struct proxy_call *c, uint64_t status)
{
    c->status = status;
}

void proxy_call_bytes(struct proxy_call *c, const char *data, size_t len)
{
    const uint64_t stream = c->stream;
    struct proxy_front *f = c->front;
    struct http_conn *conn = c->conn;
    if (c->status != 200) {
        const size_t room = c->error.max - c->error.len;
        (void)!buf_add(&c->error, data, len < room ? len : room);
        return;
    }
    while (len && f->bad == 0) {
        size_t used;
        bool event;
        if (proxy_sse_take(&c->sse, data, len, &used, &event) < 0) {
            proxy_call_fail(c, GATE_ERROR_FORMAT, "the upstream sent an event that is too long");
            act_on_failure(c);
            return;
        }
        data += used;
        len -= used;
        if (!event)
            continue;
        if (!take_event(c) || conn->work != c || c->stream != stream)
            return;
        proxy_sse_next(&c->sse);
    }
}

/* What an upstream says of an error, for the client: its words where it is the client's mistake, ours where it is the key's. */
static void refused(struct proxy_call *c)
{
    char why[300] = "";
    json_t *o = json_loadb(c->error.len ? c->error.data : "", c->error.len, 0, NULL);
    const char *said = json_string_value(json_object_get(json_object_get(o, "error"), "message"));
    const bool ours = c->status == 401 || c->status == 403,
               mistake = c->status >= 400 && c->status < 500 && !ours;
    if (ours)
        snprintf(why, sizeof why, "the upstream refused the key of the gateway (status %llu)",
                 (unsigned long long)c->status);
    else if (said && mistake)
        snprintf(why, sizeof why, "%s", said);
    else
        snprintf(why, sizeof why, "the upstream answered with status %llu",
                 (unsigned long long)c->status);
    json_decref(o);
    proxy_call_fail(c, mistake || ours ? GATE_ERROR_REFUSAL : GATE_ERROR_HOST, why);
    if (mistake)
        c->http = (int)c->status;
}

void proxy_call_end(struct proxy_call *c, enum proxy_end how)
{
    c->stream = 0; /* there is nothing to close any more */
    if (c->ended && c->status == 200) {
        whole(c);
        return;
    }
    if (how == PROXY_END_SILENT)
        proxy_call_fail(c, GATE_ERROR_TIMEOUT, "the upstream said nothing for too long");
    else if (how == PROXY_END_UNREACHABLE)
        proxy_call_fail(c, GATE_ERROR_HOST, "the upstream cannot be reached");
    else if (c->status && c->status != 200 && how == PROXY_END_WHOLE)
        refused(c);
    else
        proxy_call_fail(c, GATE_ERROR_HOST, "the upstream ended in the middle of its answer");
    act_on_failure(c);
}
