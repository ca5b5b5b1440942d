/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of Python's expressions, also of those the language refuses, so that they get their names.
 *
 * Takes:   source of known length, valid UTF-8 without NUL.
 * Gives:   one token a call, literals already as values.
 * Never:   looks at the locale, recurses, or accepts a character outside ASCII but in strings.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_LEX_H
#define EXPR_LEX_H

#include "expr/area.h"
#include "expr/error.h"
#include "expr/value.h"

enum lex_kind {
    T_END,
    T_NAME,
    T_VALUE,         /* int, float or string */
    T_FOREIGN_VALUE, /* a literal of a type outside the language: `what` names its node */
    T_TRUE,
    T_FALSE,
    T_NONE,
    T_AND,
    T_OR,
    T_NOT,
    T_IN,
    T_IS,
    T_IF,
    T_FOR,
    T_LAMBDA,
    T_AWAIT,
    T_YIELD,
    T_KEYWORD, /* any other */
    T_OPEN,
    T_CLOSE,
    T_OPEN_SQUARE,
    T_CLOSE_SQUARE,
    T_OPEN_CURLY,
    T_CLOSE_CURLY,
    T_DOT,
    T_COMMA,
    T_COLON,
    T_WALRUS,
    T_ELLIPSIS,
    T_PLUS,
    T_MINUS,
    T_STAR,
    T_SLASH,
    T_POWER,
    T_FLOORDIV,
    T_PERCENT,
    T_AT,
    T_LSHIFT,
    T_RSHIFT,
    T_AMPERSAND,
    T_BAR,
    T_CARET,
    T_TILDE,
    T_LT,
    T_LE,
    T_GT,
    T_GE,
    T_EQ,
    T_NE,
    T_ASSIGN,     /* = += -= -> ; and the like */
    T_FOREIGN_OP, /* && || === ! <> of other languages */
};

struct lex_token {
    enum lex_kind kind;
    uint32_t start, end;
    const char *what;        /* T_FOREIGN_VALUE */
    struct expr_value value; /* T_VALUE */
};

struct lex {
    const char *s;
    uint32_t len, at;
    unsigned depth;  /* brackets open: newlines are blanks inside */
    bool began;      /* a token was given */
    bool mid_line;   /* blanks here are no indentation */
    bool disallowed; /* the error names something that the language does not have */
    struct expr_area *area;
    struct cordon_error *err;
};

/* 0, or CORDON_UNSAFE with the reason and place in the error. */
int lex_next(struct lex *lx, struct lex_token *ret);
int lex_string(struct lex *lx, uint32_t prefix, struct lex_token *ret); /* lex_string.c */
int lex_number(struct lex *lx, struct lex_token *ret);                  /* lex_number.c */
/* "Invalid expression syntax: ..." at a place. */
int lex_fail(struct lex *lx, uint32_t start, uint32_t end, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
