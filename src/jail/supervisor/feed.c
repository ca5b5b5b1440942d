/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's input is pumped through a pipe of ours. Handing over the caller's own descriptor
 * would hand over more than its bytes: with it a guest can chmod the file behind it, lock it, or
 * write to it if it happens to be a socket. One side is waited for at a time, so nothing spins. The caller's descriptor
 * may be shared: what epoll saw another process can have taken before we read.
 *
 * Waits: write in jail_feed_step; nobody: the pipe is non-blocking; at once; comes again */
#include "jail/outside.h"

#include "sys/fd.h"
#include "sys/nowait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CHUNK = 16384 };

int jail_feed_join(struct jail_feed *f, int from, int to, int epoll, uint32_t tag, struct err *err)
{
    *f = (struct jail_feed){.from = from, .to = to, .epoll = epoll, .tag = tag};
    f->data = malloc(CHUNK);
    if (!f->data)
        return err_set(err, ERR_MEMORY, "no memory");
    if (fcntl(to, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "pipe");
    struct epoll_event e = {.events = 0, .data.u32 = tag};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, f->to, &e) < 0)
        return err_sys(err, "epoll");
    e.events = EPOLLIN;
    f->always_ready = epoll_ctl(epoll, EPOLL_CTL_ADD, from, &e) < 0; /* EPERM: a regular file */
    if (f->always_ready && errno != EPERM)
        return err_sys(err, "watch the input");
    if (f->always_ready)
        jail_feed_step(f);
    return 0;
}

int jail_feed_start(struct jail_feed *f, int from, int epoll, uint32_t tag, int *ret_theirs,
                    struct err *err)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    *ret_theirs = p[0];
    return jail_feed_join(f, from, p[1], epoll, tag, err);
}

static void wait_for(struct jail_feed *f, bool reader)
{
    struct epoll_event e = {.events = reader ? EPOLLOUT : 0, .data.u32 = f->tag};
    epoll_ctl(f->epoll, EPOLL_CTL_MOD, f->to, &e);
    e.events = reader || (f->by_line && !f->lines) ? 0 : EPOLLIN;
    if (!f->always_ready)
        epoll_ctl(f->epoll, EPOLL_CTL_MOD, f->from, &e);
}

/* A terminal gives a line a read. */
void jail_feed_by_line(struct jail_feed *f)
{
    f->by_line = true;
    wait_for(f, false);
}

void jail_feed_line(struct jail_feed *f)
{
    if (f->to < 0 || !f->by_line)
        return;
    f->lines = f->lines < 1000 ? f->lines + 1 : f->lines;
    wait_for(f, f->at < f->len);
}

void jail_feed_step(struct jail_feed *f)
{
    if (f->to < 0)
        return;
    if (f->at == f->len) {
        ssize_t n = sys_read_now(f->from, f->data, CHUNK);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (n <= 0) {
            jail_feed_stop(f);
            return;
        }
        f->at = 0;
        f->len = (size_t)n;
        f->lines -= f->lines && f->data[n - 1] == '\n';
    }
    ssize_t n = write(f->to, f->data + f->at, f->len - f->at);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        jail_feed_stop(f); /* the guest closed its end */
        return;
    }
    f->at += n > 0 ? (size_t)n : 0;
    wait_for(f, f->at < f->len || f->always_ready);
}

void jail_feed_stop(struct jail_feed *f)
{
    if (f->to < 0)
        return;
    if (!f->always_ready)
        epoll_ctl(f->epoll, EPOLL_CTL_DEL, f->from, NULL); /* it is the caller's and stays open */
    fd_close(f->to);
    f->to = -1;
    free(f->data);
    f->data = NULL;
}
