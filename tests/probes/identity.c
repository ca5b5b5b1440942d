/* SPDX-License-Identifier: Apache-2.0 */
/* Who the guest is: users, groups, capabilities, clocks, names, priorities. All of these belong to
 * root of some namespace; the guest is root of none. */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static void set_uid(int argc, char **argv)
{
    (void)argc, (void)argv;
    const uid_t uid = getuid(), fsuid = (uid_t)setfsuid((uid_t)-1);
    const gid_t gid = getgid();
    /* becoming who one is already is no change */
    tried("setuid 0", setuid(0) == 0 && geteuid() != uid ? 0 : -1);
    tried("setresuid 0", setresuid(0, 0, 0) == 0 && geteuid() != uid ? 0 : -1);
    tried("setreuid 0", setreuid(0, 0) == 0 && geteuid() != uid ? 0 : -1);
    tried("setgid 0", setgid(0) == 0 && getegid() != gid ? 0 : -1);
    tried("setresgid 0", setresgid(0, 0, 0) == 0 && getegid() != gid ? 0 : -1);
    tried("setgroups", setgroups(1, (gid_t[]){0}));
    tried("setresuid 65534", setresuid(65534, 65534, 65534));
    setfsuid(0);
    tried("setfsuid", (uid_t)setfsuid((uid_t)-1) != fsuid ? 0 : -1);
    gid_t groups[64];
    int n = getgroups(64, groups);
    for (int i = 0; i < n; i++)
        if (groups[i] != gid && groups[i] != 65534)
            reached("the guest is in group %u", groups[i]);
    none_may_have_succeeded();
}

static void capset_(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}}, mine[2] = {{0}};
    if (syscall(SYS_capget, &h, mine) < 0)
        broken("capget: %s", error_name(errno));
    if (mine[0].permitted | mine[0].effective | mine[0].inheritable | mine[1].permitted |
        mine[1].inheritable)
        reached("capabilities %x %x", mine[0].permitted, mine[1].permitted);
    struct __user_cap_data_struct inheritable[2] = {{0, 0, ~0u}, {0, 0, ~0u}};
    tried("capset all", syscall(SYS_capset, &h, all));
    tried("capset inheritable", syscall(SYS_capset, &h, inheritable));
    tried("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
    tried("securebits", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
    tried("no_new_privs off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    none_may_have_succeeded();
}

static void clock_(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct timespec now;
    struct timex t = {.modes = ADJ_TICK, .tick = 9000};
    clock_gettime(CLOCK_REALTIME,
                  &now); /* set to what it is: a probe that gets through does no harm */
    tried("clock_settime", clock_settime(CLOCK_REALTIME, &now));
    struct timeval tv = {now.tv_sec, now.tv_nsec / 1000};
    tried("settimeofday", settimeofday(&tv, NULL));
    tried("adjtimex", adjtimex(&t) < 0 ? -1 : 0);
    tried("wake alarm", timerfd_create(CLOCK_BOOTTIME_ALARM, TFD_CLOEXEC));
    none_may_have_succeeded();
}

static void names(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("sethostname", sethostname("owned", 5));
    tried("setdomainname", setdomainname("owned", 5));
    none_may_have_succeeded();
}

static void priority(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct sched_param fifo = {.sched_priority = 50};
    tried("setpriority -20", setpriority(PRIO_PROCESS, 0, -20));
    tried("SCHED_FIFO", sched_setscheduler(0, SCHED_FIFO, &fifo));
    tried("SCHED_RR", sched_setscheduler(0, SCHED_RR, &fifo));
    tried("ioprio RT", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } deadline = {48, 6, 0, 0, 0, 1000000, 10000000, 10000000};
    tried("SCHED_DEADLINE", syscall(SYS_sched_setattr, 0, &deadline, 0));
    none_may_have_succeeded();
}

/* Dumpable again, and another process invited to trace: what a core or a debugger needs. */
static void dumpable(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) < 0)
        broken("getrlimit: %s", error_name(errno));
    if (core.rlim_max > 1)
        reached("core files of %lu bytes are allowed", (unsigned long)core.rlim_max);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    raise(SIGQUIT); /* dumps core where it may; the test looks for a file and for the handler's mark
                     */
    broken("SIGQUIT came back");
}

const struct probe probes_identity[] = {
    {"set-uid", "root's user and group", "14,45", 1, "process", "benign-files", set_uid},
    {"capset", "capabilities by every door", "10,14", 1, "process", "benign-files", capset_},
    {"clock", "the machine's clock", "45", 1, "process", "benign-time", clock_},
    {"names", "the machine's name", "45", 1, "process", "benign-time", names},
    {"priority", "real-time priorities", "45", 3, "process", "benign-time", priority},
    {"core-dump", "a core file, or the machine's core handler", "30", 5, "process",
     "benign-signals", dumpable, .ends = "crashed 3"},
    {0},
};
