/* SPDX-License-Identifier: Apache-2.0 */
/* Half of the programs are drawn from the grammar and half of those use only keys with a declared
 * kind; the rest are grammar with a foreign construct in it, or plain token soup: what the parser
 * refuses is compared too. Values sit where answers change: around 2^53, 2^63 and 2^1024, at NaN,
 * at -0.0. */
#include "gen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char gen_schema[] =
    "{\"keys\": {\"a\": \"any\", \"b\": \"any\", \"c\": \"any\", \"d\": \"any\", \"e\": \"any\","
    "\"\\u03bb key\": \"any\","
    "\"f\": \"float\", \"g\": \"float\", \"i\": \"int\", \"j\": \"int\", \"m\": \"number\","
    "\"r\": {\"type\": \"int\", \"min\": -10, \"max\": 10},"
    "\"u\": {\"type\": \"number\", \"min\": 0, \"max\": 1},"
    "\"s\": {\"type\": \"str\", \"enum\": [\"low\", \"mid\", \"high\", \"\"]},"
    "\"t\": \"str\", \"p\": \"bool\", \"q\": \"bool\"}}";

static const char *const any_keys[] = {"a", "b", "c", "d", "e", "\xce\xbb key"};
static const char *const number_keys[] = {"f", "g", "i", "j", "m", "r", "u"};
static const char *const strings[] = {"",
                                      "low",
                                      "mid",
                                      "high",
                                      "a",
                                      "ab",
                                      "abc",
                                      "b",
                                      "\xc3\xa9",
                                      "\xf0\x9f\x98\x80",
                                      "\xef\xbf\xbf",
                                      "1",
                                      "10",
                                      "lo w",
                                      "A",
                                      "\xcf\x84\xce\xbb"};

void gen_seed(struct gen *g, uint64_t seed)
{
    *g = (struct gen){.state = seed, .size = 3};
    g->state = gen_random(g) ^ seed << 40; /* streams of neighbouring seeds must not overlap */
}

