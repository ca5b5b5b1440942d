/* SPDX-License-Identifier: Apache-2.0 */
/* copy_file_range between two file systems of this kind is EXDEV, so sendfile; and only where there is data, or a
 * file that is mostly holes would not fit the quota that it was made under. A file of two names becomes
 * two files.
 *
 * Waits: sendfile in jail_copy_data; file systems in memory; none (the kernel's own); an error */
#include "jail/copy.h"

#include "jail/spec.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

int jail_copy_data(int from, int to, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO ? 0 : -1; /* nothing but a hole up to the end */
        off_t end = lseek(from, data, SEEK_HOLE);
        if (end < 0 || lseek(to, data, SEEK_SET) < 0)
            return -1;
        for (at = data; at < end;) {
            ssize_t n = sendfile(to, from, &at, (size_t)(end - at));
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return n < 0 ? -1 : 0;
        }
    }
    return 0;
}

static int copy_file(int from, int to, const char *name, struct stat *st)
{
    FD_AUTO in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0 || fstat(in, st) < 0)
        return -1;
    FD_AUTO out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    return out < 0 || jail_copy_data(in, out, st->st_size) < 0 || ftruncate(out, st->st_size) < 0 ||
                   fchmod(out, st->st_mode & 01777) < 0 || futimens(out, times) < 0
               ? -1
               : 0;
}

static int copy_link(int from, int to, const char *name, const struct stat *st)
{
    char target[4096];
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = 0;
    return symlinkat(target, to, name) < 0 || utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0
               ? -1
               : 0;
}

static int copy_node(int to, const char *name, const struct stat *st)
{
    return mknodat(to, name, (st->st_mode & S_IFMT) | 0600, 0) < 0 ||
                   fchmodat(to, name, st->st_mode & 01777, 0) < 0
               ? -1
               : 0;
}

/* What is copied: a guest's files, or the upper layer of an overlay with its marks. */
enum copied { FILES, LAYER };

#define OPAQUE "user.overlay.opaque"

/* A folder that hides the one below it altogether. */
static int copy_mark(int from, int to)
{
    char mark = 0;
    if (fgetxattr(from, OPAQUE, &mark, 1) != 1 || mark != 'y')
        return 0;
    return fsetxattr(to, OPAQUE, &mark, 1, 0);
}

/* What says that the file of this name below is deleted: a device of no number, which everybody may make. */
static bool is_whiteout(enum copied what, const struct stat *st)
{
    return what == LAYER && S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static int copy_folder(int from, int to, unsigned depth, enum copied what, struct err *err);

static int enter_folder(int from, int to, const char *name, const struct stat *st, unsigned depth,
                        enum copied what, struct err *err)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    if (depth == JAIL_COPY_DEPTH)
        return err_set(err, ERR_STATE, "folders of the workspace are nested deeper than %d",
                       JAIL_COPY_DEPTH);
    if (mkdirat(to, name, 0700) < 0 && errno != EEXIST) /* the two at the top are there */
        return err_sys(err, "copy a folder");
    FD_AUTO in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    FD_AUTO out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (in < 0 || out < 0)
        return err_sys(err, "copy a folder");
    if (what == LAYER && copy_mark(in, out) < 0)
        return err_sys(err, "copy a mark of a folder");
    int r = copy_folder(in, out, depth + 1, what, err);
    if (r == 0 && (fchmod(out, st->st_mode & 01777) < 0 || futimens(out, times) < 0))
        r = err_sys(err, "copy a folder");
    return r;
}

static int copy_entry(int from, int to, const char *name, unsigned depth, enum copied what,
                      struct err *err)
{
    struct stat st;
    int r = fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW);
    if (r == 0 && S_ISDIR(st.st_mode))
        return enter_folder(from, to, name, &st, depth, what, err);
    if (r == 0 && S_ISREG(st.st_mode))
        r = copy_file(from, to, name, &st);
    else if (r == 0 && S_ISLNK(st.st_mode))
        r = copy_link(from, to, name, &st);
    else if (r == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        r = copy_node(to, name, &st);
    else if (r == 0 && is_whiteout(what, &st))
        r = mknodat(to, name, S_IFCHR, 0);
    else if (r == 0)
        return err_set(err, ERR_STATE,
                       "the workspace has a device in it, which cannot be copied; remove it");
    if (r < 0 && errno == ENOSPC)
        return err_set(err, ERR_STATE,
                       "a copy of the session's files does not fit its --disk or --inodes; a file "
                       "with several names (hard links) is copied once for each");
    return r < 0 ? err_sys(err, "copy a file of the workspace") : 0;
}

static int copy_folder(int from, int to, unsigned depth, enum copied what, struct err *err)
{
    /* not opened anew: the guest may have shut the folder, and FROM was opened all the same */
    DIR *dir = entries_take(fcntl(from, F_DUPFD_CLOEXEC, 3));
    int r = 0;
    if (!dir)
        return err_sys(err, "read a folder");
    rewinddir(dir); /* the position is shared with every copy of the descriptor */
    for (const char *name; r == 0 && (name = entries_next(dir));)
        r = copy_entry(from, to, name, depth, what, err);
    if (r == 0 && errno)
        r = err_sys(err, "read a folder");
    closedir(dir);
    return r;
}

int jail_copy_tree(int from, int to, struct err *err)
{
    return copy_folder(from, to, 0, FILES, err);
}

/* All but the two names that have mounts upon them. */
static int copy_beside(int from, int to, struct err *err)
{
    DIR *dir = entries_take(fcntl(from, F_DUPFD_CLOEXEC, 3));
    int r = 0;
    if (!dir)
        return err_sys(err, "read a folder");
    rewinddir(dir);
    for (const char *name; r == 0 && (name = entries_next(dir));)
        if (strcmp(name, JAIL_LAYERS) != 0 && strcmp(name, JAIL_WORKSPACE_IN) != 0)
            r = copy_entry(from, to, name, 0, FILES, err);
    if (r == 0 && errno)
        r = err_sys(err, "read a folder");
    closedir(dir);
    return r;
}

int jail_copy_layered(int files, int layers, int to, struct err *err)
{
    FD_AUTO from = openat(layers, JAIL_UPPER_IN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    FD_AUTO upper = from < 0 || mkdirat(to, JAIL_WORKSPACE_IN, 0755) < 0 ||
                            mkdirat(to, JAIL_LAYERS, 0755) < 0 || mkdirat(to, JAIL_UPPER, 0755) < 0
                        ? -1
                        : openat(to, JAIL_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (upper < 0 || fstat(from, &st) < 0)
        return err_sys(err, "copy the layers of /workspace");
    int r = copy_mark(from, upper) < 0 ? err_sys(err, "copy a mark of a folder")
                                       : copy_folder(from, upper, 0, LAYER, err);
    if (r == 0 && fchmod(upper, st.st_mode & 01777) < 0)
        r = err_sys(err, "copy the layers of /workspace");
    return r < 0 ? r : copy_beside(files, to, err);
}
