/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ends: by itself, by a limit, because the caller wished so, or because a worker that
 * stays alive said that it is done. In every case all of it is killed first; what it wrote is then
 * still in the pipes, and nobody is left to add to it.
 *
 * Waits: read in jail_run_output; nobody: the pipe is non-blocking; at once; comes again
 *        poll in let_nest_collect; cordon-nest to end the others; COLLECT_MS; all are killed, and their time
 *          is not counted
 *        wait4 in jail_run_reap; the jail's init; none (the kernel's own: it was killed); reaped
 *        pread in *; nobody: /proc; at once; it counts as none */
#include "jail/child.h"
#include "jail/supervisor/running.h"

#include "base/clock.h"
#include "jail/filter.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void jail_run_forget(struct jail_run *run, enum source s)
{
    /* epoll forgets a closed descriptor by itself, unless another process has it too */
    if (jail_run_is_leased(run) && !jail_run_ended(run) && run->fd[s] >= 0)
        epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->fd[s], NULL);
    fd_close(run->fd[s]);
    run->fd[s] = -1;
}

#define COLLECT_MS 500

/* The time of processes that die with their pid namespace is counted nowhere. Where a run may have several and no
 * cgroup counts them, cordon-nest is told that it is over: it ends them, waits for them, and ends itself; what wait4
 * then tells of it is the time of all. */
static void let_nest_collect(const struct jail_run *run)
{
    struct pollfd gone = {.fd = run->fd[CONTROL]}; /* nothing but its end is waited for */
    if (!run->forced || run->state == JAIL_RUN_EXITED || run->spec.mode != JAIL_FULL ||
        gone.fd < 0 || !run->spec.limits.processes || run->cpu_by_group)
        return;
    if (shutdown(gone.fd, SHUT_WR) == 0)
        (void)!poll(&gone, 1, COLLECT_MS);
}

void jail_run_reap(struct jail_run *run)
{
    struct rusage used;
    if (run->leased >= 0) { /* its template waits for it */
        syscall(SYS_pidfd_send_signal, run->leased, SIGKILL, NULL, 0);
        fd_close(fd_take(&run->leased));
    }
    if (run->nest <= 0)
        return;
    let_nest_collect(run);
    kill(run->nest, SIGKILL); /* pid 1 of the jail: everything in it dies with it */
    /* Without a pid namespace the guest does not die with it. Once EXITED has come, cordon-nest has
     * waited for it, and its number may be somebody else's. */
    if (run->spec.mode != JAIL_FULL && run->guest > 0 && run->state != JAIL_RUN_EXITED)
        kill(run->guest, SIGKILL);
    while (wait4(run->nest, NULL, 0, &used) < 0) /* returns after the last process is gone */
        if (errno != EINTR)
            return;
    run->nest = 0;
    jail_spawn_done(run->spawn_memory);
    run->spawn_memory = NULL;
    uint64_t us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    uint64_t bytes = (uint64_t)used.ru_maxrss * 1024;
    if (run->forced && us > run->out.cpu_us)
        run->out.cpu_us = us;
    if (run->forced && bytes > run->out.memory)
        run->out.memory = bytes;
}

/* What clock_getcpuclockid gives, without its system call: whether there is such a process is told by the
 * clock itself. */
static clockid_t cpu_clock(pid_t pid)
{
    return (clockid_t)(~(unsigned)pid << 3 | 2);
}

uint64_t jail_child_cpu_us(pid_t guest)
{
    struct timespec t;
    if (guest <= 0 || clock_gettime(cpu_clock(guest), &t) < 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t jail_run_cpu_us(const struct jail_run *run)
{
    if (run->cpu_by_group)
        return jail_cgroup_cpu_us(&run->cgroup) - run->cpu_built_us;
    uint64_t us = jail_child_cpu_us(run->guest);
    return us > run->cpu_built_us ? us - run->cpu_built_us : 0;
}

uint64_t jail_run_peak_memory(const struct jail_run *run)
{
    char path[32], text[4096];
    ssize_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)run->guest);
    if (run->status >= 0)
        n = pread(run->status, text, sizeof text - 1, 0);
    else if (run->guest > 0)
        n = fd_read_file(AT_FDCWD, path, text, sizeof text);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, "VmHWM:");
    return at ? strtoull(at + 6, NULL, 10) * KIB : 0;
}

