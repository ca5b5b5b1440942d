/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c follows the path from the root on, one component at a time, and asks here about each: what is looked up in a
 * folder that only we and root can write means the same a moment later. A folder with the sticky bit (/tmp) may stand on
 * the way, since nobody can take away or replace what others have in it; but nothing is loaded from one. */
#include "sys/owned.h"

#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEPTH = 64,        /* folders in folders */
    ENTRIES = 1000000, /* files and folders; the largest environments have a tenth of it */
};

struct look {
    const char *what;
    struct err *err;
    uid_t system; /* who owns the root: 0, or an id that a user namespace does not show */
    size_t entries;
};

static int start(struct look *l, const char *what, struct err *err)
{
    struct stat st;
    *l = (struct look){.what = what, .err = err};
    if (stat("/", &st) < 0)
        return err_sys(err, "/");
    l->system = st.st_uid;
    return 0;
}

static int judge(const struct look *l, const char *path, const struct stat *st, bool on_the_way,
                 struct err *err)
{
    const bool sticky = on_the_way && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    if (st->st_uid != 0 && st->st_uid != l->system && st->st_uid != geteuid())
        return err_set(err, ERR_USAGE,
                       "%s: %.150s belongs to somebody else; root or you must own it", l->what,
                       path);
    if (!S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)) && !sticky)
        return err_set(err, ERR_USAGE, "%s: it is writable for others: chmod go-w %.160s", l->what,
                       path);
    return 0;
}

/* The path of the open folder DIR, and of its entry NAME. */
static void path_of(int dir, const char *name, char out[PATH_MAX])
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(self, out, PATH_MAX - 1);
    size_t len = n > 1 ? (size_t)n : 0; /* of the root itself nothing */
    if (name)
        snprintf(out + len, PATH_MAX - len, "/%s", name);
    else
        out[len] = 0;
}

static int judge_step(void *ctx, int dir, const char *name, const struct stat *st, bool last,
                      struct err *err)
{
    char path[PATH_MAX];
    if (judge(ctx, name, st, !last, NULL) == 0)
        return 0;
    path_of(dir, name, path);
    return judge(ctx, path, st, !last, err);
}

/* 1: nothing is there. */
static int look_way(struct look *l, const char *path, int *ret_fd, struct err *err)
{
    char what[80];
    struct stat st;
    snprintf(what, sizeof what, "%s:", l->what);
    const struct walk_rules rules = {.what = what, .judge = judge_step, .ctx = l};
    int r = walk_open(&rules, path, ret_fd, &st, err);
    return r == 0 && *ret_fd < 0 ? 1 : r;
}

static int look_there(struct look *l, const char *path, int *ret_fd)
{
    int r = look_way(l, path, ret_fd, l->err);
    if (r > 0) {
        errno = ENOENT;
        r = err_sys(l->err, "%s: %.160s", l->what, path);
    }
    return r;
}

int owned_way(const char *what, const char *path, struct err *err)
{
    struct look l;
    FD_AUTO fd = -1;
    int r = start(&l, what, err);
    return r < 0 ? r : look_there(&l, path, &fd);
}

/* ---- what lies below ---- */

static int look_below(struct look *l, int dir, char *path, size_t at, int depth);

/* A link that leads nowhere is nothing. */
static int look_link(struct look *l, const char *path)
{
    FD_AUTO fd = -1;
    int r = look_way(l, path, &fd, l->err);
    return r > 0 ? 0 : r;
}

/* The entry NAME of DIR; PATH[0..at] is the folder's. */
static int look_entry(struct look *l, int dir, const char *name, char *path, size_t at, int depth)
{
    struct stat st;
    int n = snprintf(path + at, PATH_MAX - at, "/%s", name);
    if (n < 0 || (size_t)n >= PATH_MAX - at || depth > DEPTH || ++l->entries > ENTRIES)
        return err_set(l->err, ERR_LIMIT,
                       "%s: more than %d folders deep, or more than %d files: %.100s", l->what,
                       DEPTH, ENTRIES, path);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(l->err, "%s: %.160s", l->what, path);
    int r = judge(l, path, &st, false, l->err);
    if (r == 0 && S_ISLNK(st.st_mode))
        return look_link(l, path);
    if (r < 0 || !S_ISDIR(st.st_mode))
        return r;
    int below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0)
        return errno == EACCES ? 0 /* what we cannot read is not loaded */
                               : err_sys(l->err, "%s: %.160s", l->what, path);
    return look_below(l, below, path, at + (size_t)n, depth + 1);
}

/* Takes DIR. */
static int look_below(struct look *l, int dir, char *path, size_t at, int depth)
{
    int r = 0;
    DIR *d = entries_take(dir);
    if (!d)
        return err_sys(l->err, "%s: %.160s", l->what, path);
    for (const char *name; r == 0 && (name = entries_next(d));)
        r = look_entry(l, dirfd(d), name, path, at, depth);
    if (r == 0 && errno)
        r = err_sys(l->err, "%s: %.160s", l->what, path);
    closedir(d);
    return r;
}

int owned_tree(const char *what, const char *path, struct err *err)
{
    struct look l;
    char way[PATH_MAX];
    FD_AUTO fd = -1;
    int r = start(&l, what, err);
    if (r == 0)
        r = look_there(&l, path, &fd);
    if (r < 0)
        return r;
    int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "%s: %.160s", what, path);
    path_of(fd, NULL, way);
    return look_below(&l, dir, way, strlen(way), 1);
}
