/* SPDX-License-Identifier: Apache-2.0 */
/* Which upstream is asked next is the gate's table (gate/escalate.h): after a cut generation the tier above at once, after a fault of the
 * machine or of the line the same tier again, after a refusal nobody. An attempt that goes on for another gets the good text as the
 * beginning of its answer, and never the text that was cut. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool has_it(const struct proxy_call *c, size_t i)
{
    const struct proxy_upstream *u = &c->front->config->upstreams[i];
    return u->anthropic == c->shape->anthropic && proxy_model_find(u, c->model);
}

/* The upstream of TIER that is number N among those that have the model, counted around. */
static bool pick(struct proxy_call *c, enum gate_tier tier, uint64_t n)
{
    const struct proxy_front_config *f = c->front->config;
    size_t count = 0;
    for (size_t i = 0; i < f->nupstreams; i++)
        count += f->upstreams[i].tier == tier && has_it(c, i);
    for (size_t i = 0, k = 0; count && i < f->nupstreams; i++)
        if (f->upstreams[i].tier == tier && has_it(c, i) && k++ == n % count) {
            c->upstream = i;
            c->tier = tier;
            return true;
        }
    return false;
}

bool proxy_attempt_first(struct proxy_call *c)
{
    c->attempt = 1;
    for (int t = 0; t < GATE_TIER_COUNT; t++)
        if (pick(c, (enum gate_tier)t, 0))
            return true;
    return false;
}

bool proxy_attempt_next(struct proxy_call *c, enum gate_error_category category)
{
    struct gate_failure_report report = {.category = category,
                                         .tier = c->tier,
                                         .attempt = c->attempt,
                                         .retries = c->front->config->retries};
    struct gate_advice advice;
    gate_escalate(&report, &advice);
    if (c->attempts >= LIMIT_PROXY_ATTEMPTS)
        return false;
    if (advice.step == GATE_STEP_RETRY)
        return pick(c, c->tier, c->attempt++);
    while (advice.step == GATE_STEP_ESCALATE) {
        c->attempt = 1;
        if (pick(c, advice.next, 0))
            return true;
        report.tier = advice.next; /* nobody there has the model: the one above */
        gate_escalate(&report, &advice);
    }
    return false;
}

/* ---- frames ---- */

static void send_body(struct proxy_call *c, const char *text, size_t len)
{
    struct proxy_front *f = c->front;
    for (size_t at = 0; at < len && f->bad == 0; at += LIMIT_SERVE_PIECE) {
        struct buf frame;
        struct wire_writer w;
        buf_init(&frame, LIMIT_FRAME);
        wire_begin(&w, &frame, WIRE_PROXY_BODY);
        wire_put_uint(&w, c->stream);
        wire_put_bytes(&w, text + at, len - at < LIMIT_SERVE_PIECE ? len - at : LIMIT_SERVE_PIECE);
        f->bad = wire_queue_put(&f->out, &w, &frame);
    }
}

static void send_open(struct proxy_call *c, size_t len)
{
    struct proxy_front *f = c->front;
    const char *headers[2];
    size_t count = 0;
    struct buf frame;
    struct wire_writer w;
    for (size_t i = 0; i < 2; i++)
        if (c->headers[i][0])
            headers[count++] = c->headers[i];
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_PROXY_OPEN);
    wire_put_uint(&w, c->number);
    wire_put_uint(&w, c->stream);
    wire_put_uint(&w, c->upstream);
    wire_put_uint(&w, c->shape->to);
    wire_put_strings(&w, headers, count);
    wire_put_uint(&w, len);
    if (f->bad == 0)
        f->bad = wire_queue_put(&f->out, &w, &frame);
}

static void note_upstream(struct proxy_call *c)
{
    const size_t n = strlen(c->asked);
    snprintf(c->asked + n, sizeof c->asked - n, "%s%s", n ? " " : "",
             c->front->config->upstreams[c->upstream].name);
}

void proxy_attempt_start(struct proxy_call *c)
{
    struct monitor_config config;
    uint64_t key = 0;
    const struct proxy_upstream *u = &c->front->config->upstreams[c->upstream];
    json_t *body = c->shape->body(c, proxy_model_find(u, c->model), &c->text);
    char *text = body ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(body);
    monitor_config_init(&config);
    (void)!monitor_config_tier(&config, gate_tier_name(u->tier), NULL);
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        key = c->number;
    monitor_free(c->monitor);
    c->monitor = monitor_new(&config, key);
    c->attempts++;
    c->stream = ++c->front->numbers;
    c->fed = c->released = c->status = 0;
    c->usage_in = c->usage_out = 0;
    c->ended = c->final = c->failed = c->failing = false;
    buf_reset(&c->error);
    proxy_sse_done(&c->sse);
    proxy_sse_init(&c->sse);
    if (!text || !c->monitor) {
        c->conn->broken = true;
    } else {
        note_upstream(c);
        send_open(c, strlen(text));
        send_body(c, text, strlen(text));
    }
    free(text);
}

/* The upstream's connection is closed at once. */
void proxy_attempt_stop(struct proxy_call *c)
{
    struct proxy_front *f = c->front;
    c->failed = true;
    if (!c->stream)
        return;
    struct buf frame;
    struct wire_writer w;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_PROXY_CLOSE);
    wire_put_uint(&w, c->stream);
    if (f->bad == 0)
        f->bad = wire_queue_put(&f->out, &w, &frame);
    c->stream = 0;
}
