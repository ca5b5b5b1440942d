/* SPDX-License-Identifier: Apache-2.0 */
/* One request, one reply; a session comes as the reply and its child's packet behind it, a child for one run by
 * itself. The holder is trusted, but may be stopped or stuck: a run then goes without it, and people are told. The
 * client's answer_ms is 50 ms for a run and 2 s for people.
 *
 * Waits: pool_socket_connect in pool_client_open; the holder's queue; answer_ms; an error
 *        poll in wait_for; the holder; the caller's; false
 *        write in sealed; memory; at once; an error
 *        fd_send in send_with; the holder to read; answer_ms, SO_SNDTIMEO; an error
 *        wait_for in receive; the holder; the request's patience (50 ms for a run) and answer_ms; an error
 *        fd_receive in *; nobody: poll said that it is there; at once; the holder is lost
 *        wait_for in *; the holder; answer_ms; an error */
#include "pool/pool_client.h"

#include "pool/socket.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int pool_client_open(struct pool_client *ret, const struct pool_environment *e, uint64_t answer_ms,
                     struct err *err)
{
    struct pool_socket at = {.dir = -1};
    *ret = (struct pool_client){.sock = -1, .answer_ms = answer_ms};
    int r = pool_socket_open(&at, false, err);
    at.mark = pool_environment_mark(e);
    if (r == 0)
        r = pool_socket_connect(&at, answer_ms, &ret->sock, err);
    pool_socket_done(&at);
    return r;
}

void pool_client_close(struct pool_client *c)
{
    fd_close(fd_take(&c->sock));
    pool_shares_free(c->shares);
    c->shares = NULL;
    c->ahead = false;
}

/* True when there is something to read. */
static bool wait_for(int sock, uint64_t ms)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, (int)ms);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static int lost(struct err *err)
{
    return err_set(err, ERR_STATE, "the holder closed the connection");
}

static int send_with(const struct pool_client *c, const struct pool_request *q, int *fds,
                     size_t nfds, struct err *err)
{
    char frame[4096];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    int r = pool_request_write(q, &b, err);
    if (r < 0)
        return r;
    struct fd_packet out = {.data = frame, .len = b.len, .fds = fds, .nfds = nfds};
    if (fd_send(c->sock, &out) < 0)
        return errno == EPIPE ? lost(err) : err_sys(err, "ask the holder");
    return 0;
}

static int send_request(const struct pool_client *c, const struct pool_request *q, int fd,
                        struct err *err)
{
    return send_with(c, q, &fd, fd >= 0, err);
}

/* One packet; on an error nothing rode along. */
static int receive(const struct pool_client *c, uint64_t patience_ms, struct fd_packet *in,
                   struct err *err)
{
    if (!wait_for(c->sock, patience_ms + c->answer_ms)) {
        in->nfds = 0;
        return err_set(err, ERR_STATE, "the holder does not answer; see `cordon pool status`");
    }
    int got = fd_receive(c->sock, in);
    if (got > 0)
        return 0;
    in->nfds = 0;
    return got == 0 || errno == ECONNRESET ? lost(err) : err_sys(err, "the holder's answer");
}

/* *ret_fd: what rode along, or -1. */
static int take_reply(const struct pool_client *c, uint64_t patience_ms, int *ret_fd,
                      struct pool_answer *ret, struct err *err)
{
    char frame[4096];
    int back[2] = {-1, -1};
    struct fd_packet in = {.data = frame, .len = sizeof frame, .fds = back, .nfds = 2};
    int r = receive(c, patience_ms, &in, err);
    if (r < 0)
        return r;
    *ret_fd = in.nfds == 1 ? fd_take(&back[0]) : -1;
    fd_close(back[0]);
    fd_close(back[1]);
    r = pool_reply_read(frame, in.len, &ret->reply, err);
    ret->declined = r == 0 && ret->reply.type == WIRE_DECLINED;
    return r;
}

static void nobody_there(struct pool_answer *ret)
{
    *ret = (struct pool_answer){.declined = true,
                                .reply = {.type = WIRE_DECLINED,
                                          .state = POOL_WHY_COLD,
                                          .reason = "there is no session: no holder runs; `cordon "
                                                    "session new` makes one"}};
}

static int drop_ahead(struct pool_client *c, struct err *err);

/* *fd: rides along (-1: nothing), and then what rode back. */
static int ask(struct pool_client *c, const struct pool_request *q, uint64_t patience_ms, int *fd,
               struct pool_answer *ret, struct err *err)
{
    *ret = (struct pool_answer){0};
    if (c->sock < 0) {
        nobody_there(ret);
        return 0;
    }
    int r = c->ahead ? drop_ahead(c, err) : 0;
    if (r == 0)
        r = send_request(c, q, *fd, err);
    return r < 0 ? r : take_reply(c, patience_ms, fd, ret, err);
}

