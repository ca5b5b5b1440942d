/* SPDX-License-Identifier: Apache-2.0 */
/* How a job ended is told by its exit status, which `cordon` promises; what it printed is not read. */
#include "serve/holding.h"

/* Whether our word was what ended it. A run may have come to its own end before that met it: its status tells, and the
 * audit says the same. Other work has no status for it, and no end on record. */
static bool was_cancelled(const struct serve_job *job)
{
    const struct serve_runner *r = &job->runner;
    const bool runs = job->verb == SERVE_RUN || job->verb == SERVE_SESSION_RUN,
               own_end = runs && r->done && r->status != SERVE_STATUS_STOPPED;
    return (job->cancelled || r->kill_ns) && !own_end;
}

static enum serve_end end_of(const struct serve_job *job)
{
    const struct serve_runner *r = &job->runner;
    if (r->flooded)
        return SERVE_END_CRASHED;
    if (was_cancelled(job))
        return SERVE_END_CANCELLED;
    if (r->killed) /* it may have told of output before, and of no result */
        return SERVE_END_CRASHED;
    if (r->status == 0)
        return SERVE_END_OK;
    if (r->status == SERVE_STATUS_LIMIT)
        return SERVE_END_LIMIT;
    if (r->status == SERVE_STATUS_NEVER_RAN)
        return SERVE_END_NEVER_RAN;
    return r->text.len ? SERVE_END_ERROR : SERVE_END_CRASHED;
}

void serve_measure_end(struct serve_client *c, const struct serve_job *job, uint64_t now_ns)
{
    serve_figures_end(&c->all->figures, job->verb, end_of(job), now_ns - job->started_ns);
}

static void add(const struct serve_client *c, struct serve_moment *m)
{
    m->clients += !c->gone && !c->metrics;
    for (size_t i = 0; i < SERVE_PLACES; i++)
        m->asks += c->asks[i].state != SERVE_FREE && !c->metrics;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        m->running += c->jobs[i].used && !c->jobs[i].ended_ns && !c->metrics;
        m->kept += c->jobs[i].used && c->jobs[i].ended_ns && c->jobs[i].kept;
    }
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++)
        m->sessions += serve_session_lives(&c->sessions[i]);
}

int serve_measure_write(const struct serve_shared *all, const struct buf *tail, struct buf *out)
{
    struct serve_moment m = {.draining = all->draining};
    for (size_t i = 0; i < all->places; i++)
        if (all->clients[i])
            add(all->clients[i], &m);
    const int r = serve_figures_write(&all->figures, &m, out);
    return r < 0 || !tail->len ? r : buf_add(out, tail->data, tail->len);
}
