/* SPDX-License-Identifier: Apache-2.0 */
/* SIGSTOP may meet every process at every instant, also one that has two system calls left to do; waitpid has no
 * deadline of its own, and a pidfd, which can be polled, tells the end of a process and not that it is stopped. So
 * the deadline is for both. Where no descriptor is left for a pidfd, the child is looked at every millisecond.
 *
 * Waits: poll in sys_child_wait; the child; the caller's; the child is killed
 *        nanosleep in sys_child_wait; the child, where there is no pidfd; the caller's, by steps of 1 ms; the
 *          child is killed
 *        waitpid in sys_child_wait; the child; none (the kernel's own: it was killed); its status */
#include "sys/child.h"

#include "base/clock.h"
#include "sys/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int sys_child_wait(pid_t pid, uint64_t most_ms, int *ret_status)
{
    const uint64_t until = clock_now_ns() + most_ms * CLOCK_NS_PER_MS;
    FD_AUTO fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int status;
    bool in_time = true;
    for (;;) {
        uint64_t now = clock_now_ns();
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got < 0)
            return -1;
        if (got == pid)
            break;
        if (now >= until) {
            in_time = false;
            if (kill(pid, SIGKILL) < 0)
                return -1;
            while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                    return -1;
            break;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (fd >= 0)
            (void)!poll(&p, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
        else
            nanosleep(&(struct timespec){.tv_nsec = CLOCK_NS_PER_MS}, NULL);
    }
    if (ret_status)
        *ret_status = status;
    if (in_time)
        return 0;
    errno = ETIMEDOUT;
    return -1;
}
