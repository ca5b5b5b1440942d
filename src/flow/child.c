/* SPDX-License-Identifier: Apache-2.0 */
/* The steps around the process that runs the code: it is built and locked, asked for its verdict, told to
 * go, and carried to its end. One loop serves all three: the jail's own step, plus the caller's word to
 * stop and, while it starts and judges, a clock of our own. */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JUDGE_MS     10000 /* a parser that takes longer is a refusal */
#define LAST_WORD_MS 1000  /* from the end of a child's channel to the word of its end */
#define OVERDUE_STEPS                                                                              \
    64 /* that what was there in time may take: who talks without end is late all the same */

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

static enum jail_held pass_on(void *ctx, enum jail_stream stream)
{
    struct flow *f = ctx;
    return f->req->live.pass_on(f->req->live.ctx, stream);
}

static struct jail_sink sink_of(struct flow *f)
{
    const struct jail_sink *live = &f->req->live;
    return (struct jail_sink){.ctx = f,
                              .bytes = take_bytes,
                              .channel = take_channel,
                              .pass_on = live->pass_on ? pass_on : NULL,
                              .onward = {live->onward[0], live->onward[1]}};
}

/* `cordon stop`, and whoever started us: both end it from outside. A session's call heeds its client when it begins
 * (heed_keys): until then its worker may be about to drop what was meant for the call before. */
static int heed(struct flow *f, struct err *err)
{
    const struct gate *gate = f->req->context->gate;
    const int stop = flow_in_session(f) ? -1 : f->req->stop;
    int r = stop >= 0 ? jail_run_heed(f->run, stop, err) : 0;
    return r == 0 && gate ? jail_run_heed(f->run, gate_stop_fd(gate), err) : r;
}

static int heed_keys(struct flow *f, struct err *err)
{
    if (f->req->kind != FLOW_CALL || f->req->stop < 0)
        return 0;
    return jail_run_heed_keys(f->run, f->req->stop, err);
}

/* Tells whoever follows the run what was refused since the last time. */
static void tell_violations(struct flow *f)
{
    const struct flow_watch *watch = &f->req->watch;
    const struct jail_outcome *o = jail_run_outcome(f->run);
    while (watch->violation && f->executing && f->told < o->violation_count) {
        struct flow_result one;
        flow_result_init(&one);
        flow_result_take(&one, &o->violations[f->told++]);
        flow_result_ends(&one, f->req->profile, f->spec.limits.processes > 0);
        one.ran = true;
        flow_result_clean(&one, f->req->rules, f->req->escape, LIMIT_VALUE);
        if (one.violation_count)
            watch->violation(watch->ctx, one.violations);
        flow_result_done(&one);
    }
}

