/* SPDX-License-Identifier: Apache-2.0 */
/* Free space is looked at while a program runs, not only before: what it takes in its own files, whose quota the kernel holds, is announced
 * before that quota ends it; and a folder of the host that it may write in (--rw) has no quota, so a run that has taken the space
 * which is kept free there is ended, by name, before the disk is full for everybody else.
 *
 * Waits: read in on_tick; nobody: the timer is non-blocking; at once; comes again */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/space.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const struct {
    unsigned percent;
    const char *sentence;
} marks[] = {
    {95, "its files take more than 95 % of --disk or --inodes: what does not fit is refused"},
    {80, "its files take more than 80 % of --disk or --inodes: what does not fit is refused"},
};

static void note(struct flow *f, const char *sentence)
{
    if (flow_result_note(f->result, sentence) && f->req->watch.note)
        f->req->watch.note(f->req->watch.ctx, sentence);
}

static unsigned part(uint64_t free, uint64_t all)
{
    return all ? (unsigned)((all - free) * 100 / all) : 0;
}

/* The fuller of blocks and inodes. */
static void look_at_quota(struct flow *f)
{
    struct statvfs fs;
    const int files = f->run ? jail_run_files(f->run) : -1;
    if (files < 0 || f->spec.mode != JAIL_FULL || fstatvfs(files, &fs) < 0)
        return;
    const unsigned bytes = part(fs.f_bfree, fs.f_blocks), names = part(fs.f_ffree, fs.f_files);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if ((bytes > names ? bytes : names) > marks[i].percent) {
            note(f, marks[i].sentence);
            return;
        }
}

/* A disk that nobody can look at any more was looked at before the run. */
static void look_at_disks(struct flow *f)
{
    const struct policy *p = f->req->context->policy;
    for (size_t i = 0; i < f->ndisks; i++) {
        struct disk_space space;
        struct err err = ERR_INIT;
        if (disk_space_look(f->disks[i], p->workspaces.free, p->workspaces.free_percent, &space,
                            &err) < 0 ||
            !space.short_of)
            continue;
        snprintf(f->no_space, sizeof f->no_space,
                 "--rw %.160s: its disk has %llu MB free, and %llu MB are kept free "
                 "(workspaces.free and workspaces.free_percent of the policy): the run was ended",
                 f->disk_names[i], (unsigned long long)(space.free / MIB),
                 (unsigned long long)(space.kept / MIB));
        jail_run_stop(f->run);
        return;
    }
}

static bool on_tick(void *ctx)
{
    struct flow *f = ctx;
    uint64_t times;
    if (read(f->space_timer, &times, sizeof times) != (ssize_t)sizeof times)
        return true;
    look_at_quota(f);
    look_at_disks(f);
    return !f->no_space[0];
}

/* One that cannot be opened is left to whoever binds it. */
void flow_space_open(struct flow *f)
{
    const struct jail_spec *s = &f->req->spec;
    for (size_t i = 0; i < s->nbinds && f->ndisks < LIMIT_BINDS; i++) {
        const int fd =
            s->binds[i].writable ? open(s->binds[i].source, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        f->disk_names[f->ndisks] = s->binds[i].source;
        f->disks[f->ndisks++] = fd;
    }
}

int flow_space_watch(struct flow *f, struct err *err)
{
    const struct itimerspec every = {.it_interval = {.tv_nsec = LIMIT_SPACE_MS * 1000000L},
                                     .it_value = {.tv_nsec = LIMIT_SPACE_MS * 1000000L}};
    f->space_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (f->space_timer < 0 || timerfd_settime(f->space_timer, 0, &every, NULL) < 0)
        return err_sys(err, "timerfd");
    return jail_run_also(f->run, f->space_timer, on_tick, f, err);
}

void flow_space_end(struct flow *f)
{
    look_at_quota(f);
    if (f->no_space[0])
        flow_result_say(f->result, FLOW_ERROR, "filesystem", "CODE", "StorageError", f->no_space);
}

void flow_space_close(struct flow *f)
{
    while (f->ndisks)
        fd_close(f->disks[--f->ndisks]);
    fd_close(fd_take(&f->space_timer));
}
