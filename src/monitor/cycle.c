/* SPDX-License-Identifier: Apache-2.0 */
/* A table of zeros and an array of NULLs repeat exactly, and are meant. What tells them from a model that is caught in a loop is
 * what repeats: words, or numbers and marks. */
#include "monitor/cycle.h"

#include <string.h>

void cycle_remember(struct cycle_history *h, const struct token *t)
{
    bool list = t->kind == TOKEN_MARK ? memchr(",;|", t->mark, 3) != NULL : false;
    h->ring[h->count++ % (2 * LOOP_SYMBOLS)] = (struct cycle_token){
        t->byte, t->value, t->letters, list, t->kind == TOKEN_SPACE && t->mark == '\n'};
}

const struct cycle_token *cycle_at(const struct cycle_history *h, uint64_t n)
{
    return &h->ring[n % (2 * LOOP_SYMBOLS)];
}

/* How many tokens a loop of the last LAG tokens must have. */
static uint64_t needed(const struct cycle_history *h, uint64_t lag, bool numbered)
{
    uint64_t words = 0, least = CYCLE_TOKENS, copies = CYCLE_COPIES;
    bool list = false, line = false;
    for (uint64_t i = h->count - lag; i < h->count; i++) {
        words += cycle_at(h, i)->letters;
        list |= cycle_at(h, i)->list;
        line |= cycle_at(h, i)->line;
    }
    if (!words || (words <= 2 && list)) {
        least = CYCLE_DATA_TOKENS;
    } else if (2 * words < lag) {
        least = line ? CYCLE_CODE_TOKENS : CYCLE_STRUCTURE_TOKENS;
        copies = words < 3 && line ? CYCLE_LINE_COPIES : CYCLE_CODE_COPIES;
    }
    uint64_t most = least > copies * lag ? least : copies * lag;
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
    if (!tail.lag || region < CYCLE_TOKENS || region < CYCLE_COPIES * tail.lag)
        return false;
    if (judged->lag != tail.lag || judged->onset != onset)
        *judged = (struct cycle_judged){tail.lag, onset, needed(h, tail.lag, numbered)};
    if (region < judged->needed)
        return false;
    return !numbered || counts(h, tail.lag, region);
}
