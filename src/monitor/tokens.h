/* SPDX-License-Identifier: Apache-2.0 */
/* Text cut into tokens as a model's tokenizer roughly does, the same for every way the text arrives in pieces.
 *
 * Takes:   bytes.
 * Gives:   tokens: a word or a number with the space before it, a run of one punctuation mark, a run of one kind of white
 *          space, one character of a script that has no spaces.
 * Never:   keeps more than one token; lets one be longer than TOKEN_MAX bytes.
 * Runs in: the caller.
 */
#ifndef MONITOR_TOKENS_H
#define MONITOR_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_MAX 32

enum token_kind {
    TOKEN_WORD,   /* letters, and then letters, digits and _ */
    TOKEN_NUMBER, /* digits, and then letters, digits and _ */
    TOKEN_MARK,   /* one punctuation mark, once or more */
    TOKEN_SPACE   /* white space that is not the one before a word */
};

struct token {
    uint64_t symbol; /* a keyed hash of its bytes */
    uint64_t byte;   /* where it begins */
    int64_t value;   /* of a decimal number; -1: it has none */
    enum token_kind kind;
    bool letters;   /* a word of letters alone, not all the same */
    bool character; /* one of a script that has no spaces: part of a word */
    char mark;      /* of TOKEN_MARK and TOKEN_SPACE: which one */
};

struct tokens {
    uint64_t key;
    uint64_t at; /* bytes so far */
    struct token open;
    size_t len;    /* bytes of the open token; 0: there is none */
    size_t spaces; /* a space that waits for what follows it */
    unsigned rest; /* bytes that the open character still has */
    char first;    /* of the open token, the space before it apart */
    bool varied;   /* its bytes are not all the same */
};

/* Takes one byte. True: a token was complete before it, in *ret. */
bool tokens_add(struct tokens *t, unsigned char byte, struct token *ret);
/* The end of the text: true: the last token is in *ret. */
bool tokens_end(struct tokens *t, struct token *ret);

#endif
