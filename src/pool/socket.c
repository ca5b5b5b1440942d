/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is opened once and everything after works on that descriptor, so that a path that changes
 * under us leads nowhere. The socket's name carries the fingerprint of the message table: a client and
 * a holder of two versions do not meet, instead of talking past each other; nor do those of two
 * environments of packages.
 *
 * The lock is a record lock of fcntl: it belongs to the process, so no child can keep it alive, and
 * the kernel tells who has it. Byte 0 says that a holder lives, byte 1 that it does not listen yet:
 * whoever loses the race to start one waits for byte 1.
 *
 * Waits: nanosleep in wait_for; the holder to begin or to end, whose lock has no wait with a limit of its own; FD_PATIENCE_MS
 *          in all; false
 *        connect in pool_socket_connect; the holder's queue; the caller's, SO_SNDTIMEO; an error */
#include "pool/socket.h"

#include "base/clock.h"
#include "sys/fd.h"
#include "sys/peer.h"
#include "sys/state.h"
#include "wire/msg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ALIVE = 0, STARTING = 1, BACKLOG = 128 };

static void socket_name(char *out, size_t size, uint32_t mark, const char *suffix)
{
    if (mark)
        snprintf(out, size, "holder-%08x-%08x.%s", wire_fingerprint(), mark, suffix);
    else
        snprintf(out, size, "holder-%08x.%s", wire_fingerprint(), suffix);
}

int pool_socket_folder(char *out, size_t size, struct err *err)
{
    char state[STATE_PATH_MAX];
    int r = state_path(state, sizeof state, err);
    if (r < 0)
        return r;
    const char *asked = getenv("CORDON_STATE"), *runtime = getenv("XDG_RUNTIME_DIR");
    const bool apart = !(asked && *asked) && runtime && *runtime;
    if (apart && *runtime != '/')
        return err_set(err, ERR_USAGE, "XDG_RUNTIME_DIR is not an absolute path");
    int len = snprintf(out, size, "%s/%s", apart ? runtime : state, apart ? "cordon" : "run");
    return len < 0 || (size_t)len >= size
               ? err_set(err, ERR_USAGE, "the path of the holder's folder is too long")
               : 0;
}

static int make_folders(const char *path, struct err *err)
{
    char part[sizeof((struct pool_socket *)0)->path];
    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        size_t len = slash ? (size_t)(slash - path) : strlen(path);
        memcpy(part, path, len);
        part[len] = 0;
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_sys(err, "make %.160s", part);
        if (!slash)
            return 0;
    }
}

int pool_socket_open(struct pool_socket *ret, bool make, struct err *err)
{
    struct pool_socket p = {.dir = -1};
    int r = pool_socket_folder(p.path, sizeof p.path, err);
    if (r == 0 && make)
        r = make_folders(p.path, err);
    if (r < 0)
        return r;
    FD_AUTO dir = open(p.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno != ENOENT)
        return err_sys(err, "open %.160s", p.path);
    struct stat st;
    if (dir >= 0 && fstat(dir, &st) < 0)
        return err_sys(err, "look at %.160s", p.path);
    if (dir >= 0 && st.st_uid != geteuid())
        return err_set(err, ERR_STATE, "%.160s belongs to another user (%u)", p.path,
                       (unsigned)st.st_uid);
    if (dir >= 0 && (st.st_mode & 077))
        return err_set(err, ERR_STATE, "%.160s is open to others (mode %03o); chmod 700 it", p.path,
                       (unsigned)st.st_mode & 0777);
    p.dir = fd_take(&dir);
    *ret = p;
    return 0;
}

void pool_socket_done(struct pool_socket *p)
{
    fd_close(fd_take(&p->dir));
}

static int set_lock(int fd, short type, off_t first, off_t count)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    return fcntl(fd, F_SETLK, &l);
}

/* By the folder's descriptor: the name fits whatever the path's length. */
static struct sockaddr_un address(int dir, uint32_t mark)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[48];
    socket_name(name, sizeof name, mark, "sock");
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir, name);
    return a;
}

