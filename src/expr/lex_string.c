/* SPDX-License-Identifier: Apache-2.0 */
/* String literals. One without escapes is borrowed from the source, which the program keeps; the
 * rest are decoded once into the area (no escape is shorter than what it stands for). Lone
 * surrogates have no UTF-8 form and \N needs a table of all names: both are refused, not
 * approximated. */
#include "expr/lex.h"

#include "base/utf8.h"

#include <string.h>

static bool hex(const char *s, uint32_t n, uint32_t *ret)
{
    *ret = 0;
    for (uint32_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)s[i], letter = c | 32u;
        if (c >= '0' && c <= '9')
            *ret = *ret << 4 | (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            *ret = *ret << 4 | (letter - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* One escape at AT (behind the backslash). Gives its code point, or -1 for none (a joined line),
 * and the bytes read; a wrong one is 0 bytes. */
static uint32_t unescape(struct lex *lx, uint32_t at, uint32_t end, int64_t *ret_cp)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = lx->s[at];
    const char *p = strchr(from, c);
    uint32_t cp = 0;
    if (p) {
        *ret_cp = (unsigned char)to[p - from];
        return 1;
    }
    if (c == '\n' || c == '\r') {
        *ret_cp = -1;
        return 1 + (c == '\r' && at + 1 < end && lx->s[at + 1] == '\n');
    }
    if (c >= '0' && c <= '7') {
        uint32_t n = 0;
        for (; n < 3 && at + n < end && lx->s[at + n] >= '0' && lx->s[at + n] <= '7'; n++)
            cp = cp * 8 + (uint32_t)(lx->s[at + n] - '0');
        *ret_cp = cp;
        return n;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        uint32_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        if (end - at - 1 < n || !hex(lx->s + at + 1, n, &cp))
            return 0;
        *ret_cp = cp;
        return n + 1;
    }
    *ret_cp = -2; /* no escape: the backslash stays */
    return c == 'N' ? 0 : 1;
}

static int decode(struct lex *lx, uint32_t from, uint32_t end, bool raw, struct expr_value *ret)
{
    char *out = expr_area_take(lx->area, end - from ? end - from : 1);
    if (!out)
        return expr_fail(lx->err, CORDON_MEMORY, "the memory given is too small to compile this");
    uint32_t n = 0;
    for (uint32_t i = from; i < end;) {
        char c = lx->s[i];
        if (c == '\r') { /* a line's end is \n, however the file spells it */
            out[n++] = '\n';
            i += 1 + (i + 1 < end && lx->s[i + 1] == '\n');
            continue;
        }
        if (c != '\\' || raw) {
            out[n++] = c;
            i++;
            continue;
        }
        int64_t cp = 0;
        uint32_t used = unescape(lx, i + 1, end, &cp);
        if (used == 0)
            return lex_fail(lx, i, i + 2,
                            lx->s[i + 1] == 'N' ? "\\N escapes are not supported"
                                                : "a truncated escape");
        if (cp == -2) {
            out[n++] = '\\';
            i++;
            continue;
        }
        if (cp >= 0) {
            int put = utf8_encode((uint32_t)cp, out + n);
            if (put == 0)
                return lex_fail(lx, i, i + 1 + used,
                                "a lone surrogate or a code point past U+10FFFF");
            n += (uint32_t)put;
        }
        i += used + 1;
    }
    *ret = expr_str(out, n);
    return 0;
}

/* What the LEN letters before a quote say; false if they are no prefix of a string. */
static bool prefix_of(const char *s, uint32_t len, bool *ret_raw, const char **ret_foreign)
{
    static const struct {
        char letters[3];
        bool raw;
        const char *foreign; /* the type outside the language that such a literal has */
    } known[] = {{"r", true, NULL},         {"u", false, NULL},       {"b", false, "bytes"},
                 {"br", true, "bytes"},     {"rb", true, "bytes"},    {"f", false, "JoinedStr"},
                 {"fr", true, "JoinedStr"}, {"rf", true, "JoinedStr"}};
    char lower[3] = {0};
    for (uint32_t i = 0; i < len && i < 2; i++)
        lower[i] = (char)(s[i] | 32);
    for (size_t i = 0; len <= 2 && i < sizeof known / sizeof *known; i++)
        if (strcmp(lower, known[i].letters) == 0) {
            *ret_raw = known[i].raw;
            *ret_foreign = known[i].foreign;
            return true;
        }
    return false;
}

/* PREFIX letters were read; lx->at is at the quote. */
int lex_string(struct lex *lx, uint32_t prefix, struct lex_token *t)
{
    bool raw = false;
    const char *foreign = NULL;
    if (prefix && !prefix_of(lx->s + t->start, prefix, &raw, &foreign)) {
        t->kind = T_NAME; /* a name that a string follows: the parser says so */
        return 0;
    }
    char q = lx->s[lx->at];
    bool triple = lx->len - lx->at >= 3 && lx->s[lx->at + 1] == q && lx->s[lx->at + 2] == q;
    uint32_t from = lx->at + (triple ? 3 : 1), i = from;
    bool plain = true;
    for (;; i++) {
        if (i >= lx->len || (!triple && (lx->s[i] == '\n' || lx->s[i] == '\r')))
            return lex_fail(lx, t->start, i, "unterminated string literal");
        char c = lx->s[i];
        if (c == q && (!triple || (lx->len - i >= 3 && lx->s[i + 1] == q && lx->s[i + 2] == q)))
            break;
        if (c == '\r')
            plain = false;
        if (c == '\\') {
            plain = plain && raw;
            /* the next character is no end, not even in a raw string; \r\n is one */
            i++;
            if (i < lx->len && lx->s[i] == '\r') {
                plain = false;
                i += i + 1 < lx->len && lx->s[i + 1] == '\n';
            }
        }
    }
    lx->at = i + (triple ? 3 : 1);
    t->end = lx->at;
    t->kind = T_VALUE;
    if (foreign) {
        t->kind = T_FOREIGN_VALUE;
        t->what = foreign;
        return 0;
    }
    if (plain) {
        t->value = expr_str(lx->s + from, i - from);
        return 0;
    }
    return decode(lx, from, i, raw, &t->value);
}
