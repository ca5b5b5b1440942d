/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's epoll watches, and its one timer. */
#include "jail/supervisor/running.h"

#include "base/clock.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

int jail_run_watch(struct jail_run *run, enum source s, int fd, struct err *err)
{
    /* The eventfd is for the whole family and is never read: each write is one event. */
    struct epoll_event e = {.events = s == WAKE ? EPOLLIN | EPOLLET : EPOLLIN, .data.u32 = s};
    return epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? err_sys(err, "epoll") : 0;
}

void jail_run_arm(struct jail_run *run, uint64_t ns)
{
    struct itimerspec t = {
        .it_value = {(time_t)(ns / CLOCK_NS_PER_S), (long)(ns % CLOCK_NS_PER_S)}};
    timerfd_settime(run->fd[TIMER], 0, &t, NULL);
}

/* On how many processors the guest can be at the same time. */
static uint64_t at_once(const struct jail_run *run)
{
    const struct jail_limits *l = &run->spec.limits;
    uint64_t tasks = 1 + l->threads + l->processes;
    cpu_set_t mine;
    if (tasks == 1)
        return 1;
    /* more than fit the set: as many as there are tasks */
    uint64_t cores =
        sched_getaffinity(0, sizeof mine, &mine) == 0 ? (uint64_t)CPU_COUNT(&mine) : tasks;
    return cores < tasks ? cores : tasks;
}

/* No ticking: the timer is set to the first moment at which a limit can have been reached. CPU time
 * grows at most by one second a second and core. */
void jail_run_set_timer(struct jail_run *run, uint64_t now, uint64_t used_us)
{
    uint64_t wall_end = run->go_ns + run->spec.limits.wall_ms * CLOCK_NS_PER_MS;
    uint64_t used = used_us * 1000, cpu_limit = run->spec.limits.cpu_ms * CLOCK_NS_PER_MS;
    if (used >= cpu_limit) {
        jail_run_force(run, JAIL_END_CPU);
        return;
    }
    if (now >= wall_end) {
        jail_run_force(run, JAIL_END_WALL);
        return;
    }
    uint64_t to_cpu = (cpu_limit - used) / at_once(run) + CLOCK_NS_PER_MS;
    uint64_t to_wall = wall_end - now;
    jail_run_arm(run, to_cpu < to_wall ? to_cpu : to_wall);
}
