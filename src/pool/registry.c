/* SPDX-License-Identifier: Apache-2.0 */
/* A table of fixed size: a hundred and twenty-eight entries are looked through faster than a request is
 * read, and nothing here can run out of memory. */
#include "pool/registry.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ENTRIES (POOL_SESSIONS + POOL_REMEMBERED)

static void decline(struct pool_reply *p, const char *word, const char *sentence)
{
    *p = (struct pool_reply){.type = WIRE_DECLINED};
    snprintf(p->state, sizeof p->state, "%s", word);
    snprintf(p->reason, sizeof p->reason, "%s", sentence);
}

static bool lives(const struct pool_session *s)
{
    return s->state == POOL_SESSION_IDLE || s->state == POOL_SESSION_BUSY;
}

void pool_registry_init(struct pool_registry *reg)
{
    *reg = (struct pool_registry){.logs.max = POOL_LOGS};
}

void pool_registry_done(struct pool_registry *reg)
{
    for (size_t i = 0; i < ENTRIES; i++)
        pool_log_done(&reg->session[i].log, &reg->logs);
}

static void forget(struct pool_registry *reg, struct pool_session *s)
{
    base_assert(s->state == POOL_SESSION_OVER && !s->child);
    pool_log_done(&s->log, &reg->logs);
    *s = (struct pool_session){.state = POOL_SESSION_NONE};
    reg->over--;
}

struct pool_session *pool_registry_find(struct pool_registry *reg, const char *name)
{
    struct pool_session *found = NULL;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct pool_session *s = &reg->session[i];
        if (s->state == POOL_SESSION_NONE || strcmp(s->name, name) != 0)
            continue;
        if (lives(s))
            return s;
        if (!found || s->serial > found->serial)
            found = s;
    }
    return found;
}

struct pool_session *pool_registry_serial(struct pool_registry *reg, uint64_t serial)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (reg->session[i].state != POOL_SESSION_NONE && reg->session[i].serial == serial)
            return &reg->session[i];
    return NULL;
}

struct pool_session *pool_registry_after(struct pool_registry *reg, uint64_t serial)
{
    struct pool_session *found = NULL;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct pool_session *s = &reg->session[i];
        if (s->state != POOL_SESSION_NONE && s->serial > serial &&
            (!found || s->serial < found->serial))
            found = s;
    }
    return found;
}

bool pool_registry_room(struct pool_registry *reg, const char *name, struct pool_reply *declined)
{
    char sentence[POOL_REASON + 1];
    struct pool_session *s = name[0] ? pool_registry_find(reg, name) : NULL;
    if (s && lives(s)) {
        snprintf(sentence, sizeof sentence, "a session '%s' lives already", name);
        decline(declined, POOL_WHY_EXISTS, sentence);
        return false;
    }
    if (reg->alive == POOL_SESSIONS) {
        snprintf(sentence, sizeof sentence, "%d sessions live already; close one", POOL_SESSIONS);
        decline(declined, POOL_WHY_FULL, sentence);
        return false;
    }
    return true;
}

/* Random, so that a name of yesterday's does not lead to a session of today's. */
static void make_name(struct pool_registry *reg, char *out, size_t size)
{
    do {
        unsigned char random[4] = {0};
        if (getrandom(random, sizeof random, 0) != sizeof random)
            memcpy(random, &reg->serial, sizeof random);
        snprintf(out, size, "s-%02x%02x%02x%02x", random[0], random[1], random[2], random[3]);
    } while (pool_registry_find(reg, out));
}

struct pool_session *pool_registry_add(struct pool_registry *reg, const char *name, void *child,
                                       uint64_t now, struct pool_reply *declined)
{
    struct pool_session *entry = NULL;
    char made_up[POOL_NAME + 1];
    if (!pool_registry_room(reg, name, declined))
        return NULL;
    for (size_t i = 0; i < ENTRIES && !entry; i++)
        if (reg->session[i].state == POOL_SESSION_NONE)
            entry = &reg->session[i];
    base_assert(
        entry); /* living sessions are bounded, and remembered ones have entries of their own */
    if (!name[0])
        make_name(reg, made_up, sizeof made_up);
    *entry = (struct pool_session){.state = POOL_SESSION_IDLE,
                                   .serial = ++reg->serial,
                                   .made_ns = now,
                                   .used_ns = now,
                                   .idle_ns = POOL_SESSION_IDLE_MS * CLOCK_NS_PER_MS,
                                   .child = child};
    snprintf(entry->name, sizeof entry->name, "%s", name[0] ? name : made_up);
    pool_log_init(&entry->log, POOL_LOG);
    reg->alive++;
    return entry;
}

