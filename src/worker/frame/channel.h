/* SPDX-License-Identifier: Apache-2.0 */
/* The one descriptor between a worker and its supervisor: frames of wire/msg.h, one packet each.
 *
 * Takes:   fields of a message, or waits for the next one.
 * Gives:   a frame that was checked against the table.
 * Never:   blocks the guest's other threads while it waits; keeps anything of a frame.
 * Runs in: a worker, before and while guest code runs.
 */
#ifndef WORKER_FRAME_CHANNEL_H
#define WORKER_FRAME_CHANNEL_H

#include "wire/msg.h"

#define WORKER_CHANNEL 3 /* where the jail puts it */

/* 1: *r is open on the next message; 0: the supervisor is gone; -1: not a message. The frame stays
 * valid until the next call. */
int worker_channel_next(struct wire_reader *r);
int worker_channel_descriptor(void); /* that rode along with it, now the caller's; -1: none did */

/* Touches what the next message will be written to: a forked worker gets its own copy before it waits. */
void worker_channel_warm(void);

bool worker_channel_waits(void); /* a frame lies there, or the end of the channel does */

/* Begins a frame in the one buffer for sending; finish it with worker_channel_send. */
void worker_channel_begin(struct wire_writer *w, enum wire_type type);
int worker_channel_send(
    struct wire_writer *w); /* 0, or -1: the supervisor is gone or it was too long */

void worker_channel_say(
    enum wire_type type); /* a message without fields; failing is the next read's end */

/* TEXT as the table wants it: strict UTF-8 without NUL, cut at a character to fit ROOM bytes. */
void worker_channel_text(struct wire_writer *w, const char *text, size_t len, size_t cap);

/* UTF-8 of any length as pieces of VALUE or FINAL: at most one character more than the supervisor keeps, so that it
 * knows that there was more. */
void worker_channel_pieces(enum wire_type type, const char *text, size_t len);

/* How a program went wrong: the exception's type, its text, the line (0: not known). */
void worker_channel_fault(const char *type, const char *text, size_t len, unsigned line);

/* A note about how the program ran, by its id. */
void worker_note(const char *id);
/* One thing that was tried: layer, rule id, what exactly, what to do instead, line (0: not known). */
void worker_event(void *ctx, const char *layer, const char *rule, const char *detail,
                  const char *hint, unsigned line);

#endif
