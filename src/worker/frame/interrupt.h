/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT as an exception of the program: what `Ctrl-C` and `cordon session interrupt` do to a call of a session.
 *
 * Takes:   the one thread of a session's process.
 * Gives:   the language's exception for it in the call that runs; the session lives on.
 * Never:   lets an interrupt that was meant for one call reach the next one.
 * Runs in: a worker, in the jail.
 */
#ifndef WORKER_FRAME_INTERRUPT_H
#define WORKER_FRAME_INTERRUPT_H

#include <stdbool.h>

/* From now on a SIGINT waits. The first time also sets the language's own handler: no code of a guest has run then. 0,
 * or -1: it has none to give. */
int worker_interrupt_expect(void);
/* What came until now was meant for a call that is over. For the first message of a call: its supervisor sends no
 * signal before it. */
void worker_interrupt_drop(void);
/* TRUE: an interrupt that waits, or comes, is raised in the code that runs from now on. FALSE: no more. */
void worker_interrupt_let(bool through);

#endif
