/* SPDX-License-Identifier: Apache-2.0 */
/* The path is walked by hand, a component at a time, and links are resolved by hand: whoever could change any
 * folder on that way, or any link, could change what it leads to. By device and inode, because a folder has many
 * names; and by where it lies in its file system (src/sys/writable.h), because a part of it may be mounted elsewhere. */
#include "sys/walk.h"

#include "sys/fd.h"
#include "sys/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX    40
#define WRITABLE_MAX 64
#define DEPTH_MAX    4096

struct guest_writable {
    dev_t dev;
    ino_t ino;
    const char *name;
};

struct walk {
    const struct walk_rules *rules;
    const char *path;
    struct guest_writable writable[WRITABLE_MAX];
    size_t nwritable;
    struct writable_set *set; /* the rules' own, or made for this walk */
    char text[2 * PATH_MAX];  /* the path, as far as links have made it another */
    const char *rest;         /* what of it is still to be walked */
    int links;
};

static int fails(const struct walk *w, struct err *err)
{
    return err_sys(err, "%s %.120s", w->rules->what, w->path);
}

static int behind(const struct walk *w, const char *writable, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "%s %.80s lies in or behind %.80s, which the program may write: share a "
                   "folder that does not hold it",
                   w->rules->what, w->path, writable);
}

/* A folder or file on the way: may a guest write it? may anybody? */
static int look(const struct walk *w, int dir, const char *name, const struct stat *st, bool last,
                struct err *err)
{
    for (size_t i = 0; i < w->nwritable; i++)
        if (st->st_dev == w->writable[i].dev && st->st_ino == w->writable[i].ino)
            return behind(w, w->writable[i].name, err);
    if (w->rules->trusted_file && S_ISDIR(st->st_mode) && (st->st_mode & S_IWOTH) &&
        !(st->st_mode & S_ISVTX))
        return err_set(err, ERR_USAGE, "%s %.120s: a folder on the way is writable for everybody",
                       w->rules->what, w->path);
    return w->rules->judge ? w->rules->judge(w->rules->ctx, dir, name, st, last, err) : 0;
}

/* The same of an open one, by where it lies. */
static int look_where(const struct walk *w, int fd, struct err *err)
{
    const char *writable = NULL;
    int r = w->set ? writable_set_find(w->set, fd, false, &writable, err) : 0;
    return r == 0 && writable ? behind(w, writable, err) : r;
}

static int trusted(const struct walk *w, const struct stat *st, struct err *err)
{
    const char *wrong =
        !S_ISREG(st->st_mode) ? "is no regular file"
        : st->st_uid != 0 && st->st_uid != geteuid()
            ? "belongs to somebody else: root or you must own it"
        : st->st_mode & (S_IWGRP | S_IWOTH) ? "is writable for others: chmod go-w"
        : w->rules->count && st->st_nlink > 1
            ? "has a second name (hard link), which may lie where the program writes"
            : NULL;
    return wrong ? err_set(err, ERR_USAGE, "%s %.120s %s", w->rules->what, w->path, wrong) : 0;
}

/* Puts the text of a link before what is left to walk; an absolute one starts anew. */
static int enter_link(struct walk *w, int *dir, const char *name, const char *left, struct err *err)
{
    char target[PATH_MAX], joined[sizeof w->text];
    ssize_t n = readlinkat(*dir, name, target, sizeof target - 1);
    if (n < 0)
        return fails(w, err);
    target[n] = 0;
    if (++w->links > LINKS_MAX ||
        snprintf(joined, sizeof joined, "%s/%s", target, left) >= (int)sizeof joined)
        return err_set(err, ERR_USAGE, "%s %.120s: too many links", w->rules->what, w->path);
    memcpy(w->text, joined, sizeof joined);
    w->rest = w->text;
    if (target[0] == '/') {
        fd_close(*dir);
        *dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (*dir < 0)
            return fails(w, err);
    }
    return 0;
}