int pool_socket_listen(int dir, uint32_t mark, int *ret_lock, int *ret_sock, struct err *err)
{
    char name[48];
    socket_name(name, sizeof name, mark, "lock");
    FD_AUTO lock = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return err_sys(err, "the holder's lock file in the state folder");
    if (set_lock(lock, F_WRLCK, ALIVE, 2) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return err_sys(err, "lock the holder's lock file");
        *ret_lock = *ret_sock = -1;
        return 0;
    }
    socket_name(name, sizeof name, mark, "sock");
    FD_AUTO sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = address(dir, mark);
    mode_t before = umask(0177);
    bool good = sock >= 0 && (unlinkat(dir, name, 0) == 0 || errno == ENOENT) &&
                bind(sock, (struct sockaddr *)&a, sizeof a) == 0 && listen(sock, BACKLOG) == 0;
    umask(before);
    if (!good)
        return err_sys(err, "the holder's socket");
    *ret_lock = fd_take(&lock);
    *ret_sock = fd_take(&sock);
    return 0;
}

void pool_socket_listening(int lock)
{
    (void)set_lock(lock, F_UNLCK, STARTING, 1);
}

void pool_socket_hide(int dir, uint32_t mark)
{
    char name[48];
    socket_name(name, sizeof name, mark, "sock");
    (void)unlinkat(dir, name, 0); /* while the lock is still ours: it can be nobody else's socket */
}

uint64_t pool_socket_inode(int dir, uint32_t mark)
{
    char name[48];
    struct stat st;
    socket_name(name, sizeof name, mark, "sock");
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_ino : 0;
}

int pool_socket_connect(const struct pool_socket *p, uint64_t patience_ms, int *ret_sock,
                        struct err *err)
{
    *ret_sock = -1;
    if (p->dir < 0)
        return 0;
    FD_AUTO sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = address(p->dir, p->mark);
    struct timeval patience = {.tv_sec = (time_t)(patience_ms / 1000), /* of a full queue, too */
                               .tv_usec = (suseconds_t)(patience_ms % 1000 * 1000)};
    if (sock < 0)
        return err_sys(err, "a socket to the holder");
    (void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(sock, (struct sockaddr *)&a, sizeof a) < 0)
        return errno == ENOENT || errno == ECONNREFUSED
                   ? 0
                   : err_sys(err, "connect to the holder in %.120s", p->path);
    if (!sys_peer_is_us(sock, NULL))
        return err_set(err, ERR_STATE, "the holder in %.120s belongs to another user", p->path);
    *ret_sock = fd_take(&sock);
    return 0;
}

/* Closing the file again lets go of what was waited for. */
static bool wait_for(const struct pool_socket *p, off_t byte)
{
    const uint64_t end = clock_now_ns() + FD_PATIENCE_MS * CLOCK_NS_PER_MS;
    struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS / 4};
    char name[48];
    socket_name(name, sizeof name, p->mark, "lock");
    FD_AUTO lock = openat(p->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    while (lock >= 0 && set_lock(lock, F_RDLCK, byte, 1) < 0) {
        if (clock_now_ns() >= end)
            return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 8 * (long)CLOCK_NS_PER_MS)
            pause.tv_nsec *= 2;
    }
    return true;
}

bool pool_socket_wait(const struct pool_socket *p)
{
    return wait_for(p, STARTING);
}

bool pool_socket_gone(const struct pool_socket *p)
{
    return wait_for(p, ALIVE);
}

size_t pool_socket_holders(const struct pool_socket *p, pid_t *pids, size_t cap)
{
    FD_AUTO again = p->dir < 0 ? -1 : openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    size_t count = 0;
    if (!d)
        return 0;
    (void)fd_take(&again);
    for (struct dirent *e; count < cap && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (strncmp(e->d_name, "holder-", 7) != 0 || len < 5 ||
            strcmp(e->d_name + len - 5, ".lock") != 0)
            continue;
        FD_AUTO fd = openat(p->dir, e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ALIVE, .l_len = 1};
        if (fd >= 0 && fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid > 0)
            pids[count++] = l.l_pid;
    }
    closedir(d);
    return count;
}
