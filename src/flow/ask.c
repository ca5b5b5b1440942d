/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that ask and record: admitted before anything costs much, decided after the check, written down
 * before the first guest byte and after the last one. */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/here.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *flow_tool_name(const struct flow *f)
{
    if (f->req->outer)
        return f->req->outer->tool;
    return f->req->kind == FLOW_EXEC ? "exec" : f->req->kind == FLOW_CALL ? "session" : "run";
}

bool flow_only_judges(const struct flow *f)
{
    return f->req->kind == FLOW_CHECK || f->req->kind == FLOW_LINE;
}

void flow_note_refusal(struct flow *f, const struct gate_refusal *no)
{
    struct flow_violation v = {.layer = GATE_LAYER};
    snprintf(v.rule, sizeof v.rule, "%s", no->word);
    snprintf(v.detail, sizeof v.detail, "%s", no->reason);
    snprintf(v.hint, sizeof v.hint, "%s", no->hint);
    flow_result_violation(f->result, &v);
}

static int deny(struct flow *f, const struct gate_refusal *no)
{
    flow_note_refusal(f, no);
    flow_result_say(f->result, FLOW_DENIED, "gate", "CODE", "GateError", no->reason);
    f->result->retry_after_s = (int)((no->retry_after_ms + 999) / 1000);
    return FLOW_STOP;
}

/* An error of the gate or the audit is a refusal: nothing runs past it. */
static int fail_closed(struct flow *f, const char *layer, const struct err *err)
{
    char text[400];
    snprintf(text, sizeof text, "%s: %s", layer, err->msg);
    flow_result_say(f->result, FLOW_REFUSED, NULL, "CODE",
                    strcmp(layer, "audit") == 0 ? "AuditError" : "GateError", text);
    return FLOW_STOP;
}

int flow_prepare(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    const struct jail_spec *s = &req->spec;
    gate_client_uid(&f->ask.client, here_user()); /* also in the record of what is refused here */
    int r = flow_guard_shared(req->context, s, req->out_name, err);
    if (r == 0)
        r = flow_inputs_open(f, err);
    if (r == 0)
        r = flow_shown_open(f, err);
    if (r == 0)
        r = flow_bind(f, err);
    if (r < 0)
        return r;
    if (req->kind == FLOW_EXEC)
        f->args[f->nargs++] = (struct audit_arg){
            .name = "argv", .kind = AUDIT_ARG_LIST, .list = s->argv, .count = s->argc};
    else
        f->args[f->nargs++] =
            (struct audit_arg){.name = "name", .kind = AUDIT_ARG_TEXT, .text = req->name};
    if (req->nargs)
        f->args[f->nargs++] = (struct audit_arg){
            .name = "args", .kind = AUDIT_ARG_LIST, .list = req->args, .count = req->nargs};
    if (req->outer)
        f->args[f->nargs++] =
            (struct audit_arg){.name = "parent", .kind = AUDIT_ARG_TEXT, .text = req->outer->id};
    if (req->outer && req->outer->worker_id)
        snprintf(f->worker_id, sizeof f->worker_id, "%s", req->outer->worker_id);
    if (req->method) {
        f->args[f->nargs++] =
            (struct audit_arg){.name = "method", .kind = AUDIT_ARG_TEXT, .text = req->method};
        f->args[f->nargs++] = (struct audit_arg){
            .name = "method_args", .kind = AUDIT_ARG_TEXT, .text = req->method_args};
    }
    if (req->task)
        f->args[f->nargs++] =
            (struct audit_arg){.name = "task", .kind = AUDIT_ARG_TEXT, .text = req->task};
    f->args[f->nargs++] = (struct audit_arg){
        .name = "writes", .kind = AUDIT_ARG_LIST, .list = f->writes, .count = f->nwrites};
    return FLOW_GO_ON;
}

/* A runner of that server is its user's, by the owner of the socket: who starts a server of his own has another uid. */
static bool goes_around_daemon(const struct flow *f)
{
    const struct policy *p = f->req->context->policy;
    struct stat st;
    if (p->daemon.use != POLICY_DAEMON_REQUIRED || f->req->outer)
        return false;
    return !here_is_served() || lstat(p->daemon.socket, &st) < 0 || !here_owns(st.st_uid);
}

