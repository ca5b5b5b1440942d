/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may ask, message by message, and when. Each handler sends one reply, or lets the client wait
 * for a child; a request that does not fit the state of its connection is declined as `order`.
 *
 * None of them can do more than its user could without us: a client gets children of the templates that we
 * start, and sessions that it made itself. What it sends are names, numbers, its own records, and a
 * branch, which is a child like any other: locked, and killed when its control socket is closed.
 *
 * Waits: write in on_export; memory; at once; declined */
#include "pool/holding.h"

#include "base/clock.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define COLD_PATIENCE_MS                                                                           \
    1000 /* a client with less patience is told at once that a template is starting */

static bool declined_as(struct pool_holder *h, struct pool_conn *conn, const struct pool_reply *p)
{
    h->declined++;
    return pool_conn_reply(h, conn, p, -1);
}

/* ---- children ---- */

/* RIDE: what came with a request for a session: its rules, where it has some of its own, and the list of what it sees of the host. */
static int take_own(const struct pool_request *q, const int *ride, struct pool_own *ret,
                    struct err *err)
{
    const bool rules = q->rules.mark;
    const int list = ride[rules ? 1 : 0];
    *ret = (struct pool_own){0};
    if (rules)
        ret->rules =
            fd_sealed_read(ride[0], POOL_RULES, "the rules of the profile", &ret->rules_len, err);
    if (rules && !ret->rules)
        return err->code;
    int r = list < 0 ? 0 : pool_shares_read(list, &ret->shares, err);
    if (r < 0)
        pool_own_free(ret);
    return r;
}

/* NULL: it was declined. RIDE: as above; NULL: a lease. */
static struct pool_warm *template_for(struct pool_holder *h, struct pool_conn *conn,
                                      const struct pool_request *q, const int *ride)
{
    struct pool_reply no;
    struct pool_own own = {0};
    struct err err = ERR_INIT;
    char name[POOL_TEMPLATE_NAME];
    pool_template_name(pool_language(q->language), q->profile, q->packages, name, sizeof name);
    if (ride && take_own(q, ride, &own, &err) < 0) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "%.150s", err.msg);
        return NULL;
    }
    struct pool_warm *w =
        own.shares || own.rules ? pool_warm_own(h, q, &own, &no) : pool_warm_get(h, q, &no);
    if (!w) {
        declined_as(h, conn, &no);
        return NULL;
    }
    w->used_ns = h->now;
    if (!pool_warm_start(h, w)) {
        pool_conn_decline(h, conn, POOL_WHY_BROKEN, "template %s does not start: %.120s", name,
                          w->error);
        return NULL;
    }
    if (pool_backoff_broken(&w->backoff) && !w->up) {
        pool_conn_decline(h, conn, POOL_WHY_BROKEN, "template %s dies again and again: %.120s",
                          name, w->error);
        return NULL;
    }
    return w;
}

static void wait_for_child(struct pool_holder *h, struct pool_conn *conn, struct pool_warm *w,
                           const struct pool_request *q, uint64_t patience_ms)
{
    struct err err = ERR_INIT;
    bool alone = q->type == WIRE_SESSION_NEW || pool_limits_cannot(&w->limits, &q->limits);
    conn->want = *q;
    conn->from = w;
    conn->tag = 0;
    conn->turn = ++h->turn;
    conn->until_ns = h->now + patience_ms * CLOCK_NS_PER_MS;
    if (alone && pool_warm_order(h, w, conn, &err) < 0) {
        pool_conn_decline(h, conn, POOL_WHY_BROKEN, "no child could be ordered: %.150s", err.msg);
        return;
    }
    w->stock.waiters += !alone;
    pool_conn_state(h, conn, POOL_CONN_WAITING);
}

static void decline_short(struct pool_holder *h, struct pool_conn *conn)
{
    pool_conn_decline(h, conn, POOL_WHY_MEMORY,
                      "the machine is short of memory (%llu MB left); try again when others "
                      "have given some back",
                      (unsigned long long)(h->memory.available / MIB));
}

