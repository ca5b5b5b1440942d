/* SPDX-License-Identifier: Apache-2.0 */
/* A table of zeros and an array of NULLs repeat exactly, and are meant. What tells them from a model that is caught in a loop is
 * what repeats: words, or numbers and marks. */
#include "monitor/cycle.h"

#include <stdlib.h>
#include <string.h>

#define BYTE_MOST ((UINT64_C(1) << 56) - 1)
#define SMALLEST  1024 /* tokens there is memory for at first: more than a drifting loop has */

bool cycle_init(struct cycle_history *h)
{
    *h = (struct cycle_history){.room = SMALLEST};
    h->ring = calloc(SMALLEST, sizeof *h->ring);
    return h->ring;
}

void cycle_done(struct cycle_history *h)
{
    free(h->ring);
}

/* Twice the room, as long as nothing was forgotten. Without memory the ring stays as it is, and the oldest tokens are. */
static void make_room(struct cycle_history *h)
{
    if (h->count != h->room || h->room == LOOP_SYMBOLS)
        return;
    struct cycle_token *more = realloc(h->ring, 2 * h->room * sizeof *more);
    if (!more)
        return;
    h->ring = more;
    h->room *= 2;
}

void cycle_remember(struct cycle_history *h, const struct token *t)
{
    const bool mark = t->kind == TOKEN_MARK;
    make_room(h);
    h->ring[h->count++ % h->room] =
        (struct cycle_token){.byte = t->byte & BYTE_MOST,
                             .value = t->value,
                             .letters = t->letters,
                             .name = t->kind == TOKEN_WORD,
                             .mark = mark,
                             .list = mark && memchr(",;|", t->mark, 3) != NULL,
                             .tag = mark && t->mark == '<',
                             .line = t->kind == TOKEN_SPACE && t->mark == '\n'};
}

const struct cycle_token *cycle_at(const struct cycle_history *h, uint64_t n)
{
    return &h->ring[n % h->room];
}

/* What is in a cycle: the last LAG tokens. */
struct content {
    uint64_t words, names, marks, lines;
    bool list, tag;
    int64_t least, most; /* of its numbers; -1: it has none */
};

static struct content content_of(const struct cycle_history *h, uint64_t lag)
{
    struct content c = {.least = -1, .most = -1};
    for (uint64_t i = h->count - lag; i < h->count; i++) {
        const struct cycle_token *t = cycle_at(h, i);
        c.words += t->letters;
        c.names += t->name;
        c.marks += t->mark;
        c.lines += t->line;
        c.list |= t->list;
        c.tag |= t->tag;
        c.most = t->value > c.most ? t->value : c.most;
        if (t->value >= 0 && (c.least < 0 || t->value < c.least))
            c.least = t->value;
    }
    return c;
}

/* A cycle of numbers and marks, or one of a list: what tables are made of. Marks alone, on one line, are no table: a ruler or a row of
 * dots ends with its line. */
static uint64_t data_needed(const struct content *c, uint64_t lag)
{
    const bool rows = lag >= CYCLE_ROW_LEAST && c->least != c->most,
               marks = lag > 1 && c->marks && !c->names && c->most < 0 && !c->list && !c->lines;
    const uint64_t least = rows    ? CYCLE_ROW_TOKENS
                           : marks ? CYCLE_ONE_LINE_TOKENS
                                   : CYCLE_DATA_TOKENS,
                   copies = rows ? CYCLE_ROW_COPIES : CYCLE_COPIES;
    return least > copies * lag ? least : copies * lag;
}

/* One in which marks outnumber words. Markup is written in copies that are meant, the cards of a page, and so are lines of one word in a
 * table; a line of code with two names is not, nor is a block of lines. */
static uint64_t code_needed(const struct content *c, uint64_t lag)
{
    const bool code = c->names >= 2 && c->lines && !c->list && !c->tag,
               block = c->words >= 3 && c->lines >= CYCLE_BLOCK_LINES && !c->tag;
    const uint64_t least = c->words < 3 && !c->lines ? CYCLE_ONE_LINE_TOKENS : CYCLE_CODE_TOKENS,
                   copies = block                   ? CYCLE_BLOCK_COPIES
                            : c->words >= 3 || code ? CYCLE_CODE_COPIES
                                                    : CYCLE_LINE_COPIES;
    return least > copies * lag ? least : copies * lag;
}

/* How many tokens a loop of the last LAG tokens must have. */
static uint64_t needed(const struct cycle_history *h, uint64_t lag, bool numbered)
{
    const struct content c = content_of(h, lag);
    const bool data = !c.words || (c.words <= 2 && c.list), prose = !data && 2 * c.words >= lag;
    if (prose)
        return CYCLE_TOKENS > CYCLE_COPIES * lag ? CYCLE_TOKENS : CYCLE_COPIES * lag;
    const uint64_t most = data ? data_needed(&c, lag) : code_needed(&c, lag);
    return numbered ? CYCLE_NUMBERED * most : most;
}

/* Whether each number of the last copies is constant or goes on by a constant step. */
static bool counts(const struct cycle_history *h, uint64_t lag, uint64_t region)
{
    bool any = false;
    for (uint64_t i = h->count - lag; i < h->count; i++) {
        int64_t last = cycle_at(h, i)->value, step = last - cycle_at(h, i - lag)->value;
        if (last < 0)
            continue;
        any |= step != 0;
        for (uint64_t k = 1; (k + 1) * lag <= region - (h->count - 1 - i); k++)
            if (cycle_at(h, i - k * lag)->value < 0 ||
                cycle_at(h, i - (k - 1) * lag)->value - cycle_at(h, i - k * lag)->value != step)
                return false;
    }
    return any;
}

bool cycle_is_loop(const struct cycle_history *h, struct cycle_judged *judged,
                   struct loop_tail tail, bool numbered)
{
    uint64_t region = tail.length + tail.lag, onset = h->count - region;
    if (!tail.lag || region < CYCLE_TOKENS || region < CYCLE_COPIES * tail.lag || region > h->room)
        return false;
    if (judged->lag != tail.lag || judged->onset != onset)
        *judged = (struct cycle_judged){tail.lag, onset, needed(h, tail.lag, numbered)};
    if (region < judged->needed)
        return false;
    return !numbered || counts(h, tail.lag, region);
}
