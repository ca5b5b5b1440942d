/* SPDX-License-Identifier: Apache-2.0 */
/* A job is one runner, from its words to the end of its process. Its result stays where its client knows the handle. */
#include "serve/holding.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* An unused place; else that of the job whose result was there for the longest. */
static struct serve_job *free_job(struct serve_client *c)
{
    struct serve_job *oldest = NULL;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        struct serve_job *j = &c->jobs[i];
        if (!j->used)
            return j;
        if (j->ended_ns && !j->readers && (!oldest || j->ended_ns < oldest->ended_ns))
            oldest = j;
    }
    if (oldest)
        serve_jobs_forget(oldest);
    return oldest;
}

static size_t runners_of(const struct serve_client *c)
{
    size_t n = 0;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        n += c->jobs[i].used && !serve_runner_over(&c->jobs[i].runner);
    return n;
}

/* The gate bounds what runs; those who wait for it are processes, too. What makes room again has some of its own. */
static bool has_room(const struct serve_client *c, enum serve_verb verb, struct err *err)
{
    const bool settles = serve_verb_settles(verb);
    size_t all = 0, own = 0;
    for (size_t i = 0; i < c->all->places; i++) {
        const struct serve_client *other = c->all->clients[i];
        const size_t n = other ? runners_of(other) : 0;
        all += n;
        own += n && other->user == c->user ? n : 0;
    }
    if (all >= LIMIT_SERVE_RUNNERS + (settles ? LIMIT_SERVE_RUNNERS_SETTLE : 0))
        err_set(err, ERR_LIMIT,
                "%d runs are under way at this server, the most that it has for all clients; try "
                "again when one has ended",
                LIMIT_SERVE_RUNNERS);
    else if (c->config->all_users && !settles && own >= LIMIT_SERVE_RUNNERS_USER)
        err_set(err, ERR_LIMIT,
                "%d runs of this user are under way, the most that this server has for one; try "
                "again when one has ended",
                LIMIT_SERVE_RUNNERS_USER);
    return err->code == 0;
}

/* A runner that waits, or a new one: whoever only measures takes nothing from those who run something. */
static int begin(struct serve_client *c, struct serve_job *j, const char *const *argv,
                 const struct buf *body, struct err *err)
{
    const void *input = body && body->len ? body->data : "";
    const size_t len = body ? body->len : 0;
    if (j->verb != SERVE_METRICS && serve_ready_take(c->all, &j->runner, c->user, argv, input, len))
        return 0;
    int k = serve_runner_start(&j->runner, argv[0], err);
    if (k == 0)
        k = serve_runner_order(&j->runner, c->user, argv, input, len, err);
    if (k < 0)
        serve_runner_done(&j->runner);
    return k;
}

