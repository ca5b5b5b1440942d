/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is opened once, and all else works on that descriptor. The lock lies beside the socket and belongs to the open
 * file, so it lives on in cordond and ends with it, however it ends; who has it may remove a socket that a dead server left.
 * Somebody may have removed the lock, and other programs have none: a socket at which somebody listens is never removed.
 *
 * Waits: connect in somebody_listens; nobody: the socket is non-blocking; at once; it counts as listening
 *        flock in lock; nobody: LOCK_NB; at once; a refusal that says who listens */
#include "serve_socket.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static int open_folder(const char *path, size_t len, bool all_users, int *ret_fd, struct err *err)
{
    char folder[512];
    struct stat st;
    if (len >= sizeof folder)
        return err_set(err, ERR_USAGE, "--socket: the path is too long");
    snprintf(folder, sizeof folder, "%.*s", len ? (int)len : 1, len ? path : "/");
    FD_AUTO fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_USAGE, "--socket: %.160s: %s", folder, strerror(errno));
    if (st.st_uid != geteuid() || (st.st_mode & (all_users ? 022 : 077)))
        return err_set(err, ERR_USAGE,
                       "--socket: %.160s must be yours and closed to others (mkdir -m %s)", folder,
                       all_users ? "755" : "700");
    *ret_fd = fd_take(&fd);
    return 0;
}

static struct sockaddr_un address(int folder, const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", folder, name);
    return a;
}

static bool somebody_listens(int folder, const char *name)
{
    const struct sockaddr_un a = address(folder, name);
    FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0 || errno == EAGAIN);
}

/* A socket at which nobody listens is a dead server's, or the lock says whose it is; all else is not ours to remove. */
static int check_name(int folder, const char *name, struct err *err)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "--socket: %.80s", name);
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_USAGE,
                       "--socket: %.80s is there and is no socket; remove it, or name another",
                       name);
    if (somebody_listens(folder, name))
        return err_set(err, ERR_STATE,
                       "--socket: another cordon serve, or another program, listens at %.80s",
                       name);
    return 0;
}

static int lock(int folder, const char *name, int *ret_fd, struct err *err)
{
    char file[120];
    snprintf(file, sizeof file, "%s.lock", name);
    FD_AUTO fd = openat(folder, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "--socket: %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_STATE, "--socket: another cordon serve listens at %.80s", name);
    *ret_fd = fd_take(&fd);
    return 0;
}

static int bind_at(int folder, const char *name, bool all_users, int *ret_fd, struct err *err)
{
    const struct sockaddr_un a = address(folder, name);
    FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const mode_t before = umask(all_users ? 0111 : 0177);
    const bool good = fd >= 0 && (unlinkat(folder, name, 0) == 0 || errno == ENOENT) &&
                      bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 &&
                      listen(fd, BACKLOG) == 0;
    umask(before);
    if (!good)
        return err_sys(err, "--socket: %.80s", name);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Moves the three where cordond looks for them; none may lie in the way of another. */
static int hand_over(const int fds[3], struct err *err)
{
    int high[3];
    for (int i = 0; i < 3; i++)
        if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16)) < 0)
            return err_sys(err, "--socket");
    for (int i = 0; i < 3; i++)
        if (dup2(high[i], SERVE_SOCKET_FD + i) < 0)
            return err_sys(err, "--socket");
    return 0;
}

int serve_socket_adopt(int given, struct err *err)
{
    return dup2(given, SERVE_SOCKET_FD) < 0 ? err_sys(err, "--activated") : 0;
}

int serve_socket_listen(const char *path, bool all_users, const char **ret_name, struct err *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int fds[3] = {-1, -1, -1};
    if (path[0] != '/' || !*name || strlen(name) > 64 || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return err_set(err, ERR_USAGE,
                       "--socket needs an absolute path, its last part of 64 letters at the most");
    int r = open_folder(path, (size_t)(name - 1 - path), all_users, &fds[1], err);
    if (r == 0)
        r = check_name(fds[1], name, err);
    if (r == 0)
        r = lock(fds[1], name, &fds[2], err);
    if (r == 0)
        r = bind_at(fds[1], name, all_users, &fds[0], err);
    if (r == 0)
        r = hand_over(fds, err);
    if (r == 0)
        *ret_name = name;
    return r; /* the first three are closed by exec */
}
