/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for files over the worker's channel, as a function of Python: what library/files.py is built on.
 *
 * Takes:   what (wire/files.h), path, second path, two numbers, bytes.
 * Gives:   (numbers, bytes), or the OSError that the request failed with.
 * Never:   makes a system call of files; decides anything about a path.
 * Runs in: cordon-python, called by guest code through modules of ours.
 */
#ifndef WORKER_PYTHON_FILES_H
#define WORKER_PYTHON_FILES_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef py_files_ask;

#endif
