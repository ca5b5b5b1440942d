/* A run over a child that another process made. The same loop as for a run of one's own; what differs is
 * that the dead are not ours to wait for: a pidfd kills, and the template reaps. A run of a pooled child is so
 * over when its pipes are empty, not when its memory is gone. */
#include "jail/child.h"
#include "jail/supervisor/running.h"

#include "base/clock.h"
#include "jail/filter.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* linux/pidfd.h of 6.13, first version; Debian 12's headers are older. */
struct pidfd_info_v0 {
    uint64_t mask, cgroup;
    uint32_t pid, rest[11];
};
#define PIDFD_GET_INFO_V0 _IOWR(0xFF, 11, struct pidfd_info_v0)

pid_t jail_pid_behind(int pidfd)
{
    char path[48], text[512];
    struct pidfd_info_v0 info = {.mask = 1};
    if (pidfd >= 0 && ioctl(pidfd, PIDFD_GET_INFO_V0, &info) == 0 && info.pid > 0)
        return (pid_t)info.pid; /* an older kernel writes it as text */
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    const char *at = pidfd >= 0 && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0
                         ? strstr(text, "Pid:")
                         : NULL;
    long pid = at ? strtol(at + 4, NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : 0;
}

/* Only tighter: what a child is locked with is the most that it can have. */
static void tighten(struct jail_limits *locked, const struct jail_limits *wish)
{
#define X(name)                                                                                    \
    if (wish->name && wish->name < locked->name)                                                   \
        locked->name = wish->name;
    JAIL_LIMITS(X)
#undef X
}

const struct jail_limits *jail_run_limits(const struct jail_run *run)
{
    return &run->spec.limits;
}

static void start_clocks(struct jail_run *run)
{
    run->go_ns = clock_now_ns();
    run->cpu_built_us = 0;
    run->cpu_built_us = jail_run_cpu_us(run);
    if (!jail_run_ended(run))
        jail_run_set_timer(run, run->go_ns, 0);
}

/* Not while the child only judges: a person may be asked between its verdict and GO, for as long as that takes. */
void jail_run_clock(struct jail_run *run)
{
    if (run->state == JAIL_RUN_LEASED)
        jail_run_watch_lease(run, false);
    start_clocks(run);
    if (!jail_run_is_leased(run) || jail_run_ended(run))
        return;
    run->deadline_ns = run->go_ns + (run->spec.limits.wall_ms + JAIL_BEHIND_MS) * CLOCK_NS_PER_MS;
    if (jail_child_deadline(run->fd[CONTROL], run->deadline_ns) < 0 &&
        errno == EAGAIN) /* nothing runs without it. An init that is gone is told by its socket */
        jail_run_force(run, JAIL_END_LOST);
}

static int watch_all(struct jail_run *run, struct err *err)
{
    run->fd[TIMER] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int r = run->fd[TIMER] < 0 ? err_sys(err, "timerfd") : 0;
    for (enum source s = CONTROL; s < SOURCES && r == 0; s++)
        if (s != WAKE || run->fd[s] >= 0) /* only a session has it */
            r = jail_run_watch(run, s, run->fd[s], err);
    return r;
}

/* What an end will be asked about it is looked up once now: /proc makes its files when they are first used. */
static void look_ahead(struct jail_run *run)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/status", (int)run->guest);
    run->status = run->guest > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (run->guest > 0) {
        (void)jail_run_peak_memory(run);
        jail_notify_expect(run->guest);
    }
}

