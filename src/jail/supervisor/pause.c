/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that waits for a person: its process is stopped, and the time that passes is not the run's. Not even its threads run
 * meanwhile, or a program could ask and compute on for nothing. A pause has an end of its own: whoever should end it may
 * be dead or stopped, too. */
#include "jail/child.h"
#include "jail/supervisor/running.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

int jail_run_also(struct jail_run *run, int fd, bool (*ready)(void *ctx), void *ctx,
                  struct err *err)
{
    unsigned which = 0;
    while (which < JAIL_RUN_ALSO && run->also[which].ready)
        which++;
    if (which == JAIL_RUN_ALSO)
        return err_set(err, ERR_LIMIT, "a run watches no more than %d descriptors beside its own",
                       JAIL_RUN_ALSO);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = ALSO + which};
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        return err_sys(err, "epoll");
    run->also[which].fd = fd;
    run->also[which].ready = ready;
    run->also[which].ctx = ctx;
    return 0;
}

void jail_run_on_also(struct jail_run *run, unsigned which)
{
    if (!run->also[which].ready || run->also[which].ready(run->also[which].ctx))
        return; /* NULL: it was given up by an event before this one */
    if (run->epoll >= 0)
        epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->also[which].fd, NULL);
    run->also[which].ready = NULL;
}

/* A session's end is its guest's; of other children and of a run of our own there is a descriptor of the guest. */
static void signal_guest(const struct jail_run *run, int number)
{
    const int guest = run->body >= 0 ? run->body : run->leased;
    if (guest >= 0)
        syscall(SYS_pidfd_send_signal, guest, number, NULL, 0);
}

/* The init above a leased guest has a clock of its own. */
static void tell_init(struct jail_run *run, uint64_t deadline_ns)
{
    if (!jail_run_is_leased(run))
        return;
    run->deadline_ns = deadline_ns;
    if (jail_child_deadline(run->fd[CONTROL], deadline_ns) < 0)
        jail_run_force(run, JAIL_END_LOST);
}

void jail_run_pause(struct jail_run *run, uint64_t most_ms)
{
    const uint64_t now = clock_now_ns(), most_ns = most_ms * CLOCK_NS_PER_MS;
    if (run->paused_ns || jail_run_ended(run) || run->fd[TIMER] < 0 || most_ms == 0)
        return;
    signal_guest(run, SIGSTOP);
    run->paused_ns = now;
    jail_run_arm(run, most_ns);
    tell_init(run, now + most_ns + (run->spec.limits.wall_ms + JAIL_BEHIND_MS) * CLOCK_NS_PER_MS);
}

void jail_run_resume(struct jail_run *run)
{
    const uint64_t now = clock_now_ns();
    if (!run->paused_ns || jail_run_ended(run))
        return;
    run->go_ns += now - run->paused_ns;
    run->paused_ns = 0;
    tell_init(run, run->go_ns + (run->spec.limits.wall_ms + JAIL_BEHIND_MS) * CLOCK_NS_PER_MS);
    if (jail_run_ended(run))
        return;
    signal_guest(run, SIGCONT);
    jail_run_set_timer(run, now, jail_run_cpu_us(run));
}
