/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's output on its way to somebody who may not read. The sink never waits; what it could not pass on it
 * holds, and the loop comes back to it when the other side can take more. So the clock, `cordon stop` and the
 * guest's own end are heard whoever reads. A sink that holds as much as it may is given no more: the guest's pipe
 * fills, and the guest waits as it would wait for any slow reader, until its reader reads or its time is over.
 *
 * A stream that is not read is taken out of epoll, not masked: a closed pipe is reported whatever the mask. */
#include "jail/supervisor/running.h"

#include <sys/epoll.h>

/* One reader may have both streams by one descriptor, as that of `--events` has: it is watched once, and what the reader took may have been
 * of either. */
static bool is_shared(const struct jail_run *run)
{
    return run->sink.onward[JAIL_STDOUT] == run->sink.onward[JAIL_STDERR];
}

static enum jail_stream other(enum jail_stream stream)
{
    return stream == JAIL_STDOUT ? JAIL_STDERR : JAIL_STDOUT;
}

/* Whether the descriptor of STREAM is watched. */
static bool is_watched(const struct jail_run *run, enum jail_stream stream)
{
    return run->held[stream] != JAIL_HELD_NONE ||
           (is_shared(run) && run->held[other(stream)] != JAIL_HELD_NONE);
}

static int watch_for_space(struct jail_run *run, enum jail_stream stream, bool on)
{
    struct epoll_event e = {.events = EPOLLOUT,
                            .data.u32 = stream == JAIL_STDOUT ? ONWARD_OUT : ONWARD_ERR};
    return epoll_ctl(run->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, run->sink.onward[stream], &e);
}

static int read_guest(struct jail_run *run, enum jail_stream stream, bool on)
{
    enum source s = stream == JAIL_STDOUT ? OUT : ERR;
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = s};
    return run->fd[s] < 0
               ? 0
               : epoll_ctl(run->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, run->fd[s], &e);
}

static void pass_on(struct jail_run *run, enum jail_stream stream)
{
    if (!run->sink.pass_on ||
        jail_run_ended(run)) /* at the end the sink's owner passes on what is left */
        return;
    const bool watched = is_watched(run, stream);
    enum jail_held before = run->held[stream], now = run->sink.pass_on(run->sink.ctx, stream);
    int r = 0;
    run->held[stream] = now;
    if (watched != is_watched(run, stream))
        r = watch_for_space(run, stream, !watched);
    if (r == 0 && (before == JAIL_HELD_FULL) != (now == JAIL_HELD_FULL))
        r = read_guest(run, stream, now != JAIL_HELD_FULL);
    if (r < 0) /* nothing runs that is not watched */
        jail_run_force(run, JAIL_END_LOST);
}

void jail_run_pass_on(struct jail_run *run, enum jail_stream stream)
{
    pass_on(run, stream);
    if (is_shared(run))
        pass_on(run, other(stream));
}