static int refuse_around(struct flow *f)
{
    struct gate_refusal no = {.rule = GATE_RULE_DAEMON, .word = "gate.daemon"};
    snprintf(
        no.reason, sizeof no.reason,
        "daemon.use of the policy is required: a run goes through the server at %.120s, and this "
        "one does not",
        f->req->context->policy->daemon.socket);
    snprintf(no.hint, sizeof no.hint,
             "`cordon run` and `cordon check` go through it where it answers, with no options but "
             "--lang, --timeout, --memory, --output and --json; start it with `systemctl start "
             "cordon-serve.socket`");
    return deny(f, &no);
}

/* What runs in a session is held by the rules that its process was made with, and those cannot be exchanged later. */
static int refuse_unfit(struct flow *f)
{
    struct gate_refusal no = {.rule = GATE_RULE_PROFILE, .word = "gate.profile"};
    snprintf(no.reason, sizeof no.reason, "session '%.40s': %.200s", f->req->session,
             f->req->unfit);
    snprintf(no.hint, sizeof no.hint,
             "make a new session; the files of this one can still be copied");
    return deny(f, &no);
}

int flow_admit(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    struct gate_refusal no = {0};
    const struct gate_client client = f->ask.client;
    if (goes_around_daemon(f))
        return refuse_around(f);
    if (flow_only_judges(f))
        return FLOW_GO_ON;
    if (req->unfit)
        return refuse_unfit(f);
    f->ask = (struct gate_request){.run = f->result->id,
                                   .role = req->role,
                                   .tool = flow_tool_name(f),
                                   .task = req->task,
                                   .code = f->source,
                                   .code_len = f->source_len,
                                   .language = req->kind == FLOW_EXEC ? NULL : f->language->title,
                                   .arguments = f->arguments.data,
                                   .writes = f->writes,
                                   .nwrites = f->nwrites,
                                   .wait_ms = req->wait_ms,
                                   .stop = &req->stop,
                                   .approval_wait_ms = req->approval_wait_ms,
                                   .part_of = req->outer ? req->outer->plan : NULL};
    if (req->kind == FLOW_EXEC && req->source) {
        f->ask.code = req->source;
        f->ask.code_len = req->source_len;
    } else if (req->kind == FLOW_EXEC) { /* the command line is the code */
        f->ask.code = f->arguments.data;
        f->ask.code_len = f->arguments.len;
    }
    f->ask.client = client;
    int r = gate_admit(req->context->gate, &f->ask, &f->ticket, &no, err);
    return r == 1 ? FLOW_GO_ON : r == 0 ? deny(f, &no) : fail_closed(f, "gate", err);
}

#define CHILD_WAITS_NS                                                                             \
    (2 * CLOCK_NS_PER_S) /* its own clock runs: after that a fresh one is taken */

/* The decision took long. The child is thrown away; the one that runs the code judges it again, and both
 * verdicts must agree. */
static int judge_again(struct flow *f, struct err *err)
{
    struct gate_refusal no = {0};
    flow_child_close(f);
    int r = flow_start(f, err);
    if (r == FLOW_GO_ON)
        r = flow_check(f, err);
    if (r != FLOW_GO_ON)
        return r;
    return gate_plan_confirm(f->plan, &f->worker.report, &no) == 1 ? FLOW_GO_ON : deny(f, &no);
}

int flow_decide(struct flow *f, struct err *err)
{
    struct gate_refusal no = {0};
    if (flow_only_judges(f))
        return FLOW_GO_ON;
    struct gate_ticket *ticket = f->ticket;
    bool judged = f->req->kind != FLOW_EXEC;
    uint64_t asked = clock_now_ns();
    f->ticket = NULL;
    int r = gate_decide(ticket, judged ? &f->worker.report : NULL, &f->plan, &no, err);
    /* a session is not thrown away; the clocks of its call begin later */
    if (r == 1 && judged && f->req->kind != FLOW_CALL && clock_now_ns() - asked > CHILD_WAITS_NS)
        return judge_again(f, err);
    return r == 1 ? FLOW_GO_ON : r == 0 ? deny(f, &no) : fail_closed(f, "gate", err);
}

