/* SPDX-License-Identifier: Apache-2.0 */
/* The token that clients of a server of ours must have.
 *
 * Takes:   a file of the operator's, or the name of one in the state folder.
 * Gives:   what it holds: 32 to 512 characters that a header can carry.
 * Never:   reads a file that others could read; makes a token twice.
 * Runs in: `cordon`, cordon-proxy.
 */
#ifndef PROG_CORDON_TOKEN_H
#define PROG_CORDON_TOKEN_H

#include "base/err.h"
#include "base/limits.h"
#include "sys/state.h"

#include <stdbool.h>

/* WHAT begins each message. */
ERR_MUST_USE int token_read(const char *what, const char *file, char token[LIMIT_HTTP_TOKEN + 3],
                            struct err *err);
/* The one called NAME in the state folder, which is made where it is not there. FILE (of STATE_PATH_MAX) is told: where it is. */
ERR_MUST_USE int token_own(const char *name, char *file, char token[LIMIT_HTTP_TOKEN + 3],
                           bool *ret_made, struct err *err);

#endif