/* Whether something came that nobody has looked at. */
static bool unseen(const struct flow *f)
{
    struct pollfd p = {.fd = jail_run_fd(f->run), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* Steps until the worker has left STATE or the run is over; true while the run is alive. Where we were stopped ourselves, or
 * got no processor, the clock says nothing about the worker: it is late if it had not spoken by then. */
static bool carry(struct flow *f, enum flow_worker_state state, int timeout_ms)
{
    uint64_t until = clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * CLOCK_NS_PER_MS;
    int overdue = 0;
    bool over = false;
    while (!over) {
        if (f->channel[0] >= 0 && f->worker.state != state)
            return true;
        uint64_t now = clock_now_ns();
        bool due = timeout_ms >= 0 && now >= until;
        f->late = f->late || (due && (overdue++ == OVERDUE_STEPS || !unseen(f)));
        if (f->late || (f->req->live_gone && *f->req->live_gone))
            jail_run_stop(f->run);
        over = jail_run_step(f->run, timeout_ms < 0 ? -1
                                     : !due         ? (int)((until - now) / CLOCK_NS_PER_MS) + 1
                                     : f->late      ? FD_PATIENCE_MS
                                                    : 0);
        tell_violations(f);
    }
    return false;
}

static int add_bind(struct flow *f, const char *source, const char *dest, bool ours,
                    struct err *err)
{
    if (f->spec.nbinds == LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "--ro and --rw are given more than %d times together",
                       LIMIT_BINDS - 4);
    f->binds[f->spec.nbinds++] = (struct jail_bind){
        .source = source, .dest = dest, .moved = true, .ours = ours, .links = true};
    return 0;
}

/* What people may take at most to answer questions about its calls: the clock of the init runs on meanwhile. */
static uint64_t people_ms(const struct flow *f)
{
    const uint64_t calls = f->req->context->policy->sessions.tool_calls, each = flow_pause_ms(f);
    if (!f->req->tools || !f->req->tools[0] || !each)
        return 0;
    return calls < LIMIT_WALL_MS_MAX / each ? calls * each : LIMIT_WALL_MS_MAX;
}

/* Packages and environments are Python's. */
static bool is_default(const struct flow *f)
{
    return f->language == language_default();
}

/* The worker's command line. */
static void plan_words(struct flow *f, bool installed)
{
    size_t n = 0;
    f->worker_argv[n++] = f->language->worker;
    f->worker_argv[n++] = "--child";
    if (f->language->dialect) {
        f->worker_argv[n++] = "--dialect";
        f->worker_argv[n++] = f->language->name;
    }
    if (installed)
        n += pool_environment_argv(&f->environment, false, NULL, 0, f->worker_argv + n);
    if (policy_profile_find(f->req->profile->name) == f->req->profile) {
        f->worker_argv[n++] = "--profile"; /* it has the table itself: nothing to send */
        f->worker_argv[n++] = f->req->profile->name;
        f->worker.has_rules = true;
    }
    if (is_default(f) && jail_spec_layered(&f->spec))
        f->worker_argv[n++] = "--workspace"; /* its judge looks for modules there */
    f->spec.argv = f->worker_argv;
    f->spec.argc = n;
}

static int plan_worker(struct flow *f, struct err *err)
{
    const struct jail_spec *asked = &f->req->spec;
    f->spec.binds = f->binds;
    f->spec.nbinds = 0;
    int r = add_bind(f, is_default(f) ? f->req->python : f->worker_path, f->language->place, true,
                     err); /* the first: the jail may take it */
    if (r == 0 && asked->nbinds >= LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "--ro and --rw are given more than %d times together",
                       LIMIT_BINDS - 4);
    memcpy(f->binds + 1, asked->binds, asked->nbinds * sizeof *f->binds);
    f->spec.nbinds += asked->nbinds;
    if (r == 0)
        r = flow_shown_hold(f, f->binds + 1, err);
    struct jail_bind settings[1 + POOL_SETTINGS];
    const bool installed = is_default(f) && f->req->profile->packages;
    size_t count = installed ? pool_environment_bind(&f->environment, settings) : 0;
    if (r == 0 && count)
        r = pool_environment_check(&f->environment, err);
    count += installed ? pool_settings(settings + count) : 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = add_bind(f, settings[i].source, settings[i].dest, false, err);
    if (r < 0)
        return r;
    if (!f->req->profile->threads)
        f->spec.limits.threads = 0;
    f->spec.limits.space = f->language->space;
    const bool own_root = f->spec.mode == JAIL_FULL;
    f->spec.filter =
        language_filter(f->language, f->req->profile->compute_only, f->spec.limits.threads != 0,
                        own_root, f->filter, sizeof f->filter);
    if (f->spec.limits.processes && !is_default(f))
        return err_set(err, ERR_USAGE, "--processes: a program of %s starts no others",
                       f->language->title);
    if (f->spec.limits.processes) /* only where the caller said so: prog/cordon/run.c */
        f->spec.filter = language_filter_procs(f->language, f->filter, sizeof f->filter);
    f->spec.program = f->language->place;
    f->spec.stack = LIMIT_STACK;
    plan_words(f, installed);
    /* A caller's variable could steer the loader of a program that is not locked yet: they are sent, as to
     * every child that was made before its run. */
    f->spec.locks_itself = f->spec.mode == JAIL_FULL;
    f->spec.before_ms = 2 * JUDGE_MS + people_ms(f); /* its start and its verdict, too */
    if (f->spec.locks_itself) {
        memcpy(f->worker_env, pool_env, sizeof f->worker_env);
        f->spec.env = f->worker_env;
        f->spec.envc = POOL_ENV;
    }
    return 0;
}

/* What a message names is what was in force. */
static void take_limits(struct flow *f)
{
    const struct jail_limits *now = jail_run_limits(f->run), *asked = &f->spec.limits;
    f->little_space = now->memory + now->space < asked->memory + asked->space;
    f->spec.limits = *now;
}

static int start(struct flow *f, struct err *err)
{
    struct jail_start start = {.nest = f->req->nest,
                               .memory_by = f->req->memory_by,
                               .input = flow_input(f),
                               .channel = f->channel[1],
                               .channel_ours = f->channel[0],
                               .sink = sink_of(f),
                               .step_down = f->req->kind == FLOW_EXEC && f->req->once};
    if (f->req->stop >= 0)
        start.stops[start.nstops++] = f->req->stop;
    if (f->req->context->gate)
        start.stops[start.nstops++] = gate_stop_fd(f->req->context->gate);
    int r = jail_run_new(&f->spec, &start, &f->run, err);
    fd_close(f->channel[1]);
    f->channel[1] = -1;
    f->worker.run = f->run;
    if (r == 0)
        take_limits(f);
    return r < 0 || flow_was_stopped(f) ? r : heed(f, err);
}

/* ---- three ways to a locked child ---- */

static int take_over(struct flow *f, struct jail_child *child, bool fresh, struct err *err)
{
    struct jail_adopt a = {.limits = f->spec.limits,
                           .input = flow_input(f),
                           .by_line = f->req->asks,
                           .sink = sink_of(f)};
    int channel = child->channel;
    int r = jail_run_adopt(child, &a, &f->run, err);
    if (r < 0)
        return r;
    f->spec.limits = *jail_run_limits(f->run); /* of its pool: that it has less is no news */
    flow_worker_init(&f->worker, channel, f->result);
    f->channel[0] = channel;
    f->worker.run = f->run;
    f->worker.has_rules = true;
    f->worker.state = fresh ? FLOW_WORKER_STARTING : FLOW_WORKER_READY;
    return heed(f, err);
}

/* A child that was made long ago has the variables that every program has; others are sent. */
static int send_environ(struct flow *f, struct err *err)
{
    const struct jail_spec *s = &f->req->spec;
    bool usual = s->envc == POOL_ENV;
    for (size_t i = 0; i < s->envc && usual; i++)
        usual = strcmp(s->env[i], pool_env[i]) == 0;
    return usual ? 0 : flow_worker_environ(&f->worker, s->env, s->envc, err);
}

/* 1: it is ours. 0: there is none. */
static int receive(struct flow *f, struct err *err)
{
    struct jail_child child = JAIL_CHILD_NONE;
    f->ordered = false;
    if (!flow_lease_take(f, &child)) {
        pool_client_close(&f->pool);
        return 0;
    }
    int r = take_over(f, &child, true, err);
    if (r < 0) {
        jail_child_close(&child);
        return r;
    }
    f->result->warm = true;
    r = flow_inputs_put(f, err);
    if (r == 0)
        r = send_environ(f, err);
    return r < 0 ? r : 1;
}

int flow_child_build(struct flow *f, struct err *err)
{
    f->spec = f->req->spec;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->channel) < 0)
        return err_sys(err, "socketpair");
    flow_worker_init(&f->worker, f->channel[0], f->result);
    int r = plan_worker(f, err);
    if (r == 0)
        r = start(f, err);
    return r < 0 || flow_was_stopped(f) || !f->spec.locks_itself ? r : send_environ(f, err);
}

