/* cordon-nest's life: take one plan, build the room, start the launcher, then be the init above the
 * guest: reap, report, and take everything down when the guest or the supervisor is gone.
 *
 * Who may ask what: the only message taken is one SPEC from the supervisor that cloned us, over the
 * descriptor it left us. The guest has no descriptor of this process. Signals from inside the pid
 * namespace do not reach its pid 1. Why each act is safe even if the SPEC were hostile: it can name
 * only what the user's own rights reach, because this process has no right outside its own namespaces. */
#include "jail/inside.h"

#include "base/clock.h"
#include "sys/fd.h"
#include "sys/kernel.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static char launcher_stack[128 * 1024] __attribute__((aligned(16)));

struct nest {
    int control, net;
    int quota; /* -1 without a quota'd file system */
    pid_t guest;
    uint64_t deadline_ns; /* behind the supervisor's own timer */
    uint64_t survivors;   /* processes that were alive, or not waited for, when the guest ended */
    const struct jail_spec *spec;
};

static int launcher_main(void *p)
{
    jail_launch(p);
}

/* The launcher shares our memory until it execs or dies, and we are asleep until then (CLONE_VFORK):
 * no page is copied, and the locks it puts on itself are its own, not ours. */
static pid_t start_launcher(struct jail_launch *l)
{
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (int)jail_ns_inner_flags(l->spec);
    return clone(launcher_main, launcher_stack + sizeof launcher_stack, flags, l);
}

static void tell_exit(const struct nest *n, int status)
{
    struct rusage all = {0};
    struct statvfs fs = {0};
    getrusage(RUSAGE_CHILDREN, &all);
    if (n->quota >= 0)
        fstatvfs(n->quota, &fs);
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
    wire_put_uints(&w, left, n->quota >= 0 ? 4 : 0);
    if (wire_end(&w) == 0 && write(n->control, b.data, b.len) < 0)
        return; /* the supervisor is gone; so are we in a moment */
}

/* Ends every process below us and collects it, so that its time is in the usage we report. As pid 1
 * kill(-1) reaches exactly this run; without a pid namespace only our own children are ours to end. */
static void end_all(struct nest *n)
{
    if (getpid() == 1)
        kill(-1, SIGKILL);
    else
        kill(n->guest, SIGKILL);
    for (pid_t pid; (pid = waitpid(-1, NULL, 0)) > 0 || errno == EINTR;)
        n->survivors += pid > 0 && pid != n->guest;
}

/* Until the guest has ended, the supervisor is gone or the time behind its time is up. */
static int watch(struct nest *n, int signals)
{
    struct pollfd p[2] = {{.fd = n->control, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    for (;;) {
        for (;;) {
            int status;
            pid_t pid = waitpid(-1, &status, WNOHANG);
            if (pid <= 0)
                break;
            if (pid == n->guest) {
                end_all(n);
                tell_exit(n, status);
                return 0;
            }
        }
        uint64_t now = clock_now_ns();
        int wait = n->deadline_ns > now
                       ? (int)((n->deadline_ns - now) / CLOCK_NS_PER_MS % 1000000000) + 1
                       : 0;
        int ready = poll(p, 2, wait);
        if (ready == 0 && clock_now_ns() >= n->deadline_ns) {
            end_all(n); /* the supervisor should have done this; it is stopped or stuck */
            tell_exit(n, SIGKILL);
            return 1;
        }
        if (p[1].revents) {
            struct signalfd_siginfo info;
            if (read(signals, &info, sizeof info) < 0 && errno != EAGAIN && errno != EINTR)
                return 1;
        }
        if (p[0].revents) { /* nothing is said here after the SPEC: it is the end of the supervisor */
            end_all(n);
            return 1;
        }
    }
}

/* Namespaced switches that stand behind other layers. An old kernel or a container that hides them lacks
 * a second lock, not the first one. */
static void second_locks(const struct jail_spec *spec, int proc)
{
    if (spec->mode != JAIL_FULL)
        return;
    if (!jail_off(spec, uts)) /* the host's name is none of the guest's business */
        (void)!sethostname("cordon", 6);
    if (!jail_off(spec, pid)) /* the guest is pid 2: the maker of the network had it and is gone */
        (void)!fd_write_file(proc, "sys/kernel/ns_last_pid", "1");
    if (!jail_off(spec, pid)) /* no program out of anonymous memory, behind seccomp's execve */
        (void)!fd_write_file(proc, "sys/vm/memfd_noexec", "2");
}

static int build(struct nest *n, const struct jail_spec *spec, const int *bind_fds, struct err *err)
{
    if (spec->mode != JAIL_FULL)
        return 0;
    int r = jail_root_build(spec, bind_fds, &n->quota, err);
    if (r < 0) {
        err_layer(err, "filesystem");
        return r;
    }
    if (!jail_off(spec, net)) {
        r = jail_net_enter(n->net, err);
        if (r < 0)
            err_layer(err, "network");
    }
    return r;
}

static int run(struct nest *n, struct jail_spec *spec, int *fds, size_t nfds, int proc, struct err *err)
{
    struct jail_launch launch = {.spec = spec, .control = n->control, .proc = proc};
    int r;
    if (nfds != 3 + spec->nbinds)
        return err_set(err, ERR_FORMAT, "%zu descriptors came with the SPEC", nfds);
    r = build(n, spec, fds + 3, err);
    if (r < 0)
        return r;
    second_locks(spec, proc);
    memcpy(launch.stdio, fds, sizeof launch.stdio);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    FD_AUTO signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        return err_sys(err, "signalfd");
    n->deadline_ns = clock_now_ns() + (spec->limits.wall_ms + 1000) * CLOCK_NS_PER_MS;
    n->spec = spec;
    n->guest = start_launcher(&launch);
    if (n->guest < 0) {
        r = err_sys(err, "start the launcher in its own user namespace");
        err_layer(err, "process");
        return r;
    }
    for (size_t i = 0; i < nfds; i++)
        fd_close(fds[i]); /* the ends of the guest's streams are the guest's alone */
    fd_close(proc);
    return watch(n, signals);
}

int jail_nest_main(int control, int net)
{
    static char frame[LIMIT_FRAME];
    int fds[LIMIT_FRAME_FDS];
    struct fd_packet packet = {
        .data = frame, .len = sizeof frame, .fds = fds, .nfds = LIMIT_FRAME_FDS};
    struct nest n = {.control = control, .net = net, .quota = -1};
    struct err err = ERR_INIT;
    struct jail_spec spec;
    struct arena mem;

    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    arena_init(&mem, 2 * LIMIT_FRAME);
    if (fd_receive(control, &packet) <= 0)
        return 1; /* the supervisor is gone before it began */
    int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = proc < 0 ? err_sys(&err, "open /proc")
                     : jail_spec_decode(frame, packet.len, &mem, &spec, &err);
    if (r == 0)
        r = run(&n, &spec, fds, packet.nfds, proc, &err);
    if (r < 0)
        jail_report_failure(control, &err, "cordon-nest");
    return r ? 1 : 0;
}