static void on_lease(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_warm *w = template_for(h, conn, q, NULL);
    if (!w)
        return;
    if (pool_warm_take(h, w, &q->limits, &child)) {
        pool_lend_child(h, conn, w, &child);
        return;
    }
    pool_memory_look(h);
    if (pool_memory_short(&h->memory))
        decline_short(h, conn);
    else if (!pool_room_children(h))
        pool_room_decline(h, conn);
    else if (!w->up && q->number < COLD_PATIENCE_MS)
        pool_conn_decline(h, conn, POOL_WHY_COLD, "its template is being started");
    else if (q->number == 0)
        pool_conn_decline(h, conn, POOL_WHY_EMPTY, "no child is ready; more are on their way");
    else
        wait_for_child(h, conn, w, q, q->number < 60000 ? q->number : 60000);
}

static void on_new(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q,
                   const int *ride)
{
    struct pool_reply no;
    if (!pool_registry_room(&h->sessions, q->name, &no) ||
        !pool_idle_memory_fits(h, NULL, q->limits.memory, q->budget, &no)) {
        declined_as(h, conn, &no);
        return;
    }
    struct pool_warm *w = template_for(h, conn, q, ride);
    if (!w)
        return;
    pool_memory_look(h);
    if (pool_memory_short(&h->memory))
        decline_short(h, conn);
    else if (!pool_room_children(h))
        pool_room_decline(h, conn);
    else
        wait_for_child(h, conn, w, q, POOL_PATIENCE_MS);
}

/* ---- sessions ---- */

static void on_call(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_reply no;
    struct pool_session *s = pool_registry_find(&h->sessions, q->name);
    if (s)
        pool_session_check_rest(h, s);
    if (s && s->state == POOL_SESSION_IDLE &&
        !pool_idle_memory_fits(h, q->yes ? NULL : s, s->limits.memory, q->budget, &no)) {
        declined_as(h, conn, &no);
        return;
    }
    s = pool_registry_lend(&h->sessions, q->name, conn, h->now, &no);
    if (!s) {
        declined_as(h, conn, &no);
        return;
    }
    conn->for_fork = q->yes;
    (void)pool_lend_session(h, conn, s);
}

static void on_back(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q,
                    int record)
{
    struct pool_session *s = conn->session;
    if (conn->state == POOL_CONN_LEASE) {
        pool_conn_end_lease(h, conn);
        pool_conn_agree(h, conn, "");
        return;
    }
    if (!s) { /* it ended meanwhile; what its client saw of it is kept all the same */
        struct pool_session *over = pool_registry_serial(&h->sessions, conn->serial);
        if (over)
            pool_session_record(h, over, record);
        pool_conn_decline(h, conn, over ? POOL_WHY_ENDED : POOL_WHY_ORDER, "%.150s",
                          over ? over->reason : "nothing is lent to this client");
        return;
    }
    pool_session_record(h, s, record);
    s->calls += !conn->for_fork;
    if (q->note[0])
        snprintf(s->note, sizeof s->note, "%s", q->note);
    if (q->yes && !s->died_ns) {
        pool_registry_back(s, &q->use, h->now);
        pool_session_rest(s);
        conn->session = NULL;
    } else {
        pool_session_end(h, s, "%s", q->reason[0] ? q->reason : "its process ended");
    }
    conn->for_fork = false;
    pool_conn_state(h, conn, POOL_CONN_IDLE);
    pool_conn_agree(h, conn, s->name);
}

