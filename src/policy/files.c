/* The path is walked by hand, a component at a time, and links are resolved by hand: whoever could change any
 * folder on that way, or any link, could change the policy. By device and inode, because
 * a folder has many names.
 *
 * Waits: read in policy_file_read; a regular file; none (the kernel's own); an error */
#include "policy/files.h"

#include "policy/policy.h"
#include "policy/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX    40
#define WRITABLE_MAX 64

struct guarded {
    dev_t dev;
    ino_t ino;
    const char *name;
};

struct walk {
    const char *path;
    struct guarded guarded[WRITABLE_MAX];
    size_t nguarded;
    bool for_guest;          /* somebody may write somewhere */
    char text[2 * PATH_MAX]; /* the path, as far as links have made it another */
    const char *rest;        /* what of it is still to be walked */
    int links;
};

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* A folder or file on the way: may a guest write it? may anybody? */
static int look(const struct walk *w, const struct stat *st, struct err *err)
{
    for (size_t i = 0; i < w->nguarded; i++)
        if (st->st_dev == w->guarded[i].dev && st->st_ino == w->guarded[i].ino)
            return err_set(err, ERR_USAGE,
                           "the policy %.80s lies in or behind %.80s, which the program may write",
                           w->path, w->guarded[i].name);
    if (S_ISDIR(st->st_mode) && (st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
        return err_set(err, ERR_USAGE,
                       "the policy %.120s: a folder on the way is writable for everybody", w->path);
    return 0;
}

static int trusted(const struct walk *w, const struct stat *st, struct err *err)
{
    const char *wrong =
        !S_ISREG(st->st_mode) ? "is no regular file"
        : st->st_uid != 0 && st->st_uid != geteuid()
            ? "belongs to somebody else: root or you must own it"
        : st->st_mode & (S_IWGRP | S_IWOTH) ? "is writable for others: chmod go-w"
        : w->for_guest && st->st_nlink > 1
            ? "has a second name (hard link), which may lie where the program writes"
            : NULL;
    return wrong ? err_set(err, ERR_USAGE, "the policy %.120s %s", w->path, wrong) : 0;
}

/* Puts the text of a link before what is left to walk; an absolute one starts anew. */
static int enter_link(struct walk *w, int *dir, const char *name, const char *left, struct err *err)
{
    char target[PATH_MAX], joined[sizeof w->text];
    ssize_t n = readlinkat(*dir, name, target, sizeof target - 1);
    if (n < 0)
        return err_sys(err, "the policy %.120s", w->path);
    target[n] = 0;
    if (++w->links > LINKS_MAX ||
        snprintf(joined, sizeof joined, "%s/%s", target, left) >= (int)sizeof joined)
        return err_set(err, ERR_USAGE, "the policy %.120s: too many links", w->path);
    memcpy(w->text, joined, sizeof joined);
    w->rest = w->text;
    if (target[0] == '/') {
        close_fd(*dir);
        *dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (*dir < 0)
            return err_sys(err, "the policy %.120s", w->path);
    }
    return 0;
}

/* One component. 0: *ret_fd or a folder further; 1: it is not there. */
static int step(struct walk *w, int *dir, int *ret_fd, struct stat *ret_st, struct err *err)
{
    char name[NAME_MAX + 1];
    size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");
    struct stat st;
    if (len > NAME_MAX)
        return 1;
    memcpy(name, w->rest + skip, len);
    name[len] = 0;
    const char *behind = w->rest + skip + len;
    const char *left = behind + strspn(behind, "/");
    if (fstatat(*dir, len ? name : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : err_sys(err, "the policy %.120s", w->path);
    if (S_ISLNK(st.st_mode))
        return enter_link(w, dir, name, left, err);
    int r = look(w, &st, err);
    if (r < 0)
        return r;
    bool last = !*left;
    int flags = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
    if (last && (r = trusted(w, &st, err)) < 0)
        return r;
    int fd = openat(*dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : err_sys(err, "the policy %.120s", w->path);
    if (fstat(fd, &st) < 0 || (r = look(w, &st, err)) < 0 ||
        (last && (r = trusted(w, &st, err)) < 0)) {
        close_fd(fd);
        return r < 0 ? r : err_sys(err, "the policy %.120s", w->path);
    }
    w->rest = left;
    if (last) {
        *ret_fd = fd;
        *ret_st = st;
        return 0;
    }
    close_fd(*dir);
    *dir = fd;
    return 0;
}

int policy_file_open(const char *path, const char *const *writable, size_t count, int *ret_fd,
                     struct stat *ret_st, struct err *err)
{
    struct walk w = {.path = path, .for_guest = count > 0};
    w.rest = w.text;
    struct stat st;
    *ret_fd = -1;
    if (count > WRITABLE_MAX)
        return err_set(err, ERR_LIMIT, "more than %d writable folders", WRITABLE_MAX);
    for (size_t i = 0; i < count; i++) /* one that is not there holds nothing */
        if (stat(writable[i], &st) == 0)
            w.guarded[w.nguarded++] = (struct guarded){st.st_dev, st.st_ino, writable[i]};
    if (snprintf(w.text, sizeof w.text, "%s", path) >= (int)sizeof w.text)
        return err_set(err, ERR_USAGE, "the policy's path is too long");
    char cwd[PATH_MAX];
    if (path[0] != '/') { /* the folders above the working folder count too */
        if (!getcwd(cwd, sizeof cwd))
            return err_sys(err, "the working folder");
        if (snprintf(w.text, sizeof w.text, "%s/%s", cwd, path) >= (int)sizeof w.text)
            return err_set(err, ERR_USAGE, "the policy's path is too long");
    }
    int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), r = 0;
    if (dir < 0)
        return err_sys(err, "/");
    if (fstat(dir, &st) == 0)
        r = look(&w, &st, err);
    while (r == 0 && *ret_fd < 0)
        r = step(&w, &dir, ret_fd, ret_st, err);
    close_fd(dir);
    return r > 0 ? 0 : r;
}

int policy_file_read(int fd, const char *path, struct buf *out, struct err *err)
{
    char chunk[8192];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "the policy %.120s", path);
        if (n == 0)
            return 0;
        if (out->len + (size_t)n > POLICY_FILE_MAX || buf_add(out, chunk, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "the policy %.120s has more than %d bytes", path,
                           POLICY_FILE_MAX);
    }
}

int policy_path_safe(const char *path, const char *const *writable, size_t count, struct err *err)
{
    struct stat st;
    int fd, r = policy_file_open(path, writable, count, &fd, &st, err);
    close_fd(fd);
    return r;
}
