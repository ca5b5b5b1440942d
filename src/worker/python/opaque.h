/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses are not for guests: what an interpreter tells of an object's address is told in cipher.
 *
 * Takes:   the process before Python is started in it; later, that it serves a profile with guards.
 * Gives:   identity hashes, id() and the numbers in default reprs that are the same for the same object and
 *          differ for objects that live at the same time, and say nothing of where anything is.
 * Never:   changes a hash that a dict has stored: hashes are in cipher from the first object on.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_OPAQUE_H
#define WORKER_PYTHON_OPAQUE_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"

#include <stdint.h>

/* Once, before Py_Initialize. From there on identity hashes are in cipher, in every profile. */
ERR_MUST_USE int py_opaque_start(struct err *err);

/* From now on id() and reprs are in cipher, too. 0, or -1 with a Python exception. */
int opaque_close(void);

/* MODULE shows addresses in ways of its own: closes them. 0, or -1 with a Python exception. */
int opaque_library(PyObject *module, const char *name);

/* id(x), in cipher once that was asked for: METH_O. */
PyObject *opaque_id(PyObject *self, PyObject *x);

#endif
