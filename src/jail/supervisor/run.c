/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a run seen from outside: prepare (binds, cgroup, streams), spawn, then carry output,
 * answer notifications and keep time until cordon-nest says how it ended. One epoll descriptor
 * holds everything, so that one loop can hold many runs.
 *
 * Waits: read in on_timer; nobody: the timerfd is non-blocking; at once; comes again
 *        epoll_wait in wait_for_events; the run; its timer, one of the descriptors: wall and CPU time; it is
 *          ended
 *        fd_receive in on_control; nobody: epoll said that it is there; at once; comes again */
#include "jail/supervisor/running.h"

#include "base/clock.h"
#include "base/fit.h"
#include "base/speed.h"
#include "jail/filter.h"
#include "sys/fd.h"
#include "sys/kernel.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- preparing ---- */

void jail_run_empty(struct jail_run *run)
{
    *run =
        (struct jail_run){.cgroup = JAIL_CGROUP_NONE,
                          .family = JAIL_FAMILY_NONE,
                          .feed.to = -1,
                          .epoll = -1,
                          .files = -1,
                          .body = -1,
                          .leased = -1,
                          .channel = -1,
                          .keys = -1,
                          .lease_guest = -1,
                          .lease_rest = -1,
                          .status = -1,
                          .watch = {.listener = -1, .limits = &run->spec.limits, .out = &run->out}};
    for (int s = 0; s < SOURCES; s++)
        run->fd[s] = -1;
}

/* A caller's own `ulimit -v` holds for the run, too (sys/rlimit.h). Where that is lower, all of it is the limit, and told as it. */
static void heed_own_limit(struct jail_limits *l)
{
    struct rlimit own;
    if (getrlimit(RLIMIT_AS, &own) < 0 || own.rlim_max >= l->memory + l->space)
        return;
    if (own.rlim_max < l->memory)
        l->memory = own.rlim_max;
    l->space = own.rlim_max - l->memory;
}

/* What bounds memory. `auto` takes a cgroup where it is free (version 2: born in it) or needed
 * (more than one process: no rlimit counts them together), else the address space of the one
 * process. */
static int choose_memory(struct jail_run *run, enum jail_memory_by by, struct err *err)
{
    bool many = run->spec.limits.processes > 0;
    bool want =
        !jail_off(&run->spec, cgroup) &&
        (by == JAIL_MEMORY_CGROUP || (by == JAIL_MEMORY_AUTO && (many || jail_cgroup_unified())));
    if (want) {
        struct err why = ERR_INIT;
        int r = jail_janitor_start(&run->janitor, &why);
        if (r == 0)
            r = jail_cgroup_make(&run->spec.limits, &run->janitor, &run->cgroup, &why);
        if (r == 0) {
            run->out.memory_enforced_by = run->cgroup.version == 2 ? "cgroup v2" : "cgroup v1";
            run->cpu_by_group = run->watch.in_group = true;
            return 0;
        }
        if (many || by == JAIL_MEMORY_CGROUP) {
            char cause[112]; /* with the path of a long cgroup, and the kernel's word behind it */
            fit_words(cause, sizeof cause, snprintf(cause, sizeof cause, "%s", why.msg));
            err_set(err, ERR_MISSING,
                    "no cgroup bounds the memory of %s; delegate one, or accept a limit per "
                    "process with --memory-by rlimit (%s)",
                    many ? "several processes" : "the run", cause);
            return err_layer(err, "resources");
        }
    }
    run->spec.memory_by_rlimit = true;
    run->out.memory_enforced_by = many ? "rlimit, per process" : "rlimit";
    return 0;
}

