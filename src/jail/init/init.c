/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-nest's life: the init above the guest. It reaps, reports, and takes everything down when
 * the guest or the supervisor is gone. Plain system calls: there is no C library (prog/nest/start.c).
 *
 * Who may ask what: the builder that executes it gives three numbers, and it takes no message after that. The
 * guest has no descriptor of this process, and signals from inside the pid namespace do not reach
 * its pid 1. Even hostile numbers could make it do no more than wait for the wrong pid: it has no
 * right outside its own namespaces.
 *
 * Waits: read in watch; nobody: the signalfd is non-blocking; at once; comes again
 *        ppoll in watch; the guest, the supervisor; the run's time and a little more; everything is killed
 *        wait4 in wait_any; children; none (the kernel's own: it was killed); all are gone
 *        write in tell_exit; the supervisor: a packet that fits; at once; it is gone */
#include "jail/nest.h"

#include "base/clock.h"
#include "sys/raw.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>

static long wait_any(int *status, int options)
{
    long r;
    do
        r = raw_syscall(SYS_wait4, -1, (long)status, options, 0, 0);
    while (r == -EINTR);
    return r;
}

static uint64_t micro(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static uint64_t now_ns(void)
{
    struct timespec t = {0};
    raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void tell_exit(const struct jail_nest *n, int status)
{
    struct rusage all = {0};
    struct statfs fs = {0};
    raw_syscall(SYS_getrusage, RUSAGE_CHILDREN, (long)&all, 0, 0, 0);
    bool counted = n->quota >= 0 && raw_syscall(SYS_fstatfs, n->quota, (long)&fs, 0, 0, 0) == 0;
    const uint64_t usage[] = {micro(&all.ru_utime), micro(&all.ru_stime),
                              (uint64_t)all.ru_maxrss * 1024, n->survivors};
    const uint64_t left[] = {fs.f_blocks, fs.f_bfree, fs.f_files, fs.f_ffree};
    char storage[256];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_EXITED);
    wire_put_int(&w, status);
    wire_put_uints(&w, usage, 4);
    wire_put_uints(&w, left, counted ? 4 : 0);
    if (wire_end(&w) == 0) /* if the supervisor is gone, so are we in a moment */
        raw_syscall(SYS_write, n->control, (long)b.data, (long)b.len, 0, 0);
}

/* Ends every process below us and collects it, so that its time is in the usage we report. As pid 1
 * kill(-1) reaches exactly this run; without a pid namespace only our own children are ours to end.
 */
static void end_all(struct jail_nest *n)
{
    raw_syscall(SYS_kill, raw_syscall(SYS_getpid, 0, 0, 0, 0, 0) == 1 ? -1 : n->guest, SIGKILL, 0,
                0, 0);
    for (long pid; (pid = wait_any(NULL, 0)) > 0;)
        n->survivors += pid != n->guest;
}

static bool guest_ended(struct jail_nest *n)
{
    int status = 0;
    long pid;
    while ((pid = wait_any(&status, WNOHANG)) > 0)
        if (pid == n->guest) {
            long next = wait_any(NULL, WNOHANG);
            n->survivors += next > 0;
            if (next != -ECHILD) /* without a child nobody is below us */
                end_all(n);
            tell_exit(n, status);
            return true;
        }
    return false;
}

/* Until the guest has ended, the supervisor is gone or the time behind its time is up. */
static int watch(struct jail_nest *n, int signals)
{
    struct pollfd p[2] = {{.fd = n->control, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    while (!guest_ended(n)) {
        uint64_t now = now_ns(), left = n->deadline_ns > now ? n->deadline_ns - now : 0;
        struct timespec wait = {(time_t)(left / CLOCK_NS_PER_S), (long)(left % CLOCK_NS_PER_S)};
        long ready = raw_syscall(SYS_ppoll, (long)p, 2, (long)&wait, 0, 0);
        if (ready == 0) {
            end_all(n); /* the supervisor should have done this; it is stopped or stuck */
            tell_exit(n, SIGKILL);
            return 1;
        }
        if (ready > 0 &&
            p[0].revents) { /* nothing is said here: the supervisor ended, or ends the run */
            end_all(n);
            return 1;
        }
        struct signalfd_siginfo info;
        long r = ready > 0 ? raw_syscall(SYS_read, signals, (long)&info, sizeof info, 0, 0) : 0;
        if (r < 0 && r != -EAGAIN && r != -EINTR)
            return 1;
    }
    return 0;
}

int jail_nest_watch(struct jail_nest *n)
{
    const uint64_t child = 1ULL << (SIGCHLD - 1); /* the kernel's set of signals */
    raw_syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (n->subreaper)
        raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&child, 0, sizeof child, 0);
    long signals =
        raw_syscall(SYS_signalfd4, -1, (long)&child, sizeof child, SFD_CLOEXEC | SFD_NONBLOCK, 0);
    return signals < 0 ? 1 : watch(n, (int)signals);
}
