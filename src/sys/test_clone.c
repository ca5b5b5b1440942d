/* SPDX-License-Identifier: Apache-2.0 */
/* A process in our memory, on a stack of its own, and what it says on its way out. */
#include "base/tap.h"
#include "sys/clone.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[64 * 1024] __attribute__((aligned(16)));
static bool on_stack;

static int work(void *p)
{
    const char here = 0;
    on_stack = (uintptr_t)&here - (uintptr_t)stack < sizeof stack;
    ++*(volatile int *)p;
    return 42;
}

int main(void)
{
    int count = 0, status = 0;
    struct sys_clone_args args = {.flags = CLONE_VM | CLONE_VFORK,
                                  .exit_signal = SIGCHLD,
                                  .stack = (uint64_t)(uintptr_t)stack,
                                  .stack_size = sizeof stack};
    errno = ENOTTY;
    pid_t pid = sys_clone(&args, work, &count);
    tap_ok(pid > 0, "sys_clone makes a new process");
    tap_ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42,
           "a cloned process exits with what its function returned");
    tap_eq_int(count, 1, "a cloned process works in our memory");
    tap_ok(on_stack, "a cloned process runs on the stack it was given");
    pid = sys_clone_numbered(&args, getpid(), work, &count);
    tap_ok(pid > 0 && pid != getpid() && waitpid(pid, &status, 0) == pid && count == 2,
           "a pid that is taken, or not ours to choose, is replaced by another one");
    args.flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER; /* no such thing */
    tap_eq_int(sys_clone(&args, work, &count), -EINVAL,
               "a clone that the kernel refuses gives the error number");
    tap_ok(errno == ENOTTY && count == 2,
           "a refused clone leaves errno alone and does not run the function");
    return tap_done();
}