/* The variables of every program that name /tmp name the scratch folder's instead. */
static const char *scratch_variable(struct jail_run *run, const char *word)
{
    static const char *const moved[JAIL_SCRATCH_ENV] = {"PWD=/workspace",
                                                        "HOME=/tmp",
                                                        "TMPDIR=/tmp",
                                                        "XDG_CACHE_HOME=/tmp/.cache",
                                                        "MPLCONFIGDIR=/tmp/.cache/matplotlib",
                                                        "HF_HOME=/tmp/.cache/huggingface"};
    for (size_t i = 0; i < JAIL_SCRATCH_ENV; i++)
        if (strcmp(word, moved[i]) == 0) {
            const char *value = strchr(word, '=') + 1;
            snprintf(run->scratch_env[i], sizeof run->scratch_env[i], "%.*s%s%s",
                     (int)(value - word), word, run->scratch, value);
            return run->scratch_env[i];
        }
    return word;
}

static int use_scratch(struct jail_run *run, struct err *err)
{
    int r = run->janitor.pid ? 0 : jail_janitor_start(&run->janitor, err);
    if (r == 0)
        r = jail_scratch_make(&run->id, &run->janitor, run->scratch, sizeof run->scratch, err);
    if (r < 0)
        return r;
    snprintf(run->scratch_cwd, sizeof run->scratch_cwd, "%s/workspace", run->scratch);
    run->env = calloc(run->spec.envc + 1, sizeof *run->env);
    struct jail_bind *binds = calloc(run->spec.nbinds + 1, sizeof *binds);
    if (!run->env || !binds) {
        free(binds);
        return err_set(err, ERR_MEMORY, "no memory");
    }
    for (size_t i = 0; i < run->spec.envc; i++)
        run->env[i] = scratch_variable(run, run->spec.env[i]);
    memcpy(binds, run->spec.binds, run->spec.nbinds * sizeof *binds);
    binds[run->spec.nbinds] = (struct jail_bind){run->scratch, run->scratch, true};
    run->spec.env = run->env;
    run->spec.binds = binds;
    run->spec.nbinds++;
    run->spec.cwd = run->scratch_cwd;
    return 0;
}

static int control_socket(struct jail_run *run, int *ret_theirs, struct err *err)
{
    int sv[2], on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return err_sys(err, "socketpair");
    run->fd[CONTROL] = sv[0];
    *ret_theirs = sv[1];
    return setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0
               ? err_sys(err, "control socket")
               : 0;
}

/* Root for good no more. What needed it is prepared; the janitor, if any, was forked before. With the ids the kernel forgets
 * that somebody had us die with our parent, as cordond does: it is said again, and a parent that died meanwhile is noticed. */
static int step_down(struct jail_run *run, struct err *err)
{
    struct jail_identity *id = &run->id;
    int dies_with = 0;
    const pid_t parent = getppid();
    if (!id->change)
        return 0;
    int r = run->cgroup.version ? jail_janitor_double(&run->janitor, err) : 0;
    if (r < 0)
        return r;
    if (prctl(PR_GET_PDEATHSIG, &dies_with, 0, 0, 0) < 0)
        return err_sys(err, "the parent-death signal");
    /* the saved id is what jail_run_own_files takes for a moment */
    if (setgroups(0, NULL) < 0 ||
        setresgid(id->gid, id->gid, id->files_gid ? id->files_gid : id->gid) < 0 ||
        setresuid(id->uid, id->uid, id->files_uid ? id->files_uid : id->uid) < 0)
        return err_sys(err, "give up root");
    if (dies_with && (prctl(PR_SET_PDEATHSIG, dies_with, 0, 0, 0) < 0 || getppid() != parent))
        return err_set(err, ERR_STATE, "whoever started this run is gone");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* or the id maps cannot be written; undone once they are */
    id->change = false;
    return 0;
}

int jail_run_step_down(struct jail_run *run, struct err *err)
{
    int r = step_down(run, err);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return r;
}

/* What waits: needed before the program runs only where there is an input to feed it. */
static int open_events(struct jail_run *run, struct err *err)
{
    if (run->epoll >= 0)
        return 0;
    run->fd[TIMER] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    return run->fd[TIMER] < 0 || run->epoll < 0 ? err_sys(err, "epoll, timerfd") : 0;
}

