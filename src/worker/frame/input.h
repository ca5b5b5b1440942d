/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input of a program that runs in a process which was there before it.
 *
 * Takes:   INPUT of the supervisor, with a descriptor.
 * Gives:   that descriptor as 0; where a person types, a question to the supervisor before the program reads.
 * Never:   lets a program read what was meant for the one before.
 * Runs in: a worker, in the jail.
 */
#ifndef WORKER_FRAME_INPUT_H
#define WORKER_FRAME_INPUT_H

#include "wire/msg.h"

/* INPUT: the descriptor that rode along becomes 0; -1: none did. Where a person types it, 0 is at its end until
 * the program asks: who reads without asking is not made to wait. */
int worker_input_take(struct wire_reader *r, int fd);

/* The program is about to ask and to read: whoever sits there is asked. */
void worker_input_ask(void);

/* What the program before left unread is forgotten, if an INPUT came since. Runs the language's code, so only after GO. */
void worker_input_forget(void);

#endif
