/* SPDX-License-Identifier: Apache-2.0 */
/* What a session saw and did: its records, bounded; the oldest go first, and are counted.
 *
 * Takes:   records, one line of JSON each, as the client wrote them.
 * Gives:   all that fit, oldest first.
 * Never:   reads what is in a record; grows past its ceiling, or past that of all logs together.
 * Runs in: cordon-holder.
 */
#ifndef POOL_LOG_H
#define POOL_LOG_H

#include <stddef.h>
#include <stdint.h>

struct pool_record;

struct pool_log {
    struct pool_record *first, *last;
    size_t bytes, max;
    uint64_t records, dropped; /* in the list; dropped as the oldest, or too long for it */
};

struct pool_log_account { /* of all logs of a holder */
    size_t bytes, max;
};

void pool_log_init(struct pool_log *l, size_t max);
void pool_log_done(struct pool_log *l, struct pool_log_account *all);

/* LEN bytes are to be filled in where the return value points; NULL: the record is dropped, and counted. */
char *pool_log_add(struct pool_log *l, struct pool_log_account *all, size_t len);

/* Walks the records: NULL to begin with, NULL at the end. */
const struct pool_record *pool_log_next(const struct pool_log *l, const struct pool_record *r,
                                        const char **ret_data, size_t *ret_len);

#endif
