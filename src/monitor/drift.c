/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the stream is laid beside what stands one cycle before it, and the cycle before that, four copies or more, so that
 * corresponding tokens are in one column. A loop that drifts has its edits anywhere: nearly every column has one token that most
 * copies agree on. Records (a log, a list of functions, documentation of similar things) have columns for what differs, in which every
 * copy has something new, or two words take turns. So:
 *
 *   the period   pairs of tokens that were there before vote for their distance; the two distances with most votes are tried
 *   beside       the best alignment of the last tokens with those one period before, in a band around it: a copy may have
 *                lost or gained a few
 *   a loop       mostly words; MATCH of the tokens are the same one copy before; nearly no column without a common token
 *
 * The numbers were chosen on segments of 8,000 bytes of Debian's headers, Python, JavaScript and documentation, and on loops of
 * 4 to 100 words with up to 20 % edits; test_quality.c counts false aborts and loops that were missed among such. */
#include "monitor/drift.h"

#include <stdlib.h>
#include <string.h>

#define LAG_LEAST  3
#define LAG_MOST   144
#define RING       1024 /* a power of two, more than SPAN_MOST + 2 * LAG_MOST */
#define VOTES      64   /* tokens whose votes count */
#define VOTES_MIN  8    /* votes from which a distance is tried */
#define BUCKETS    512  /* of pairs; a power of two */
#define SPAN_LEAST 46   /* tokens of all copies together */
#define SPAN_MOST  (4 * LAG_MOST)
#define BAND_MOST  17
#define WIDTH      (2 * BAND_MOST + 1)
#define HELD       5 /* distances that may be a loop while one has votes: a verdict takes nearly four */
#define MEMBERS    12   /* of a column: so many copies are looked at */
#define MATCH      0.57 /* share of tokens that are the same one copy before ... */
#define MATCH_OLD                                                                                  \
    0.4 /* ... where what repeats exactly begins: else it is an exact loop and its text before */
#define OLD_LEAST                                                                                  \
    3 /* tokens before that one: with fewer it is an exact loop, or has its first edit soon */
#define MATCH_FRESH 0.66 /* ... where there is a column in which every copy has another one */
#define WORDS       0.8
#define FRESH       0.05 /* share of columns in which every copy has another token */
#define TURNS       0.08 /* the same, and those in which two tokens take turns; and one */

enum step { STEP_BOTH, STEP_GAINED, STEP_LOST };

/* How many tokens are the same one copy before, and how many of those before the end that repeats exactly. */
struct matches {
    unsigned all, old;
};

struct columns {
    unsigned all, fresh, turns;
};

struct drift {
    uint64_t key, count, before, next; /* next: nothing is tried before so many tokens */
    uint64_t ring[RING];
    bool word[RING];
    uint8_t votes[VOTES];  /* the distance a token voted for; 0: none */
    unsigned voted, words; /* of the last VOTES tokens: votes, and words */
    unsigned suspect;      /* the longest distance that was last tried; 0: none has votes enough */
    uint8_t tally[LAG_MOST + 1];
    /* pairs by where they end, from 1: the newest of a bucket, and for each the one before it; 0: none */
    uint32_t newest[BUCKETS], older[RING];
    /* one trial */
    int16_t score[2][WIDTH];
    uint8_t steps[SPAN_MOST][WIDTH];
    uint16_t back[SPAN_MOST]; /* how far before it the corresponding token stands; 0: it has none */
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

static uint64_t token(const struct drift *d, uint64_t n)
{
    return d->ring[n % RING];
}

/* The distance of the pair that SYMBOL ends to where it was last; 0: too far, or never. */
static unsigned distance(struct drift *d, uint64_t symbol)
{
    uint64_t hash = (d->before ^ d->key) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 32) ^ symbol) * 0xd6e8feb86659fd93U;
    uint32_t *head = &d->newest[(hash ^ (hash >> 32)) % BUCKETS], at = *head;
    const uint32_t now = (uint32_t)d->count;
    const uint64_t before = d->before;
    d->older[now % RING] = at;
    *head = now;
    d->before = symbol;
    for (; at > 1 && now - at <= LAG_MOST; at = d->older[at % RING])
        if (token(d, at - 1) == symbol && token(d, at - 2) == before)
            return now - at;
    return 0;
}

