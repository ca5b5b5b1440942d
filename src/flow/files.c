/* SPDX-License-Identifier: Apache-2.0 */
/* The guest made these folders and may still have been at it when it was killed: names of any bytes, depth
 * and number as the quota allows, links to anywhere. Nothing is followed, everything is counted, and what
 * is past a ceiling is said to be there rather than listed.
 *
 * Waits: poll in flow_files_released; the next tick of the clock; TICK_MS; what was there before may be listed once more */
#include "flow/steps.h"
#include "flow/take.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 16
#define PATH_ROOM 1024

/* A tick of the clock that files are stamped by, on the slowest kernel, and as much again. */
#define TICK_MS 20

/* In a session only what this call touched. The stamps of birth and change are not the guest's to set. */
static const struct statx_timestamp always = {0};

static bool older(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static uint64_t in_ns(const struct statx_timestamp *t)
{
    return (uint64_t)t->tv_sec * CLOCK_NS_PER_S + t->tv_nsec;
}

static void note_change(struct flow_result *r, const struct statx *st)
{
    if (in_ns(&st->stx_ctime) > r->changed_ns)
        r->changed_ns = in_ns(&st->stx_ctime);
}

/* The clock of stamps ticks every few milliseconds: a file that was changed in the tick in which the call begins could not be told
 * from one that the call changes. A clock that was set back is not waited for. */
struct statx_timestamp flow_files_released(const struct flow *f)
{
    const uint64_t changed = f->req->changed_ns;
    uint64_t now = clock_ns(CLOCK_REALTIME_COARSE);
    for (int i = 0; i < TICK_MS && now <= changed && changed - now < TICK_MS * CLOCK_NS_PER_MS;
         i++) {
        poll(NULL, 0, 1);
        now = clock_ns(CLOCK_REALTIME_COARSE);
    }
    return (struct statx_timestamp){.tv_sec = (int64_t)(now / CLOCK_NS_PER_S),
                                    .tv_nsec = (uint32_t)(now % CLOCK_NS_PER_S)};
}

static int add_file(struct flow_result *r, const char *path, uint64_t bytes, bool changed)
{
    if (r->file_count == LIMIT_FILES)
        return -1;
    if (r->file_count % 64 == 0) {
        struct flow_file *more = realloc(r->files, (r->file_count + 64) * sizeof *more);
        if (!more)
            return -1;
        r->files = more;
    }
    char *copy = strdup(path);
    if (!copy)
        return -1;
    r->files[r->file_count++] =
        (struct flow_file){.path = copy, .bytes = bytes, .changed = changed};
    return 0;
}

/* An upper layer has a file of the lower one from the moment that it is changed. The kernel notes where it came from. */
static bool was_below(const struct flow *f, int dir, const char *name)
{
    FD_AUTO fd =
        f->req->layered ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    return fd >= 0 && fgetxattr(fd, "user.overlay.origin", NULL, 0) >= 0;
}

/* Takes FD. PATH is extended in place. */
static void walk(struct flow *f, int fd, char *path, size_t len, int depth,
                 const struct statx_timestamp *since)
{
    struct flow_result *r = f->result;
    DIR *d = entries_take(fd);
    if (!d) {
        r->files_cut = true;
        return;
    }
    for (const char *name; (name = entries_next(d)) && !r->files_cut;) {
        struct statx st;
        int n = snprintf(path + len, PATH_ROOM - len, "/%s", name);
        if (n < 0 || (size_t)n >= PATH_ROOM - len ||
            statx(dirfd(d), name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) < 0) {
            r->files_cut = true;
            break;
        }
        note_change(r, &st);
        r->files_touched = r->files_touched || !older(&st.stx_ctime, since);
        if (S_ISREG(st.stx_mode)) {
            bool born = (st.stx_mask & STATX_BTIME ? !older(&st.stx_btime, since) : true) &&
                        !was_below(f, dirfd(d), name);
            const enum flow_input_state input = flow_input_now(f, path, &st);
            if (!older(&st.stx_ctime, since) && input != FLOW_INPUT_UNTOUCHED &&
                add_file(r, path, st.stx_size, !born || input == FLOW_INPUT_CHANGED) < 0)
                r->files_cut = true;
        } else if (S_ISDIR(st.stx_mode)) {
            int below =
                depth == DEPTH_MAX
                    ? -1
                    : openat(dirfd(d), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below < 0)
                r->files_cut = true;
            else
                walk(f, below, path, len + (size_t)n, depth + 1, since);
        }
    }
    path[len] = 0;
    closedir(d);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct flow_file *)a)->path, ((const struct flow_file *)b)->path);
}

