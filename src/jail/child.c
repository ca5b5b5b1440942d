/* A child outside its template is nothing but descriptors and what was proved. They travel in one
 * packet with a mask of which are there, so that a client gets exactly what the holder had.
 *
 * Waits: fd_send in *; the template, the holder or a client: a packet that fits; at once; an error
 *        fd_receive in next_packet; the template or the holder; at once where the socket is non-blocking,
 *          else after a poll of the caller's; GOT_NOTHING */
#include "jail/child.h"

#include "jail/supervisor/family.h"
#include "jail/supervisor/running.h"
#include "jail/template.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
    pid_t pid = c->guest >= 0 ? jail_pid_behind(c->guest) : 0;
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
enum { GOT_CHILD = 1, GOT_REFUSAL = 2, GOT_NOTHING = 3, GOT_END = 4 };

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
    return GOT_REFUSAL;
}

static int next_packet(int sock, struct jail_child *ret, struct err *err)
{
    char frame[2048];
    int ride[FDS];
    struct fd_packet p = {.data = frame, .len = sizeof frame, .fds = ride, .nfds = FDS};
    int got = fd_receive(sock, &p);
    if (got < 0 && errno == EMSGSIZE)
        return read_cut(&p, ret, err);
    if (got < 0)
        return errno == EAGAIN ? GOT_NOTHING : err_sys(err, "receive a child");
    return got == 0 ? GOT_END : read_packet(&p, ret, err);
}

/* What of its descriptors is no child's is closed. */
static int read_packet(struct fd_packet *p, struct jail_child *ret, struct err *err)
{
    struct wire_reader r;
    int result = wire_open(&r, p->data, p->len, err);
    if (result == 0 && r.type == WIRE_CHILD) {
        result = take_child(&r, p->fds, p->nfds, ret, err);
        if (result == 0)
            return GOT_CHILD;
    } else if (result == 0 && r.type == WIRE_NOCHILD) {
        *ret = (struct jail_child)JAIL_CHILD_NONE;
        ret->tag = wire_get_uint(&r);
        int code = (int)wire_get_int(&r);
        err_set(err, code, "%s", "");
        wire_get_text(&r, err->layer, sizeof err->layer);
        wire_get_text(&r, err->msg, sizeof err->msg);
        result = GOT_REFUSAL;
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
    return got == GOT_CHILD ? 0 : got < 0 ? got : err_set(err, ERR_STATE, "no child came");
}

int jail_child_receive(int sock, struct jail_child *ret_child, struct err *err)
{
    int got = next_packet(sock, ret_child, err);
    switch (got) {
    case GOT_CHILD:
        return 0;
    case GOT_REFUSAL:
        return err->code;
    case GOT_NOTHING:
    case GOT_END:
        return err_set(err, ERR_STATE, "no child came");
    default:
        return got;
    }
}

/* ---- the holder's end of a template ---- */

struct jail_template {
    struct jail_run *run;
    struct jail_sink sink; /* the holder's */
    int orders;
};

static void pass_on(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    const struct jail_template *t = ctx;
    if (t->sink.bytes)
        t->sink.bytes(t->sink.ctx, stream, data, len);
}

/* Read by jail_template_step, one at a time. At the end of the socket the run's own end is near. */
static bool wake(void *ctx)
{
    const struct jail_template *t = ctx;
    char byte;
    return recv(t->orders, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

int jail_template_new(const struct jail_spec *spec, const char *nest, const struct jail_sink *sink,
                      struct jail_template **ret, struct err *err)
{
    int sv[2];
    if (spec->kind != JAIL_KIND_TEMPLATE || spec->mode != JAIL_FULL)
        return err_set(err, ERR_USAGE, "a template needs namespaces of its own");
    struct jail_template *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, ERR_MEMORY, "no memory");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0) {
        free(t);
        return err_sys(err, "socketpair");
    }
    t->orders = sv[0];
    if (sink)
        t->sink = *sink;
    struct jail_start start = {.nest = nest,
                               .memory_by = JAIL_MEMORY_RLIMIT,
                               .input = -1,
                               .channel = sv[1],
                               .channel_ours = sv[0],
                               .sink = {.ctx = t, .bytes = pass_on, .channel = wake}};
    int r = fcntl(sv[0], F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, "fcntl")
                                                  : jail_run_new(spec, &start, &t->run, err);
    fd_close(sv[1]);
    if (r < 0) {
        jail_template_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void jail_template_free(struct jail_template *t)
{
    if (!t)
        return;
    fd_close(t->orders);
    jail_run_free(t->run);
    free(t);
}

int jail_template_fd(const struct jail_template *t)
{
    return jail_run_fd(t->run);
}

int jail_template_order(struct jail_template *t, const struct jail_child_spec *plan,
                        struct err *err)
{
    char storage[512];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    uint64_t limits[JAIL_LIMIT_COUNT];
    memcpy(limits, &plan->limits, sizeof limits);
    wire_begin(&w, &b, WIRE_ORDER);
    wire_put_uint(&w, plan->tag);
    wire_put_text(&w, plan->filter);
    wire_put_uint(&w, plan->session);
    wire_put_uints(&w, limits, JAIL_LIMIT_COUNT);
    int r = wire_end(&w);
    if (r < 0)
        return err_set(err, r, "an order does not fit its message");
    struct fd_packet p = {.data = b.data, .len = b.len};
    if (fd_send(t->orders, &p) == 0)
        return 0;
    return errno == EAGAIN ? err_set(err, ERR_LIMIT, "the template has too many orders waiting")
                           : err_sys(err, "order a child");
}

enum jail_template_event jail_template_step(struct jail_template *t, int timeout_ms,
                                            struct jail_child *ret_child, struct err *err)
{
    for (bool waited = false;; waited = true) {
        int got = next_packet(t->orders, ret_child, err);
        if (got == GOT_CHILD && ret_child->session && jail_family_new(ret_child, err) < 0) {
            jail_child_kill(ret_child);
            jail_child_close(ret_child);
            got = GOT_REFUSAL;
        }
        if (got == GOT_CHILD)
            return JAIL_TEMPLATE_CHILD;
        if (got == GOT_REFUSAL)
            return JAIL_TEMPLATE_REFUSED;
        if (got < 0)
            return JAIL_TEMPLATE_GONE; /* it speaks nonsense */
        bool over = jail_run_step(t->run, waited || got == GOT_END ? 0 : timeout_ms);
        if (over) {
            const struct jail_outcome *o = jail_run_outcome(t->run);
            err_set(err, ERR_MISSING, "the template is gone (%s %d)",
                    o->end == JAIL_END_EXIT ? "exit status" : "signal",
                    o->end == JAIL_END_EXIT ? o->exit_code : o->signal);
            return JAIL_TEMPLATE_GONE;
        }
        if (waited)
            return JAIL_TEMPLATE_NOTHING;
    }
}
