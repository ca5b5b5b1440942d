/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: started isolated, without site, with the paths that were known at build time.
 *
 * Takes:   what the profile lets it see (packages, modules to load ahead).
 * Gives:   a started CPython with one thread and nothing of ours in its object graph.
 * Never:   reads the caller's environment, user site folders or .pth files.
 * Runs in: cordon-python, template and child.
 */
#ifndef WORKER_PYTHON_INTERP_H
#define WORKER_PYTHON_INTERP_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"
#include "worker/frame/language.h"

#include <stdbool.h>

/* The collector is off until the second call, for which everything of ours is made by then: it does not
 * look at that again. */
ERR_MUST_USE int py_interp_start(const struct worker_start *start, struct err *err);
ERR_MUST_USE int py_interp_started(struct err *err);

#if PY_VERSION_HEX >= 0x030b0000
extern const struct _frozen py_interp_frozen[]; /* made by freeze.py */
#endif

ERR_MUST_USE int py_interp_import(const char *module, struct err *err);
/* Before the first fork: what is loaded stays where it is, so that no child copies it to count it. */
ERR_MUST_USE int py_interp_freeze(struct err *err);

/* In a template, before it is frozen: of what its libraries registered for the end of the process only
 * what a program could notice is left (finish.c). */
ERR_MUST_USE int py_finish_prepare(struct err *err);

/* In a forked child, before its first guest byte: Python's own after-fork work, fresh random numbers. */
void py_interp_after_fork(void);
/* Of a template whose guests have no threads: its children do not put threading's locks in order. */
ERR_MUST_USE int py_interp_forget_threads(struct err *err);

/* Runs what Python runs at the end of a program: waits for its threads, calls exit functions, flushes. */
void py_interp_finish(void);
void py_interp_flush(void); /* its streams alone */

#endif
