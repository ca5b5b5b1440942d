/* SPDX-License-Identifier: Apache-2.0 */
/* The builtins of a guarded program: those that compute, and guarded forms of those that reach.
 *
 * Takes:   the rule set in force.
 * Gives:   a dict for `__builtins__`.
 * Never:   holds eval, exec, compile, globals, locals, vars, breakpoint or help, whatever the rules say;
 *          holds a raw form of getattr and its kin.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_BUILTINS_H
#define WORKER_PYTHON_BUILTINS_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What `type` is in guarded code: the class of an object, never a new one. Borrowed. */
PyObject *builtins_type(void);
PyObject *builtins_restricted(void); /* new reference, or NULL with a Python exception */

#endif