int flow_contents_changed(struct flow *f, const char *source)
{
    struct gate_refusal no = {.word = "gate.approval"};
    snprintf(no.reason, sizeof no.reason,
             "what lies in %.150s is no longer what the approval was given for", source);
    snprintf(no.hint, sizeof no.hint, "ask again, for the contents as they are now");
    return deny(f, &no);
}

static void facts(const struct flow *f, struct audit_facts *ret)
{
    const struct flow_request *req = f->req;
    *ret = (struct audit_facts){.execution_id = f->result->id,
                                .client_id = f->ask.client.id,
                                .tool = flow_tool_name(f),
                                .session = f->result->session[0] ? f->result->session : NULL,
                                .language = req->kind == FLOW_EXEC ? NULL : f->language->name,
                                .profile = req->profile ? req->profile->name : NULL,
                                .role = req->role ? req->role : req->context->policy->run.role,
                                .worker_id = f->worker_id[0] ? f->worker_id : NULL,
                                .code = f->ask.code,
                                .code_len = f->ask.code_len,
                                .args = f->args,
                                .nargs = f->nargs};
}

/* No prompt of a model's. Nor what a program sent to a tool that is not built in, while it is not known what each argument is called: it
 * may be a secret. The built-in tools take none. */
static bool hides_arguments(const struct flow *f, const struct flow_called *call)
{
    if (strcmp(call->tool, TOOLS_LLM) == 0)
        return !f->req->context->policy->proxy.prompts;
    return !call->named && !tools_find(call->tool);
}

/* Every call is a record of its own, also one that was denied. */
int flow_record_call(const struct flow *f, struct audit *audit, const struct flow_called *call,
                     struct err *err)
{
    struct audit_facts now;
    const struct audit_outcome end = {
        .status = call->status, .reason = call->reason, .wall_us = call->wall_us};
    char length[64];
    const bool hides = hides_arguments(f, call);
    snprintf(length, sizeof length, "{\"bytes\":%zu}", call->len);
    const struct audit_arg said = {.name = "arguments",
                                   .kind = AUDIT_ARG_TEXT,
                                   .text = hides       ? length
                                           : call->len ? call->args
                                                       : "",
                                   .len = hides ? strlen(length) : call->len};
    facts(f, &now);
    now.tool = call->tool;
    now.code = NULL;
    now.code_len = 0;
    now.args = &said;
    now.nargs = 1;
    now.outcome = &end;
    return audit ? audit_event(audit, AUDIT_TOOL, &now, err) : 0;
}

/* Beside the program's own time, and that of a person who is asked: judges, and the start and the end of a jail. */
#define AROUND_MS 60000

int flow_record(struct flow *f, struct err *err)
{
    struct audit_facts now;
    if (flow_only_judges(f))
        return FLOW_GO_ON;
    facts(f, &now);
    now.most_ms = f->spec.limits.wall_ms + f->req->context->policy->approval.expiry_ms + AROUND_MS;
    if (audit_begin_run(f->req->context->audit, &now, &f->begun, err) < 0)
        return fail_closed(f, "audit", err);
    f->result->recorded = true;
    return FLOW_GO_ON;
}

#define LINES LIMIT_VIOLATIONS /* that a record quotes; all are counted */

static bool first_of_rule(const struct flow_result *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(r->violations[k].rule, r->violations[i].rule) == 0)
            return false;
    return true;
}

/* The first by each rule, then the others: what is cut is what says least. */
static size_t quote_violations(const struct flow_result *r, char text[LINES][420],
                               const char **lines)
{
    size_t n = 0;
    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < r->violation_count && n < LINES; i++)
            if (first_of_rule(r, i) == !others) {
                snprintf(text[n], 420, "%s: %s", r->violations[i].rule, r->violations[i].detail);
                lines[n] = text[n];
                n++;
            }
    return n;
}

