/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent asks about files is asked of the gate by the tool's own name, so that a role that has no WriteFile writes
 * nothing here either. Then the session is lent, as for put and get. Who looks into files is cordon-tool, which guest code
 * has for the same purpose; here bytes are only moved.
 *
 * Waits: source_read in session_request; whoever writes the request; LIMIT_TOOL_MS; an error */
#include "session_request.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "commands.h"
#include "options.h"
#include "result.h"
#include "session_workspace.h"
#include "source.h"
#include "sys/here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the answer ---- */

static int print_error(const struct session_request *q, const char *status, const char *rule,
                       const char *message, const char *hint)
{
    struct buf out;
    struct jsonw j = {.out = &out};
    buf_init(&out, 64 * KIB);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "status", status);
    jsonw_string(&j, "session", q->session);
    jsonw_string(&j, "rule", rule);
    if (!message && q->answer.len) /* the sentence of cordon-tool */
        jsonw_raw(&j, "reason", q->answer.data, q->answer.len);
    else
        jsonw_string(&j, "reason", message);
    jsonw_string(&j, "hint", hint);
    jsonw_close(&j, '}');
    if (j.bad == 0)
        puts(out.data);
    buf_done(&out);
    return EXIT_FAILED;
}

static int print_answer(const struct session_request *q, const char *action)
{
    struct buf out;
    const struct buf *a = &q->answer;
    buf_init(&out, a->len + KIB);
    int r = a->len > 2 && a->data[0] == '{' && a->data[a->len - 1] == '}' ? 0 : ERR_FORMAT;
    if (r == 0)
        r = buf_printf(&out, "{\"status\": \"ok\", \"session\": \"%s\", \"action\": \"%s\", ",
                       q->session, action);
    if (r == 0)
        r = buf_add(&out, a->data + 1, a->len - 1);
    if (r == 0)
        puts(out.data);
    buf_done(&out);
    return r == 0 ? EXIT_DONE
                  : print_error(q, "error", NULL, "the answer cannot be read", "try again");
}

/* ---- lending ---- */

static void nothing(void *request, int files, uint64_t disk)
{
    (void)request;
    (void)files;
    (void)disk;
}

bool session_request_lend(struct session_request *q,
                          void (*what)(void *request, int files, uint64_t disk))
{
    struct session_call c = {.session = q->session,
                             .name = "<files>",
                             .source = "",
                             .line = true,
                             .quiet = true,
                             .input = -1,
                             .busy_ms = LIMIT_LOCK_MS,
                             .files = what ? what : nothing,
                             .files_ctx = q};
    q->call = &c;
    const int r = session_call(q->h, &c);
    q->call = NULL;
    q->lent = !c.declined && (r == EXIT_DONE || c.uncommitted[0]);
    if (!q->lent)
        return false;
    session_workspace_name(c.answer.reply.note, q->workspace);
    if (c.uncommitted[0] && q->status == 0)
        q->status = err_set(&q->err, ERR_STATE, "%s", c.uncommitted);
    return true;
}

/* ---- paths ---- */

/* PATH below /workspace, "." for the folder itself; NULL: it is not below, or has .. or nothing between two slashes. */
static const char *below(const char *path)
{
    static const char root[] = "/workspace";
    const size_t n = sizeof root - 1;
    if (strncmp(path, root, n) == 0 && (path[n] == 0 || path[n] == '/'))
        path += n + (path[n] == '/');
    if (*path == '/')
        return NULL;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (!*path || strcmp(path, ".") == 0)
        return ".";
    for (const char *at = path; *at;) {
        const size_t len = strcspn(at, "/");
        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
            return NULL;
        at += len + (at[len] == '/');
    }
    return path;
}

bool session_request_by_name(const struct session_request *q)
{
    return strcmp(q->words[2], "names") == 0;
}

/* ---- the gate ---- */

