/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT as an exception of the program: what `Ctrl-C` and `cordon session interrupt` do to a call of a session.
 *
 * Takes:   the one thread of a session's process.
 * Gives:   KeyboardInterrupt in the call that runs; the session lives on.
 * Never:   lets an interrupt that was meant for one call reach the next one.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_INTERRUPT_H
#define WORKER_PYTHON_INTERRUPT_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* From now on a SIGINT waits. The first time also sets Python's own handler: no code of a guest has run then. 0, or -1:
 * Python has no handler to give. */
int py_interrupt_expect(void);
/* What came until now was meant for a call that is over. For the first message of a call: its supervisor sends no
 * signal before it. */
void py_interrupt_drop(void);
/* TRUE: an interrupt that waits, or comes, is raised in the code that runs from now on. FALSE: no more. */
void py_interrupt_let(bool through);

#endif
