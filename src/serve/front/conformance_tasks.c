/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of the conformance suite: nothing runs. What a task has come to is worked out from the time and from what its
 * client sent, when it is asked for. */
#include "serve/front/inside.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { GREET, SLOW, FAILING, BROKEN, CONFIRM, MULTI, AFTER_INPUT };
static const struct {
    const char *name;
    bool required;    /* cannot be without a task */
    unsigned waits_s; /* before it is over */
    const char *keys[3];
} kinds[] = {[GREET] = {"greet", false, 0, {NULL}},
             [SLOW] = {"slow_compute", false, 0, {NULL}},
             [FAILING] = {"failing_job", true, 1, {NULL}},
             [BROKEN] = {"protocol_error_job", true, 1, {NULL}},
             [CONFIRM] = {"confirm_delete", true, 0, {"confirm", NULL}},
             [MULTI] = {"multi_input", true, 0, {"first", "second", NULL}},
             [AFTER_INPUT] = {"test_tool_with_task", true, 0, {NULL}}};
#define KINDS (sizeof kinds / sizeof *kinds)
#define TASKS 64
#define FORM                                                                                       \
    "{\"method\": \"elicitation/create\", \"params\": {\"message\": \"Please confirm\", "          \
    "\"requestedSchema\": {\"type\": \"object\", \"properties\": {\"confirm\": {\"type\": "        \
    "\"boolean\"}}}}}"
#define NAME_FORM                                                                                  \
    "{\"user_name\": {\"method\": \"elicitation/create\", \"params\": {\"message\": \"What is "    \
    "your name?\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"name\": "        \
    "{\"type\": \"string\"}}, \"required\": [\"name\"]}}}}"

struct task {
    char id[SERVE_STATE + 1];
    enum kind kind;
    uint64_t begun_ms, due_ms;
    unsigned answered; /* a bit for each key */
    bool cancelled;
    char name[100];
};

struct serve_conformance_tasks {
    struct task list[TASKS];
    unsigned next;
};

static uint64_t now_ms(void)
{
    return clock_now_ns() / CLOCK_NS_PER_MS;
}

static void result(struct jsonw *j, const struct task *t)
{
    char text[200];
    snprintf(text, sizeof text, "%s%s%s", t->kind == FAILING ? "the job failed" : "Hello, ",
             t->kind == FAILING ? "" : t->name, t->kind == FAILING ? "" : "!");
    jsonw_open(j, "content", '[');
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "type", "text");
    jsonw_string(j, "text", text);
    jsonw_close(j, '}');
    jsonw_close(j, ']');
    jsonw_bool(j, "isError", t->kind == FAILING);
}

static bool open_key(const struct task *t, size_t i)
{
    return kinds[t->kind].keys[i] && !(t->answered & 1U << i);
}

static const char *status(const struct task *t)
{
    return t->cancelled                       ? "cancelled"
           : open_key(t, 0) || open_key(t, 1) ? "input_required"
           : now_ms() < t->due_ms             ? "working"
           : t->kind == BROKEN                ? "failed"
                                              : "completed";
}

static void get(struct serve_front *f, const struct serve_message *m, const struct task *t)
{
    struct serve_writing w;
    const char *stands = status(t);
    serve_reply_begin(f, &m->to, &w);
    serve_tasks_write(&w.j, t->id, stands, now_ms() - t->begun_ms);
    if (strcmp(stands, "completed") == 0) {
        jsonw_open(&w.j, "result", '{');
        jsonw_string(&w.j, "resultType", "complete");
        result(&w.j, t);
        jsonw_close(&w.j, '}');
    } else if (strcmp(stands, "failed") == 0) {
        jsonw_open(&w.j, "error", '{');
        jsonw_int(&w.j, "code", -32603);
        jsonw_string(&w.j, "message", "the job broke");
        jsonw_close(&w.j, '}');
    } else if (strcmp(stands, "input_required") == 0) {
        jsonw_open(&w.j, "inputRequests", '{');
        for (size_t i = 0; kinds[t->kind].keys[i]; i++)
            if (open_key(t, i))
                jsonw_raw(&w.j, kinds[t->kind].keys[i], FORM, strlen(FORM));
        jsonw_close(&w.j, '}');
    }
    serve_reply_end(f, &m->to, &w);
}

