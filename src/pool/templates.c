/* SPDX-License-Identifier: Apache-2.0 */
/* Templates and their stock. What a template makes goes to whoever waits for it, first come first served,
 * and else to the stock; what is missing in the stock is ordered after the reply, never before. A
 * template that dies takes its children with it; it is started again, later and later if it keeps dying.
 *
 * Waits: pread in *; nobody: /proc; at once; what was known before */
#include "pool/holding.h"

#include "base/clock.h"
#include "base/languages.h"
#include "policy/profile.h"
#include "sys/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STUCK_NS  (60 * CLOCK_NS_PER_S) /* a template that makes nothing for so long is not well */
#define OTHER_MAX 8                     /* asked for so often in a row, the stock follows */

uint64_t pool_warm_cost(const struct pool_warm *w)
{
    return w->packages ? POOL_PACKAGES_COST : POOL_CHILD_COST;
}

static struct pool_warm *find(struct pool_holder *h, const struct pool_request *asked)
{
    const struct language *language = pool_language(asked->language);
    for (size_t i = 0; i < POOL_TEMPLATES_HELD; i++) {
        struct pool_warm *w = &h->warm[i];
        if (w->serial && !w->retired && !w->replaces && w->language == language &&
            w->packages == asked->packages && strcmp(w->profile, asked->profile) == 0)
            return w;
    }
    return NULL;
}

static struct pool_rules_numbers rules_of(const struct pool_request *asked)
{
    const struct policy_profile *built_in =
        asked->rules.mark ? NULL : policy_profile_find(asked->profile);
    if (!built_in)
        return asked->rules;
    return (struct pool_rules_numbers){.threads = built_in->threads,
                                       .compute_only = built_in->compute_only,
                                       .installed = built_in->packages};
}

/* A new entry. NULL with a reply in DECLINED: no such profile, or no slot; LENDING: ... for one more that lends. */
static struct pool_warm *new_entry(struct pool_holder *h, const struct pool_request *asked,
                                   bool lends, struct pool_reply *declined)
{
    struct pool_warm *w = NULL;
    const char *profile = asked->profile;
    const bool known = asked->rules.mark || policy_profile_find(profile);
    struct jail_spec spec;
    size_t lending = 0;
    *declined = (struct pool_reply){.type = WIRE_DECLINED, .state = POOL_WHY_UNKNOWN};
    snprintf(declined->reason, sizeof declined->reason, "the pool has no template for profile %s",
             profile);
    for (size_t i = 0; i < POOL_TEMPLATES_HELD && known; i++) {
        const struct pool_warm *other = &h->warm[i];
        if (!other->serial)
            w = &h->warm[i];
        else
            lending += !other->retired && !other->replaces;
    }
    if (!w || (lends && lending >= POOL_TEMPLATES))
        return NULL;
    jail_spec_init(&spec);
    *w = (struct pool_warm){.serial = ++h->serial,
                            .language = pool_language(asked->language),
                            .packages = asked->packages,
                            .rules = rules_of(asked),
                            .limits = spec.limits,
                            .stock.warm = h->warm_usual,
                            .used_ns = h->now};
    if (!w->rules.threads)
        w->limits.threads = 0;
    w->limits.space = w->language->space;
    snprintf(w->profile, sizeof w->profile, "%s", profile);
    return w;
}

struct pool_warm *pool_warm_get(struct pool_holder *h, const struct pool_request *asked,
                                struct pool_reply *declined)
{
    struct pool_warm *w = find(h, asked);
    return w ? w : new_entry(h, asked, true, declined);
}

struct pool_warm *pool_warm_own(struct pool_holder *h, const struct pool_request *asked,
                                struct pool_own *own, struct pool_reply *declined)
{
    struct pool_warm *w = new_entry(h, asked, false, declined);
    if (!w) {
        pool_own_free(own);
        return NULL;
    }
    w->retired = true; /* but for the one session */
    w->stock.warm = 0;
    w->own = *own;
    *own = (struct pool_own){0};
    return w;
}

void pool_own_free(struct pool_own *own)
{
    pool_shares_free(own->shares);
    free(own->rules);
    *own = (struct pool_own){0};
}

