/* SPDX-License-Identifier: Apache-2.0 */
/* A Python program between the frame and the interpreter: the functions of struct worker_language that are about one.
 *
 * Takes:   a job that came whole, and the frame's word that it may run.
 * Gives:   findings; then the value, the fault and the exit status of the tree that was judged.
 * Never:   runs what it has not judged, or judges one text and runs another.
 * Runs in: cordon-python, in the jail, behind all its locks.
 */
#ifndef WORKER_PYTHON_PROGRAM_H
#define WORKER_PYTHON_PROGRAM_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/frame/language.h"

/* A sample program for warming up and for rehearsals: it touches the pages that most programs touch. The caller appends
 * a last line that prints. */
#define PY_PROGRAM_SAMPLE                                                                          \
    "x = 1\n"                                                                                      \
    "class A:\n"                                                                                   \
    "    def f(self):\n"                                                                           \
    "        return [str(i) for i in range(3)]\n"                                                  \
    "a = A().f()\n"                                                                                \
    "d = {'k': a[0]}\n"                                                                            \
    "for n in a:\n"                                                                                \
    "    x += int(n)\n"

/* As worker/frame/language.h has them. */
int py_program_warm(const struct check_ruleset *rules);
int py_program_expect(const struct check_ruleset *rules);
void py_program_rules(const struct check_ruleset *rules);
int py_program_names(const char *word);
int py_program_judge(const struct worker_job *job, struct check_report *report, struct err *err);
int py_program_prepare(const struct worker_job *job);
int py_program_close(const struct check_ruleset *rules);
int py_program_begin(const struct worker_job *job);
void py_program_execute(const struct worker_job *job);
int py_program_report(const struct worker_job *job, bool *ret_left);
void py_program_finish(const struct worker_job *job);
void py_program_forget(void);

#endif