struct serve_job *serve_jobs_start(struct serve_client *c, const struct serve_request *q,
                                   const char *session, const struct buf *body, uint64_t now_ns,
                                   struct err *err)
{
    struct serve_words w = {.count = 0};
    struct serve_job *j = has_room(c, q->verb, err) ? free_job(c) : NULL;
    if (err->code)
        return NULL;
    if (!j) {
        err_set(err, ERR_LIMIT,
                "%d runs of this client are running; wait for one of them (wait_job)",
                LIMIT_SERVE_JOBS);
        return NULL;
    }
    *j = (struct serve_job){
        .verb = q->verb, .request = q->number, .runner = SERVE_RUNNER_INIT, .started_ns = now_ns};
    if (session)
        memcpy(j->session, session, sizeof j->session);
    const bool makes =
        q->verb == SERVE_SESSION_NEW; /* its body is a word for us, and not for the runner */
    /* which process asked is our own word: a front answers for its client's runs and for no others */
    const struct serve_job *asker =
        q->verb == SERVE_APPROVAL_ANSWER ? serve_jobs_find(c, q->handle) : NULL;
    const struct serve_for named = {
        .session = j->session,
        .workspace = makes && body ? serve_sessions_workspace(c->config, body) : NULL,
        .asker = asker ? asker->runner.pid : 0};
    serve_words(&w, c->config, q, &named);
    body = makes ? NULL : body;
    const bool runs = q->verb == SERVE_RUN || q->verb == SERVE_SESSION_RUN;
    j->deadline_ns =
        now_ns + (runs ? serve_words_limits(c->config, q).timeout_ms + LIMIT_SERVE_QUEUE_MS
                  : q->verb == SERVE_METRICS ? LIMIT_SERVE_RELOAD_MS
                                             : LIMIT_SERVE_QUEUE_MS) *
                     CLOCK_NS_PER_MS;
    if (serve_handle_new(SERVE_HANDLE_JOB, j->handle, err) < 0 ||
        begin(c, j, w.argv, body, err) < 0)
        return NULL;
    j->used = true;
    if (q->verb != SERVE_METRICS)
        c->all->expects_run = q->verb == SERVE_RUN;
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

/* The one that closes a session ends by itself, soon: nobody else would close it. */
void serve_jobs_give_up(struct serve_job *job, uint64_t now_ns)
{
    const uint64_t soon = now_ns + LIMIT_SERVE_END_MS * CLOCK_NS_PER_MS;
    if (job->verb != SERVE_SESSION_CLOSE)
        serve_runner_stop(&job->runner, now_ns);
    else if (soon < job->deadline_ns)
        job->deadline_ns = soon;
}

void serve_jobs_cancel(struct serve_job *job, uint64_t now_ns)
{
    if (job->ended_ns)
        return;
    job->cancelled = job->verb != SERVE_SESSION_CLOSE;
    serve_jobs_give_up(job, now_ns);
}

void serve_jobs_forget(struct serve_job *job)
{
    serve_runner_done(&job->runner);
    job->used = false;
}

/* ---- results that wait for their clients ---- */

static bool waits(const struct serve_job *j)
{
    return j->used && j->kept && j->ended_ns;
}

static size_t waiting_bytes(const struct serve_client *c)
{
    size_t n = 0;
    for (size_t i = 0; c && i < LIMIT_SERVE_JOBS; i++)
        n += waits(&c->jobs[i]) ? c->jobs[i].runner.text.len : 0;
    return n;
}

static size_t waiting_bytes_of(const struct serve_shared *all, uid_t user)
{
    size_t n = 0;
    for (size_t i = 0; i < all->places; i++)
        n += all->clients[i] && all->clients[i]->user == user ? waiting_bytes(all->clients[i]) : 0;
    return n;
}

/* Of the user who has most of them; NULL: all of his are being sent. */
static struct serve_job *oldest_of_most(const struct serve_shared *all)
{
    struct serve_job *oldest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < all->places; i++) {
        struct serve_client *c = all->clients[i];
        const size_t has = c ? waiting_bytes_of(all, c->user) : 0;
        oldest = has > most ? NULL : oldest;
        most = has > most ? has : most;
        for (size_t k = 0; has && has == most && k < LIMIT_SERVE_JOBS; k++) {
            struct serve_job *j = &c->jobs[k];
            if (waits(j) && !j->readers && serve_runner_over(&j->runner) &&
                (!oldest || j->ended_ns < oldest->ended_ns))
                oldest = j;
        }
    }
    return oldest;
}

/* Bytes and not results: one may be a word or 48 MiB. What is being sent stays. */
void serve_jobs_trim(struct serve_shared *all)
{
    struct serve_job *oldest = NULL;
    do {
        size_t n = 0;
        for (size_t i = 0; i < all->places; i++)
            n += waiting_bytes(all->clients[i]);
        oldest = n > LIMIT_SERVE_KEPT ? oldest_of_most(all) : NULL;
        if (oldest)
            serve_jobs_forget(oldest);
    } while (oldest);
}

