/* SPDX-License-Identifier: Apache-2.0 */
/* A worker is a run like any other: judged, gated, recorded, in a jail of its own. What it has of the run that called it is
 * handed on here, and is never more than that run has: its profile, its role and type, its tools, what is left of its
 * memory, its CPU time and its calls. It gets none of its shared folders, and its own /workspace is empty: files of the caller's
 * it reaches by its tools alone, which work on the caller's files by the same open descriptor. So no path of a guest's is resolved by
 * anybody, and what its type may not write it cannot write. The broker runs it, and the supervisor goes on with its clocks.
 *
 * Waits: fscanf in memory_of; /proc; at once; counts as nothing */
#include "flow/steps.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool flow_nested_is(const char *tool)
{
    return strcmp(tool, "SpawnWorker") == 0 || strcmp(tool, "WorkerResult") == 0;
}

static unsigned depth_of(const struct flow *f)
{
    return f->req->outer ? f->req->outer->depth : 0;
}

bool flow_nested_fits(const struct flow *f, const char *tool)
{
    return strcmp(tool, "WorkerResult") == 0 || depth_of(f) < LIMIT_NESTED;
}

/* ---- what is left ---- */

/* What the process that calls holds now. 0: it cannot be read. */
static uint64_t memory_of(uint64_t pid)
{
    char path[48];
    unsigned long long size = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%llu/statm", (unsigned long long)pid);
    FILE *file = pid ? fopen(path, "re") : NULL;
    if (file && fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    if (file)
        (void)fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The caller waits meanwhile: what it holds and what the nested run takes are together no more than it may have. */
static int share_limits(const struct flow_caller *c, struct jail_limits *ret, struct err *err)
{
    const uint64_t held = memory_of(c->guest),
                   cpu_ms = __atomic_load_n(&c->f->budget->cpu_us, __ATOMIC_RELAXED) / 1000;
    *ret = c->f->spec.limits;
    ret->processes = 0;
    if (!held)
        return err_set(err, ERR_STATE, "what memory the program holds cannot be read");
    if (ret->memory < held + LIMIT_NESTED_MEMORY)
        return err_set(err, ERR_LIMIT,
                       "the program holds %llu of its %llu MB, so no worker fits beside it; drop "
                       "data, or raise --memory",
                       (unsigned long long)(held / MIB), (unsigned long long)(ret->memory / MIB));
    if (ret->cpu_ms <= cpu_ms)
        return err_set(err, ERR_LIMIT, "the workers have used the %llu ms of CPU time of the run",
                       (unsigned long long)ret->cpu_ms);
    ret->memory -= held;
    ret->cpu_ms -= cpu_ms;
    if (ret->output > LIMIT_RAN_OUTPUT)
        ret->output = LIMIT_RAN_OUTPUT;
    return 0;
}

/* ---- what it gave ---- */

static void take_text(struct flow_ran *r, struct buf *to, const struct buf *from, size_t most)
{
    const size_t len = from->len < most ? from->len : most;
    buf_init(to, most + 1);
    if ((len && buf_add(to, from->data, len) < 0) || len < from->len)
        r->flags |= TOOLS_RAN_CUT;
}

static void ran_done(struct flow_ran *r)
{
    buf_done(&r->final);
    buf_done(&r->value);
    buf_done(&r->streams[0]);
    buf_done(&r->streams[1]);
    *r = (struct flow_ran){.flags = 0};
}

static void take_result(struct flow_ran *r, const char *which, const struct flow_result *from)
{
    ran_done(r);
    r->flags = (from->is_final ? TOOLS_RAN_FINAL : 0U) | (from->has_value ? TOOLS_RAN_VALUE : 0U) |
               (from->truncated ? TOOLS_RAN_CUT : 0U);
    snprintf(r->which, sizeof r->which, "%s", which);
    snprintf(r->status, sizeof r->status, "%s", flow_status_name(from->status));
    if (from->status != FLOW_OK)
        snprintf(r->why, sizeof r->why, "%s: %.300s", from->type,
                 from->message[0] ? from->message : from->reason);
    take_text(r, &r->final, &from->final, LIMIT_RAN_TEXT);
    take_text(r, &r->value, &from->value, LIMIT_RAN_OUTPUT);
    for (int i = 0; i < 2; i++)
        take_text(r, &r->streams[i], &from->streams[i], LIMIT_RAN_OUTPUT);
}

static struct tools_text text_of(const struct buf *b)
{
    return (struct tools_text){.data = b->data ? b->data : "", .len = b->data ? b->len : 0};
}

static enum tools_end tell(const struct flow_ran *r, struct tools_process *process,
                           struct buf *text, struct err *err)
{
    const struct tools_run run = {.which = r->which,
                                  .status = r->status,
                                  .why = r->why,
                                  .flags = r->flags,
                                  .final = text_of(&r->final),
                                  .value = text_of(&r->value),
                                  .streams = {text_of(&r->streams[0]), text_of(&r->streams[1])}};
    return tools_process_ran(process, &run, text, err);
}

/* ---- the run ---- */

static void add_bound(struct flow_outer *o, const char *bound)
{
    if (bound && *bound && o->nbounds < sizeof o->bounds / sizeof *o->bounds)
        o->bounds[o->nbounds++] = bound;
}

/* What the caller was given, and what it made, as many as one program may have. */
static void add_tools(struct flow_outer *o, const struct flow_caller *c)
{
    size_t n = 0;
    for (const char *const *name = c->f->req->tools; *name && n < LIMIT_HOST_TOOLS; name++)
        o->tools[n++] = *name;
    for (size_t i = 0; i < c->mades->count && n < LIMIT_HOST_TOOLS; i++)
        o->tools[n++] = c->mades->items[i].name;
    o->tools[n] = NULL;
}

static void stand_around(const struct flow_caller *c, const char *worker_id, struct flow_outer *ret)
{
    const struct flow_request *req = c->f->req;
    const struct flow_outer *outer = req->outer;
    *ret = (struct flow_outer){.depth = depth_of(c->f) + 1,
                               .tool = flow_tool_name(c->f),
                               .id = c->f->result->id,
                               .worker_id = worker_id,
                               .files = c->files,
                               .made = c->mades,
                               .budget = c->f->budget,
                               .plan = c->plan,
                               .waits = c->waits};
    for (size_t i = 0; outer && i < outer->nbounds; i++)
        add_bound(ret, outer->bounds[i]);
    add_bound(ret, req->worker);
    add_tools(ret, c);
}

/* What the request of a nested run is, before its limits. TYPE: of the worker; NULL: it is bounded as its caller is. */
static void ask_for(const struct flow_caller *c, const char *type, const char *name,
                    const struct flow_outer *outer, const struct buf *source,
                    struct flow_request *ret)
{
    const struct flow_request *above = c->f->req;
    *ret = (struct flow_request){.kind = FLOW_RUN,
                                 .outer = outer,
                                 .context = c->context,
                                 .profile = above->profile,
                                 .name = name,
                                 .language = c->f->language->name,
                                 .source = source->data ? source->data : "",
                                 .source_len = source->len,
                                 .tools = outer ? (const char *const *)outer->tools : above->tools,
                                 .find_program = above->find_program,
                                 .tool_program = above->tool_program,
                                 .role = above->role,
                                 .worker = type ? type : above->worker,
                                 .session = c->f->result->session[0] ? c->f->result->session : NULL,
                                 .session_call = above->session_call,
                                 .calls_used = above->calls_used,
                                 .approval_wait_ms = above->approval_wait_ms,
                                 .memory_by = above->memory_by,
                                 .input = -1,
                                 .nest = above->nest,
                                 .python = above->python,
                                 .find = above->find,
                                 .stop = c->stop,
                                 .out = -1,
                                 .pool = c->context->policy->pool.enabled,
                                 .rules = above->rules,
                                 .escape = OUTPUT_ESCAPE_NONE};
    jail_spec_init(&ret->spec);
    ret->spec.mode = above->spec.mode;
    ret->spec.switches = above->spec.switches;
    ret->spec.env = (const char **)pool_env;
    ret->spec.envc = POOL_ENV;
    ret->spec.keep_files = true;
}

enum tools_end flow_nested_judge(const struct flow_caller *c, const char *name,
                                 const struct buf *source, char why[320], struct err *err)
{
    struct flow_request req;
    struct flow_result verdict;
    ask_for(c, NULL, name, NULL, source, &req);
    req.kind = FLOW_CHECK;
    if (flow_run(&req, &verdict, err) < 0)
        return TOOLS_FAILED;
    const bool good = verdict.status == FLOW_OK;
    if (!good)
        snprintf(why, 320, "%.280s", verdict.message[0] ? verdict.message : verdict.reason);
    flow_result_done(&verdict);
    return good ? TOOLS_OK : TOOLS_REFUSED;
}

static int run_nested(const struct flow_caller *c, const char *type, const char *name,
                      const struct flow_outer *outer, const struct buf *source,
                      struct flow_result *result, struct err *err)
{
    struct flow_request req;
    ask_for(c, type, name, outer, source, &req);
    int r = share_limits(c, &req.spec.limits, err);
    if (r < 0)
        return r;
    r = flow_run(&req, result, err);
    c->waits(false); /* it may have ended while somebody was asked */
    __atomic_add_fetch(&outer->budget->cpu_us, result->cpu_us, __ATOMIC_RELAXED);
    if (r < 0)
        flow_result_done(result);
    return r;
}

/* What the caller used up is no fault of the tool. */
static enum tools_end tell_used_up(struct tools_process *process, struct buf *text, struct err *err)
{
    const struct err why = *err;
    *err = (struct err)ERR_INIT;
    return tools_process_wrote(process, TOOLS_WROTE_WRONG, why.msg, strlen(why.msg), text, err);
}

static enum tools_end spawn(const struct flow_caller *c, struct tools_process *process,
                            struct buf *text, struct err *err)
{
    struct flow_outer outer;
    struct flow_result result;
    char id[24];
    const uint64_t number = __atomic_add_fetch(&c->f->budget->workers, 1, __ATOMIC_RELAXED),
                   call = c->f->req->session_call + 1;
    if (c->f->result->session[0]) /* each call of a session counts anew */
        snprintf(id, sizeof id, "worker:%llu.%llu", (unsigned long long)call,
                 (unsigned long long)number);
    else
        snprintf(id, sizeof id, "worker:%llu", (unsigned long long)number);
    stand_around(c, id, &outer);
    const int r = run_nested(c, process->word, "<worker>", &outer, &process->source, &result, err);
    if (r == ERR_LIMIT)
        return tell_used_up(process, text, err);
    if (r < 0)
        return TOOLS_FAILED;
    struct flow_ran *ran = &c->workers->kept[c->workers->completed++ % LIMIT_WORKERS];
    take_result(ran, id, &result);
    flow_result_done(&result);
    return tell(ran, process, text, err);
}

enum tools_end flow_nested_tool(const struct flow_caller *c, const char *name,
                                const char *const *bounds, size_t nbounds,
                                const struct buf *program, struct tools_process *process,
                                struct buf *text, struct err *err)
{
    const struct flow_outer *around = c->f->req->outer;
    struct flow_outer outer;
    struct flow_result result;
    struct flow_ran ran = {.flags = 0};
    stand_around(c, around ? around->worker_id : NULL, &outer);
    for (size_t i = 0; i < nbounds; i++)
        add_bound(&outer, bounds[i]);
    const int r = run_nested(c, NULL, name, &outer, program, &result, err);
    if (r == ERR_LIMIT)
        return tell_used_up(process, text, err);
    if (r < 0)
        return TOOLS_FAILED;
    take_result(&ran, name, &result);
    flow_result_done(&result);
    const enum tools_end end = tell(&ran, process, text, err);
    ran_done(&ran);
    return end;
}

static enum tools_end look_up(const struct flow_caller *c, struct tools_process *process,
                              struct buf *text, struct err *err)
{
    char why[160];
    for (size_t i = 0; i < LIMIT_WORKERS; i++)
        if (process->word[0] && strcmp(c->workers->kept[i].which, process->word) == 0)
            return tell(&c->workers->kept[i], process, text, err);
    snprintf(why, sizeof why,
             "there is no completed worker of that name; the last %d of a run are kept",
             LIMIT_WORKERS);
    return tools_process_wrote(process, TOOLS_WROTE_WRONG, why, strlen(why), text, err);
}

enum tools_end flow_nested(const struct flow_caller *c, const char *tool,
                           struct tools_process *process, struct buf *text, struct err *err)
{
    return strcmp(tool, "SpawnWorker") == 0 ? spawn(c, process, text, err)
                                            : look_up(c, process, text, err);
}