static int open_input(struct jail_run *run, int from, int *ret_theirs, struct err *err)
{
    if (from < 0)
        return 0; /* the builder opens /dev/null */
    int r = open_events(run, err);
    return r < 0 ? r : jail_feed_start(&run->feed, from, run->epoll, FEED, ret_theirs, err);
}

/* The worker, if it can be executed before its root is there; it then needs no place in it. -1: it cannot.
 * In a cgroup whose tasks are counted the helper that gave up root may still have its place; a layer that
 * a test has turned off is looked at in the plain way; a masked /proc would lead back to what was mapped
 * before; a library that the host puts into every program is not for ours; and its listener is taken from
 * it, which Yama's strictest setting forbids to everybody. */
static int open_early(struct jail_run *run)
{
    struct jail_spec *spec = &run->spec;
    char yama[8];
    if (!SPEED_EARLY || !spec->locks_itself || spec->kind != JAIL_KIND_PROGRAM ||
        spec->mode != JAIL_FULL || spec->proc || spec->switches || run->cgroup.version ||
        spec->nbinds == 0 || !spec->binds[0].ours || access("/etc/ld.so.preload", F_OK) == 0 ||
        (fd_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", yama, sizeof yama) > 0 &&
         yama[0] == '3'))
        return -1;
    struct stat st;
    FD_AUTO fd = open(spec->binds[0].source, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (~st.st_mode & (S_IROTH | S_IXOTH)) != 0)
        return -1; /* the guest's id may not run it as it is; the mount for it is mapped */
    spec->binds++;
    spec->nbinds--;
    return fd_take(&fd);
}

/* What a run has open while its jail is built; all but the guest's ends of it are closed afterwards. */
struct starting {
    int nest, worker;             /* programs */
    int theirs;                   /* their end of the control socket */
    int fds[3 + LIMIT_BINDS + 1]; /* the guest's streams, then one for each bind */
    size_t nbinds;
};

static void close_starting(struct starting *s)
{
    for (size_t i = 0; i < 3 + s->nbinds; i++)
        fd_close(s->fds[i]);
    fd_close(s->theirs);
    fd_close(s->worker);
    fd_close(s->nest);
}

static int find_programs(struct starting *s, const char *nest, struct err *err)
{
    s->nest = open(nest, O_PATH | O_CLOEXEC);
    if (s->nest >= 0)
        return 0;
    err_sys(err, errno == ENOENT ? "cordon-nest is not where cordon is installed (%s)" : "open %s",
            nest);
    return err_layer(err, "process");
}

/* /dev/stderr opens a pipe again, by the rights of its owner: root made it, the guest is somebody else. */
static int let_reopen(const struct jail_run *run, int stream, struct err *err)
{
    const bool named = run->spec.proc || jail_spec_names_descriptors(&run->spec);
    if (stream < 0 || !named || !run->id.change)
        return 0;
    return fchown(stream, run->id.uid, run->id.gid) < 0 ? err_sys(err, "give a stream to the guest")
                                                        : 0;
}

static int open_streams(struct jail_run *run, struct starting *s, int input, struct err *err)
{
    int streams[2][2] = {{-1, -1}, {-1, -1}}, r = 0;
    for (int i = 0; i < 2 && r == 0; i++)
        if (pipe2(streams[i], O_CLOEXEC) < 0 || fcntl(streams[i][0], F_SETFL, O_NONBLOCK) < 0)
            r = err_sys(err, "pipe");
    run->fd[OUT] = streams[0][0];
    run->fd[ERR] = streams[1][0];
    if (r == 0)
        r = open_input(run, input, &s->fds[0], err);
    s->fds[1] = streams[0][1];
    s->fds[2] = streams[1][1];
    for (int i = 0; i < 3 && r == 0; i++)
        r = let_reopen(run, s->fds[i], err);
    return r < 0 ? r : control_socket(run, &s->theirs, err);
}

