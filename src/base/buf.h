/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer that has a ceiling from the start.
 *
 * Takes:   bytes and formatted text.
 * Gives:   one contiguous, NUL-terminated run of bytes.
 * Never:   grows past the ceiling given to buf_init.
 * Runs in: every process.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"

#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was added; NULL before */
    size_t len;
    size_t cap;
    size_t max;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* forgets the bytes, keeps the memory */
/* The first *DONE bytes are with their reader: drops them once they are the larger half, so that a buffer that never runs
 * empty does not grow, and bytes are seldom moved. The memory stays. */
void buf_drop(struct buf *b, size_t *done);

/* ERR_LIMIT past the ceiling, ERR_MEMORY without memory; then nothing was added. */
ERR_MUST_USE int buf_add(struct buf *b, const void *data, size_t len);
ERR_MUST_USE int buf_str(struct buf *b, const char *s);
/* Room for LEN bytes at the end, which the caller fills and buf_added then counts. The same errors. */
ERR_MUST_USE int buf_reserve(struct buf *b, size_t len, char **ret);
void buf_added(struct buf *b, size_t len);
ERR_MUST_USE int buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
