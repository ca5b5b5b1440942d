/* SPDX-License-Identifier: Apache-2.0 */
/* The only door: a frame becomes a request of the table, a request becomes a job or an answer. The front that sends frames
 * has read a client's bytes and may be the client's by now, so a frame that does not follow the table ends it, and a handle
 * counts only where it was given to this client. */
#include "serve/holding.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <string.h>

static struct serve_ask *find(struct serve_client *c, uint64_t number)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (c->asks[i].state != SERVE_FREE && c->asks[i].q.number == number)
            return &c->asks[i];
    return NULL;
}

static struct serve_ask *unused(struct serve_client *c, enum serve_verb verb)
{
    const struct serve_places of = serve_verb_places(verb);
    for (size_t i = of.first; i < of.end; i++)
        if (c->asks[i].state == SERVE_FREE)
            return &c->asks[i];
    return NULL;
}

void serve_asks_free(struct serve_ask *a)
{
    if (a->source)
        a->source->readers--;
    buf_done(&a->body);
    buf_done(&a->bytes);
    *a = (struct serve_ask){.state = SERVE_FREE};
}

/* ---- answers ---- */

static void open_answer(struct serve_ask *a, enum serve_stand stand, const char *handle,
                        uint64_t number, size_t len)
{
    a->answer = (struct serve_answer){
        .request = a->q.number, .stand = stand, .number = number, .body = len};
    memcpy(a->answer.handle, handle, strlen(handle) + 1);
    buf_done(&a->bytes);
    a->sent = 0;
    a->opened = false;
    a->job = NULL;
    a->state = SERVE_ANSWERING;
}

static void answer(struct serve_ask *a, enum serve_stand stand, const char *handle, uint64_t number,
                   const void *bytes, size_t len)
{
    open_answer(a, stand, handle, number, len);
    buf_init(&a->bytes, LIMIT_SERVE_ANSWER);
    if (buf_add(&a->bytes, bytes, len) < 0) { /* no memory: without the bytes */
        a->answer.stand = SERVE_REFUSED;
        a->answer.body = 0;
    }
}

/* What JOB printed until now. Of more than one packet there is no copy: a client may ask for the same result many times and read none
 * of the answers. */
static void answer_by(struct serve_ask *a, enum serve_stand stand, const char *handle,
                      uint64_t number, struct serve_job *job)
{
    const struct buf *text = &job->runner.text;
    if (text->len <= LIMIT_SERVE_PIECE) {
        answer(a, stand, handle, number, text->data ? text->data : "", text->len);
        return;
    }
    open_answer(a, stand, handle, number, text->len);
    a->source = job;
    job->readers++;
}

const char *serve_asks_bytes(const struct serve_ask *a)
{
    const struct buf *b = a->source ? &a->source->runner.text : &a->bytes;
    return b->data ? b->data : "";
}

static const char *kept_handle(const struct serve_job *job)
{
    return job->kept ? job->handle : "";
}

void serve_asks_refuse(struct serve_ask *a, const char *why)
{
    answer(a, SERVE_REFUSED, "", 0, why, utf8_valid_prefix(why, strlen(why)));
}

/* The runner's first line, without its name for itself. The handle tells it from a job that is not there. */
static void refuse_by_runner(struct serve_ask *a, const struct serve_job *job)
{
    char line[sizeof job->runner.said];
    const char *said = job->runner.said,
               *text = strncmp(said, "cordon", 6) == 0 ? strstr(said, ": ") : NULL;
    text = text ? text + 2 : said;
    const size_t len = strcspn(text, "\n");
    memcpy(line, text, len);
    line[len] = 0;
    const char *why = job->runner.flooded ? "it printed more than an answer can hold"
                      : line[0]           ? line
                                          : "the runner ended and gave no result; try again";
    answer(a, SERVE_REFUSED, kept_handle(job), 0, why, utf8_valid_prefix(why, strlen(why)));
}