/* Everything that is needed before the builder starts, in the order in which each needs the one before it. */
static int prepare(struct jail_run *run, const struct jail_start *start, struct starting *s,
                   struct err *err)
{
    int r = find_programs(s, start->nest, err);
    if (r == 0)
        r = jail_identity_choose(&run->id, err);
    if (r == 0 && run->spec.kind == JAIL_KIND_TEMPLATE) {
        const uint64_t ids = jail_identity_of_template(&run->id);
        run->spec.ids = run->spec.alone ? 0 : ids; /* what is shared is mapped to one id */
    }
    if (r == 0 && run->spec.kind != JAIL_KIND_TEMPLATE)
        heed_own_limit(&run->spec.limits);
    if (r == 0)
        r = choose_memory(run, start->memory_by, err);
    if (r == 0 && run->spec.mode == JAIL_LANDLOCK)
        r = use_scratch(run, err);
    if (r == 0)
        s->worker = open_early(run);
    if (r == 0)
        r = jail_binds_open(&run->spec, &run->id, s->fds + 3, err);
    if (r == 0)
        s->nbinds = run->spec.nbinds;
    if (r == 0)
        r = jail_shared_open(&run->shared, &run->spec, s->fds + 3, err);
    if (r == 0)
        r = open_streams(run, s, start->input, err);
    if (r == 0 && start->step_down && !run->cgroup.version)
        r = step_down(run, err);
    return r;
}

/* 1: it was stopped before there was a guest. */
static int spawn(struct jail_run *run, const struct jail_start *start, const struct starting *s,
                 struct err *err)
{
    struct jail_spawn how = {.spec = &run->spec,
                             .id = &run->id,
                             .cgroup = run->cgroup.version ? &run->cgroup : NULL,
                             .nest = s->nest,
                             .control = {run->fd[CONTROL], s->theirs},
                             .stdio = {s->fds[0], s->fds[1], s->fds[2]},
                             .channel = start->channel,
                             .worker = s->worker,
                             .binds = s->fds + 3,
                             .stops = start->stops,
                             .nstops = start->nstops};
    struct jail_spawned spawned = {0};
    int r = jail_spawn(&how, &spawned, err);
    if (r == 0) {
        run->nest = spawned.nest;
        run->out.layers = spawned.layers;
        run->refused_built = spawned.refused;
        run->spawn_memory = spawned.memory;
        if (start->step_down && run->cgroup.version) /* only the way into it needed root */
            r = step_down(run, err);
    }
    if (jail_off(&run->spec, cgroup) && start->memory_by == JAIL_MEMORY_CGROUP)
        run->out.layers.on[JAIL_LAYER_RESOURCES] = false;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return r;
}

static int watch_run(struct jail_run *run, const struct jail_start *start, struct err *err)
{
    int r = open_events(run, err);
    run->go_ns = clock_now_ns();
    run->cpu_built_us = run->cpu_by_group ? jail_cgroup_cpu_us(&run->cgroup) : 0;
    for (enum source s = CONTROL; s < SOURCES && r == 0; s++)
        if (s != LISTENER && s != WAKE)
            r = jail_run_watch(run, s, run->fd[s], err);
    run->channel = start->channel_ours; /* the caller's: it is only waited for here */
    if (r == 0 && run->channel >= 0)
        r = jail_run_watch(run, CHANNEL, run->channel, err);
    if (r == 0 &&
        run->spec.kind != JAIL_KIND_TEMPLATE) /* those live until their holder is done with them */
        jail_run_arm(run, 1); /* the timer works out what comes first: wall or CPU time */
    return r;
}

static int begin(struct jail_run *run, const struct jail_start *start, struct err *err)
{
    struct starting s = {.nest = -1, .worker = -1, .theirs = -1, .fds = {-1, -1, -1}};
    int r = prepare(run, start, &s, err);
    if (r == 0)
        r = spawn(run, start, &s, err);
    const bool stopped = r > 0;
    if (r >= 0)
        r = watch_run(run, start, err);
    close_starting(&s);
    if (r < 0)
        return r;
    jail_run_enter(run, JAIL_RUN_RUNNING);
    if (stopped) {
        jail_run_stop(run);
        (void)jail_run_step(run, 0);
    }
    return 0;
}

