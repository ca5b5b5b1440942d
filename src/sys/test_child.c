/* SPDX-License-Identifier: Apache-2.0 */
/* Real children: one that ends, one that is stopped, one for which there is no pidfd. */
#include "base/clock.h"
#include "base/tap.h"
#include "sys/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child(int exit_code, bool stops)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (stops)
            raise(SIGSTOP);
        _exit(exit_code);
    }
    if (pid < 0)
        exit(1);
    return pid;
}

static void of_one(const char *how)
{
    int status = -1;
    tap_ok(sys_child_wait(child(7, false), 60000, &status) == 0 && WIFEXITED(status) &&
               WEXITSTATUS(status) == 7,
           "%s: a child that ends in time gives its status", how);
    const uint64_t began = clock_now_ns();
    pid_t stopped = child(7, true);
    int r = sys_child_wait(stopped, 100, &status), why = errno;
    tap_ok(r < 0 && why == ETIMEDOUT && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
           "%s: a child that is stopped is killed at the deadline", how);
    tap_ok(clock_now_ns() - began >= 100 * CLOCK_NS_PER_MS,
           "%s: a stopped child is not killed before the deadline", how);
    tap_ok(kill(stopped, 0) < 0 && errno == ESRCH, "%s: a stopped child that was killed is reaped",
           how);
}

int main(void)
{
    of_one("with a pidfd");
    struct rlimit none = {0, 0}, before;
    getrlimit(RLIMIT_NOFILE, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none);
    of_one("without a spare descriptor");
    setrlimit(RLIMIT_NOFILE, &before);
    int status = 42;
    tap_ok(sys_child_wait(getpid(), 1000, &status) < 0 && errno == ECHILD && status == 42,
           "what is no child of ours is not waited for");
    return tap_done();
}
