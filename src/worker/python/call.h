/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's cell has beside a program: a block that is not at its end yet, an environment and an input
 * that come after the process has begun.
 *
 * Takes:   the source of a cell; messages of the supervisor.
 * Gives:   whether more lines are needed; a changed environment; another standard input.
 * Never:   runs anything of the source.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_CALL_H
#define WORKER_PYTHON_CALL_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "wire/msg.h"

#include <stdbool.h>

#define PY_CALL_INCOMPLETE "incomplete" /* the operand of such a syntax finding */

/* By the interpreter's own rule: the lines so far are no error, but not at their end. SOURCE is terminated,
 * has no NUL inside, and no line end behind its last line: an empty line ends a block. */
bool py_call_incomplete(const char *source);

/* ENVIRON: 0, or -1: the supervisor lost its way. */
int py_call_environ(struct wire_reader *r);
/* ARGV: the same. */
int py_call_argv(struct wire_reader *r);
/* Of a program that runs by itself: __file__, where it came from a file, and sys.argv. */
int py_call_program(PyObject *globals, const char *name);

/* INPUT: the descriptor that rode along becomes 0; -1: none did. Where a person types it, 0 is at its end until
 * input() asks: who reads without asking is not made to wait. */
int py_call_input(struct wire_reader *r, int fd);
/* What the program before left unread is forgotten, if an INPUT came since. Runs Python's code, so only after GO. */
void py_call_forget_input(void);

#endif
