/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's cell has beside a program: a block that is not at its end yet, an environment and an input
 * that come after the process has begun.
 *
 * Takes:   the source of a cell; what the frame was told.
 * Gives:   whether more lines are needed; a changed environment; another standard input.
 * Never:   runs anything of the source.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_CALL_H
#define WORKER_PYTHON_CALL_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* By the interpreter's own rule: the lines so far are no error, but not at their end. SOURCE is terminated,
 * has no NUL inside, and no line end behind its last line: an empty line ends a block. */
bool py_call_incomplete(const char *source);

/* A variable of the environment that was changed, for what Python knows of it. */
void py_call_variable(const char *name, const char *value);
/* Of a program that runs by itself: __file__, where it came from a file, and sys.argv. */
int py_call_program(PyObject *globals, const char *name);

/* Another standard input has come; the first time, no program has run yet. */
void py_call_input(void);
/* Descriptor 0 is at its end: what Python's readers of it still hold is read. Runs Python's code, so only after GO. */
void py_call_empty_input(void);

#endif
