/* The steps around the process that runs the code: it is built and locked, asked for its verdict, told to
 * go, and carried to its end. One loop serves all three: the jail's own step, plus the caller's word to
 * stop and, while it starts and judges, a clock of our own. */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define JUDGE_MS 10000 /* a parser that takes longer is a refusal */

static void take_bytes(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct flow *f = ctx;
    if (f->req->live.bytes)
        f->req->live.bytes(f->req->live.ctx, stream, data, len);
    else
        output_clean_add(&f->clean[stream], data, len);
}

static bool take_channel(void *ctx)
{
    struct flow *f = ctx;
    return flow_worker_read(&f->worker);
}

/* Steps until the worker has left STATE or the run is over; true while the run is alive. */
static bool carry(struct flow *f, enum flow_worker_state state, int timeout_ms)
{
    struct pollfd p[2] = {{.fd = jail_run_fd(f->run), .events = POLLIN},
                          {.fd = f->req->stop, .events = POLLIN}};
    uint64_t until = clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * CLOCK_NS_PER_MS;
    while (!jail_run_step(f->run, 0)) {
        if (f->channel[0] >= 0 && f->worker.state != state)
            return true;
        uint64_t now = clock_now_ns();
        int wait = timeout_ms < 0 ? -1
                   : now >= until ? 0
                                  : (int)((until - now) / CLOCK_NS_PER_MS) + 1;
        int n = poll(p, 2, wait);
        if ((n < 0 && errno != EINTR) || (n == 0 && wait == 0) || p[1].revents ||
            (f->req->live_gone && *f->req->live_gone))
            jail_run_stop(f->run);
    }
    return false;
}

/* The worker instead of a program: its own table of system calls, itself read-only, its channel. */
static int plan_worker(struct flow *f, struct err *err)
{
    size_t n = 0;
    f->spec = f->req->spec;
    if (f->spec.nbinds >= LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "more than %d of --ro and --rw", LIMIT_BINDS - 1);
    memcpy(f->binds, f->spec.binds, f->spec.nbinds * sizeof *f->binds);
    f->binds[f->spec.nbinds] =
        (struct jail_bind){.source = f->req->python, .dest = "/cordon-python", .moved = true};
    f->spec.binds = f->binds;
    f->spec.nbinds++;
    f->spec.filter = "python";
    f->spec.program = "/cordon-python";
    if (!f->req->profile->threads)
        f->spec.limits.threads = 0;
    f->worker_argv[n++] = "cordon-python";
    f->worker_argv[n++] = "--child";
    if (!f->req->profile->guards)
        f->worker_argv[n++] = "--packages";
    if (policy_profile_find(f->req->profile->name) == f->req->profile) {
        f->worker_argv[n++] = "--profile"; /* it has the table itself: nothing to send */
        f->worker_argv[n++] = f->req->profile->name;
        f->worker.has_rules = true;
    }
    f->spec.argv = f->worker_argv;
    f->spec.argc = n;
    return 0;
}

static int start(struct flow *f, struct err *err)
{
    struct jail_start start = {.nest = f->req->nest,
                               .memory_by = f->req->memory_by,
                               .input = f->req->input,
                               .channel = f->channel[1],
                               .channel_ours = f->channel[0],
                               .sink = {f, take_bytes, take_channel},
                               .step_down = true};
    int r = jail_run_new(&f->spec, &start, &f->run, err);
    fd_close(f->channel[1]);
    f->channel[1] = -1;
    f->worker.run = f->run;
    return r;
}

/* It ended before it could be told to go. */
static int died_early(struct flow *f, const char *what)
{
    struct flow_result *r = f->result;
    const struct jail_outcome *o = jail_run_outcome(f->run);
    char text[300];
    if (o->end == JAIL_END_STOPPED && f->req->stop >= 0 && f->worker.state != FLOW_WORKER_JUDGING) {
        flow_result_outcome(r, o, &f->spec.limits);
        r->ran = false;
        return FLOW_STOP;
    }
    snprintf(text, sizeof text, "the judge %s; nothing was run",
             o->end == JAIL_END_SIGNAL || o->end == JAIL_END_EXIT ? what : "exceeded its limits");
    struct flow_violation v = {.layer = "input", .rule = "judge.died"};
    snprintf(v.detail, sizeof v.detail, "%s", text);
    snprintf(v.hint, sizeof v.hint, "write a smaller or simpler program");
    flow_result_violation(r, &v);
    flow_result_say(r, FLOW_BLOCKED, "input", "CODE", "ValidationError", text);
    return FLOW_STOP;
}

