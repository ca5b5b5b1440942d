/* SPDX-License-Identifier: Apache-2.0 */
/* What a guarded program prints: one way to the run's streams, in order, as UTF-8.
 *
 * Takes:   the arguments of print(); text of libraries that write to sys.stdout and sys.stderr.
 * Gives:   bytes on descriptors 1 and 2, written before the call returns: nothing is lost in a kill.
 * Never:   shows a descriptor, a buffer or a raw file; writes half a character.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_PRINT_H
#define WORKER_PYTHON_PRINT_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int print_init(void);    /* 0, or -1 with a Python exception */
int print_streams(void); /* puts our streams into sys: stdout, stderr, stdin */

/* print(): METH_FASTCALL | METH_KEYWORDS */
PyObject *print_guarded(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* contextlib.redirect_stdout and redirect_stderr: types of ours. Borrowed. */
PyObject *print_redirect(const char *stream);

#endif
