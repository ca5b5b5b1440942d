/* SPDX-License-Identifier: Apache-2.0 */
/* What reconfigure() of a guarded stream may change: how wrong bytes and characters are treated.
 *
 * Takes:   the arguments of TextIOWrapper.reconfigure.
 * Gives:   the name of an error handler, or a refusal that says what the stream is.
 * Never:   takes a handler that could be code of the guest.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_RECONFIGURE_H
#define WORKER_PYTHON_RECONFIGURE_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* *ERRORS is left alone where none is named. 0, or -1 with a Python exception. */
int py_reconfigure(PyObject *args, PyObject *kwargs, const char **errors);

#endif
