/* SPDX-License-Identifier: Apache-2.0 */
/* Number literals as CPython's tokenizer takes them: underscores between digits, three prefixes,
 * floats in every spelling, a keyword glued to the end (`1or 2`), no leading zeros, 4300 digits. */
#include "expr/lex.h"
#include "expr/number.h"

#include <string.h>

static unsigned char peek(const struct lex *lx, uint32_t at)
{
    return at < lx->len ? (unsigned char)lx->s[at] : 0;
}

static bool is_digit(unsigned char c, unsigned base)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0') < base;
    return base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f';
}

/* Digits with single underscores between them; false if an underscore is out of place. */
static bool digits(struct lex *lx, unsigned base)
{
    for (;;) {
        while (is_digit(peek(lx, lx->at), base))
            lx->at++;
        if (peek(lx, lx->at) != '_')
            return true;
        if (!is_digit(peek(lx, lx->at + 1), base))
            return false;
        lx->at++;
    }
}

static bool begins(const struct lex *lx, const char *w)
{
    size_t n = strlen(w);
    return lx->len - lx->at >= n && memcmp(lx->s + lx->at, w, n) == 0;
}

/* What may stand right behind a number: anything but a name, unless it begins like a keyword. */
static int check_end(struct lex *lx, uint32_t start)
{
    unsigned char c = peek(lx, lx->at);
    bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c >= 128;
    if (!name || begins(lx, "and") || begins(lx, "else") || begins(lx, "for") || begins(lx, "if") ||
        begins(lx, "in") || begins(lx, "is") || begins(lx, "or") || begins(lx, "not"))
        return 0;
    return lex_fail(lx, start, lx->at + 1, "invalid number literal");
}

static int integer(struct lex *lx, struct lex_token *t, uint32_t from, unsigned base)
{
    size_t n = lx->at - from, count = 0;
    for (uint32_t i = from; i < lx->at; i++)
        count += lx->s[i] != '_';
    t->end = lx->at;
    if (base == 10 && count > CORDON_DIGITS_MAX)
        return lex_fail(
            lx, t->start, t->end,
            "Exceeds the limit (%u digits) for integer string conversion: value has %zu digits",
            CORDON_DIGITS_MAX, count);
    t->kind = T_VALUE;
    if (n <= 15) {
        uint64_t v = 0;
        for (uint32_t i = from; i < lx->at; i++)
            if (lx->s[i] != '_')
                v = v * base + (lx->s[i] <= '9' ? (uint64_t)(lx->s[i] - '0')
                                                : (uint64_t)((lx->s[i] | 32) - 'a' + 10));
        t->value = expr_int((int64_t)v);
        return 0;
    }
    uint64_t *limb = expr_area_take(lx->area, number_limbs(n) * sizeof *limb);
    if (!limb)
        return expr_fail(lx->err, CORDON_MEMORY, "the memory given is too small to compile this");
    uint32_t limbs = number_integer(lx->s + from, n, base, limb);
    if (limbs > CORDON_BITS_MAX / 64)
        return lex_fail(lx, t->start, t->end, "an integer of more than %u bits", CORDON_BITS_MAX);
    t->value = expr_from_limbs(limb, limbs, false);
    return 0;
}

static int prefixed(struct lex *lx, struct lex_token *t, unsigned base)
{
    lx->at += 2;
    uint32_t from = lx->at;
    if (peek(lx, lx->at) == '_')
        lx->at++;
    if (!is_digit(peek(lx, lx->at), base) || !digits(lx, base))
        return lex_fail(lx, t->start, lx->at + 1, "invalid number literal");
    int r = check_end(lx, t->start);
    return r ? r : integer(lx, t, from, base);
}

int lex_number(struct lex *lx, struct lex_token *t)
{
    unsigned char x = peek(lx, lx->at + 1) | 32;
    if (peek(lx, lx->at) == '0' && (x == 'x' || x == 'o' || x == 'b'))
        return prefixed(lx, t, x == 'x' ? 16 : x == 'o' ? 8 : 2);
    bool is_float = false, good = true;
    if (peek(lx, lx->at) != '.')
        good = digits(lx, 10);
    uint32_t whole = lx->at;
    if (good && peek(lx, lx->at) == '.') {
        is_float = true;
        lx->at++;
        if (is_digit(peek(lx, lx->at), 10))
            good = digits(lx, 10);
    }
    if (good && (peek(lx, lx->at) | 32) == 'e') {
        uint32_t e = lx->at + 1;
        e += peek(lx, e) == '+' || peek(lx, e) == '-';
        if (is_digit(peek(lx, e), 10)) {
            is_float = true;
            lx->at = e;
            good = digits(lx, 10);
        } else if (e > lx->at + 1) {
            good = false;
        }
    }
    if (!good)
        return lex_fail(lx, t->start, lx->at + 1, "invalid number literal");
    bool imaginary = (peek(lx, lx->at) | 32) == 'j';
    lx->at += imaginary;
    int r = check_end(lx, t->start);
    if (r)
        return r;
    t->end = lx->at;
    if (imaginary) {
        t->kind = T_FOREIGN_VALUE;
        t->what = "complex";
        return 0;
    }
    if (is_float) {
        t->kind = T_VALUE;
        t->value = expr_float(number_double(lx->s + t->start, t->end - t->start));
        return 0;
    }
    if (lx->s[t->start] == '0') { /* zeros only, and any number of them */
        for (uint32_t i = t->start; i < whole; i++)
            if (lx->s[i] != '0' && lx->s[i] != '_')
                return lex_fail(lx, t->start, t->end,
                                "leading zeros in decimal integer literals are not permitted");
        t->kind = T_VALUE;
        t->value = expr_int(0);
        return 0;
    }
    return integer(lx, t, t->start, 10);
}
