/* The seed's three rules over the last hour of each client, without reading the log: a ring of small
 * entries for each client in one file, shared by all writers under the log's own lock. One read of what
 * the client did lately, a handful of additions, one write.
 *
 * It is a memory aid and no evidence: if it is lost, an hour of patterns is, and `cordon audit anomalies`
 * finds them in the log all the same.
 *
 * The seed compares an execution with a mean that it is part of itself; among a few executions nothing
 * could then ever be ten times the mean. Here it is compared with the others. */
#include "audit/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 256  /* the one not seen for longest makes room */
#define ENTRIES 1024 /* of one client; beyond that the window is shorter */

struct client {
    uint64_t key, seen_ms;
    uint32_t next, count;
    uint32_t alerted; /* validation failures at the last alert; 0: none in this window */
    uint32_t spare;
};

struct entry {
    uint64_t ms, code;
    uint32_t wall_ms;
    uint32_t flags;
};
enum { BLOCKED = 1, RAN = 2, HAS_CODE = 4 };

static off_t ring_at(size_t i)
{
    return (off_t)(CLIENTS * sizeof(struct client) + i * ENTRIES * sizeof(struct entry));
}

static uint64_t key_of(const char *text)
{
    struct sha256_ctx sha;
    uint8_t hash[8];
    uint64_t key;
    sha256_init(&sha);
    sha256_update(&sha, strlen(text), (const uint8_t *)text);
    sha256_digest(&sha, sizeof hash, hash);
    memcpy(&key, hash, sizeof key);
    return key ? key : 1;
}

static size_t find(struct client *all, uint64_t key, uint64_t now)
{
    size_t oldest = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (all[i].key == key)
            return i;
        if (all[i].seen_ms < all[oldest].seen_ms)
            oldest = i;
    }
    all[oldest] = (struct client){.key = key, .seen_ms = now};
    return oldest;
}

static void alert(struct audit *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void alert(struct audit *a, const char *fmt, ...)
{
    va_list ap;
    if (a->nalerts == AUDIT_ALERTS_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(a->alert_texts[a->nalerts], sizeof a->alert_texts[0], fmt, ap);
    va_end(ap);
    a->alerts[a->nalerts] = a->alert_texts[a->nalerts];
    a->nalerts++;
}

struct tally {
    uint64_t failures, same, ran, sum_ms;
};

static void count(struct tally *t, const struct entry *e, size_t n, uint64_t now, uint64_t window,
                  uint64_t code)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t apart =
            e[i].ms > now ? e[i].ms - now : now - e[i].ms; /* a clock may have been set back */
        if (apart > window)
            continue;
        t->failures += (e[i].flags & BLOCKED) != 0;
        t->same += code && (e[i].flags & HAS_CODE) && e[i].code == code;
        t->ran += (e[i].flags & RAN) != 0;
        t->sum_ms += e[i].flags & RAN ? e[i].wall_ms : 0;
    }
}

static void judge(struct audit *a, struct client *c, const struct tally *t,
                  const struct audit_sample *s)
{
    const struct audit_config *k = &a->config;
    const char *id = s->execution_id ? s->execution_id : "-";
    uint64_t failures = t->failures + s->blocked, wall_ms = s->wall_us / 1000;
    if (t->failures <= k->max_failures)
        c->alerted = 0;
    /* once when the line is crossed, then whenever there are twice as many */
    if (s->blocked && k->max_failures && failures > k->max_failures &&
        failures >= 2 * (uint64_t)c->alerted) {
        alert(a, "Excessive validation failures: %llu", (unsigned long long)failures);
        c->alerted = (uint32_t)failures;
    }
    if (s->ran && k->long_factor && t->ran && t->ran + 1 >= k->long_min_records &&
        wall_ms >= k->long_floor_ms && wall_ms * t->ran > k->long_factor * t->sum_ms)
        alert(a, "Unusually long execution: %.64s", id);
    if (s->code_hash && k->duplicates && t->same + 1 == k->duplicates)
        alert(a, "Duplicate code executions detected");
    if (k->max_violations && s->violations > k->max_violations)
        alert(a, "Excessive violations: %llu in %.64s", (unsigned long long)s->violations, id);
}

void audit_window_feed(struct audit *a, const struct audit_sample *s)
{
    struct client all[CLIENTS] = {0};
    struct entry ring[ENTRIES]
        __attribute__((uninitialized)); /* zeroing it would cost more than the rest */
    struct tally t = {0};
    ssize_t n = pread(a->window_fd, all, sizeof all, 0);
    size_t i = find(all, key_of(s->client ? s->client : ""), s->ms);
    struct client *c = &all[i];
    uint64_t code = s->code_hash ? key_of(s->code_hash) : 0;
    if (n < 0 || c->count > ENTRIES || c->next >= ENTRIES)
        *c = (struct client){.key = c->key};
    n = pread(a->window_fd, ring, c->count * sizeof *ring, ring_at(i));
    count(&t, ring, n < 0 ? 0 : (size_t)n / sizeof *ring, s->ms, a->config.window_ms, code);
    judge(a, c, &t, s);
    struct entry e = {
        .ms = s->ms,
        .code = code,
        .wall_ms = s->wall_us / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(s->wall_us / 1000),
        .flags = (s->blocked ? BLOCKED : 0) | (s->ran ? RAN : 0) | (code ? HAS_CODE : 0)};
    off_t at = ring_at(i) + (off_t)(c->next * sizeof e);
    c->seen_ms = s->ms;
    c->next = (c->next + 1) % ENTRIES;
    c->count = c->count < ENTRIES ? c->count + 1 : ENTRIES;
    /* the entry first: a client whose count is one too small forgets one execution. So does a full disk */
    struct err err = ERR_INIT;
    int r = audit_pwrite(a->window_fd, &e, sizeof e, at, "the window", &err);
    if (r == 0)
        r = audit_pwrite(a->window_fd, c, sizeof *c, (off_t)(i * sizeof *c), "the window", &err);
}
