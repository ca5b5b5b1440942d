/* SPDX-License-Identifier: Apache-2.0 */
/* From the root on, one component at a time: what is looked up in a folder that only we and root can write means the same
 * a moment later. A folder with the sticky bit (/tmp) may stand on the way, since nobody can take away or replace what
 * others have in it; but nothing is loaded from one. */
#include "sys/owned.h"

#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS = 40,
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

static int judge(struct look *l, const char *path, const struct stat *st, bool on_the_way)
{
    const bool sticky = on_the_way && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    if (st->st_uid != 0 && st->st_uid != l->system && st->st_uid != geteuid())
        return err_set(l->err, ERR_USAGE,
                       "%s: %.150s belongs to somebody else; root or you must own it", l->what,
                       path);
    if (!S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)) && !sticky)
        return err_set(l->err, ERR_USAGE, "%s: it is writable for others: chmod go-w %.160s",
                       l->what, path);
    return 0;
}

/* The path as it is walked: DONE has no link in it, REST is to come. */
struct way {
    char done[PATH_MAX], rest[PATH_MAX];
    int links;
};

static int enter_link(struct look *l, struct way *w, const char *link)
{
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0)
        return err_sys(l->err, "%s: %.160s", l->what, link);
    target[n] = 0;
    if (++w->links > LINKS ||
        snprintf(joined, sizeof joined, "%s/%s", target, w->rest) >= (int)sizeof joined)
        return err_set(l->err, ERR_USAGE, "%s: too many links: %.160s", l->what, link);
    memcpy(w->rest, joined, sizeof joined);
    if (target[0] == '/')
        w->done[0] = 0;
    return 0;
}

/* One component of REST. */
static int step(struct look *l, struct way *w)
{
    char name[NAME_MAX + 1], path[PATH_MAX];
    const size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");
    struct stat st;
    if (len > NAME_MAX)
        return err_set(l->err, ERR_USAGE, "%s: the path is too long", l->what);
    memcpy(name, w->rest + skip, len);
    name[len] = 0;
    memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
    if (!len || strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        char *slash = strrchr(w->done, '/');
        w->done[slash ? slash - w->done : 0] = 0;
        return 0;
    }
    if (snprintf(path, sizeof path, "%s/%s", w->done, name) >= (int)sizeof path)
        return err_set(l->err, ERR_USAGE, "%s: the path is too long", l->what);
    if (lstat(path, &st) < 0)
        return err_sys(l->err, "%s: %.160s", l->what, path);
    if (S_ISLNK(st.st_mode))
        return enter_link(l, w, path);
    memcpy(w->done, path, sizeof path);
    return judge(l, path, &st, w->rest[strspn(w->rest, "/")] != 0);
}

static int look_way(struct look *l, const char *path, struct way *w)
{
    *w = (struct way){.links = 0};
    if (path[0] != '/' && !getcwd(w->rest, sizeof w->rest))
        return err_sys(l->err, "the working folder");
    const size_t at = strlen(w->rest);
    if (snprintf(w->rest + at, sizeof w->rest - at, "/%s", path) >= (int)(sizeof w->rest - at))
        return err_set(l->err, ERR_USAGE, "%s: the path is too long", l->what);
    int r = 0;
    while (r == 0 && w->rest[0])
        r = step(l, w);
    return r;
}

int owned_way(const char *what, const char *path, struct err *err)
{
    struct look l;
    struct way w;
    int r = start(&l, what, err);
    return r < 0 ? r : look_way(&l, path, &w);
}

/* ---- what lies below ---- */

static int look_below(struct look *l, int dir, char *path, size_t at, int depth);

/* A link that leads nowhere is nothing. */
static int look_link(struct look *l, const char *path)
{
    struct way w;
    struct err why = ERR_INIT, *told = l->err;
    l->err = &why;
    int r = look_way(l, path, &w);
    l->err = told;
    if (r == ERR_SYS && (why.sys_errno == ENOENT || why.sys_errno == ENOTDIR))
        return 0;
    if (r < 0 && told)
        *told = why;
    return r;
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
    int r = judge(l, path, &st, false);
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

/* Closes DIR. */
static int look_below(struct look *l, int dir, char *path, size_t at, int depth)
{
    int r = 0;
    DIR *d = fdopendir(dir);
    if (!d) {
        fd_close(dir);
        return err_sys(l->err, "%s: %.160s", l->what, path);
    }
    errno = 0;
    for (const struct dirent *e; r == 0 && (e = readdir(d)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = look_entry(l, dirfd(d), e->d_name, path, at, depth);
    if (r == 0 && errno)
        r = err_sys(l->err, "%s: %.160s", l->what, path);
    closedir(d);
    return r;
}

int owned_tree(const char *what, const char *path, struct err *err)
{
    struct look l;
    struct way w = {0};
    int r = start(&l, what, err);
    if (r == 0)
        r = look_way(&l, path, &w);
    if (r < 0)
        return r;
    int dir = open(w.done[0] ? w.done : "/", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "%s: %.160s", what, path);
    return look_below(&l, dir, w.done, strlen(w.done), 1);
}
