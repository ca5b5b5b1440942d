/* SPDX-License-Identifier: Apache-2.0 */
/* A cap on what a run may say, kept while it streams: the head, a marker, the tail, exact counts.
 *
 * Takes:   bytes as they come; or UTF-8, counted in characters.
 * Gives:   at most `cap` of them, head and tail, and the number that came in all.
 * Never:   holds more than the cap; cuts a UTF-8 sequence at the marker.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_CAPTURE_H
#define OUTPUT_CAPTURE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_MARKER "\n[... output truncated ...]\n"

struct output_capture {
    struct buf head;
    char *tail;                  /* a ring of tail_room bytes, made when the head is full */
    size_t head_cap, tail_units; /* in units: bytes, or characters */
    size_t tail_cap, tail_at, tail_len;
    uint64_t total, head_units; /* units that came, and those of the head */
    bool characters, closed;    /* closed: what comes goes to the tail */
    bool failed;                /* no memory for more: what is missing counts as cut */
};

void output_capture_init(struct output_capture *c, size_t cap);
/* CAP in characters; the bytes must be UTF-8, and may come cut anywhere. */
void output_capture_init_characters(struct output_capture *c, size_t cap);
void output_capture_done(struct output_capture *c);

/* Returns how many of the bytes went into the head: those can be passed on at once. */
size_t output_capture_add(struct output_capture *c, const void *data, size_t len);

bool output_capture_truncated(const struct output_capture *c);

uint64_t output_capture_tail(const struct output_capture *c); /* units of the tail that are shown */

/* What follows the head: nothing, the rest, or the marker and the tail. */
ERR_MUST_USE int output_capture_rest(const struct output_capture *c, struct buf *out);
size_t output_capture_rest_max(const struct output_capture *c); /* bytes that it may need */

#endif
