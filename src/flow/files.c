/* SPDX-License-Identifier: Apache-2.0 */
/* The guest made these folders and may still have been at it when it was killed: names of any bytes, depth
 * and number as the quota allows, links to anywhere. Nothing is followed, everything is counted, and what
 * is past a ceiling is said to be there rather than listed. */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 16
#define PATH_ROOM 1024

/* In a session only what this call touched. The kernel stamps files by a clock that ticks: what was touched just
 * before the call may be listed once more. The stamps of birth and change are not the guest's to set. */
static const struct statx_timestamp always = {0};

static bool older(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
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

/* Takes FD. PATH is extended in place. */
static void walk(struct flow_result *r, int fd, char *path, size_t len, int depth,
                 const struct statx_timestamp *since)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        fd_close(fd);
        r->files_cut = true;
        return;
    }
    for (struct dirent *e; (e = readdir(d)) && !r->files_cut;) {
        struct statx st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int n = snprintf(path + len, PATH_ROOM - len, "/%s", e->d_name);
        if (n < 0 || (size_t)n >= PATH_ROOM - len ||
            statx(dirfd(d), e->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) <
                0) {
            r->files_cut = true;
            break;
        }
        r->files_touched = r->files_touched || !older(&st.stx_ctime, since);
        if (S_ISREG(st.stx_mode)) {
            bool born = st.stx_mask & STATX_BTIME ? !older(&st.stx_btime, since) : true;
            if (!older(&st.stx_ctime, since) && add_file(r, path, st.stx_size, !born) < 0)
                r->files_cut = true;
        } else if (S_ISDIR(st.stx_mode)) {
            int below =
                depth == DEPTH_MAX
                    ? -1
                    : openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below < 0)
                r->files_cut = true;
            else
                walk(r, below, path, len + (size_t)n, depth + 1, since);
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

/* Whether an entry was made, renamed or removed in the folder itself. */
static bool entries_changed(int fd, const struct statx_timestamp *since)
{
    struct statx st;
    return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 || !older(&st.stx_ctime, since);
}

/* What a run in a workspace changed lies in the upper layer; of a copy it is everything. */
static void list_files(struct flow *f, int root)
{
    char path[PATH_ROOM] = "/workspace";
    const bool call = f->req->kind == FLOW_CALL;
    const struct statx_timestamp *since = call ? &f->released : &always;
    int fd = f->req->keep && !call ? open_left(root, JAIL_UPPER) : -1;
    if (fd < 0)
        fd = open_left(root, "workspace");
    f->result->files_touched = fd < 0 || entries_changed(fd, since);
    if (fd >= 0)
        walk(f->result, fd, path, strlen(path), 0, since);
    f->result->files_touched = f->result->files_touched || f->result->files_cut;
    if (f->result->file_count)
        qsort(f->result->files, f->result->file_count, sizeof *f->result->files, by_path);
}

/* Of a run what it left is committed before anybody looks at its names; of a call only where something was touched. */
int flow_collect(struct flow *f, struct err *err)
{
    int root = f->spec.keep_files ? jail_run_files(f->run) : -1;
    const bool call = f->req->kind == FLOW_CALL;
    (void)err;
    if (root < 0)
        return FLOW_GO_ON;
    if (f->req->keep && !call)
        f->req->keep(f->req->keep_ctx, root, f->result);
    list_files(f, root);
    if (f->req->keep && call)
        f->req->keep(f->req->keep_ctx, root, f->result);
    return FLOW_GO_ON;
}
