/* SPDX-License-Identifier: Apache-2.0 */
/* Small on purpose: every descriptor of Cordon is opened close-on-exec, and what arrives over a
 * socket is either taken whole or closed at once, so nothing leaks on the error paths.
 *
 * Waits: recvmsg in fd_receive; the peer; the caller's: it polls first, or the socket does not block;
 *          EAGAIN
 *        sendmsg in fd_send; the peer to read; the caller's: SO_SNDTIMEO, or the packet fits; EAGAIN
 *        read in fd_read_file; /proc, a cgroup, a small file; none (the kernel's own); an error
 *        read in fd_read_back; memory; at once; an error
 *        write in fd_write_file; /proc, a cgroup; none (the kernel's own); an error
 *        write in fd_write_all; the reader, or the disk; the caller's; its error
 *        write in fd_sealed; memory; at once; an error
 *        pread in *; nobody: a sealed file in memory; at once; an error */
#include "sys/fd.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int fd)
{
    if (fd < 0)
        return;
    int saved = errno;
    close(fd);
    errno = saved;
}

void fd_cleanup(int *fd)
{
    fd_close(*fd);
}

int fd_read_back(int fd, struct buf *out)
{
    char chunk[16384];
    if (lseek(fd, 0, SEEK_SET) < 0)
        return ERR_SYS;
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n <= 0)
            return n < 0 ? ERR_SYS : 0;
        const int r = buf_add(out, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
}

ssize_t fd_read_file(int dir, const char *path, char *out, size_t size)
{
    FD_AUTO fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    size_t got = 0;
    while (got < size) {
        ssize_t n = read(fd, out + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0) {
            out[got] = 0;
            return (ssize_t)got;
        }
        got += (size_t)n;
    }
    errno = EFBIG;
    return -1;
}

int fd_write_file(int dir, const char *path, const char *text)
{
    FD_AUTO fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    size_t len = strlen(text);
    ssize_t n = write(fd, text, len);
    if (n >= 0 && (size_t)n != len)
        errno = EIO;
    return n == (ssize_t)len ? 0 : -1;
}

int fd_write_all(int fd, const void *data, size_t len)
{
    for (const char *p = data; len;) {
        const ssize_t n = write(fd, p, len);
        if (n < 0 && errno != EINTR)
            return -1;
        p += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

union control {
    struct cmsghdr align;
    char storage[CMSG_SPACE(sizeof(int) * LIMIT_FRAME_FDS) + CMSG_SPACE(sizeof(struct ucred))];
};

int fd_spare(size_t count)
{
    int fds[64];
    size_t n = 0;
    while (n < count && n < sizeof fds / sizeof *fds &&
           (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
        n++;
    int why = errno;
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    errno = why;
    return n == count ? 0 : -1;
}

int fd_send(int sock, const struct fd_packet *p)
{
    union control c = {0};
    struct iovec iov = {p->data, p->len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (p->nfds > LIMIT_FRAME_FDS) {
        errno = EMSGSIZE;
        return -1;
    }
    if (p->nfds) {
        m.msg_control = c.storage;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * p->nfds);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * p->nfds);
        memcpy(CMSG_DATA(h), p->fds, sizeof(int) * p->nfds);
    }
    ssize_t n;
    do
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n != p->len)
        errno = EMSGSIZE;
    return n == (ssize_t)p->len ? 0 : -1;
}

int fd_receive(int sock, struct fd_packet *p)
{
    union control c = {0};
    struct iovec iov = {p->data, p->len};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = c.storage,
                       .msg_controllen = sizeof c.storage};
    size_t storage = p->nfds;
    ssize_t n;
    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    p->nfds = 0;
    p->sender = 0;
    if (n < 0)
        return -1;
    bool cut = (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level != SOL_SOCKET)
            continue;
        if (h->cmsg_type == SCM_CREDENTIALS) {
            struct ucred u;
            memcpy(&u, CMSG_DATA(h), sizeof u);
            p->sender = u.pid;
        } else if (h->cmsg_type == SCM_RIGHTS) {
            size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < count; i++) {
                int fd;
                memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
                if (p->nfds < storage)
                    p->fds[p->nfds++] = fd;
                else {
                    fd_close(fd);
                    cut = true;
                }
            }
        }
    }
    if (cut) {
        while (p->nfds)
            fd_close(p->fds[--p->nfds]);
        p->len = m.msg_flags & MSG_TRUNC ? 0 : (size_t)n;
        errno = EMSGSIZE;
        return -1;
    }
    p->len = (size_t)n;
    return n > 0;
}

int fd_sealed(const void *data, size_t len, int *ret_fd, struct err *err)
{
    FD_AUTO fd = memfd_create("cordon-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)data + at, len - at);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "write the input of a process");
        at += n > 0 ? (size_t)n : 0;
    }
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return err_sys(err, "seal the input of a process");
    *ret_fd = fd_take(&fd);
    return 0;
}

void *fd_sealed_read(int fd, size_t max, const char *what, size_t *ret_len, struct err *err)
{
    const int want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    if (seals < 0 || (seals & want) != want || fstat(fd, &st) < 0 || st.st_size < 1 ||
        (size_t)st.st_size > max) {
        err_set(err, ERR_FORMAT, "%s: not in sealed memory", what);
        return NULL;
    }
    const size_t len = (size_t)st.st_size;
    void *data = malloc(len);
    if (!data) {
        err_set(err, ERR_MEMORY, "no memory");
        return NULL;
    }
    if (pread(fd, data, len, 0) == (ssize_t)len) {
        *ret_len = len;
        return data;
    }
    free(data);
    err_sys(err, "%s", what);
    return NULL;
}
