/* SPDX-License-Identifier: Apache-2.0 */
/* Our own standard output and standard error: everything that `cordon` writes to its caller goes through here.
 *
 * Takes:   bytes; what is printed with stdio, too.
 * Gives:   the same bytes to the caller in their order; an exit status that says whether they arrived.
 * Never:   waits for a reader while a run is going on; loses a byte without saying so; holds more than its ceiling.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_WRITER_H
#define PROG_CORDON_WRITER_H

#include "base/buf.h"
#include "jail/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Once, before anything is printed. ERR_MEMORY. */
ERR_MUST_USE int writer_init(void);

/* From now on each stream may hold this many bytes that its reader has not taken. */
void writer_ceiling(uint64_t bytes);

/* What can be written is written at once, the rest is held: neither waits. */
void writer_put(enum jail_stream stream, const void *data, size_t len);
void writer_take(enum jail_stream stream,
                 struct buf *whole);       /* the same, and WHOLE is empty then */
void writer_push(enum jail_stream stream); /* tries to write what is held */

size_t writer_held(enum jail_stream stream);
bool writer_gone(enum jail_stream stream); /* nobody reads it any more (EPIPE) */

/* Waits until the readers have taken everything, as long as that takes. False: STOP (-1: none) became readable before.
 * Whoever calls this holds nothing that others need. */
bool writer_wait(int stop);

/* The last thing that a command does: waits, names on stderr what could not be written, and gives the exit status:
 * STATUS; where that is 0 and something was lost, EXIT_FAILED, or that of SIGPIPE where the reader left. A signal ends the wait, and us. */
int writer_finish(int status);

#endif
