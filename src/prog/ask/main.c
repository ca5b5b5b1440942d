/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-ask: one question to a model of the gateway, for a run. The broker starts it for llm(), the gate for a judge of the arena that is a
 * model; the guest has no part in it but the text. It opens what it needs (the token, the gateway's address, a connection), gives
 * up everything else, and only then reads the question and what a model says to it. It has no key: those are in the gateway.
 *
 * Waits: read in read_rules; a regular file; none (the kernel's own); ended
 *        read in take_all; standard input, a sealed file; at once; ended
 *        read in ask; the gateway; the time of the call, which whoever started us keeps; killed
 *        write in ask; the same; the same; the same
 *        write in say; a pipe that our parent reads; the same; the same */
#include "base/limits.h"
#include "jail/confine.h"
#include "judge.h"
#include "proxy/ask/ask.h"
#include "sys/fd.h"
#include "sys/rlimit.h"
#include "sys/state.h"
#include "token.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cordon-ask --from-cordon llm STATE SYSTEM TOKENS [MODEL...], and judge STATE RULES MODEL */
enum { WHAT = 2, STATE, TEXT, LAST, MODELS };
#define VERDICT_TOKENS 4096 /* a model that thinks first says little after that */

struct asking {
    bool judges;
    struct gateway gateway;
    int sock;
    char token[LIMIT_HTTP_TOKEN + 3], host[80];
    struct buf rules; /* the system message, or the rules of a judge, as the file has them */
    const char *const *models;
    size_t nmodels;
    struct ask_question question;
    char model[LIMIT_ASK_MODEL + 1];
};

static void say(int fd, const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return; /* nobody is there to be told */
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* A judge's parent reads its standard output alone. */
static int complain(const struct asking *a, int end, const char *why)
{
    char line[400];
    const int n = snprintf(line, sizeof line, "%s\n", why);
    say(a->judges ? STDOUT_FILENO : STDERR_FILENO, line, n > 0 ? (size_t)n : 0);
    return end;
}

/* ---- before anything of somebody else's is read ---- */

static int read_rules(struct asking *a, const char *name, struct err *err)
{
    char *room;
    const char *own = a->judges ? judge_rules(name) : NULL;
    buf_init(&a->rules, LIMIT_ASK_SYSTEM + 1);
    if (!*name)
        return 0;
    if (own)
        return buf_str(&a->rules, own) < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
    FD_AUTO fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || buf_reserve(&a->rules, LIMIT_ASK_SYSTEM, &room) < 0)
        return err_sys(err, "%.160s", name);
    const ssize_t n = read(fd, room, LIMIT_ASK_SYSTEM);
    if (n < 0)
        return err_sys(err, "%.160s", name);
    if (n == 0 || n == (ssize_t)LIMIT_ASK_SYSTEM || memchr(room, 0, (size_t)n))
        return err_set(err, ERR_FORMAT, "%.160s must hold a text of less than %llu bytes", name,
                       (unsigned long long)LIMIT_ASK_SYSTEM);
    buf_added(&a->rules, (size_t)n);
    return 0;
}

static int read_token(struct asking *a, const char *folder, struct err *err)
{
    char file[STATE_PATH_MAX + 64];
    snprintf(file, sizeof file, "%s/%s", folder,
             a->judges ? GATEWAY_ARENA_TOKEN : GATEWAY_LLM_TOKEN);
    return token_read("the token of runs", file, a->token, err);
}

static int prepare(struct asking *a, char **argv, struct err *err)
{
    FD_AUTO state = -1;
    struct err gone = ERR_INIT;
    int r = state_open(argv[STATE], false, &state, &gone);
    if (r < 0)
        return err_set(err, ERR_STATE, "no gateway to models answers: " GATEWAY_FIX);
    r = gateway_find(state, &a->gateway, err);
    if (r == 0)
        r = read_token(a, argv[STATE], err);
    if (r == 0)
        r = read_rules(a, argv[TEXT], err);
    if (r == 0)
        r = gateway_connect(&a->gateway, &a->sock, err);
    if (r < 0)
        return r;
    snprintf(a->host, sizeof a->host, strchr(a->gateway.address, ':') ? "[%s]:%u" : "%s:%u",
             a->gateway.address, a->gateway.port);
    signal(SIGPIPE, SIG_IGN);
    json_decref(json_object()); /* jansson reads its random number: later there is no file */
    return sys_rlimit_lower(RLIMIT_AS, LIMIT_TOOL_MEMORY, LIMIT_TOOL_MEMORY) < 0
               ? err_sys(err, "limits")
               : jail_confine(-1, -1, "reader", err);
}

/* ---- the question ---- */

static int take_all(struct buf *out, struct err *err)
{
    char chunk[65536];
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read the question");
        if (n == 0)
            return 0;
        if (buf_add(out, chunk, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "the question is longer than %llu bytes",
                           (unsigned long long)out->max);
    }
}

static bool may_ask(const struct asking *a, const char *model)
{
    bool may = a->nmodels == 0;
    for (size_t i = 0; i < a->nmodels; i++)
        may = may || strcmp(a->models[i], model) == 0;
    return may;
}

/* Empty: the first of those that may be asked. */
static int choose_model(struct asking *a, const char *wanted, struct err *err)
{
    const char *name = !*wanted && a->nmodels ? a->models[0] : wanted;
    if (*wanted && !may_ask(a, wanted))
        return err_set(err, ERR_USAGE, "model '%.60s' is not one of llm.models of the policy",
                       wanted);
    if (!gateway_model(&a->gateway, name, a->model, sizeof a->model, &a->question.anthropic))
        return err_set(err, ERR_USAGE, "the gateway has no model '%.60s'", name);
    a->question.model = a->model;
    return 0;
}

/* {"model": ..., "prompt": ..., "tokens": ...}, as cordon-tool checked it. */
static int read_call(struct asking *a, const struct buf *in, const char *most, struct err *err)
{
    struct ask_question *q = &a->question;
    json_t *o = json_loadb(in->len ? in->data : "", in->len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *prompt = json_object_get(o, "prompt"), *tokens = json_object_get(o, "tokens");
    const char *model = json_string_value(json_object_get(o, "model"));
    const uint64_t least = (uint64_t)json_integer_value(tokens);
    q->tokens = strtoull(most, NULL, 10);
    if (json_is_integer(tokens) && least && least < q->tokens)
        q->tokens = least;
    q->system = a->rules;
    buf_init(&q->prompt, LIMIT_FRAME);
    int r = json_is_string(prompt) ? 0 : err_set(err, ERR_FORMAT, "the call has no prompt");
    if (r == 0 && json_string_length(prompt) &&
        buf_add(&q->prompt, json_string_value(prompt), json_string_length(prompt)) < 0)
        r = err_set(err, ERR_MEMORY, "no memory");
    if (r == 0)
        r = choose_model(a, model ? model : "", err);
    json_decref(o);
    return r;
}

static const char *fact(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static int read_code(struct asking *a, const struct buf *in, const char *model, struct err *err)
{
    struct ask_question *q = &a->question;
    const struct judge_facts f = {.hash = fact("CORDON_CODE_SHA256"),
                                  .tool = fact("CORDON_TOOL"),
                                  .risk = fact("CORDON_RISK"),
                                  .arguments = fact("CORDON_ARGUMENTS")};
    q->tokens = VERDICT_TOKENS;
    buf_init(&q->system, 4 * LIMIT_ASK_SYSTEM);
    buf_init(&q->prompt, LIMIT_PROXY_BODY);
    if (strlen(f.hash) != 64)
        return err_set(err, ERR_USAGE, "the gate gave no hash of the code");
    if (judge_system(a->rules.data, &f, &q->system) < 0 ||
        judge_prompt(&f, in->len ? in->data : "", in->len, &q->prompt) < 0)
        return err_set(err, ERR_LIMIT, "the code is too long to be shown to a model");
    return choose_model(a, model, err);
}

/* ---- the answer ---- */

/* The gateway may refuse a request before it has read it: its reply is read however far the request got. */
static int ask(struct asking *a, const struct buf *request, struct buf *reply, struct err *err)
{
    char chunk[65536];
    for (size_t at = 0; at < request->len;) {
        const ssize_t n = write(a->sock, request->data + at, request->len - at);
        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    for (;;) {
        const ssize_t n = read(a->sock, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0; /* a reply that broke off has not the length that it says */
        if (buf_add(reply, chunk, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "the gateway's reply is longer than %llu bytes",
                           (unsigned long long)LIMIT_ASK_REPLY);
    }
}

/* A verdict is the model's text and nothing else; models leave out the end of the last line. */
static int say_verdict(const struct asking *a, const struct ask_answer *answer)
{
    const struct buf *t = &answer->text;
    if (answer->cut)
        return complain(a, GATEWAY_FAILED, "the model's answer was cut");
    if (t->len)
        say(STDOUT_FILENO, t->data, t->len);
    if (t->len && t->data[t->len - 1] != '\n')
        say(STDOUT_FILENO, "\n", 1);
    return GATEWAY_ANSWERED;
}

static int say_text(const struct asking *a, const struct ask_answer *answer)
{
    json_t *text = json_stringn(answer->text.len ? answer->text.data : "", answer->text.len);
    json_t *o =
        text ? json_pack("{s:o, s:s, s:b}", "text", text, "model", a->model, "cut", answer->cut)
             : NULL;
    char *line = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!line)
        return complain(a, GATEWAY_FAILED, "no memory for the answer");
    say(STDOUT_FILENO, line, strlen(line));
    free(line);
    return GATEWAY_ANSWERED;
}

static int say_answer(const struct asking *a, const struct buf *reply)
{
    struct ask_answer answer;
    ask_reply(reply->len ? reply->data : "", reply->len, a->question.anthropic, &answer);
    const int end = answer.end != GATEWAY_ANSWERED ? complain(a, (int)answer.end, answer.why)
                    : a->judges                    ? say_verdict(a, &answer)
                                                   : say_text(a, &answer);
    ask_answer_done(&answer);
    return end;
}

/* Confined by now. */
static int act(struct asking *a, char **argv)
{
    struct err err = ERR_INIT;
    struct buf in, request, reply;
    buf_init(&in, a->judges ? LIMIT_PROXY_BODY : LIMIT_FRAME);
    buf_init(&request, 2 * LIMIT_PROXY_BODY);
    buf_init(&reply, LIMIT_ASK_REPLY);
    int r = take_all(&in, &err);
    if (r == 0)
        r = a->judges ? read_code(a, &in, argv[LAST], &err) : read_call(a, &in, argv[LAST], &err);
    if (r == 0)
        r = ask_request(&a->question, a->host, a->token, &request, &err);
    if (r == 0)
        r = ask(a, &request, &reply, &err);
    const int end = r == 0
                        ? say_answer(a, &reply)
                        : complain(a, r == ERR_USAGE ? GATEWAY_REFUSED : GATEWAY_FAILED, err.msg);
    if (request.data) /* the token is in it */
        explicit_bzero(request.data, request.len);
    buf_done(&in);
    buf_done(&request);
    buf_done(&reply);
    return end;
}

int main(int argc, char **argv)
{
    static struct asking a = {.sock = -1};
    struct err err = ERR_INIT;
    a.judges = argc == MODELS && strcmp(argv[WHAT], "judge") == 0;
    if (argc < MODELS || strcmp(argv[1], "--from-cordon") != 0 ||
        (!a.judges && strcmp(argv[WHAT], "llm") != 0)) {
        fputs("cordon-ask: started by cordon only; see docs/tools.md, llm\n", stderr);
        return GATEWAY_USAGE;
    }
    a.models = (const char *const *)argv + MODELS;
    a.nmodels = (size_t)(argc - MODELS);
    if (prepare(&a, argv, &err) < 0)
        return complain(&a, GATEWAY_FAILED, err.msg);
    return act(&a, argv);
}
