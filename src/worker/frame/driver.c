/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a worker, and what it may be told in each:
 *
 *   waiting   RULES, TOOLS, ENVIRON, INPUT, ARGV, METHOD, JOB   -> collecting
 *   collecting SOURCE, what JOB itself did not bring      -> judged: FINDING*, REPORT
 *   judged    GO                        -> running, if the report was clean; JOB: another one
 *   running   ANSWER, to the guest's own calls (host.c)
 *   done      DONE said; a session waits again, a run ends the process
 *
 * Anything else is a supervisor that has lost its way, and the end of the process. What is
 * judged stays with the language, and that very thing is what runs. */
#include "worker/frame/driver.h"

#include "base/limits.h"
#include "check/report.h"
#include "check/ruleset.h"
#include "jail/template.h"
#include "worker/frame/channel.h"
#include "worker/frame/compute.h"
#include "worker/frame/given.h"
#include "worker/frame/host.h"
#include "worker/frame/input.h"
#include "worker/frame/interrupt.h"
#include "worker/frame/language.h"
#include "worker/frame/stack.h"
#include "worker/frame/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum state { WAITING, COLLECTING, JUDGED };

static struct {
    enum state state;
    struct check_ruleset *rules;
    struct worker_job job;
    size_t want;
    bool clean; /* the report was, and the language has what was judged */
} serving;

/* ---- judging ---- */

static void send_finding(const struct check_finding *f)
{
    struct wire_writer w;
    worker_channel_begin(&w, WIRE_FINDING);
    worker_channel_text(&w, f->rule, strlen(f->rule), 64);
    worker_channel_text(&w, f->layer, strlen(f->layer), 16);
    worker_channel_text(&w, f->operand, strlen(f->operand), 200);
    worker_channel_text(&w, f->message, strlen(f->message), 320);
    worker_channel_text(&w, f->hint, strlen(f->hint), LIMIT_HINT);
    wire_put_uint(&w, f->line);
    wire_put_uint(&w, f->column);
    (void)!worker_channel_send(&w);
}

static int send_report(bool safe, uint64_t dropped)
{
    struct wire_writer w;
    worker_channel_begin(&w, WIRE_REPORT);
    wire_put_uint(&w, safe);
    wire_put_uint(&w, dropped);
    serving.state = JUDGED;
    return worker_channel_send(&w);
}

/* A block that somebody is still typing. It is judged when it is whole. */
static int ask_for_more(void)
{
    const struct check_finding more = {.rule = CHECK_RULE_SYNTAX,
                                       .layer = "input",
                                       .operand = WORKER_DRIVER_INCOMPLETE,
                                       .message = "Syntax error: incomplete input",
                                       .hint = "go on; an empty line ends a block"};
    send_finding(&more);
    return send_report(false, 0);
}

static void forget(void)
{
    worker_language->forget();
    serving.clean = false;
}

static int judge(void)
{
    struct worker_job *job = &serving.job;
    struct check_report report;
    struct err err = ERR_INIT;
    forget();
    job->source[job->len] = 0;
    if (job->kind == WORKER_NAMES)
        return worker_language->names(job->source) < 0 ? -1 : send_report(true, 0);
    if (job->kind == WORKER_LINE && !memchr(job->source, 0, job->len) &&
        worker_language->incomplete(job->source))
        return ask_for_more();
    check_report_init(&report);
    int r = worker_language->wake ? worker_language->wake(&err) : 0;
    if (r == 0)
        r = worker_language->judge(job, &report, &err);
    if (r == 0) {
        for (size_t i = 0; i < report.count; i++)
            send_finding(&report.findings[i]);
        serving.clean = check_report_safe(&report);
        if (!serving.clean)
            forget();
        r = send_report(serving.clean, report.dropped);
        if (r == 0 && serving.clean && job->kind == WORKER_RUN)
            r = worker_language->prepare(job);
    }
    check_report_done(&report);
    return r; /* without a verdict our death is the refusal */
}

/* ---- running ---- */

static void say_done(int status)
{
    struct wire_writer w;
    worker_channel_begin(&w, WIRE_DONE);
    wire_put_int(&w, status);
    (void)!worker_channel_send(&w);
}