/* A request whose answer must be of one kind, or DECLINED. */
static int ask_for(struct pool_client *c, const struct pool_request *q, enum wire_type kind,
                   struct pool_answer *ret, struct err *err)
{
    int fd = -1;
    int r = ask(c, q, 0, &fd, ret, err);
    fd_close(fd);
    if (r == 0 && !ret->declined && ret->reply.type != kind && ret->reply.type != WIRE_POOL_END)
        r = err_set(err, ERR_FORMAT, "the holder answered with %s", wire_name(ret->reply.type));
    return r;
}

static int take_loan(struct pool_client *c, uint64_t patience_ms, struct jail_child *ret_child,
                     struct pool_answer *ret, struct err *err)
{
    char frame[4096];
    int ride[JAIL_CHILD_RIDE];
    struct fd_packet in = {
        .data = frame, .len = sizeof frame, .fds = ride, .nfds = JAIL_CHILD_RIDE};
    struct wire_reader type;
    *ret = (struct pool_answer){0};
    int r = receive(c, patience_ms, &in, err);
    if (r == 0)
        r = wire_open(&type, frame, in.len, err);
    if (r == 0 && type.type == WIRE_CHILD)
        return jail_child_read(&in, ret_child, err);
    pool_shares_free(c->shares);
    c->shares = NULL;
    if (r == 0 && type.type == WIRE_LENT && in.nfds == 1)
        r = pool_shares_read(ride[0], &c->shares, err);
    while (in.nfds)
        fd_close(ride[--in.nfds]);
    if (r == 0)
        r = pool_reply_read(frame, in.len, &ret->reply, err);
    ret->declined = r == 0 && ret->reply.type == WIRE_DECLINED;
    if (r < 0 || ret->declined)
        return r;
    if (ret->reply.type != WIRE_LENT)
        return err_set(err, ERR_FORMAT, "the holder answered with %s", wire_name(ret->reply.type));
    if (!wait_for(c->sock, c->answer_ms))
        return err_set(err, ERR_STATE, "the holder does not answer; see `cordon pool status`");
    return jail_child_receive(c->sock, ret_child, err);
}

/* NRIDE descriptors ride along. */
static int borrow(struct pool_client *c, const struct pool_request *q, int *ride, size_t nride,
                  uint64_t patience_ms, struct jail_child *ret_child, struct pool_answer *ret,
                  struct err *err)
{
    if (c->sock < 0) {
        nobody_there(ret);
        return 0;
    }
    int r = c->ahead ? drop_ahead(c, err) : 0;
    if (r == 0)
        r = send_with(c, q, ride, nride, err);
    return r < 0 ? r : take_loan(c, patience_ms, ret_child, ret, err);
}

/* A child that nobody will use. It was lent all the same. */
static int give_back(struct pool_client *c, struct jail_child *child, struct err *err)
{
    const struct pool_request q = {.type = WIRE_BACK};
    struct pool_answer answer;
    int none = -1;
    jail_child_close(child);
    int r = ask(c, &q, 0, &none, &answer, err);
    fd_close(none);
    return r;
}

static int drop_ahead(struct pool_client *c, struct err *err)
{
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_answer answer;
    c->ahead = false;
    int r = take_loan(c, c->asked.number, &child, &answer, err);
    return r < 0 || answer.declined ? r : give_back(c, &child, err);
}

static void set_text(char *field, size_t size, const char *text)
{
    snprintf(field, size, "%s", text ? text : "");
}

/* Without one a new session is named by the holder. */
static int set_name(struct pool_request *q, const char *name, struct err *err)
{
    const bool makes = q->type == WIRE_SESSION_NEW || q->type == WIRE_SESSION_BRANCH;
    if (!(makes && (!name || !*name)) && !pool_name_good(name))
        return err_set(err, ERR_USAGE,
                       "'%.40s' is no name for a session: up to %d of a-z, 0-9, - and _", name,
                       POOL_NAME);
    set_text(q->name, sizeof q->name, name);
    return 0;
}

static struct pool_request lease_request(const struct pool_lease *lease)
{
    struct pool_request q = {.type = WIRE_LEASE,
                             .packages = lease->packages,
                             .limits = lease->limits,
                             .number = lease->patience_ms};
    set_text(q.language, sizeof q.language, lease->language);
    set_text(q.profile, sizeof q.profile, lease->profile);
    return q;
}

