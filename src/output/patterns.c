/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and secrets that are known by their form. By hand and in one pass, not by PCRE2: each form is a
 * fixed beginning and a run of a class, so the decision needs a bounded look ahead (64 bytes; 600 in a
 * JWT, 4,096 in a traceback's file name), a run is walked once, and what follows a decision is
 * swallowed without looking back. A backtracking matcher has limits that turn hostile text into no match at
 * all, and none of its matches can be continued in the next chunk.
 *
 * The three patterns of paths have two bounds: a file name in a traceback ends after 4,096 bytes, and the
 * name below /home/ ends at a quote, bracket or comma too: otherwise the closing quote of a JSON string
 * would go with it. */
#include "output/rules.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum class {
    NOTHING,
    WORD,    /* A-Za-z0-9 */
    UNDER,   /* and _ */
    DASH,    /* and - */
    DOTTED,  /* and . */
    TOKEN,   /* A-Za-z0-9._~+/=- */
    UPPER,   /* A-Z0-9 */
    BASE64,  /* A-Za-z0-9+/= */
    NAME,    /* of a folder below /home/ */
    KEY,     /* inside a private key, as it is and as a string's source */
    KEY_END, /* behind its -----END */
};

#define B(k) (1U << (k))
#define ALL  (B(UNDER) | B(DASH) | B(DOTTED) | B(TOKEN) | B(BASE64) | B(NAME) | B(KEY) | B(WORD))
static const uint16_t classes[256] = {
    ['0' ... '9'] = ALL | B(UPPER),
    ['A' ... 'Z'] = ALL | B(UPPER),
    ['a' ... 'z'] = ALL,
    ['_'] = B(UNDER) | B(DASH) | B(DOTTED) | B(TOKEN) | B(NAME),
    ['-'] = B(DASH) | B(DOTTED) | B(TOKEN) | B(NAME) | B(KEY),
    ['.'] = B(DOTTED) | B(TOKEN) | B(NAME),
    ['~'] = B(TOKEN) | B(NAME),
    ['+'] = B(TOKEN) | B(BASE64) | B(NAME) | B(KEY),
    ['='] = B(TOKEN) | B(BASE64) | B(NAME) | B(KEY),
    ['/'] = B(TOKEN) | B(BASE64) | B(KEY),
    [' '] = B(KEY),
    ['\t'] = B(KEY),
    ['\r'] = B(KEY),
    ['\n'] = B(KEY),
    ['\\'] = B(KEY),
    [':'] = B(KEY),
    [','] = B(KEY),
    ['!'] = B(NAME),
    ['#' ... '%'] = B(NAME),
    ['*'] = B(NAME),
    ['?'] = B(NAME),
    ['@'] = B(NAME),
    ['^'] = B(NAME),
    [0x80 ... 0xff] = B(NAME),
};

static bool in_class(enum class k, unsigned char c)
{
    return classes[c] >> k & 1;
}

enum answer { NO, MORE, YES };
struct hit {
    size_t keep, len; /* bytes that stay as they are, bytes that are replaced (with those kept) */
    const char *label;
    enum class swallow;
    bool secret;
};

/* How far a run of DASH goes and where its next digit is, kept while the pass goes on: a run with many
 * beginnings in it (`sk-sk-sk-...`) is then still walked once. Both are places in the pass's bytes. */
struct run {
    size_t end, digit;
};