/* What says nothing against a program; a page that it prints does not, either. */
static uint64_t harmless(const struct flow_result *r)
{
    uint64_t n = 0;
    for (size_t i = 0; i < r->violation_count; i++)
        if (r->violations[i].end == FLOW_WAS_HARMLESS ||
            strcmp(r->violations[i].rule, FLOW_RULE_MARKUP) == 0)
            n += r->violations[i].times;
    return n;
}

static void outcome(const struct flow *f, char text[LINES][420], const char **lines,
                    struct audit_outcome *ret)
{
    const struct flow_result *r = f->result;
    size_t n = quote_violations(r, text, lines);
    *ret = (struct audit_outcome){
        .status = flow_status_name(r->status),
        .layer = r->layer,
        .reason = r->reason[0] ? r->reason : NULL,
        .error_type = r->status == FLOW_OK ? NULL : r->type,
        .validation = r->status == FLOW_BLOCKED ? AUDIT_BLOCKED
                      : r->judged               ? AUDIT_PASSED
                                                : AUDIT_NOT_VALIDATED,
        .wall_us = r->wall_us,
        .has_exit_code = r->ran,
        .exit_code = r->exit_code,
        .signal = r->signal,
        .memory_bytes = r->memory,
        .output_bytes = r->bytes[0] + r->bytes[1],
        .violations = lines,
        .nviolations = n,
        .violations_total = r->violations_total,
        .violations_harmless = harmless(r),
        .steps = r->steps,
        .nsteps = r->nsteps,
    };
}

/* Before there was a plan: a text that its judge does not get through in its limits counts against it, as it would behind it. That
 * no jail could be built is the host's. */
static bool failed_early(const struct flow_result *r)
{
    return r->status == FLOW_TIMEOUT || r->status == FLOW_MEMORY || r->status == FLOW_OUTPUT ||
           r->status == FLOW_CRASHED;
}

/* The breaker keeps how it ended, and tells it to whoever asks next, by a refusal or a message of the log. Where the output
 * is told while the program runs, the result is cleaned later than this. */
static void release(struct flow *f, const char *status)
{
    const struct flow_result *r = f->result;
    const bool failed = r->status != FLOW_OK;
    char type[sizeof r->type], message[sizeof r->message];
    snprintf(type, sizeof type, "%s", failed ? r->type : "");
    snprintf(message, sizeof message, "%s", failed ? r->message : "");
    if (failed) {
        flow_words_clean(type, sizeof type, f->req->rules);
        flow_words_clean(message, sizeof message, f->req->rules);
    }
    const struct gate_outcome told = {.status = status,
                                      .type = failed ? type : NULL,
                                      .message = message,
                                      .at_prompt = f->req->typed && f->req->asks};
    if (f->plan)
        gate_release(f->plan, &told);
    else if (failed_early(r))
        gate_fail(f->ticket, &told);
    else
        gate_abandon(f->ticket);
}

/* Always: the end of what began, or the one record of what never did; then the slot is free. */
int flow_finish(struct flow *f, struct err *err)
{
    /* Only those that are quoted are read. The compiler would set all of it to zero: 17 page faults of each run. */
    char text[LINES][420] __attribute__((uninitialized));
    const char *lines[LINES];
    struct audit_outcome end;
    struct audit_facts now;
    struct err why = ERR_INIT;
    struct flow_result *r = f->result;
    if (flow_only_judges(f))
        return FLOW_GO_ON;
    if (f->failed < 0 && r->status == FLOW_OK)
        flow_result_refuse(r, err);
    facts(f, &now);
    outcome(f, text, lines, &end);
    now.outcome = &end;
    int e = f->begun.open ? audit_end_run(f->req->context->audit, &f->begun, &now, &why)
            : gate_refusal_alone(f->req->context->gate, &f->ask.client)
                ? audit_event(f->req->context->audit, AUDIT_REFUSAL, &now, &why)
                : 0; /* counted */
    r->recorded = e == 0;
    release(f, end.status);
    return FLOW_GO_ON;
}