/* 1: it has its job, and is at work on it. 0: it died before it was ready, and has seen nothing of it. */
static int give_job(struct flow *f, struct err *err)
{
    struct err why = ERR_INIT; /* of one that is dead; its end tells more */
    f->job.limits = f->result->warm ? &f->spec.limits : NULL;
    if (flow_worker_early(&f->worker, &f->job))
        (void)!flow_worker_give(&f->worker, &f->job, &why);
    if (f->worker.state == FLOW_WORKER_STARTING && !carry(f, FLOW_WORKER_STARTING, JUDGE_MS))
        return 0;
    if (f->worker.state == FLOW_WORKER_READY) {
        int r = flow_worker_give(&f->worker, &f->job, err);
        return r < 0 ? r : 1;
    }
    return f->worker.state == FLOW_WORKER_JUDGING || f->worker.state == FLOW_WORKER_JUDGED;
}

/* Where a person types the input, who reads without asking finds the end. */
static int end_input(struct flow *f, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    fd_close(ends[1]);
    int r = flow_worker_input(&f->worker, ends[0], false, err);
    fd_close(ends[0]);
    return r;
}

/* A session's process began long ago: input and variables of this call come to it by the channel. */
static int enter_session(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    const struct jail_spec *s = &req->spec;
    FD_AUTO theirs = -1;
    int r = 0, ends[2];
    if (flow_names_zone(req))
        return err_set(
            err, ERR_USAGE,
            "a session of profile %s cannot be given a time zone (TZ): it only computes, "
            "and reads no zone's file; convert times with datetime.timezone",
            req->profile->name);
    if (req->kind == FLOW_CALL && !req->same_input) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return err_sys(err, "pipe");
        theirs = ends[0];
        fd_close(req->child->in);
        req->child->in = ends[1]; /* without an input it is closed, and theirs is at its end */
    }
    r = take_over(f, req->child, req->child_fresh, err);
    if (r == 0 && s->envc)
        r = flow_worker_environ(&f->worker, s->env, s->envc, err);
    if (r == 0 && theirs >= 0 && req->asks)
        r = end_input(f, err);
    if (r == 0 && theirs >= 0)
        r = flow_worker_input(&f->worker, theirs, req->asks, err);
    return r;
}