int pool_client_ahead(struct pool_client *c, const struct pool_lease *lease, struct err *err)
{
    if (c->sock < 0 || c->ahead)
        return 0;
    c->asked = lease_request(lease);
    int r = send_request(c, &c->asked, -1, err);
    c->ahead = r == 0;
    return r;
}

int pool_client_order(struct pool_client *c, const struct pool_lease *lease, struct err *err)
{
    const struct pool_request q = lease_request(lease);
    if (c->sock < 0)
        return 0;
    if (c->ahead && c->asked.packages == q.packages && strcmp(c->asked.profile, q.profile) == 0 &&
        strcmp(c->asked.language, q.language) == 0 &&
        memcmp(&c->asked.limits, &q.limits, sizeof q.limits) == 0)
        return 0; /* the same child was asked for already */
    int r = c->ahead ? drop_ahead(c, err) : 0;
    return r < 0 ? r : send_request(c, &q, -1, err);
}

int pool_client_take(struct pool_client *c, const struct pool_lease *lease,
                     struct jail_child *ret_child, struct pool_answer *ret, struct err *err)
{
    if (c->sock < 0) {
        nobody_there(ret);
        return 0;
    }
    bool ahead = c->ahead;
    c->ahead = false;
    int r = take_loan(c, ahead ? c->asked.number : lease->patience_ms, ret_child, ret, err);
    if (r < 0 || !ahead || (!ret->declined && jail_child_alive(ret_child)))
        return r;
    /* That was then: there may be one now, or another patience; and a template may have died since. */
    r = ret->declined ? 0 : give_back(c, ret_child, err);
    if (r == 0)
        r = pool_client_order(c, lease, err);
    return r < 0 ? r : take_loan(c, lease->patience_ms, ret_child, ret, err);
}

int pool_client_lease(struct pool_client *c, const char *profile, bool packages,
                      const struct jail_limits *limits, uint64_t patience_ms,
                      struct jail_child *ret_child, struct pool_answer *ret, struct err *err)
{
    const struct pool_lease lease = {
        .profile = profile, .packages = packages, .limits = *limits, .patience_ms = patience_ms};
    int r = pool_client_order(c, &lease, err);
    return r < 0 ? r : pool_client_take(c, &lease, ret_child, ret, err);
}

int pool_client_new(struct pool_client *c, const struct pool_session_spec *spec,
                    struct jail_child *ret_child, struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_NEW,
                             .packages = spec->packages,
                             .limits = spec->limits,
                             .number = spec->idle_ms,
                             .rules = spec->rules,
                             .budget = c->budget};
    FD_AUTO rules = -1;
    int ride[POOL_REQUEST_RIDE];
    size_t nride = 0;
    set_text(q.language, sizeof q.language, spec->language);
    set_text(q.profile, sizeof q.profile, spec->profile);
    set_text(q.role, sizeof q.role, spec->role);
    int r = set_name(&q, spec->name, err);
    if (r == 0 && q.rules.mark)
        r = fd_sealed(spec->rules_data, spec->rules_len, &rules, err);
    if (rules >= 0)
        ride[nride++] = rules;
    if (spec->shares)
        ride[nride++] = spec->shares->fd;
    return r < 0 ? r : borrow(c, &q, ride, nride, POOL_PATIENCE_MS, ret_child, ret, err);
}

int pool_client_call(struct pool_client *c, const char *name, bool for_fork,
                     struct jail_child *ret_child, struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_CALL, .yes = for_fork, .budget = c->budget};
    int r = set_name(&q, name, err);
    /* a session that is lent and does not arrive is over */
    if (r == 0 && fd_spare(JAIL_CHILD_RIDE) < 0)
        r = err_sys(err, "descriptors for the session");
    return r < 0 ? r : borrow(c, &q, NULL, 0, 0, ret_child, ret, err);
}

int pool_client_branch(struct pool_client *c, const char *name, const char *note,
                       const struct jail_child *branch, struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_BRANCH};
    set_text(q.note, sizeof q.note, note);
    int r = set_name(&q, name, err);
    if (r == 0)
        r = ask_for(c, &q, WIRE_AGREED, ret, err);
    if (r < 0 || ret->declined)
        return r;
    r = jail_child_send(c->sock, branch, err);
    if (r < 0)
        return r;
    char frame[4096];
    struct fd_packet in = {.data = frame, .len = sizeof frame};
    if (!wait_for(c->sock, c->answer_ms))
        return err_set(err, ERR_STATE, "the holder does not answer; see `cordon pool status`");
    if (fd_receive(c->sock, &in) <= 0)
        return lost(err);
    r = pool_reply_read(frame, in.len, &ret->reply, err);
    ret->declined = r == 0 && ret->reply.type == WIRE_DECLINED;
    return r;
}

