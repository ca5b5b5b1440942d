/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's C stack: room for deep objects, and a name for its end.
 *
 * Takes:   the process as the jail started it, its stack limit raised (base/limits.h, LIMIT_STACK).
 * Gives:   threads with the usual size; a FAULT message when guest code has used up the stack.
 * Never:   keeps the process alive after such a fault; runs the interpreter in a signal handler.
 * Runs in: a worker, template and child.
 */
#ifndef WORKER_FRAME_STACK_H
#define WORKER_FRAME_STACK_H

#include "base/err.h"

#include <stdbool.h>

/* Before the first thread: the C library would give each one the whole stack limit. */
ERR_MUST_USE int worker_stack_threads(struct err *err);

/* In the process that serves a program, on its main thread: a fault in the stack's range is told. */
void worker_stack_watch(void);

/* While guest code runs: before and after it the supervisor does not expect a FAULT message. */
void worker_stack_guest(bool running);

#endif
