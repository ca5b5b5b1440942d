/* SPDX-License-Identifier: Apache-2.0 */
/* The guest lives while its files are read, and may swap a folder for a link at any instant. So the kernel resolves every name
 * beneath a folder that is open, never follows a link, never leaves the file system; no text is compared with a prefix
 * but the two names of the roots. What is opened is looked at by its descriptor, and anything but a regular file or a folder
 * is refused: a pipe would make us wait, a device act.
 *
 * Waits: pread in *; a regular file of the workspace; none (the kernel's own); an error */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 64

static const char *const roots[] = {"/workspace", "/tmp"};

static int open_resolved(int dir, const char *path, int flags, uint64_t more)
{
    struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | more};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static int open_path(int dir, const char *path, int flags)
{
    return open_resolved(dir, path, flags, RESOLVE_NO_XDEV);
}

/* One of the two roots. /workspace may be a mount upon layers, which is crossed into here, by a name that no guest chose, and no guest
 * mounts; from there on no mount is crossed. The kernel finds that mount by the descriptor, in whatever namespace it lies. */
static int open_root(const struct tools_call *c, const char *root)
{
    return open_resolved(c->files, root + 1, O_RDONLY | O_DIRECTORY,
                         root == roots[0] ? 0 : RESOLVE_NO_XDEV);
}

int tools_open_beneath(int dir, const char *name, int flags)
{
    return open_path(dir, name, flags);
}

static enum tools_end outside(struct tools_call *c, const char *path)
{
    return tools_refuse(c, "Path not in allowed locations: %.200s; allowed: /workspace, /tmp",
                        path);
}

/* Why the kernel said no, in the words of the rule that stands behind it. */
static enum tools_end unopened(struct tools_call *c, const char *path)
{
    if (errno == ELOOP || errno == EXDEV)
        return outside(c, path);
    if (errno == ENOENT)
        return tools_refuse(c, "there is no %.200s", path);
    return tools_refuse(c, "%.200s: %s", path, strerror(errno));
}

/* The root that PATH begins with; what is left of PATH is relative to it. */
static const char *root_of(const char **path)
{
    if (**path != '/')
        return roots[0];
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        const size_t n = strlen(roots[i]);
        if (strncmp(*path, roots[i], n) == 0 && ((*path)[n] == '/' || !(*path)[n])) {
            *path += n;
            return roots[i];
        }
    }
    return NULL;
}

/* The folder NAME in *DIR instead of *DIR. */
static int descend(int *dir, const char *name, bool make)
{
    int next = open_path(*dir, name, O_RDONLY | O_DIRECTORY);
    if (next < 0 && errno == ENOENT && make && mkdirat(*dir, name, 0755) == 0)
        next = open_path(*dir, name, O_RDONLY | O_DIRECTORY);
    if (next < 0)
        return -1;
    fd_close(*dir);
    *dir = next;
    return 0;
}

/* One component after the other: the last one is left to whoever opens it. */
static int enter(struct tools_place *p, char *rest, bool make)
{
    char *save = NULL;
    snprintf(p->name, sizeof p->name, ".");
    size_t shown = strlen(p->shown);
    for (char *at = strtok_r(rest, "/", &save); at; at = strtok_r(NULL, "/", &save)) {
        if (strcmp(at, ".") == 0)
            continue;
        if (strcmp(at, "..") == 0) {
            errno = EXDEV; /* a name that goes up is never needed */
            return -1;
        }
        if (strlen(at) >= sizeof p->name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (strcmp(p->name, ".") != 0 && descend(&p->dir, p->name, make) < 0)
            return -1;
        snprintf(p->name, sizeof p->name, "%s", at);
        shown += (size_t)snprintf(p->shown + shown, sizeof p->shown - shown, "/%s", at);
    }
    return 0;
}

enum tools_end tools_place_open(struct tools_call *c, const char *path, bool make,
                                struct tools_place *ret)
{
    char rest[4100];
    const char *from = path, *root = root_of(&from);
    *ret = (struct tools_place){.dir = -1};
    if (c->files < 0)
        return tools_refuse(c,
                            "this run has no files that a tool can reach (--mode landlock): open "
                            "them in the program");
    if (!root)
        return outside(c, path);
    const int n = snprintf(rest, sizeof rest, "%s", from);
    if (n < 0 || (size_t)n >= sizeof rest)
        return tools_refuse(c, "the path is too long");
    snprintf(ret->shown, sizeof ret->shown, "%s", root);
    ret->dir = open_root(c, root);
    if (ret->dir >= 0 && enter(ret, rest, make) == 0)
        return TOOLS_OK;
    const enum tools_end end = unopened(c, path);
    tools_place_close(ret);
    return end;
}

void tools_place_close(struct tools_place *p)
{
    fd_close(p->dir);
    p->dir = -1;
}

enum tools_end tools_open_file(struct tools_call *c, const struct tools_place *p, int *ret_fd,
                               struct stat *ret_st)
{
    FD_AUTO fd = open_path(p->dir, p->name, O_RDONLY);
    if (fd < 0)
        return unopened(c, p->shown);
    if (fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode))
        return tools_refuse(c, "%.200s is no regular file", p->shown);
    *ret_fd = fd_take(&fd);
    return TOOLS_OK;
}

