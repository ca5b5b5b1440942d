/* SPDX-License-Identifier: Apache-2.0 */
/* A child that was moved starts on another CPU and may use all that it could before. */
#include "sys/cpu.h"

#include "base/tap.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child_that_sleeps(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

int main(void)
{
    cpu_set_t before, after, one;
    tap_ok(!sys_cpu_crowded("9.00 8.00 7.00 2/80 11206\n", 2) &&
               !sys_cpu_crowded("0.00 0.00 0.00 1/80 11206\n", 1),
           "a machine with a CPU for each process that wants to run is not crowded, whatever was "
           "before");
    tap_ok(sys_cpu_crowded("0.00 0.00 0.00 3/80 11206\n", 2) &&
               sys_cpu_crowded("0.00 0.00 0.00 99999999999999999999/80 1\n", 1024),
           "a machine is crowded when more processes want to run than there are CPUs");
    tap_ok(sys_cpu_crowded("", 2) && sys_cpu_crowded("0.00", 2) &&
               sys_cpu_crowded("0.00 0.00 0.00 x/80 1\n", 2) && sys_cpu_crowded("   0/0 1\n", 2),
           "where the kernel does not say how many want to run, nothing is moved");
    sched_getaffinity(0, sizeof before, &before);
    pid_t pid = child_that_sleeps();
    sys_cpu_move_child(pid);
    sched_getaffinity(pid, sizeof after, &after);
    tap_ok(CPU_EQUAL(&before, &after), "a moved child may use every CPU that it could use before");
    CPU_ZERO(&one);
    CPU_SET(CPU_COUNT(&before) ? sched_getcpu() : 0, &one);
    sched_setaffinity(pid, sizeof one, &one);
    sys_cpu_move_child(pid);
    sched_getaffinity(pid, sizeof after, &after);
    tap_ok(CPU_EQUAL(&one, &after), "a child that is bound to this CPU stays bound to it");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    /* One that runs already, or was just made, is elsewhere when the call returns: two that spin do not take turns. */
    pid = fork();
    if (pid == 0) {
        for (volatile unsigned turns = 0;;)
            turns++;
    }
    unsigned moved = 0, tries = 0;
    if (CPU_COUNT(&before) > 1)
        for (; tries < 200 && !moved; tries++) {
            sys_cpu_move_child(pid);
            char path[64], text[1024];
            snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
            FILE *f = fopen(path, "re");
            size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
            if (f)
                fclose(f);
            text[n] = 0;
            const char *at = strrchr(text, ')');
            int field = 2, cpu = -1;
            for (; at && *at && field < 39; at++)
                field += *at == ' ';
            if (at)
                cpu = (int)strtol(at, NULL, 10);
            moved = cpu >= 0 && cpu != sched_getcpu();
        }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (CPU_COUNT(&before) > 1)
        tap_ok(moved, "a child is moved away from this CPU");
    else
        tap_skip("a child is moved away from this CPU", "there is one CPU");
    return tap_done();
}
