/* cordon-nest's life: the init above the guest. It reaps, reports, and takes everything down when
 * the guest or the supervisor is gone.
 *
 * Who may ask what: one WATCH message from the builder that exec'd us, and nothing after it. The
 * guest has no descriptor of this process, and signals from inside the pid namespace do not reach
 * its pid 1. Even a hostile WATCH could make it do no more than wait for the wrong pid: it has no
 * right outside its own namespaces. */
#include "jail/nest.h"

#include "base/clock.h"
#include "jail/spec.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct nest {
    int control;
    int quota; /* -1 without a quota'd file system */
    pid_t guest;
    uint64_t deadline_ns; /* behind the supervisor's own timer */
    uint64_t survivors;   /* processes that were alive, or not waited for, when the guest ended */
};

static void tell_exit(const struct nest *n, int status)
{
    struct rusage all = {0};
    struct statvfs fs = {0};
    getrusage(RUSAGE_CHILDREN, &all);
    bool counted = n->quota >= 0 && fstatvfs(n->quota, &fs) == 0;
    const uint64_t usage[] = {
        (uint64_t)all.ru_utime.tv_sec * 1000000 + (uint64_t)all.ru_utime.tv_usec,
        (uint64_t)all.ru_stime.tv_sec * 1000000 + (uint64_t)all.ru_stime.tv_usec,
        (uint64_t)all.ru_maxrss * 1024,
        n->survivors,
    };
    const uint64_t left[] = {fs.f_blocks, fs.f_bfree, fs.f_files, fs.f_ffree};
    char room[256];
    struct buf b = {.data = room, .cap = sizeof room, .max = sizeof room - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_EXITED);
    wire_put_int(&w, status);
    wire_put_uints(&w, usage, 4);
    wire_put_uints(&w, left, counted ? 4 : 0);
    if (wire_end(&w) == 0 && write(n->control, b.data, b.len) < 0)
        return; /* the supervisor is gone; so are we in a moment */
}

/* Ends every process below us and collects it, so that its time is in the usage we report. As pid 1
 * kill(-1) reaches exactly this run; without a pid namespace only our own children are ours to end.
 */
static void end_all(struct nest *n)
{
    kill(getpid() == 1 ? -1 : n->guest, SIGKILL);
    for (pid_t pid; (pid = waitpid(-1, NULL, 0)) > 0 || errno == EINTR;)
        n->survivors += pid > 0 && pid != n->guest;
}

static bool guest_ended(struct nest *n)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == n->guest) {
            end_all(n);
            tell_exit(n, status);
            return true;
        }
    return false;
}

/* Until the guest has ended, the supervisor is gone or the time behind its time is up. */
static int watch(struct nest *n, int signals)
{
    struct pollfd p[2] = {{.fd = n->control, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    while (!guest_ended(n)) {
        uint64_t now = clock_now_ns(), left = n->deadline_ns > now ? n->deadline_ns - now : 0;
        uint64_t wait_ms = left / CLOCK_NS_PER_MS + (left > 0);
        int ready = poll(p, 2, wait_ms > 1000000 ? 1000000 : (int)wait_ms);
        if (ready == 0 && left == 0) {
            end_all(n); /* the supervisor should have done this; it is stopped or stuck */
            tell_exit(n, SIGKILL);
            return 1;
        }
        if (ready > 0 && p[0].revents) { /* nothing is said here: it is the end of the supervisor */
            end_all(n);
            return 1;
        }
        struct signalfd_siginfo info;
        if (ready > 0 && read(signals, &info, sizeof info) < 0 && errno != EAGAIN && errno != EINTR)
            return 1;
    }
    return 0;
}

int jail_nest_main(int control, int quota)
{
    char frame[64];
    struct fd_packet packet = {.data = frame, .len = sizeof frame};
    struct wire_reader r;
    sigset_t child;

    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (fd_receive(control, &packet) <= 0 || wire_open(&r, frame, packet.len, NULL) < 0 ||
        r.type != WIRE_WATCH)
        return 1;
    struct nest n = {.control = control, .quota = quota, .guest = (pid_t)wire_get_int(&r)};
    n.deadline_ns = wire_get_uint(&r);
    if (wire_get_uint(&r) != JAIL_FULL)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    FD_AUTO signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals < 0 ? 1 : watch(&n, signals);
}
