/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options from a table: one row an option, the same table prints --help.
 *
 * Takes:   argv and a table.
 * Gives:   values in the caller's variables, the index of the first word that is no option.
 * Never:   guesses an abbreviation; an unknown option is named, with the nearest one that exists.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_OPTIONS_H
#define PROG_CORDON_OPTIONS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_STRING,   /* const char * */
    OPTION_LIST,     /* struct option_list: may be given several times */
    OPTION_COUNT,    /* uint64_t */
    OPTION_BYTES,    /* uint64_t, 512m */
    OPTION_MILLIS,   /* uint64_t, 30s */
    OPTION_GROUP,    /* no option: a heading in --help */
    OPTION_NOT_HERE, /* of another command: its help says what to use instead; not in --help */
};

struct option_row {
    const char *name; /* without the dashes */
    enum option_kind kind;
    void *target;
    const char *word, *help; /* what its value is called, what it does */
};

#define OPTION_ROWS_MAX 128
#define OPTION_LIST_MAX 256
struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};

/* Stops at `--` (which it skips) or at the first word that is no option. */
ERR_MUST_USE int options_parse(int argc, char **argv, const struct option_row *rows, size_t count,
                               int *ret_next, struct err *err);
/* The same where words may stand anywhere. What begins with a minus is an option; after `--` everything is a word. */
ERR_MUST_USE int options_parse_mixed(int argc, char **argv, const struct option_row *rows,
                                     size_t count, struct option_list *ret_words, struct err *err);
/* The same where a word may begin with a minus, as a condition does: an option is two dashes and a letter, or
 * one letter alone. */
ERR_MUST_USE int options_parse_conditions(int argc, char **argv, const struct option_row *rows,
                                          size_t count, struct option_list *ret_words,
                                          struct err *err);
/* Says that WORD (NULL: none was given) is none of the NAMES that a command has for what it can do, and which one was
 * probably meant. Returns ERR_USAGE. */
/* Whether WORD is one of WORDS, which stand between spaces: " ps top jobs ". */
bool options_among(const char *words, const char *word);
int options_no_verb(const char *word, const char *const *names, size_t count, struct err *err);
/* The one letter that stands for the option NAME; 0: none. */
char options_letter(const char *name);
void options_print(const struct option_row *rows, size_t count);

#endif
