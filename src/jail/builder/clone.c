/* SPDX-License-Identifier: Apache-2.0 */
/* One way for the builder and its helpers to make a process.
 *
 * Waits: nanosleep in jail_build_clone; a slot among the tasks of a cgroup; 1000 times 0.1 ms; EAGAIN */
#include "jail/inside.h"

#include "sys/clone.h"

#include <errno.h>
#include <time.h>

pid_t jail_build_clone(struct jail_stage *st, struct sys_clone_args *args, pid_t number,
                       int (*run)(void *))
{
    /* The tightest limit on tasks is two, and until the supervisor has waited for it the helper that
     * gave up root is one of them: its slot is free in a moment. */
    for (int tries = 0;; tries++) {
        pid_t pid = sys_clone_numbered(args, number, run, st);
        if (pid != -EAGAIN || tries == 1000)
            return pid;
        st->refused++; /* ours, not the guest's: the kernel counts both */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}
