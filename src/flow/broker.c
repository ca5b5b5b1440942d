/* SPDX-License-Identifier: Apache-2.0 */
/* The broker is forked from the supervisor before that gives up root: it is as trusted, and asks the gate and writes the audit by
 * itself. What a guest sent it never parses: the arguments are bytes to it, checked in cordon-tool, which is confined.
 * The order is the gate's: what is cheap, then what may be refused without asking anybody, then people, then the call.
 *
 * Waits: fd_receive in flow_broker; the supervisor, its parent; none (its death ends us: the kernel kills us with it); ended
 *        send in say; the supervisor, which reads in its loop; the same; ended */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "sys/fd.h"
#include "tools/process.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CREATE "CreateTool"
#define LOAD   "LoadModule"

/* One a process, made by flow_broker: a nested run's broker is forked from one, and has nothing of it. */
static struct broker {
    struct flow *f;
    int sock;
    struct flow_context context; /* its own gate and audit */
    uint64_t taken;              /* calls */
    bool recorded;               /* the call that it is at */
    int index;                   /* of Search; -1: none yet */
    struct flow_workers workers;
    struct flow_mades mades;
    struct flow_looks looks;
} * broker;

/* One call on its way. */
struct calling {
    uint64_t id;
    char tool[64];
    const char *args;
    size_t len;
    int files; /* -1: none */
    uint64_t guest, began;
    struct tools_process process;
    const struct tools_row *row;    /* NULL: it is not built in */
    const struct policy_tool *host; /* NULL: it is no command */
    struct buf answer;
    struct buf shown;             /* to whoever is asked, instead of the arguments */
    const struct flow_made *made; /* NULL: guest code did not make it */
    struct flow_made makes;       /* what CreateTool will have made */
    struct buf
        known; /* what is recorded instead of the arguments: of ModifyGoal and CreateTool what is read again; of what is not built in they have their names there */
    struct gate_refusal no;
    enum gate_error_category category; /* of the error, where there is no answer */
};

/* ---- words to the supervisor ---- */

