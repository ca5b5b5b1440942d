/* SPDX-License-Identifier: Apache-2.0 */
/* What is lent. A child for one run goes to its client whole; the holder keeps a pidfd, and
 * kills the child when the connection ends. A session's child stays ours and its client gets copies: the end of a call is the
 * client's word, the end of a client in a call is the end of the session. Between two calls a session
 * is stopped: threads that its guest left behind use no time that nobody accounts for. One whose CPU time moves
 * all the same is ended: within a second by the look of holder.c, at the latest by its next call.
 *
 * Waits: pread in *; nobody: a sealed file in memory; at once; spaces */
#include "pool/ended.h"
#include "pool/holding.h"

#include "sys/fd.h"
#include "sys/pidfd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void signal_guest(const struct pool_session *s, int sig)
{
    const struct pool_held *held = s->child;
    (void)syscall(SYS_pidfd_send_signal, held->child.guest, sig, NULL, 0);
}

/* The worker drops what comes before the first message of a call, which its client sends: that was meant for the call before. */
void pool_session_interrupt(struct pool_session *s)
{
    struct pool_held *held = s->child;
    held->interrupt = !held->begun;
    if (held->begun)
        signal_guest(s, SIGINT);
}

void pool_session_begun(struct pool_session *s)
{
    struct pool_held *held = s->child;
    held->begun = true;
    if (held->interrupt)
        pool_session_interrupt(s);
}

/* A session that goes on in spite of the stop is found by its CPU time (look_around in holder.c). */
void pool_session_rest(struct pool_session *s)
{
    struct pool_held *held = s->child;
    signal_guest(s, SIGSTOP);
    (void)!jail_child_deadline(held->child.control, 0); /* its call is over, and so is its clock */
    held->held_bytes = 0;
    held->rest_cpu_us = jail_child_cpu_us((pid_t)held->pid);
}

void pool_session_check_rest(struct pool_holder *h, struct pool_session *s)
{
    const struct pool_held *held = s->child;
    if (s->state != POOL_SESSION_IDLE || s->died_ns)
        return;
    uint64_t now = jail_child_cpu_us((pid_t)held->pid);
    uint64_t used_ms = now > held->rest_cpu_us ? (now - held->rest_cpu_us) / 1000 : 0;
    /* its number may be another's only when it is dead, which is told by an event of its own */
    if (used_ms <= POOL_REST_MS || !jail_child_alive(&held->child))
        return;
    s->ran_at_rest = true;
    pool_session_end_to_record(h, s,
                               "it used %llu ms of CPU time between two calls, when it must rest",
                               (unsigned long long)used_ms);
}

/* LENT and the child behind it. False: the client is gone, and so is its conn. */
static bool hand_over(struct pool_holder *h, struct pool_conn *conn, const struct pool_reply *p,
                      const struct pool_held *held)
{
    struct err err = ERR_INIT;
    const struct jail_child *child = &held->child;
    const struct pool_shares *shares = held->from->own.shares;
    if (!pool_conn_reply(h, conn, p, shares ? shares->fd : -1))
        return false;
    if (jail_child_send(conn->sock, child, &err) == 0)
        return true;
    pool_conn_close(h, conn);
    return false;
}

void pool_lend_child(struct pool_holder *h, struct pool_conn *conn, struct pool_warm *w,
                     struct jail_child *child)
{
    struct err err = ERR_INIT;
    if (jail_child_send(conn->sock, child, &err) < 0) { /* the child alone is the whole answer */
        pool_conn_close(h, conn);
    } else {
        pool_conn_state(h, conn, POOL_CONN_LEASE);
        conn->from = w;
        conn->init = fd_take(&child->init);
        w->lent++;
        w->served++;
        h->leases++;
        w->refill_ns = h->now + POOL_CALM_NS;
    }
    w->used_ns = h->now;
    jail_child_close(child);
}

/* ---- sessions ---- */

struct pool_session *pool_session_make(struct pool_holder *h, const char *name, struct pool_warm *w,
                                       struct jail_child *child, struct pool_reply *declined)
{
    struct err err = ERR_INIT;
    struct pool_held *held = calloc(1, sizeof *held);
    struct pool_session *s =
        held ? pool_registry_add(&h->sessions, name, held, h->now, declined) : NULL;
    if (!held)
        *declined = (struct pool_reply){
            .type = WIRE_DECLINED, .state = POOL_WHY_MEMORY, .reason = "no memory"};
    if (!s) {
        free(held);
        jail_child_close(child);
        return NULL;
    }
    *held = (struct pool_held){.child = *child,
                               .from = w,
                               .start = w->starts,
                               .owner = -1,
                               .pid = (uint64_t)sys_pidfd_pid(child->guest)};
    w->sessions++;
    w->served++;
    s->packages = w->packages;
    s->rules = w->rules.mark;
    snprintf(s->language, sizeof s->language, "%s", w->language->name);
    s->limits = child->limits;
    s->generation = child->generation;
    snprintf(s->profile, sizeof s->profile, "%s", w->profile);
    if (pool_holder_watch(h, child->guest, POOL_EVENT_SESSION, (size_t)(s - h->sessions.session),
                          &err) < 0)
        s->died_ns = h->now; /* not to be watched, not to be kept */
    return s;
}

int pool_session_own(struct pool_holder *h, struct pool_session *s, int pidfd, struct err *err)
{
    struct pool_held *held = s->child;
    base_assert(held->owner < 0);
    int r = pool_holder_watch(h, pidfd, POOL_EVENT_OWNER, (uint32_t)s->serial, err);
    if (r == 0)
        held->owner = pidfd;
    return r;
}