int jail_run_new(const struct jail_spec *spec, const struct jail_start *start,
                 struct jail_run **ret_run, struct err *err)
{
    int r = jail_spec_check(spec, err);
    if (r < 0)
        return r;
    struct jail_run *run = calloc(1, sizeof *run);
    if (!run)
        return err_set(err, ERR_MEMORY, "no memory");
    jail_run_empty(run);
    run->spec = *spec;
    run->sink = start->sink;
    run->watch.filter = jail_filter_find(spec->filter);
    r = run->watch.filter ? begin(run, start, err)
                          : err_set(err, ERR_STATE, "no system call table '%s'", spec->filter);
    if (r < 0) {
        jail_run_free(run);
        return r;
    }
    *ret_run = run;
    return 0;
}

void jail_run_free(struct jail_run *run)
{
    if (!run)
        return;
    jail_run_reap(run);
    jail_shared_restore(&run->shared, &run->out);
    jail_feed_stop(&run->feed);
    jail_family_leave(&run->family);
    for (int s = 0; s < SOURCES; s++)
        fd_close(run->fd[s]);
    fd_close(run->epoll);
    fd_close(run->files);
    fd_close(run->body);
    fd_close(run->leased);
    fd_close(run->lease_guest);
    fd_close(run->lease_rest);
    fd_close(run->status);
    jail_run_clean_up(run);
    if (run->env) {
        free(run->env);
        free(run->spec.binds);
    }
    free(run->feed.data);
    free(run->out.violations);
    free(run);
}

/* ---- events ---- */

/* The builder's last word before it became cordon-nest. */
static void take_listener(struct jail_run *run, int fd)
{
    struct err why = ERR_INIT;
    run->fd[LISTENER] = run->watch.listener = fd;
    if (jail_run_watch(run, LISTENER, fd, &why) < 0)
        jail_run_force(run, JAIL_END_LOST);
}

static void take_exit(struct jail_run *run, struct wire_reader *r)
{
    uint64_t usage[4] = {0}, left[4] = {0};
    int status = (int)wire_get_int(r);
    (void)wire_get_uints(r, usage, 4);
    size_t quota = wire_get_uints(r, left, 4);
    struct jail_outcome *o = &run->out;
    o->cpu_us = usage[0] + usage[1];
    if (jail_run_is_leased(run))
        o->cpu_us -= o->cpu_us < run->cpu_built_us ? o->cpu_us : run->cpu_built_us;
    o->memory = usage[2];
    if (WIFSIGNALED(status)) {
        o->end = JAIL_END_SIGNAL;
        o->signal = WTERMSIG(status);
        o->exit_code = -o->signal;
    } else {
        o->end = JAIL_END_EXIT;
        o->exit_code = WEXITSTATUS(status);
    }
    uint64_t most = run->spec.limits.processes;
    if (most && usage[3] >= most && !run->cgroup.version)
        jail_violation_processes(o, usage[3], most);
    if (quota == 4)
        jail_violation_quota(o, &run->spec.limits, left[0] && left[1] == 0,
                             left[2] && left[3] == 0);
    run->end_ns = clock_now_ns();
    jail_run_enter(run, JAIL_RUN_EXITED);
}

static void on_control(struct jail_run *run)
{
    char frame[2048];
    int fd = -1;
    struct fd_packet p = {.data = frame, .len = sizeof frame, .fds = &fd, .nfds = 1};
    struct wire_reader r;
    bool good = fd_receive(run->fd[CONTROL], &p) == 1 && wire_open(&r, frame, p.len, NULL) == 0;
    /* Each is said once at most; anything else, and the silence of a killed cordon-nest, ends it.
     */
    if (good && r.type == WIRE_STARTED && run->guest == 0) {
        run->guest = p.sender;
        run->body = (int)syscall(SYS_pidfd_open, run->guest, 0);
        jail_notify_expect(run->guest);
    } else if (good && r.type == WIRE_LISTENER && run->fd[LISTENER] < 0) {
        if (fd >= 0)
            take_listener(run, fd_take(&fd));
    } else if (good && r.type == WIRE_FILES && run->files < 0) {
        run->files = fd_take(&fd);
    } else if (good && r.type == WIRE_EXITED) {
        take_exit(run, &r);
    } else {
        jail_run_force(run, JAIL_END_LOST);
    }
    fd_close(fd);
}