static void say(struct wire_writer *m)
{
    ssize_t n = -1;
    if (wire_end(m) == 0)
        do
            n = send(broker->sock, m->out->data, m->out->len, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
    if (n <
        0) /* nobody is there to carry anything out for; what is not on record is left to the supervisor */
        _exit(broker->recorded ? 0 : 1);
}

static void say_waits(bool waits)
{
    char frame[16];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct wire_writer m;
    wire_begin(&m, &b, WIRE_TOOL_WAITS);
    wire_put_uint(&m, waits);
    say(&m);
}

static void say_refused(const struct gate_refusal *no)
{
    struct wire_writer m;
    struct buf b;
    buf_init(&b, 4096);
    wire_begin(&m, &b, WIRE_TOOL_REFUSED);
    wire_put_text(&m, no->word);
    wire_put_text(&m, no->reason);
    wire_put_text(&m, no->hint);
    say(&m);
    buf_done(&b);
}

static void say_notice(const struct gate_event *e)
{
    struct wire_writer m;
    struct buf b;
    buf_init(&b, 4096);
    wire_begin(&m, &b, WIRE_TOOL_NOTICE);
    wire_put_uint(&m, (uint64_t)e->kind);
    wire_put_text(&m, e->tool ? e->tool : "");
    wire_put_text(&m, e->subject);
    wire_put_text(&m, e->detail);
    wire_put_uint(&m, e->seconds);
    say(&m);
    buf_done(&b);
}

static void say_answer(const struct calling *c, bool ok)
{
    struct wire_writer m;
    struct buf b, error;
    const struct buf *json = ok ? &c->answer : &error;
    buf_init(&b, LIMIT_FRAME);
    buf_init(&error, LIMIT_FRAME);
    if (!ok)
        flow_call_error(c->category, c->answer.data, c->answer.len, &error);
    wire_begin(&m, &b, WIRE_TOOL_ANSWER);
    wire_put_uint(&m, c->id);
    wire_put_uint(&m, ok);
    wire_put_uint(&m, !ok && c->category == GATE_ERROR_EARLY_ABORT);
    wire_put_bytes(&m, json->data ? json->data : "null", json->data ? json->len : 4);
    say(&m);
    buf_done(&b);
    buf_done(&error);
}

static void set_text(struct buf *json, const char *text)
{
    struct jsonw j = {.out = json};
    buf_reset(json);
    jsonw_string(&j, NULL, text);
}

/* ---- the end of a call ---- */

/* What a call did is on record, or the program does not get its answer: false. */
static bool record(struct calling *c, const char *status, const char *reason)
{
    struct err err = ERR_INIT;
    const struct flow_called call = {.tool = c->tool,
                                     .args = c->known.len ? c->known.data : c->args,
                                     .len = c->known.len ? c->known.len : c->len,
                                     .status = status,
                                     .reason = reason,
                                     .named = c->known.len > 0,
                                     .wall_us = (clock_now_ns() - c->began) / 1000};
    char text[300];
    if (!flow_calls_claim(broker->f, broker->taken)) {
        broker->recorded = true; /* by the supervisor, which did not wait for us any more */
        return false;
    }
    broker->recorded = flow_record_call(broker->f, broker->context.audit, &call, &err) == 0;
    if (broker->recorded)
        return true;
    snprintf(text, sizeof text, "the call could not be recorded: %.240s", err.msg);
    set_text(&c->answer, text);
    return false;
}

static void finish(struct calling *c, bool ok, const char *status, const char *reason)
{
    ok = record(c, status, reason) && ok;
    say_answer(c, ok);
}

static void deny(struct calling *c)
{
    set_text(&c->answer, c->no.reason);
    (void)record(c, "denied", c->no.reason);
    say_refused(&c->no);
    c->category = GATE_ERROR_REFUSAL;
    say_answer(c, false);
}

/* Without a sentence of the tool's own, ERR has one. */
static void finish_unmade(struct calling *c, enum tools_end end, const struct err *err)
{
    char reason[320];
    if (err->code)
        set_text(&c->answer, err->msg);
    snprintf(reason, sizeof reason, "%s%.300s", end == TOOLS_REFUSED ? "refused: " : "",
             c->answer.data ? c->answer.data : "");
    if (end == TOOLS_REFUSED)
        c->category = GATE_ERROR_REFUSAL;
    finish(c, false, c->category == GATE_ERROR_EARLY_ABORT ? "early_abort" : "error", reason);
}

/* ---- one call ---- */

static int open_context(struct err *err)
{
    const struct flow_context *from = broker->f->req->context;
    if (broker->context.gate)
        return 0;
    broker->context = *from; /* the policy is shared; gate and audit belong to a process */
    broker->context.gate = NULL;
    broker->context.audit = NULL;
    broker->context.notice = from->notice ? say_notice : NULL;
    broker->context.announce = NULL;
    broker->context.changed = broker->context.is_ahead = false;
    return flow_context_open_gate(&broker->context, from->approvals[0] ? from->approvals : NULL,
                                  from->ask[0] ? from->ask : NULL, err);
}

/* A worker's type bounds its calls, and the role of whoever started it does, too, and the types of workers around it: the
 * first that does not have the tool is the one that is asked about. */
static const char *role_for(const char *tool)
{
    const struct flow_request *req = broker->f->req;
    const struct gate_config *config = &broker->context.gate_config;
    const struct flow_outer *outer = req->outer;
    const size_t around = outer ? outer->nbounds : 0;
    const char *bound = req->role ? req->role : config->role;
    for (size_t i = 0; i < around + (req->worker != NULL); i++) {
        const struct gate_role *role = gate_role_find(config, bound);
        if (!role || !gate_role_may(role, tool))
            break;
        bound = i < around ? outer->bounds[i] : req->worker;
    }
    return bound;
}

/* To the gate a tool that guest code made is CreateTool: who may not make one may call none. */
static const char *gated_as(const struct calling *c)
{
    return c->made ? CREATE : c->tool;
}

/* Whether the gate may take long: then the guest stands still, and its clocks with it. */
static bool may_ask(const struct calling *c)
{
    const struct gate_config *config = &broker->context.gate_config;
    return config->approval.mode != GATE_AUTONOMOUS || config->arena.on ||
           gate_tool_asks(config, gated_as(c));
}

/* 1: PLAN is one. 0: refused. Takes the ticket. */
static int decide(struct calling *c, struct gate_ticket *ticket, struct gate_plan **plan,
                  struct err *err)
{
    const bool asks = may_ask(c);
    if (asks)
        say_waits(true);
    const int r = gate_decide(ticket, NULL, plan, &c->no, err);
    if (asks)
        say_waits(false);
    return r;
}

static bool is_search(const struct calling *c)
{
    return strcmp(c->tool, "Search") == 0;
}

/* What a search of the run's own files notes. It lives in memory for as long as the run: only cordon-tool writes and reads it, and nobody else's run sees it. */
static int index_of_run(void)
{
    if (broker->index < 0)
        broker->index = memfd_create("cordon-index", MFD_CLOEXEC);
    return broker->index;
}

static enum tools_end check(struct calling *c, struct err *err)
{
    const struct policy *p = broker->f->req->context->policy;
    const uint64_t limits[TOOLS_LIMITS] = {[TOOLS_FILE_READ] = p->sessions.file_read,
                                           [TOOLS_GREP_MATCHES] = p->sessions.grep_matches,
                                           [TOOLS_MADE] = c->made != NULL,
                                           [TOOLS_NAMING_WARNS] =
                                               p->verification == POLICY_VERIFY_WARN};
    const struct gate_tool *of = gate_tool_find(&broker->context.gate_config, c->tool);
    const bool writes = of && of->category == GATE_CATEGORY_WRITE;
    tools_process_give_index(is_search(c) ? index_of_run() : -1);
    FD_AUTO program = open(broker->f->req->tool_program, O_PATH | O_CLOEXEC);
    if (program < 0) {
        err_sys(err, "cordon-tool");
        return TOOLS_FAILED;
    }
    if (tools_process_start(&c->process, program, c->files, broker->sock,
                            writes ? TOOLS_WRITES : TOOLS_READS, err) < 0)
        return TOOLS_FAILED;
    const char *schema = c->host ? c->host->schema : c->row ? c->row->schema : NULL;
    struct buf naming;
    buf_init(&naming, NAMING_BYTES);
    if (writes && naming_pack(p->naming, p->nnaming, &naming) < 0) {
        buf_done(&naming);
        err_set(err, ERR_MEMORY, "no memory for the rules of names");
        return TOOLS_FAILED;
    }
    const enum tools_end end =
        tools_process_check(&c->process, c->tool, schema, c->args, c->len, limits, &naming,
                            c->row ? NULL : &c->known, &c->answer, err);
    buf_done(&naming);
    return end;
}

static struct flow_caller caller_of(const struct calling *c, const struct gate_plan *plan)
{
    return (struct flow_caller){.f = broker->f,
                                .context = &broker->context,
                                .plan = plan,
                                .files = c->files,
                                .stop = broker->sock,
                                .guest = c->guest,
                                .waits = say_waits,
                                .workers = &broker->workers,
                                .mades = &broker->mades};
}

/* What the tool itself has to be asked before people are. */
static enum tools_end look_closer(struct calling *c, struct err *err)
{
    const struct flow_caller caller = caller_of(c, NULL);
    char why[320] = "";
    enum tools_end end = TOOLS_OK;
    if (flow_goal_is(c->tool))
        end = !flow_goal_fits(&c->answer)                             ? TOOLS_REFUSED
              : buf_add(&c->known, c->answer.data, c->answer.len) < 0 ? TOOLS_FAILED
                                                                      : TOOLS_OK;
    if (strcmp(c->tool, LOAD) == 0)
        end = flow_module_check(&caller, &c->process, why, err);
    if (strcmp(c->tool, CREATE) == 0)
        end = flow_made_check(&caller, &c->process, &c->makes, why, err);
    if (end == TOOLS_REFUSED && why[0])
        set_text(&c->answer, why);
    else if (end == TOOLS_OK && c->makes.name[0] &&
             flow_made_record(&c->makes, c->args, c->len, &c->known) < 0)
        end = TOOLS_FAILED;
    return end;
}

static enum tools_end search(struct calling *c, struct err *err)
{
    struct tools_base base = {.fd = -1};
    enum tools_end end = flow_search_base(broker->f, c->process.word, broker->sock, &broker->looks,
                                          &base, &c->answer);
    if (end == TOOLS_OK)
        end = tools_process_go(&c->process, &base, &c->answer, err);
    fd_close(base.fd);
    return end;
}

static enum tools_end make_call(struct calling *c, const struct gate_plan *plan, struct err *err)
{
    const struct flow_caller caller = caller_of(c, plan);
    if (c->host)
        return flow_host_tool(c->host, &c->process, broker->sock, &c->answer, err);
    if (c->made)
        return flow_made_call(&caller, c->made, &c->process, &c->answer, err);
    if (flow_goal_is(c->tool))
        return flow_goal(broker->f, &c->process, &c->answer, err);
    if (strcmp(c->tool, TOOLS_LLM) == 0)
        return flow_llm(&broker->context, &c->process, broker->sock, &c->answer, &c->category, err);
    if (flow_nested_is(c->tool))
        return flow_nested(&caller, c->tool, &c->process, &c->answer, err);
    if (is_search(c))
        return search(c, err);
    const enum tools_end end = tools_process_go(&c->process, NULL, &c->answer, err);
    if (end == TOOLS_OK && c->makes.name[0])
        flow_made_add(&broker->mades, &c->makes);
    return end;
}

/* The number of a \uXXXX at S; 0: it is none. */
static uint32_t escaped_unit(const char *s, size_t len)
{
    char digits[5] = "";
    if (len < 6 || s[0] != '\\' || s[1] != 'u')
        return 0;
    memcpy(digits, s + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (uint32_t)strtoul(digits, NULL, 16) : 0;
}

/* What stands for the escape at S, and in *RET how long that is; the length of the escape. Half of a surrogate pair stands for
 * nothing. */
static size_t unescape(const char *s, size_t len, char out[4], size_t *ret)
{
    static const char letters[] = "nrtbf", means[] = "\n\r\t\b\f";
    const uint32_t first = escaped_unit(s, len), second = first ? escaped_unit(s + 6, len - 6) : 0;
    const char *known = len > 1 && s[1] ? strchr(letters, s[1]) : NULL;
    const bool high = first >= 0xd800 && first < 0xdc00,
               pair = high && second >= 0xdc00 && second < 0xe000;
    *ret = 1;
    out[0] = known ? means[known - letters] : s[len > 1];
    if (first) {
        const uint32_t cp = pair ? 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00) : first;
        const int n = cp >= 0xd800 && cp < 0xe000 ? 0 : utf8_encode(cp, out);
        *ret = n > 0 ? (size_t)n : 0;
    }
    return pair ? 12 : first ? 6 : len > 1 ? 2 : 1;
}

/* The text of a JSON string. */
static int plain_text(const struct buf *json, struct buf *out)
{
    int r = json->len >= 2 && json->data[0] == '"' ? 0 : ERR_FORMAT;
    for (size_t at = 1; r == 0 && at < json->len - 1;) {
        const char *s = json->data + at;
        const size_t len = json->len - 1 - at;
        const char *escape = memchr(s, '\\', len);
        char c[4];
        size_t n = escape ? (size_t)(escape - s) : len;
        at += n ? n : unescape(s, len, c, &n);
        r = buf_add(out, s == escape ? c : s, n);
    }
    return r;
}

/* What a command wrote may have a secret in it: the breaker keeps it, and tells it. The answer of a call that failed is a JSON
 * string. Its text is cleaned, whole and as the command wrote it: behind the n of an escaped newline no secret begins, and half
 * of one has not its form. */
static void release(struct calling *c, struct gate_plan *plan, bool failed)
{
    struct buf text;
    buf_init(&text, c->answer.max);
    if (failed && plain_text(&c->answer, &text) < 0)
        buf_reset(&text); /* nothing is better than something unclean */
    if (text.len)
        flow_words_clean(text.data, text.len + 1, broker->f->req->rules);
    gate_release(plan, &(struct gate_outcome){.status = failed ? "error" : "ok",
                                              .type = failed ? "ToolError" : NULL,
                                              .message = text.data ? text.data : ""});
    buf_done(&text);
}

/* The gate has it from here: whatever comes, the plan is released, and the breaker hears of a tool that failed by itself. */
static void carry_out(struct calling *c, struct gate_plan *plan)
{
    struct err err = ERR_INIT;
    gate_plan_start(plan, gated_as(c));
    const enum tools_end end = make_call(c, plan, &err);
    if (err.code)
        set_text(&c->answer, err.msg);
    release(c, plan, end == TOOLS_FAILED);
    if (end == TOOLS_OK)
        finish(c, true, "ok", NULL);
    else
        finish_unmade(c, end, &err);
}

/* Who is asked about a tool that was made sees which it is. There is room for all of it. */
static void show_call(struct calling *c)
{
    (void)!buf_printf(&c->shown, "%s ", c->tool);
    (void)!buf_add(&c->shown, c->args, c->len);
}

/* Whoever is asked about a module is asked about what it is, not what it is called. */
static int ask_about_source(struct calling *c, struct gate_request *ask,
                            struct gate_ticket **ticket, struct err *err)
{
    gate_abandon(*ticket);
    *ticket = NULL;
    ask->code = c->process.source.data;
    ask->code_len = c->process.source.len;
    return gate_admit(broker->context.gate, ask, ticket, &c->no, err);
}

static void admit(struct calling *c)
{
    static const char *const made_path[] = {"/tools/"};
    const struct flow *f = broker->f;
    if (c->made)
        show_call(c);
    struct gate_request ask = {.client = f->ask.client,
                               .run = f->result->id,
                               .role = role_for(gated_as(c)),
                               .tool = gated_as(c),
                               .code = c->shown.len ? c->shown.data : c->args,
                               .code_len = c->shown.len ? c->shown.len : c->len,
                               .writes = made_path,
                               .nwrites = strcmp(c->tool, CREATE) == 0,
                               .stop = &broker->sock, /* nothing comes by it now but its end */
                               .approval_wait_ms = f->req->approval_wait_ms};
    struct gate_ticket *ticket = NULL;
    struct gate_plan *plan = NULL;
    struct err err = ERR_INIT;
    int r = audit_room(broker->context.audit, c->len, &err);
    if (r == 0)
        r = gate_admit(broker->context.gate, &ask, &ticket, &c->no, &err);
    if (r == 1 && (c->row || c->host || c->made)) {
        enum tools_end end = check(c, &err);
        if (end == TOOLS_OK)
            end = look_closer(c, &err);
        if (end != TOOLS_OK) {
            gate_abandon(ticket);
            finish_unmade(c, end, &err);
            return;
        }
        if (strcmp(c->tool, LOAD) == 0)
            r = ask_about_source(c, &ask, &ticket, &err);
        if (r == 1)
            r = decide(c, ticket, &plan, &err);
    }
    if (r == 1 && plan) {
        carry_out(c, plan);
        return;
    }
    if (r < 0)
        snprintf(c->no.reason, sizeof c->no.reason, "%s", err.msg);
    else if ((c->host || c->made) && !c->process.pid)
        (void)check(c, &err); /* for the record alone: it has the names of the arguments */
    deny(c);
}

/* What the run was not given is not there, whatever the role may do. */
static bool was_given(const char *tool)
{
    const char *const *names = broker->f->req->tools;
    while (*names && strcmp(*names, tool) != 0)
        names++;
    return *names;
}

static void serve(struct calling *c)
{
    struct err err = ERR_INIT;
    const struct policy_tool *of = policy_find_tool(broker->f->req->context->policy, c->tool);
    c->row = tools_find(c->tool);
    c->host = !c->row && of && of->command.count ? of : NULL;
    c->no = (struct gate_refusal){.word = "gate.state"};
    c->made = !c->row && !c->host && was_given(CREATE)
                  ? flow_made_find(broker->f, &broker->mades, c->tool)
                  : NULL;
    if (open_context(&err) < 0) {
        snprintf(c->no.reason, sizeof c->no.reason, "%s", err.msg);
        deny(c);
    } else if (!was_given(c->tool) && !c->made) {
        c->no = (struct gate_refusal){.word = "gate.tool",
                                      .hint = "call the functions that the program was given"};
        snprintf(c->no.reason, sizeof c->no.reason, "this run has no tool '%.40s'", c->tool);
        deny(c);
    } else if ((c->made || flow_nested_is(c->tool)) && !flow_nested_fits(broker->f, c->tool)) {
        c->no = (struct gate_refusal){.word = "gate.tool",
                                      .hint = "do it in this program, or in the one that called"};
        snprintf(c->no.reason, sizeof c->no.reason,
                 "%.40s: at most %d programs stand within one that calls them", c->tool,
                 LIMIT_NESTED);
        deny(c);
    } else if (strcmp(c->tool, TOOLS_LLM) == 0 &&
               !flow_llm_ready(&broker->context, c->no.reason, sizeof c->no.reason)) {
        c->no.word = "gate.tool";
        snprintf(c->no.hint, sizeof c->no.hint, "%s",
                 "until then ask the model outside, and give its answer to the program as data");
        deny(c);
    } else {
        admit(c);
    }
    tools_process_end(&c->process);
}

_Noreturn void flow_broker(struct flow *f, int sock)
{
    char *storage = malloc(LIMIT_FRAME);
    broker = calloc(1, sizeof *broker);
    if (!storage || !broker)
        _exit(1);
    *broker = (struct broker){.f = f, .sock = sock, .index = -1};
    broker->mades.outer = f->req->outer ? f->req->outer->made : NULL;
    for (;;) {
        struct wire_reader r;
        struct calling c = {.files = -1,
                            .process = {.sock = -1},
                            .began = clock_now_ns(),
                            .category = GATE_ERROR_HOST};
        struct fd_packet p = {.data = storage, .len = LIMIT_FRAME, .fds = &c.files, .nfds = 1};
        if (fd_receive(sock, &p) != 1 || wire_open(&r, storage, p.len, NULL) < 0 ||
            r.type != WIRE_TOOL_CALL)
            break;
        c.began = clock_now_ns();
        broker->taken++;
        broker->recorded = false;
        c.id = wire_get_uint(&r);
        c.guest = wire_get_uint(&r);
        wire_get_text(&r, f->worker_id, sizeof f->worker_id);
        wire_get_text(&r, c.tool, sizeof c.tool);
        c.args = wire_get_bytes(&r, &c.len);
        buf_init(&c.answer, LIMIT_FRAME);
        buf_init(&c.shown, LIMIT_CALL + 4096);
        buf_init(&c.known, LIMIT_NAMED);
        serve(&c);
        buf_done(&c.answer);
        buf_done(&c.shown);
        buf_done(&c.known);
        fd_close(c.files);
    }
    _exit(0);
}
