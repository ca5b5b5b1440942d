/* SPDX-License-Identifier: Apache-2.0 */
/* A run that waits for a person says so in what it prints. Where the operator's policy lets the person at a client answer
 * (approval.elicitation) and the client says that it can ask, the question is put there, with the whole code; else it waits
 * in the queue of `cordon approve`, as it does in any case until somebody answers. Whether the answer counts is the gate's to
 * say: we only pass it on.
 *
 * Up to 2025-11-25 the question is a request of ours beside the call. The newest revision answers the call with what is
 * wanted and a word: random, kept here with the call that it belongs to, and good once, for that call, and for ten minutes or as long as the policy keeps a
 * question, where that is less. */
#include "serve/front/inside.h"

#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ELICIT "elicitation/create"

/* ---- the question ---- */

/* A character that a reader does not see, or that moves others. */
static bool acts(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0) || utf8_unseen(cp);
}

int serve_approval_visible(struct buf *out, const char *text, size_t size)
{
    int r = 0;
    for (size_t at = 0; at < size && r == 0;) {
        uint32_t cp = 0;
        const int n = utf8_decode((const unsigned char *)text + at, size - at, &cp);
        const size_t len = n > 0 ? (size_t)n : 1;
        r = n > 0 && !acts(cp) ? buf_add(out, text + at, len)
                               : buf_printf(out, "\\u{%x}", n > 0 ? cp : 0xfffd);
        at += len;
    }
    return r;
}

/* What a person is asked about. */
struct subject {
    const char *approval, *language; /* language: NULL where the runner names none */
    /* What would run; where that is not the text that was sent the runner says it. */
    const char *code;
    size_t code_len;
};

/* As JSON. */
static int write_params(const struct serve_front *f, struct buf *out, const struct serve_call *c,
                        const struct subject *s)
{
    char time[UNITS_TEXT];
    struct buf message;
    struct jsonw j = {.out = out};
    buf_init(&message, 8 * LIMIT_SERVE_SHOWN);
    units_millis_text(f->config.question_ms, time);
    const char *files = serve_verb_files(c->q.verb);
    int r =
        files ? buf_printf(&message,
                           "Cordon asks (%s): may this be done, once, to the files of a session: "
                           "%s? Answer in %s. Its words:\n\n",
                           s->approval, files, time)
              : buf_printf(&message,
                           "Cordon asks (%s): may this program run, once, as %s? Answer in %s.\n\n",
                           s->approval, s->language ? s->language : "a program", time);
    if (r == 0)
        r = serve_approval_visible(&message, s->code, s->code_len);
    jsonw_open(&j, NULL, '{');
    jsonw_bytes(&j, "message", message.data, message.len);
    jsonw_raw(&j, "requestedSchema",
              "{\"type\": \"object\", \"properties\": {\"approve\": {\"type\": \"boolean\", "
              "\"title\": \"Run it\", \"description\": \"true: run it, once\"}}, "
              "\"required\": [\"approve\"]}",
              strlen("{\"type\": \"object\", \"properties\": {\"approve\": {\"type\": \"boolean\", "
                     "\"title\": \"Run it\", \"description\": \"true: run it, once\"}}, "
                     "\"required\": [\"approve\"]}"));
    jsonw_close(&j, '}');
    buf_done(&message);
    return r < 0 ? r : j.bad;
}

/* ---- the answer ---- */

/* To cordond, for nobody: whoever waits for the run sees what came of it. Where there is no place for it the question stays in the queue. */
static void tell_cordond(struct serve_front *f, const struct serve_about *about,
                         enum serve_verb verb, const char *answer)
{
    const struct serve_reply nobody = {.version = SERVE_2026_07_28, .part = SERVE_SILENT};
    struct serve_request q = {.verb = verb};
    char body[SERVE_APPROVAL] = "";
    if (answer) {
        const size_t n = strlen(about->approval) + 1, len = strlen(answer) + 1;
        memcpy(body, about->approval, n);
        memcpy(body + n, answer, len);
        q.body = n + len;
    }
    memcpy(q.handle, about->job, sizeof q.handle);
    serve_calls_start(f, &nobody, "", &q, body, "");
}

/* Yes and no are a person's word; one who only closed the question has not answered. */
static void pass_on(struct serve_front *f, const struct serve_about *about, const json_t *result)
{
    const char *action = serve_rpc_text(result, "action");
    const json_t *approve = json_object_get(json_object_get(result, "content"), "approve");
    if (!action)
        return;
    if (strcmp(action, "accept") == 0 && json_is_true(approve))
        tell_cordond(f, about, SERVE_APPROVAL_ANSWER, "yes");
    else if (strcmp(action, "decline") == 0 ||
             (strcmp(action, "accept") == 0 && json_is_false(approve)))
        tell_cordond(f, about, SERVE_APPROVAL_ANSWER, "no");
}

static void answered(struct serve_front *f, const struct serve_asked *a, json_t *result)
{
    pass_on(f, &a->about, result);
}

/* ---- asking ---- */

static bool make_word(struct serve_question *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[SERVE_STATE];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        s->word[i] = letters[bytes[i] & 31];
    return true;
}

static uint64_t answer_until(const struct serve_front *f)
{
    return clock_now_ns() + f->config.question_ms * CLOCK_NS_PER_MS;
}

/* The oldest makes room: who lost its word asks again. */
static struct serve_question *keep(struct serve_front *f, const struct serve_call *c,
                                   const struct serve_about *about)
{
    struct serve_question *s = &f->questions[f->next_question++ % SERVE_QUESTIONS];
    buf_done(&s->code);
    *s = (struct serve_question){.about = *about, .q = c->q, .until_ns = answer_until(f)};
    buf_init(&s->code, LIMIT_SERVE_SHOWN);
    return buf_add(&s->code, c->code.data ? c->code.data : "", c->code.len) < 0 ? NULL : s;
}

