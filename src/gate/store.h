/* SPDX-License-Identifier: Apache-2.0 */
/* The approvals on disk: one SQLite database, one answer to one request.
 *
 * Takes:   a request record (gate/record.h) and the time.
 * Gives:   a reply record, durable before it is given.
 * Never:   changes a question after it was asked; goes back from an answer.
 * Runs in: cordon-approvals, and tests.
 */
#ifndef GATE_STORE_H
#define GATE_STORE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

#define GATE_STORE_FILE "approvals.db"

struct gate_store;
ERR_MUST_USE int gate_store_open(const char *path, struct gate_store **ret_store, struct err *err);
void gate_store_close(struct gate_store *s);

/* `op` is ask, answer, list or show. NOW: milliseconds since 1970. */
ERR_MUST_USE int gate_store_handle(struct gate_store *s, const void *request, size_t len,
                                   uint64_t now, struct buf *reply, struct err *err);

#endif