static void vote(struct drift *d, unsigned lag)
{
    uint8_t *old = &d->votes[d->count % VOTES];
    if (*old) {
        d->tally[*old]--;
        d->voted--;
    }
    *old = (uint8_t)lag;
    if (lag) {
        d->tally[lag]++;
        d->voted++;
    }
}

/* Copies differ in length: so much either way is the same distance. */
static unsigned spread(unsigned lag)
{
    return 1 + lag / 16;
}

/* The distance with most votes, OTHER and its neighbours apart; 0: none has enough. */
static unsigned most_voted(const struct drift *d, unsigned other)
{
    unsigned most = VOTES_MIN - 1, best = 0;
    for (unsigned lag = LAG_LEAST; lag <= LAG_MOST; lag++) {
        unsigned around = spread(lag), sum = 0;
        if (other && lag + around + spread(other) >= other && lag <= other + around + spread(other))
            continue;
        for (unsigned k = lag - around; k <= lag + around && k <= LAG_MOST; k++)
            sum += d->tally[k];
        /* of several that have the same votes around them, the one that most of them are for: records are judged by whole copies */
        if (sum > most || (best && sum == most && d->tally[lag] > d->tally[best])) {
            most = sum;
            best = lag;
        }
    }
    return best;
}

static int band_of(unsigned lag)
{
    unsigned half = 0; /* three times how far the length of a copy wanders */
    while (half * half * 5 < 6 * lag)
        half++;
    half += 2;
    return (int)(half < lag ? half < BAND_MOST ? half : BAND_MOST : lag - 1);
}

/* Fills steps for the last SPAN tokens, each against those LAG before it, HALF either way; returns where the best one ends. */
static int align(struct drift *d, unsigned lag, unsigned span, int half)
{
    const uint64_t from = d->count - span;
    const int width = 2 * half + 1;
    memset(d->score, 0, sizeof d->score);
    for (unsigned i = 0; i < span; i++) {
        int16_t *now = d->score[i & 1], *old = d->score[(i & 1) ^ 1];
        const uint64_t x = token(d, from + i);
        for (int k = width - 1; k >= 0; k--) {
            const uint64_t other = from + i - lag + (unsigned)half - (unsigned)k;
            int best = old[k] + (x == token(d, other) ? 2 : -1), step = STEP_BOTH;
            if (k > 0 && old[k - 1] - 1 > best) {
                best = old[k - 1] - 1;
                step = STEP_GAINED;
            }
            if (k < width - 1 && now[k + 1] - 1 > best) {
                best = now[k + 1] - 1;
                step = STEP_LOST;
            }
            now[k] = (int16_t)best;
            d->steps[i][k] = (uint8_t)step;
        }
    }
    const int16_t *last = d->score[(span - 1) & 1];
    int end = 0;
    for (int k = 1; k < width; k++)
        end = last[k] > last[end] ? k : end;
    return end;
}

/* Fills back from the steps; the first OLD tokens are counted by themselves. */
static struct matches follow(struct drift *d, unsigned lag, unsigned span, int half, int k,
                             unsigned old)
{
    const uint64_t from = d->count - span;
    struct matches found = {0};
    for (unsigned i = span; i-- > 0;) {
        while (d->steps[i][k] == STEP_LOST)
            k++;
        d->back[i] = 0;
        if (d->steps[i][k] == STEP_GAINED) {
            k--;
            continue;
        }
        d->back[i] = (uint16_t)((int)lag + k - half);
        const bool same = token(d, from + i) == token(d, from + i - d->back[i]);
        found.all += same;
        found.old += same && i < old;
    }
    return found;
}

/* What one column of COUNT tokens is. */
static void judge_column(const uint64_t *column, unsigned count, struct columns *c)
{
    unsigned most = 0, second = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned same = 0;
        bool first = true;
        for (unsigned k = 0; k < count; k++) {
            same += column[k] == column[i];
            first &= k >= i || column[k] != column[i];
        }
        if (!first)
            continue;
        second = same > most ? most : same > second ? same : second;
        most = same > most ? same : most;
    }
    c->all++;
    c->fresh += most == 1 || (count >= 6 && 3 * most <= count);
    c->turns += most > 1 && second > 1 && 4 * second >= count;
}

