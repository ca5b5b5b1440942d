/* SPDX-License-Identifier: Apache-2.0 */
/* The methods: bindings/methods.json has each with its arguments. */
#include "client/inside.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(args) (sizeof(args) / sizeof *(args))

static int run(struct cordon_client *c, const char *code, const char *session_id,
               const struct cordon_run_options *o, struct cordon_answer **ret_answer)
{
    const struct cordon_run_options none = {0};
    const struct cordon_run_options *w = o ? o : &none;
    const struct client_arg args[] = {
        {.name = "code", .text = code},
        {.name = "language", .text = w->language},
        {.name = "session_id", .text = session_id},
        {.name = "timeout_ms", .number = w->timeout_ms},
        {.name = "memory_mb", .number = w->memory_mb},
        {.name = "max_output_chars", .number = w->max_output_chars},
    };
    return client_do(c, "execute_code", args, COUNT(args), o, CLIENT_RESULT, ret_answer);
}

int cordon_client_run(struct cordon_client *c, const char *code, const struct cordon_run_options *o,
                      struct cordon_answer **ret_answer)
{
    return run(c, code, o ? o->session_id : NULL, o, ret_answer);
}

int cordon_client_wait(struct cordon_client *c, const char *job_id, bool cancel,
                       const struct cordon_run_options *o, struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "job_id", .text = job_id},
                                      {.name = "cancel", .flag = cancel}};
    return client_do(c, "wait_job", args, COUNT(args), o, CLIENT_RESULT, ret_answer);
}

int cordon_client_check(struct cordon_client *c, const char *code, const char *language,
                        struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "code", .text = code},
                                      {.name = "language", .text = language}};
    return client_do(c, "check_code", args, COUNT(args), NULL, CLIENT_REPORT, ret_answer);
}

int cordon_client_eval(struct cordon_client *c, const char *expression, const char *context,
                       struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "expression", .text = expression},
                                      {.name = "context", .text = context}};
    return client_do(c, "eval_expression", args, COUNT(args), NULL, CLIENT_EVALUATION, ret_answer);
}

/* ---- sessions ---- */

static int of_session(struct cordon_client *c, const char *action, const char *session_id,
                      const char *workspace, const char *language,
                      struct cordon_answer **ret_answer)
{
    const struct client_arg args[] = {{.name = "action", .text = action},
                                      {.name = "session_id", .text = session_id},
                                      {.name = "workspace", .text = workspace},
                                      {.name = "language", .text = language}};
    return client_do(c, "session", args, COUNT(args), NULL, CLIENT_SESSION, ret_answer);
}

int cordon_client_sessions(struct cordon_client *c, struct cordon_answer **ret_answer)
{
    return of_session(c, "list", NULL, NULL, NULL, ret_answer);
}

/* A new one, or a fork. */
static int make(struct cordon_client *c, const char *action, const char *from,
                const char *workspace, const char *language, struct cordon_session **ret_session)
{
    struct cordon_answer *a;
    *ret_session = NULL;
    int r = of_session(c, action, from, workspace, language, &a);
    const char *id = r == 0 ? cordon_answer_string(a, CORDON_SESSION_INFO_SESSION_ID, NULL) : NULL;
    if (r == 0) {
        struct cordon_session *s = id ? calloc(1, sizeof *s) : NULL;
        if (s) {
            s->client = c;
            snprintf(s->id, sizeof s->id, "%s", id);
            *ret_session = s;
        } else {
            r = id ? client_fail(c, CORDON_CLIENT_MEMORY, "no memory")
                   : client_fail(c, CORDON_CLIENT_PROTOCOL, "the server's reply has no session");
        }
    }
    cordon_answer_free(a);
    return r;
}

int cordon_client_session(struct cordon_client *c, struct cordon_session **ret_session)
{
    return make(c, "new", NULL, NULL, NULL, ret_session);
}

int cordon_client_session_in(struct cordon_client *c, const char *workspace,
                             struct cordon_session **ret_session)
{
    return make(c, "new", NULL, workspace, NULL, ret_session);
}

int cordon_client_session_of(struct cordon_client *c, const char *language, const char *workspace,
                             struct cordon_session **ret_session)
{
    return make(c, "new", NULL, workspace, language, ret_session);
}

const char *cordon_session_id(const struct cordon_session *s)
{
    return s->id;
}

int cordon_session_run(struct cordon_session *s, const char *code,
                       const struct cordon_run_options *o, struct cordon_answer **ret_answer)
{
    return run(s->client, code, s->id, o, ret_answer);
}

int cordon_session_fork(struct cordon_session *s, struct cordon_session **ret_session)
{
    return make(s->client, "fork", s->id, NULL, NULL, ret_session);
}

static int without_answer(struct cordon_session *s, const char *action)
{
    struct cordon_answer *a;
    const int r = of_session(s->client, action, s->id, NULL, NULL, &a);
    cordon_answer_free(a);
    return r;
}

int cordon_session_interrupt(struct cordon_session *s)
{
    return without_answer(s, "interrupt");
}

int cordon_session_close(struct cordon_session *s)
{
    return without_answer(s, "close");
}

void cordon_session_free(struct cordon_session *s)
{
    free(s);
}
