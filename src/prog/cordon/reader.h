/* The guest's output to our own stdout and stderr as it comes: capped, counted, and made visible where a
 * terminal would act on it.
 *
 * Takes:   bytes of the two streams.
 * Gives:   the head at once, the marker and the tail at the end.
 * Never:   changes a byte on its way to a pipe or file; lets a control sequence through to a terminal.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_READER_H
#define PROG_CORDON_READER_H

#include "jail/run.h"
#include "output/capture.h"
#include "output/visible.h"

struct reader {
    struct output_capture streams[2];
    struct output_visible visible[2];
    bool tty[2];
    bool gone; /* nobody reads our output any more */
};

void reader_init(struct reader *r, uint64_t cap);
void reader_done(struct reader *r);
void reader_bytes(void *reader, enum jail_stream stream, const void *data, size_t len);
void reader_rest(struct reader *r); /* after the end */

#endif
