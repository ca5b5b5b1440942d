/* SPDX-License-Identifier: Apache-2.0 */
/* What a judge of the arena says, in four lines and no word more.
 *
 * Takes:   what a judge wrote.
 * Gives:   its verdict and reason, or that it is no verdict.
 * Never:   guesses: a word too many, a hash of other code or a missing line is no verdict.
 * Runs in: the supervisor.
 *
 *     cordon-verdict 1
 *     code <SHA-256 of the code, 64 hex digits>
 *     verdict approve          (or: verdict reject)
 *     reason <1 to 400 bytes of printable text>
 *
 * The hash cannot stand in the code itself, so a judge that repeats what it reads cannot be made to
 * say yes by the code.
 */
#ifndef GATE_VERDICT_H
#define GATE_VERDICT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define GATE_VERDICT_MAX 4096 /* bytes that are read of a judge at all */

struct gate_verdict {
    bool approve;
    char reason[401];
};
/* Whether TEXT is UTF-8 with nothing in it that acts on a reader. */
bool gate_verdict_printable(const char *text, size_t len);
/* ERR_FORMAT: it is no verdict on the code with HASH, and ERR says why. */
ERR_MUST_USE int gate_verdict_read(const char *text, size_t len, const char hash[65],
                                   struct gate_verdict *ret_verdict, struct err *err);

#endif