static void on_branch(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_reply no;
    if (conn->state != POOL_CONN_CALL || !conn->for_fork || !conn->session) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "no session was lent to be forked");
        return;
    }
    if (!pool_registry_room(&h->sessions, q->name, &no)) {
        declined_as(h, conn, &no);
        return;
    }
    if (!pool_room_children(h)) {
        pool_room_decline(h, conn);
        return;
    }
    snprintf(conn->branch, sizeof conn->branch, "%s", q->name);
    snprintf(conn->branch_note, sizeof conn->branch_note, "%s", q->note);
    if (pool_conn_agree(h, conn, q->name))
        pool_conn_state(h, conn, POOL_CONN_BRANCH);
}

/* Both or none: without the checkout's descriptor somebody may take away what lies below, and the session's next client needs
 * the folder of the layers. */
static void on_layers(struct pool_holder *h, struct pool_conn *conn, int *fds)
{
    struct pool_held *held = conn->session ? conn->session->child : NULL;
    if (conn->state != POOL_CONN_CALL || !held || fds[0] < 0 || fds[1] < 0) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "no session was lent that could have layers");
        return;
    }
    fd_close(held->child.laid);
    fd_close(held->child.lower);
    held->child.laid = fd_take(&fds[0]);
    held->child.lower = fd_take(&fds[1]);
    pool_conn_agree(h, conn, conn->session->name);
}

/* Once: whom a session belongs to does not change. */
static void on_owner(struct pool_holder *h, struct pool_conn *conn, int *pidfd)
{
    struct err err = ERR_INIT;
    const struct pool_held *held = conn->session ? conn->session->child : NULL;
    if (conn->state != POOL_CONN_CALL || !held || held->owner >= 0 || *pidfd < 0) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "no session was lent that could have an owner");
    } else if (pool_session_own(h, conn->session, *pidfd, &err) < 0) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "no process to watch: %.120s", err.msg);
    } else {
        *pidfd = -1;
        pool_conn_agree(h, conn, conn->session->name);
    }
}

/* One that was closed meanwhile is no session of this client any more. */
static void on_begun(struct pool_conn *conn)
{
    if (conn->state == POOL_CONN_CALL && conn->session)
        pool_session_begun(conn->session);
}

/* A branch belongs to whom its session belongs to. */
static int same_owner(struct pool_holder *h, struct pool_session *s, const struct pool_session *of,
                      struct err *err)
{
    const struct pool_held *held = of->child;
    const int owner = held->owner < 0 ? -1 : fcntl(held->owner, F_DUPFD_CLOEXEC, 3);
    if (held->owner < 0)
        return 0;
    int r = owner < 0 ? err_sys(err, "the session's owner") : pool_session_own(h, s, owner, err);
    if (r < 0)
        fd_close(owner);
    return r;
}

/* The packet after SESSION_BRANCH. */
void pool_request_branch(struct pool_holder *h, struct pool_conn *conn)
{
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_reply no;
    struct err err = ERR_INIT;
    struct pool_session *from = conn->session;
    if (jail_child_receive(conn->sock, &child, &err) < 0) {
        pool_conn_close(h, conn);
        return;
    }
    if (!from) { /* it was closed while it was forked */
        const struct pool_session *over = pool_registry_serial(&h->sessions, conn->serial);
        jail_child_close(&child);
        pool_conn_state(h, conn, POOL_CONN_IDLE);
        pool_conn_decline(h, conn, POOL_WHY_ENDED, "the session is over: %.120s",
                          over ? over->reason : "forgotten");
        return;
    }
    struct pool_held *held = from->child;
    struct pool_session *s = pool_session_make(h, conn->branch, held->from, &child, &no);
    pool_conn_state(h, conn, POOL_CONN_CALL);
    if (!s) {
        declined_as(h, conn, &no);
        return;
    }
    snprintf(s->role, sizeof s->role, "%s", from->role);
    snprintf(s->note, sizeof s->note, "%s", conn->branch_note);
    s->idle_ns = from->idle_ns;
    s->host_calls = from->host_calls; /* a branch is no way to more of them */
    s->changed_ns = clock_files_ns(); /* its files are copies */
    pool_session_rest(s);
    if (same_owner(h, s, from, &err) < 0) {
        pool_session_end(h, s, "%.120s", err.msg);
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "%.120s", err.msg);
        return;
    }
    pool_conn_agree(h, conn, s->name);
}