int flow_child_open(struct flow *f, struct err *err)
{
    if (f->req->kind == FLOW_EXEC)
        return FLOW_GO_ON; /* its first instruction is the program's: it waits for the last gate */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->channel) < 0)
        return err_sys(err, "socketpair");
    flow_worker_init(&f->worker, f->channel[0], f->result);
    int r = plan_worker(f, err);
    if (r == 0)
        r = start(f, err);
    if (r < 0)
        return r;
    if (carry(f, FLOW_WORKER_STARTING, JUDGE_MS) && f->worker.state == FLOW_WORKER_READY)
        return FLOW_GO_ON;
    err_set(err, ERR_MISSING, "cordon-python did not start (exit status %d); try `cordon doctor`",
            jail_run_outcome(f->run)->exit_code);
    err_layer(err, "process");
    return ERR_MISSING;
}

static void report_findings(struct flow *f)
{
    struct flow_result *r = f->result;
    const struct check_report *report = &f->worker.report;
    bool rules = false;
    for (size_t i = 0; i < report->count; i++) {
        const struct check_finding *from = &report->findings[i];
        struct flow_violation v = {.line = from->line, .column = from->column};
        snprintf(v.layer, sizeof v.layer, "%s", from->layer);
        snprintf(v.rule, sizeof v.rule, "%s", from->rule);
        snprintf(v.detail, sizeof v.detail, "%s", from->message);
        snprintf(v.hint, sizeof v.hint, "%s", from->hint);
        flow_result_violation(r, &v);
        rules = rules || strchr(from->rule, '.');
    }
    r->violations_total += report->dropped;
    struct buf text;
    buf_init(&text, 64 * KIB);
    if (check_report_message(report, &text) < 0)
        buf_reset(&text);
    flow_result_say(r, FLOW_BLOCKED, "input", "CODE", rules ? "SecurityError" : "ValidationError",
                    text.data ? text.data : "refused by the check");
    if (report->count)
        r->line = report->findings[0].line;
    buf_done(&text);
}

/* More than a worker is ever given: the judge's own verdict, given here. */
static int too_long(struct flow *f)
{
    char text[64];
    struct check_finding finding = {.rule = CHECK_RULE_SIZE,
                                    .layer = "input",
                                    .operand = "",
                                    .message = text,
                                    .hint = "split the program into smaller ones"};
    snprintf(text, sizeof text, "Code exceeds size limit (%lluKB)",
             (unsigned long long)(f->req->profile->source_max / 1000));
    if (check_report_add(&f->worker.report, &finding) < 0)
        return ERR_MEMORY;
    check_report_end(&f->worker.report);
    f->result->judged = true;
    if (f->req->report)
        f->req->report(f->req->report_ctx, &f->worker.report);
    report_findings(f);
    return FLOW_STOP;
}

int flow_check(struct flow *f, struct err *err)
{
    if (f->req->kind == FLOW_EXEC)
        return FLOW_GO_ON;
    if (f->req->source_len > LIMIT_SOURCE)
        return too_long(f);
    f->job = (struct flow_job){
        .kind = f->req->kind == FLOW_CHECK ? FLOW_JOB_CHECK : FLOW_JOB_RUN,
        .profile = f->req->profile,
        .name = f->req->name,
        .source = f->req->source,
        .len = f->req->source_len,
        .tools = f->req->tools,
        .calls_max = f->req->house->policy->sessions.tool_calls,
    };
    int r = flow_worker_give(&f->worker, &f->job, err);
    if (r < 0)
        return r;
    if (!carry(f, FLOW_WORKER_JUDGING, JUDGE_MS) || f->worker.state != FLOW_WORKER_JUDGED) {
        jail_run_stop(f->run);
        return died_early(f, "died");
    }
    f->result->judged = true;
    if (f->req->report)
        f->req->report(f->req->report_ctx, &f->worker.report);
    if (!f->worker.safe) {
        report_findings(f);
        return FLOW_STOP;
    }
    return f->req->kind == FLOW_CHECK ? FLOW_STOP : FLOW_GO_ON;
}

int flow_execute(struct flow *f, struct err *err)
{
    bool exec = f->req->kind == FLOW_EXEC;
    gate_plan_start(f->plan, exec ? "exec" : "run"); /* nothing starts without one */
    int r = exec ? start(f, err) : flow_worker_go(&f->worker, err);
    if (r < 0)
        return r;
    while (carry(f, FLOW_WORKER_RUNNING, -1) && f->run)
        f->channel[0] = -1; /* it is done or gone: only its end is awaited */
    flow_result_outcome(f->result, jail_run_outcome(f->run), &f->spec.limits);
    if (f->req->kind != FLOW_EXEC)
        flow_worker_explain(&f->worker);
    return FLOW_GO_ON;
}

void flow_child_close(struct flow *f)
{
    jail_run_free(f->run);
    f->run = NULL;
    if (f->req->kind != FLOW_EXEC) {
        fd_close(f->worker.fd);
        fd_close(f->channel[1]);
        flow_worker_done(&f->worker);
    }
}
