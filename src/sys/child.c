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
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sys_child_tell(int status, char out[SYS_CHILD_TOLD])
{
    const bool killed = WIFSIGNALED(status);
    snprintf(out, SYS_CHILD_TOLD, "%s %d", killed ? "was killed by signal" : "ended with status",
             killed ? WTERMSIG(status) : WEXITSTATUS(status));
}

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

_Noreturn void sys_child_exec(const char *const *argv, const char *const *env, const int *fds,
                              int count, bool own_session, pid_t parent)
{
    int high[SYS_CHILD_FDS];
    sigset_t none;
    sigemptyset(&none);
    if (own_session)
        setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || count > SYS_CHILD_FDS)
        _exit(127);
    for (int i = 0; i < count;
         i++) /* first above what they become: none may lie in the way of another */
        high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, SYS_CHILD_FDS + 2);
    /* without one of them the program would read our input, or write to our output: it does not run then */
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0 && (high[i] < 0 || dup2(high[i], i) < 0))
            _exit(127);
    close_range((unsigned)count, ~0U, 0);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(argv[0], (char *const *)argv, (char *const *)env);
    _exit(127);
}
