/* SPDX-License-Identifier: Apache-2.0 */
/* A run told while it goes on: a JSON object a line on stdout (schemas/event.schema.json).
 *
 * Takes:   a request that is about to run, and its result.
 * Gives:   started, stdout, stderr, violation and progress as they come; the texts of the streams for the result.
 * Never:   tells a byte that is not clean; waits for its reader.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_EVENTS_H
#define PROG_CORDON_EVENTS_H

#include "flow/flow.h"

struct events {
    struct output_clean shown[2], kept[2]; /* what is told as it comes; the same as a whole */
    enum output_escape escape;
    uint64_t cap;
    bool gone; /* nobody reads our output any more */
};

/* From then on REQ tells E; its rules and its escape are set before. */
void events_init(struct events *e, struct flow_request *req, enum output_unit unit);
void events_done(struct events *e);

/* After the run: what was not final yet is told, and R has its streams. */
void events_rest(struct events *e, struct flow_result *r);

/* A picture: DATA is the base64 of a PNG of cordon-image's making. */
void events_image(const char *path, const char *data, size_t len);

/* For flow_context.notice. */
void events_progress(const struct gate_event *event);

#endif