static void update(const struct serve_message *m, struct task *t)
{
    const json_t *given = json_object_get(m->params, "inputResponses");
    for (size_t i = 0; kinds[t->kind].keys[i]; i++)
        if (json_is_object(json_object_get(given, kinds[t->kind].keys[i])))
            t->answered |= 1U << i;
}

static bool method(struct serve_front *f, struct serve_message *m)
{
    const char *id = json_string_value(json_object_get(m->params, "taskId"));
    const bool gets = strcmp(m->method, "tasks/get") == 0,
               updates = strcmp(m->method, "tasks/update") == 0,
               cancels = strcmp(m->method, "tasks/cancel") == 0;
    struct serve_writing w;
    if (!m->modern || (!gets && !updates && !cancels) || !serve_tasks_known(m))
        return false; /* as of a real one */
    for (size_t i = 0; id && f->made && i < TASKS; i++) {
        struct task *t = &f->made->list[i];
        if (!t->id[0] || strcmp(t->id, id) != 0)
            continue;
        if (gets) {
            get(f, m, t);
            return true;
        }
        if (updates)
            update(m, t);
        else if (strcmp(status(t), "working") == 0 || strcmp(status(t), "input_required") == 0)
            t->cancelled = true;
        serve_reply_begin(f, &m->to, &w);
        serve_reply_end(f, &m->to, &w);
        return true;
    }
    serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "taskId: there is no such task");
    return true;
}

static void create(struct serve_front *f, const struct serve_message *m, const struct task *like)
{
    if (!f->made)
        f->made = calloc(1, sizeof *f->made);
    const char *word = f->made ? serve_state_new(f, like, 0) : NULL; /* for its random letters */
    if (!word) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "no memory");
        return;
    }
    struct task *t = &f->made->list[f->made->next++ % TASKS];
    *t = *like;
    memcpy(t->id, word, sizeof t->id);
    serve_tasks_created(f, &m->to, t->id, 0);
}

/* The tool that asks first, and is a task then. False: it asked. */
static bool has_name(struct serve_front *f, const struct serve_message *m, struct task *t)
{
    const json_t *answer =
        json_object_get(json_object_get(m->params, "inputResponses"), "user_name");
    const char *name =
        json_string_value(json_object_get(json_object_get(answer, "content"), "name"));
    struct serve_writing w;
    if (name) {
        snprintf(t->name, sizeof t->name, "%.90s", name);
        return true;
    }
    serve_reply_begin_as(f, &m->to, &w, "input_required");
    jsonw_raw(&w.j, "inputRequests", NAME_FORM, strlen(NAME_FORM));
    serve_reply_end(f, &m->to, &w);
    return false;
}

static void call(struct serve_front *f, struct serve_message *m, enum kind kind)
{
    const json_t *arguments = json_object_get(m->params, "arguments");
    const char *name = json_string_value(json_object_get(arguments, "name"));
    const double seconds = kind == SLOW ? json_number_value(json_object_get(arguments, "seconds"))
                                        : kinds[kind].waits_s;
    struct task t = {.kind = kind, .begun_ms = now_ms()};
    struct serve_writing w;
    const bool known = serve_tasks_known(m);
    t.due_ms = t.begun_ms + (seconds > 0 && seconds < 3600 ? (uint64_t)(seconds * 1000) : 0);
    snprintf(t.name, sizeof t.name, "%.90s", name ? name : "");
    if (kinds[kind].required && !known) {
        serve_tasks_unknown(f, &m->to);
    } else if (kind == GREET || !known || (kind == SLOW && seconds <= 0)) {
        serve_reply_begin(f, &m->to, &w);
        result(&w.j, &t);
        serve_reply_end(f, &m->to, &w);
    } else if (kind != AFTER_INPUT || has_name(f, m, &t)) {
        create(f, m, &t);
    }
}

bool serve_conformance_task(struct serve_front *f, struct serve_message *m, const char *name)
{
    if (!name)
        return method(f, m);
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            call(f, m, (enum kind)i);
            return true;
        }
    return false;
}
