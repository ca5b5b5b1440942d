/* SPDX-License-Identifier: Apache-2.0 */
/* A child outside its template is nothing but descriptors and what was proved. They travel in one
 * packet with a mask of which are there, so that a client gets exactly what the holder had.
 *
 * Waits: fd_send in *; the template, the holder or a client: a packet that fits; at once; an error
 *        fd_receive in jail_child_next; the template or the holder; at once where the socket is non-blocking,
 *          else after a poll of the caller's; JAIL_GOT_NOTHING */
#include "jail/child.h"

#include "jail/supervisor/family.h"
#include "jail/supervisor/running.h"
#include "sys/fd.h"
#include "sys/pidfd.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
#define X(name) FD_##name,
    JAIL_CHILD_FDS(X)
#undef X
        FDS
};

static void fds_of(const struct jail_child *c, int *fds)
{
#define X(name) fds[FD_##name] = c->name;
    JAIL_CHILD_FDS(X)
#undef X
}

void jail_child_close(struct jail_child *c)
{
#define X(name) fd_close(fd_take(&c->name));
    JAIL_CHILD_FDS(X)
#undef X
}

void jail_child_kill(const struct jail_child *c)
{
    /* A session and its branches have one init: it goes when the last of them is gone. */
    int pidfd = c->session ? c->guest : c->init;
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    jail_family_wake(c);
}

pid_t jail_child_pid(const struct jail_child *c)
{
    pid_t pid = c->guest >= 0 ? sys_pidfd_pid(c->guest) : 0;
    return pid > 0 ? pid : 0;
}

bool jail_child_alive(const struct jail_child *c)
{
    struct pollfd p = {.fd = c->guest, .events = POLLIN};
    return c->guest >= 0 && poll(&p, 1, 0) == 0;
}

int jail_child_deadline(int control, uint64_t deadline_ns)
{
    char storage[32];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_DEADLINE);
    wire_put_uint(&w, deadline_ns);
    return wire_end(&w) < 0 || send(control, storage, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1
                                                                                              : 0;
}

int jail_child_send(int sock, const struct jail_child *c, struct err *err)
{
    char storage[2048];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    int fds[FDS], ride[FDS];
    uint64_t mask = 0, limits[JAIL_LIMIT_COUNT];
    size_t count = 0;
    fds_of(c, fds);
    for (size_t i = 0; i < FDS; i++)
        if (fds[i] >= 0) {
            mask |= 1ULL << i;
            ride[count++] = fds[i];
        }
    memcpy(limits, &c->limits, sizeof limits);
    wire_begin(&w, &b, WIRE_CHILD);
    wire_put_uint(&w, mask);
    wire_put_uint(&w, c->tag);
    wire_put_text(&w, c->filter);
    wire_put_uint(&w, c->session);
    wire_put_uint(&w, c->generation);
    wire_put_uints(&w, limits, JAIL_LIMIT_COUNT);
    jail_layers_write(&w, &c->layers);
    int r = wire_end(&w);
    if (r < 0)
        return err_set(err, r, "a child does not fit its message");
    struct fd_packet p = {.data = b.data, .len = b.len, .fds = ride, .nfds = count};
    return fd_send(sock, &p) < 0 ? err_sys(err, "send a child") : 0;
}