struct text {
    const unsigned char *s;
    size_t n;
    bool end;  /* nothing follows */
    size_t at; /* of s in the pass's bytes */
    struct run *run;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The bytes of class K behind SKIP, at most WANT of them. */
static size_t run_length(const struct text *t, size_t skip, enum class k, size_t want,
                         bool *ret_digit)
{
    const unsigned char *base = t->s - t->at;
    struct run fresh = {0}, *run = k == DASH ? t->run : &fresh;
    size_t from = t->at + skip, limit = t->at + smaller(t->n, skip + want);
    if (run->end < from)
        run->end = from;
    while (run->end < limit && in_class(k, base[run->end]))
        run->end++;
    limit = smaller(limit, run->end);
    if (run->digit < from)
        run->digit = from;
    while (run->digit < limit && !isdigit(base[run->digit]))
        run->digit++;
    *ret_digit = run->digit < limit;
    return limit - from;
}

/* ---- secrets that begin with a word of their own ---- */

enum { DIGIT = 1, ENDS = 2, CONTEXT = 4 };

/* A prefix, a class, at least so many bytes of it. DIGIT: one of the first 48 is a digit, as in every key
 * and in few words. ENDS: exactly so many. CONTEXT: the prefix stays, blanks and quotes may follow it. */
static const struct row {
    char prefix[24], label[28]; /* in place: no relocation at the start of a program */
    enum class run;
    unsigned char min, flags;
    enum class rest; /* what follows the run and goes with it; NOTHING: more of the same */
} rows[] = {
    {"AIza", "[REDACTED:google]", DASH, 35, 0, NOTHING},
    {"AKIA", "[REDACTED:aws]", UPPER, 16, ENDS, NOTHING},
    {"ASIA", "[REDACTED:aws]", UPPER, 16, ENDS, NOTHING},
    {"Authorization: Basic ", "[REDACTED:basic]", BASE64, 8, CONTEXT, NOTHING},
    {"Bearer ", "[REDACTED:bearer]", TOKEN, 16, CONTEXT | DIGIT, NOTHING},
    {"SG.", "[REDACTED:sendgrid]", DASH, 22, DIGIT, DOTTED},
    {"SecretAccessKey", "[REDACTED:aws]", BASE64, 40, CONTEXT, NOTHING},
    {"aws_secret_access_key", "[REDACTED:aws]", BASE64, 40, CONTEXT, NOTHING},
    {"AWS_SECRET_ACCESS_KEY", "[REDACTED:aws]", BASE64, 40, CONTEXT, NOTHING},
    {"bearer ", "[REDACTED:bearer]", TOKEN, 16, CONTEXT | DIGIT, NOTHING},
    {"dop_v1_", "[REDACTED:digitalocean]", WORD, 40, 0, NOTHING},
    {"gho_", "[REDACTED:github]", WORD, 36, 0, NOTHING},
    {"ghp_", "[REDACTED:github]", WORD, 36, 0, NOTHING},
    {"ghr_", "[REDACTED:github]", WORD, 36, 0, NOTHING},
    {"ghs_", "[REDACTED:github]", WORD, 36, 0, NOTHING},
    {"ghu_", "[REDACTED:github]", WORD, 36, 0, NOTHING},
    {"github_pat_", "[REDACTED:github]", UNDER, 22, 0, NOTHING},
    {"glpat-", "[REDACTED:gitlab]", DASH, 20, 0, NOTHING},
    {"hf_", "[REDACTED:huggingface]", WORD, 30, 0, NOTHING},
    {"npm_", "[REDACTED:npm]", WORD, 36, 0, NOTHING},
    {"pypi-", "[REDACTED:pypi]", DASH, 50, 0, NOTHING},
    {"rk_live_", "[REDACTED:stripe]", WORD, 16, 0, NOTHING},
    {"sk-", "[REDACTED:api-key]", DASH, 20, DIGIT, NOTHING},
    {"sk_live_", "[REDACTED:stripe]", WORD, 16, 0, NOTHING},
    {"sk_test_", "[REDACTED:stripe]", WORD, 16, 0, NOTHING},
    {"xapp-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxa-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxb-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxe-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxp-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxr-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
    {"xoxs-", "[REDACTED:slack]", DASH, 10, DIGIT, NOTHING},
};

#define WINDOW  48U /* bytes of a run that are looked at for a digit */
#define BETWEEN 8U  /* blanks, quotes and signs between a context and its secret */

static enum answer begins(const struct text *t, const char *prefix, size_t *ret_len)
{
    size_t len = strlen(prefix), n = t->n < len ? t->n : len;
    *ret_len = len;
    if (memcmp(t->s, prefix, n) != 0)
        return NO;
    return n == len ? YES : t->end ? NO : MORE;
}

static enum answer match_row(const struct text *t, const struct row *row, struct hit *h)
{
    size_t at;
    bool digit;
    enum answer a = begins(t, row->prefix, &at);
    if (a != YES)
        return a;
    size_t prefix = at;
    while (row->flags & CONTEXT && at < t->n && at < prefix + BETWEEN &&
           strchr(" \t\"'=:\\", t->s[at]) && t->s[at])
        at++;
    size_t want = row->flags & DIGIT ? WINDOW : row->flags & ENDS ? row->min + 1U : row->min;
    size_t run = run_length(t, at, row->run, want, &digit);
    bool known = run >= row->min && (digit || !(row->flags & DIGIT)) && !(row->flags & ENDS);
    if (!known && at + run == t->n && run < want && !t->end)
        return MORE;
    if (row->flags & ENDS ? run != row->min : !known)
        return NO;
    *h = (struct hit){row->flags & CONTEXT ? at : 0, at + run, row->label,
                      row->rest ? row->rest : row->run, true};
    return YES;
}

/* ---- forms with a matcher of their own ---- */

/* Two parts that each begin with {" in base64. */
static enum answer match_jwt(const struct text *t, struct hit *h)
{
    size_t at;
    enum answer a = begins(t, "eyJ", &at);
    if (a != YES)
        return a;
    bool digit;
    at += run_length(t, at, DASH, 512 - at, &digit);
    if (at == t->n)
        return t->end || at == 512 ? NO : MORE;
    if (t->s[at] != '.' || at < 10)
        return NO;
    struct text second = {t->s + at + 1, t->n - at - 1, t->end, 0, NULL};
    size_t len;
    a = begins(&second, "eyJ", &len);
    *h = (struct hit){0, at + 1 + len, "[REDACTED:jwt]", DOTTED, true};
    return a;
}

static enum answer match_private_key(const struct text *t, struct hit *h)
{
    static const char tail[] = "PRIVATE KEY-----";
    size_t at;
    enum answer a = begins(t, "-----BEGIN ", &at);
    if (a != YES)
        return a;
    for (size_t words = 0; words <= 40; words++, at++) {
        struct text rest = {t->s + at, t->n - at, t->end, 0, NULL};
        size_t len;
        a = begins(&rest, tail, &len);
        if (a == YES) {
            *h = (struct hit){0, at + len, "[REDACTED:private-key]", KEY, true};
            return YES;
        }
        if (a == MORE || at == t->n)
            return t->end ? NO : MORE;
        if (!in_class(UPPER, t->s[at]) && t->s[at] != ' ')
            return NO;
    }
    return NO;
}

/* scheme://user:password@host: only the password goes. */
static enum answer match_url(const struct text *t, struct hit *h)
{
    size_t at, start;
    enum answer a = begins(t, "://", &at);
    if (a != YES)
        return a;
    for (start = at;
         at < t->n && at - start <= 64 && t->s[at] > ' ' && !strchr("/:@\"'<>", t->s[at]);)
        at++;
    if (at == t->n)
        return t->end || at - start > 64 ? NO : MORE;
    if (t->s[at] != ':')
        return NO;
    for (start = ++at;
         at < t->n && at - start <= 256 && t->s[at] > ' ' && !strchr("/@\"'<>", t->s[at]);)
        at++;
    if (at == t->n)
        return t->end || at - start > 256 ? NO : MORE;
    if (t->s[at] != '@' || at == start)
        return NO;
    *h = (struct hit){start, at, "[REDACTED:password]", NOTHING, true};
    return YES;
}

static enum answer match_file(const struct text *t, struct hit *h)
{
    size_t at;
    enum answer a = begins(t, "File \"/", &at);
    if (a != YES)
        return a;
    size_t cap = t->n - at < 4096 ? t->n - at : 4096;
    const unsigned char *quote = memchr(t->s + at, '"', cap);
    if (!quote)
        return t->end || cap == 4096 ? NO : MORE;
    *h = (struct hit){0, (size_t)(quote - t->s) + 1, "File \"REDACTED\"", NOTHING, false};
    return quote > t->s + at ? YES : NO;
}

static enum answer match_folder(const struct text *t, const char *prefix, enum class run,
                                const char *label, struct hit *h)
{
    size_t at;
    enum answer a = begins(t, prefix, &at);
    if (a != YES)
        return a;
    if (at == t->n)
        return t->end ? NO : MORE;
    *h = (struct hit){0, at + 1, label, run, false};
    return in_class(run, t->s[at]) ? YES : NO;
}

static enum answer either(enum answer a, enum answer b)
{
    return a > b ? a : b;
}

static enum answer match(unsigned what, const struct text *t, struct hit *h)
{
    enum answer a = NO;
    unsigned char first = t->s[0];
    if (what & OUTPUT_SCRUB) {
        if (first == 'F')
            return match_file(t, h);
        if (first == '/') {
            a = match_folder(t, "/home/", NAME, "/home/USER", h);
            return a == YES ? a
                            : either(a, match_folder(t, "/tmp/sandbox_", WORD, "/tmp/SANDBOX", h));
        }
    }
    if (!(what & OUTPUT_REDACT))
        return NO;
    if (first == ':')
        return match_url(t, h);
    if (first == '-')
        return match_private_key(t, h);
    if (first == 'e')
        return match_jwt(t, h);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && a != YES; i++)
        if ((unsigned char)rows[i].prefix[0] == first)
            a = either(a, match_row(t, &rows[i], h));
    return a;
}

/* ---- the pass ---- */

/* What can begin something; AT_WORD: only where no word goes on. Must know each prefix of `rows`. */
enum { ANYWHERE = 1, AT_WORD = 2 };
static const unsigned char triggers[256] = {
    ['/'] = ANYWHERE, ['-'] = ANYWHERE, [':'] = ANYWHERE, ['F'] = ANYWHERE, ['A'] = AT_WORD,
    ['B'] = AT_WORD,  ['S'] = AT_WORD,  ['a'] = AT_WORD,  ['b'] = AT_WORD,  ['d'] = AT_WORD,
    ['e'] = AT_WORD,  ['g'] = AT_WORD,  ['h'] = AT_WORD,  ['n'] = AT_WORD,  ['p'] = AT_WORD,
    ['r'] = AT_WORD,  ['s'] = AT_WORD,  ['x'] = AT_WORD,
};

/* How many of the bytes belong to what is being swallowed. */
static size_t swallow(struct output_pattern_state *st, const unsigned char *s, size_t n)
{
    static const char end[] = "-----END";
    for (size_t i = 0; i < n; i++) {
        unsigned char c = s[i];
        if (st->swallow == KEY_END) { /* words, then five dashes */
            if (c == '-' && ++st->step == 5) {
                st->swallow = NOTHING;
                return i + 1;
            }
            if (c == '-' || (st->step == 0 && (in_class(UPPER, c) || c == ' ')))
                continue;
        } else if (in_class((enum class)st->swallow, c)) {
            if (st->swallow != KEY)
                continue;
            st->step = c == (unsigned char)end[st->step] ? st->step + 1
                       : c != '-'                        ? 0
                       : st->step == 5                   ? 5 /* a sixth dash */
                                                         : 1;
            if (st->step == sizeof end - 1) {
                st->swallow = KEY_END;
                st->step = 0;
            }
            continue;
        }
        st->swallow = NOTHING;
        return i;
    }
    return n;
}

static size_t pass(struct output_clean *c, const unsigned char *s, size_t n, bool end)
{
    struct output_pattern_state *st = &c->pattern;
    struct run run = {0};
    size_t i = 0, from = 0;
    while (i < n) {
        if (st->swallow) {
            i += swallow(st, s + i, n - i);
            from = i;
            continue;
        }
        unsigned char t = triggers[s[i]];
        int before = i ? s[i - 1] : st->before;
        if (!t || (t == AT_WORD && before >= 0 && in_class(UNDER, (unsigned char)before))) {
            i++;
            continue;
        }
        struct text text = {s + i, n - i, end, i, &run};
        struct hit h = {.label = ""};
        enum answer a = match(c->rules->what, &text, &h);
        if (a == MORE)
            break;
        if (a == NO) {
            i++;
            continue;
        }
        output_keep(c, s + from, i - from + h.keep);
        output_keep(c, h.label, strlen(h.label));
        c->redacted += h.secret;
        c->scrubbed += !h.secret;
        st->swallow = h.swallow;
        st->step = 0;
        i += h.len;
        from = i;
    }
    if (i > from)
        output_keep(c, s + from, i - from);
    if (i)
        st->before = s[i - 1];
    return i;
}

void output_pattern_feed(struct output_clean *c, const unsigned char *data, size_t len, bool end)
{
    struct output_pattern_state *st = &c->pattern;
    if (!c->rules || !c->rules->what) {
        output_keep(c, data, len);
        return;
    }
    if (!st->held.len) {
        size_t done = pass(c, data, len, end);
        if (done < len)
            output_hold(c, &st->held, data + done, len - done);
        return;
    }
    if (!output_hold(c, &st->held, data, len))
        return;
    size_t done = pass(c, (const unsigned char *)st->held.data, st->held.len, end);
    memmove(st->held.data, st->held.data + done, st->held.len - done);
    st->held.len -= done;
}
