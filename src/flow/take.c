/* SPDX-License-Identifier: Apache-2.0 */
/* Every name here is hostile. The kernel looks each one up below its folder (openat2, BENEATH and NO_SYMLINKS), on both
 * sides: a link that an earlier run left in the host's folder leads nowhere either. A file is written without a name
 * that means anything and moved to its place when it is whole. Names with a leading dot are configuration to the host's
 * programs (.bashrc, .git), so a guest does not get to make one.
 *
 * Waits: pread in *; a regular file that a run left; none (the kernel's own); its type is not known */
#include "flow/take.h"

#include "base/limits.h"
#include "jail/copy.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_below(int dir, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static int failed(const char *what, struct err *err)
{
    if (errno == ELOOP)
        return err_set(err, ERR_USAGE, "%s goes through a symbolic link", what);
    err_sys(err, "%s", what);
    return err->code = ERR_USAGE;
}

/* O_PATH first: whatever it is, looking at it opens nothing. */
int flow_take_open(int left, const char *from, struct stat *st, struct err *err)
{
    FD_AUTO there = open_below(left, from, O_PATH | O_NOFOLLOW);
    if (there < 0 || fstat(there, st) < 0)
        return failed("it", err);
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_USAGE, "it is no regular file");
    FD_AUTO fd = open_below(left, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, st) < 0)
        return failed("it", err);
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_USAGE, "it is no regular file");
    return fd_take(&fd);
}

const char *flow_image_type(const unsigned char *head, size_t len)
{
    static const struct {
        const char *type, *begin;
        size_t len;
    } rows[] = {
        {"image/png", "\x89PNG\r\n\x1a\n", 8},
        {"image/jpeg", "\xff\xd8\xff", 3},
        {"image/gif", "GIF87a", 6},
        {"image/gif", "GIF89a", 6},
        {"image/bmp", "BM", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (len >= rows[i].len && memcmp(head, rows[i].begin, rows[i].len) == 0)
            return rows[i].type;
    return len >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0
               ? "image/webp"
               : NULL;
}

const char *flow_take_type(int left, const char *from)
{
    struct stat st;
    unsigned char head[FLOW_TYPE_HEAD];
    struct err unreadable = ERR_INIT; /* then its type is not known */
    FD_AUTO fd = flow_take_open(left, from, &st, &unreadable);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    return n > 0 ? flow_image_type(head, (size_t)n) : NULL;
}

static bool hidden(const char *path)
{
    return path[0] == '.' || strstr(path, "/.");
}

/* The folder that TO's last name belongs in; folders on the way are made. */
static int find_folder(int dir, const char *to, const char **ret_name, struct err *err)
{
    char part[NAME_MAX + 1];
    FD_AUTO at = open_below(dir, ".", O_RDONLY | O_DIRECTORY);
    const char *name = to;
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        if (slash - name > NAME_MAX) {
            errno = ENAMETOOLONG;
            return failed("its folder", err);
        }
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        int below = mkdirat(at, part, 0777) < 0 && errno != EEXIST
                        ? -1
                        : open_below(at, part, O_RDONLY | O_DIRECTORY);
        fd_close(at);
        at = below;
    }
    if (at < 0)
        return failed("its folder", err);
    *ret_name = name;
    return fd_take(&at);
}

static int move_in(int dir, const char *own, const char *name, bool replace, struct err *err)
{
    if (syscall(SYS_renameat2, dir, own, dir, name, replace ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST)
        return err_set(err, ERR_USAGE, "there is one of that name; --replace overwrites it");
    return failed("it", err);
}

int flow_take_file(int left, const char *from, int dir, const char *to, bool replace,
                   uint64_t *room, struct err *err)
{
    struct stat st = {0};
    const char *name = to;
    char own[40];
    uint64_t secret;
    if (hidden(to))
        return err_set(err, ERR_USAGE, "its name begins with a dot");
    FD_AUTO in = flow_take_open(left, from, &st, err);
    if (in < 0)
        return in;
    if ((uint64_t)st.st_size > *room)
        return err_set(err, ERR_USAGE, "more than --disk in all, holes counted");
    FD_AUTO at = find_folder(dir, to, &name, err);
    if (at < 0)
        return at;
    if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
        return failed("a name for it", err);
    snprintf(own, sizeof own, ".cordon-%016llx", (unsigned long long)secret);
    FD_AUTO out = openat(at, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int r = out < 0 || jail_copy_data(in, out, st.st_size) < 0 || ftruncate(out, st.st_size) < 0
                ? failed("it", err)
                : move_in(at, own, name, replace, err);
    if (r < 0 && out >= 0)
        (void)unlinkat(at, own, 0);
    if (r == 0)
        *room -= (uint64_t)st.st_size;
    return r;
}