static int take_child(struct wire_reader *r, int *ride, size_t count, struct jail_child *ret,
                      struct err *err)
{
    uint64_t mask = wire_get_uint(r), limits[JAIL_LIMIT_COUNT];
    if (mask >> FDS || (size_t)__builtin_popcountll(mask) != count)
        return err_set(err, ERR_FORMAT, "a child with other descriptors than it says");
    struct jail_child c = JAIL_CHILD_NONE;
    c.tag = wire_get_uint(r);
    wire_get_text(r, c.filter, sizeof c.filter);
    c.session = wire_get_uint(r) != 0;
    c.generation = wire_get_uint(r);
    if (wire_get_uints(r, limits, JAIL_LIMIT_COUNT) != JAIL_LIMIT_COUNT)
        return err_set(err, ERR_FORMAT, "a child without its limits");
    memcpy(&c.limits, limits, sizeof limits);
    jail_layers_read(r, &c.layers);
    size_t at = 0;
#define X(name)                                                                                    \
    if (mask >> FD_##name & 1)                                                                     \
        c.name = ride[at++];
    JAIL_CHILD_FDS(X)
#undef X
    *ret = c;
    return 0;
}

_Static_assert(FDS <= JAIL_CHILD_RIDE, "all of a child's descriptors ride in one packet");

/* One packet: a child, or why there is none; or a negative error. */

static int read_packet(struct fd_packet *p, struct jail_child *ret, struct err *err);

/* We had no room for its descriptors. It is one child less, and it dies with them; the next may fit. */
static int read_cut(const struct fd_packet *p, struct jail_child *ret, struct err *err)
{
    struct wire_reader r;
    int result = p->len ? wire_open(&r, p->data, p->len, err) : ERR_FORMAT;
    if (result < 0 || r.type != WIRE_CHILD)
        return err_set(err, ERR_FORMAT, "a packet that does not fit, where a child was due");
    *ret = (struct jail_child)JAIL_CHILD_NONE;
    (void)wire_get_uint(&r); /* which descriptors there were */
    ret->tag = wire_get_uint(&r);
    err_set(err, ERR_LIMIT, "no room for a child's descriptors (RLIMIT_NOFILE)");
    return JAIL_GOT_REFUSAL;
}

int jail_child_next(int sock, struct jail_child *ret, struct err *err)
{
    char frame[2048];
    int ride[FDS];
    struct fd_packet p = {.data = frame, .len = sizeof frame, .fds = ride, .nfds = FDS};
    int got = fd_receive(sock, &p);
    if (got < 0 && errno == EMSGSIZE)
        return read_cut(&p, ret, err);
    if (got < 0)
        return errno == EAGAIN ? JAIL_GOT_NOTHING : err_sys(err, "receive a child");
    return got == 0 ? JAIL_GOT_END : read_packet(&p, ret, err);
}

/* What of its descriptors is no child's is closed. */
static int read_packet(struct fd_packet *p, struct jail_child *ret, struct err *err)
{
    struct wire_reader r;
    int result = wire_open(&r, p->data, p->len, err);
    if (result == 0 && r.type == WIRE_CHILD) {
        result = take_child(&r, p->fds, p->nfds, ret, err);
        if (result == 0)
            return JAIL_GOT_CHILD;
    } else if (result == 0 && r.type == WIRE_NOCHILD) {
        *ret = (struct jail_child)JAIL_CHILD_NONE;
        ret->tag = wire_get_uint(&r);
        int code = (int)wire_get_int(&r);
        err_set(err, code, "%s", "");
        wire_get_text(&r, err->layer, sizeof err->layer);
        wire_get_text(&r, err->msg, sizeof err->msg);
        result = JAIL_GOT_REFUSAL;
    } else if (result == 0) {
        result = err_set(err, ERR_FORMAT, "%s where a child was due", wire_name(r.type));
    }
    while (p->nfds)
        fd_close(p->fds[--p->nfds]);
    return result;
}

int jail_child_read(struct fd_packet *p, struct jail_child *ret_child, struct err *err)
{
    int got = read_packet(p, ret_child, err);
    return got == JAIL_GOT_CHILD ? 0 : got < 0 ? got : err_set(err, ERR_STATE, "no child came");
}

int jail_child_receive(int sock, struct jail_child *ret_child, struct err *err)
{
    int got = jail_child_next(sock, ret_child, err);
    switch (got) {
    case JAIL_GOT_CHILD:
        return 0;
    case JAIL_GOT_REFUSAL:
        return err->code;
    case JAIL_GOT_NOTHING:
    case JAIL_GOT_END:
        return err_set(err, ERR_STATE, "no child came");
    default:
        return got;
    }
}