static void on_close(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_session *s = pool_registry_find(&h->sessions, q->name);
    if (!s) {
        pool_conn_decline(h, conn, POOL_WHY_UNKNOWN, POOL_NO_SESSION, q->name);
    } else if (s->state == POOL_SESSION_OVER) {
        pool_conn_decline(h, conn, POOL_WHY_ENDED, "session '%s' is over: %.120s", q->name,
                          s->reason);
    } else {
        pool_session_end(h, s, "closed");
        pool_conn_agree(h, conn, q->name);
    }
}

/* Between two calls there is nothing to interrupt: a signal would wait in the stopped process for the next one. */
static void on_interrupt(struct pool_holder *h, struct pool_conn *conn,
                         const struct pool_request *q)
{
    struct pool_session *s = pool_registry_find(&h->sessions, q->name);
    if (!s) {
        pool_conn_decline(h, conn, POOL_WHY_UNKNOWN, POOL_NO_SESSION, q->name);
    } else if (s->state == POOL_SESSION_OVER) {
        pool_conn_decline(h, conn, POOL_WHY_ENDED, "session '%s' is over: %.120s", q->name,
                          s->reason);
    } else if (s->state != POOL_SESSION_BUSY) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "nothing runs in session '%s'", q->name);
    } else {
        pool_session_interrupt(s);
        pool_conn_agree(h, conn, q->name);
    }
}

static void on_export(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_session *s = pool_registry_find(&h->sessions, q->name);
    struct pool_reply p = {.type = WIRE_SESSION_LOG};
    const char *data = NULL;
    size_t len = 0;
    if (!s) {
        pool_conn_decline(h, conn, POOL_WHY_UNKNOWN, POOL_NO_SESSION, q->name);
        return;
    }
    FD_AUTO fd = memfd_create("cordon-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (const struct pool_record *r = pool_log_next(&s->log, NULL, &data, &len); r && fd >= 0;
         r = pool_log_next(&s->log, r, &data, &len))
        if (write(fd, data, len) != (ssize_t)len)
            fd_close(fd_take(&fd));
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        pool_conn_decline(h, conn, POOL_WHY_MEMORY, "no memory for the records");
        return;
    }
    p.log = (struct pool_log_numbers){
        .records = s->log.records, .dropped = s->log.dropped, .bytes = s->log.bytes};
    pool_conn_reply(h, conn, &p, fd);
}

static uint64_t ms_since(const struct pool_holder *h, uint64_t then)
{
    return h->now > then ? (h->now - then) / CLOCK_NS_PER_MS : 0;
}

static void on_session_next(struct pool_holder *h, struct pool_conn *conn,
                            const struct pool_request *q)
{
    static const char *const states[] = {"", "idle", "busy", "over"};
    struct pool_session *s = pool_registry_after(&h->sessions, q->number);
    struct pool_reply p = {.type = s ? WIRE_SESSION_IS : WIRE_POOL_END};
    const struct pool_held *held = s ? s->child : NULL;
    struct statvfs fs = {0};
    if (s) {
        uint64_t files = held && fstatvfs(held->child.files, &fs) == 0
                             ? (fs.f_blocks - fs.f_bfree) * fs.f_frsize
                             : 0;
        p.session = (struct pool_session_numbers){
            .serial = s->serial,
            .pid = held ? held->pid : 0,
            .age_ms = ms_since(h, s->made_ns),
            .idle_ms = ms_since(h, s->state == POOL_SESSION_OVER ? s->over_ns : s->used_ns),
            .idle_end_ms = s->idle_ns / CLOCK_NS_PER_MS,
            .calls = s->calls,
            .host_calls = s->host_calls,
            .generation = s->generation,
            .wall_us = s->wall_us,
            .cpu_us = s->cpu_us,
            .memory = s->limits.memory,
            .files = files,
            .held = pool_idle_memory(h, s),
            .records = s->log.records,
            .dropped = s->log.dropped};
        snprintf(p.name, sizeof p.name, "%s", s->name);
        snprintf(p.language, sizeof p.language, "%s", s->language);
        snprintf(p.profile, sizeof p.profile, "%s", s->profile);
        snprintf(p.role, sizeof p.role, "%s", s->role);
        snprintf(p.state, sizeof p.state, "%s", states[s->state]);
        snprintf(p.reason, sizeof p.reason, "%s", s->reason);
        snprintf(p.note, sizeof p.note, "%s", s->note);
    }
    pool_conn_reply(h, conn, &p, -1);
}

