/* SPDX-License-Identifier: Apache-2.0 */
/* A run over a child that a template made. The loop is that of a run whose jail the supervisor built. What differs is the
 * end: the supervisor kills by pidfd, and the template reaps. So a run of a pooled child is over when its pipes are empty,
 * before its memory is freed. */
#include "jail/child.h"
#include "jail/supervisor/running.h"

#include "base/clock.h"
#include "base/speed.h"
#include "jail/filter.h"
#include "sys/fd.h"
#include "sys/pidfd.h"

#include <stdlib.h>
#include <sys/epoll.h>

/* Only tighter: what a child is locked with is the most that it can have. */
static void tighten(struct jail_limits *locked, const struct jail_limits *wish)
{
#define X(name)                                                                                    \
    if (wish->name && wish->name < locked->name)                                                   \
        locked->name = wish->name;
    JAIL_LIMITS(X)
#undef X
}

const struct jail_limits *jail_run_limits(const struct jail_run *run)
{
    return &run->spec.limits;
}

static int take_over(struct jail_run *run, struct jail_child *c, const struct jail_adopt *a,
                     struct err *err)
{
    run->watch.filter = jail_filter_find(c->filter);
    if (!run->watch.filter)
        return err_set(err, ERR_STATE, "no system call table '%s'", c->filter);
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    int r = run->epoll < 0 ? err_sys(err, "epoll") : jail_run_watch(run, CHANNEL, c->channel, err);
    if (r == 0 && c->session)
        r = jail_family_join(&run->family, c, err);
    if (r == 0 && a->input >= 0 && c->in >= 0)
        r = jail_feed_join(&run->feed, a->input, c->in, run->epoll, FEED, err);
    if (r == 0 && a->by_line && run->feed.to >= 0)
        jail_feed_by_line(&run->feed);
    if (r < 0)
        run->feed.to = -1;
    return r;
}

int jail_run_adopt(struct jail_child *child, const struct jail_adopt *a, struct jail_run **ret_run,
                   struct err *err)
{
    struct jail_run *run = calloc(1, sizeof *run);
    if (!run)
        return err_set(err, ERR_MEMORY, "no memory");
    jail_run_empty(run);
    jail_spec_init(&run->spec);
    run->spec.kind = JAIL_KIND_CHILD;
    run->spec.limits = child->limits;
    tighten(&run->spec.limits, &a->limits);
    run->sink = a->sink;
    run->channel = child->channel;
    run->out.memory_enforced_by = "rlimit";
    run->out.layers = child->layers;
    int r = take_over(run, child, a, err);
    if (r < 0) {
        jail_run_free(run); /* the child is still the caller's */
        return r;
    }
    run->fd[CONTROL] = fd_take(&child->control);
    run->fd[OUT] = fd_take(&child->out);
    run->fd[ERR] = fd_take(&child->err);
    run->fd[LISTENER] = run->watch.listener = fd_take(&child->listener);
    run->fd[WAKE] = fd_take(&child->wake);
    run->watch.family = child->session ? &run->family : NULL;
    fd_close(fd_take(&child->calls)); /* mapped */
    run->files = fd_take(&child->files);
    run->leased = child->session ? fd_take(&child->guest) : fd_take(&child->init);
    run->lease_guest = child->session ? -1 : fd_take(&child->guest);
    run->lease_rest = child->session ? fd_take(&child->init) : -1;
    if (run->feed.to < 0 && child->in >= 0) {
        fd_close(run->lease_rest);
        run->lease_rest = child->in;
    }
    child->in = -1;
    run->guest = sys_pidfd_pid(child->session ? run->leased : run->lease_guest);
    run->go_ns = clock_now_ns();
    run->state = JAIL_RUN_LEASED; /* a leased run has no earlier state */
    if (!SPEED_WATCH_LATER)
        jail_run_watch_lease(run, true);
    *ret_run = run;
    return 0;
}

void jail_run_feed_line(struct jail_run *run)
{
    jail_feed_line(&run->feed);
}

void jail_run_release(struct jail_run *run, int exit_code)
{
    if (jail_run_ended(run))
        return;
    jail_run_resume(run);
    /* Its threads run on until the holder has it back and stops it: what is left of the call's own time will do. Where
     * the init is gone, so are they. */
    uint64_t now = clock_now_ns();
    if (run->deadline_ns < now + JAIL_BEHIND_MS * CLOCK_NS_PER_MS)
        (void)!jail_child_deadline(run->fd[CONTROL], now + JAIL_GIVE_BACK_MS * CLOCK_NS_PER_MS);
    jail_run_note_end(run, exit_code);
    fd_close(fd_take(&run->leased)); /* nothing is left for us to kill */
    jail_run_enter(run, JAIL_RUN_RELEASED);
}
