/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of each verb stands here, whole. Of what a client sent, only numbers and handles that we made get into
 * it: code goes to the runner's standard input. What the operator chose (profile, role, policy) is the same for every run,
 * and the gate that the runner passes is the command line's own. */
#include "serve/holding.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define WORDS 24

struct words {
    const char *argv[WORDS + 1];
    size_t count;
    char numbers[4][32];
    size_t used;
};

static void word(struct words *w, const char *s)
{
    base_assert(w->count < WORDS);
    w->argv[w->count++] = s;
}

static void option(struct words *w, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    word(w, name);
    word(w, value);
}

static void limit(struct words *w, const char *name, uint64_t n, const char *unit)
{
    base_assert(w->used < 4);
    snprintf(w->numbers[w->used], sizeof w->numbers[0], "%llu%s", (unsigned long long)n, unit);
    option(w, name, w->numbers[w->used++]);
}

/* What was asked for may be less than the operator's, never more. */
static uint64_t tighter(uint64_t asked, uint64_t given)
{
    return asked && asked < given ? asked : given;
}

static struct serve_limits limits_of(const struct serve_client *c, const struct serve_request *q)
{
    const struct serve_limits *g = &c->config->limits;
    return (struct serve_limits){tighter(q->limits.timeout_ms, g->timeout_ms),
                                 tighter(q->limits.memory, g->memory),
                                 tighter(q->limits.output, g->output)};
}

/* Which rules hold: the operator's words, for every verb that asks the gate. */
static void chosen(struct words *w, const struct serve_config *f, bool profile, bool role)
{
    if (profile)
        option(w, "--profile", f->profile);
    if (role)
        option(w, "--role", f->role);
    option(w, "--policy", f->policy);
}

static void build_files(struct words *w, const struct serve_client *c,
                        const struct serve_request *q)
{
    word(w, "session");
    word(w, "files");
    chosen(w, c->config, false, true);
    word(w, q->handle);
    word(w, serve_verb_files(q->verb));
}

static void build_session(struct words *w, const struct serve_client *c,
                          const struct serve_request *q, const char *session, const char *workspace)
{
    static const char *const verbs[SERVE_VERB_COUNT] = {[SERVE_SESSION_RUN] = "run",
                                                        [SERVE_SESSION_NEW] = "new",
                                                        [SERVE_SESSION_FORK] = "fork",
                                                        [SERVE_SESSION_CLOSE] = "close",
                                                        [SERVE_SESSION_INTERRUPT] = "interrupt"};
    const struct serve_limits l = limits_of(c, q);
    const bool runs = q->verb == SERVE_SESSION_RUN, makes = q->verb == SERVE_SESSION_NEW;
    base_assert(verbs[q->verb]);
    word(w, "session");
    word(w, verbs[q->verb]);
    word(w, runs ? "--events" : "--json");
    if (runs)
        word(w, "--images");
    chosen(w, c->config, makes, runs || makes);
    if (runs) {
        limit(w, "--timeout", l.timeout_ms, "ms");
        limit(w, "--output", l.output, "");
    }
    if (makes) {
        limit(w, "--memory", l.memory, "");
        limit(w, "--idle", LIMIT_SERVE_IDLE_MS, "ms");
        option(w, "--workspace", workspace);
    } else {
        word(w, q->handle);
    }
    if (makes || q->verb == SERVE_SESSION_FORK)
        word(w, session);
    if (runs)
        word(w, "-");
}

/* Which process asked is our own word: a front answers for its client's runs and for no others. */
static void build_answer(struct words *w, struct serve_client *c, const struct serve_request *q)
{
    const struct serve_job *job = serve_jobs_find(c, q->handle);
    base_assert(job); /* asks.c looked */
    word(w, "approve");
    word(w, "elicited");
    snprintf(w->numbers[w->used], sizeof w->numbers[0], "%d", (int)job->runner.pid);
    word(w, w->numbers[w->used++]);
    if (c->config->policy[0])
        word(w, c->config->policy);
}

static void build(struct words *w, struct serve_client *c, const struct serve_request *q,
                  const char *session, const char *workspace)
{
    const struct serve_limits l = limits_of(c, q);
    word(w, c->config->cordon);
    if (q->verb == SERVE_RUN) {
        word(w, "run");
        word(w, "--events");
        word(w, "--images");
        chosen(w, c->config, true, true);
        limit(w, "--timeout", l.timeout_ms, "ms");
        limit(w, "--memory", l.memory, "");
        limit(w, "--output", l.output, "");
        word(w, "-");
    } else if (q->verb == SERVE_CHECK) {
        word(w, "check");
        word(w, "--json");
        chosen(w, c->config, true, false);
        word(w, "-");
    } else if (q->verb == SERVE_METRICS) {
        word(w, "serve");
        word(w, "--from-cordond");
        word(w, "--metrics");
        word(w, "0");
        chosen(w, c->config, false, false);
    } else if (q->verb == SERVE_APPROVAL_ANSWER) {
        build_answer(w, c, q);
    } else if (q->verb == SERVE_APPROVALS) {
        word(w, "approve");
        word(w, "served");
        if (c->config->policy[0])
            word(w, c->config->policy);
    } else if (serve_verb_files(q->verb)) {
        build_files(w, c, q);
    } else {
        build_session(w, c, q, session, workspace);
    }
}

