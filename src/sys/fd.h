/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: closed by leaving their scope, passed over sockets, read whole.
 *
 * Takes:   descriptors and paths.
 * Gives:   descriptors with close-on-exec set, always.
 * Never:   follows a path further than it is told.
 * Runs in: every process.
 */
#ifndef SYS_FD_H
#define SYS_FD_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

void fd_close(int fd);    /* ignores -1; keeps errno */
void fd_cleanup(int *fd); /* for the attribute below */
#define FD_AUTO __attribute__((cleanup(fd_cleanup))) int

static inline int fd_take(int *fd) /* moves it out of the scope that would close it */
{
    int got = *fd;
    *fd = -1;
    return got;
}

/* Reads a small text file (of /proc, of a cgroup) whole, NUL-terminated. Returns its length, or -1
 * with errno; EFBIG when it does not fit. */
ssize_t fd_read_file(int dir, const char *path, char *out, size_t size);

/* Adds what a process of ours wrote to FD, a file in memory, to OUT. 0, ERR_SYS with errno, or the error of a full buffer. */
int fd_read_back(int fd, struct buf *out);

/* Writes TEXT in one call to an existing file. 0, or -1 with errno. */
int fd_write_file(int dir, const char *path, const char *text);

/* All LEN bytes, in as many calls as that takes, on a descriptor that blocks. 0, or -1 with errno. */
ERR_MUST_USE int fd_write_all(int fd, const void *data, size_t len);

/* 0: COUNT more descriptors (at most 64) can be open at once, as far as anybody knows; else -1 with errno.
 * A receiver asks before it takes a packet that cannot be sent a second time. */
int fd_spare(size_t count);

/* A file in memory with these bytes, at its beginning, that nobody can change: the input of a process, which cannot block
 * us if it does not read it. */
ERR_MUST_USE int fd_sealed(const void *data, size_t len, int *ret_fd, struct err *err);
/* What is in such a file, which somebody else made: it is there at once, as long as it says, and stays what it is. To be freed. NULL:
 * FD is none, is empty or has more than MAX bytes; WHAT is for the message. */
void *fd_sealed_read(int fd, size_t max, const char *what, size_t *ret_len, struct err *err);

/* How long one of our processes waits for another before it takes it for dead. */
#define FD_PATIENCE_MS 10000

/* One packet with descriptors and, on receipt, the sender's pid in our pid namespace (0 if
 * unknown). */
struct fd_packet {
    void *data;
    size_t len;
    int *fds;
    size_t nfds;
    pid_t sender;
};
int fd_send(int sock, const struct fd_packet *p); /* 0, or -1 with errno */

/* Receives into p->data (of p->len bytes) and p->fds (of p->nfds entries); both counts are set to
 * what came. Returns 1, 0 at the end of the stream, -1 with errno. A packet or descriptor list that
 * was cut is EMSGSIZE and leaves no descriptor behind; where only descriptors were cut (we have too many open) the
 * bytes are whole and p->len tells how many, else it is 0. */
int fd_receive(int sock, struct fd_packet *p);

#endif
