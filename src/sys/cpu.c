/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel moves a process at once when its CPU is taken out of its mask, and does not move it back when the mask is
 * given back. The mask is read anew each time, since its owner may have changed it; one that does not fit cpu_set_t
 * (more than a thousand CPUs) turns this off. */
#include "sys/cpu.h"

#include "base/speed.h"
#include "sys/raw.h"

#include <sched.h>
#include <sys/sysinfo.h>

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

bool sys_cpu_crowded(unsigned long load, int cpus)
{
    return load >> SI_LOAD_SHIFT >= (unsigned long)cpus;
}

void sys_cpu_spread_child(pid_t child)
{
    struct sysinfo machine = {0};
    cpu_set_t all;
    CPU_ZERO(&all);
    if (SPEED_OTHER_CPU && raw_syscall(SYS_sysinfo, (long)&machine, 0, 0, 0, 0) == 0 &&
        raw_syscall(SYS_sched_getaffinity, 0, sizeof all, (long)&all, 0, 0) >= 0 &&
        !sys_cpu_crowded(machine.loads[0], CPU_COUNT(&all)))
        sys_cpu_move_child(child);
}