static int run(void)
{
    const struct worker_job *job = &serving.job;
    const bool call = job->kind == WORKER_CALL;
    bool left = false;
    serving.state = WAITING;
    if (call)
        worker_stand_anew();
    if (worker_language->begin(job) < 0)
        return -1; /* nothing of a guest ran; our death is the refusal */
    worker_stack_guest(true);
    if (call) {
        worker_input_forget();
        worker_interrupt_let(true);
    }
    worker_compute_guest(true);
    worker_language->execute(job);
    if (call)
        worker_interrupt_let(false);
    worker_compute_guest(false); /* a traceback looks for source lines on the disk */
    const int status = worker_language->report(job, &left);
    worker_compute_guest(true); /* exit functions are the guest's */
    worker_language->finish(job);
    worker_compute_guest(false);
    worker_stack_guest(false);
    say_done(status | (left ? WIRE_DONE_LEFT : 0));
    forget();
    return status;
}

/* ---- messages ---- */

/* Limits only ever get tighter: the hard ones stand since the lock. */
static int tighten(uint64_t cpu_ms, uint64_t memory)
{
    struct rlimit now;
    if (cpu_ms && getrlimit(RLIMIT_CPU, &now) == 0) {
        rlim_t s = (cpu_ms + 999) / 1000 + 1;
        if (s < now.rlim_cur) {
            now.rlim_cur = s;
            if (setrlimit(RLIMIT_CPU, &now) < 0)
                return -1;
        }
    }
    if (memory && getrlimit(RLIMIT_AS, &now) == 0 && memory < now.rlim_cur) {
        now.rlim_cur = now.rlim_max = memory;
        return setrlimit(RLIMIT_AS, &now);
    }
    return 0;
}

static int take_rules(struct wire_reader *r)
{
    struct err err = ERR_INIT;
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    struct check_ruleset *rules, *before = serving.rules;
    if (check_ruleset_decode(bytes, len, &rules, &err) < 0)
        return -1;
    serving.job.rules = serving.rules = rules;
    forget(); /* the program was judged by other rules */
    if (worker_language->rules)
        worker_language->rules(rules); /* the language drops its references to the old ones */
    check_ruleset_free(before);
    return 0;
}

static int take_tools(struct wire_reader *r)
{
    char names[LIMIT_HOST_TOOLS][64];
    const char *list[LIMIT_HOST_TOOLS];
    struct err err = ERR_INIT;
    size_t count = wire_get_list(r);
    if (count > LIMIT_HOST_TOOLS)
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t len;
        const char *name = wire_next(r, &len);
        if (len >= sizeof names[i])
            return -1;
        memcpy(names[i], name, len);
        names[i][len] = 0;
        list[i] = names[i];
    }
    return worker_host_tools(list, count, &err);
}

static int take_piece(const void *bytes, size_t len)
{
    struct worker_job *job = &serving.job;
    if (len > serving.want - job->len)
        return -1;
    memcpy(job->source + job->len, bytes, len);
    job->len += len;
    return job->len == serving.want ? judge() : 0;
}

static int take_job(struct wire_reader *r)
{
    struct worker_job *job = &serving.job;
    uint64_t kind = wire_get_uint(r), cpu_ms = wire_get_uint(r), memory = wire_get_uint(r);
    wire_get_text(r, job->name, sizeof job->name);
    uint64_t want = wire_get_uint(r);
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    if (kind > WORKER_NAMES || (kind >= WORKER_CALL && !worker_language->sessions) ||
        want > LIMIT_SOURCE || tighten(cpu_ms, memory) < 0)
        return -1;
    if (kind >= WORKER_CALL && worker_interrupt_expect() < 0)
        return -1;
    if (kind == WORKER_LINE || kind == WORKER_NAMES)
        worker_interrupt_drop();
    job->typed = kind == WORKER_BLOCK;
    job->kind = job->typed ? WORKER_CALL : (enum worker_kind)kind;
    free(job->source);
    job->source = malloc((size_t)want + 1);
    job->len = 0;
    serving.want = (size_t)want;
    serving.state = COLLECTING;
    return job->source ? take_piece(bytes, len) : -1;
}

static int take_source(struct wire_reader *r)
{
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    return take_piece(bytes, len);
}

/* The supervisor asked for a branch. The jail makes its files and descriptors; the worker only goes on in a copied
 * interpreter. */