/* A holder that says that there is no such session is believed. One that cannot be asked, or a policy that is broken, leaves it where it is. */
static enum serve_close close_end(const struct serve_job *j, bool ended)
{
    return ended ? SERVE_CLOSE_ENDED
           : j->runner.status != 0 && j->runner.status != SERVE_STATUS_NEVER_RAN
               ? SERVE_CLOSE_FAILED
               : SERVE_CLOSED;
}

/* What a command of sessions came to, in our own list. */
static void note_session(struct serve_client *c, const struct serve_job *j, uint64_t now_ns)
{
    const bool made = j->verb == SERVE_SESSION_NEW || j->verb == SERVE_SESSION_FORK;
    /* one that was ended may have made its session before that: its client gave it up */
    const bool ended = j->runner.kill_ns || j->runner.killed;
    struct serve_session *new =
        made && (ended || j->runner.status == 0) ? serve_sessions_add(c, j->session, now_ns) : NULL;
    if (new)
        new->unwanted = ended;
    if (j->verb == SERVE_SESSION_CLOSE)
        serve_sessions_closed(c, j->session, close_end(j, ended));
    struct serve_session *s = j->verb == SERVE_SESSION_RUN || serve_verb_files(j->verb)
                                  ? serve_sessions_find(c, j->session, now_ns)
                                  : NULL;
    if (!s)
        return;
    s->called_ns = now_ns;
    /* where the runner was killed its word is lacking: the next call tells */
    s->over = s->over || j->runner.session_over;
}

static uint64_t leaves_by(const struct serve_job *j)
{
    return j->ended_ns + LIMIT_SERVE_STOP_MS * CLOCK_NS_PER_MS;
}

static void tick(struct serve_client *c, struct serve_job *j, uint64_t now_ns)
{
    if (j->ended_ns) {
        if (j->stirred)
            serve_runner_take(
                &j->runner); /* it said that it is done, and its end comes after that */
        if (!serve_runner_over(&j->runner) && now_ns >= leaves_by(j))
            serve_runner_kill(&j->runner);
        if (!serve_runner_over(&j->runner) || j->readers)
            return;
        if (!j->kept || now_ns > j->ended_ns + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS)
            serve_jobs_forget(j);
        return;
    }
    if (j->stirred)
        serve_runner_take(&j->runner);
    if (serve_runner_ended(&j->runner)) {
        j->ended_ns = now_ns;
        c->all->rest_ns = now_ns + LIMIT_SERVE_REST_US * 1000;
        serve_measure_end(c, j, now_ns);
        note_session(c, j, now_ns);
        serve_jobs_trim(c->all);
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

void serve_jobs_release(struct serve_client *c, uint64_t now_ns)
{
    if (now_ns < c->all->rest_ns)
        return;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used && c->jobs[i].ended_ns)
            serve_runner_release(&c->jobs[i].runner);
}

static uint64_t heard_from(const struct serve_client *c, const struct serve_job *j)
{
    return j->started_ns + (c->config->elicits ? 0 : LIMIT_SERVE_QUIET_MS * CLOCK_NS_PER_MS);
}

bool serve_jobs_heard(const struct serve_client *c, const struct serve_job *j, uint64_t now_ns)
{
    return now_ns >= heard_from(c, j);
}

uint64_t serve_jobs_next(const struct serve_client *c, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        const struct serve_job *j = &c->jobs[i];
        if (!j->used)
            continue;
        const bool held = j->ended_ns && serve_runner_held(&j->runner);
        const uint64_t at = held                                            ? c->all->rest_ns
                            : j->ended_ns && !serve_runner_over(&j->runner) ? leaves_by(j)
                            : j->readers && j->ended_ns                     ? UINT64_MAX
                            : j->ended_ns
                                ? j->kept ? j->ended_ns + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS : 0
                            : !serve_jobs_heard(c, j, now_ns) ? heard_from(c, j)
                            : j->runner.kill_ns               ? j->runner.kill_ns
                                                              : j->deadline_ns;
        next = at < next ? at : next;
    }
    return next;
}
