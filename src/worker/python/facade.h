/* SPDX-License-Identifier: Apache-2.0 */
/* Modules as guest code sees them: what they offer by name, and nothing that they merely use.
 *
 * Takes:   the name of a module that the rules let be imported.
 * Gives:   an object that answers for the module's public members; sub-modules as facades again.
 * Never:   shows another module, a private name, or a member that a rule hides; can be changed.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_FACADE_H
#define WORKER_PYTHON_FACADE_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

int facade_init(void);    /* 0, or -1 with a Python exception */
void facade_forget(void); /* the rules have changed */

bool facade_check(PyObject *x);
/* The words that a module says of itself (__name__, __doc__), for the guarded read alone: the import
 * statement would look the name up in sys.modules. New reference, or NULL with an exception. */
PyObject *facade_word(PyObject *facade, PyObject *name);

/* What the module of that name has shown under that name before; borrowed, or NULL. */
PyObject *facade_has_shown(PyObject *module, PyObject *name);
/* sys.stdin, sys.stdout and sys.stderr: the members that a program may set. */
bool facade_may_set(PyObject *facade, PyObject *name);

/* The guarded __import__: METH_VARARGS | METH_KEYWORDS. */
PyObject *facade_import(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