void jail_run_watch_lease(struct jail_run *run, bool time)
{
    struct err err = ERR_INIT;
    struct stat owner;
    bool session = run->lease_guest < 0; /* then what is killed at the end is the guest itself */
    jail_run_enter(run, JAIL_RUN_RUNNING);
    run->watch.only = session ? run->guest : 0;
    if (watch_all(run, &err) < 0) { /* nothing runs that is not watched */
        jail_run_force(run, JAIL_END_LOST);
        return;
    }
    start_clocks(run);
    /* As root we may become whoever the guest is outside: the owner of its file system. */
    if (geteuid() == 0 && run->files >= 0 && fstat(run->files, &owner) == 0 && owner.st_uid != 0)
        run->id = (struct jail_identity){.change = true, .uid = owner.st_uid, .gid = owner.st_gid};
    if (time)
        look_ahead(run);
    fd_close(fd_take(&run->lease_guest));
    fd_close(fd_take(&run->lease_rest));
}

static int take_over(struct jail_run *run, struct jail_child *c, const struct jail_adopt *a,
                     struct err *err)
{
    run->watch.filter = jail_filter_find(c->filter);
    if (!run->watch.filter)
        return err_set(err, ERR_STATE, "no system call table '%s'", c->filter);
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    int r = run->epoll < 0 ? err_sys(err, "epoll") : jail_run_watch(run, CHANNEL, c->channel, err);
    if (r == 0 && c->session)
        r = jail_family_join(&run->family, c, err);
    if (r == 0 && a->input >= 0 && c->in >= 0)
        r = jail_feed_join(&run->feed, a->input, c->in, run->epoll, FEED, err);
    if (r < 0)
        run->feed.to = -1;
    return r;
}

int jail_run_adopt(struct jail_child *child, const struct jail_adopt *a, struct jail_run **ret_run,
                   struct err *err)
{
    struct jail_run *run = calloc(1, sizeof *run);
    if (!run)
        return err_set(err, ERR_MEMORY, "no memory");
    jail_run_empty(run);
    jail_spec_init(&run->spec);
    run->spec.kind = JAIL_KIND_CHILD;
    run->spec.limits = child->limits;
    tighten(&run->spec.limits, &a->limits);
    run->sink = a->sink;
    run->channel = child->channel;
    run->out.memory_enforced_by = "rlimit";
    run->out.layers = child->layers;
    int r = take_over(run, child, a, err);
    if (r < 0) {
        jail_run_free(run); /* the child is still the caller's */
        return r;
    }
    run->fd[CONTROL] = fd_take(&child->control);
    run->fd[OUT] = fd_take(&child->out);
    run->fd[ERR] = fd_take(&child->err);
    run->fd[LISTENER] = run->watch.listener = fd_take(&child->listener);
    run->fd[WAKE] = fd_take(&child->wake);
    run->watch.family = child->session ? &run->family : NULL;
    fd_close(fd_take(&child->calls)); /* mapped */
    run->files = fd_take(&child->files);
    run->leased = child->session ? fd_take(&child->guest) : fd_take(&child->init);
    run->lease_guest = child->session ? -1 : fd_take(&child->guest);
    run->lease_rest = child->session ? fd_take(&child->init) : -1;
    if (run->feed.to < 0 && child->in >= 0) {
        fd_close(run->lease_rest);
        run->lease_rest = child->in;
    }
    child->in = -1;
    run->guest = jail_pid_behind(child->session ? run->leased : run->lease_guest);
    run->go_ns = clock_now_ns();
    run->state = JAIL_RUN_LEASED; /* it begins there */
    *ret_run = run;
    return 0;
}

void jail_run_release(struct jail_run *run, int exit_code)
{
    if (jail_run_ended(run))
        return;
    /* Its threads run on until the holder has it back and stops it: what is left of the call's own time will do. Where
     * the init is gone, so are they. */
    uint64_t now = clock_now_ns();
    if (run->deadline_ns < now + JAIL_BEHIND_MS * CLOCK_NS_PER_MS)
        (void)!jail_child_deadline(run->fd[CONTROL], now + JAIL_GIVE_BACK_MS * CLOCK_NS_PER_MS);
    jail_run_note_end(run, exit_code);
    fd_close(fd_take(&run->leased)); /* nothing is left for us to kill */
    jail_run_enter(run, JAIL_RUN_RELEASED);
}