/* Without the part of gate and pool where it could not be read. */
static void tell_figures(const struct serve_client *c, struct serve_ask *a,
                         const struct serve_job *job)
{
    struct buf out;
    buf_init(&out, LIMIT_SERVE_FIGURES);
    const struct buf none = {0};
    if (serve_measure_write(c->all, job->runner.status == 0 ? &job->runner.text : &none, &out) < 0)
        serve_asks_refuse(a, "no memory");
    else
        answer(a, SERVE_DONE, "", 0, out.data, out.len);
    buf_done(&out);
}

static void settle(const struct serve_client *c, struct serve_ask *a, struct serve_job *job)
{
    if (job->verb == SERVE_METRICS) {
        tell_figures(c, a, job);
        return;
    }
    const struct serve_runner *r = &job->runner;
    const bool makes = job->verb == SERVE_SESSION_NEW || job->verb == SERVE_SESSION_FORK;
    const bool silent = !r->text.len && r->status != 0;
    if (r->flooded || (silent && !job->cancelled))
        refuse_by_runner(a, job);
    else
        answer_by(a, job->cancelled ? SERVE_CANCELLED : SERVE_DONE,
                  makes ? job->session : kept_handle(job), (uint64_t)r->status, job);
}

static void tell_running(struct serve_ask *a, struct serve_job *job, uint64_t now_ns)
{
    job->kept = true;
    answer_by(a, SERVE_RUNNING, job->handle, (now_ns - job->started_ns) / CLOCK_NS_PER_MS, job);
}

/* ---- verbs ---- */

static void start(struct serve_client *c, struct serve_ask *a, const char *session, uint64_t now_ns)
{
    struct err err = ERR_INIT;
    if (c->all->draining && !serve_verb_settles(a->q.verb)) {
        serve_asks_refuse(a, "the server is ending and begins nothing new; try again in a moment");
        return;
    }
    a->job = serve_jobs_start(c, &a->q, session, &a->body, now_ns, &err);
    buf_done(&a->body);
    if (a->job)
        a->state = SERVE_WAITING;
    else
        serve_asks_refuse(a, err.msg);
}

static void make_session(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    char handle[SERVE_HANDLE + 1];
    struct err err = ERR_INIT;
    if (a->body.len && !serve_sessions_workspace(c->config, &a->body))
        serve_asks_refuse(a, "workspace: this server gives none of that name to its clients; the "
                             "description of the session tool names those that it gives");
    else if (!serve_sessions_room(c, now_ns))
        serve_asks_refuse(a, "this client has 16 sessions, which is the most; close one first");
    else if (serve_handle_new(SERVE_HANDLE_SESSION, handle, &err) < 0)
        serve_asks_refuse(a, err.msg);
    else
        start(c, a, handle, now_ns);
}

static void list_sessions(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    struct buf out;
    buf_init(&out, 64 * KIB);
    if (serve_sessions_list(c, now_ns, &out) < 0)
        serve_asks_refuse(a, "no memory");
    else
        answer(a, SERVE_DONE, "", 0, out.data, out.len);
    buf_done(&out);
}

static void wait_job(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    struct serve_job *job = serve_jobs_find(c, a->q.handle);
    if (!job) {
        serve_asks_refuse(
            a, "there is no such job; the result of one is kept for 10 minutes after its end, or "
               "until newer ones need its room");
        return;
    }
    if (a->q.verb == SERVE_JOB_CANCEL)
        serve_jobs_cancel(job, now_ns);
    a->job = job;
    a->state = SERVE_WAITING;
    if (job->ended_ns)
        settle(c, a, job);
    else if (a->q.verb == SERVE_JOB_LOOK)
        tell_running(a, job, now_ns);
}

static void answer_approval(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    const struct serve_job *job = serve_jobs_find(c, a->q.handle);
    if (c->config->elicits && job && !job->ended_ns)
        start(c, a, NULL, now_ns);
    else
        serve_asks_refuse(a, "there is nothing that this client may answer");
}

