/* SPDX-License-Identifier: Apache-2.0 */
/* A file, or standard input, read whole up to a ceiling and a deadline.
 *
 * Takes:   a path, or `-`.
 * Gives:   its bytes, whatever they are.
 * Never:   reads past the ceiling; waits past the deadline for a pipe; opens a device.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SOURCE_H
#define PROG_CORDON_SOURCE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct text {
    char *data; /* the caller frees it */
    size_t len;
};

/* ERR_USAGE names the file and what is wrong with it (also that a pipe did not end within WAIT_MS); ERR_LIMIT when
 * it is longer than MAX. */
ERR_MUST_USE int source_read(const char *path, size_t max, uint64_t wait_ms, struct text *ret,
                             struct err *err);

#endif
