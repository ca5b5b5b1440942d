/* SPDX-License-Identifier: Apache-2.0 */
/* An empty network namespace takes the kernel as long as all the rest of the jail together, so it
 * is made by a process of its own while the builder builds the root. That process shares our memory
 * and descriptors but runs at the same time, so it keeps its hands off both: plain system calls, no
 * errno, and one descriptor that it leaves to us. Not where a worker was executed early: then the other
 * processor is the worker's, and the builder has time until that is loaded.
 *
 * `make gains GAINS="--alone NET_ASIDE"`: `cordon exec` takes 14 % longer without it (2 CPUs, aarch64).
 *
 * Waits: SYS_futex in jail_net_enter; the helper that makes the network; FD_PATIENCE_MS; no jail (its supervisor,
 *          whose clock began earlier, has killed all of it before, unless it is gone itself)
 *        wait4 in jail_net_done; that helper; none (the kernel's own: it was killed); goes on */
#include "jail/inside.h"

#include "base/clock.h"
#include "sys/clone.h"
#include "sys/cpu.h"
#include "sys/fd.h"
#include "sys/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A socket knows its namespace; its maker's folder in /proc would have to be built first. */
static int make_net(void *p)
{
    struct jail_stage *st = p;
    if (raw_syscall(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0) < 0)
        return 1;
    long s = raw_syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);
    long fd = s < 0 ? s : raw_syscall(SYS_ioctl, s, SIOCGSKNS, 0, 0, 0);
    if (s >= 0)
        raw_syscall(SYS_close, s, 0, 0, 0, 0);
    st->net = (int)fd;
    /* the kernel does the same at our end, which takes a while, or is somebody's SIGKILL */
    __atomic_store_n(&st->net_busy, 0, __ATOMIC_RELEASE);
    raw_syscall(SYS_futex, (long)&st->net_busy, FUTEX_WAKE, 1, 0, 0);
    return 0;
}

int jail_net_start(struct jail_stage *st, struct err *err)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    struct sys_clone_args args = {
        .flags = CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID,
        .exit_signal = SIGCHLD,
        .child_tid = (uint64_t)(uintptr_t)&st->net_busy,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = sizeof stack,
    };
    if (jail_off(st->spec, net))
        return 0;
    st->net = -1;
    st->net_busy = 1;
    pid_t pid = jail_build_clone(st, &args, 3, make_net); /* 2 is the guest's */
    if (pid < 0) {
        errno = -pid;
        return err_sys(err, "a process that makes the network");
    }
    st->net_maker = pid;
    sys_cpu_spread_child(st->proc, pid);
    return 0;
}

int jail_net_enter(struct jail_stage *st, struct err *err)
{
    if (jail_off(st->spec, net))
        return 0;
    const uint64_t until = clock_now_ns() + FD_PATIENCE_MS * CLOCK_NS_PER_MS;
    for (int busy; (busy = __atomic_load_n(&st->net_busy, __ATOMIC_ACQUIRE)) != 0;) {
        struct timespec step = {.tv_sec = 1};
        if (clock_now_ns() >= until)
            return err_set(err, ERR_MISSING, "no network namespace was made " JAIL_TOO_LATE);
        syscall(SYS_futex, &st->net_busy, FUTEX_WAIT, busy, &step, NULL, 0);
    }
    FD_AUTO fd = fd_take(&st->net);
    if (fd < 0)
        return err_set(err, ERR_MISSING,
                       "no empty network namespace can be made; see `cordon doctor`");
    return setns(fd, CLONE_NEWNET) < 0 ? err_sys(err, "enter the network namespace") : 0;
}

int jail_net_here(struct jail_stage *st, struct err *err)
{
    if (unshare(CLONE_NEWNET) < 0 ||
        (st->net = openat(st->proc, "self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
        return err_sys(err, "an empty network namespace");
    return 0;
}

void jail_net_done(struct jail_stage *st)
{
    if (st->net_maker > 0) { /* what it made is ours already; it only has to be gone */
        raw_syscall(SYS_kill, st->net_maker, SIGKILL, 0, 0, 0);
        raw_syscall(SYS_wait4, st->net_maker, 0, 0, 0, 0);
    }
    st->net_maker = 0;
}
