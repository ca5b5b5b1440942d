/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that cordond works on. A call that was cancelled is forgotten at once: the protocol wants no reply to it, and what
 * cordond still sends for its number finds nobody. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_TRIES 4 /* after the first, each of LIMIT_APPROVALS_BUSY_MS where the lock is held */

static void note(struct serve_front *f, int r)
{
    if (r < 0 && !f->bad)
        f->bad = r;
}

static void put_frame(struct serve_front *f, const struct buf *frame)
{
    const uint32_t len = (uint32_t)frame->len;
    note(f, buf_add(&f->frames, &len, sizeof len));
    note(f, buf_add(&f->frames, frame->data, frame->len));
}

static void release(struct serve_call *c)
{
    buf_done(&c->body);
    buf_done(&c->code);
    buf_done(&c->early);
    *c = (struct serve_call){.used = false};
}

static void send_request(struct serve_front *f, const struct serve_request *q, const char *body)
{
    struct buf frame;
    struct err err = ERR_INIT;
    buf_init(&frame, 2 * LIMIT_SERVE_PIECE);
    note(f, serve_request_write(q, body, &frame, &err));
    put_frame(f, &frame);
    for (size_t at = serve_piece_length(q->body); at < q->body;) {
        const size_t len = serve_piece_length(q->body - at);
        buf_reset(&frame);
        note(f, serve_piece_write(q->number, body + at, len, &frame, &err));
        put_frame(f, &frame);
        at += len;
    }
    buf_done(&frame);
}

static size_t unused(const struct serve_front *f, enum serve_verb verb)
{
    const struct serve_places of = serve_verb_places(verb);
    size_t i = of.first;
    while (i < of.end && f->calls[i].used)
        i++;
    return i < of.end ? i : SERVE_PLACES;
}

/* How a task stands, or what a resource has, is no tool's to say. */
void serve_calls_full(struct serve_front *f, const struct serve_reply *to)
{
    static const char why[] = "32 calls are not answered yet, which is the most; wait for one";
    if (to->part == SERVE_TASK_NONE)
        serve_reply_bad_argument(f, to, why);
    else if (to->part != SERVE_SILENT)
        serve_reply_error(f, to, SERVE_INTERNAL, why);
}

void serve_calls_start(struct serve_front *f, const struct serve_reply *to, const char *token,
                       const struct serve_request *q, const void *body, const char *changed)
{
    struct serve_request asked = *q;
    const size_t place = unused(f, q->verb);
    if (place == SERVE_PLACES) {
        serve_calls_full(f, to);
        return;
    }
    struct serve_call *c = &f->calls[place];
    *c = (struct serve_call){.used = true, .number = ++f->numbers, .to = *to, .verb = q->verb};
    snprintf(c->token, sizeof c->token, "%s", token);
    snprintf(c->note, sizeof c->note, "%s", changed);
    buf_init(&c->body, LIMIT_SERVE_ANSWER);
    buf_init(&c->early, 2 * LIMIT_SERVE_SHOWN);
    buf_init(&c->code, LIMIT_SERVE_SHOWN);
    c->q = *q;
    c->held =
        f->config.elicits && q->body <= LIMIT_SERVE_SHOWN && buf_add(&c->code, body, q->body) == 0;
    asked.number = c->number;
    send_request(f, &asked, body);
}

bool serve_calls_pending(const struct serve_front *f, const struct serve_talk *talk, const char *id)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (f->calls[i].used && f->calls[i].to.talk == talk && strcmp(f->calls[i].to.id, id) == 0)
            return true;
    return false;
}

bool serve_calls_room(const struct serve_front *f, enum serve_verb verb)
{
    return unused(f, verb) < SERVE_PLACES;
}

size_t serve_calls_count(const struct serve_front *f, const struct serve_sink *sink)
{
    size_t count = serve_asking_count(f, sink);
    for (size_t i = 0; i < SERVE_PLACES; i++)
        count += f->calls[i].used && f->calls[i].to.sink == sink;
    return count;
}

/* ENDS: also the job that it may have become. */
static void send_cancel(struct serve_front *f, uint64_t number, bool ends)
{
    struct wire_writer w;
    struct buf frame;
    buf_init(&frame, 64);
    wire_begin(&w, &frame, WIRE_SERVE_CANCEL);
    wire_put_uint(&w, number);
    wire_put_uint(&w, ends);
    note(f, wire_end(&w));
    put_frame(f, &frame);
    buf_done(&frame);
}

void serve_calls_cancel(struct serve_front *f, const struct serve_talk *talk, const char *id)
{
    serve_asking_end(f, talk, id);
    for (size_t i = 0; i < SERVE_PLACES; i++) {
        struct serve_call *c = &f->calls[i];
        if (!c->used || c->to.talk != talk || strcmp(c->to.id, id) != 0)
            continue;
        send_cancel(f, c->number, true);
        struct serve_batch *batch = c->to.batch;
        struct serve_sink *sink = c->to.sink;
        release(c);
        if (batch)
            serve_batch_less(f, batch);
        else
            note(f, sink->put(sink, SERVE_PUT_NOTHING, "", 0));
    }
    for (size_t i = 0; i < SERVE_BECAME_JOBS; i++) {
        struct serve_became_job *g = &f->became_jobs[i];
        if (g->talk != talk || strcmp(g->id, id) != 0)
            continue;
        send_cancel(f, g->number, true);
        *g = (struct serve_became_job){.talk = NULL};
    }
}

void serve_calls_leave(struct serve_front *f, struct serve_call *c)
{
    send_cancel(f, c->number, false);
    release(c);
}

