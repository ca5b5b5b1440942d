/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a log: what a client should know of its runs beside their results. Up to 2025-11-25 a client says once from
 * which level on; in the newest revision each request says it, and one that does not is told nothing. */
#include "serve/front/inside.h"

#include <string.h>

#define BREAKER "{\"event\": \"breaker\", " /* src/prog/cordon/events.c */
#define WANTED  "a level is one of: debug info notice warning error critical alert emergency"

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};
enum { COUNT = sizeof levels / sizeof *levels, INFO = 1, NOTICE = 2, WARNING = 3 };

/* -1: it is none. */
static int find(const json_t *level)
{
    for (int i = 0; json_is_string(level) && i < COUNT; i++)
        if (strlen(levels[i]) == json_string_length(level) &&
            strcmp(levels[i], json_string_value(level)) == 0)
            return i;
    return -1;
}

void serve_logs_capability(struct jsonw *j)
{
    jsonw_open(j, "logging", '{');
    jsonw_close(j, '}');
}

bool serve_logs_level(struct serve_front *f, struct serve_message *m)
{
    json_t *level = json_object_get(json_object_get(m->params, "_meta"), SERVE_META "logLevel");
    if (!m->modern) {
        m->to.logs = true;
        m->to.log = m->to.talk->log ? m->to.talk->log - 1 : INFO;
        return true;
    }
    m->to.logs = level != NULL;
    m->to.log = find(level);
    if (!level || m->to.log >= 0)
        return true;
    serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, WANTED);
    return false;
}

bool serve_logs_take(struct serve_front *f, struct serve_message *m)
{
    struct serve_writing w;
    const int level = find(json_object_get(m->params, "level"));
    if (m->modern || f->config.conformance || strcmp(m->method, "logging/setLevel") != 0)
        return false;
    if (level < 0) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, WANTED);
        return true;
    }
    m->to.talk->log = level + 1; /* 0: none was named */
    serve_reply_begin(f, &m->to, &w);
    serve_reply_end(f, &m->to, &w);
    return true;
}

static void tell(struct serve_front *f, const struct serve_call *c, const char *line, size_t len)
{
    json_error_t where;
    struct buf params;
    struct jsonw j = {.out = &params};
    json_t *o = json_loadb(line, len, 0, &where);
    const char *state = json_string_value(json_object_get(o, "state"));
    const int level = state && strcmp(state, "open") == 0 ? WARNING : NOTICE;
    buf_init(&params, 64 * KIB);
    if (state && level >= c->to.log) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "level", levels[level]);
        jsonw_string(&j, "logger", "cordon.breaker");
        jsonw_raw(&j, "data", line, len);
        jsonw_close(&j, '}');
        if (j.bad == 0)
            serve_reply_note(f, &c->to, "notifications/message", params.data);
    }
    buf_done(&params);
    json_decref(o);
}

/* The result of a job may be asked for again, and how the breaker stood then is no news. */
static bool told_before(const struct serve_front *f, const struct serve_call *c)
{
    for (size_t i = 0; c->q.handle[0] && i < LIMIT_SERVE_JOBS; i++)
        if (strcmp(f->told[i], c->q.handle) == 0)
            return true;
    return false;
}

static void note_told(struct serve_front *f, const struct serve_call *c)
{
    if (serve_verb_handle(c->verb) == SERVE_HANDLE_JOB)
        memcpy(f->told[f->next_told++ % LIMIT_SERVE_JOBS], c->q.handle, sizeof f->told[0]);
}

void serve_logs_tell(struct serve_front *f, const struct serve_call *c)
{
    const size_t mark = sizeof BREAKER - 1;
    bool told = false;
    for (size_t at = 0; c->to.logs && at < c->body.len && !told_before(f, c);) {
        const char *line = c->body.data + at, *end = memchr(line, '\n', c->body.len - at);
        const size_t len = end ? (size_t)(end - line) : c->body.len - at;
        if (len > mark && memcmp(line, BREAKER, mark) == 0) {
            tell(f, c, line, len);
            told = true;
        }
        at += len + 1;
    }
    if (told)
        note_told(f, c);
}
