/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a module is there, as the interpreter's own finders see it.
 *
 * Takes:   the name of a module, as an import statement has it.
 * Gives:   false only if no finder knows it: not among the workspace's files, where the profile has files, nor in the library.
 * Never:   imports it, or leaves what it saw of the workspace where a later import would believe it.
 * Runs in: cordon-python, for the first program of its process: no code of a guest has run.
 */
#ifndef WORKER_PYTHON_LOOKUP_H
#define WORKER_PYTHON_LOOKUP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

bool py_lookup_exists(const char *module, size_t len, bool files);

#endif
