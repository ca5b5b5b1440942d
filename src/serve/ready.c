/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that wait, for all clients: one has no words until it gets a request, so it is nobody's before. It opens what a
 * run needs, where the last request was one. They are there from the first request on; one that was taken is replaced when
 * nothing runs, or when no other waits. */
#include "serve/holding.h"

#include "base/clock.h"

/* Runners that end while they wait, one after the other: after so many there is a pause, and after each that follows one
 * twice as long. What ends them for long costs little then, and what is over is over for us, too. */
enum { QUICK_ENDS = 8, PAUSE_S = 1, PAUSE_MOST_S = 64 };

bool serve_ready_take(struct serve_shared *all, struct serve_runner *ret, uid_t user,
                      const char *const *argv, const void *input, size_t len)
{
    all->wants_ready = true;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        struct serve_runner *r = &all->ready[i];
        if (serve_runner_over(r))
            continue;
        struct err err = ERR_INIT;
        const bool taken = !serve_runner_stands_still(r) &&
                           serve_runner_order(r, user, argv, input, len, &err) == 0;
        if (taken) {
            *ret = *r;
            *r = SERVE_RUNNER_INIT;
            all->quick_ends = 0;
            return true;
        }
        serve_runner_done(r); /* it died while it waited, or would keep the request waiting */
        *r = SERVE_RUNNER_INIT;
    }
    return false;
}

static void note_end(struct serve_shared *all, uint64_t now_ns)
{
    uint64_t pause = PAUSE_S;
    if (++all->quick_ends < QUICK_ENDS)
        return;
    for (unsigned i = QUICK_ENDS; i < all->quick_ends && pause < PAUSE_MOST_S; i++)
        pause *= 2;
    all->pause_ns = now_ns + pause * CLOCK_NS_PER_S;
}

static void look(struct serve_shared *all, struct serve_runner *r, uint64_t now_ns)
{
    if (serve_runner_over(r))
        return;
    serve_runner_take(r);
    if (serve_runner_over(r))
        note_end(all, now_ns);
}

static bool anything_runs(const struct serve_shared *all)
{
    for (size_t i = 0; i < all->places; i++)
        for (size_t k = 0; all->clients[i] && k < LIMIT_SERVE_JOBS; k++)
            if (all->clients[i]->jobs[k].used && !all->clients[i]->jobs[k].ended_ns)
                return true;
    return false;
}

/* A run whose client tightens nothing. */
static void expect_run(const struct serve_shared *all, struct serve_runner *r)
{
    const struct serve_request plain = {.verb = SERVE_RUN};
    const struct serve_for nothing = {0};
    struct serve_words w = {.count = 0};
    serve_words(&w, &all->config, &plain, &nothing);
    serve_runner_expect(r, w.argv);
}

uint64_t serve_ready_next(const struct serve_shared *all)
{
    size_t waiting = 0;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        waiting += !serve_runner_over(&all->ready[i]);
    const bool lacks = waiting < LIMIT_SERVE_READY && all->wants_ready && !all->draining &&
                       (waiting == 0 || !anything_runs(all));
    return !lacks ? UINT64_MAX : all->pause_ns > all->rest_ns ? all->pause_ns : all->rest_ns;
}

/* Nothing is awaited of them but their end. */
void serve_ready_watch(const struct serve_shared *all, struct pollfd *p)
{
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        p[i] = (struct pollfd){.fd = all->ready[i].pidfd, .events = POLLIN};
}

/* One at a time, so that nobody waits for all of them. */
void serve_ready_tick(struct serve_shared *all, const struct pollfd *p, uint64_t now_ns)
{
    struct serve_runner *place = NULL;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        if (p[i].revents)
            look(all, &all->ready[i], now_ns);
        place = serve_runner_over(&all->ready[i]) ? &all->ready[i] : place;
    }
    if (!place || now_ns < serve_ready_next(all))
        return;
    serve_runner_done(place);
    if (serve_runner_start(place, all->config.cordon, &err) < 0)
        note_end(all, now_ns);
    else if (all->expects_run)
        expect_run(all, place);
}

void serve_ready_done(struct serve_shared *all)
{
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        serve_runner_done(&all->ready[i]);
}