/* The last component: opened, and looked at again, since its name may mean another by now. */
static int open_last(const struct walk *w, int dir, const char *name, int *ret_fd,
                     struct stat *ret_st, struct err *err)
{
    const int kind = w->rules->trusted_file ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH;
    FD_AUTO fd = openat(dir, name, kind | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : fails(w, err);
    if (fstat(fd, &st) < 0)
        return fails(w, err);
    int r = look(w, dir, name, &st, true, err);
    if (r == 0)
        r = look_where(w, fd, err);
    if (r == 0 && w->rules->trusted_file)
        r = trusted(w, &st, err);
    if (r < 0)
        return r;
    *ret_fd = fd_take(&fd);
    *ret_st = st;
    return 0;
}

/* One component. 0: *ret_fd is set, or a folder further; 1: it is not there. */
static int step(struct walk *w, int *dir, int *ret_fd, struct stat *ret_st, struct err *err)
{
    char name[NAME_MAX + 1] = ".";
    size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");
    struct stat st;
    if (len > NAME_MAX)
        return 1;
    if (len) {
        memcpy(name, w->rest + skip, len);
        name[len] = 0;
    }
    const char *behind = w->rest + skip + len, *left = behind + strspn(behind, "/");
    if (fstatat(*dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : fails(w, err);
    if (S_ISLNK(st.st_mode))
        return enter_link(w, dir, name, left, err);
    int r = look(w, *dir, name, &st, !*left, err);
    if (r == 0 && !*left && w->rules->trusted_file)
        r = trusted(w, &st, err); /* before it is opened: a pipe would be waited for */
    if (r < 0)
        return r;
    w->rest = left;
    if (!*left)
        return open_last(w, *dir, name, ret_fd, ret_st, err);
    FD_AUTO fd = openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : fails(w, err);
    if (fstat(fd, &st) < 0)
        return fails(w, err);
    if ((r = look(w, *dir, name, &st, false, err)) < 0 || (r = look_where(w, fd, err)) < 0)
        return r;
    fd_close(*dir);
    *dir = fd_take(&fd);
    return 0;
}

/* The path from the root on: the folders above the working folder count too. */
static int start(struct walk *w, struct err *err)
{
    char cwd[PATH_MAX] = "";
    struct stat st;
    if (w->rules->count > WRITABLE_MAX)
        return err_set(err, ERR_LIMIT, "more than %d writable folders", WRITABLE_MAX);
    for (size_t i = 0; i < w->rules->count; i++)
        if (stat(w->rules->writable[i], &st) == 0)
            w->writable[w->nwritable++] =
                (struct guest_writable){st.st_dev, st.st_ino, w->rules->writable[i]};
    if (w->path[0] != '/' && !getcwd(cwd, sizeof cwd))
        return err_sys(err, "the working folder");
    if (snprintf(w->text, sizeof w->text, "%s/%s", cwd, w->path) >= (int)sizeof w->text)
        return err_set(err, ERR_USAGE, "%s: the path is too long", w->rules->what);
    w->rest = w->text;
    w->set = w->rules->set;
    return w->rules->count && !w->set
               ? writable_set_new(w->rules->writable, w->rules->count, &w->set, err)
               : 0;
}

int walk_open(const struct walk_rules *rules, const char *path, int *ret_fd, struct stat *ret_st,
              struct err *err)
{
    struct walk w = {.rules = rules, .path = path, .rest = ""};
    struct stat st;
    *ret_fd = -1;
    int r = start(&w, err);
    if (r < 0)
        return r;
    int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        r = err_sys(err, "/");
    else
        r = look(&w, dir, ".", &st, false, err);
    while (r == 0 && *ret_fd < 0)
        r = step(&w, &dir, ret_fd, ret_st, err);
    fd_close(dir);
    if (w.set != rules->set)
        writable_set_free(w.set);
    return r > 0 ? 0 : r;
}

/* Whether the folder FD is WANTED or lies below it: up the tree, by what the folders are and not by their names. */
static bool is_below(int folder, const struct stat *wanted)
{
    struct stat st;
    FD_AUTO fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return true; /* unknown counts as below: the walk fails closed */
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino)
            return true;
        struct stat below = st;
        int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(fd);
        fd = up;
        if (fd < 0 || fstat(fd, &st) < 0)
            return true;
        if (st.st_dev == below.st_dev && st.st_ino == below.st_ino)
            return false; /* the root is its own parent */
    }
    return true; /* deeper than any path can be */
}

/* A writable file lies where its real name says. */
static int open_folder_of(const char *path)
{
    char real[PATH_MAX];
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOTDIR || !realpath(path, real))
        return fd;
    char *slash = strrchr(real, '/');
    slash[slash == real] = 0;
    return open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int inside(const struct walk_rules *rules, const char *writable, const char *path,
                  struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "%.100s lies in %s %.100s, which no program may write: share another folder",
                   writable, rules->what, path);
}

/* The same by where they lie: a part of the tree may be mounted elsewhere. */
static int apart_where(const struct walk_rules *rules, const char *path, int fd, struct err *err)
{
    struct writable_set *own = NULL;
    const char *writable = NULL;
    int r = rules->set ? 0 : writable_set_new(rules->writable, rules->count, &own, err);
    if (r == 0)
        r = writable_set_find(rules->set ? rules->set : own, fd, true, &writable, err);
    writable_set_free(own);
    return r == 0 && writable ? inside(rules, writable, path, err) : r;
}

int walk_apart(const struct walk_rules *rules, const char *path, bool tree, struct err *err)
{
    struct stat st;
    FD_AUTO fd = -1;
    int r = rules->count ? walk_open(rules, path, &fd, &st, err) : 0;
    if (r < 0 || fd < 0 || !tree)
        return r;
    for (size_t i = 0; i < rules->count; i++) {
        FD_AUTO folder = open_folder_of(rules->writable[i]);
        if (folder >= 0 && is_below(folder, &st))
            return inside(rules, rules->writable[i], path, err);
    }
    return apart_where(rules, path, fd, err);
}
