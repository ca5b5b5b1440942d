/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over bytes: it looks at no byte ahead, so a token is complete when the first byte of the next one is seen, and
 * pieces of text can end anywhere, in the middle of a character too. */
#include "monitor/tokens.h"

#include <string.h>

enum byte_class { LETTER, DIGIT, MARK, BLANK, LONE };

static enum byte_class class_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 0x80 && c < 0xe0))
        return LETTER; /* two-byte characters (Latin, Greek, Cyrillic, Arabic) and what continues one */
    if (c >= '0' && c <= '9')
        return DIGIT;
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        return BLANK;
    return c >= 0xe0 ? LONE
                     : MARK; /* three and four bytes: mostly scripts without spaces, and pictures */
}

static uint64_t mix(uint64_t h, unsigned char c)
{
    h = (h ^ c) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 32);
}

/* Whether BYTE goes on with the open token. */
static bool goes_on(const struct tokens *t, unsigned char byte, enum byte_class class)
{
    if (t->rest)
        return byte >= 0x80 && byte < 0xc0;
    if (t->len >= TOKEN_MAX)
        return false;
    switch (t->open.kind) {
    case TOKEN_WORD:
        return (class == LETTER || class == DIGIT) && class_of((unsigned char)t->first) != LONE;
    case TOKEN_NUMBER:
        return class == LETTER || class == DIGIT;
    case TOKEN_MARK:
    case TOKEN_SPACE:
        return byte == (unsigned char)t->first;
    }
    return false;
}

static void begin(struct tokens *t, unsigned char byte, enum byte_class class)
{
    static const enum token_kind kinds[] = {TOKEN_WORD, TOKEN_NUMBER, TOKEN_MARK, TOKEN_SPACE,
                                            TOKEN_WORD};
    t->open = (struct token){.symbol = t->key, .byte = t->at, .value = -1, .kind = kinds[class]};
    t->open.letters = class == LETTER || (class == LONE && byte != 0xe2 &&
                                          byte < 0xef); /* those are symbols and pictures */
    t->open.character = class == LONE;
    t->open.mark = class == MARK || class == BLANK ? (char)byte : 0;
    t->first = (char)byte;
    t->varied = class == LONE;
    t->len = 0;
    t->rest = class == LONE ? byte >= 0xf0 ? 3 : 2 : 0;
    if (class == DIGIT)
        t->open.value = 0;
    if (t->spaces) {
        t->open.symbol = mix(t->key, ' ');
        t->open.byte -= t->spaces;
        t->spaces = 0;
    }
}

static void append(struct tokens *t, unsigned char byte, enum byte_class class)
{
    t->open.symbol = mix(t->open.symbol, byte);
    t->varied |= byte != (unsigned char)t->first;
    t->open.letters &= (class == LETTER && byte != '_') || class == LONE;
    if (t->open.value >= 0) /* no number of interest has more than 15 digits */
        t->open.value = class == DIGIT && t->open.value < 100000000000000
                            ? t->open.value * 10 + (byte - '0')
                            : -1;
    if (t->len && t->rest)
        t->rest--;
    t->len++;
}

static void finish(struct tokens *t, struct token *ret)
{
    t->open.letters &= t->varied || t->len <= 2;
    *ret = t->open;
    t->len = 0;
    t->rest = 0;
}

bool tokens_add(struct tokens *t, unsigned char byte, struct token *ret)
{
    enum byte_class class = class_of(byte);
    bool complete = false;
    if (t->len && !goes_on(t, byte, class)) {
        /* one space at the end of a run of one may belong to the next word */
        if (t->open.kind == TOKEN_SPACE && t->first == ' ' && t->len == 1 &&
            (class == LETTER || class == DIGIT)) {
            t->spaces = 1;
            t->len = 0;
        } else {
            finish(t, ret);
            complete = true;
        }
    }
    if (!t->len)
        begin(t, byte, class);
    append(t, byte, class);
    t->at++;
    return complete;
}

bool tokens_end(struct tokens *t, struct token *ret)
{
    if (!t->len)
        return false;
    finish(t, ret);
    return true;
}