/* The call is answered; its run goes on as a job, which the same call comes back for. Where cordond cannot be told so now, the
 * question is the queue's alone. */
static void require(struct serve_front *f, struct serve_call *c, const struct serve_about *about,
                    const struct buf *params)
{
    struct serve_writing w;
    struct serve_question *s = serve_calls_room(f, SERVE_JOB_LOOK) ? keep(f, c, about) : NULL;
    if (!s || !make_word(s))
        return;
    tell_cordond(f, about, SERVE_JOB_LOOK,
                 NULL); /* from here on it is a job, which nobody's leaving ends */
    serve_reply_begin_as(f, &c->to, &w, "input_required");
    jsonw_open(&w.j, "inputRequests", '{');
    jsonw_open(&w.j, "approval", '{');
    jsonw_string(&w.j, "method", ELICIT);
    jsonw_raw(&w.j, "params", params->data, params->len);
    jsonw_close(&w.j, '}');
    jsonw_close(&w.j, '}');
    jsonw_string(&w.j, "requestState", s->word);
    serve_reply_end(f, &c->to, &w);
    serve_calls_leave(f, c);
}

/* Beside the call, which may be answered with a job before the person answers: the question does not need its sink. */
static void ask_beside(struct serve_front *f, const struct serve_call *c,
                       const struct serve_about *about, const char *params)
{
    struct serve_asked *a = serve_asking_start(f, &c->to, ELICIT, params, answered, NULL);
    if (!a)
        return;
    a->about = *about;
    a->until_ns = answer_until(f);
    a->to.sink = NULL;
}

static void ask(struct serve_front *f, struct serve_call *c, const struct subject *s)
{
    struct serve_about about = {.job = ""};
    struct buf params;
    buf_init(&params, 64 * LIMIT_SERVE_SHOWN);
    memcpy(about.job, c->job, sizeof about.job);
    snprintf(about.approval, sizeof about.approval, "%s", s->approval);
    c->questioned = true;
    if (write_params(f, &params, c, s) == 0) {
        if (c->to.version >= SERVE_2026_07_28)
            require(f, c, &about, &params);
        else
            ask_beside(f, c, &about, params.data);
    }
    buf_done(&params);
}

void serve_approval_look(struct serve_front *f, struct serve_call *c)
{
    if (!c->held || c->questioned || !c->to.elicits || c->to.batch || !c->early.len)
        return;
    for (size_t at = 0; at < c->early.len;) {
        const char *line = c->early.data + at, *end = memchr(line, '\n', c->early.len - at);
        json_error_t where;
        if (!end)
            return;
        json_t *o = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, &where);
        const char *id = json_string_value(json_object_get(o, "approval"));
        const json_t *code = json_object_get(o, "code");
        const bool found = id && id[0] && strlen(id) < SERVE_QUESTION_ID;
        struct subject s = {.approval = id,
                            .language = json_string_value(json_object_get(o, "language")),
                            .code = c->code.len ? c->code.data : "",
                            .code_len = c->code.len};
        if (json_is_string(code)) {
            s.code = json_string_value(code);
            s.code_len = json_string_length(code);
        }
        if (found)
            ask(f, c, &s);
        json_decref(o);
        if (found)
            return; /* C may be gone */
        at += (size_t)(end - line) + 1;
    }
}

/* ---- the newest revision: the call comes back ---- */

static bool same_call(const struct serve_question *s, const struct serve_request *q,
                      const char *code)
{
    return s->q.verb == q->verb && strcmp(s->q.handle, q->handle) == 0 &&
           s->q.limits.timeout_ms == q->limits.timeout_ms && s->q.language == q->language &&
           s->q.limits.memory == q->limits.memory && s->q.limits.output == q->limits.output &&
           s->code.len == q->body && (!q->body || memcmp(s->code.data, code, q->body) == 0);
}

bool serve_approval_resume(struct serve_front *f, const struct serve_reply *to, const char *token,
                           const struct serve_request *q, const char *code)
{
    const char *word = serve_rpc_text(f->params, "requestState");
    struct serve_request wait = {.verb = SERVE_JOB_WAIT};
    const json_t *given = json_object_get(f->params, "requestState");
    if (!given || json_is_null(given) || to->version < SERVE_2026_07_28)
        return false;
    if (!serve_calls_room(f, SERVE_JOB_WAIT) || !serve_calls_room(f, SERVE_APPROVAL_ANSWER)) {
        serve_calls_full(f, to); /* the word stays good */
        return true;
    }
    for (size_t i = 0; word && i < SERVE_QUESTIONS; i++) {
        struct serve_question *s = &f->questions[i];
        if (!s->word[0] || strcmp(s->word, word) != 0 || clock_now_ns() > s->until_ns ||
            !same_call(s, q, code))
            continue;
        s->word[0] = 0; /* once */
        pass_on(f, &s->about,
                json_object_get(json_object_get(f->params, "inputResponses"), "approval"));
        memcpy(wait.handle, s->about.job, sizeof wait.handle);
        serve_calls_start(f, to, token, &wait, "", "");
        return true;
    }
    serve_reply_error(f, to, SERVE_INVALID_PARAMS,
                      "requestState: not one that this server gave out for this call, or used "
                      "before, or too old; call again without it");
    return true;
}

void serve_approval_forget(struct serve_front *f)
{
    for (size_t i = 0; i < SERVE_QUESTIONS; i++)
        buf_done(&f->questions[i].code);
}