/* As flow_finish does it for a run: one record, bounded by the same count. */
static void record_refusal(const struct session_request *q, const struct gate_request *ask,
                           const struct gate_refusal *no)
{
    const struct flow_context *flow = &q->h->flow;
    struct err err = ERR_INIT;
    char line[420];
    const char *violations[] = {line};
    const struct audit_arg path = {
        .name = "path", .kind = AUDIT_ARG_TEXT, .text = q->path ? q->path : q->words[0]};
    snprintf(line, sizeof line, "%s: %s", no->word, no->reason);
    const struct audit_outcome end = {.status = "denied",
                                      .layer = GATE_LAYER,
                                      .reason = no->reason,
                                      .violations = violations,
                                      .nviolations = 1};
    const struct audit_facts f = {.client_id = ask->client.id,
                                  .tool = ask->tool,
                                  .session = q->session,
                                  .role = ask->role ? ask->role : flow->policy->run.role,
                                  .args = &path,
                                  .nargs = path.text != NULL,
                                  .outcome = &end};
    if (gate_refusal_alone(flow->gate, &ask->client) &&
        audit_event(flow->audit, AUDIT_REFUSAL, &f, &err) < 0)
        result_complain(q->h->who, err.msg);
}

/* The words, as a person is shown them: NULs become line ends. */
static bool ask_gate(struct session_request *q, const char *action, const char *tool,
                     const struct text *asked, int *ret_status)
{
    char arguments[256]; /* a yes is for this action and this session */
    snprintf(arguments, sizeof arguments, "{\"action\": \"%s\", \"session\": \"%.64s\"}", action,
             q->session);
    struct gate_request ask = {.run = q->session,
                               .role = q->h->jail.role,
                               .tool = tool,
                               .arguments = arguments,
                               .code = asked->data ? asked->data : "",
                               .code_len = asked->len};
    struct gate_ticket *ticket = NULL;
    struct gate_plan *plan = NULL;
    struct gate_refusal no = {.word = "gate.state"};
    struct err err = ERR_INIT;
    struct flow_request waits = {.context = &q->h->flow};
    result_ask(&waits, &q->h->jail);
    ask.wait_ms = waits.wait_ms;
    ask.approval_wait_ms = waits.approval_wait_ms;
    gate_client_uid(&ask.client, here_user());
    int r = session_note_room(q->h, q->path ? q->path : q->words[0], &err);
    if (r == 0)
        r = gate_admit(q->h->flow.gate, &ask, &ticket, &no, &err);
    if (r == 1)
        r = gate_decide(ticket, NULL, &plan, &no, &err);
    if (r == 1) {
        gate_plan_start(plan, tool);
        gate_release(plan, &(struct gate_outcome){.status = "ok"});
        return true;
    }
    if (r == 0)
        record_refusal(q, &ask, &no);
    *ret_status =
        print_error(q, r < 0 ? "refused" : "denied", no.word, r < 0 ? err.msg : no.reason, no.hint);
    return false;
}

/* ---- actions ---- */

static const struct action {
    const char *name, *tool, *event;
    size_t words;
    int path; /* which of them is a path in /workspace; -1: none */
    bool rest;
    void (*lent)(void *request, int files, uint64_t disk); /* NULL: ALONE */
    void (*alone)(struct session_request *q);
} actions[] = {
    {"read", "ReadFile", "got", 4, 0, false, session_request_read, NULL},
    {"write", "WriteFile", "put", 1, 0, true, session_request_write, NULL},
    {"list", "ListFiles", "listed", 1, 0, false, session_request_list, NULL},
    {"search", "Grep", "searched", 4, 0, false, session_request_search, NULL},
    {"snapshot", "WriteFile", "snapshot", 2, -1, false, NULL, session_snapshot_create},
    {"log", "ListFiles", "log", 0, -1, false, NULL, session_snapshot_list},
    {"diff", "ReadFile", "diff", 2, -1, false, NULL, session_snapshot_diff},
    {"restore", "WriteFile", "restore", 1, -1, false, NULL, session_snapshot_restore},
};