/* It is on its way when this returns: what comes before its first word is done meanwhile. */
int flow_start(struct flow *f, struct err *err)
{
    if (f->req->kind == FLOW_EXEC)
        return FLOW_GO_ON; /* its first instruction is the program's: it waits for the last gate */
    f->spec = f->req->spec;
    if (flow_in_session(f))
        return enter_session(f, err);
    flow_lease_connect_last(f);
    int r = f->pool.sock >= 0 /* then it has opened the environment */
                ? 0
                : flow_environment_open(f, err);
    if (r < 0)
        return r;
    if (f->req->source_too_long || f->no_program_rule) { /* no child is given it */
        flow_worker_init(&f->worker, -1, f->result);
        return FLOW_GO_ON;
    }
    f->ordered = flow_lease_order(f);
    return f->ordered ? FLOW_GO_ON : flow_child_build(f, err);
}

/* As give_job, with a warm child if one was ordered and came, else with one that is built now. */
static int put_to_work(struct flow *f, struct err *err)
{
    int r = f->ordered ? receive(f, err) : 1;
    if (r == 0) {
        r = flow_child_build(f, err);
        r = r < 0 ? r : 1;
    }
    return r == 1 ? give_job(f, err) : r;
}

/* Its channel is closed before its end is told: that end says whether it died of the program. */
static void await_end(struct flow *f)
{
    if (f->worker.state != FLOW_WORKER_BROKEN) {
        f->channel[0] = -1;
        (void)carry(f, f->worker.state, LAST_WORD_MS);
    }
    jail_run_stop(f->run);
}

