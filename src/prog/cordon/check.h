/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon check`, one function a language.
 *
 * Takes:   the options of the command.
 * Gives:   a report on stdout and the exit status: EXIT_FAILED when something is refused.
 * Never:   runs what it judges.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_CHECK_H
#define PROG_CORDON_CHECK_H

#include "base/languages.h"

#include <stdbool.h>

struct check_options {
    const char *file; /* - is standard input */
    const char *code; /* a program instead of it; NULL: none */
    const char *profile, *policy;
    const char *lang;                /* --lang; NULL: not said */
    const struct language *language; /* by it, or by the ending */
    const char *intake;              /* text, source, or NULL: by the ending */
    const char *workspace;           /* whose modules the program may import; NULL: none */
    const char *schema, *expr;       /* conditions only */
    bool json;
};

int check_expr(const struct check_options *o);
int check_program(const struct check_options *o);

#endif
