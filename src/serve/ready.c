/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that wait, for all clients: one has no words until it gets a request, so it is nobody's before. It opens what a
 * run needs, where the last request was one. They are there from the first request on; one that was taken is replaced when
 * nothing runs, or when no other waits. */
#include "serve/holding.h"

enum {
    QUICK_ENDS = 8
}; /* runners that end while they wait, one after the other: then none waits */

bool serve_ready_take(struct serve_shared *all, struct serve_runner *ret, uid_t user,
                      const char *const *argv, const void *input, size_t len)
{
    all->wants_ready = true;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        struct serve_runner *r = &all->ready[i];
        if (serve_runner_over(r))
            continue;
        struct err err = ERR_INIT;
        const bool taken = serve_runner_order(r, user, argv, input, len, &err) == 0;
        if (taken) {
            *ret = *r;
            *r = SERVE_RUNNER_INIT;
            all->quick_ends = 0;
            return true;
        }
        serve_runner_done(r); /* it died while it waited */
        *r = SERVE_RUNNER_INIT;
    }
    return false;
}

static void look(struct serve_shared *all, struct serve_runner *r)
{
    if (serve_runner_over(r))
        return;
    serve_runner_take(r);
    all->quick_ends += serve_runner_over(r);
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

bool serve_ready_lacks(const struct serve_shared *all)
{
    size_t waiting = 0;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        waiting += !serve_runner_over(&all->ready[i]);
    return waiting < LIMIT_SERVE_READY && all->wants_ready && !all->draining &&
           all->quick_ends < QUICK_ENDS && (waiting == 0 || !anything_runs(all));
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
            look(all, &all->ready[i]);
        place = serve_runner_over(&all->ready[i]) ? &all->ready[i] : place;
    }
    if (!place || now_ns < all->rest_ns || !serve_ready_lacks(all))
        return;
    serve_runner_done(place);
    if (serve_runner_start(place, all->config.cordon, &err) < 0)
        all->quick_ends++;
    else if (all->expects_run)
        expect_run(all, place);
}

void serve_ready_done(struct serve_shared *all)
{
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        serve_runner_done(&all->ready[i]);
}