void jail_run_force(struct jail_run *run, enum jail_end why)
{
    if (jail_run_ended(run) || run->forced)
        return;
    run->forced = why;
    run->end_ns = clock_now_ns();
    run->out.memory = jail_run_peak_memory(run);
    run->out.cpu_us =
        jail_run_cpu_us(run); /* what dies with the namespace is counted nowhere later */
    jail_run_reap(run);
    jail_run_enter(run, JAIL_RUN_KILLED);
}

pid_t jail_run_guest(const struct jail_run *run)
{
    return run->guest > 0 ? run->guest : 0;
}

void jail_run_stop(struct jail_run *run)
{
    jail_run_force(run, JAIL_END_STOPPED);
}

void jail_run_lost(struct jail_run *run)
{
    jail_run_force(run, JAIL_END_LOST);
}

/* What a guest that ends by itself tells through exit_group and cordon-nest is looked up before it is
 * killed. Killed, not asked: it may have lied, and may go on working. */
void jail_run_note_end(struct jail_run *run, int exit_code)
{
    run->end_ns = clock_now_ns();
    run->out.end = JAIL_END_EXIT;
    run->out.exit_code = exit_code & 0xff;
    run->out.memory = jail_run_peak_memory(run);
    run->out.cpu_us = jail_run_cpu_us(run);
    if (run->guest > 0)
        jail_notify_last_look(&run->watch, run->guest);
    if (run->guest > 0 && exit_code)
        jail_notify_look_at_memory(&run->watch, run->guest);
}

/* It takes the kernel a while to take a process and its root apart, and it can do so beside what the
 * caller still has to do with the outcome. Not where we take a part of it away ourselves, or put one back. */
void jail_run_end_now(struct jail_run *run, int exit_code)
{
    if (jail_run_ended(run))
        return;
    jail_run_note_end(run, exit_code);
    if (run->nest > 0 && run->spec.mode == JAIL_FULL && run->janitor.pid == 0 &&
        run->shared.count == 0 && !jail_spec_layered(&run->spec)) { /* its files are read next */
        /* the guest would die of its init's death: sooner, since that is what takes long */
        if (run->body >= 0)
            syscall(SYS_pidfd_send_signal, run->body, SIGKILL, NULL, 0);
        kill(run->nest, SIGKILL); /* ours to wait for: the number is nobody else's */
        jail_run_enter(run, JAIL_RUN_DYING);
    } else {
        jail_run_reap(run);
        jail_run_enter(run, JAIL_RUN_KILLED);
    }
}

void jail_run_violation(struct jail_run *run, const char *layer, const char *rule,
                        const char *detail, const char *hint, uint64_t line)
{
    jail_violation_told(&run->out, layer, rule, detail, hint, line);
}

bool jail_run_output(struct jail_run *run, enum source s)
{
    static char chunk[65536];
    enum jail_stream stream = s == OUT ? JAIL_STDOUT : JAIL_STDERR;
    ssize_t n = read(run->fd[s], chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        jail_run_forget(run, s);
        return false;
    }
    run->out.bytes[stream] += (uint64_t)n;
    run->sink.bytes(run->sink.ctx, stream, chunk, (size_t)n);
    jail_run_pass_on(run, stream);
    if (run->out.bytes[0] + run->out.bytes[1] > run->spec.limits.flood)
        jail_run_force(run, JAIL_END_FLOOD);
    return true;
}

/* What is still in the pipes. Everybody who could write is dead, so this ends. */
static void drain(struct jail_run *run)
{
    for (enum source s = OUT; s <= ERR; s++)
        while (run->fd[s] >= 0 && run->out.bytes[0] + run->out.bytes[1] <= run->spec.limits.flood &&
               jail_run_output(run, s))
            ;
}

/* It was refused memory: such a program that failed, failed for that. */
static bool asked_too_much(const struct jail_outcome *o)
{
    for (size_t i = 0; i < o->violation_count; i++)
        if (strcmp(o->violations[i].rule, JAIL_RULE_MEMORY) == 0)
            return true;
    return false;
}

static bool ran_short(const struct jail_run *run)
{
    const struct jail_outcome *o = &run->out;
    const struct jail_limits *l = &run->spec.limits;
    return o->memory >= l->memory / 10 * 9 || asked_too_much(o) ||
           (run->spec.memory_by_rlimit && jail_memory_was_short(o->mapped, l));
}