/* About the session that is lent; the descriptors stay the caller's. */
static int tell(struct pool_client *c, enum wire_type type, int *fds, size_t count,
                struct pool_answer *ret, struct err *err)
{
    const struct pool_request q = {.type = type};
    int back = -1, r = send_with(c, &q, fds, count, err);
    *ret = (struct pool_answer){0};
    if (r == 0)
        r = take_reply(c, 0, &back, ret, err);
    fd_close(back);
    return r;
}

int pool_client_layers(struct pool_client *c, const struct jail_child *session,
                       struct pool_answer *ret, struct err *err)
{
    int fds[POOL_REQUEST_RIDE] = {session->laid, session->lower};
    return tell(c, WIRE_SESSION_LAYERS, fds, POOL_REQUEST_RIDE, ret, err);
}

int pool_client_owner(struct pool_client *c, int pidfd, struct pool_answer *ret, struct err *err)
{
    return tell(c, WIRE_SESSION_OWNER, &pidfd, 1, ret, err);
}

void pool_client_begun(struct pool_client *c)
{
    const struct pool_request q = {.type = WIRE_SESSION_BEGUN};
    struct err err = ERR_INIT; /* a holder that is gone interrupts nothing */
    if (c->sock >= 0)
        (void)!send_request(c, &q, -1, &err);
}

/* Sealed: the holder reads it in one go, and nobody changes it meanwhile. */
static int sealed(const void *data, size_t len, struct err *err)
{
    FD_AUTO fd = memfd_create("cordon-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(err, "memory for a record");
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)data + at, len - at);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "memory for a record");
        at += n > 0 ? (size_t)n : 0;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_sys(err, "seal a record");
    return fd_take(&fd);
}

int pool_client_back(struct pool_client *c, bool alive, const char *reason, const char *note,
                     const struct pool_use_numbers *use, const void *record, size_t len,
                     struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_BACK, .yes = alive, .use = *use};
    set_text(q.reason, sizeof q.reason, reason);
    set_text(q.note, sizeof q.note, note);
    FD_AUTO fd = record ? sealed(record, len, err) : -1;
    if (record && fd < 0)
        return fd;
    int along = fd;
    int r = ask(c, &q, 0, &along, ret, err);
    if (along != fd)
        fd_close(along);
    return r;
}

int pool_client_end(struct pool_client *c, const char *name, struct pool_answer *ret,
                    struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_CLOSE};
    int r = set_name(&q, name, err);
    return r < 0 ? r : ask_for(c, &q, WIRE_AGREED, ret, err);
}

int pool_client_interrupt(struct pool_client *c, const char *name, struct pool_answer *ret,
                          struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_INTERRUPT};
    int r = set_name(&q, name, err);
    return r < 0 ? r : ask_for(c, &q, WIRE_AGREED, ret, err);
}

int pool_client_export(struct pool_client *c, const char *name, int *ret_fd,
                       struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_EXPORT};
    int r = set_name(&q, name, err), fd = -1;
    if (r == 0)
        r = ask(c, &q, 0, &fd, ret, err);
    if (r == 0 && !ret->declined && (ret->reply.type != WIRE_SESSION_LOG || fd < 0))
        r = err_set(err, ERR_FORMAT, "the holder answered with %s", wire_name(ret->reply.type));
    if (r < 0 || ret->declined)
        fd_close(fd_take(&fd));
    *ret_fd = fd;
    return r;
}

int pool_client_next(struct pool_client *c, uint64_t serial, struct pool_answer *ret,
                     struct err *err)
{
    struct pool_request q = {.type = WIRE_SESSION_NEXT, .number = serial};
    return ask_for(c, &q, WIRE_SESSION_IS, ret, err);
}

int pool_client_set(struct pool_client *c, const struct pool_kind *kind,
                    const struct pool_set_numbers *set, struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {
        .type = WIRE_POOL_SET, .packages = kind && kind->packages, .set = *set};
    set_text(q.language, sizeof q.language, kind ? kind->language : NULL);
    set_text(q.profile, sizeof q.profile, kind ? kind->profile : NULL);
    return ask_for(c, &q, WIRE_AGREED, ret, err);
}

int pool_client_look(struct pool_client *c, uint64_t serial, struct pool_answer *ret,
                     struct err *err)
{
    struct pool_request q = {.type = WIRE_POOL_NEXT, .number = serial};
    return ask_for(c, &q, WIRE_POOL_IS, ret, err);
}

int pool_client_stop(struct pool_client *c, bool force, struct pool_answer *ret, struct err *err)
{
    struct pool_request q = {.type = WIRE_POOL_STOP, .yes = force};
    return ask_for(c, &q, WIRE_AGREED, ret, err);
}