/* An array whose replies are not all there is held by its calls alone. */
static void drop_batch(struct serve_front *f, struct serve_batch *b)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (f->calls[i].to.batch == b)
            f->calls[i].to.batch = NULL;
    buf_done(&b->text);
    free(b);
}

void serve_calls_drop(struct serve_front *f, const struct serve_talk *talk,
                      const struct serve_sink *sink)
{
    serve_asking_drop(f, talk, sink);
    for (size_t i = 0; i < SERVE_BECAME_JOBS; i++)
        if (f->became_jobs[i].talk == talk)
            f->became_jobs[i] = (struct serve_became_job){.talk = NULL};
    for (size_t i = 0; i < SERVE_PLACES; i++) {
        struct serve_call *c = &f->calls[i];
        const bool own = c->to.part == SERVE_SILENT; /* goes only with the front itself */
        if (!c->used || (own ? talk || sink : !(c->to.talk == talk || c->to.sink == sink)))
            continue;
        send_cancel(f, c->number, true);
        if (c->to.batch)
            drop_batch(f, c->to.batch);
        release(c);
    }
}

static struct serve_call *find(struct serve_front *f, uint64_t number)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (f->calls[i].used && f->calls[i].number == number)
            return &f->calls[i];
    return NULL;
}

/* A client may give a request up before it reads that a job came of it. One that takes tasks ends them by tasks/cancel, and
 * a request of HTTP outside of a session is given up by its connection's end. */
static void note_job(struct serve_front *f, const struct serve_call *c)
{
    const bool lasts = c->to.talk && (c->to.talk == &f->talk || c->to.talk->opened);
    if (c->answer.stand != SERVE_RUNNING || !lasts || c->to.tasks || c->to.part != SERVE_TASK_NONE)
        return;
    struct serve_became_job *g = &f->became_jobs[f->next_became_job++ % SERVE_BECAME_JOBS];
    *g = (struct serve_became_job){.talk = c->to.talk, .number = c->number};
    memcpy(g->id, c->to.id, sizeof g->id);
}

/* A yes or a no that could not be put on record, since others held the lock of the approvals for long, is not lost: nobody would
 * hear of it, and the run would wait for somebody who has answered. Where it fails again and again, the queue has the question. */
static bool answer_again(struct serve_front *f, struct serve_call *c)
{
    const bool recorded = c->answer.stand == SERVE_DONE && c->answer.number == 0;
    if (c->verb != SERVE_APPROVAL_ANSWER || recorded || !c->held || c->tries++ == ANSWER_TRIES)
        return false;
    c->number = c->q.number = ++f->numbers;
    c->headed = false;
    buf_reset(&c->body);
    send_request(f, &c->q, c->code.data);
    return true;
}

static void finish(struct serve_front *f, struct serve_call *c)
{
    if (answer_again(f, c))
        return;
    note_job(f, c);
    if (c->answer.stand != SERVE_RUNNING) /* a job goes on, and what it asked, too */
        serve_asking_end(f, c->to.talk, c->to.id);
    serve_render(f, c);
    release(c);
}

static int add_piece(struct serve_front *f, struct serve_call *c, struct wire_reader *r,
                     struct err *err)
{
    size_t len;
    const void *piece = wire_get_bytes(r, &len);
    if (!c->headed || len > c->answer.body - c->body.len)
        return err_set(err, ERR_STATE, "a piece of an answer that nobody waits for");
    int k = buf_add(&c->body, piece, len);
    if (k < 0)
        return err_set(err, k, "no memory for an answer");
    if (c->body.len == c->answer.body)
        finish(f, c);
    return 0;
}

static int take_answer(struct serve_front *f, struct wire_reader *r, struct err *err)
{
    struct serve_answer a;
    int k = serve_answer_read(r, &a, err);
    struct serve_call *c = k < 0 ? NULL : find(f, a.request);
    if (!c) /* cancelled meanwhile */
        return k;
    if (a.stand == SERVE_GOING) {
        memcpy(c->job, a.handle, sizeof c->job);
        serve_reply_progress(f, c, a.number);
        return 0;
    }
    if (c->headed)
        return err_set(err, ERR_STATE, "cordond answered twice");
    c->headed = true;
    c->answer = a;
    return add_piece(f, c, r, err);
}

static int take_piece(struct serve_front *f, struct wire_reader *r, struct err *err)
{
    struct serve_call *c = find(f, wire_get_uint(r));
    if (!c)
        return 0;
    if (c->headed || !c->job[0])
        return add_piece(f, c, r, err);
    size_t len;
    const void *piece = wire_get_bytes(r, &len);
    const int k = buf_add(&c->early, piece, len);
    if (k == 0)
        serve_approval_look(f, c);
    return k < 0 ? err_set(err, k, "more was shown than there may be") : 0;
}

int serve_front_frame(struct serve_front *f, const void *frame, size_t len, struct err *err)
{
    struct wire_reader r;
    int k = wire_open(&r, frame, len, err);
    if (k == 0)
        k = r.type == WIRE_SERVE_SAYS     ? take_answer(f, &r, err)
            : r.type == WIRE_SERVE_PIECE  ? take_piece(f, &r, err)
            : r.type == WIRE_SERVE_LIMITS ? serve_limits_read(&r, &f->config.limits, err)
                                          : err_set(err, ERR_FORMAT, "no message for the front");
    if (k == 0 && f->bad)
        k = err_set(err, f->bad, "the client does not read its answers");
    return k;
}
