/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks extension of the newest revision: a run that takes long is answered with a task instead of a job, where the
 * client says that it knows tasks. Both are the same thing of cordond's, by the same handle, so that a task is there as soon
 * as its client hears of it, and wait_job takes it, too. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXTENSION SERVE_META "tasks"

bool serve_tasks_known(const struct serve_message *m)
{
    const json_t *able =
        json_object_get(json_object_get(m->params, "_meta"), SERVE_META "clientCapabilities");
    return m->modern && json_object_get(json_object_get(able, "extensions"), EXTENSION) != NULL;
}

void serve_tasks_capability(struct jsonw *j)
{
    jsonw_open(j, "extensions", '{');
    jsonw_open(j, EXTENSION, '{');
    jsonw_close(j, '}');
    jsonw_close(j, '}');
}

void serve_tasks_unknown(struct serve_front *f, const struct serve_reply *to)
{
    serve_reply_error_data(f, to, SERVE_NO_CAPABILITY,
                           "Missing required client capability: extensions." EXTENSION,
                           "{\"requiredCapabilities\": {\"extensions\": {\"" EXTENSION "\": {}}}}");
}

static void write_time(struct jsonw *j, const char *key, time_t at)
{
    char text[40] = "";
    struct tm t;
    if (gmtime_r(&at, &t))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    jsonw_string(j, key, text);
}

void serve_tasks_write(struct jsonw *j, const char *id, const char *status, uint64_t age_ms)
{
    const time_t now = time(NULL);
    jsonw_string(j, "taskId", id);
    jsonw_string(j, "status", status);
    write_time(j, "createdAt", now - (time_t)(age_ms / 1000));
    write_time(j, "lastUpdatedAt", now);
    jsonw_int(j, "ttlMs", LIMIT_SERVE_KEEP_MS);
    jsonw_int(j, "pollIntervalMs", LIMIT_SERVE_POLL_MS);
}

void serve_tasks_created(struct serve_front *f, const struct serve_reply *to, const char *id,
                         uint64_t age_ms)
{
    struct serve_writing w;
    serve_reply_begin_as(f, to, &w, "task");
    serve_tasks_write(&w.j, id, "working", age_ms);
    serve_reply_end(f, to, &w);
}

/* ---- methods ---- */

static const struct {
    const char *name;
    enum serve_verb verb;
    enum serve_task_part part;
} methods[] = {{"tasks/get", SERVE_JOB_LOOK, SERVE_TASK_GET},
               {"tasks/update", SERVE_JOB_LOOK, SERVE_TASK_ACK},
               {"tasks/cancel", SERVE_JOB_CANCEL, SERVE_TASK_ACK}};

bool serve_tasks_take(struct serve_front *f, struct serve_message *m)
{
    const char *id = serve_rpc_text(m->params, "taskId");
    for (size_t i = 0; m->modern && i < sizeof methods / sizeof *methods; i++) {
        struct serve_request q = {.verb = methods[i].verb};
        if (strcmp(methods[i].name, m->method) != 0)
            continue;
        if (!serve_tasks_known(m)) {
            serve_tasks_unknown(f, &m->to);
        } else if (!id || strlen(id) != SERVE_HANDLE || !serve_handle_good(SERVE_HANDLE_JOB, id)) {
            serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "taskId: there is no such task");
        } else {
            memcpy(q.handle, id, sizeof q.handle);
            memcpy(m->to.task, id, sizeof m->to.task);
            m->to.part = methods[i].part;
            serve_calls_start(f, &m->to, "", &q, "", "");
        }
        return true;
    }
    return false;
}

/* A task in a state without a result. */
static void tell(struct serve_front *f, const struct serve_call *c, const char *status)
{
    struct serve_writing w;
    serve_reply_begin(f, &c->to, &w);
    serve_tasks_write(&w.j, c->to.task, status, c->answer.number);
    serve_reply_end(f, &c->to, &w);
}

bool serve_tasks_render(struct serve_front *f, struct serve_call *c)
{
    struct serve_writing w;
    if (c->answer.stand == SERVE_RUNNING && c->to.tasks) {
        serve_tasks_created(f, &c->to, c->answer.handle, c->answer.number);
        return true;
    }
    if (c->to.part == SERVE_TASK_NONE)
        return false;
    if (c->answer.stand == SERVE_REFUSED && !c->answer.handle[0]) {
        serve_reply_error(f, &c->to, SERVE_INVALID_PARAMS, "taskId: there is no such task");
    } else if (c->to.part == SERVE_TASK_ACK) {
        serve_reply_begin(f, &c->to, &w);
        serve_reply_end(f, &c->to, &w);
    } else if (c->answer.stand == SERVE_DONE || c->answer.stand == SERVE_REFUSED) {
        return false; /* the result of a tool, within the task */
    } else {
        tell(f, c, c->answer.stand == SERVE_RUNNING ? "working" : "cancelled");
    }
    return true;
}
