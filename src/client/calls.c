/* SPDX-License-Identifier: Apache-2.0 */
/* One method: its request, a job that is followed to its end, and what is said to the server where the caller gives up. */
#include "client/inside.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define META "io.modelcontextprotocol/"

struct following {
    const struct cordon_run_options *o;
    enum client_kind kind;
    char job[80];
    char *told[2]; /* output that the caller has had */
    size_t told_len[2];
};

/* ---- requests ---- */

static void open_message(struct jsonw *j, const char *method)
{
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "jsonrpc", "2.0");
    jsonw_string(j, "method", method);
}

static void write_arguments(struct jsonw *j, const struct client_arg *args, size_t count)
{
    jsonw_open(j, "arguments", '{');
    for (size_t i = 0; i < count; i++)
        if (args[i].text)
            jsonw_string(j, args[i].name, args[i].text);
        else if (args[i].number) /* more than JSON has is as much as there is */
            jsonw_int(j, args[i].name,
                      args[i].number < INT64_MAX ? (int64_t)args[i].number : INT64_MAX);
        else if (args[i].flag)
            jsonw_bool(j, args[i].name, true);
    jsonw_close(j, '}');
}

static int end_message(struct cordon_client *c, struct jsonw *j, bool giving_up)
{
    jsonw_close(j, '}');
    int r = j->bad ? j->bad : buf_str(j->out, "\n");
    if (r == ERR_LIMIT)
        return client_fail(c, CORDON_CLIENT_ARGUMENT, "a message has at most 4 MiB");
    return r < 0 ? client_fail(c, CORDON_CLIENT_MEMORY, "no memory")
                 : client_send(c, j->out, giving_up);
}

static int send_call(struct cordon_client *c, uint64_t number, const char *tool,
                     const struct client_arg *args, size_t count, bool progress, bool giving_up)
{
    struct buf out;
    struct jsonw j = {.out = &out};
    buf_init(&out, CLIENT_MESSAGE_MAX);
    open_message(&j, "tools/call");
    jsonw_int(&j, "id", (int64_t)number);
    jsonw_open(&j, "params", '{');
    jsonw_string(&j, "name", tool);
    write_arguments(&j, args, count);
    jsonw_open(&j, "_meta", '{');
    jsonw_string(&j, META "protocolVersion", "2026-07-28");
    jsonw_open(&j, META "clientCapabilities", '{');
    jsonw_close(&j, '}');
    if (progress)
        jsonw_int(&j, "progressToken", (int64_t)number);
    jsonw_close(&j, '}');
    jsonw_close(&j, '}');
    const int r = end_message(c, &j, giving_up);
    buf_done(&out);
    return r;
}

/* The run of the call ends; and the job, where it is one already. Nobody waits for an answer. Where the server does not take
 * that, the connection ends, and with it what runs: who gave up does not wait for it a second time. */
static void give_up(struct cordon_client *c, uint64_t number, const char *job)
{
    struct buf out;
    struct jsonw j = {.out = &out};
    char why[sizeof c->why];
    memcpy(why, c->why, sizeof why);
    buf_init(&out, 4096);
    open_message(&j, "notifications/cancelled");
    jsonw_open(&j, "params", '{');
    jsonw_int(&j, "requestId", (int64_t)number);
    jsonw_close(&j, '}');
    int r = end_message(c, &j, true);
    const struct client_arg args[] = {{.name = "job_id", .text = job},
                                      {.name = "cancel", .flag = true}};
    if (r == 0 && job[0])
        r = send_call(c, ++c->number, "wait_job", args, 2, false, true);
    if (r)
        client_drop(c);
    buf_done(&out);
    c->unheard = r != 0;
    memcpy(c->why, why, sizeof why);
}

/* ---- replies ---- */

static int ask(struct cordon_client *c, const char *tool, const struct client_arg *args,
               size_t count, const struct following *f, struct client_call *call)
{
    const bool progress = f->o && f->o->on_progress;
    *call = (struct client_call){
        .number = ++c->number, .watch = progress ? f->o : NULL, .outer = c->calls};
    c->calls = call;
    int r = send_call(c, call->number, tool, args, count, progress, false);
    if (r == 0)
        r = client_receive(c, call);
    c->calls = call->outer;
    if (r) {
        free(call->reply);
        call->reply = NULL;
    }
    return r;
}

