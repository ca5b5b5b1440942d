/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that guest code finds beside its own: FINAL, and one for each tool of the run.
 *
 * Takes:   the tools of worker/frame/host.h; calls by guest code.
 * Gives:   callables for the guest's namespace, some of them as members of the modules of code_api, too; a blocked call suspends only this guest.
 * Never:   decides anything: whether a call is allowed, and how often, is the supervisor's to say.
 * Runs in: cordon-python, called by guest code.
 */
#ifndef WORKER_PYTHON_HOST_H
#define WORKER_PYTHON_HOST_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "check/ruleset.h"

#include <stdbool.h>

/* 0, or -1 with a Python exception. RULES, those of the program, are kept until the next call. */
int py_host_bind(PyObject *globals, const struct check_ruleset *rules);

/* Whether the run's tools make the module NAME: code_api and what lies below it. */
bool py_host_has_module(const char *name, size_t len);

#endif