struct pool_session *pool_registry_lend(struct pool_registry *reg, const char *name, void *client,
                                        uint64_t now, struct pool_reply *declined)
{
    char sentence[POOL_REASON + 1];
    struct pool_session *s = pool_registry_find(reg, name);
    (void)now;
    if (s && s->state == POOL_SESSION_IDLE && !s->died_ns) {
        s->state = POOL_SESSION_BUSY;
        s->client = client;
        return s;
    }
    if (!s) {
        snprintf(sentence, sizeof sentence, POOL_NO_SESSION, name);
        decline(declined, POOL_WHY_UNKNOWN, sentence);
    } else if (s->state == POOL_SESSION_BUSY) {
        snprintf(sentence, sizeof sentence,
                 "session '%s' is in another call; try again when that is over", name);
        decline(declined, POOL_WHY_BUSY, sentence);
    } else {
        snprintf(sentence, sizeof sentence, "session '%s' is over: %.120s", name,
                 s->state == POOL_SESSION_OVER ? s->reason : "its process died");
        decline(declined, s->ran_at_rest ? POOL_WHY_REST : POOL_WHY_ENDED, sentence);
    }
    return NULL;
}

void pool_registry_back(struct pool_session *s, const struct pool_use_numbers *use, uint64_t now)
{
    base_assert(s->state == POOL_SESSION_BUSY);
    s->state = POOL_SESSION_IDLE;
    s->client = NULL;
    s->used_ns = now;
    s->host_calls += use->host_calls;
    s->ran += use->ran;
    s->wall_us += use->wall_us;
    s->cpu_us += use->cpu_us;
    if (use->changed_ns > s->changed_ns)
        s->changed_ns = use->changed_ns;
}

void *pool_registry_end(struct pool_registry *reg, struct pool_session *s, uint64_t now,
                        const char *reason)
{
    base_assert(lives(s));
    void *child = s->child;
    if (reg->over == POOL_REMEMBERED) { /* the one that ended first makes room */
        struct pool_session *oldest = NULL;
        for (size_t i = 0; i < ENTRIES; i++)
            if (reg->session[i].state == POOL_SESSION_OVER &&
                (!oldest || reg->session[i].over_ns < oldest->over_ns))
                oldest = &reg->session[i];
        forget(reg, oldest);
    }
    s->state = POOL_SESSION_OVER;
    s->child = s->client = NULL;
    s->over_ns = now;
    snprintf(s->reason, sizeof s->reason, "%s", reason);
    reg->alive--;
    reg->over++;
    return child;
}

static uint64_t end_of(const struct pool_session *s)
{
    if (s->state == POOL_SESSION_IDLE)
        return s->died_ns ? s->died_ns + POOL_DEATH_MS * CLOCK_NS_PER_MS : s->used_ns + s->idle_ns;
    if (s->state == POOL_SESSION_OVER)
        return s->over_ns + POOL_REMEMBER_MS * CLOCK_NS_PER_MS;
    return UINT64_MAX;
}

struct pool_session *pool_registry_due(struct pool_registry *reg, uint64_t now)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        struct pool_session *s = &reg->session[i];
        if (s->state == POOL_SESSION_NONE || end_of(s) > now)
            continue;
        if (s->state == POOL_SESSION_IDLE)
            return s;
        forget(reg, s);
    }
    return NULL;
}

uint64_t pool_registry_next_ns(const struct pool_registry *reg)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < ENTRIES; i++)
        if (reg->session[i].state != POOL_SESSION_NONE && end_of(&reg->session[i]) < next)
            next = end_of(&reg->session[i]);
    return next;
}