int flow_child_judge(struct flow *f, struct err *err)
{
    f->late = false;
    int given = put_to_work(f, err);
    if (given < 0)
        return flow_say_who_stopped(f) ? FLOW_STOP : given;
    if (flow_unbegun_lacks_memory(f))
        return flow_unbegun_refuse_memory(f, err);
    if (given && carry(f, FLOW_WORKER_JUDGING, JUDGE_MS) && f->worker.state == FLOW_WORKER_JUDGED)
        return flow_verdict(f);
    if (!f->late)
        await_end(f);
    if (flow_unbegun_too_short(f))
        return flow_unbegun_over(f);
    if (flow_lost(f, !given && f->result->warm))
        return FLOW_GO_ON; /* the next step takes it up */
    const struct jail_outcome *o = jail_run_outcome(f->run);
    if (o->end == JAIL_END_WALL || o->end == JAIL_END_CPU) /* the machine is slow for that limit */
        return flow_unbegun_over(f);
    if (given || flow_in_session(f) || (flow_was_stopped(f) && !f->late))
        return flow_unbegun_died(f);
    if (o->end == JAIL_END_EXIT &&
        o->exit_code == JAIL_LOADER_FAILED) /* executed behind its locks */
        jail_tell_exit(o->exit_code, err);
    else if (f->late) /* we ended it: how it died tells nothing */
        err_set(err, ERR_MISSING,
                "%s did not start within %d s: the machine is busy, or somebody stopped it; "
                "try again, and `cordon doctor`",
                f->language->worker, JUDGE_MS / 1000);
    else
        err_set(err, ERR_MISSING, "%s did not start (exit status %d); try `cordon doctor`",
                f->language->worker, o->exit_code);
    err_layer(err, "process");
    return ERR_MISSING;
}

int flow_check(struct flow *f, struct err *err)
{
    if (f->req->kind == FLOW_EXEC)
        return FLOW_GO_ON;
    if (f->req->source_too_long || f->no_program_rule)
        return flow_verdict_unread(f);
    f->job = (struct flow_job){
        .kind = f->req->kind == FLOW_CHECK  ? FLOW_JOB_CHECK
                : f->req->kind == FLOW_CALL ? f->req->typed ? FLOW_JOB_BLOCK : FLOW_JOB_CALL
                : f->req->kind == FLOW_LINE ? f->req->offer ? FLOW_JOB_NAMES : FLOW_JOB_LINE
                                            : FLOW_JOB_RUN,
        .profile = f->req->profile,
        .name = f->req->name,
        .source = f->source,
        .len = f->source_len,
        .args = f->req->args,
        .nargs = f->req->nargs,
        .method = f->req->method,
        .method_args = f->req->method_args,
        .served = f->req->served,
        .tools = f->req->tools,
        .call = flow_call,
        .call_ctx = f,
        .file = f->req->profile->files ? flow_file : NULL,
        .file_ctx = f,
        .offer = f->req->offer,
        .offer_ctx = f->req->offer_ctx,
    };
    return flow_child_judge(f, err);
}

/* For the records: a worker has a name; of a program that was just executed its number comes a little later. */
static void name_worker(struct flow *f)
{
    if (f->req->outer && f->req->outer->worker_id)
        snprintf(f->worker_id, sizeof f->worker_id, "%s", f->req->outer->worker_id);
    else if (jail_run_guest(f->run))
        snprintf(f->worker_id, sizeof f->worker_id, "pid:%d", (int)jail_run_guest(f->run));
}

/* From here on the program runs, and its clocks. */
static int release(struct flow *f, bool exec, struct err *err)
{
    gate_plan_start(f->plan, flow_tool_name(f)); /* nothing starts without one */
    f->released = flow_files_released(f);
    if (!exec)
        jail_run_clock(f->run); /* what came before was our own time */
    flow_space_open(f);
    int r =
        exec ? start(f, err) : flow_calls_start(f, err); /* while we may do what the gate needs */
    if (r == 0 && !exec && f->req->once)
        r = jail_run_step_down(f->run, err);
    if (r == 0 && !exec)
        r = flow_calls_watch(f, err);
    if (r == 0 &&
        !flow_was_stopped(f)) /* while its jail was built: then there is no loop to watch in */
        r = flow_space_watch(f, err);
    if (r == 0)
        r = heed_keys(f, err);
    return r == 0 && !exec ? flow_worker_go(&f->worker, err) : r;
}

