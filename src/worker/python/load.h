/* SPDX-License-Identifier: Apache-2.0 */
/* LoadModule: a module of the workspace becomes an object of the program.
 *
 * Takes:   a name and a source that the trusted side has judged; the program's globals and rules.
 * Gives:   the module, bound in the globals by its name.
 * Never:   puts it where an import finds it: a module of the library stays what it is for everybody.
 *          Is called where guards are on: to them code with globals of its own is a library's.
 * Runs in: cordon-python, in the jail, while the program runs.
 */
#ifndef WORKER_PYTHON_LOAD_H
#define WORKER_PYTHON_LOAD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "check/ruleset.h"

/* New reference, or NULL with an exception. */
PyObject *py_load_module(const struct check_ruleset *rules, PyObject *globals, const char *name,
                         const char *source, size_t len);

#endif
