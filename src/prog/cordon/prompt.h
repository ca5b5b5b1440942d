/* SPDX-License-Identifier: Apache-2.0 */
/* The line editor of `cordon repl`: blocks of Python as a person types them, with history, paste and Tab.
 *
 * Takes:   the caller's terminal; somebody who knows whether a block is whole and which names there are.
 * Gives:   one block at a time, in UTF-8, without a line end behind it.
 * Never:   writes a byte to the terminal that a guest chose: a name that is offered is letters, digits and `_`.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_PROMPT_H
#define PROG_CORDON_PROMPT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define PROMPT_NAMES 500 /* names that one Tab can offer */
#define PROMPT_NAME  64  /* letters of one, with its end */

enum prompt_block { PROMPT_WHOLE, PROMPT_PART, PROMPT_OVER };
enum prompt_got { PROMPT_BLOCK, PROMPT_END, PROMPT_INTERRUPT, PROMPT_STOP };

struct prompt_names {
    size_t count;
    char name[PROMPT_NAMES][PROMPT_NAME];
};

struct prompt_start {
    void *ctx;
    enum prompt_block (*whole)(void *ctx, const char *text, size_t len);
    /* What may stand in place of the last part of WORD (`a.b.c`). What is not made of letters of names is not taken. */
    void (*names)(void *ctx, const char *word, size_t len, struct prompt_names *ret);
    int stop;    /* signalfd: SIGINT forgets what is typed, any other ends the prompt */
    int history; /* the state folder, which keeps what was typed; -1: nothing is kept */
    bool colour;
};

struct prompt;
/* ERR_MISSING: this terminal cannot be edited on, or the program was built without an editor: then lines are read. */
ERR_MUST_USE int prompt_new(const struct prompt_start *start, struct prompt **ret, struct err *err);
void prompt_free(struct prompt *p);

/* Waits for a person. PROMPT_BLOCK: TEXT is what was typed. */
enum prompt_got prompt_read(struct prompt *p, struct buf *text);

#endif