bool pool_lend_session(struct pool_holder *h, struct pool_conn *conn, struct pool_session *s)
{
    struct pool_held *held = s->child;
    struct pool_reply p = {.type = WIRE_LENT,
                           .lent = {.call = s->calls,
                                    .host_calls = s->host_calls,
                                    .generation = s->generation,
                                    .ran = s->ran,
                                    .changed_ns = s->changed_ns,
                                    .rules = s->rules}};
    snprintf(p.name, sizeof p.name, "%s", s->name);
    snprintf(p.language, sizeof p.language, "%s", s->language);
    snprintf(p.profile, sizeof p.profile, "%s", s->profile);
    snprintf(p.role, sizeof p.role, "%s", s->role);
    snprintf(p.note, sizeof p.note, "%s", s->note);
    held->from->used_ns = h->now;
    held->begun = held->interrupt = false;
    signal_guest(s, SIGCONT);
    if (!hand_over(h, conn, &p, held)) { /* the client did not get it: the session rests again */
        pool_registry_back(s, &(struct pool_use_numbers){0}, h->now);
        pool_session_rest(s);
        return false;
    }
    conn->session = s;
    conn->serial = s->serial;
    conn->from = held->from;
    pool_conn_state(h, conn, POOL_CONN_CALL);
    return true;
}

void pool_lend_new(struct pool_holder *h, struct pool_conn *conn, struct pool_warm *w,
                   struct jail_child *child)
{
    struct pool_reply declined;
    const struct pool_request want = conn->want;
    pool_conn_state(h, conn, POOL_CONN_IDLE);
    struct pool_session *s = pool_session_make(h, want.name, w, child, &declined);
    if (!s) {
        h->declined++;
        pool_conn_reply(h, conn, &declined, -1);
        return;
    }
    snprintf(s->role, sizeof s->role, "%s", want.role);
    s->idle_ns = want.number * CLOCK_NS_PER_MS;
    s = pool_registry_lend(&h->sessions, s->name, conn, h->now, &declined);
    base_assert(s);
    conn->for_fork = true; /* its client tries whether it works: that is not counted as a call */
    if (!pool_lend_session(h, conn, s))
        pool_session_end(h, s, "its client went away before it was made");
}

static void end_session(struct pool_holder *h, struct pool_session *s, const char *reason)
{
    struct pool_conn *conn = s->client;
    struct pool_held *held = pool_registry_end(&h->sessions, s, h->now, reason);
    if (conn && conn->session == s) { /* its client learns it when it comes back */
        conn->session = NULL;
        if (conn->state != POOL_CONN_BRANCH) /* a branch is on its way, and is taken first */
            pool_conn_state(h, conn, POOL_CONN_IDLE);
    }
    epoll_ctl(h->epoll, EPOLL_CTL_DEL, held->child.guest, NULL);
    if (held->owner >= 0) /* others have it, too */
        epoll_ctl(h->epoll, EPOLL_CTL_DEL, held->owner, NULL);
    fd_close(held->owner);
    jail_child_kill(&held->child);
    int dying = fd_take(&held->child.guest);
    jail_child_close(&held->child);
    base_assert(held->from->sessions > 0);
    held->from->sessions--;
    held->from->used_ns = h->now;
    free(held);
    pool_idle_memory_ended(h, dying); /* memory that it shared counts for its relatives now */
}

void pool_session_end(struct pool_holder *h, struct pool_session *s, const char *fmt, ...)
{
    char reason[POOL_REASON + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    end_session(h, s, reason);
}

void pool_session_end_to_record(struct pool_holder *h, struct pool_session *s, const char *fmt, ...)
{
    char reason[POOL_REASON + 1];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    end_session(h, s, reason);
    struct pool_ended e = {.ran_at_rest = s->ran_at_rest};
    snprintf(e.name, sizeof e.name, "%s", s->name);
    snprintf(e.role, sizeof e.role, "%s", s->role);
    snprintf(e.reason, sizeof e.reason, "%s", s->reason);
    pool_ended_write(h->start->dir, &e);
}

/* Told once; who knows why is waited for a moment. */
void pool_session_event(struct pool_holder *h, struct pool_session *s)
{
    const struct pool_held *held = s->child;
    if (!held)
        return;
    epoll_ctl(h->epoll, EPOLL_CTL_DEL, held->child.guest, NULL);
    s->died_ns = h->now;
}

void pool_session_died(struct pool_holder *h, struct pool_session *s)
{
    const struct pool_held *held = s->child;
    const struct pool_warm *w = held->from;
    if (!w->template || w->starts != held->start)
        pool_session_end_to_record(h, s, "its template died%s%.120s", w->error[0] ? ": " : "",
                                   w->error);
    else
        pool_session_end_to_record(h, s, "its process ended while nobody called it");
}

/* ---- records ---- */

/* Only sealed memory: it is there at once, as long as it says, and stays what it is. */
static bool sealed(int fd, size_t *ret_len)
{
    const int want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & want) != want || fstat(fd, &st) < 0 || st.st_size < 0)
        return false;
    *ret_len = (size_t)st.st_size;
    return true;
}

void pool_session_record(struct pool_holder *h, struct pool_session *s, int fd)
{
    size_t len = 0;
    if (fd < 0)
        return;
    if (!sealed(fd, &len) || len > POOL_RECORD) {
        s->log.dropped++;
        return;
    }
    char *at = pool_log_add(&s->log, &h->sessions.logs, len);
    ssize_t n = at ? pread(fd, at, len, 0) : 0;
    if (at &&
        (size_t)(n < 0 ? 0 : n) < len) /* cannot be, of sealed memory; nothing of ours leaks */
        memset(at + (n < 0 ? 0 : n), ' ', len - (size_t)(n < 0 ? 0 : n));
}
