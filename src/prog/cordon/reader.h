/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's output to our own stdout and stderr as it comes: capped and counted; cleaned for a terminal.
 *
 * Takes:   bytes of the two streams.
 * Gives:   the head at once, the marker and the tail at the end.
 * Never:   waits for whoever reads ours; changes a byte on its way to a pipe or file; lets a control sequence, an internal path or a secret
 *          through to a terminal.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_READER_H
#define PROG_CORDON_READER_H

#include "jail/run.h"
#include "output/capture.h"
#include "output/clean.h"

struct reader {
    uint64_t cap;
    struct output_capture streams[2]; /* of those that are no terminal */
    struct output_clean clean[2];     /* of those that are */
    bool tty[2];
    bool gone; /* nobody reads our output any more */
};

void reader_init(struct reader *r, uint64_t cap, enum output_unit unit);
void reader_done(struct reader *r);

/* Whether rules are needed; then they come before the first byte. */
bool reader_cleans(const struct reader *r);
void reader_rules(struct reader *r, const struct output_rules *rules);

void reader_bytes(void *reader, enum jail_stream stream, const void *data, size_t len);
/* For jail_sink.pass_on. More than the cap is not taken before the caller has read what it is owed. */
enum jail_held reader_pass_on(void *reader, enum jail_stream stream);
/* The sink of a run whose bytes go to READER as they come. */
struct jail_sink reader_sink(struct reader *r);
void reader_rest(struct reader *r); /* after the end */

#endif
