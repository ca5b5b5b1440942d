/* SPDX-License-Identifier: Apache-2.0 */
/* What to paste into the settings of a client of `cordon serve --stdio`.
 *
 * Takes:   which client, our own path, the words of the command line.
 * Gives:   the snippet on standard output, and where it belongs on standard error.
 * Never:   writes a file of the client's.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SERVE_CONFIG_H
#define PROG_CORDON_SERVE_CONFIG_H

#include "base/err.h"

/* WORDS, ended by NULL: what was said beside --print-config goes into the snippet as it stands. */
ERR_MUST_USE int serve_config_print(const char *client, const char *self, char *const *words,
                                    struct err *err);

#endif
