/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a word at the prompt may become, for Tab.
 *
 * Takes:   the namespace of the session; a word: a name, or names with dots between them.
 * Gives:   NAMES: what the namespace, the builtins or the object before the last dot have.
 * Never:   runs code of the guest: nothing is called, no property is read; so it needs no gate and no clock.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_NAMES_H
#define WORKER_PYTHON_NAMES_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* GLOBALS NULL: nothing has run yet, and there are only keywords. 0, or -1: nobody listens. */
int py_names_send(PyObject *globals, const char *word);

#endif