static int open_left(int root, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* The name of one below /workspace. */
static const char *name_of(const struct flow_file *file)
{
    return file->path + strlen("/workspace/");
}

static void take_out(struct flow *f, int left, struct flow_file *file, uint64_t *room)
{
    const struct flow_request *req = f->req;
    struct err why = ERR_INIT;
    const size_t size = strlen(req->out_name) + strlen(name_of(file)) + 2;
    if (flow_take_file(left, name_of(file), req->out, name_of(file), req->replace, room, &why) <
        0) {
        file->unsaved = strdup(why.msg);
        f->result->unsaved = true;
    } else if ((file->saved = malloc(size))) {
        snprintf(file->saved, size, "%s/%s", req->out_name, name_of(file));
    }
}

/* What each of the listed files is, and where it stays. LEFT: the folder that they are in. */
static void look_at(struct flow *f, int left)
{
    const struct flow_request *req = f->req;
    uint64_t room = f->spec.limits.disk;
    for (size_t i = 0; i < f->result->file_count && left >= 0; i++) {
        struct flow_file *file = &f->result->files[i];
        file->type = flow_take_type(left, name_of(file));
        if (req->out_name)
            take_out(f, left, file, &room);
    }
    f->result->unsaved = f->result->unsaved || (req->out_name && f->result->files_cut);
    f->result->files_gone = !req->out_name && !req->keep && req->kind != FLOW_CALL;
}

/* Whether an entry was made, renamed or removed in the folder itself. */
static bool entries_changed(struct flow_result *r, int fd, const struct statx_timestamp *since)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
        return true;
    note_change(r, &st);
    return !older(&st.stx_ctime, since);
}

/* What a run in a workspace changed lies in the upper layer; of a copy it is everything. */
static void list_files(struct flow *f, int root)
{
    char path[PATH_ROOM] = "/workspace";
    const bool call = f->req->kind == FLOW_CALL;
    const struct statx_timestamp *since = call ? &f->released : &always;
    int fd = f->req->layered         ? open_left(f->req->layers, JAIL_UPPER_IN)
             : f->req->keep && !call ? open_left(root, JAIL_UPPER)
                                     : -1;
    if (fd < 0 && !f->req->layered)
        fd = open_left(root, "workspace");
    f->result->files_touched = fd < 0 || entries_changed(f->result, fd, since);
    FD_AUTO left = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        walk(f, fd, path, strlen(path), 0, since);
    f->result->files_touched = f->result->files_touched || f->result->files_cut;
    if (f->result->file_count)
        qsort(f->result->files, f->result->file_count, sizeof *f->result->files, by_path);
    look_at(f, left);
}

/* Of a run what it left is committed before anybody looks at its names; of a call only where something was touched. */
int flow_collect(struct flow *f, struct err *err)
{
    int root = f->spec.keep_files ? jail_run_files(f->run) : -1;
    const bool call = f->req->kind == FLOW_CALL;
    (void)err;
    if (root < 0)
        return FLOW_GO_ON;
    flow_save(f, root);
    if (f->req->keep && !call)
        f->req->keep(f->req->keep_ctx, root, f->result);
    jail_run_own_files(f->run, true);
    list_files(f, root);
    if (f->req->look)
        f->req->look(root, f->result);
    jail_run_own_files(f->run, false);
    if (f->req->keep && call)
        f->req->keep(f->req->keep_ctx, root, f->result);
    return FLOW_GO_ON;
}