/* What a stream has more than the caller was told. Output that was cut or redacted since is in the answer alone. */
static int tell_output(struct cordon_client *c, struct following *f, int stream, const char *name,
                       const struct client_value *content)
{
    struct client_value v;
    size_t len, had = f->told_len[stream];
    if (!client_member(content->text, content->len, name, &v) || v.kind != JSON_STRING)
        return 0;
    char *text = client_decode(&v, &len);
    if (!text)
        return client_fail(c, CORDON_CLIENT_MEMORY, "no memory");
    if (len <= had || (had && memcmp(text, f->told[stream], had) != 0)) {
        free(text);
        return 0;
    }
    free(f->told[stream]);
    f->told[stream] = text;
    f->told_len[stream] = len;
    return f->o->on_output(f->o->data, name, text + had, len - had)
               ? client_fail(c, CORDON_CLIENT_CANCELLED, "cancelled by a callback")
               : 0;
}

/* Looks at a result: the job, if it goes on, and its output. */
static int look(struct cordon_client *c, struct following *f, const struct client_value *result)
{
    struct client_value content, status, job;
    int r = 0;
    f->job[0] = 0;
    if (result->kind != JSON_OBJECT)
        return client_fail(c, CORDON_CLIENT_PROTOCOL, "the server's reply has no result");
    if (!client_member(result->text, result->len, "structuredContent", &content))
        return 0;
    if (client_member(content.text, content.len, "status", &status) && status.len == 7 &&
        memcmp(status.text, "running", 7) == 0 &&
        client_member(content.text, content.len, "job_id", &job)) {
        if (job.kind != JSON_STRING || job.len >= sizeof f->job)
            return client_fail(c, CORDON_CLIENT_PROTOCOL, "the server's job has no handle");
        memcpy(f->job, job.text, job.len);
        f->job[job.len] = 0;
    }
    if (f->o && f->o->on_output) {
        r = tell_output(c, f, 0, "stdout", &content);
        r = r ? r : tell_output(c, f, 1, "stderr", &content);
    }
    return r;
}

static int protocol_error(struct cordon_client *c, const struct client_call *call)
{
    struct client_value error, message;
    size_t len;
    char *words = client_member(call->reply, call->len, "error", &error) &&
                          client_member(error.text, error.len, "message", &message)
                      ? client_decode(&message, &len)
                      : NULL;
    const int r = client_fail(c, CORDON_CLIENT_PROTOCOL, "%s", words ? words : "no result");
    free(words);
    return r;
}

static int finish(struct cordon_client *c, const struct following *f, struct client_call *call,
                  const struct client_value *result, struct cordon_answer **ret)
{
    *ret = client_answer_new(call->reply, result, f->kind);
    call->reply = NULL;
    if (!*ret)
        return client_fail(c, CORDON_CLIENT_MEMORY, "no memory");
    const bool checks = f->kind >= CLIENT_FILE || (f->o && f->o->check);
    if (checks && (*ret)->is_error)
        return client_fail(c, CORDON_CLIENT_FAILED, "%s", cordon_answer_text(*ret));
    return 0;
}

static int follow(struct cordon_client *c, struct following *f, const char *tool,
                  const struct client_arg *args, size_t count, struct cordon_answer **ret)
{
    struct client_call call;
    struct client_value result;
    const struct client_arg again = {.name = "job_id", .text = f->job};
    int r;
    for (;;) {
        r = ask(c, tool, args, count, f, &call);
        if (r == 0 && !client_member(call.reply, call.len, "result", &result))
            r = protocol_error(c, &call);
        if (r == 0)
            r = look(c, f, &result);
        if (r || !f->job[0] || (f->o && f->o->no_wait))
            break;
        free(call.reply);
        tool = "wait_job";
        args = &again;
        count = 1;
    }
    if (r == CORDON_CLIENT_CANCELLED)
        give_up(c, call.number, f->job);
    if (r == 0)
        r = finish(c, f, &call, &result, ret);
    free(call.reply);
    return r;
}

int client_do(struct cordon_client *c, const char *tool, const struct client_arg *args,
              size_t count, const struct cordon_run_options *o, enum client_kind kind,
              struct cordon_answer **ret)
{
    struct following f = {.o = o, .kind = kind};
    *ret = NULL;
    if (c->owner != getpid())
        return client_fail(c, CORDON_CLIENT_GONE,
                           "the client is of the process that made it: a forked one makes its own");
    if (c->unheard)
        return client_fail(c, CORDON_CLIENT_GONE,
                           "the server did not take that a call was given up");
    if (c->gone)
        return CORDON_CLIENT_GONE;
    c->why[0] = 0;
    for (size_t i = 0; i < count; i++)
        if (args[i].text &&
            utf8_valid_prefix(args[i].text, strlen(args[i].text)) != strlen(args[i].text))
            return client_fail(c, CORDON_CLIENT_ARGUMENT, "%s is not UTF-8", args[i].name);
    const int r = follow(c, &f, tool, args, count, ret);
    free(f.told[0]);
    free(f.told[1]);
    return r;
}