/* The table of a worker reports each signal that the program sends to itself, so a SIGKILL that was not reported came from outside:
 * from the operator, or from the kernel because the machine has no memory left. Past its CPU time the kernel kills it for that. */
static bool was_killed_from_outside(const struct jail_run *run)
{
    const struct jail_outcome *o = &run->out;
    const bool reported = run->watch.filter && jail_filter_call(run->watch.filter, SYS_kill);
    return o->end == JAIL_END_SIGNAL && o->signal == SIGKILL && reported && !o->killed_itself &&
           o->cpu_us < run->spec.limits.cpu_ms * 1000;
}

/* What EXITED tells and the limits it may have met. */
static void judge_end(struct jail_run *run)
{
    struct jail_outcome *o = &run->out;
    if (run->cgroup.version) {
        uint64_t peak = jail_cgroup_peak(&run->cgroup);
        o->memory = peak > o->memory ? peak : o->memory;
        bool refused = jail_cgroup_refused(&run->cgroup) > run->refused_built;
        if (refused && run->spec.limits.processes)
            jail_violation_processes(o, run->spec.limits.processes, run->spec.limits.processes);
        else if (refused)
            jail_violation_add(o, "resources", "limit.threads", "a new thread was refused (EAGAIN)",
                               "start fewer at once, or ask for --threads N");
    }
    /* Version 2 kills the whole group at once, cordon-nest with it. */
    if (run->forced == JAIL_END_LOST && run->cgroup.version && jail_cgroup_oom_killed(&run->cgroup))
        run->forced = JAIL_END_MEMORY;
    if (run->forced) {
        o->end = run->forced;
        o->signal = SIGKILL;
        o->exit_code = -SIGKILL;
        return;
    }
    bool failed = o->end == JAIL_END_SIGNAL || (o->end == JAIL_END_EXIT && o->exit_code != 0);
    if (run->cgroup.version && failed && jail_cgroup_oom_killed(&run->cgroup))
        o->end = JAIL_END_MEMORY;
    else if (o->end == JAIL_END_SIGNAL && o->signal == SIGXCPU)
        o->end = JAIL_END_CPU;
    else if (failed && ran_short(run) && o->signal != SIGKILL && o->signal != SIGTERM)
        o->end = JAIL_END_MEMORY;
    o->killed_from_outside = was_killed_from_outside(run);
}

/* What the janitor removes; if somebody killed it, we do. */
void jail_run_clean_up(struct jail_run *run)
{
    if (!jail_janitor_finish(&run->janitor)) {
        for (int part = 0; part < JAIL_CGROUP_PARTS; part++)
            if (run->cgroup.parent[part] >= 0)
                jail_cgroup_remove(run->cgroup.parent[part], run->cgroup.name);
        if (run->scratch[0])
            jail_scratch_remove(run->scratch);
    }
    jail_cgroup_close(&run->cgroup);
}

/* What cordon-nest tells of a run of our own, unless the worker's word came first. */
static void look_at_files(struct jail_run *run)
{
    struct statvfs fs;
    if (run->files < 0 || fstatvfs(run->files, &fs) < 0)
        return;
    jail_violation_quota(&run->out, &run->spec.limits, fs.f_blocks && fs.f_bfree == 0,
                         fs.f_files && fs.f_ffree == 0);
}

void jail_run_finish(struct jail_run *run)
{
    jail_feed_stop(&run->feed);
    if (!run->end_ns)
        run->end_ns = clock_now_ns();
    /* After EXITED only cordon-nest is left, and dies while we do what has to be done anyway. After the
     * worker's word all that it wrote is in the pipes. */
    if (run->state != JAIL_RUN_EXITED && run->state != JAIL_RUN_DYING)
        jail_run_reap(run);
    drain(run);
    if (jail_run_is_leased(run) || run->state == JAIL_RUN_DYING)
        look_at_files(run);
    if (run->paused_ns)
        run->go_ns += run->end_ns - run->paused_ns;
    run->out.wall_us = (run->end_ns - run->go_ns) / 1000;
    judge_end(run);
    for (enum source s = CONTROL; s < SOURCES && !jail_run_is_leased(run); s++)
        jail_run_forget(run, s);
    if (run->state != JAIL_RUN_DYING)
        jail_run_reap(run);
    jail_shared_restore(&run->shared, &run->out); /* nothing is shared with one that is dying */
    jail_run_clean_up(run);
}
