/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT as KeyboardInterrupt: the two steps of worker/frame/interrupt.h that are Python's.
 *
 * Takes:   the frame's word that a session begins, or that a call is over.
 * Gives:   Python's own handler of the signal.
 * Never:   raises what was meant for a call that is over.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_INTERRUPT_H
#define WORKER_PYTHON_INTERRUPT_H

/* In a template whose children all set the handler: they then write nothing of Python's. 0, or -1. */
int py_interrupt_prepare(void);
int py_interrupt_set(void);   /* 0, or -1: Python has no handler to give */
void py_interrupt_drop(void); /* what the handler has seen and Python has not raised yet */

#endif