/* Cuts TEXT into the words of A. */
static int take_words(struct session_request *q, const struct action *a, const struct text *text,
                      struct err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < a->words; i++) {
        const char *end = at < text->len ? memchr(text->data + at, 0, text->len - at) : NULL;
        if (!end)
            return err_set(err, ERR_USAGE, "%s takes %zu words, each with a NUL behind it", a->name,
                           a->words);
        q->words[i] = text->data + at;
        at = (size_t)(end - text->data) + 1;
    }
    if (!a->rest && at != text->len)
        return err_set(err, ERR_USAGE, "%s: there is more behind its words", a->name);
    q->rest = text->data + at;
    q->rest_len = text->len - at;
    if (a->path < 0)
        return 0;
    const char *given = q->words[a->path];
    q->path = below(given);
    if (!q->path || (a->rest && strcmp(q->path, ".") == 0))
        return err_set(err, ERR_USAGE,
                       "path: '%.160s' is no path below /workspace; name it from there, without ..",
                       given);
    return 0;
}

/* What was tried is on record as what was done is: a link that leads out is where somebody looked. */
static int fail(const struct session_request *q, const struct action *a, const char *hint)
{
    struct err err = ERR_INIT;
    char why[400];
    const bool said = !q->err.code && q->answer.len > 2; /* by cordon-tool, as JSON */
    snprintf(why, sizeof why, "%.*s", said ? (int)(q->answer.len - 2) : (int)sizeof q->err.msg,
             said ? q->answer.data + 1 : q->err.msg);
    if (session_note_failed(q->h, a->event, q->session, q->path ? q->path : q->words[0],
                            q->h->jail.role, why, &err) < 0)
        result_complain(q->h->who, err.msg);
    return print_error(q, "error", NULL, q->err.code ? q->err.msg : NULL, hint);
}

static int carry_out(struct session_request *q, const struct action *a, const struct text *text)
{
    int status = EXIT_FAILED;
    const char *tool =
        strcmp(a->name, "search") == 0 && session_request_by_name(q) ? "Find" : a->tool;
    if (!ask_gate(q, a->name, tool, text, &status))
        return status;
    if (a->alone)
        a->alone(q);
    else
        (void)session_request_lend(q, a->lent);
    if (!q->lent)
        return EXIT_FAILED;
    if (q->status < 0)
        return fail(q, a,
                    a->lent == session_request_read ? "list_files tells what is there"
                    : a->lent == session_request_list
                        ? "list_files without a path tells what is in /workspace"
                        : NULL);
    if (session_note(q->h, a->event, q->session, q->path ? q->path : q->words[0], q->h->jail.role,
                     &q->err) < 0)
        return print_error(q, "error", NULL, q->err.msg, NULL);
    return print_answer(q, a->name);
}

int session_request(struct session_context *h, const char *session, const char *action)
{
    enum { COUNT = sizeof actions / sizeof *actions };
    struct session_request q = {.h = h, .session = session, .err = ERR_INIT};
    const char *names[COUNT];
    struct text text = {0};
    struct err err = ERR_INIT;
    size_t i = 0;
    for (size_t k = 0; k < COUNT; k++)
        names[k] = actions[k].name;
    while (i < COUNT && strcmp(names[i], action) != 0)
        i++;
    int r = i < COUNT ? source_read("-", LIMIT_SERVE_FILE + 16 * KIB, LIMIT_TOOL_MS, &text, &err)
                      : options_no_verb(action, names, COUNT, &err);
    h->json = true;         /* whatever is refused is an object, too */
    result_as_events(true); /* and that a person is waited for is told before */
    buf_init(&q.answer, 2 * LIMIT_SERVE_FILE + 64 * KIB);
    if (i == COUNT)
        r = result_usage(h->who, &err);
    else if (r < 0)
        r = print_error(&q, "error", NULL, r == ERR_LIMIT ? "it is too long" : err.msg, NULL);
    else if (take_words(&q, &actions[i], &text, &q.err) < 0)
        r = fail(&q, &actions[i], NULL);
    else
        r = carry_out(&q, &actions[i], &text);
    buf_done(&q.answer);
    free(text.data);
    return r;
}
