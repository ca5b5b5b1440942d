/* SPDX-License-Identifier: Apache-2.0 */
/* The last lock: from here on the process can only make the calls of its table. The filter was
 * compiled at build time (filters/); here it is only loaded. One listener per filter chain: the
 * guest can never get another one (EBUSY), and the calls that would ask for it are denied anyway.
 *
 * Waits: poll in jail_seccomp_let_exec; the launcher's exec; FD_PATIENCE_MS; no jail (its supervisor, whose clock
 *          began earlier, has killed all of it before, unless it is gone itself)
 *        sys_listener_receive in jail_seccomp_let_exec; nobody: poll said that a call is there; at once; no jail */
#include "jail/inside.h"

#include "base/clock.h"
#include "jail/filter.h"
#include "sys/fd.h"
#include "sys/listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

enum { ROOM = 512 }; /* instructions of the longest table, and some */

int jail_seccomp_apply(const struct jail_spec *spec, int *ret_listener, struct err *err)
{
    const struct jail_filter *f = jail_filter_find(spec->filter);
    if (!f)
        return err_set(err, ERR_STATE, "there is no system call table '%s'", spec->filter);
    struct sock_filter cap[ROOM];
    struct sock_fprog prog = {f->len, (struct sock_filter *)f->insns};
    /* Where the address space is the limit, the supervisor sees each request for a large part of it, and so can
     * tell whether a failure was the limit's. A cgroup kills, and says so; but the kernel refuses a request that is larger
     * than the machine before any cgroup hears of it, so those for more than the whole limit are seen there, too. */
    if (f->n_over) {
        base_assert(f->len <= ROOM);
        jail_filter_bound(f, spec->limits.memory / (spec->memory_by_rlimit ? JAIL_MEMORY_SEEN : 1),
                          cap);
        prog.filter = cap;
    }
    *ret_listener = -1;
    if (!jail_filter_notifies(f)) { /* one listener per chain: this one leaves it to its children */
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0
                   ? err_sys(err, "load the system call table '%s'", spec->filter)
                   : 0;
    }
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
#ifdef CORDON_LAYER_SWITCHES
    if (spec->switches >> JAIL_SWITCH_COUNT & 1) /* simulates a kernel before 5.19 */
        flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
#endif
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
    if (fd < 0 && errno == EINVAL) /* before Linux 5.19: a signal may interrupt a pending call */
        fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                          &prog);
    if (fd < 0)
        return err_sys(err, "load the system call table '%s'", spec->filter);
    *ret_listener = fd;
    return 0;
}

bool jail_seccomp_notifies_exec(const struct jail_spec *spec)
{
    const struct jail_filter *f = jail_filter_find(spec->filter);
    return f && jail_filter_call(f, SYS_execve);
}

/* A signal that reaches the launcher between its call and our receive takes the call back (ENOENT); the launcher
 * makes it again when it goes on. Its death hangs the listener up instead. */
int jail_seccomp_let_exec(int listener, struct err *err)
{
    const uint64_t deadline = clock_now_ns() + FD_PATIENCE_MS * CLOCK_NS_PER_MS;
    /* A hint since Linux 6.6: wake the other side on this core, it has nothing else to do. */
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    for (uint64_t now = clock_now_ns(); now < deadline; now = clock_now_ns()) {
        union sys_notice in;
        struct pollfd p = {.fd = listener, .events = POLLIN};
        int there = poll(&p, 1, (int)((deadline - now) / CLOCK_NS_PER_MS));
        if (there == 0)
            break;
        if (there < 0 || !(p.revents & POLLIN))
            return err_set(err, ERR_MISSING, "the launcher died before the program ran");
        if (sys_listener_receive(listener, &in) < 0) {
            if (errno == ENOENT)
                continue;
            return err_sys(err, "receive the program's exec");
        }
        if (in.notif.data.nr != SYS_execve)
            return err_set(err, ERR_STATE, "system call %d where the exec was due",
                           in.notif.data.nr);
        if (sys_listener_answer(listener, in.notif.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE) == 0)
            return 0;
        if (errno != ENOENT)
            return err_sys(err, "let the program's exec pass");
    }
    return err_set(err, ERR_MISSING, "the launcher did not come to its exec " JAIL_TOO_LATE);
}
