/* SPDX-License-Identifier: Apache-2.0 */
/* The builder: pid 1 of the jail, cloned into its namespaces, in the supervisor's memory while that
 * waits. It builds the root, starts the launcher, lets its one exec pass, and then
 * executes cordon-nest, which from then on is the init above the guest: a small program with none
 * of the supervisor's memory. Executing it last keeps its start off the way to the guest's first
 * instruction.
 *
 *   1  network          started first, since it takes longest, and joined at 5
 *   2  namespaces       and the id map: nothing can be mounted before it
 *   3  private root     from descriptors
 *   4  for the launcher streams, session, folder, rlimits, Landlock's rules
 *   5  network joined
 *   6  launcher         locks itself, proves it, and waits in its exec; meanwhile the old root goes, and
 *                       the way to further user namespaces
 *   7  exec let pass    on registers alone, before any guest byte
 *   8  cordon-nest
 *
 * A worker of ours is executed after 2 and closes its locks itself when 5 is done (early.c); the builder
 * then makes the network itself.
 *
 * Waits: poll in next_word; the launcher; FD_PATIENCE_MS; the jail is not built
 *        read in next_word; nobody: poll said that it is there; at once; its word
 *        read in map_ids; the helper that cloned us; none (its end, and ours, is the supervisor's deadline); an error
 *        waitpid in *; the launcher; none (the kernel's own: it was killed); goes on
 *        write in *; /proc, or one byte to the supervisor; at once; goes on
 *        fd_send in *; the supervisor: a packet that fits; at once; an error */
#include "jail/inside.h"

#include "base/clock.h"
#include "base/speed.h"
#include "jail/nest.h"
#include "sys/clone.h"
#include "sys/cpu.h"
#include "sys/fd.h"
#include "sys/raw.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A namespaced switch that stands behind another layer. A container that hides it lacks a second
 * lock, not the first one. */
static void second_lock(const struct jail_spec *spec, int proc)
{
    /* One user namespace below this one, the guest's, and none below that: behind seccomp's clone and
     * unshare. The launcher is at work in our memory. */
    if (spec->mode != JAIL_FULL || spec->kind != JAIL_KIND_PROGRAM || jail_off(spec, user))
        return;
    long fd = raw_syscall(SYS_openat, proc, (long)"sys/user/max_user_namespaces",
                          O_WRONLY | O_CLOEXEC, 0, 0);
    if (fd < 0)
        return;
    raw_syscall(SYS_write, fd, (long)"1", 1, 0, 0);
    raw_syscall(SYS_close, fd, 0, 0, 0, 0);
}

/* A process of its own makes the network; not where a worker is executed early (net.c). */
static bool net_aside(const struct jail_stage *st)
{
    return st->worker < 0 && (SPEED_NET_ASIDE || jail_off(st->spec, net));
}

/* The id map. A block of ids is mapped by the process that cloned us, which may: it says when. */
static int map_ids(struct jail_stage *st)
{
    char word;
    if (!st->spec->ids)
        return jail_ns_no_setgroups(st->proc) < 0 ||
                       jail_ns_map_self(st->proc, 0, st->uid, 0, st->gid) < 0
                   ? -1
                   : 0;
    fd_close(st->mapped[1]);
    ssize_t n = read(st->mapped[0], &word, 1);
    fd_close(st->mapped[0]);
    return n == 1 ? 0 : -1;
}

static int build_namespaces(struct jail_stage *st)
{
    const struct jail_spec *spec = st->spec;
    struct err *err = &st->err;
    int r = net_aside(st) ? jail_net_start(st, err) : 0;
    if (r < 0) {
        err_layer(err, "network");
        return r;
    }
    jail_attest_own_rest(st->own_rest, st->proc);
    if (unshare((int)jail_ns_later_flags(spec)) < 0 || map_ids(st) < 0 ||
        /* the guest does not learn the host's name */
        (!jail_off(spec, uts) && sethostname(JAIL_HOSTNAME, sizeof JAIL_HOSTNAME - 1) < 0)) {
        r = err_sys(err, "the namespaces, and the id map of the jail's user namespace");
        err_layer(err, "process");
        return r;
    }
    if (st->worker >= 0 && (r = jail_early_start(st)) < 0)
        return r;
    if (spec->kind == JAIL_KIND_TEMPLATE && (r = jail_procfs_of_template(st, err)) < 0) {
        err_layer(err, "process");
        return r;
    }
    r = jail_root_build(spec, st->binds, &st->quota, err);
    if (r < 0)
        err_layer(err, "filesystem");
    return r;
}

