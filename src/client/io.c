/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to and from the server. A caller that gives up is noticed wherever we wait, by a descriptor beside the connection.
 *
 * Waits: poll in until; the server; the client's patience, 2 s for room to give up; the server counts as gone
 *        read in until; an eventfd that never blocks; none (EFD_NONBLOCK); nothing is read
 *        poll in client_lost; the end of a server that we started; 1 s; its last words are taken as they are
 *        pread in *; the file of what the server said last; none (the kernel's own); it is not told */
#include "client/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GIVE_UP_NS (2 * CLOCK_NS_PER_S) /* for a server to take that a call is given up */

int client_fail(struct cordon_client *c, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    return status;
}

int client_lost(struct cordon_client *c, const char *why)
{
    char said[1000];
    ssize_t n = 0;
    struct stat st;
    if (c->pid) { /* its last words come with its end */
        struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, c->pid, 0), .events = POLLIN};
        if (end.fd >= 0) {
            poll(&end, 1, 1000);
            close(end.fd);
        }
        const off_t most = sizeof said - 1;
        const off_t from = fstat(c->words, &st) == 0 && st.st_size > most ? st.st_size - most : 0;
        n = pread(c->words, said, sizeof said - 1, from);
    }
    said[n > 0 ? n : 0] = 0;
    c->gone = true;
    return client_fail(c, CORDON_CLIENT_GONE, "%.100s%s%s", why, said[0] ? ": " : "", said);
}

/* 0: EVENTS can be done. HEEDS: a cancel ends it. */
static int until(struct cordon_client *c, short events, uint64_t end_ns, bool heeds)
{
    for (;;) {
        struct pollfd at[2] = {{.fd = c->fd, .events = events}, {.fd = c->wake, .events = POLLIN}};
        const uint64_t now = clock_now_ns();
        if (heeds && atomic_exchange(&c->cancelled, false))
            return client_fail(c, CORDON_CLIENT_CANCELLED, "cancelled");
        if (now >= end_ns)
            return client_lost(c, events == POLLIN ? "the server does not answer"
                                                   : "the server does not read");
        const uint64_t ms = (end_ns - now) / CLOCK_NS_PER_MS + 1;
        if (poll(at, heeds ? 2 : 1, ms > 60000 ? 60000 : (int)ms) < 0 && errno != EINTR)
            return client_lost(c, strerror(errno));
        uint64_t
            count; /* the flag is set before it: it is told here, whether the flag was seen before or not */
        if (at[1].revents)
            (void)!read(c->wake, &count, sizeof count);
        else if (at[0].revents)
            return 0;
    }
}

void client_drop(struct cordon_client *c)
{
    c->gone = true;
    if (c->fd >= 0 && c->owner == getpid())
        shutdown(c->fd, SHUT_RDWR);
}

/* ---- what came ---- */

static struct client_call *find(struct cordon_client *c, const struct client_value *number)
{
    int64_t n;
    if (!client_integer(number, &n))
        return NULL;
    for (struct client_call *call = c->calls; call; call = call->outer)
        if (call->number == (uint64_t)n)
            return call;
    return NULL;
}

static void take_progress(struct cordon_client *c, const struct client_value *params)
{
    struct client_value token, ms, message;
    int64_t n = 0;
    size_t len;
    if (!client_member(params->text, params->len, "progressToken", &token))
        return;
    struct client_call *call = find(c, &token);
    if (!call || call != c->calls || !call->watch || !call->watch->on_progress ||
        !client_member(params->text, params->len, "progress", &ms) || !client_integer(&ms, &n))
        return;
    char *words = client_member(params->text, params->len, "message", &message)
                      ? client_decode(&message, &len)
                      : NULL;
    if (call->watch->on_progress(call->watch->data, (uint64_t)n, words ? words : ""))
        call->stopped = true;
    free(words);
}

/* One line; a reply is kept with its call. */
static int take_line(struct cordon_client *c, const char *line, size_t len)
{
    static const char told[] = "notifications/progress";
    struct client_value id, method, params, error;
    if (client_member(line, len, "method", &method)) {
        if (method.kind == JSON_STRING && method.len == sizeof told - 1 &&
            memcmp(method.text, told, method.len) == 0 &&
            client_member(line, len, "params", &params))
            take_progress(c, &params);
        return 0;
    }
    if (!client_member(line, len, "id", &id))
        return client_lost(c, "what the server said is no reply");
    struct client_call *call = find(c, &id);
    if (call && !call->reply) {
        call->reply = malloc(len + 1);
        if (!call->reply)
            return client_fail(c, CORDON_CLIENT_MEMORY, "no memory");
        memcpy(call->reply, line, len);
        call->reply[len] = 0;
        call->len = len;
    } else if (id.kind == JSON_NULL && client_member(line, len, "error", &error)) {
        return client_lost(c, "the server could not read what we wrote");
    }
    return 0;
}

/* The first line of what was read, taken out before a callback may read more. 1: there was one. */
static int take_first(struct cordon_client *c)
{
    const char *end =
        c->in.len > c->looked ? memchr(c->in.data + c->looked, '\n', c->in.len - c->looked) : NULL;
    c->looked = end ? 0 : c->in.len;
    if (!end)
        return 0;
    const size_t len = (size_t)(end - c->in.data), left = c->in.len - len - 1;
    char *line = malloc(len + 1);
    if (!line)
        return -client_fail(c, CORDON_CLIENT_MEMORY, "no memory");
    memcpy(line, c->in.data, len);
    memmove(c->in.data, end + 1, left);
    c->in.len = left;
    const int r = take_line(c, line, len);
    free(line);
    return r ? -r : 1;
}

static int read_more(struct cordon_client *c)
{
    char *room;
    const size_t size = 65536;
    if (buf_reserve(&c->in, size, &room) < 0)
        return client_lost(c, "an answer is longer than 64 MiB");
    const ssize_t n = recv(c->fd, room, size, MSG_DONTWAIT);
    if (n == 0)
        return client_lost(c, "the server ended");
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : client_lost(c, "the server is gone");
    buf_added(&c->in, (size_t)n);
    return 0;
}

int client_send(struct cordon_client *c, const struct buf *line, bool giving_up)
{
    const bool shorter = giving_up && c->patience_ns > GIVE_UP_NS;
    const uint64_t end = clock_now_ns() + (shorter ? GIVE_UP_NS : c->patience_ns);
    for (size_t at = 0; at < line->len;) {
        const ssize_t n = send(c->fd, line->data + at, line->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            at += (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return client_lost(c, "the server is gone");
        int r = until(c, POLLOUT | POLLIN, end, !giving_up);
        if (r == 0) /* a server whose answers nobody takes does not read either */
            r = read_more(c);
        if (r == CORDON_CLIENT_CANCELLED && at) /* half a message: nothing can follow it */
            return client_lost(c, "cancelled in the middle of a message");
        if (r)
            return r;
    }
    return 0;
}

int client_receive(struct cordon_client *c, struct client_call *call)
{
    uint64_t end = clock_now_ns() + c->patience_ns;
    while (!call->reply) {
        int r = take_first(c);
        if (r < 0)
            return -r;
        if (call->stopped)
            return client_fail(c, CORDON_CLIENT_CANCELLED, "cancelled by a callback");
        if (r > 0) {
            end = clock_now_ns() + c->patience_ns;
            continue;
        }
        r = until(c, POLLIN, end, true);
        if (r == 0)
            r = read_more(c);
        if (r)
            return r;
    }
    return 0;
}