/* An unused place; else that of the job whose result was there for the longest. */
static struct serve_job *free_job(struct serve_client *c)
{
    struct serve_job *oldest = NULL;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        struct serve_job *j = &c->jobs[i];
        if (!j->used)
            return j;
        if (j->ended_ns && (!oldest || j->ended_ns < oldest->ended_ns))
            oldest = j;
    }
    if (oldest)
        serve_jobs_forget(oldest);
    return oldest;
}

/* A runner that waits, or a new one. */
static int begin(struct serve_client *c, struct serve_job *j, const char *const *argv,
                 const struct buf *body, struct err *err)
{
    const void *input = body && body->len ? body->data : "";
    const size_t len = body ? body->len : 0;
    if (serve_ready_take(c->all, &j->runner, argv, input, len))
        return 0;
    int k = serve_runner_start(&j->runner, argv[0], err);
    if (k == 0)
        k = serve_runner_order(&j->runner, argv, input, len, err);
    if (k < 0)
        serve_runner_done(&j->runner);
    return k;
}

struct serve_job *serve_jobs_start(struct serve_client *c, const struct serve_request *q,
                                   const char *session, const struct buf *body, uint64_t now_ns,
                                   struct err *err)
{
    struct words w = {.count = 0};
    struct serve_job *j = free_job(c);
    if (!j) {
        err_set(err, ERR_LIMIT,
                "%d runs of this client are running; wait for one of them (wait_job)",
                LIMIT_SERVE_JOBS);
        return NULL;
    }
    *j = (struct serve_job){.verb = q->verb, .runner = SERVE_RUNNER_INIT, .started_ns = now_ns};
    if (session)
        memcpy(j->session, session, sizeof j->session);
    const bool makes =
        q->verb == SERVE_SESSION_NEW; /* its body is a word for us, and not for the runner */
    build(&w, c, q, j->session, makes && body ? serve_sessions_workspace(c->config, body) : NULL);
    body = makes ? NULL : body;
    const bool runs = q->verb == SERVE_RUN || q->verb == SERVE_SESSION_RUN;
    j->deadline_ns = now_ns + (runs ? limits_of(c, q).timeout_ms + LIMIT_SERVE_QUEUE_MS
                               : q->verb == SERVE_METRICS ? LIMIT_SERVE_RELOAD_MS
                                                          : LIMIT_SERVE_QUEUE_MS) *
                                  CLOCK_NS_PER_MS;
    if (serve_handle_new(SERVE_HANDLE_JOB, j->handle, err) < 0 ||
        begin(c, j, w.argv, body, err) < 0)
        return NULL;
    j->used = true;
    return j;
}

struct serve_job *serve_jobs_find(struct serve_client *c, const char *handle)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used && (c->jobs[i].kept || c->jobs[i].told) &&
            strcmp(c->jobs[i].handle, handle) == 0)
            return &c->jobs[i];
    return NULL;
}

void serve_jobs_forget(struct serve_job *job)
{
    serve_runner_done(&job->runner);
    job->used = false;
}

/* What a command of sessions came to, in our own list. */
static void note_session(struct serve_client *c, const struct serve_job *j, uint64_t now_ns)
{
    const bool made = j->verb == SERVE_SESSION_NEW || j->verb == SERVE_SESSION_FORK;
    if (made && j->runner.status == 0)
        (void)serve_sessions_add(c, j->session, now_ns);
    if (j->verb == SERVE_SESSION_CLOSE)
        serve_sessions_remove(c, j->session);
    struct serve_session *s = j->verb == SERVE_SESSION_RUN || serve_verb_files(j->verb)
                                  ? serve_sessions_find(c, j->session, now_ns)
                                  : NULL;
    if (s)
        s->called_ns = now_ns;
}

static void tick(struct serve_client *c, struct serve_job *j, uint64_t now_ns)
{
    if (j->ended_ns) {
        if (!j->kept || now_ns > j->ended_ns + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS)
            serve_jobs_forget(j);
        return;
    }
    serve_runner_take(&j->runner);
    if (serve_runner_over(&j->runner)) {
        j->ended_ns = now_ns;
        serve_measure_end(c, j, now_ns);
        note_session(c, j, now_ns);
        return;
    }
    if (now_ns >= j->deadline_ns)
        serve_runner_stop(&j->runner, now_ns);
    if (j->runner.kill_ns && now_ns >= j->runner.kill_ns) {
        serve_runner_kill(&j->runner);
        j->runner.kill_ns = UINT64_MAX;
    }
}

void serve_jobs_tick(struct serve_client *c, uint64_t now_ns)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used)
            tick(c, &c->jobs[i], now_ns);
}

uint64_t serve_jobs_next(const struct serve_client *c)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        const struct serve_job *j = &c->jobs[i];
        if (!j->used)
            continue;
        const uint64_t at = j->ended_ns
                                ? j->kept ? j->ended_ns + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS : 0
                            : j->runner.kill_ns ? j->runner.kill_ns
                                                : j->deadline_ns;
        next = at < next ? at : next;
    }
    return next;
}
