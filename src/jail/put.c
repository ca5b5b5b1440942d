/* SPDX-License-Identifier: Apache-2.0 */
/* In a session the guest may be at work in the same folders: every name is looked up below a descriptor, a link is
 * never followed, and a file is written under a name of our own before it takes its place. As root the copy must belong
 * to the guest's id (another has no number in its user namespace, and the kernel refuses to make such a file), while
 * the source is read with our own rights: the id for files changes around each call that makes something. */
#include "jail/put.h"

#include "jail/copy.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct put {
    const char *what, *source; /* for messages: the option, and its word */
    bool change;               /* we are root, and the guest is not */
    uid_t uid;
    gid_t gid;
};

static void as_guest(const struct put *p)
{
    if (p->change) {
        (void)setfsgid(p->gid);
        (void)setfsuid(p->uid);
    }
}

/* Keeps errno: it is called between a call and the look at what it said. */
static void as_self(const struct put *p)
{
    int why = errno;
    if (p->change) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
    errno = why;
}

static int put_failed(const struct put *p, const char *name, struct err *err)
{
    if (errno == ENOSPC)
        return err_set(err, ERR_USAGE,
                       "%s %.160s: the copy does not fit in /workspace; raise --disk or "
                       "--inodes; run and exec can show it without a copy: --ro "
                       "PATH:/workspace/NAME",
                       p->what, p->source);
    err_sys(err, "%s %.100s: copy %.100s", p->what, p->source, name);
    return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
}

static int open_below(int dir, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* A session's may be a mount upon layers: no guest mounts, so the one that is crossed here is ours. */
static int open_workspace(int files)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, files, JAIL_WORKSPACE_IN, &how, sizeof how);
}

/* The folder NAME in DIR, made if it is not there. */
static int enter(const struct put *p, int dir, const char *name)
{
    as_guest(p);
    int fd = mkdirat(dir, name, 0755) < 0 && errno != EEXIST
                 ? -1
                 : open_below(dir, name, O_RDONLY | O_DIRECTORY);
    as_self(p);
    return fd;
}

/* Under a name that no guest can guess, then in its place. */
static int put_file(const struct put *p, int in, const struct stat *st, int dir, const char *name)
{
    char own[32];
    uint64_t secret;
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
        return -1;
    snprintf(own, sizeof own, ".in-%016llx", (unsigned long long)secret);
    as_guest(p);
    FD_AUTO out = openat(dir, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    as_self(p);
    if (out < 0)
        return -1;
    int r = jail_copy_data(in, out, st->st_size);
    if (r == 0)
        r = ftruncate(out, st->st_size);
    as_guest(p);
    if (r == 0)
        r = fchmod(out, (st->st_mode & 0777) | 0600);
    if (r == 0)
        r = futimens(out, times);
    if (r == 0)
        r = renameat(dir, own, dir, name);
    int why = errno;
    if (r < 0)
        (void)unlinkat(dir, own, 0);
    errno = why;
    as_self(p);
    return r;
}

static int put_link(const struct put *p, int from, int dir, const char *name)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = 0;
    as_guest(p);
    int r = symlinkat(target, dir, name);
    if (r < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
        r = symlinkat(target, dir, name);
    as_self(p);
    return r;
}

static int put_folder(const struct put *p, int from, int to, unsigned depth, struct err *err);

static int put_entry(const struct put *p, int from, const char *name, int to, unsigned depth,
                     struct err *err)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return put_failed(p, name, err);
    if (S_ISLNK(st.st_mode))
        return put_link(p, from, to, name) < 0 ? put_failed(p, name, err) : 0;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return 0; /* a socket, a pipe, a device: nothing that a copy could be made of */
    FD_AUTO in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) < 0)
        return put_failed(p, name, err);
    if (S_ISREG(st.st_mode))
        return put_file(p, in, &st, to, name) < 0 ? put_failed(p, name, err) : 0;
    if (depth == JAIL_PUT_DEPTH)
        return err_set(err, ERR_USAGE, "%s %.160s: folders are nested deeper than %d", p->what,
                       p->source, JAIL_PUT_DEPTH);
    FD_AUTO below = enter(p, to, name);
    return below < 0 ? put_failed(p, name, err) : put_folder(p, in, below, depth + 1, err);
}

static int put_folder(const struct put *p, int from, int to, unsigned depth, struct err *err)
{
    DIR *d = entries_of(from);
    int r = 0;
    if (!d)
        return put_failed(p, "a folder", err);
    for (const char *name; r == 0 && (name = entries_next(d));)
        r = put_entry(p, from, name, to, depth, err);
    if (r == 0 && errno)
        r = put_failed(p, "a folder", err);
    closedir(d);
    return r;
}

/* The folder of /workspace that DEST's last name is put in; *ret_name is that name. TOP is /workspace, and is closed. */
static int find_place(const struct put *p, int top, const char *dest, const char **ret_name)
{
    char part[256];
    FD_AUTO at = top;
    const char *name = dest + strlen("/workspace");
    while (at >= 0 && *name == '/') {
        const char *slash = strchr(++name, '/');
        if (!slash)
            break;
        if (slash - name >= (ptrdiff_t)sizeof part) {
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        int below = enter(p, at, part);
        fd_close(at);
        at = below;
        name = slash;
    }
    *ret_name = name;
    return fd_take(&at);
}

static void find_owner(struct put *p, const struct stat *guest)
{
    p->change = geteuid() == 0 && guest->st_uid != 0;
    p->uid = guest->st_uid;
    p->gid = guest->st_gid;
}

int jail_put(int source, int files, const struct jail_bind *bind, struct err *err)
{
    struct stat st, guest;
    const char *name = "";
    char self[40];
    struct put p = {.what = "--in", .source = bind->source};
    if (fstat(source, &st) < 0 || fstat(files, &guest) < 0)
        return put_failed(&p, "it", err);
    find_owner(&p, &guest);
    snprintf(self, sizeof self, "/proc/self/fd/%d", source);
    FD_AUTO in = S_ISDIR(st.st_mode) ? openat(source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                     : open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return put_failed(&p, "it", err);
    FD_AUTO dir = find_place(&p, open_workspace(files), bind->dest, &name);
    if (dir < 0)
        return put_failed(&p, bind->dest, err);
    if (S_ISREG(st.st_mode))
        return put_file(&p, in, &st, dir, name) < 0 ? put_failed(&p, name, err) : 0;
    FD_AUTO to = *name ? enter(&p, dir, name) : fd_take(&dir);
    return to < 0 ? put_failed(&p, name, err) : put_folder(&p, in, to, 0, err);
}

int jail_put_left(int source, int files, const char *dest, const char *what, struct err *err)
{
    struct stat st, guest;
    const char *name = "";
    struct put p = {.what = what, .source = dest + strlen("/workspace/")};
    if (fstat(source, &st) < 0 || fstat(files, &guest) < 0)
        return put_failed(&p, "it", err);
    find_owner(&p, &guest);
    int top = open_below(files, JAIL_UPPER, O_RDONLY | O_DIRECTORY); /* over a workspace's files */
    if (top < 0)
        top = open_workspace(files);
    FD_AUTO dir = find_place(&p, top, dest, &name);
    return dir < 0 || put_file(&p, source, &st, dir, name) < 0 ? put_failed(&p, name, err) : 0;
}
