/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby raises signals only in the process that it has made its wake-up descriptors in, which it knows by its pid. It makes them once,
 * where the template loads; children and branches of sessions are given such descriptors under the same numbers (interp.c), and
 * the same pid: the one that a guest's process has, 2.
 *
 * `sleep` waits for these descriptors, by ppoll. A process that only computes has no such call, no second thread that
 * could wake it, and devices that are always ready in their place: it sleeps by the clock. A signal ends both. Whatever else
 * it waits for is a stream: said to be ready, it is read, and that waits.
 *
 * Ruby 3.1 holds its lock while it looks for room for an object. Where there is none it raises NoMemoryError and keeps the lock;
 * whoever catches that gives it back until it is as it was before, by a call that does nothing in a program of one ractor: it would
 * try for ever. So the lock is given back before the exception is raised.
 *
 * Waits: syscall in ppoll; whatever the guest waits for; its own time; the run's time limit
 *        clock_nanosleep in ppoll; the guest's own sleep; its own time; the run's time limit */
#undef _FORTIFY_SOURCE /* its header would define them, too */
#include "stand_in.h"

#include "jail/compute.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GUEST = 2 }; /* as jail/template/child_build.c has it */
static bool fixed;

void rb_stand_in_fix_pid(void)
{
    fixed = true;
}

pid_t getpid(void)
{
    return fixed ? GUEST : (pid_t)syscall(SYS_getpid);
}

static int ready_streams(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        const bool stream = fds[i].fd >= STDIN_FILENO && fds[i].fd <= STDERR_FILENO;
        fds[i].revents = stream ? fds[i].events : 0;
        ready += stream;
    }
    return ready;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    const struct timespec hour = {.tv_sec = 3600};
    if (!jail_computes_only()) {
        struct timespec left = timeout ? *timeout : hour; /* the kernel writes into it */
        return (int)syscall(SYS_ppoll, fds, count, timeout ? &left : NULL, mask, _NSIG / 8);
    }
    const int ready = ready_streams(fds, count);
    if (ready)
        return ready;
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, timeout ? timeout : &hour, NULL);
    return errno ? -1 : 0;
}

/* Of libruby's own, where its version has them. LEVEL: how often the lock is held then. */
extern const void *ruby_single_main_ractor __attribute__((weak));
extern void rb_vm_lock_enter_body(unsigned *level) __attribute__((weak));
extern void rb_vm_lock_leave_body(unsigned *level) __attribute__((weak));
_Noreturn void rb_memerror(void);

_Noreturn void rb_memerror(void)
{
    union {
        void *address;
        void (*call)(void);
    } own = {.address = dlsym(RTLD_NEXT, "rb_memerror")};
    unsigned level = 0;
    if (rb_vm_lock_enter_body && rb_vm_lock_leave_body && &ruby_single_main_ractor &&
        ruby_single_main_ractor) {
        rb_vm_lock_enter_body(&level); /* the only way to learn it */
        while (level)
            rb_vm_lock_leave_body(&level);
    }
    if (own.address)
        own.call();
    abort(); /* no such function, or it came back: neither can be */
}
