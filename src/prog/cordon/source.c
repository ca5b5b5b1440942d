/* SPDX-License-Identifier: Apache-2.0 */
/* A program may come from a pipe that nobody ever writes to, or that its writer never closes. So a name is opened
 * without waiting for a writer, devices are not opened at all (some act when they are, most have no end), and what
 * comes is read until the deadline. Our own standard input is read as it is, since whoever started us chose it:
 * /dev/null is an empty program there. At a terminal the deadline begins anew with each line, since a person types.
 *
 * Waits: poll in wait_for_bytes; whoever writes the program; the caller's; an error that names the file
 *        wait_for_bytes in read_all; whoever writes the program; the caller's; an error that names the file
 *        read_all in source_read; whoever writes the program; the caller's; an error that names the file */
#include "source.h"

#include "base/clock.h"
#include "sys/fd.h"
#include "sys/nowait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STDIN_NAME "standard input"

/* A name that is wrong is the caller's; that no descriptor is left is not. */
static int unreadable(const char *name, struct err *err)
{
    err_sys(err, "%.200s", name);
    return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
}

/* Looked at before it is opened for reading, since opening a device may already do something; and by descriptor
 * afterwards, since the name may lead elsewhere by then. */
static int open_source(const char *path, int *ret_fd, struct err *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return unreadable(path, err);
    FD_AUTO fd = -1;
    if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
            return unreadable(path, err);
    }
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
        return err_set(err, ERR_USAGE,
                       "%.180s: a device, not a file; write - to read standard input", path);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* 0 when a read would find something; ERR_USAGE after the deadline. */
static int wait_for_bytes(int fd, const char *name, uint64_t wait_ms, uint64_t deadline_ns,
                          struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_now_ns(), left_ms = 0;
        if (now < deadline_ns)
            left_ms = (deadline_ns - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        int n = poll(&p, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return unreadable(name, err);
        if (clock_now_ns() >= deadline_ns)
            return err_set(err, ERR_USAGE,
                           "%.120s did not end within %llu ms: nobody wrote to it, or its writer "
                           "keeps it open; give a file that is complete",
                           name, (unsigned long long)wait_ms);
    }
}

static int read_all(int fd, const char *name, size_t max, uint64_t wait_ms, struct text *t,
                    struct err *err)
{
    const bool typed = isatty(fd);
    uint64_t deadline = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS;
    size_t cap = 65536;
    if (!(t->data = malloc(cap)))
        return err_set(err, ERR_MEMORY, "no memory");
    for (;;) {
        ssize_t n = sys_read_now(fd, t->data + t->len, cap - t->len);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return unreadable(name, err);
        if (n > 0)
            t->len += (size_t)n;
        if (t->len > max)
            return err_set(err, ERR_LIMIT, "%.200s: more than %zu bytes", name, max);
        char *more = t->len == cap ? realloc(t->data, cap *= 2) : t->data;
        if (!more)
            return err_set(err, ERR_MEMORY, "no memory");
        t->data = more;
        if (n > 0 && typed)
            deadline = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS;
        int r = wait_for_bytes(fd, name, wait_ms, deadline, err);
        if (r < 0)
            return r;
    }
}

int source_read(const char *path, size_t max, uint64_t wait_ms, struct text *ret, struct err *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct text t = {0};
    FD_AUTO opened = -1;
    int r = is_stdin ? 0 : open_source(path, &opened, err);
    if (r == 0)
        r = read_all(is_stdin ? STDIN_FILENO : opened, is_stdin ? STDIN_NAME : path, max, wait_ms,
                     &t, err);
    if (r < 0)
        free(t.data);
    else
        *ret = t;
    return r;
}