/* ---- its life ---- */

/* What it prints before it serves is why it does not. The last line is kept, as plain text. */
static void take_said(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct pool_warm *w = ctx;
    const char *p = data;
    (void)stream;
    for (size_t i = 0; i < len; i++) {
        if (w->said_whole && p[i] != '\n')
            w->said[0] = 0;
        w->said_whole = p[i] == '\n';
        size_t at = strlen(w->said);
        if (p[i] >= ' ' && p[i] < 127 && at + 1 < sizeof w->said) {
            w->said[at] = p[i];
            w->said[at + 1] = 0;
        }
    }
}

static void failed(struct pool_holder *h, struct pool_warm *w, const char *why)
{
    w->crashes++;
    pool_backoff_failed(&w->backoff, h->now - w->started_ns, h->now);
    snprintf(w->error, sizeof w->error, "%.90s%s%.100s", why, w->said[0] ? ": " : "", w->said);
}

bool pool_warm_start(struct pool_holder *h, struct pool_warm *w)
{
    struct jail_spec spec;
    struct pool_interpreter words;
    struct err err = ERR_INIT;
    struct jail_sink sink = {.ctx = w, .bytes = take_said};
    if (w->template || w->backoff.retry_ns > h->now)
        return w->template;
    if (!pool_room_template(h)) {
        snprintf(w->error, sizeof w->error, "of %zu descriptors (RLIMIT_NOFILE) too few are left",
                 h->descriptors);
        return false;
    }
    w->started_ns = w->order_ns = h->now;
    w->starts++;
    w->served = 0;
    w->up = false;
    w->said[0] = 0;
    if (pool_interpreter_spec(&words, w, h->start, &spec, &err) < 0 ||
        (spec.foreign && pool_environment_check(h->start->environment, &err) < 0)) {
        failed(h, w, "");
        snprintf(w->error, sizeof w->error, "%.200s", err.msg);
        return false;
    }
    /* The id maps of its namespaces are written through /proc by a process in our memory. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int r = jail_template_new(&spec, h->start->nest, &sink, &w->template, &err);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (r == 0 && w->own.rules &&
        jail_template_rules(w->template, w->own.rules, w->own.rules_len, &err) < 0) {
        jail_template_free(w->template);
        r = -1;
    }
    if (r == 0 && pool_holder_watch(h, jail_template_fd(w->template), POOL_EVENT_TEMPLATE,
                                    (size_t)(w - h->warm), &err) < 0) {
        jail_template_free(w->template);
        r = -1;
    }
    if (r < 0) {
        w->template = NULL;
        failed(h, w, err.msg);
    }
    return w->template;
}

/* The oldest go, until no more than KEEP wait. */
static void drop_ready(struct pool_holder *h, struct pool_warm *w, size_t keep)
{
    for (; w->stock.ready > keep; w->stock.ready--) {
        jail_child_close(&w->ready[w->first]);
        w->first = (w->first + 1) % POOL_WARM;
        h->memory.used -= pool_warm_cost(w);
    }
}

void pool_warm_resize(struct pool_holder *h, struct pool_warm *w, size_t warm)
{
    w->stock.warm = warm;
    drop_ready(h, w, warm);
}

/* The template is dead or must go. Its children die with it, also those that are lent: their clients see
 * the end of them; sessions are told why by pool_session_died. */
void pool_warm_stop(struct pool_holder *h, struct pool_warm *w)
{
    if (w->template)
        jail_template_free(w->template);
    w->template = NULL;
    w->up = false;
    w->orders = w->stock.asked = 0;
    drop_ready(h, w, 0);
    for (size_t i = 0; i < POOL_CLIENTS; i++) {
        struct pool_conn *conn = &h->conn[i];
        if (conn->state != POOL_CONN_WAITING || conn->from != w)
            continue;
        pool_conn_state(h, conn, POOL_CONN_IDLE);
        pool_conn_decline(h, conn, POOL_WHY_BROKEN, "the template %s died%s%.120s", w->profile,
                          w->error[0] ? ": " : "", w->error);
    }
}

/* ---- children ---- */

static int order(struct pool_holder *h, struct pool_warm *w, const struct jail_limits *limits,
                 bool session, uint64_t tag, struct err *err)
{
    char filter[48];
    struct jail_child_spec spec = {.tag = tag,
                                   .filter = language_filter(w->language, w->rules.compute_only,
                                                             limits->threads != 0, true, filter,
                                                             sizeof filter),
                                   .limits = *limits,
                                   .session = session};
    spec.limits.space = w->language->space;
    if (session) /* the kernel counts for the process's whole life; a call's time is its supervisor's */
        spec.limits.cpu_ms = LIMIT_WALL_MS_MAX;
    int r = jail_template_order(w->template, &spec, err);
    if (r < 0) {
        snprintf(w->error, sizeof w->error, "%.190s", err->msg);
        return r;
    }
    if (w->orders++ == 0)
        w->order_ns = h->now;
    return 0;
}

int pool_warm_order(struct pool_holder *h, struct pool_warm *w, struct pool_conn *conn,
                    struct err *err)
{
    conn->tag = ++h->tag;
    return order(h, w, &conn->want.limits, conn->want.type == WIRE_SESSION_NEW, conn->tag, err);
}

bool pool_warm_take(struct pool_holder *h, struct pool_warm *w, const struct jail_limits *want,
                    struct jail_child *ret)
{
    if (pool_limits_cannot(&w->limits, want)) {
        /* One caller with wishes of its own is served one by one; when all have the same, the stock
         * is made that way. */
        w->others = memcmp(&w->other, want, sizeof *want) == 0 ? w->others + 1 : 1;
        w->other = *want;
        if (w->others >= OTHER_MAX)
            w->limits = *want;
        return false;
    }
    w->others = 0;
    while (w->stock.ready) {
        *ret = w->ready[w->first];
        w->first = (w->first + 1) % POOL_WARM;
        w->stock.ready--;
        h->memory.used -= pool_warm_cost(w);
        if (jail_child_alive(ret) && !pool_limits_cannot(&ret->limits, want))
            return true;
        jail_child_close(ret);
    }
    return false;
}

/* Who has waited longest for a child like this; NULL: nobody. */
static struct pool_conn *waiter_for(struct pool_holder *h, const struct pool_warm *w,
                                    const struct jail_child *child)
{
    struct pool_conn *first = NULL;
    for (size_t i = 0; i < POOL_CLIENTS; i++) {
        struct pool_conn *conn = &h->conn[i];
        if (conn->state != POOL_CONN_WAITING || conn->from != w)
            continue;
        if (child->tag && conn->tag == child->tag)
            return conn;
        if (!child->tag && !conn->tag && !pool_limits_cannot(&child->limits, &conn->want.limits) &&
            (!first || conn->turn < first->turn))
            first = conn;
    }
    return first;
}

static void take_child(struct pool_holder *h, struct pool_warm *w, struct jail_child *child)
{
    struct pool_conn *conn = waiter_for(h, w, child);
    w->made++;
    w->up = true;
    w->order_ns = h->now;
    if (conn && conn->want.type == WIRE_SESSION_NEW)
        pool_lend_new(h, conn, w, child);
    else if (conn)
        pool_lend_child(h, conn, w, child);
    else if (!child->session && w->stock.ready < w->stock.warm &&
             !pool_limits_cannot(&child->limits, &w->limits)) {
        w->ready[(w->first + w->stock.ready++) % POOL_WARM] = *child;
        h->memory.used += pool_warm_cost(w);
    } else {
        jail_child_close(
            child); /* no client waits for it, and the stock is full or wants other limits */
    }
}

static void take_refusal(struct pool_holder *h, struct pool_warm *w, uint64_t tag,
                         const struct err *why)
{
    struct jail_child none = {.tag = tag, .limits = w->limits};
    struct pool_conn *conn = waiter_for(h, w, &none);
    snprintf(w->error, sizeof w->error, "%.190s", why->msg);
    w->order_ns = h->now;
    w->refill_ns = h->now + CLOCK_NS_PER_S; /* what failed now would fail again at once */
    if (!conn)
        return;
    pool_conn_state(h, conn, POOL_CONN_IDLE);
    pool_conn_decline(h, conn, POOL_WHY_BROKEN, "no child could be made: %.150s", why->msg);
}

void pool_warm_event(struct pool_holder *h, struct pool_warm *w)
{
    for (int i = 0; i < 8 && w->template; i++) { /* then the others have their turn */
        struct jail_child child = JAIL_CHILD_NONE;
        struct err err = ERR_INIT;
        enum jail_template_event e = jail_template_step(w->template, 0, &child, &err);
        if (e == JAIL_TEMPLATE_NOTHING)
            return;
        if (e == JAIL_TEMPLATE_GONE) {
            failed(h, w, err.msg[0] ? err.msg : "it died");
            pool_warm_stop(h, w);
            return;
        }
        w->orders -= w->orders > 0;
        w->stock.asked -= child.tag == 0 && w->stock.asked > 0;
        if (e == JAIL_TEMPLATE_CHILD)
            take_child(h, w, &child);
        else
            take_refusal(h, w, child.tag, &err);
    }
}

/* ---- from time to time ---- */

void pool_memory_look(struct pool_holder *h)
{
    char text[4096];
    if (h->memory.total && h->now - h->memory_ns < 100 * CLOCK_NS_PER_MS)
        return;
    ssize_t n = pread(h->meminfo, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = 0;
    pool_memory_parse(text, &h->memory);
    h->memory_ns = h->now;
}

static bool in_use(const struct pool_warm *w)
{
    return w->pinned || w->replaces || w->lent || w->sessions || w->stock.waiters || w->orders;
}

static void refill(struct pool_holder *h, struct pool_warm *w)
{
    struct err err = ERR_INIT;
    pool_memory_look(h);
    size_t n = pool_stock_ask(&w->stock, &h->memory, pool_warm_cost(w));
    /* one that replaces another needs a child to do so; what that one keeps is given back then */
    if (n == 0 && w->replaces && !w->stock.ready && !w->orders && !pool_memory_short(&h->memory))
        n = 1;
    const size_t cap = pool_room_children(h);
    for (n = n < cap ? n : cap; n; n--) {
        if (order(h, w, &w->limits, false, 0, &err) < 0) {
            w->refill_ns = h->now + CLOCK_NS_PER_S;
            return;
        }
        w->stock.asked++;
    }
}

uint64_t pool_warm_tick(struct pool_holder *h, struct pool_warm *w)
{
    uint64_t next = UINT64_MAX;
    if (!w->serial)
        return next;
    if (w->template && w->orders && h->now - w->order_ns > STUCK_NS) {
        failed(h, w, "it did not answer for a minute");
        pool_warm_stop(h, w);
    }
    const bool moot = w->replaces && !pool_renew_take_over(h, w);
    if (moot || pool_renew_over(w) ||
        (!in_use(w) && !w->retired && h->now - w->used_ns > h->idle_exit_ns)) {
        pool_warm_stop(h, w);
        pool_own_free(&w->own);
        *w = (struct pool_warm){0};
        return next;
    }
    if (w->retired)
        return w->orders ? w->order_ns + STUCK_NS + 1 : next;
    if (!w->template && !pool_warm_start(h, w))
        return w->backoff.retry_ns > h->now ? w->backoff.retry_ns : h->now + CLOCK_NS_PER_S;
    bool missing = w->stock.ready + w->stock.asked < w->stock.warm + w->stock.waiters;
    if (missing && (w->refill_ns <= h->now || w->stock.waiters || !w->stock.ready))
        refill(h, w);
    else if (missing)
        next = w->refill_ns;
    if (missing && !w->orders && next == UINT64_MAX)
        next =
            h->now + CLOCK_NS_PER_S; /* a child could not be ordered now: try again in a second */
    if (w->orders && w->order_ns + STUCK_NS < next)
        next = w->order_ns + STUCK_NS + 1;
    if (!in_use(w) && w->used_ns + h->idle_exit_ns < next)
        next = w->used_ns + h->idle_exit_ns + 1;
    const uint64_t renew = pool_renew_tick(h, w);
    return renew < next ? renew : next;
}