enum tools_end tools_open_folder(struct tools_call *c, const struct tools_place *p, int *ret_fd)
{
    int fd = open_path(p->dir, p->name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOTDIR)
        return tools_refuse(c, "%.200s is no folder", p->shown);
    if (fd < 0)
        return unopened(c, p->shown);
    *ret_fd = fd;
    return TOOLS_OK;
}

enum tools_end tools_read(struct tools_call *c, int fd, uint64_t offset, size_t most,
                          struct buf *out)
{
    char chunk[16384];
    for (size_t got = 0; got < most;) {
        const size_t want = most - got < sizeof chunk ? most - got : sizeof chunk;
        const ssize_t n = pread(fd, chunk, want, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tools_fail(c, "read: %s", strerror(errno));
        if (n == 0)
            break;
        if (buf_add(out, chunk, (size_t)n) < 0)
            return tools_fail(c, "no memory for what was read");
        got += (size_t)n;
    }
    return TOOLS_OK;
}

enum tools_end tools_read_whole(struct tools_call *c, const char *path, size_t most,
                                struct tools_place *ret, struct stat *ret_st, struct buf *out)
{
    FD_AUTO fd = -1;
    enum tools_end end = tools_place_open(c, path, false, ret);
    if (end == TOOLS_OK)
        end = tools_open_file(c, ret, &fd, ret_st);
    if (end == TOOLS_OK && ret_st->st_size > (off_t)most)
        end = tools_refuse(c, "%.200s is larger than %llu MB", ret->shown, most / MIB);
    return end == TOOLS_OK ? tools_read(c, fd, 0, most, out) : end;
}

/* ---- walking ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

int tools_names(int folder, struct dirent ***ret_names)
{
    return scandirat(folder, ".", ret_names, no_dots, by_name);
}

/* False: the visitor has enough. */
static bool walk(struct tools_walk *w, int folder, const char *shown, int depth)
{
    struct dirent **names = NULL;
    const int count = tools_names(folder, &names);
    bool more = true;
    if (count < 0)
        w->cut = true;
    for (int i = 0; i < count; i++) {
        char path[4200];
        struct stat st;
        const int n = snprintf(path, sizeof path, "%s/%s", shown, names[i]->d_name);
        const bool fits = n > 0 && (size_t)n < sizeof path && w->left && depth < DEPTH_MAX;
        if (more && !fits)
            w->cut = true;
        if (more && fits && fstatat(folder, names[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
            w->left--;
            more = w->visit(w->ctx, folder, names[i]->d_name, path, &st);
            FD_AUTO below = more && S_ISDIR(st.st_mode)
                                ? open_path(folder, names[i]->d_name, O_RDONLY | O_DIRECTORY)
                                : -1;
            if (below >= 0)
                more = walk(w, below, path, depth + 1);
            else if (more && S_ISDIR(st.st_mode)) /* shut, or a link by now */
                w->shut++;
        }
        free(names[i]);
    }
    free(names);
    return more;
}

void tools_walk(struct tools_walk *w, int folder, const char *shown)
{
    (void)walk(w, folder, shown, 0);
}
