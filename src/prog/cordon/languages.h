/* SPDX-License-Identifier: Apache-2.0 */
/* Which language a program is in: by its name, or by what the caller said.
 *
 * Takes:   --lang and the name of a file.
 * Gives:   one of the languages of this build: base/languages.h has the table.
 * Never:   looks into the program.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_LANGUAGES_H
#define PROG_CORDON_LANGUAGES_H

#include "base/err.h"
#include "base/languages.h"

#include <stdbool.h>

/* WORD is --lang, or NULL: then by the ending of FILE, and the default if that tells nothing. ERR_USAGE
 * for the ending of a language that this build does not have. CONDITIONS: a message names expr, too. */
ERR_MUST_USE int languages_choose(const char *word, const char *file, bool conditions,
                                  const struct language **ret, struct err *err);

/* What --help says of --lang. */
const char *languages_help(bool conditions);

/* Whether the program has to be looked for in the text of FILE: HOW is `text`, `source`, or NULL, by the ending. */
ERR_MUST_USE int languages_intake(const char *how, const char *file, bool *ret_raw,
                                  struct err *err);

/* The help of a --lang that names a worker, for what keeps one: sessions, the pool. */
const char *languages_workers_help(void);
/* The language of that --lang; NULL: the default one. ERR_USAGE: it has no worker. */
ERR_MUST_USE int languages_worker(const char *word, const struct language **ret, struct err *err);

#endif
