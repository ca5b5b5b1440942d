/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel moves a process at once when its CPU is taken out of its mask, and does not move it back when the mask is
 * given back. The mask is read anew each time, since its owner may have changed it; one that does not fit cpu_set_t
 * (more than a thousand CPUs) turns this off.
 *
 * Waits: read in read_loadavg; /proc; at once; an error */
#include "sys/cpu.h"

#include "base/speed.h"
#include "sys/raw.h"

#include <fcntl.h>
#include <sched.h>

void sys_cpu_move_child(pid_t child)
{
    unsigned here = 0;
    cpu_set_t all, others;
    CPU_ZERO(&all); /* the kernel fills in only what it has */
    if (raw_syscall(SYS_getcpu, (long)&here, 0, 0, 0, 0) < 0 ||
        raw_syscall(SYS_sched_getaffinity, child, sizeof all, (long)&all, 0, 0) < 0)
        return;
    others = all;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) &&
        raw_syscall(SYS_sched_setaffinity, child, sizeof others, (long)&others, 0, 0) == 0)
        raw_syscall(SYS_sched_setaffinity, child, sizeof all, (long)&all, 0, 0);
}

/* "0.20 0.18 0.12 2/80 11206": two of eighty want to run. */
bool sys_cpu_crowded(const char *loadavg, int cpus)
{
    int runnable = 0;
    for (int spaces = 0; *loadavg && spaces < 3; loadavg++)
        spaces += *loadavg == ' ';
    for (; *loadavg >= '0' && *loadavg <= '9' && runnable <= cpus; loadavg++)
        runnable = runnable * 10 + (*loadavg - '0');
    return runnable == 0 || runnable > cpus;
}

static void read_loadavg(int proc, char *text, size_t size)
{
    const long fd = raw_syscall(SYS_openat, proc, (long)"loadavg", O_RDONLY | O_CLOEXEC, 0, 0);
    const long n = fd < 0 ? -1 : raw_syscall(SYS_read, fd, (long)text, (long)size - 1, 0, 0);
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        raw_syscall(SYS_close, fd, 0, 0, 0, 0);
}

void sys_cpu_spread_child(int proc, pid_t child)
{
    char loadavg[64];
    cpu_set_t all;
    CPU_ZERO(&all);
    read_loadavg(proc, loadavg, sizeof loadavg);
    if (SPEED_OTHER_CPU &&
        raw_syscall(SYS_sched_getaffinity, 0, sizeof all, (long)&all, 0, 0) >= 0 &&
        !sys_cpu_crowded(loadavg, CPU_COUNT(&all)))
        sys_cpu_move_child(child);
}