static void on_timer(struct jail_run *run)
{
    uint64_t ticks;
    if (read(run->fd[TIMER], &ticks, sizeof ticks) < 0)
        return;
    if (run->paused_ns)
        jail_run_resume(run);
    else
        jail_run_set_timer(run, clock_now_ns(), jail_run_cpu_us(run));
}

enum { EVENTS = ALSO_LAST + 3 }; /* the feed has two, and two may say stop */

/* The rest of a leased child is watched when its worker has its job and is at work (lease.c). */
static int wait_for_events(struct jail_run *run, struct epoll_event *events, int timeout_ms)
{
    if (run->state == JAIL_RUN_LEASED)
        jail_run_watch_lease(run, true);
    return jail_run_ended(run) ? 0 : epoll_wait(run->epoll, events, EVENTS, timeout_ms);
}

bool jail_run_step(struct jail_run *run, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    if (run->epoll < 0 || run->state == JAIL_RUN_CLOSED)
        return true;
    if (!jail_run_ended(run)) {
        int n = wait_for_events(run, events, timeout_ms);
        for (int i = 0; i < n && !jail_run_ended(run); i++) {
            enum source s = (enum source)events[i].data.u32;
            if (s < SOURCES && run->fd[s] < 0)
                continue;
            switch (s) {
            case CONTROL:
                on_control(run);
                break;
            case OUT:
            case ERR:
                (void)jail_run_output(run, s);
                break;
            case WAKE:
                jail_notify_handle(&run->watch);
                break;
            case LISTENER:
                if (events[i].events & EPOLLIN)
                    jail_notify_handle(&run->watch);
                else { /* the last process under the filter is gone */
                    jail_run_forget(run, s);
                    jail_run_forget(run, WAKE);
                }
                break;
            case TIMER:
                on_timer(run);
                break;
            case FEED:
                jail_feed_step(&run->feed);
                break;
            case CHANNEL:
                if (!run->sink.channel(run->sink.ctx))
                    epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->channel, NULL);
                break;
            case WORD:
                jail_run_stop(run);
                break;
            case KEYS:
                jail_run_on_keys(run);
                break;
            case ONWARD_OUT:
                jail_run_pass_on(run, JAIL_STDOUT);
                break;
            case ONWARD_ERR:
                jail_run_pass_on(run, JAIL_STDERR);
                break;
            default: /* ALSO to ALSO_LAST, however many there are */
                jail_run_on_also(run, events[i].data.u32 - ALSO);
                break;
            }
        }
    }
    if (!jail_run_ended(run))
        return false;
    jail_run_finish(run);
    jail_run_enter(run, JAIL_RUN_CLOSED);
    if (!jail_run_is_leased(
            run)) { /* whose result is waited for: it closes what it has afterwards */
        fd_close(run->epoll);
        run->epoll = -1;
    }
    return true;
}

int jail_run_heed(struct jail_run *run, int fd, struct err *err)
{
    /* Once: nobody takes the word away, and it is said to others too. */
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = WORD};
    return epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? err_sys(err, "epoll") : 0;
}

int jail_run_fd(const struct jail_run *run)
{
    return run->epoll;
}

int jail_run_files(const struct jail_run *run)
{
    return run->files;
}

void jail_run_own_files(const struct jail_run *run, bool now)
{
    if (!run->id.files_uid || geteuid() != run->id.uid)
        return; /* it has root's rights, or its own id owns them */
    setfsgid(now ? run->id.files_gid : run->id.gid);
    setfsuid(now ? run->id.files_uid : run->id.uid);
}

const struct jail_outcome *jail_run_outcome(const struct jail_run *run)
{
    return &run->out;
}
