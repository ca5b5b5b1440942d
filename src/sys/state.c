/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever can write here can forge approvals and hide records, so each step is looked at after it was
 * opened, by descriptor: a name that was checked before may mean something else afterwards. What is
 * too open is refused rather than corrected: it may have been read or changed already, and the
 * operator should know.
 *
 * Waits: fsync in state_folder; the disk, once for a new folder; none (the kernel's own); holds no lock */
#include "sys/state.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    char folder[STATE_PATH_MAX]; /* empty: none */
    bool final;
} pinned;

int state_pin(const char *folder, bool final, struct err *err)
{
    const char *mark = strstr(folder, "{uid}");
    int before = mark ? (int)(mark - folder) : (int)strlen(folder);
    char number[16] = "";
    if (mark)
        snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    int n = snprintf(pinned.folder, sizeof pinned.folder, "%.*s%s%s", before, folder, number,
                     mark ? mark + 5 : "");
    if (n < 0 || n >= (int)sizeof pinned.folder) {
        pinned.folder[0] = 0;
        return err_set(err, ERR_USAGE, "state.folder of the machine's policy is too long");
    }
    pinned.final = final;
    return 0;
}

/* 1: OUT is the pinned folder. 0: there is none, or the environment may name another and does. */
static int pinned_path(char *out, size_t size, struct err *err)
{
    const char *asked = secure_getenv("CORDON_STATE");
    bool other = asked && *asked && strcmp(asked, pinned.folder) != 0;
    if (!pinned.folder[0] || (other && !pinned.final))
        return 0;
    if (other)
        return err_set(err, ERR_USAGE,
                       "CORDON_STATE is '%.80s', and the machine's policy pins the state folder to "
                       "%.120s: unset it",
                       asked, pinned.folder);
    int n = snprintf(out, size, "%s", pinned.folder);
    return n >= 0 && (size_t)n < size ? 1 : err_set(err, ERR_USAGE, "state.folder is too long");
}

int state_path(char *out, size_t size, struct err *err)
{
    int r = pinned_path(out, size, err);
    if (r != 0)
        return r < 0 ? r : 0;
    static const struct {
        const char *variable, *below;
    } candidates[] = {
        {"CORDON_STATE", ""}, {"XDG_STATE_HOME", "/cordon"}, {"HOME", "/.local/state/cordon"}};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        if (strcmp(candidates[i].variable, "HOME") == 0 && geteuid() == 0) {
            snprintf(out, size, "/var/lib/cordon");
            return 0;
        }
        const char *value = secure_getenv(candidates[i].variable);
        if (!value || !*value)
            continue;
        if (*value != '/')
            return err_set(err, ERR_USAGE, "%s is '%.80s': the state folder needs an absolute path",
                           candidates[i].variable, value);
        int n = snprintf(out, size, "%s%s", value, candidates[i].below);
        if (n < 0 || (size_t)n >= size)
            return err_set(err, ERR_USAGE, "%s is too long", candidates[i].variable);
        return 0;
    }
    return err_set(err, ERR_USAGE, "there is no state folder: set CORDON_STATE or HOME");
}

/* FORBIDDEN: the bits that would let others in. */
static int look(int fd, mode_t kind, mode_t forbidden, const char *what, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at %s", what);
    if ((st.st_mode & S_IFMT) != kind)
        return err_set(err, ERR_STATE, "%s is not a %s", what,
                       kind == S_IFDIR ? "folder" : "regular file");
    if (st.st_uid != geteuid())
        return err_set(err, ERR_STATE,
                       "%s belongs to uid %u, and cordon runs as uid %u; run it as its owner, or "
                       "choose another state folder (CORDON_STATE)",
                       what, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & forbidden)
        return err_set(err, ERR_STATE,
                       "%s has mode %03o: others may %s it; chmod %s once you know that nobody did",
                       what, (unsigned)(st.st_mode & 07777),
                       forbidden == 022 ? "write in" : "reach", kind == S_IFDIR ? "700" : "600");
    if (kind == S_IFREG && st.st_nlink != 1)
        return err_set(err, ERR_STATE,
                       "%s has %lu names (hard links) instead of one; remove the others", what,
                       (unsigned long)st.st_nlink);
    return 0;
}

/* *RET_WHY: why the last part was not made, where it may be there nevertheless; else 0. */
static int make_all(const char *path, int *ret_why, struct err *err)
{
    char part[STATE_PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part)
        return err_set(err, ERR_USAGE, "the path of the state folder is too long");
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        *ret_why = mkdir(part, 0700) < 0 && errno != EEXIST ? errno : 0;
        if (*ret_why && *ret_why != EROFS && *ret_why != EACCES)
            return err_sys(err, "make %s", part);
    }
    return 0;
}

int state_open(const char *path, bool make, int *ret_fd, struct err *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    FD_AUTO fd = open(path, flags);
    if (fd < 0 && errno == ENOENT && make) {
        int why = 0, r = make_all(path, &why, err);
        if (r < 0)
            return r;
        fd = open(path, flags);
        if (fd < 0 && errno == ENOENT && why)
            errno = why;
    }
    if (fd < 0)
        return err_sys(err, "open the state folder %.120s", path);
    int r = look(fd, S_IFDIR, 022, path, err);
    if (r < 0)
        return r;
    *ret_fd = fd_take(&fd);
    return 0;
}

int state_folder(int dir, const char *name, bool make, int *ret_fd, struct err *err)
{
    bool made = make && mkdirat(dir, name, 0700) == 0;
    if (make && !made && errno != EEXIST)
        return err_sys(err, "make %s in the state folder", name);
    if (made && fchmodat(dir, name, 0700, 0) < 0) /* what the umask took away */
        return err_sys(err, "make %s in the state folder", name);
    FD_AUTO fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_sys(err, "open %s in the state folder", name);
    if (made && fsync(dir) < 0)
        return err_sys(err, "make %s in the state folder", name);
    int r = look(fd, S_IFDIR, 077, name, err);
    if (r < 0)
        return r;
    *ret_fd = fd_take(&fd);
    return 0;
}

int state_file(int dir, const char *name, int flags, int *ret_fd, struct err *err)
{
    flags |= O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    /* The time of the last access is of no use, and noting it costs more than a mapping does. Only the owner of a file
     * may switch it off: where the kernel refuses that, the file is opened without. */
    FD_AUTO fd = openat(dir, name, flags | O_NOATIME | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EPERM)
        fd = openat(dir, name, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "open %s in the state folder", name);
    int r = look(fd, S_IFREG, 077, name, err);
    if (r < 0)
        return r;
    *ret_fd = fd_take(&fd);
    return 0;
}

bool state_is_same(int dir, const char *name, int fd)
{
    struct stat named, held;
    return fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &held) == 0 &&
           named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}