/* ---- the pool ---- */

static void on_set(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_reply no;
    struct pool_warm *w = NULL;
    if (q->profile[0]) {
        w = pool_warm_get(h, q, &no);
        if (!w) {
            declined_as(h, conn, &no);
            return;
        }
    }
    if (!w && q->set.warm != UINT64_MAX)
        h->warm_usual = (size_t)q->set.warm;
    if (q->set.budget != UINT64_MAX)
        h->memory.budget = q->set.budget;
    if (q->set.idle_exit_ms != UINT64_MAX)
        h->idle_exit_ns =
            (q->set.idle_exit_ms < LIMIT_WALL_MS_MAX ? q->set.idle_exit_ms : LIMIT_WALL_MS_MAX) *
            CLOCK_NS_PER_MS;
    if (q->set.renew_ms != UINT64_MAX)
        h->renew_ns = (q->set.renew_ms < LIMIT_WALL_MS_MAX ? q->set.renew_ms : LIMIT_WALL_MS_MAX) *
                      CLOCK_NS_PER_MS;
    if (q->set.renew_runs != UINT64_MAX)
        h->renew_runs = q->set.renew_runs;
    if (w) {
        w->pinned = true;
        w->used_ns = h->now;
        w->backoff = (struct pool_backoff){0}; /* somebody may have mended what was wrong */
        if (q->set.warm != UINT64_MAX)
            pool_warm_resize(h, w, (size_t)q->set.warm);
        if (!pool_warm_start(h, w)) {
            pool_conn_decline(h, conn, POOL_WHY_BROKEN, "the template does not start: %.150s",
                              w->error);
            return;
        }
    }
    pool_conn_agree(h, conn, "");
}

static void put_template(struct pool_holder *h, const struct pool_warm *w, struct pool_reply *p)
{
    const char *state = w->own.shares                      ? "shared"
                        : w->own.rules                     ? "own"
                        : w->retired                       ? "ending"
                        : w->replaces                      ? "coming"
                        : w->template && w->up             ? "ready"
                        : w->template                      ? "starting"
                        : pool_backoff_broken(&w->backoff) ? "broken"
                                                           : "down";
    p->template = (struct pool_template_numbers){
        .serial = w->serial,
        .age_ms = w->template ? ms_since(h, w->started_ns) : 0,
        .warm = w->stock.warm,
        .ready = w->stock.ready,
        .asked = w->orders,
        .waiters = w->stock.waiters,
        .lent = w->lent,
        .sessions = w->sessions,
        .made = w->made,
        .starts = w->starts,
        .crashes = w->crashes,
        .retry_ms = w->template || w->backoff.retry_ns <= h->now
                        ? 0
                        : (w->backoff.retry_ns - h->now) / CLOCK_NS_PER_MS,
        .last_use_ms = ms_since(h, w->used_ns)};
    pool_template_name(w->language, w->profile, w->packages, p->name, sizeof p->name);
    snprintf(p->state, sizeof p->state, "%s", state);
    snprintf(p->reason, sizeof p->reason, "%s", w->error);
}

