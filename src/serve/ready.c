/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that wait, for all clients: one has no words until it gets a request, so it is nobody's before. They are there
 * from the first request on, and one that was taken is replaced when its request is under way. */
#include "serve/holding.h"

enum {
    QUICK_ENDS = 8
}; /* runners that end while they wait, one after the other: then none waits */

bool serve_ready_take(struct serve_shared *all, struct serve_runner *ret, const char *const *argv,
                      const void *input, size_t len)
{
    all->wants_ready = true;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        struct serve_runner *r = &all->ready[i];
        if (serve_runner_over(r))
            continue;
        struct err err = ERR_INIT;
        const bool taken = serve_runner_order(r, argv, input, len, &err) == 0;
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

/* One at a time, so that nobody waits for all of them. */
void serve_ready_tick(struct serve_shared *all)
{
    bool started = false;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        struct serve_runner *r = &all->ready[i];
        struct err err = ERR_INIT;
        if (!serve_runner_over(r)) {
            serve_runner_take(r);
            all->quick_ends += serve_runner_over(r);
        }
        if (serve_runner_over(r) && all->wants_ready && !all->draining && !started &&
            all->quick_ends < QUICK_ENDS) {
            serve_runner_done(r);
            started = true;
            if (serve_runner_start(r, all->config.cordon, &err) < 0)
                all->quick_ends++;
        }
    }
}

bool serve_ready_lacks(const struct serve_shared *all)
{
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        if (serve_runner_over(&all->ready[i]))
            return all->wants_ready && !all->draining && all->quick_ends < QUICK_ENDS;
    return false;
}

void serve_ready_done(struct serve_shared *all)
{
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        serve_runner_done(&all->ready[i]);
}
