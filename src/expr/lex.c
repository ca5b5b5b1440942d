/* SPDX-License-Identifier: Apache-2.0 */
/* White space, names and operators. The tables at the top are the whole of Python's operators,
 * since a refusal should say "Pow", not "syntax error"; and of the foreign ones that models write.
 */
#include "expr/lex.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { C_NAME = 1, C_DIGIT = 2, C_SPACE = 4 };

static const uint8_t class_of[128] = {
    ['\t'] = C_SPACE,       ['\f'] = C_SPACE,       [' '] = C_SPACE, ['0' ... '9'] = C_DIGIT,
    ['A' ... 'Z'] = C_NAME, ['a' ... 'z'] = C_NAME, ['_'] = C_NAME,
};

static const struct {
    const char text[8];
    enum lex_kind kind;
} words[] = {
    {"and", T_AND},        {"or", T_OR},          {"not", T_NOT},        {"True", T_TRUE},
    {"False", T_FALSE},    {"None", T_NONE},      {"in", T_IN},          {"is", T_IS},
    {"if", T_IF},          {"for", T_FOR},        {"lambda", T_LAMBDA},  {"await", T_AWAIT},
    {"yield", T_YIELD},    {"else", T_KEYWORD},   {"async", T_FOR},      {"as", T_KEYWORD},
    {"assert", T_KEYWORD}, {"break", T_KEYWORD},  {"class", T_KEYWORD},  {"def", T_KEYWORD},
    {"del", T_KEYWORD},    {"elif", T_KEYWORD},   {"except", T_KEYWORD}, {"finally", T_KEYWORD},
    {"from", T_KEYWORD},   {"global", T_KEYWORD}, {"import", T_KEYWORD}, {"pass", T_KEYWORD},
    {"raise", T_KEYWORD},  {"return", T_KEYWORD}, {"try", T_KEYWORD},    {"while", T_KEYWORD},
    {"with", T_KEYWORD},
};

/* Longest first. */
static const struct {
    const char text[4];
    enum lex_kind kind;
} operators[] = {
    {"===", T_FOREIGN_OP}, {"!==", T_FOREIGN_OP}, {"...", T_ELLIPSIS}, {"**=", T_ASSIGN},
    {"//=", T_ASSIGN},     {"<<=", T_ASSIGN},     {">>=", T_ASSIGN},   {"&&", T_FOREIGN_OP},
    {"||", T_FOREIGN_OP},  {"<>", T_FOREIGN_OP},  {"==", T_EQ},        {"!=", T_NE},
    {"<=", T_LE},          {">=", T_GE},          {"**", T_POWER},     {"//", T_FLOORDIV},
    {"<<", T_LSHIFT},      {">>", T_RSHIFT},      {":=", T_WALRUS},    {"->", T_ASSIGN},
    {"+=", T_ASSIGN},      {"-=", T_ASSIGN},      {"*=", T_ASSIGN},    {"/=", T_ASSIGN},
    {"%=", T_ASSIGN},      {"&=", T_ASSIGN},      {"|=", T_ASSIGN},    {"^=", T_ASSIGN},
    {"@=", T_ASSIGN},
};

static const uint8_t single[128] = {
    ['('] = T_OPEN,       [')'] = T_CLOSE,       ['['] = T_OPEN_SQUARE, [']'] = T_CLOSE_SQUARE,
    ['{'] = T_OPEN_CURLY, ['}'] = T_CLOSE_CURLY, ['.'] = T_DOT,         [','] = T_COMMA,
    [':'] = T_COLON,      ['+'] = T_PLUS,        ['-'] = T_MINUS,       ['*'] = T_STAR,
    ['/'] = T_SLASH,      ['%'] = T_PERCENT,     ['@'] = T_AT,          ['&'] = T_AMPERSAND,
    ['|'] = T_BAR,        ['^'] = T_CARET,       ['~'] = T_TILDE,       ['<'] = T_LT,
    ['>'] = T_GT,         ['='] = T_ASSIGN,      [';'] = T_ASSIGN,      ['!'] = T_FOREIGN_OP,
    ['?'] = T_FOREIGN_OP,
};

int lex_fail(struct lex *lx, uint32_t start, uint32_t end, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    expr_text_trim(what);
    int r = expr_fail(lx->err, CORDON_UNSAFE, "Invalid expression syntax: %s", what);
    expr_place(lx->err, lx->s, lx->len, start, end);
    return r;
}

static bool newline(const struct lex *lx, uint32_t at, uint32_t *ret_next)
{
    if (at >= lx->len || (lx->s[at] != '\n' && lx->s[at] != '\r'))
        return false;
    *ret_next = at + 1 + (lx->s[at] == '\r' && at + 1 < lx->len && lx->s[at + 1] == '\n');
    return true;
}

/* Skips blanks; sets *ret_line when a line ended outside brackets. At the start of a line outside
 * brackets they are indentation, which a condition cannot have. As for CPython's tokenizer, a form
 * feed sets the column back, a continued line is indented like its first part that is, and a line
 * without a token does not count unless the source ends in it. */
