/* SPDX-License-Identifier: Apache-2.0 */
/* How a program ended, said as Python would: exit status, traceback on stderr, type, message, line.
 *
 * Takes:   the pending exception.
 * Gives:   an exit status; a FAULT message when it was an error.
 * Never:   lets what the guest put in an exception reach the channel unbounded or unclean.
 * Runs in: cordon-python, after guest code.
 */
#ifndef WORKER_PYTHON_FAULT_H
#define WORKER_PYTHON_FAULT_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* Takes the pending exception away. FILE: the name the source was compiled under. SOURCE: its text, so that
 * the traceback shows the lines; NULL: it does not. GUARDED: the program's own lines only, and no module of Python's
 * is asked: what it would look at is closed by guards. */
int py_fault_report(const char *file, const char *source, size_t len, bool guarded);

#endif
