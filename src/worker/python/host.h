/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that guest code finds beside its own: FINAL, and one for each host function of the run.
 *
 * Takes:   the host functions of worker/frame/host.h; calls by guest code.
 * Gives:   callables for the guest's namespace; a blocked call suspends only this guest.
 * Never:   decides anything: whether a call is allowed, and how often, is the supervisor's to say.
 * Runs in: cordon-python, called by guest code.
 */
#ifndef WORKER_PYTHON_HOST_H
#define WORKER_PYTHON_HOST_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int py_host_bind(PyObject *globals); /* 0, or -1 with a Python exception */

#endif