static int skip_blanks(struct lex *lx, bool *ret_line)
{
    uint32_t next;
    unsigned column = 0, continued = 0;
    *ret_line = false;
    while (lx->mid_line && lx->at < lx->len && lx->s[lx->at] == ' ')
        lx->at++;
    if (lx->mid_line && lx->at < lx->len && lx->s[lx->at] > '#' && lx->s[lx->at] != '\\')
        return 0; /* nearly always */
    for (;;) {
        unsigned char c = lx->at < lx->len ? (unsigned char)lx->s[lx->at] : 0;
        if (c && c < 128 && class_of[c] & C_SPACE) {
            column = c == '\f' ? 0 : column + 1;
            lx->at++;
        } else if (newline(lx, lx->at, &next)) {
            *ret_line = *ret_line || lx->depth == 0;
            lx->mid_line = false;
            column = continued = 0;
            lx->at = next;
        } else if (c == '\\') {
            if (!newline(lx, lx->at + 1, &next))
                return lex_fail(lx, lx->at, lx->at + 1,
                                "unexpected character after line continuation");
            if (next == lx->len)
                return lex_fail(lx, lx->at, lx->at + 1, "unexpected end after line continuation");
            continued = continued ? continued : column;
            lx->at = next;
        } else {
            break;
        }
    }
    if (lx->at < lx->len && lx->s[lx->at] == '#')
        return lex_fail(lx, lx->at, lx->len, "comments are not allowed");
    if (!lx->mid_line && lx->depth == 0 && (continued ? continued : column))
        return lex_fail(lx, lx->at, lx->at + 1, "unexpected indent");
    lx->mid_line = true;
    return 0;
}

static void read_name(struct lex *lx, struct lex_token *t)
{
    while (lx->at < lx->len && (unsigned char)lx->s[lx->at] < 128 &&
           class_of[(unsigned char)lx->s[lx->at]] & (C_NAME | C_DIGIT))
        lx->at++;
    t->end = lx->at;
    t->kind = T_NAME;
    uint32_t n = t->end - t->start;
    if (n < 2 || n > 7)
        return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].text[0] == lx->s[t->start] && strlen(words[i].text) == n &&
            memcmp(words[i].text, lx->s + t->start, n) == 0) {
            t->kind = words[i].kind;
            return;
        }
}

static int read_operator(struct lex *lx, struct lex_token *t)
{
    const char *s = lx->s + lx->at;
    uint32_t left = lx->len - lx->at;
    unsigned char c = (unsigned char)*s, d = left > 1 ? (unsigned char)s[1] : 0;
    /* a second operator character, or a point: it may be one of the long ones */
    if (d == '=' || d == '*' || d == '/' || d == '<' || d == '>' || d == '&' || d == '|' ||
        d == '.')
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
            size_t n = strlen(operators[i].text);
            if (n <= left && memcmp(operators[i].text, s, n) == 0) {
                lx->at += (uint32_t)n;
                t->end = lx->at;
                t->kind = operators[i].kind;
                return 0;
            }
        }
    if (single[c] == 0)
        return lex_fail(lx, lx->at, lx->at + 1, "invalid character U+%04X", c);
    t->kind = (enum lex_kind)single[c];
    t->end = ++lx->at;
    return 0;
}

int lex_next(struct lex *lx, struct lex_token *t)
{
    bool line;
    int r = skip_blanks(lx, &line);
    if (r)
        return r;
    t->start = t->end = lx->at;
    if (lx->at == lx->len) {
        t->kind = T_END;
        return 0;
    }
    if (line && lx->began)
        return lex_fail(lx, lx->at, lx->len, "more text after the end of the line");
    lx->began = true;
    unsigned char c = (unsigned char)lx->s[lx->at],
                  d = lx->at + 1 < lx->len ? (unsigned char)lx->s[lx->at + 1] : 0;
    if (c >= 128) {
        uint32_t cp = 0;
        int n = utf8_decode((const unsigned char *)lx->s + lx->at, lx->len - lx->at, &cp);
        return lex_fail(lx, lx->at, lx->at + (n > 0 ? (uint32_t)n : 1),
                        "invalid character U+%04X outside a string", cp);
    }
    if (class_of[c] & C_NAME) {
        read_name(lx, t);
        uint32_t n = t->end - t->start;
        if (t->kind == T_NAME && n <= 2 && lx->at < lx->len &&
            (lx->s[lx->at] == '\'' || lx->s[lx->at] == '"'))
            return lex_string(lx, n, t);
        return 0;
    }
    if (class_of[c] & C_DIGIT || (c == '.' && d < 128 && class_of[d] & C_DIGIT))
        return lex_number(lx, t);
    if (c == '\'' || c == '"')
        return lex_string(lx, 0, t);
    return read_operator(lx, t);
}