/* What is asked of a session that this client has. */
static void begin_session(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    struct serve_session *s = serve_sessions_find(c, a->q.handle, now_ns);
    if (!s) {
        serve_asks_refuse(a, "there is no such session; one without a call ends after 30 "
                             "minutes; make a new one");
        return;
    }
    if (a->q.verb == SERVE_SESSION_FORK) {
        make_session(c, a, now_ns);
        return;
    }
    if (a->q.verb == SERVE_SESSION_RUN || serve_verb_files(a->q.verb)) {
        s->calls += a->q.verb == SERVE_SESSION_RUN;
        s->called_ns = now_ns;
    }
    start(c, a, a->q.handle, now_ns);
}

/* The whole request is here. */
static void begin(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    const enum serve_handle kind = serve_verb_handle(a->q.verb);
    if (kind == SERVE_HANDLE_SESSION)
        begin_session(c, a, now_ns);
    else if (a->q.verb == SERVE_APPROVAL_ANSWER)
        answer_approval(c, a, now_ns);
    else if (kind == SERVE_HANDLE_JOB)
        wait_job(c, a, now_ns);
    else if (a->q.verb == SERVE_HEALTH)
        answer(a, SERVE_DONE, "", c->all->draining, c->all->draining ? "ending\n" : "ok\n",
               c->all->draining ? 7 : 3);
    else if (a->q.verb == SERVE_APPROVALS && !c->config->approves)
        serve_asks_refuse(a, "this server has no approvals: its policy lacks approval.tool");
    else if (a->q.verb == SERVE_SESSION_NEW)
        make_session(c, a, now_ns);
    else if (a->q.verb == SERVE_SESSION_LIST)
        list_sessions(c, a, now_ns);
    else
        start(c, a, NULL, now_ns);
}

static void begin_counted(struct serve_client *c, struct serve_ask *a, uint64_t now_ns)
{
    begin(c, a, now_ns);
    if (a->state == SERVE_ANSWERING && a->answer.stand == SERVE_REFUSED)
        c->all->figures.refused++;
}

/* ---- frames ---- */

static int add_piece(struct serve_client *c, struct serve_ask *a, struct wire_reader *r,
                     uint64_t now_ns, struct err *err)
{
    size_t len;
    const void *piece = wire_get_bytes(r, &len);
    if (a->state != SERVE_BODY || len > a->q.body - a->body.len)
        return err_set(err, ERR_STATE, "a piece of a body that nobody waits for");
    int k = buf_add(&a->body, piece, len);
    if (k < 0)
        return err_set(err, k, "no memory for a body");
    if (a->body.len == a->q.body)
        begin_counted(c, a, now_ns);
    return 0;
}

static int take_ask(struct serve_client *c, struct wire_reader *r, uint64_t now_ns, struct err *err)
{
    struct serve_request q;
    int k = serve_request_read(r, &q, err);
    if (k < 0)
        return k;
    if (c->metrics != (q.verb == SERVE_METRICS || q.verb == SERVE_HEALTH))
        return err_set(err, ERR_STATE, "a verb that this front has not");
    struct serve_ask *a = unused(c, q.verb);
    if (!a || find(c, q.number))
        return err_set(err, ERR_STATE, "more requests at once than the table allows");
    *a = (struct serve_ask){.state = SERVE_BODY, .q = q, .asked_ns = now_ns, .told_ns = now_ns};
    buf_init(&a->body, q.body);
    c->all->figures.asked[q.verb]++;
    return add_piece(c, a, r, now_ns, err);
}

static int take_piece(struct serve_client *c, struct wire_reader *r, uint64_t now_ns,
                      struct err *err)
{
    struct serve_ask *a = find(c, wire_get_uint(r));
    return a ? add_piece(c, a, r, now_ns, err)
             : 0; /* refused or cancelled while it was on its way */
}

/* A run that nobody waits for is ended; who only waited for a job goes, and the job stays. */
static void cancel(struct serve_ask *a, uint64_t now_ns)
{
    if (!a)
        return;
    if (a->state == SERVE_WAITING && !a->job->kept)
        serve_jobs_give_up(a->job, now_ns);
    serve_asks_free(a);
}