/* What is the launcher's by inheritance; a worker that locks itself has it since it was cloned. */
static int equip(struct jail_stage *st)
{
    struct err *err = &st->err;
    if (pipe2(st->ready, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    if (st->stdio[0] < 0 && (st->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        return err_sys(err, "open /dev/null");
    int r = jail_fds_place(0, st->stdio, 3, NULL, 0, err);
    if (r < 0)
        return r;
    jail_apply_session(st->spec);
    const char *cwd = jail_off(st->spec, mount)              ? "/mnt"
                      : st->spec->kind == JAIL_KIND_TEMPLATE ? "/"
                                                             : st->spec->cwd;
    if (chdir(cwd) < 0) {
        r = err_sys(err, "enter %s", cwd);
        err_layer(err, "filesystem");
        return r;
    }
    if (!jail_off(st->spec, rlimits)) {
        r = jail_rlimits_apply(st->spec, err);
        if (r < 0) {
            err_layer(err, "resources");
            return r;
        }
    }
    return 0;
}

/* What the launcher finds ready, and last what is waited for. */
static int build_root(struct jail_stage *st)
{
    struct err *err = &st->err;
    int r = st->worker < 0 ? equip(st) : 0;
    if (r < 0)
        return r;
    if (st->spec->kind != JAIL_KIND_TEMPLATE && !jail_off(st->spec, landlock)) {
        r = jail_landlock_make(st->spec, st->binds, &st->ruleset, err);
        if (r < 0) {
            err_layer(err, "filesystem");
            return r;
        }
    }
    if (st->spec->mode == JAIL_FULL) {
        r = net_aside(st) ? jail_net_enter(st, err) : jail_net_here(st, err);
        if (r < 0)
            err_layer(err, "network");
    }
    return r;
}

/* The launcher's next word; 0 at the end of the pipe, ? when it died, L when nothing came in time. */
static char next_word(int pipe, int alive)
{
    char word = '?';
    struct pollfd p[2] = {{.fd = pipe, .events = POLLIN}, {.fd = alive, .events = POLLIN}};
    int said = poll(p, 2, FD_PATIENCE_MS);
    if (said <= 0 || !p[0].revents)
        return said == 0 ? 'L' : '?';
    ssize_t n = read(pipe, &word, 1);
    return n == 1 ? word : n == 0 ? 0 : '?';
}

/* What must be shut before the guest's first instruction, and nothing of it before the launcher's. 0, or
 * a negative errno. */
static int close_doors(const struct jail_stage *st)
{
    second_lock(st->spec, st->proc);
    return jail_root_leave_old(st->spec);
}

/* The launcher shares memory and descriptors with us, so the listener that it makes is ours too. It
 * says R when it is about to exec; after that the end of the pipe is the exec, and E its failure.
 */
static pid_t clone_launcher(struct jail_stage *st)
{
    static char stack[64 * 1024] __attribute__((aligned(16)));
    const struct jail_spec *spec = st->spec;
    struct sys_clone_args args = {
        .flags = CLONE_VM | CLONE_FILES | CLONE_PARENT_SETTID | jail_ns_inner_flags(spec),
        .parent_tid = (uint64_t)(uintptr_t)&st->launcher,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = sizeof stack,
    };
    /* A cgroup's tightest limit on tasks has no room for the maker of the network, and counts what it
     * refuses. */
    if (!spec->memory_by_rlimit)
        jail_net_done(st);
    if (spec->mode != JAIL_FULL || jail_off(spec, pid))
        return sys_clone(&args, jail_launch, st);
    /* The guest is pid 2. A template is not: its children are, and what it loaded may tell a fork by its
     * pid. */
    return sys_clone_numbered(&args, spec->kind == JAIL_KIND_TEMPLATE ? 100 : 2, jail_launch, st);
}

static int start_program(struct jail_stage *st, pid_t *ret_pid)
{
    struct err *err = &st->err;
    int r = 0;
    if (st->worker >= 0)
        return jail_early_finish(st, close_doors, ret_pid);
    const bool waits = jail_seccomp_notifies_exec(st->spec) && !jail_off(st->spec, seccomp);
    int left =
        waits ? 0
              : close_doors(st); /* its exec will not be held: so before the launcher is cloned */
    pid_t pid = clone_launcher(st);
    if (pid < 0) {
        errno = -pid;
        r = err_sys(err, "the launcher, in a user namespace of its own");
        err_layer(err, "process");
        return r;
    }
    *ret_pid = pid;
    sys_cpu_spread_child(st->proc, pid); /* we have work of our own meanwhile */
    if (waits)
        left = close_doors(st); /* with the launcher at work in our memory */
    jail_net_done(st);
    if (left < 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        *ret_pid = st->launcher = 0;
        r = err_set(err, ERR_SYS, "leave the host's root: %s", strerror(-left));
        err_layer(err, "filesystem");
        return r;
    }
    FD_AUTO alive = (int)syscall(SYS_pidfd_open, pid, 0);
    char word = next_word(st->ready[0], alive);
    fd_close(st->ready[1]); /* the launcher has its own table by now, or is dead */
    if (word == 'R') {
        if (waits)
            r = jail_seccomp_let_exec(st->listener, err);
        if (r == 0 && (word = next_word(st->ready[0], -1)) == 0)
            return 0;
    }
    if (st->err.code == 0)
        err_set(err, ERR_MISSING,
                word == 'L' ? "the launcher was not ready " JAIL_TOO_LATE
                            : "the launcher died before the program ran");
    return st->err.code;
}

/* The file system stays readable by this descriptor after every process and mount of the run is gone. */
static int hand_over_files(struct jail_stage *st)
{
    char storage[16];
    struct buf frame = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &frame, WIRE_FILES);
    struct fd_packet p = {.data = storage, .fds = &st->quota, .nfds = 1};
    int r = wire_end(&w);
    p.len = frame.len;
    return r < 0 || fd_send(st->control[1], &p) < 0 ? err_sys(&st->err, "hand over the files") : 0;
}

static int hand_over(struct jail_stage *st)
{
    char storage[64];
    struct buf frame = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &frame, WIRE_LISTENER);
    int r = wire_end(&w);
    struct fd_packet p = {
        .data = frame.data, .len = frame.len, .fds = &st->listener, .nfds = st->listener >= 0};
    if (r < 0 || fd_send(st->control[1], &p) < 0)
        return err_sys(&st->err, "hand over the listener");
    return st->spec->keep_files && st->quota >= 0 ? hand_over_files(st) : 0;
}

/* Everything cordon-nest needs is in its place before the supervisor is told that the program runs. From
 * that word on it works again, in the memory we still share: only plain calls after it, no errno. If the
 * exec fails we are dead, the guest with us, and the supervisor sees the end of the socket. */
static int exec_nest(struct jail_stage *st, pid_t guest)
{
    static char name[] = "cordon-nest";
    char words[JAIL_NEST_WORDS][24], *const env[] = {NULL};
    char *const argv[] = {name, words[JAIL_NEST_GUEST], words[JAIL_NEST_DEADLINE],
                          words[JAIL_NEST_SUBREAPER], NULL};
    /* A second behind the supervisor's timer at its latest: a worker's time starts only when it is told to go. */
    const uint64_t most_ms = st->spec->before_ms + st->spec->limits.wall_ms + 1000;
    uint64_t deadline = st->spec->kind == JAIL_KIND_TEMPLATE
                            ? UINT64_MAX
                            : clock_now_ns() + most_ms * CLOCK_NS_PER_MS;
    snprintf(words[JAIL_NEST_GUEST], sizeof *words, "%d", (int)guest);
    snprintf(words[JAIL_NEST_DEADLINE], sizeof *words, "%llu", (unsigned long long)deadline);
    snprintf(words[JAIL_NEST_SUBREAPER], sizeof *words, "%d", st->spec->mode != JAIL_FULL);
    int control = fcntl(st->control[1], F_DUPFD_CLOEXEC, 16);
    int nest = fcntl(st->nest, F_DUPFD_CLOEXEC, 16);
    int started = fcntl(st->started[1], F_DUPFD_CLOEXEC, 16);
    int quota = st->quota < 0 ? -1 : fcntl(st->quota, F_DUPFD_CLOEXEC, 16);
    if (control < 0 || nest < 0 || started < 0 || dup2(control, JAIL_NEST_CONTROL) < 0 ||
        (quota >= 0 && dup2(quota, JAIL_NEST_QUOTA) < 0))
        return err_sys(&st->err, "hand over the descriptors");
    if (quota < 0)
        fd_close(JAIL_NEST_QUOTA);
    for (int i = 0; i < 3; i++) /* the guest's streams are the guest's alone */
        fd_close(i);
    raw_syscall(SYS_write, started, (long)"S", 1, 0, 0);
    raw_syscall(SYS_execveat, nest, (long)"", (long)argv, (long)env, AT_EMPTY_PATH);
    raw_syscall(SYS_exit_group, 1, 0, 0, 0, 0);
    return ERR_SYS;
}

int jail_build(void *p)
{
    struct jail_stage *st = p;
    pid_t guest = 0;
    int r = st->spec->mode == JAIL_FULL ? build_namespaces(st) : 0;
    if (r == 0)
        r = build_root(st);
    if (r == 0)
        r = start_program(st, &guest);
    if (r == 0)
        r = hand_over(st);
    if (r == 0)
        (void)exec_nest(st, guest); /* comes back only when it failed */
    if (guest > 0) {                /* nothing of it may go on without an init above it */
        kill(guest, SIGKILL);
        while (waitpid(guest, NULL, 0) < 0 && errno == EINTR)
            ;
        st->launcher = 0;
    }
    return 1;
}
