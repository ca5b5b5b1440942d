/* SPDX-License-Identifier: Apache-2.0 */
/* A leased child from LEASED to RUNNING, and its clocks. Watching all of its descriptors takes system calls that its
 * worker need not wait for, so they are made while the worker reads its job (supervisor/run.c, wait_for_events).
 * `make gains GAINS="--alone WATCH_LATER"`: a warm run takes 20 % longer where they are made before (2 CPUs, aarch64). */
#include "jail/child.h"
#include "jail/supervisor/running.h"

#include "base/clock.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void start_clocks(struct jail_run *run)
{
    run->go_ns = clock_now_ns();
    run->cpu_built_us = 0;
    run->cpu_built_us = jail_run_cpu_us(run);
    if (!jail_run_ended(run))
        jail_run_set_timer(run, run->go_ns, 0);
}

/* Not while the child only judges: a person may be asked between its verdict and GO, for as long as that takes. */
void jail_run_clock(struct jail_run *run)
{
    if (run->state == JAIL_RUN_LEASED)
        jail_run_watch_lease(run, false);
    start_clocks(run);
    if (!jail_run_is_leased(run) || jail_run_ended(run))
        return;
    run->deadline_ns = run->go_ns + (run->spec.limits.wall_ms + JAIL_BEHIND_MS) * CLOCK_NS_PER_MS;
    if (jail_child_deadline(run->fd[CONTROL], run->deadline_ns) < 0 &&
        errno == EAGAIN) /* nothing runs without it. An init that is gone is told by its socket */
        jail_run_force(run, JAIL_END_LOST);
}

static int watch_all(struct jail_run *run, struct err *err)
{
    run->fd[TIMER] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int r = run->fd[TIMER] < 0 ? err_sys(err, "timerfd") : 0;
    for (enum source s = CONTROL; s < SOURCES && r == 0; s++)
        if (s != WAKE || run->fd[s] >= 0) /* only a session has it */
            r = jail_run_watch(run, s, run->fd[s], err);
    return r;
}

/* What an end will be asked about it is looked up once now: /proc makes its files when they are first used. */
static void look_ahead(struct jail_run *run)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/status", (int)run->guest);
    run->status = run->guest > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (run->guest > 0) {
        (void)jail_run_peak_memory(run);
        jail_notify_expect(run->guest);
    }
}

void jail_run_watch_lease(struct jail_run *run, bool time)
{
    struct err err = ERR_INIT;
    struct stat owner;
    bool session = run->lease_guest < 0; /* then what is killed at the end is the guest itself */
    jail_run_enter(run, JAIL_RUN_RUNNING);
    run->watch.only = session ? run->guest : 0;
    if (watch_all(run, &err) < 0) { /* nothing runs that is not watched */
        jail_run_force(run, JAIL_END_LOST);
        return;
    }
    start_clocks(run);
    /* As root we may become whoever owns the guest's namespaces; its files say which id it has itself. */
    if (geteuid() == 0 && run->files >= 0 && fstat(run->files, &owner) == 0 && owner.st_uid != 0)
        run->id = (struct jail_identity){.change = true,
                                         .uid = jail_identity_owner(owner.st_uid),
                                         .gid = jail_identity_owner(owner.st_gid),
                                         .files_uid = owner.st_uid,
                                         .files_gid = owner.st_gid};
    if (time)
        look_ahead(run);
    run->body = fd_take(&run->lease_guest);
    fd_close(fd_take(&run->lease_rest));
}
