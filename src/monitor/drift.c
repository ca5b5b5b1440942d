/* SPDX-License-Identifier: Apache-2.0 */
/* Two tokens are the context of the third. A context that came often remembers what followed it. In a loop with edits at random
 * places every context is mostly followed by what followed it before. In records (a log, a table, documentation of similar functions)
 * there are contexts that are nearly always followed by something new: the slots for what differs. So:
 *
 *   known      the context came at least VISITS times in the last HORIZON tokens
 *   new slot   a known context of which at least NEW_SHARE of the last eight visits brought something new
 *   a loop     in the last WINDOW tokens: mostly words, many known contexts, mostly followed by what followed them before,
 *              nearly no new slot, a short distance; and all this for SUSTAINED tokens
 *
 * The numbers were chosen on 39,538 segments of 8,000 bytes of Debian's headers, Python, documentation and tables (no false
 * abort) and on loops of 4 to 100 words with up to 20 % edits; test_quality.c repeats both. */
#include "monitor/drift.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW      256
#define HORIZON     4096
#define SLOTS       8192 /* a power of two */
#define PROBES      8
#define VISITS      4
#define NEW_SHARE   0.7
#define WORD_SHARE  0.65
#define KNOWN_SHARE 0.4
#define SAME_SHARE  0.6
#define NEW_SLOTS   3
#define DISTANCE    128
#define SUSTAINED   192
#define PENALTY     4 /* a token at which it is no loop takes away so many at which it was */
#define FOLLOWERS   3

struct context {
    uint64_t key, followers[FOLLOWERS]; /* the newest first */
    uint64_t at;                        /* its last visit, from 1; 0: never */
    uint8_t visits, news; /* news: a bit a visit, the newest lowest: what followed was new */
};

struct seen {
    bool word, known, same, slot;
    uint32_t distance;
};

struct drift {
    uint64_t key, count, before[2];
    struct seen ring[WINDOW];
    uint64_t words, known, same, slots, distance; /* sums over the ring */
    uint64_t sustained;
    struct context contexts[SLOTS];
};

struct drift *drift_new(uint64_t key)
{
    struct drift *d = calloc(1, sizeof *d);
    if (d)
        d->key = key;
    return d;
}

void drift_free(struct drift *d)
{
    free(d);
}

/* The context of the next token; the oldest one nearby makes way for a new one. */
static struct context *find(struct drift *d)
{
    uint64_t key = (d->before[0] ^ d->key) * 0x9e3779b97f4a7c15U;
    key = (key ^ (key >> 32) ^ d->before[1]) * 0xd6e8feb86659fd93U;
    key ^= key >> 32;
    struct context *oldest = NULL;
    for (unsigned i = 0; i < PROBES; i++) {
        struct context *c = &d->contexts[(key + i) & (SLOTS - 1)];
        if (c->at && c->key == key && d->count - c->at <= HORIZON)
            return c;
        if (!oldest || c->at < oldest->at)
            oldest = c;
    }
    *oldest = (struct context){.key = key};
    return oldest;
}

/* What the next token says of its context, before it is noted there. */
static struct seen look(const struct drift *d, const struct context *c, bool fresh)
{
    struct seen s = {0};
    unsigned last = c->visits < 8 ? c->visits : 8;
    if (c->visits < VISITS)
        return s;
    if (__builtin_popcount(c->news & ((1U << last) - 1)) >= NEW_SHARE * last) {
        s.slot = true;
        return s;
    }
    s.known = true;
    s.same = !fresh;
    s.distance = (uint32_t)(d->count - c->at);
    return s;
}

static void note(struct drift *d, struct context *c, uint64_t symbol, bool fresh)
{
    if (c->at) {
        c->news = (uint8_t)(c->news << 1 | fresh);
        if (c->visits < UINT8_MAX)
            c->visits++;
    }
    unsigned at = 0;
    while (at < FOLLOWERS - 1 && c->followers[at] != symbol)
        at++;
    memmove(c->followers + 1, c->followers, at * sizeof *c->followers);
    c->followers[0] = symbol;
    c->at = d->count;
}

static bool is_new(const struct context *c, uint64_t symbol)
{
    for (unsigned i = 0; i < FOLLOWERS; i++)
        if (c->followers[i] == symbol)
            return false;
    return true;
}

static void slide(struct drift *d, struct seen s)
{
    struct seen *old = &d->ring[d->count % WINDOW];
    d->words += (uint64_t)s.word - old->word;
    d->known += (uint64_t)s.known - old->known;
    d->same += (uint64_t)s.same - old->same;
    d->slots += (uint64_t)s.slot - old->slot;
    d->distance += (uint64_t)s.distance - old->distance;
    *old = s;
}

struct drift_found drift_add(struct drift *d, uint64_t symbol, bool word)
{
    d->count++;
    struct context *c = find(d);
    bool fresh = is_new(c, symbol);
    struct seen s = look(d, c, fresh);
    s.word = word;
    note(d, c, symbol, fresh);
    slide(d, s);
    d->before[0] = d->before[1];
    d->before[1] = symbol;

    bool loop = d->count >= WINDOW && (double)d->words >= WORD_SHARE * WINDOW &&
                (double)d->known >= KNOWN_SHARE * WINDOW &&
                (double)d->same >= SAME_SHARE * (double)d->known && d->slots <= NEW_SLOTS &&
                d->distance <= DISTANCE * d->known;
    if (loop)
        d->sustained++;
    else
        d->sustained -= d->sustained < PENALTY ? d->sustained : PENALTY;
    const uint64_t tokens = WINDOW + d->sustained;
    return (struct drift_found){d->sustained >= SUSTAINED, tokens < d->count ? tokens : d->count,
                                d->known ? d->distance / d->known : 0};
}