static void on_look(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    struct pool_reply p = {.type = WIRE_POOL_IS};
    const struct pool_warm *found = NULL;
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++)
        if (h->warm[i].serial && h->warm[i].serial >= q->number &&
            (!found || h->warm[i].serial < found->serial))
            found = &h->warm[i];
    if (q->number == 0) {
        h->memory_ns = 0;
        pool_memory_look(h);
        p.holder = (struct pool_holder_numbers){.pid = (uint64_t)getpid(),
                                                .age_ms = ms_since(h, h->started_ns),
                                                .idle_exit_ms = h->idle_exit_ns / CLOCK_NS_PER_MS,
                                                .budget = h->memory.budget,
                                                .waiting_memory = h->memory.used,
                                                .available = h->memory.available,
                                                .clients = h->conns,
                                                .sessions = h->sessions.alive,
                                                .leases = h->leases,
                                                .declined = h->declined,
                                                .refused_peers = h->refused_peers,
                                                .bad_frames = h->bad_frames};
        snprintf(p.name, sizeof p.name, "holder");
        snprintf(p.state, sizeof p.state, "%s", h->start->version);
        snprintf(p.reason, sizeof p.reason, "%s", h->narrow);
    } else if (found) {
        put_template(h, found, &p);
    } else {
        p.type = WIRE_POOL_END;
    }
    pool_conn_reply(h, conn, &p, -1);
}

static void on_stop(struct pool_holder *h, struct pool_conn *conn, const struct pool_request *q)
{
    if (h->sessions.alive && !q->yes) {
        pool_conn_decline(h, conn, POOL_WHY_BUSY, "%zu session%s; close them or use --force",
                          h->sessions.alive, h->sessions.alive == 1 ? " lives" : "s live");
        return;
    }
    h->stopping = true;
    pool_conn_agree(h, conn, "");
}

void pool_request_handle(struct pool_holder *h, struct pool_conn *conn,
                         const struct pool_request *q, int *fds)
{
    const int record = fds[0];
    bool watches = q->type == WIRE_POOL_NEXT || q->type == WIRE_SESSION_NEXT;
    if (conn->state == POOL_CONN_NEW)
        pool_conn_state(h, conn, POOL_CONN_IDLE);
    if (!watches) /* looking at a holder does not keep it alive */
        h->asked_ns = h->now;
    bool wants_loan =
        q->type == WIRE_LEASE || q->type == WIRE_SESSION_NEW || q->type == WIRE_SESSION_CALL;
    if (conn->state == POOL_CONN_WAITING || (wants_loan && conn->state != POOL_CONN_IDLE)) {
        pool_conn_decline(h, conn, POOL_WHY_ORDER, "one thing at a time");
        return;
    }
    switch (q->type) {
    case WIRE_LEASE:
        on_lease(h, conn, q);
        return;
    case WIRE_SESSION_NEW:
        on_new(h, conn, q, fds);
        return;
    case WIRE_SESSION_CALL:
        on_call(h, conn, q);
        return;
    case WIRE_BACK:
        on_back(h, conn, q, record);
        return;
    case WIRE_SESSION_BRANCH:
        on_branch(h, conn, q);
        return;
    case WIRE_SESSION_LAYERS:
        on_layers(h, conn, fds);
        return;
    case WIRE_SESSION_OWNER:
        on_owner(h, conn, &fds[0]);
        return;
    case WIRE_SESSION_BEGUN:
        on_begun(conn);
        return;
    case WIRE_SESSION_CLOSE:
        on_close(h, conn, q);
        return;
    case WIRE_SESSION_INTERRUPT:
        on_interrupt(h, conn, q);
        return;
    case WIRE_SESSION_EXPORT:
        on_export(h, conn, q);
        return;
    case WIRE_SESSION_NEXT:
        on_session_next(h, conn, q);
        return;
    case WIRE_POOL_SET:
        on_set(h, conn, q);
        return;
    case WIRE_POOL_STOP:
        on_stop(h, conn, q);
        return;
    default:
        on_look(h, conn, q);
    }
}
