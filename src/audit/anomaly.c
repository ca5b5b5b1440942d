/* SPDX-License-Identifier: Apache-2.0 */
/* Three rules over the last hour of each client, without reading the log: a ring of small
 * entries for each client in one file, shared by all writers under the log's own lock.
 *
 * It is a memory aid and no evidence: if it is lost, an hour of patterns is, and `cordon audit anomalies`
 * finds them in the log all the same.
 *
 * An execution is compared with the mean of the others. A mean that contains the execution itself grows with
 * it: among a few executions nothing could then ever be ten times the mean. One that its time limit ended is no
 * news: whoever set the limit expected it, and the result says so. */
#include "audit/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLIENTS 64  /* the one not seen for longest makes room */
#define ENTRIES 512 /* of one client; beyond that the window is shorter */

struct entry {
    uint64_t ms, code;
    uint32_t wall_ms;
    uint32_t flags;
};
enum { BLOCKED = 1, RAN = 2, HAS_CODE = 4 };

struct client {
    uint64_t key, seen_ms;
    uint32_t next, count;
    uint32_t alerted; /* validation failures at the last alert; 0: none in this window */
    uint32_t spare;
    struct entry ring[ENTRIES];
};

int audit_window_open(struct audit *a, struct err *err)
{
    return audit_map(a->window_fd, a, CLIENTS * sizeof(struct client), "window", &a->window, err);
}

void audit_window_close(struct audit *a)
{
    audit_unmap(a->window, CLIENTS * sizeof(struct client));
    a->window = NULL;
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

static struct client *find(struct client *all, uint64_t key)
{
    struct client *oldest = &all[0];
    for (size_t i = 0; i < CLIENTS; i++) {
        if (all[i].key == key && all[i].count <= ENTRIES && all[i].next < ENTRIES)
            return &all[i];
        if (all[i].seen_ms < oldest->seen_ms)
            oldest = &all[i];
    }
    oldest->count = oldest->next = oldest->alerted = 0;
    oldest->key = key;
    return oldest;
}

/* QUIET: no news to whoever sits there. */
static void alert(struct audit *a, bool quiet, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void alert(struct audit *a, bool quiet, const char *fmt, ...)
{
    va_list ap;
    if (a->nalerts == AUDIT_ALERTS_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(a->alert_texts[a->nalerts], sizeof a->alert_texts[0], fmt, ap);
    va_end(ap);
    a->alerts[a->nalerts] = a->alert_texts[a->nalerts];
    a->alert_quiet[a->nalerts] = quiet;
    a->nalerts++;
}

struct tally {
    uint64_t failures, same, ran, sum_ms;
};

/* The clock may have been set back in between: an entry is in the window if it lies that far on either side. */
static void count(struct tally *t, const struct client *c, uint64_t now, uint64_t window,
                  uint64_t code)
{
    for (const struct entry *e = c->ring, *end = e + c->count; e < end; e++) {
        uint64_t apart = e->ms > now ? e->ms - now : now - e->ms;
        if (apart > window)
            continue;
        t->failures += (e->flags & BLOCKED) != 0;
        t->same += code && (e->flags & HAS_CODE) && e->code == code;
        t->ran += (e->flags & RAN) != 0;
        t->sum_ms += e->flags & RAN ? e->wall_ms : 0;
    }
}

/* Whole seconds with one decimal, less with three. */
static void say_seconds(char *out, size_t size, uint64_t ms)
{
    const unsigned long long whole = ms / 1000, part = ms % 1000;
    if (ms == 0)
        snprintf(out, size, "less than 0.001 s");
    else if (whole)
        snprintf(out, size, "%llu.%llu s", whole, part / 100);
    else
        snprintf(out, size, "0.%03llu s", part);
}

void audit_say_long(char *out, size_t size, const char *id, uint64_t ms, uint64_t mean_ms)
{
    char took[32], mean[32];
    say_seconds(took, sizeof took, ms);
    say_seconds(mean, sizeof mean, mean_ms);
    snprintf(out, size, "Unusually long execution: %.40s: took %s; the mean of this client is %s",
             id, took, mean);
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
        alert(a, false, "Excessive validation failures: %llu", (unsigned long long)failures);
        c->alerted = (uint32_t)failures;
    }
    if (s->ran && k->long_factor && t->ran && t->ran + 1 >= k->long_min_records && !s->timed_out &&
        wall_ms >= k->long_floor_ms && wall_ms * t->ran > k->long_factor * t->sum_ms) {
        char text[sizeof a->alert_texts[0]];
        audit_say_long(text, sizeof text, id, wall_ms, t->sum_ms / t->ran);
        alert(a, true, "%s", text);
    }
    if (s->code_hash && k->duplicates && t->same + 1 == k->duplicates)
        alert(a, true, "Duplicate code executions detected");
    if (k->max_violations && s->violations > k->max_violations)
        alert(a, false, "Excessive violations: %llu in %.64s", (unsigned long long)s->violations,
              id);
}

void audit_window_feed(struct audit *a, const struct audit_sample *s)
{
    struct tally t = {0};
    struct client *c = find(a->window, key_of(s->client ? s->client : ""));
    uint64_t code = s->code_hash ? key_of(s->code_hash) : 0;
    count(&t, c, s->ms, a->config.window_ms, code);
    judge(a, c, &t, s);
    c->ring[c->next] = (struct entry){
        .ms = s->ms,
        .code = code,
        .wall_ms = s->wall_us / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(s->wall_us / 1000),
        .flags = (s->blocked ? BLOCKED : 0) | (s->ran ? RAN : 0) | (code ? HAS_CODE : 0)};
    c->seen_ms = s->ms;
    c->next = (c->next + 1) % ENTRIES;
    c->count = c->count < ENTRIES ? c->count + 1 : ENTRIES;
}
