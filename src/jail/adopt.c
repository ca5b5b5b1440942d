/* A run over a child that another process made. The same loop as for a run of one's own; what differs is
 * that the dead are not ours to wait for: a pidfd kills, and the template reaps. A run of a pooled child is so
 * over when its pipes are empty, not when its memory is gone. */
#include "jail/child.h"
#include "jail/running.h"

#include "base/clock.h"
#include "jail/filter.h"
#include "sys/fd.h"

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

void jail_run_clock(struct jail_run *run)
{
    run->go_ns = clock_now_ns();
    run->cpu_built_us = 0;
    run->cpu_built_us = jail_run_cpu_us(run);
    jail_run_arm(run, 1);
}

static int take_over(struct jail_run *run, struct jail_child *c, const struct jail_adopt *a,
                     struct err *err)
{
    run->fd[TIMER] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->fd[TIMER] < 0 || run->epoll < 0)
        return err_sys(err, "epoll, timerfd");
    run->watch.filter = jail_filter_find(c->filter);
    if (!run->watch.filter)
        return err_set(err, ERR_STATE, "no system call table '%s'", c->filter);
    int r = 0;
    const struct {
        enum source source;
        int fd;
    } rows[] = {{CONTROL, c->control},
                {OUT, c->out},
                {ERR, c->err},
                {LISTENER, c->listener},
                {TIMER, run->fd[TIMER]}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && r == 0; i++)
        r = jail_run_watch(run, rows[i].source, rows[i].fd, err);
    if (r == 0)
        r = jail_run_watch(run, CHANNEL, c->channel, err);
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
    run->files = fd_take(&child->files);
    /* As root we may become whoever the guest is outside: the owner of its file system. */
    struct stat owner;
    if (geteuid() == 0 && run->files >= 0 && fstat(run->files, &owner) == 0 && owner.st_uid != 0)
        run->id = (struct jail_identity){.change = true, .uid = owner.st_uid, .gid = owner.st_gid};
    run->adopted = child->session ? child->guest : child->init;
    run->guest = jail_pid_behind(child->guest);
    run->watch.only = child->session ? run->guest : 0;
    fd_close(child->session ? fd_take(&child->init) : fd_take(&child->guest));
    child->init = child->guest = -1;
    if (run->feed.to < 0)
        fd_close(child->in);
    child->in = -1;
    jail_run_clock(run);
    *ret_run = run;
    return 0;
}

void jail_run_release(struct jail_run *run, int exit_code)
{
    if (run->ended)
        return;
    jail_run_note_end(run, exit_code);
    run->reaped = run->ended = true; /* nothing is left for us to kill */
}
