/* SPDX-License-Identifier: Apache-2.0 */
/* Three descriptors: what the client writes, what it reads, and packets to and from cordond. A client that does not read
 * what it asked for is not read either, so that nothing grows; one that ends its side is gone, and so are we.
 *
 * Waits: poll in serve_front_run; the client and cordond; none (both may be silent for as long as they like); the end of either wakes us
 *        poll in flush; the client, once cordond is gone; LIMIT_SERVE_FLUSH_MS; the rest is dropped
 *        read in read_client; nobody: poll said that there is something; at once; comes again after poll
 *        write in write_client; nobody: poll said that a piece of a page fits; at once; comes again after poll */
#include "serve/front/link.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { CLIENT_IN, CLIENT_OUT, CORDOND, WATCHED };
#define PAGE 4096 /* a pipe that poll calls writable takes so much without waiting */

struct loop {
    struct serve_front *front;
    struct buf line; /* of the client, until its newline is here */
    bool skipping;   /* the rest of a line that is too long */
    size_t written;  /* of the front's output */
    struct serve_link link;
    bool over;
};

/* Whole lines of what is here; the rest stays. */
static int take_lines(struct loop *l, const char *data, size_t len, struct err *err)
{
    int r = 0;
    while (len && r == 0) {
        const char *end = memchr(data, '\n', len);
        const size_t n = end ? (size_t)(end - data) : len;
        if (!l->skipping && buf_add(&l->line, data, n) < 0) {
            l->skipping = true;
            r = serve_front_too_long(l->front, err);
        }
        if (end && !l->skipping && l->line.len)
            r = serve_front_message(l->front, l->line.data, l->line.len, err);
        if (end) {
            l->skipping = false;
            buf_reset(&l->line);
        }
        data += n + (end != NULL);
        len -= n + (end != NULL);
    }
    return r;
}

static int read_client(struct loop *l, struct err *err)
{
    static char chunk[65536];
    const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    l->over = l->over || n <= 0;
    return n > 0 ? take_lines(l, chunk, (size_t)n, err) : 0;
}

static void write_client(struct loop *l)
{
    struct buf *out = serve_front_out(l->front);
    const size_t left = out->len - l->written, len = left < PAGE ? left : PAGE;
    const ssize_t n = len ? write(STDOUT_FILENO, out->data + l->written, len) : 0;
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        l->over = true;
    l->written += n > 0 ? (size_t)n : 0;
    buf_drop(out, &l->written);
}

static void watch(const struct loop *l, struct pollfd p[WATCHED])
{
    const struct buf *out = serve_front_out(l->front);
    const bool waits = out->len - l->written > LIMIT_SERVE_HOLD || serve_link_full(&l->link);
    const short events = serve_link_events(&l->link);
    p[CLIENT_IN] = (struct pollfd){.fd = waits ? -1 : STDIN_FILENO, .events = POLLIN};
    p[CLIENT_OUT] = (struct pollfd){.fd = STDOUT_FILENO, .events = out->len ? POLLOUT : 0};
    p[CORDOND] =
        (struct pollfd){.fd = SERVE_LINK_FD, .events = (short)(waits ? events & ~POLLIN : events)};
}

/* cordond ended: what it had answered still goes to the client, for a moment. */
static void flush(struct loop *l)
{
    const uint64_t until = clock_now_ns() + LIMIT_SERVE_FLUSH_MS * CLOCK_NS_PER_MS;
    const struct buf *out = serve_front_out(l->front);
    while (l->link.over && out->len && clock_now_ns() < until) {
        struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
        const uint64_t left = (until - clock_now_ns()) / CLOCK_NS_PER_MS + 1;
        if (poll(&p, 1, (int)(left < LIMIT_SERVE_FLUSH_MS ? left : LIMIT_SERVE_FLUSH_MS)) > 0 &&
            !(p.revents & POLLOUT))
            return; /* its reader is gone */
        if (p.revents & POLLOUT)
            write_client(l);
    }
}

int serve_front_run(const struct serve_front_config *config, struct err *err)
{
    struct loop l = {.front = serve_front_new(config)};
    int r = l.front ? 0 : err_set(err, ERR_MEMORY, "no memory");
    buf_init(&l.line, LIMIT_SERVE_LINE);
    serve_link_init(&l.link, l.front);
    while (r == 0 && !l.over) {
        struct pollfd p[WATCHED];
        watch(&l, p);
        if (poll(p, WATCHED, -1) < 0 && errno != EINTR)
            r = err_sys(err, "poll");
        if (r == 0 && p[CORDOND].revents & (POLLIN | POLLHUP | POLLERR))
            r = serve_link_read(&l.link, err);
        if (r == 0 && p[CLIENT_IN].revents)
            r = read_client(&l, err);
        serve_link_send(&l.link);
        l.over = l.over || l.link.over;
        if (p[CLIENT_OUT].revents & POLLOUT)
            write_client(&l);
        else if (p[CLIENT_OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
            l.over = true; /* its reader is gone */
    }
    if (r == 0)
        flush(&l);
    serve_front_free(l.front);
    buf_done(&l.line);
    return r;
}
