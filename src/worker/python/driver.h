/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part of a run: reads the job, judges it, waits for the word, runs the tree that was judged.
 *
 * Takes:   messages of the supervisor, in the order that driver.c states.
 * Gives:   the report before any guest code runs; value, fault and exit status after it.
 * Never:   runs what it has not judged, or judges one text and runs another.
 * Runs in: cordon-python, in the jail, behind all its locks.
 */
#ifndef WORKER_PYTHON_DRIVER_H
#define WORKER_PYTHON_DRIVER_H

#include "base/err.h"
#include "check/ruleset.h"

/* The rules of a built-in profile, so that none have to come on the channel. ERR_USAGE: no such profile. */
ERR_MUST_USE int py_driver_profile(const char *name, struct err *err);
const struct check_ruleset *py_driver_rules(void); /* NULL: none yet */

/* Runs a small program that touches what every program touches, so that the copy-on-write faults of a
 * forked child are behind it when a job comes. 0, or -1: this interpreter is not fit to run anything. */
int py_driver_warm(void);
/* A sample program for warming up and for rehearsals: it touches the pages that most programs touch. The caller appends
 * a last line that prints. */
#define PY_DRIVER_PROGRAM                                                                          \
    "x = 1\n"                                                                                      \
    "class A:\n"                                                                                   \
    "    def f(self):\n"                                                                           \
    "        return [str(i) for i in range(3)]\n"                                                  \
    "a = A().f()\n"                                                                                \
    "d = {'k': a[0]}\n"                                                                            \
    "for n in a:\n"                                                                                \
    "    x += int(n)\n"

/* In a child of a template, while it waits for its first job: closes the table of computation, if its profile has one
 * (compute.h). A child that somebody waits for leaves it to its first program. 0, or -1: it must not run anything. */
int py_driver_close(void);

/* Sends READY to the supervisor. Its messages wait in the socket until py_driver_serve. */
void py_driver_ready(void);

/* Serves until the supervisor is gone or a job ended the process. Returns the exit status. */
int py_driver_serve(void);

#endif
