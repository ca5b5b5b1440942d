/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C at a terminal, and the signals that end us, during a call of a session. An interrupt goes to the guest's own process and
 * not to its threads' group: the guest is in a session of its own, which no key of the caller's terminal reaches.
 * Whether the guest heeds it is the guest's choice; the second one is ours.
 *
 * Waits: read in jail_run_on_keys; nobody: epoll said that it is there, and a signalfd of ours is non-blocking; at once; comes again */
#include "jail/supervisor/running.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

int jail_run_heed_keys(struct jail_run *run, int fd, struct err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = KEYS};
    run->keys = fd;
    return epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? err_sys(err, "epoll") : 0;
}

static bool is_second(const struct jail_run *run, uint64_t now)
{
    return run->interrupted_ns && now - run->interrupted_ns < JAIL_AGAIN_MS * CLOCK_NS_PER_MS;
}

void jail_run_on_keys(struct jail_run *run)
{
    struct signalfd_siginfo info;
    const uint64_t now = clock_now_ns();
    if (read(run->keys, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo != SIGINT || is_second(run, now) ||
        syscall(SYS_pidfd_send_signal, run->leased, SIGINT, NULL, 0) < 0) {
        run->out.stopped_by = (int)info.ssi_signo;
        jail_run_stop(run);
        return;
    }
    run->interrupted_ns = now;
}