static struct columns judge_columns(const struct drift *d, unsigned lag, unsigned span)
{
    const uint64_t from = d->count - span;
    struct columns c = {0};
    for (unsigned i = span > lag ? span - lag : 0; i < span; i++) {
        uint64_t column[MEMBERS], x = from + i;
        unsigned count = 0;
        while (count < MEMBERS) {
            column[count++] = token(d, x);
            if (x < from || !d->back[x - from])
                break;
            x -= d->back[x - from];
        }
        if (count >= 3)
            judge_column(column, count, &c);
    }
    return c;
}

/* Whether the end of the stream is a loop of about LAG tokens, the last EXACT of which repeat exactly; *RET_TOKENS: so many were looked at. */
static bool is_loop(struct drift *d, unsigned lag, uint64_t exact, uint64_t *ret_tokens)
{
    const int half = band_of(lag);
    const unsigned all = 4 * lag - lag / 4 > SPAN_LEAST ? 4 * lag - lag / 4 : SPAN_LEAST,
                   span = all - lag;
    if (d->count < all + (unsigned)half)
        return false;
    unsigned words = 0;
    for (uint64_t n = d->count - span; n < d->count; n++)
        words += d->word[n % RING];
    if (words < WORDS * span)
        return false;
    const unsigned old = exact < span ? span - (unsigned)exact : 0;
    if (old < OLD_LEAST)
        return false;
    const struct matches same = follow(d, lag, span, half, align(d, lag, span, half), old);
    if (same.all < MATCH * span || same.old < MATCH_OLD * old)
        return false;
    struct columns c = judge_columns(d, lag, span);
    *ret_tokens = all;
    if (10 * c.all < 7 * lag || (c.fresh && same.all < MATCH_FRESH * span))
        return false;
    return c.fresh <= c.all * FRESH && c.fresh + c.turns <= 1 + c.all * TURNS;
}

/* Whether the token before the last N is there again one copy later, or near it. */
static bool comes_back(const struct drift *d, unsigned lag, uint64_t n)
{
    const unsigned half = (unsigned)band_of(lag);
    const uint64_t x = token(d, d->count - n - 1);
    for (uint64_t k = n - lag - half; k <= n - lag + half; k++)
        if (token(d, d->count - k - 1) == x)
            return true;
    return false;
}

/* A verdict looks at nearly four copies, and comes when there are some tokens more: where the loop began is found by going back a quarter of
 * a copy at a time, for as long as half of its tokens come back. */
static uint64_t whole_loop(const struct drift *d, unsigned lag, uint64_t tokens)
{
    const unsigned part = lag / 4 + 3;
    while (tokens + part < d->count && tokens + part < RING) {
        unsigned back = 0;
        for (unsigned i = 0; i < part; i++)
            back += comes_back(d, lag, tokens + i);
        if (2 * back <= part)
            break;
        tokens += part;
    }
    return tokens;
}

struct drift_found drift_add(struct drift *d, uint64_t symbol, bool word, uint64_t exact)
{
    struct drift_found found = {0};
    if (d->count >= VOTES)
        d->words -= d->word[(d->count - VOTES) % RING];
    d->words += word;
    d->ring[d->count % RING] = symbol;
    d->word[d->count % RING] = word;
    d->count++;
    vote(d, distance(d, symbol));
    /* in prose few pairs come back, and code has fewer words: nearly every token ends here */
    if (d->voted < VOTES_MIN || d->words < WORDS / 2 * VOTES)
        d->suspect = 0;
    if (d->voted < VOTES_MIN || d->words < WORDS / 2 * VOTES || d->count < d->next)
        return found;
    unsigned lag = most_voted(d, 0), longest = lag;
    for (int i = 0; i < 2 && lag; i++) {
        longest = lag > longest ? lag : longest;
        if (is_loop(d, lag, exact, &found.tokens)) {
            found.loop = true;
            found.period = lag;
            found.tokens = whole_loop(d, lag, found.tokens);
            return found;
        }
        lag = most_voted(d, lag);
    }
    d->suspect = longest;
    d->next = d->count + 2 + longest / 8;
    return found;
}

uint64_t drift_held(const struct drift *d)
{
    return d->suspect ? HELD * d->suspect + VOTES : 0;
}
