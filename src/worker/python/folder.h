/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that a program works in, as Python shows it.
 *
 * Takes:   an interpreter whose profile has files.
 * Gives:   modules beside the program are found; os.getcwd() says /workspace, not where that is mounted.
 * Never:   opens a file; is called for a profile with guards.
 * Runs in: cordon-python, before the first program.
 */
#ifndef WORKER_PYTHON_FOLDER_H
#define WORKER_PYTHON_FOLDER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Once a process; later calls do nothing. 0, or -1 with an exception set. */
int py_folder_show(void);

#endif
