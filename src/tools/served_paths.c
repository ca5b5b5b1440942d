/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of a guest are that can open none (served.c): its own two folders, and what its run shows it of the host. A path is put
 * in order by its text alone, which is exact because no link is ever followed. The longest name that it begins with says where it
 * lies, and the kernel resolves what is left beneath that, through no link and into no other file system: a mount in a shared folder is not
 * served. Whether a share may be written stands here, in the Landlock rules of the process, and, as real root, in its mount. */
#include "tools/inside.h"

#include "sys/fd.h"
#include "wire/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct tools_served_root {
    const char *name; /* without its first slash */
    int fd;
    bool own, writable;
    bool file; /* FD is open, and all there is; else it is a folder */
};

enum { OWN = 2 };
static struct tools_served_root roots[OWN + LIMIT_BINDS] = {
    {.name = "workspace", .fd = -1, .own = true, .writable = true},
    {.name = "tmp", .fd = -1, .own = true, .writable = true},
};
static size_t count;

/* ---- what is served ---- */

/* Once, by name: what is mounted there was mounted by whoever built the jail. */
static int open_own(int files)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    for (count = 0; count < OWN; count++) {
        roots[count].fd = (int)syscall(SYS_openat2, files, roots[count].name, &how, sizeof how);
        if (roots[count].fd < 0)
            return -1;
    }
    return 0;
}

/* By the rights of this process, which are the guest's: of what may be written a part may be for others. */
static int open_file(const struct tools_share *s)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", s->fd);
    int fd = s->writable ? open(self, O_RDWR | O_CLOEXEC | O_NOCTTY) : -1;
    if (fd < 0)
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    fd_close(s->fd);
    return fd;
}

int tools_served_open(int files, const struct tools_share *shares, size_t nshares)
{
    struct stat st;
    if (nshares > LIMIT_BINDS || open_own(files) < 0)
        return -1;
    for (size_t i = 0; i < nshares; i++) {
        struct tools_served_root *r = &roots[count++];
        if (shares[i].dest[0] != '/' || fstat(shares[i].fd, &st) < 0)
            return -1;
        *r = (struct tools_served_root){.name = shares[i].dest + 1,
                                        .fd = shares[i].fd,
                                        .writable = shares[i].writable,
                                        .file = S_ISREG(st.st_mode)};
        if (r->file && (r->fd = open_file(&shares[i])) < 0)
            return -1;
    }
    return 0;
}

/* ---- paths ---- */

/* The letters of the parent of the first LEN of PATH. */
static size_t parent_of(const char *path, size_t len)
{
    while (len && path[len - 1] != '/')
        len--;
    return len ? len - 1 : 0;
}

/* An absolute path without `.`, `..` and double slashes, and without its first slash. 0, or an errno. */
static int put_in_order(const char *from, size_t len, char *to, size_t size)
{
    size_t at = 0, end = 0;
    if (memchr(from, 0, len))
        return EINVAL;
    if (len == 0)
        return ENOENT;
    if (from[0] != '/')
        return EINVAL;
    while (at < len) {
        while (at < len && from[at] == '/')
            at++;
        const char *slash = memchr(from + at, '/', len - at);
        const size_t n = slash ? (size_t)(slash - from) - at : len - at;
        if (n > 255 || end + n + 2 > size)
            return ENAMETOOLONG;
        if (n == 2 && memcmp(from + at, "..", 2) == 0) {
            end = parent_of(to, end);
        } else if (n && !(n == 1 && from[at] == '.')) {
            if (end)
                to[end++] = '/';
            memcpy(to + end, from + at, n);
            end += n;
        }
        at += n;
    }
    to[end] = 0;
    return 0;
}

/* The longest of those that PATH begins with; of two with one name the later one, which lies over the other. */
static const struct tools_served_root *root_of(const char *path)
{
    const struct tools_served_root *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t n = strlen(roots[i].name);
        if (n >= longest && strncmp(path, roots[i].name, n) == 0 && (path[n] == '/' || !path[n])) {
            found = &roots[i];
            longest = n;
        }
    }
    return found;
}

int tools_served_find(const void *path, size_t len, struct tools_served *ret)
{
    char whole[sizeof ret->path] = "";
    const int e = put_in_order(path, len, whole, sizeof whole);
    if (e)
        return e;
    ret->root = root_of(whole);
    if (!ret->root)
        return (int)WIRE_FILES_OUTSIDE;
    const size_t n = strlen(ret->root->name);
    snprintf(ret->path, sizeof ret->path, "%s", whole[n] ? whole + n + 1 : ".");
    return 0;
}

bool tools_served_writable(const struct tools_served *p)
{
    return p->root->writable;
}

/* The guest's own two are folders of one file system. Two shares may be that on the host, but are mounts of their own to a guest. */
bool tools_served_together(const struct tools_served *a, const struct tools_served *b)
{
    return a->root == b->root || (a->root->own && b->root->own);
}

/* ---- what lies there ---- */

/* A file that was shared by itself is open; below it nothing is. */
static int file_again(const struct tools_served *p, int flags)
{
    const bool folder = (flags & O_DIRECTORY) != 0;
    if (folder || strcmp(p->path, ".") != 0)
        errno = ENOTDIR;
    else if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        errno = EEXIST;
    else if ((flags & O_ACCMODE) != O_RDONLY &&
             (fcntl(p->root->fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        errno = EACCES;
    else
        return fcntl(p->root->fd, F_DUPFD_CLOEXEC, 0);
    return -1;
}

int tools_served_beneath(const struct tools_served *p, int flags)
{
    /* a pipe is not waited for; the kernel takes no such word with O_PATH */
    const int more = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
    struct open_how how = {.flags = (uint64_t)(flags | more) | O_CLOEXEC,
                           .mode = flags & O_CREAT ? 0644 : 0,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return p->root->file ? file_again(p, flags)
                         : (int)syscall(SYS_openat2, p->root->fd, p->path, &how, sizeof how);
}

/* What is served itself is nobody's to change. */
int tools_served_above(const struct tools_served *p, const char **ret_name)
{
    struct tools_served above = {.root = p->root, .path = "."};
    const size_t len = parent_of(p->path, strlen(p->path));
    if (strcmp(p->path, ".") == 0) {
        errno = EBUSY;
        return -1;
    }
    if (len) {
        memcpy(above.path, p->path, len);
        above.path[len] = 0;
    }
    *ret_name = p->path + (len ? len + 1 : 0);
    return tools_served_beneath(&above, O_PATH | O_DIRECTORY);
}

/* Anything else would wait, or act. */
int tools_served_regular(const struct tools_served *p, int flags)
{
    struct stat st;
    FD_AUTO fd = tools_served_beneath(p, flags);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
        return -1;
    }
    return fd_take(&fd);
}