int flow_execute(struct flow *f, struct err *err)
{
    bool exec = f->req->kind == FLOW_EXEC;
    if (!exec &&
        jail_run_step(f->run, 0)) { /* the worker waited for the gate: it may have died meanwhile */
        int next = flow_lost(f, true) ? flow_retry(f, err) : flow_unbegun_died(f);
        if (next != FLOW_GO_ON)
            return next;
    }
    int r = release(f, exec, err);
    if (r < 0)
        return r;
    name_worker(f);
    f->executing = true;
    if (f->req->begun)
        f->req->begun(f->req->begun_ctx);
    if (f->req->watch.started)
        f->req->watch.started(f->req->watch.ctx, f->result->id);
    while (carry(f, FLOW_WORKER_RUNNING, -1))
        f->channel[0] = -1; /* it is done or gone: only its end is awaited */
    flow_calls_stop(f);
    flow_files_stop(f);
    name_worker(f);
    f->result->host_calls = f->calls_made;
    f->result->left_itself = f->worker.left;
    f->result->alive = f->req->kind == FLOW_CALL && f->worker.state == FLOW_WORKER_DONE;
    flow_result_outcome(f->result, jail_run_outcome(f->run), &f->spec.limits);
    flow_result_ends(f->result, f->req->profile, f->spec.limits.processes > 0);
    if (f->req->kind != FLOW_EXEC)
        flow_worker_explain(&f->worker, &f->spec.limits);
    if (f->little_space && f->result->status == FLOW_MEMORY)
        (void)flow_result_note(f->result,
                               "its memory is less than was asked for: cordon was started "
                               "with little address space; raise `ulimit -v`");
    flow_files_explain(f);
    (void)flow_say_who_stopped(f);
    flow_space_end(f);
    return FLOW_GO_ON;
}

/* A session that was asked and not told to go is as it was. */
static void leave_session(struct flow *f)
{
    bool unharmed = f->worker.state == FLOW_WORKER_READY || f->worker.state == FLOW_WORKER_JUDGED;
    if (!f->run)
        f->result->alive = true;
    else if (unharmed) {
        jail_run_release(f->run, 0);
        f->result->alive = jail_run_step(f->run, 0);
    }
}

void flow_child_close(struct flow *f)
{
    flow_calls_stop(f);
    flow_files_stop(f);
    flow_space_close(f);
    if (flow_in_session(f))
        leave_session(f);
    jail_run_free(f->run);
    f->run = NULL;
    if (f->req->kind == FLOW_EXEC)
        return;
    if (!flow_in_session(f))
        fd_close(f->worker.fd);
    fd_close(f->channel[1]);
    f->channel[0] = f->channel[1] = f->worker.fd = -1;
    flow_worker_done(&f->worker);
    pool_client_close(&f->pool); /* the leash */
    f->ordered = false;
}

struct flow_left {
    struct jail_run *run;
    int channel;
    struct pool_client pool;
};

void flow_child_leave(struct flow *f)
{
    if (!flow_in_session(f) && f->result->warm && f->run)
        f->result->left = malloc(sizeof *f->result->left);
    if (f->result->left) {
        *f->result->left = (struct flow_left){f->run, f->worker.fd, f->pool};
        f->run = NULL;
        f->worker.fd = f->pool.sock = -1;
    }
    flow_child_close(f);
}

void flow_left_close(struct flow_left *left)
{
    if (!left)
        return;
    jail_run_free(left->run);
    fd_close(left->channel);
    pool_client_close(&left->pool);
    free(left);
}
