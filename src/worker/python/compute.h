/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that computes only: its program's modules are loaded first, then the second table is closed.
 *
 * Takes:   the program that was judged: what it imports, and the words in its code.
 * Gives:   an interpreter that needs no file any more, in a process that can open none (jail/compute.h).
 * Never:   runs code of the guest, or lets one run while the table is open.
 * Runs in: cordon-python: a template loads ahead, a child closes.
 */
#ifndef WORKER_PYTHON_COMPUTE_H
#define WORKER_PYTHON_COMPUTE_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"
#include "policy/profile.h"

#include <stdbool.h>

/* All that a program of this profile may import, and what those modules load later. Nothing to do where it was done, or
 * where the profile does not compute only. */
ERR_MUST_USE int py_compute_load(const struct policy_profile *profile, struct err *err);

/* In a template, after that: from now on nobody looks for files, so that its children need not see to it. */
ERR_MUST_USE int py_compute_forget_files(const struct policy_profile *profile, struct err *err);

/* MODULES: of py_judge_modules. CODE and LAST: what it was compiled to, or NULL. NULL for MODULES: a session, whose
 * later programs nobody has seen; all modules of the profile are loaded. Closes once in the life of a process. */
ERR_MUST_USE int py_compute_close(const struct policy_profile *profile, PyObject *modules,
                                  PyObject *code, PyObject *last, struct err *err);

#endif