/* Its answer, a job, and the client's word that it wants none may have crossed: whoever gave the request up does not know
 * the handle, and never asks for the job. */
static void cancel_job_of(struct serve_client *c, uint64_t request, uint64_t now_ns)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        struct serve_job *job = &c->jobs[i];
        if (job->used && job->request == request)
            serve_jobs_cancel(job, now_ns);
    }
}

static void take_cancel(struct serve_client *c, struct wire_reader *r, uint64_t now_ns)
{
    const uint64_t request = wire_get_uint(r);
    cancel(find(c, request), now_ns);
    if (wire_get_uint(r) && request)
        cancel_job_of(c, request, now_ns);
}

void serve_asks_cancel_all(struct serve_client *c, uint64_t now_ns)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (c->asks[i].state != SERVE_FREE)
            cancel(&c->asks[i], now_ns);
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        c->jobs[i].request = 0; /* the next front counts from 1 again */
}

int serve_asks_take(struct serve_client *c, const void *frame, size_t len, uint64_t now_ns,
                    struct err *err)
{
    struct wire_reader r;
    int k = wire_open(&r, frame, len, err);
    if (k < 0)
        return k;
    switch (r.type) {
    case WIRE_SERVE_ASK:
        return take_ask(c, &r, now_ns, err);
    case WIRE_SERVE_PIECE:
        return take_piece(c, &r, now_ns, err);
    case WIRE_SERVE_CANCEL:
        take_cancel(c, &r, now_ns);
        return 0;
    default:
        return err_set(err, ERR_FORMAT, "%s is no message for cordond", wire_name(r.type));
    }
}

/* ---- time ---- */

/* The front looks there for a question to a person. Nobody looks where the policy has no elicitation. */
bool serve_asks_shows(const struct serve_client *c, const struct serve_ask *a)
{
    return c->config->elicits && a->state == SERVE_WAITING && !a->job->ended_ns &&
           (a->q.verb == SERVE_RUN || a->q.verb == SERVE_SESSION_RUN ||
            serve_verb_files(a->q.verb)) &&
           a->shown < LIMIT_SERVE_SHOWN && a->job->runner.text.len > a->shown;
}

/* Sessions are made and ended in a moment; a run may take longer than a client waits for an answer, and a person who is
 * asked whether a file may be written does. */
static bool becomes_job(const struct serve_ask *a)
{
    const enum serve_verb v = a->job->verb;
    return v == SERVE_RUN || v == SERVE_SESSION_RUN || v == SERVE_CHECK || serve_verb_files(v);
}

static uint64_t answer_at(const struct serve_client *c, const struct serve_ask *a)
{
    return becomes_job(a) ? a->asked_ns + c->config->answer_ms * CLOCK_NS_PER_MS : UINT64_MAX;
}

static uint64_t note_at(const struct serve_client *c, const struct serve_ask *a)
{
    return a->told_ns + c->config->answer_ms * CLOCK_NS_PER_MS / LIMIT_SERVE_NOTES;
}

void serve_asks_tick(struct serve_client *c, uint64_t now_ns)
{
    for (size_t i = 0; i < SERVE_PLACES; i++) {
        struct serve_ask *a = &c->asks[i];
        if (a->state != SERVE_WAITING)
            continue;
        if (a->job->ended_ns) {
            settle(c, a, a->job);
        } else if (now_ns >= answer_at(c, a)) {
            tell_running(a, a->job, now_ns);
        } else if (now_ns >= note_at(c, a)) {
            a->told_ns = now_ns;
            a->due_ms = (now_ns - a->asked_ns) / CLOCK_NS_PER_MS;
        }
    }
}

uint64_t serve_asks_next(const struct serve_client *c)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < SERVE_PLACES; i++) {
        const struct serve_ask *a = &c->asks[i];
        if (a->state != SERVE_WAITING)
            continue;
        const uint64_t note = note_at(c, a), answer = answer_at(c, a),
                       at = answer < note ? answer : note;
        next = at < next ? at : next;
    }
    return next;
}