uint64_t gen_random(struct gen *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

uint32_t gen_below(struct gen *g, uint32_t n)
{
    return (uint32_t)((gen_random(g) >> 32) * n >> 32);
}

static void add(struct gen *g, const char *s)
{
    size_t n = strlen(s);
    if (n >= g->max - g->len)
        n = g->max - g->len - 1;
    memcpy(g->out + g->len, s, n);
    g->len += n;
}

__attribute__((format(printf, 2, 3))) static void addf(struct gen *g, const char *fmt, ...)
{
    char b[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b, sizeof b, fmt, ap);
    va_end(ap);
    add(g, b);
}

#define PICK(g, table) table[gen_below(g, sizeof table / sizeof *table)]

static void digits(struct gen *g, unsigned n)
{
    add(g, (const char *[]){"1", "2", "9", "7"}[gen_below(g, 4)]);
    while (n-- > 1)
        addf(g, "%u", gen_below(g, 10));
}

/* Decimal digits only, for programs and contexts alike. */
static void integer(struct gen *g)
{
    static const char *const edges[] = {"9007199254740991",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740994",
                                        "9223372036854775806",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "9223372036854775809",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "4611686018427387904",
                                        "2147483648",
                                        "4294967295",
                                        "1000000000000000000",
                                        "999999999999999999",
                                        "340282366920938463463374607431768211456",
                                        "100000000000000000000000",
                                        "72057594037927937",
                                        "18014398509481985",
                                        "36028797018963969"};
    switch (gen_below(g, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        addf(g, "%u", gen_below(g, 6));
        break;
    case 5:
    case 6:
        addf(g, "%u", gen_below(g, 2000));
        break;
    case 7:
        addf(g, "%" PRIu64, gen_random(g) >> gen_below(g, 64));
        break;
    case 8:
    case 9:
        add(g, PICK(g, edges));
        break;
    case 10:
        digits(g, 19 + gen_below(g, 30));
        break;
    default:
        digits(g, gen_below(g, 12) ? 40 + gen_below(g, 60) : 300 + gen_below(g, 20));
    }
}

/* As JSON and Python both read it. */
static void real(struct gen *g)
{
    static const char *const edges[] = {"9007199254740992.0",
                                        "9007199254740993.0",
                                        "9.223372036854775807e18",
                                        "1.8446744073709552e+19",
                                        "1e308",
                                        "1.7976931348623157e308",
                                        "5e-324",
                                        "2.2250738585072014e-308",
                                        "1e-400",
                                        "1e400",
                                        "0.1",
                                        "0.2",
                                        "0.3",
                                        "0.5",
                                        "1e22",
                                        "1e23",
                                        "1e16",
                                        "9999999999999998.0",
                                        "123456789012345680.0",
                                        "1.0",
                                        "2.0",
                                        "0.0",
                                        "3.5",
                                        "4503599627370496.5",
                                        "1E5",
                                        "0.0001",
                                        "0.00001",
                                        "4611686018427387904.0"};
    switch (gen_below(g, 6)) {
    case 0:
    case 1:
        add(g, PICK(g, edges));
        break;
    case 2:
        addf(g, "%u.%u", gen_below(g, 10), gen_below(g, 100));
        break;
    case 3:
        addf(g, "0.%u", gen_below(g, 1000));
        break;
    case 4:
        addf(g, "%u.%ue%s%u", gen_below(g, 10), gen_below(g, 1000000), gen_below(g, 2) ? "-" : "+",
             gen_below(g, 320));
        break;
    default:
        addf(g, "%" PRIu64 ".%" PRIu64, gen_random(g) >> gen_below(g, 64),
             gen_random(g) >> gen_below(g, 64));
    }
}

static void space(struct gen *g)
{
    static const char *const blanks[] = {"", " ", "  ", "\t"};
    add(g, gen_below(g, 8) ? " " : PICK(g, blanks));
}

/* One piece of a string literal, quotes included. */
static void string_piece(struct gen *g)
{
    static const char *const escaped[] = {"\\n", "\\x41", "\\u00e9", "\\U0001F600", "\\\\",
                                          "\\'", "\\\"",  "\\101",   "\\0",         "\\d",
                                          "\\t", "\\x7f", "\\\n",    "\\777"};
    static const char *const quotes[] = {"'", "\"", "'''", "\"\"\""};
    static const char *const prefixes[] = {"r", "R", "u", "U"};
    const char *q = gen_below(g, 4) ? "'" : PICK(g, quotes);
    if (gen_below(g, 24) == 0)
        add(g, PICK(g, prefixes));
    add(g, q);
    add(g, PICK(g, strings));
    if (gen_below(g, 6) == 0)
        add(g, PICK(g, escaped));
    if (strlen(q) == 3 && gen_below(g, 6) == 0)
        add(g, (const char *[]){"\n", "\r\n", "\r", "\\\r\n"}[gen_below(g, 4)]);
    add(g, q);
}

static void number_literal(struct gen *g)
{
    switch (gen_below(g, 16)) {
    case 0:
        addf(g, "0x%" PRIx64, gen_random(g) >> gen_below(g, 64));
        break;
    case 1:
        addf(g, gen_below(g, 2) ? "0o%o" : "0O%o", gen_below(g, 70000));
        break;
    case 2:
        add(g,
            (const char *[]){"1_000", "0b1011", "0B1", "0x_ff", "1_0.0_1", ".5", "1.", "00", "0_0",
                             "1e1_0", "0XAB_CD", "0.0e0", "01.5", "09e1"}[gen_below(g, 14)]);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        real(g);
        break;
    default:
        integer(g);
    }
}

/* An integer and a double that are nearly the same, beyond what a double holds exactly: by chance two such never meet. */
static void neighbours(struct gen *g)
{
    static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
    const uint64_t near = 1ULL << (53 + gen_below(g, 11));
    const int swapped = gen_below(g, 2) != 0;
    addf(g, "(%" PRIu64 "%s %s ", near - 2 + gen_below(g, 5), swapped ? ".0" : "",
         PICK(g, compares));
    addf(g, "%" PRIu64 "%s)", near - 2 + gen_below(g, 5), swapped ? "" : ".0");
}

static void atom(struct gen *g)
{
    uint32_t k = gen_below(g, 240);
    if (k == 0) {
        neighbours(g);
        return;
    }
    k /= 12;
    if (k < 11) {
        const char *key;
        if (g->typed)
            key = gen_below(g, 4) ? PICK(g, number_keys)
                                  : (const char *[]){"s", "t", "p", "q"}[gen_below(g, 4)];
        else
            key = gen_below(g, 2) ? PICK(g, any_keys) : PICK(g, number_keys);
        addf(g, gen_below(g, 10) ? "ctx['%s']" : "ctx[\"%s\"]", key);
    } else if (k < 16) {
        number_literal(g);
    } else if (k < 18) {
        string_piece(g);
        while (gen_below(g, 12) == 0) {
            space(g);
            string_piece(g);
        }
    } else {
        add(g, (const char *[]){"True", "False", "None"}[gen_below(g, 3)]);
    }
}

static void foreign(struct gen *g)
{
    static const char *const pieces[] = {"ctx['nope']",
                                         "len(ctx['a'])",
                                         "ctx.get('a', 0)",
                                         "[1]",
                                         "{1}",
                                         "{}",
                                         "{'a': 1}",
                                         "(1,)",
                                         "()",
                                         "lambda: 1",
                                         "x",
                                         "f'{1}'",
                                         "b'a'",
                                         "1j",
                                         "...",
                                         "~1",
                                         "+1",
                                         "1 if 2 else 3",
                                         "ctx[1]",
                                         "ctx",
                                         "ctx['a']['b']",
                                         "ctx['a':'b']",
                                         "[x for x in ctx]",
                                         "(y := 1)",
                                         "ctx['a'].real",
                                         "''.join([])",
                                         "01",
                                         "1__0",
                                         "0x",
                                         "1e+",
                                         "'abc",
                                         "ctx['a'",
                                         "yield",
                                         "await x",
                                         "*a",
                                         "'\\x4'",
                                         "None()",
                                         "1()",
                                         "(1)(2)",
                                         "(1).real",
                                         "ctx[ctx['a']]",
                                         "{**ctx['a']}",
                                         "{x: 1 for x in ctx}",
                                         "{x for x in ctx}",
                                         "(x for x in ctx)",
                                         "not",
                                         "ctx[('a')]",
                                         "ctx['a' '']",
                                         "ctx[None]",
                                         "fr'x'",
                                         "1_"};
    add(g, PICK(g, pieces));
}

static void expression(struct gen *g, int depth);

static void operand(struct gen *g, int depth)
{
    if (depth <= 0 || gen_below(g, 3) == 0) {
        atom(g);
        return;
    }
    add(g, "(");
    if (gen_below(g, 40) == 0)
        add(g, "\n ");
    expression(g, depth - 1);
    add(g, ")");
}

static void expression(struct gen *g, int depth)
{
    static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
    static const char *const ariths[] = {"+", "-", "*", "/"};
    static const char *const outside[] = {"in", "is", "not in", "is not", "**", "//", "%",  "@",
                                          "<<", ">>", "&",      "|",      "^",  ",",  "if", "=",
                                          "&&", "||", "===",    "<>",     ":=", "!"};
    uint32_t n;
    switch (gen_below(g, 12)) {
    case 0:
    case 1:
    case 2:
        n = 1 + gen_below(g, 3);
        operand(g, depth);
        while (n--) {
            add(g, gen_below(g, 2) ? " and " : " or ");
            if (gen_below(g, 6) == 0)
                add(g, "not ");
            expression(g, depth - 1);
        }
        break;
    case 3:
        add(g, "not ");
        operand(g, depth);
        break;
    case 4:
        add(g, gen_below(g, 4) ? "-" : "- -");
        operand(g, depth);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        n = gen_below(g, 5) ? 1 : 1 + gen_below(g, 3);
        operand(g, depth);
        while (n--) {
            space(g);
            add(g, gen_below(g, 400) ? PICK(g, compares) : PICK(g, outside));
            space(g);
            operand(g, depth - 1);
        }
        break;
    case 9:
    case 10:
        n = 1 + gen_below(g, 2);
        operand(g, depth);
        while (n--) {
            space(g);
            add(g, gen_below(g, 400) ? PICK(g, ariths) : PICK(g, outside));
            space(g);
            if (gen_below(g, 10) == 0)
                add(g, "-");
            operand(g, depth - 1);
        }
        break;
    default:
        if (gen_below(g, 60) == 0)
            foreign(g);
        else
            atom(g);
    }
}

static void soup(struct gen *g)
{
    static const char *const tokens[] = {
        "(",    ")",    "(",   ")",      "ctx['a']", "ctx",      "[",    "]",       "'a'",
        "and",  "or",   "not", "<",      "<=",       "==",       "!=",   "+",       "-",
        "*",    "/",    "1",   "2.5",    "0",        "True",     "None", "in",      "is",
        "if",   "else", ".",   ",",      ":",        "\n",       "\\\n", "1or",     "0xfor",
        "1and", " ",    "'b'", "lambda", "**",       "ctx['i']", "-1",   "not not", "\t"};
    uint32_t n = 1 + gen_below(g, 9);
    while (n--) {
        add(g, PICK(g, tokens));
        if (gen_below(g, 3))
            add(g, " ");
    }
}

/* x < y op z: the shapes that typed code fuses. */
static void plain(struct gen *g)
{
    static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
    uint32_t n = 1 + gen_below(g, 4) + (gen_below(g, 20) == 0 ? 12 : 0);
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            add(g, gen_below(g, 2) ? " and " : " or ");
        if (gen_below(g, 8) == 0)
            add(g, "not ");
        switch (gen_below(g, 8)) {
        case 0:
            addf(g, "ctx['s'] %s '%s'", gen_below(g, 8) ? "==" : "!=",
                 (const char *[]){"low", "mid", "high", "", "lwo"}[gen_below(g, 5)]);
            break;
        case 1:
            addf(g, "ctx['t'] %s '%s'", gen_below(g, 2) ? "==" : "!=", PICK(g, strings));
            break;
        case 2:
            addf(g, "ctx['%s']", gen_below(g, 2) ? "p" : "q");
            break;
        case 3:
            add(g, "(");
            plain(g);
            add(g, ")");
            break;
        case 4:
            addf(g, "ctx['%s'] %s None", PICK(g, number_keys), gen_below(g, 2) ? "==" : "!=");
            break;
        default:
            addf(g, "ctx['%s']", PICK(g, number_keys));
            if (gen_below(g, 3) == 0) {
                add(g, (const char *[]){" + ", " - ", " * ", " / "}[gen_below(g, 4)]);
                number_literal(g);
            }
            addf(g, " %s ", PICK(g, compares));
            if (gen_below(g, 4))
                number_literal(g);
            else
                addf(g, "ctx['%s']", PICK(g, number_keys));
            if (gen_below(g, 6) == 0) {
                addf(g, " %s ", PICK(g, compares));
                number_literal(g);
            }
        }
        if (g->len > 1500)
            break;
    }
}

size_t gen_program(struct gen *g, char *buf, size_t size)
{
    g->out = buf;
    g->len = 0;
    g->max = size;
    uint32_t k = gen_below(g, 32);
    g->typed = k & 1;
    if (gen_below(g, 64) == 0) { /* long enough for typed code to jump */
        static const char *const joins[] = {" and ", " or ", " < ", " <= ", " == ", " != "};
        uint32_t n = 4 + gen_below(g, 20), same = gen_below(g, 3);
        const char *one = PICK(g, joins);
        g->typed = 1;
        for (uint32_t i = 0; i < n && g->len < 1500; i++) {
            if (i)
                add(g, same ? one : PICK(g, joins));
            if (same && one[1] != 'a' && one[1] != 'o') { /* a chain of numbers */
                addf(g, "ctx['%s']", PICK(g, number_keys));
                if (gen_below(g, 2))
                    addf(g, " %s ctx['%s']", gen_below(g, 2) ? "+" : "-", PICK(g, number_keys));
            } else if (gen_below(g, 2)) {
                plain(g);
            } else {
                operand(g, 2);
            }
        }
        buf[g->len] = 0;
        return g->len;
    }
    if (k < 2)
        soup(g);
    else if (k < 8)
        plain(g);
    else
        expression(g, 1 + (int)gen_below(g, (uint32_t)g->size));
    buf[g->len] = 0;
    return g->len;
}

static void json_string(struct gen *g)
{
    if (gen_below(g, 10) == 0) {
        add(g, "\"\\u00e9\\ud83d\\ude00\\n\\u0000\\\\\\/\"");
        return;
    }
    addf(g, "\"%s\"", PICK(g, strings));
}

static void json_value(struct gen *g, char type)
{
    if (gen_below(g, 12) == 0)
        type = "?nfisb"[gen_below(g, 6)];
    switch (type) {
    case 'i':
        add(g, gen_below(g, 3) ? "" : "-");
        integer(g);
        break;
    case 'f':
        if (gen_below(g, 12) == 0) {
            add(g, (const char *[]){"NaN", "Infinity", "-Infinity", "-0.0"}[gen_below(g, 4)]);
            break;
        }
        add(g, gen_below(g, 3) ? "" : "-");
        real(g);
        break;
    case 's':
        json_string(g);
        break;
    case 'b':
        add(g, gen_below(g, 2) ? "true" : "false");
        break;
    case 'r':
        addf(g, "%d", (int)gen_below(g, 21) - 10);
        break;
    case 'u':
        add(g, (const char *[]){"0", "1", "0.5", "0.25", "1.0", "0.75", "0.0"}[gen_below(g, 7)]);
        break;
    case 'n':
        add(g, "null");
        break;
    default:
        json_value(g, "ifsbn"[gen_below(g, 5)]);
    }
}

/* A value of a size that no schema here promises, whatever the key's type. */
static void large_value(struct gen *g)
{
    uint32_t n = gen_below(g, 2) ? 20 + gen_below(g, 60) : 400 + gen_below(g, 3500);
    if (gen_below(g, 2)) {
        add(g, gen_below(g, 3) ? "" : "-");
        digits(g, n);
        return;
    }
    add(g, "\"");
    for (const char *piece = PICK(g, strings); n > 4; n -= (uint32_t)strlen(piece) + 1) {
        add(g, piece);
        add(g, "a");
        if (strlen(piece) + 1 >= n)
            break;
    }
    add(g, "\"");
}

size_t gen_context(struct gen *g, char *buf, size_t size)
{
    static const struct {
        const char *key;
        char type;
    } keys[] = {{"a", '?'}, {"b", '?'}, {"c", '?'}, {"d", '?'}, {"e", '?'}, {"\\u03bb key", '?'},
                {"f", 'f'}, {"g", 'f'}, {"i", 'i'}, {"j", 'i'}, {"m", 'f'}, {"r", 'r'},
                {"u", 'u'}, {"s", 's'}, {"t", 's'}, {"p", 'b'}, {"q", 'b'}};
    g->out = buf;
    g->len = 0;
    g->max = size;
    uint32_t large = gen_below(g, 8) == 0 ? 4 : 0; /* in one context of eight, one key of four */
    add(g, "{");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (gen_below(g, 24) == 0)
            continue;
        if (g->len > 1)
            add(g, ", ");
        addf(g, "\"%s\": ", keys[i].key);
        if (large && gen_below(g, large) == 0 && g->max - g->len > 8000)
            large_value(g);
        else if (keys[i].type == 's' && keys[i].key[0] == 's' && gen_below(g, 8))
            addf(g, "\"%s\"", strings[gen_below(g, 4)]);
        else
            json_value(g, keys[i].type);
    }
    add(g, gen_below(g, 4) ? "}" : ", \"extra\": [1, {\"x\": \"]\"}]}");
    buf[g->len] = 0;
    return g->len;
}