static int branch(void)
{
    if (serving.state == COLLECTING || !worker_language->sessions)
        return -1;
    if (worker_language->before_branch)
        worker_language->before_branch();
    worker_stand_anew(); /* somebody may have looked at its files since its last call, and laid them anew */
    int r = jail_branch_here();
    if (r == 1 || worker_language->before_branch)
        worker_language->after_fork();
    return 0; /* a refusal is told by the jail */
}

/* One message. 1: go on; 0: the process is done, *ret_status tells; -1: the supervisor lost its way. */
static int handle(struct wire_reader *r, int *ret_status)
{
    switch (r->type) {
    case WIRE_RULES:
        return serving.state != COLLECTING && take_rules(r) == 0 ? 1 : -1;
    case WIRE_TOOLS:
        return serving.state != COLLECTING && take_tools(r) == 0 ? 1 : -1;
    case WIRE_ENVIRON:
        return serving.state != COLLECTING && worker_given_variables(r) == 0 ? 1 : -1;
    case WIRE_INPUT:
        worker_interrupt_drop();
        return serving.state != COLLECTING && worker_input_take(r, worker_channel_descriptor()) == 0
                   ? 1
                   : -1;
    case WIRE_ARGV:
        return serving.state != COLLECTING && worker_given_words(r) == 0 ? 1 : -1;
    case WIRE_METHOD:
        return serving.state != COLLECTING && worker_language->methods &&
                       worker_given_method(r) == 0
                   ? 1
                   : -1;
    case WIRE_JOB:
        return serving.state != COLLECTING && serving.rules && take_job(r) == 0 ? 1 : -1;
    case WIRE_SOURCE:
        return serving.state == COLLECTING && take_source(r) == 0 ? 1 : -1;
    case WIRE_FORK:
        return branch() == 0 ? 1 : -1;
    case WIRE_GO:
        if (serving.state != JUDGED || !serving.clean ||
            (serving.job.kind != WORKER_RUN && serving.job.kind != WORKER_CALL))
            return -1;
        *ret_status = run();
        return *ret_status < 0 ? -1 : serving.job.kind == WORKER_CALL;
    default:
        return -1;
    }
}

int worker_driver_close(void)
{
    const bool closes = check_ruleset_profile(serving.rules)->compute_only;
    if (closes && worker_language->sessions &&
        worker_interrupt_expect() < 0) /* it may become a session, and a handler is not set later */
        return -1;
    return worker_language->close(serving.rules);
}

int worker_driver_profile(const char *name, struct err *err)
{
    const struct policy_profile *profile = policy_profile_find(name);
    if (!profile)
        return err_set(err, ERR_USAGE, "there is no profile '%.40s'", name);
    int r = check_ruleset_new(profile, &serving.rules, err);
    serving.job.rules = serving.rules;
    return r;
}

int worker_driver_told(struct err *err)
{
    struct wire_reader r;
    size_t len;
    if (worker_channel_next(&r) != 1 || r.type != WIRE_RULES)
        return err_set(err, ERR_FORMAT, "no rules came");
    const void *bytes = wire_get_bytes(&r, &len);
    int got = check_ruleset_decode(bytes, len, &serving.rules, err);
    serving.job.rules = serving.rules;
    return got;
}

const struct check_ruleset *worker_driver_rules(void)
{
    return serving.rules;
}

void worker_driver_ready(void)
{
    worker_channel_say(WIRE_READY);
}

int worker_driver_warm(void)
{
    worker_channel_warm();
    return worker_language->warm(serving.rules);
}

static int expect(void)
{
    struct err err = ERR_INIT;
    if (worker_language->wake && worker_language->wake(&err) < 0) {
        fprintf(stderr, "%s: %s\n", worker_language->program, err.msg);
        return -1;
    }
    return worker_language->expect ? worker_language->expect(serving.rules) : 0;
}

int worker_driver_serve(void)
{
    struct wire_reader r;
    int status = 0, go_on = 1;
    /* the supervisor is only waking up: time for what the first program will need */
    if (serving.rules && expect() < 0)
        return 70;
    while (go_on > 0) {
        int got = worker_channel_next(&r);
        if (got <= 0)
            return got < 0;
        go_on = handle(&r, &status);
    }
    return go_on < 0 ? 70 : status;
}
